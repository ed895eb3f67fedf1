//! Worlds whose machines' clocks are set by hours.

use super::Draw;
use crate::options::Options;

impl Draw {
    /// Everybody starts anew now and then, with a clock that is hours off. Of the nodes most know
    /// the time whenever a controller begins: nobody else could tell it.
    pub(super) fn clocks(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.clock_steps = true;
        options.nodes = self.small(3, 5);
        options.replicas = u8::try_from(self.small(1, 3)).expect("at most 3");
        options.load.lock_percent = self.pick(&[40, 80]);
        options.load.think = self.ms(&[10, 20, 40]);
        options.load.in_flight = self.pick(&[1, 3]);
        options.faults.crash_every = self.ms(&[0, 400, 1_000]);
        options.faults.client_every = self.ms(&[0, 500, 1_500]);
        options.faults.switch_every = self.ms(&[0, 600, 1_500]);
        options.faults.controller_every = self.ms(&[0, 600, 1_500]);
        options.faults.pause_every = self.ms(&[0, 0, 1_000]);
    }
}
