//! The end of the process when a part of it can no longer be relied on.
//!
//! A store that failed, or a machine that broke one of its own rules, must not go on serving: what
//! it says could be wrong. Others see a node that is gone, which is what chains are for.

use std::io::{self, Write as _};
use std::process;
use std::thread;

/// Ends the process with a message.
pub(crate) fn end(who: &str, why: &str) -> ! {
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{who}: {why}");
    } else {
        // Nobody may be there to read it, and this is no time to panic.
        writeln!(io::stderr(), "keyway: {who}: {why}").ok();
    }
    process::exit(EXIT_CODE);
}

/// `EX_SOFTWARE` of sysexits: tells a supervisor that a restart may help, and that it is a failure.
const EXIT_CODE: i32 = 70;

/// Held by a thread that the process cannot do without.
pub(crate) struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let name = thread::current().name().unwrap_or("a thread").to_owned();
            end(&name, "it panicked (the message is above); this is a bug in Keyway");
        }
    }
}
