//! Worlds in which requests go to the content addresses of their keys.

use super::Draw;
use crate::options::{Faults, Options};
use cluster::HotPolicy;

impl Draw {
    /// The world is one of any kind, but that no switch sees most requests. In half of the worlds
    /// there are caches.
    pub(super) fn content(&mut self, options: &mut Options) {
        match self.between(0, 9) {
            0..3 => self.some_noise(options),
            3 => self.network(options),
            4 => self.crashes(options),
            5 => self.pauses(options),
            6 => self.membership(options),
            7 | 8 => self.fences(options),
            _ => self.everything(options),
        }
        options.nodes = options.nodes.max(2);
        options.replicas = u8::try_from(self.small(1, options.nodes.min(3))).expect("at most 3");
        if self.0.chance(1, 2) {
            self.caches(options);
        } else {
            options.hot = self.pick(&[HotPolicy::Off, HotPolicy::Replicate]);
        }
        options.content = true;
        options.shards = 1;
        options.partitions = self.pick(&[1, 2, 4]);
        options.route_delay_max = self.ms(&[0, 5, 100, 1_500]);
        options.load.clients = options.load.clients.max(2);
        options.faults = Faults {
            split_every: self.ms(&[0, 0, 300, 900]),
            pause_every: self.ms(&[0, 300, 900]),
            cut_every: self.ms(&[0, 300, 900]),
            ..options.faults
        };
    }
}
