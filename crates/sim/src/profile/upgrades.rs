//! Worlds in which members are asked to end and started again.

use super::Draw;
use crate::options::{Faults, Options};

impl Draw {
    /// One after the other, as in a rolling restart, or several at once. In half of the worlds
    /// nothing else happens.
    pub(super) fn upgrades(&mut self, options: &mut Options) {
        options.span = self.ms(&[4_000, 10_000]);
        options.switches = self.pick(&[1, 2, 2]);
        options.controllers = self.pick(&[1, 2]);
        options.nodes = self.small(2, 5);
        options.replicas = u8::try_from(self.small(2, options.nodes.min(3))).expect("at most 3");
        options.load.think = self.ms(&[5, 20]);
        options.load.registers = self.pick(&[1, 2, 4]);
        options.faults = Faults {
            leave_every: self.ms(&[300, 800, 2_000]),
            hot_every: self.ms(&[0, 300]),
            ..options.faults
        };
        if self.0.chance(1, 2) {
            self.some_noise(options);
            options.faults = Faults {
                crash_every: self.ms(&[0, 1_500]),
                power_cut_every: self.ms(&[0, 0, 4_000]),
                switch_every: self.ms(&[0, 2_000]),
                controller_every: self.ms(&[0, 2_000]),
                cut_every: self.ms(&[0, 1_000]),
                pause_every: self.ms(&[0, 1_000]),
                aged_percent: self.pick(&[0, 0, 30]),
                ..options.faults
            };
        }
        options.old_nodes = self.0.chance(1, 2);
    }
}
