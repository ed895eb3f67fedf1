//! Worlds on a network that is not to be trusted.

use super::Draw;
use crate::options::{Hostility, Options};

impl Draw {
    /// A world of some other kind, with envelopes and with somebody who has nothing but a pass of
    /// the least class, and does what he can.
    pub(super) fn hostile(&mut self, options: &mut Options) {
        match self.between(0, 15) {
            0 | 1 => self.some_noise(options),
            2 => self.network(options),
            3 => self.crashes(options),
            4 => self.switches(options),
            5 => self.sessions(options),
            6 => self.batches(options),
            7 => self.big(options),
            8 | 9 => self.hot(options),
            10 => self.caches(options),
            11 => self.either(options),
            12 | 13 => self.content(options),
            _ => self.everything(options),
        }
        // Strangers of other worlds send what bears no envelope.
        options.links.forged_permille = 0;
        options.links.forged_chain_permille = 0;
        options.links.made_up_permille = 0;
        options.load.flood = 0;
        options.load.clients = options.load.clients.max(2);
        options.hostility = Some(Hostility {
            period: self.ms(&[500, 1_000, 2_500, 7_000]),
            attack_every: self.ms(&[2, 5, 10, 20]),
            readers: self.pick(&[0, 1, 1]),
        });
    }
}
