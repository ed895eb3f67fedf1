//! Worlds with caches.

use super::Draw;
use crate::options::{Faults, Options};
use cluster::HotPolicy;
use std::time::Duration;

impl Draw {
    /// Few keys, read by many and written now and then. In half of the worlds nothing but caches
    /// fails, and the network; in the others anything does.
    pub(super) fn caches(&mut self, options: &mut Options) {
        match self.between(0, 9) {
            0..4 => self.some_noise(options),
            4 => self.network(options),
            5 => self.crashes(options),
            6 => self.pauses(options),
            7 => self.switches(options),
            8 => self.partitions(options),
            _ => self.everything(options),
        }
        options.caches = self.pick(&[1, 1, 2, 3]);
        options.hot = HotPolicy::Cache;
        options.lead = Duration::from_millis(2_200);
        options.load.clients = self.pick(&[2, 4, 6]);
        options.load.in_flight = self.pick(&[1, 3, 8]);
        options.load.think = self.ms(&[3, 6, 12]);
        options.load.registers = self.pick(&[1, 2, 5]);
        options.load.reads_percent = self.pick(&[40, 60, 80, 90]);
        options.load.focus_percent = self.pick(&[0, 60, 90]);
        options.load.many_percent = self.pick(&[0, 0, 20]);
        options.load.batch_percent = self.pick(&[0, 0, 30]);
        options.load.flood = 0;
        if self.0.chance(1, 4) {
            // What is under way arrives when leases are over.
            options.links.stray_permille = self.pick(&[50, 200]);
            options.links.stray_max = self.ms(&[200, 400]);
        }
        if self.0.chance(1, 2) {
            options.nodes = options.nodes.max(self.small(2, 4));
            options.replicas =
                u8::try_from(self.small(2, options.nodes.min(3))).expect("at most 3");
        }
        options.load.blind = self.0.chance(1, 2);
        options.faults = Faults {
            cache_every: self.ms(&[0, 300, 800]),
            cache_cut_every: self.ms(&[0, 300, 800]),
            pause_every: self.ms(&[0, 0, 400]),
            split_every: self.ms(&[0, 0, 0, 600]),
            alter_every: self.ms(&[0, 0, 0, 800]),
            ..options.faults
        };
    }
}
