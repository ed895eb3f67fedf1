//! Worlds in which a key is held by a cache or copied to nodes, one after the other.

use super::Draw;
use crate::options::Options;
use cluster::HotPolicy;
use std::time::Duration;

impl Draw {
    /// As with caches, while keys turn hot and cold: what is lent is to be copied, and what was
    /// copied is lent. In a third of the worlds plain writes are many, so that keys are delegated;
    /// in another replies come late, and members hear of orders late.
    pub(super) fn either(&mut self, options: &mut Options) {
        self.caches(options);
        options.hot = HotPolicy::Either;
        options.nodes = options.nodes.max(self.small(2, 4));
        options.load.registers = self.pick(&[1, 1, 2]);
        options.load.focus_percent = self.pick(&[60, 90]);
        options.faults.hot_every = self.ms(&[30, 60, 150, 400]);
        options.faults.length_max = options.faults.length_max.min(Duration::from_millis(450));
        match self.between(0, 2) {
            0 => {
                options.load.plain_percent = self.pick(&[100, 98, 80]);
                options.load.reads_percent = self.pick(&[20, 50, 80]);
                options.faults.hot_every = self.ms(&[100, 300, 1_000]);
            }
            1 => {
                options.links.stray_reply_permille = self.pick(&[200, 400]);
                options.links.stray_max = self.ms(&[50, 150, 500]);
                options.faults.deaf_every = self.ms(&[50, 150]);
            }
            _ => {}
        }
    }
}
