//! Saying that something could not be tested on this machine.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Prints it, and adds it to the list that `make test` ends with.
pub fn report(what: &str, why: &str) {
    let line = format!("{what} ({})", why.replace('\n', "; "));
    eprintln!("SKIPPED: {line}");
    let Some(list) = std::env::var_os("KEYWAY_SKIPS") else { return };
    let file = OpenOptions::new().append(true).create(true).open(list);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.expect("the list of skipped tests can be written");
}
