//! Worlds in which keyspaces are altered.

use super::Draw;
use crate::options::{Faults, Options};

impl Draw {
    /// Keyspaces are to have more replicas and fewer again and again. In a quarter of the worlds
    /// nothing else happens. In another stores are lost or older ones put back, also the
    /// controller's. In the others anything else happens.
    pub(super) fn replicas(&mut self, options: &mut Options) {
        match self.small(0, 3) {
            0 => {}
            1 => self.restores(options),
            _ => {
                self.everything(options);
                options.load.batch_percent = self.pick(&[0, 0, 20]);
                options.load.many_percent = self.pick(&[0, 0, 30]);
                options.faults = Faults {
                    split_every: self.ms(&[0, 0, 600]),
                    leave_every: self.ms(&[0, 0, 800]),
                    ..options.faults
                };
            }
        }
        options.nodes = options.nodes.max(self.small(2, 5));
        options.faults.alter_every = self.ms(&[150, 400, 1_000]);
    }
}
