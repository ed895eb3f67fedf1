//! Worlds whose disks fail: they are full, old or wrong.

use super::Draw;
use crate::options::{Faults, Options};
use cluster::HotPolicy;
use std::time::Duration;

impl Draw {
    /// New keys, deletes and longer values, while there is room and none by turns.
    pub(super) fn full(&mut self, options: &mut Options) {
        if self.0.chance(1, 2) {
            self.network(options);
        } else {
            self.some_noise(options);
        }
        options.load.fresh_percent = self.pick(&[10, 30]);
        options.load.batch_percent = self.pick(&[0, 0, 10]);
        options.load.big_percent = self.pick(&[0, 0, 20]);
        options.load.many_percent = self.pick(&[0, 10]);
        options.load.think = self.ms(&[5, 10, 20]);
        options.load.in_flight = 3;
        options.span = self.ms(&[2_000, 4_000]);
        options.faults.full_every = self.ms(&[50, 150, 400]);
        options.faults.length_max = self.ms(&[300, 1_000]);
        let every = &[0, 0, 600, 1_500];
        options.faults.crash_every = self.ms(every);
        options.faults.amnesia_percent = self.pick(&[0, 30]);
        options.faults.operator_every = self.ms(every);
        options.faults.cut_every = self.ms(every);
        options.faults.hot_every = self.ms(&[0, 0, 300]);
        options.faults.client_every = self.ms(&[0, 0, 500]);
    }

    /// Disks come back as they were once, or lack what they said they had.
    pub(super) fn restores(&mut self, options: &mut Options) {
        self.amnesia(options);
        options.faults.amnesia_percent = self.pick(&[0, 0, 20]);
        options.faults.aged_percent = self.pick(&[0, 30, 60]);
        options.faults.torn_percent = self.pick(&[0, 20, 40]);
        options.faults.power_cut_every = self.ms(&[0, 1_000, 2_000]);
        options.faults.old_map_every = self.ms(&[0, 1_500, 3_000]);
        options.faults.clog_every = Duration::ZERO;
        options.load.registers = self.pick(&[1, 2, 5, 20]);
        if self.0.chance(1, 4) {
            options.faults.spent_percent = 50;
            options.faults.power_cut_every = self.ms(&[1_000, 2_000]);
        } else if self.0.chance(1, 3) {
            // Some lose their end, and before they have heard from the others these restart, too.
            options.faults.torn_percent = 60;
            options.faults.crash_every = self.ms(&[200, 400]);
            options.faults.power_cut_every = self.ms(&[200, 400]);
            options.load.in_flight = options.load.in_flight.max(4);
            options.load.think = self.ms(&[2, 5, 10]);
            self.restored_delegations(options);
        }
        self.long_absences(options);
    }

    /// In half of the worlds where nothing is worse than an older copy of a store keys are
    /// delegated, and whoever knows better may stay away for longer than the others wait.
    fn long_absences(&mut self, options: &mut Options) {
        // By a generator of its own: what else is drawn stays what it was.
        let mut draw = Draw(self.0.fork("long absences"));
        let Faults { aged_percent, torn_percent, amnesia_percent, .. } = options.faults;
        if aged_percent > 0 && torn_percent + amnesia_percent == 0 && draw.0.chance(1, 2) {
            draw.delegations(options);
            (options.nodes, options.replicas) = (3, 2);
            options.span = Duration::from_secs(8);
            options.lease = Duration::from_millis(100);
            options.poll = Duration::from_millis(20);
            options.faults.power_cut_every = draw.ms(&[600, 1_200]);
            options.faults.crash_every = draw.ms(&[0, 600]);
            options.faults.length_max = draw.ms(&[1_000, 2_000]);
        }
    }

    /// In a third of the worlds whose disks lose their end keys are delegated, and power goes
    /// everywhere while they are.
    fn restored_delegations(&mut self, options: &mut Options) {
        // By a generator of its own: what else is drawn stays what it was.
        let mut draw = Draw(self.0.fork("delegated keys"));
        if draw.0.chance(1, 3) {
            draw.delegations(options);
            (options.nodes, options.span) = (3, Duration::from_secs(8));
            options.replicas = draw.pick(&[2, 3]);
            options.sync_delay_max = draw.ms(&[0, 10, 20]);
            options.faults.power_cut_every = draw.ms(&[600, 1_200]);
            options.faults.crash_every = Duration::ZERO;
        }
    }

    /// Records go wrong by themselves, where three and more members can tell which are right.
    pub(super) fn rot(&mut self, options: &mut Options) {
        self.crashes(options);
        options.nodes = options.nodes.max(3);
        options.replicas = options.replicas.max(3);
        options.load.registers = self.pick(&[2, 5, 10]);
        options.rot = self.pick(&[1, 3, 6]);
        // What is wrong at the home of a delegated key is overwritten when that comes back.
        options.hot = self.pick(&[HotPolicy::Off, HotPolicy::Reads]);
    }
}
