//! The signals by which a process is asked to end.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use std::io;

/// `SIGINT` and `SIGTERM`, held back until somebody waits for them.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    set: SigSet,
}

impl Signals {
    /// Holds the signals back in this thread and in those that it starts from now on: to be called
    /// before any is started.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn hold() -> io::Result<Self> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        set.thread_block()?;
        Ok(Self { set })
    }

    /// Waits for one of them and returns its name. A second one then ends the process at once, in
    /// case the end in good order takes too long.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn wait(self) -> io::Result<&'static str> {
        loop {
            match self.set.wait() {
                Ok(signal) => {
                    self.set.thread_unblock()?;
                    return Ok(signal.as_str());
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
