//! Standard output. Nobody reading on is no failure: `keyway status | head -1`.

use std::io::Write;

/// Prints text as it is.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // What fails here is a closed pipe, and there is nobody left to tell.
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// Prints a line.
pub(crate) fn line(text: &str) {
    print(&format!("{text}\n"));
}
