//! Worlds in which partitions become more, and fewer.

use super::Draw;
use crate::options::{Faults, Options};

impl Draw {
    /// Partitions are split and merged again and again. In a quarter of the worlds nothing else
    /// happens, and in another there are batches, values in parts and requests for many keys.
    pub(super) fn parts(&mut self, options: &mut Options) {
        match self.small(0, 3) {
            0 => {}
            1 => {
                self.everything(options);
                options.load.batch_percent = self.pick(&[0, 20]);
                options.load.big_percent = self.pick(&[0, 20]);
                options.load.many_percent = self.pick(&[0, 30]);
            }
            _ => self.everything(options),
        }
        options.partitions = self.pick(&[1, 1, 2]);
        options.shards = self.pick(&[1, 1, 2, 3]);
        options.load.registers = self.pick(&[2, 5]);
        options.faults = Faults {
            split_every: self.ms(&[100, 300, 900]),
            power_cut_every: self.ms(&[0, 0, 1_500]),
            aged_percent: self.pick(&[0, 0, 20]),
            ..options.faults
        };
    }
}
