//! Loading the program once more for a plane, while that goes on with its work.
//!
//! The kernel takes about a third of a second to verify it. A lease is not much longer, so nobody
//! who renews one may wait for that.

use super::{Plane, attach_failed};
use crate::link;
use crate::program::{Error, Program};
use crate::shadow::Shadow;
use machine::Instant;
use std::net::SocketAddrV4;
use std::sync::Arc;

/// Loads programs on the maps of a plane, and needs nothing else of it.
#[derive(Clone, Debug)]
pub struct Loader {
    program: Arc<Program>,
    service: SocketAddrV4,
}

/// A program on the maps of a plane that is loaded, verified, and attached to nothing yet.
#[derive(Debug)]
pub struct Spare(Program);

impl Loader {
    /// One to put in the place of the program that runs. This takes long.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it.
    pub fn spare(&self) -> Result<Spare, Error> {
        self.program.load_again(self.service).map(Spare)
    }

    /// A program beside the one that is attached, to ask what the maps say when it is asked. This
    /// takes long.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it.
    pub fn shadow(&self) -> Result<Shadow, Error> {
        Ok(Shadow::new(self.program.load_shadow(self.service)?, self.service))
    }
}

impl<C: FnMut() -> Instant> Plane<C> {
    /// What loads programs for this plane, also while somebody else has it.
    #[must_use]
    pub fn loader(&self) -> Loader {
        Loader { program: Arc::clone(&self.program), service: self.service }
    }

    /// Puts a program that its [`loader`](Self::loader) has loaded in the place of the one that
    /// runs. Tables, leases, hot keys with all that is known of them, and counters stay, and
    /// every packet meets the one or the other.
    ///
    /// # Errors
    ///
    /// If an interface does not take it; the present one then stays wherever it was not
    /// replaced.
    pub fn replace(&mut self, Spare(next): Spare) -> Result<(), Error> {
        for port in &self.ports {
            let failed = |why| attach_failed(&port.name, why);
            link::replace(&port.xdp, &next.program("keyway_one")).map_err(failed)?;
            link::replace(&port.tc, &next.program("keyway_many")).map_err(failed)?;
        }
        self.program = Arc::new(next);
        Ok(())
    }
}
