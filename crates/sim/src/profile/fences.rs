//! Worlds in which no lease ends.

use super::Draw;
use crate::options::{Faults, Options};
use std::time::Duration;

impl Draw {
    /// Members are out of reach, of the controller or of each other, and serve on. In half of the
    /// worlds keys are hot, so that nodes answer that are in no chain.
    pub(super) fn fences(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.lease = Duration::from_secs(10);
        options.span = self.ms(&[3_000, 8_000]);
        options.switches = self.pick(&[1, 2, 2, 2]);
        options.controllers = self.pick(&[1, 2]);
        options.nodes = self.small(2, 5);
        options.replicas = u8::try_from(self.small(2, options.nodes.min(3))).expect("at most 3");
        options.load.think = self.ms(&[10, 20]);
        options.load.registers = self.pick(&[1, 2]);
        options.load.many_percent = self.pick(&[0, 30]);
        if self.0.chance(1, 2) {
            options.nodes = options.nodes.max(self.small(3, 5));
            options.load.clients = self.pick(&[4, 6]);
            options.load.reads_percent = self.pick(&[40, 80]);
            options.load.focus_percent = 90;
            options.load.blind = true;
            options.faults.hot_every = self.ms(&[100, 300, 1_000]);
        }
        options.faults = Faults {
            strand_every: self.ms(&[0, 300, 600]),
            cut_every: self.ms(&[300, 600, 1_500]),
            crash_every: self.ms(&[0, 0, 600]),
            switch_every: self.ms(&[0, 0, 1_000]),
            controller_every: self.ms(&[0, 0, 1_000]),
            pause_every: self.ms(&[0, 400, 1_000]),
            slow_every: self.ms(&[0, 0, 600]),
            ..options.faults
        };
    }
}
