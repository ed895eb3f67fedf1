//! The signals by which a process is asked to end, or to reload what it can.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use std::io;

/// `SIGINT`, `SIGTERM` and perhaps `SIGHUP`, held back until somebody waits for them.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    set: SigSet,
}

/// What [`Signals::wait`] returns when a process that holds it back is asked to reload.
pub const RELOAD: &str = Signal::SIGHUP.as_str();

/// The same when it is asked to end, and has the time to have others take over before.
pub const HAND_OVER: &str = Signal::SIGTERM.as_str();

impl Signals {
    /// Holds the signals back in this thread and in those that it starts from now on: to be called
    /// before any is started.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn hold() -> io::Result<Self> {
        Self::hold_all(&[Signal::SIGINT, Signal::SIGTERM])
    }

    /// The same, and `SIGHUP` does not end the process but asks it to reload.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn hold_with_reload() -> io::Result<Self> {
        Self::hold_all(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
    }

    fn hold_all(signals: &[Signal]) -> io::Result<Self> {
        let set: SigSet = signals.iter().copied().collect();
        set.thread_block()?;
        Ok(Self { set })
    }

    /// Waits for one of them and returns its name. After one that asks to end, a second one ends
    /// the process at once, in case the end in good order takes too long.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn wait(&self) -> io::Result<&'static str> {
        loop {
            match self.set.wait() {
                Ok(Signal::SIGHUP) => return Ok(RELOAD),
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
