//! Worlds in which some nodes have more to do than others.

use super::Draw;
use crate::options::{Faults, Options};
use controller::SPLIT_BYTES;

impl Draw {
    /// Most requests are about one key of each keyspace, and after a while about another. In half
    /// of the worlds nothing else happens.
    pub(super) fn loaded(&mut self, options: &mut Options) {
        options.lead = self.ms(&[2_200]);
        options.span = self.ms(&[8_000, 15_000, 40_000]);
        options.nodes = self.small(3, 6);
        options.replicas = u8::try_from(self.small(1, 3)).expect("at most 3");
        options.partitions = self.pick(&[1, 3, 6]);
        options.load_floor = self.pick(&[20, 100]);
        options.split_bytes = self.pick(&[SPLIT_BYTES, 100, 300]);
        options.load.clients = self.pick(&[2, 4]);
        options.load.in_flight = 8;
        options.load.think = self.ms(&[8, 15]);
        options.load.registers = self.pick(&[2, 5]);
        options.load.reads_percent = self.pick(&[0, 50]);
        options.load.focus_percent = self.pick(&[50, 90]);
        options.load.focus_lasts = self.ms(&[0, 1_000, 6_000]);
        if self.0.chance(1, 2) {
            self.some_noise(options);
            options.faults = Faults {
                crash_every: self.ms(&[0, 2_000, 4_000]),
                power_cut_every: self.ms(&[0, 0, 6_000]),
                switch_every: self.ms(&[0, 4_000]),
                controller_every: self.ms(&[0, 6_000]),
                cut_every: self.ms(&[0, 2_000]),
                pause_every: self.ms(&[0, 2_000]),
                operator_every: self.ms(&[0, 1_500]),
                hot_every: self.ms(&[0, 1_000]),
                ..options.faults
            };
        }
    }
}
