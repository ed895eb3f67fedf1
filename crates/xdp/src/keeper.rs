//! The directory in the kernel as the sockets behind the program see it.

use crate::hot::Bits;
use crate::program::{Error, PASS, Program};
use std::net::SocketAddrV4;
use std::sync::Arc;
use switch::{Moment, Moments};
use wire::{Fields as _, HEADER_LEN};

/// Has the kernel take note of replies that come to a socket of the switch and not to the program.
/// Every version that the switch lets through is counted in one place, whichever way it goes.
///
/// It is a program of its own on the maps of the attached one, which may be replaced meanwhile.
#[derive(Debug)]
pub struct Keeper {
    program: Program,
    bits: Arc<Bits>,
    moments: Arc<Moments>,
}

impl Keeper {
    pub(crate) fn new(
        of: &Program,
        service: SocketAddrV4,
        bits: Arc<Bits>,
        moments: Arc<Moments>,
    ) -> Result<Self, Error> {
        Ok(Self { program: Program::load(service, Some(of))?, bits, moments })
    }
}

impl switch::Keeper for Keeper {
    fn note(&self, header: &[u8; HEADER_LEN]) -> bool {
        if !self.bits.has(header.keyhash()) {
            return true;
        }
        match self.program.run("note", header, 0, 1) {
            Ok(verdict) => verdict.action == PASS,
            Err(why) => {
                tracing::error!(%why, "a reply for a hot key was not noted, and is dropped");
                false
            }
        }
    }

    fn moment(&self) -> Moment {
        self.moments.now()
    }
}
