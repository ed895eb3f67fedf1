//! Worlds with several controllers that share a store.

use super::Draw;
use crate::options::{Faults, Options};

impl Draw {
    /// Who leads changes all the time, and those who led go on with what they know. In half of the
    /// worlds keys are hot: orders of those are kept in no store.
    pub(super) fn leaders(&mut self, options: &mut Options) {
        self.some_noise(options);
        (options.controllers, options.shared_store) = (3, true);
        options.lease = self.ms(&[500, 500, 2_000, 10_000]);
        options.span = self.ms(&[8_000, 12_000]);
        options.switches = self.pick(&[1, 2, 2, 2]);
        options.nodes = self.small(2, 5);
        options.replicas = u8::try_from(self.small(2, options.nodes.min(3))).expect("at most 3");
        options.load.clients = self.pick(&[2, 4, 4]);
        options.load.think = self.ms(&[20, 40]);
        options.load.registers = self.pick(&[1, 2]);
        options.load.reads_percent = self.pick(&[0, 40, 70]);
        options.load.many_percent = self.pick(&[0, 30]);
        if self.0.chance(1, 2) {
            options.hot = self.hot_policy();
            options.load.plain_percent = self.pick(&[0, 60]);
            options.load.focus_percent = 90;
            options.load.blind = true;
            options.faults.hot_every = self.ms(&[100, 300, 1_000]);
        }
        options.faults = Faults {
            leader_every: self.ms(&[800, 1_500, 3_000]),
            store_every: self.ms(&[0, 1_000, 2_000]),
            controller_every: self.ms(&[0, 2_000]),
            cut_every: self.ms(&[0, 0, 1_000]),
            strand_every: self.ms(&[0, 0, 1_000]),
            crash_every: self.ms(&[0, 0, 800]),
            switch_every: self.ms(&[0, 0, 1_000]),
            pause_every: self.ms(&[0, 600, 1_500]),
            operator_every: self.ms(&[0, 500]),
            length_max: self.ms(&[1_500, 3_000, 6_000]),
            ..options.faults
        };
    }
}
