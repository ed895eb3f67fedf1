//! Certificates, their authority and the secret of packets are replaced, again and again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is replaced, and what that is called.
const KINDS: [(&str, &[&str]); 3] = [
    ("all certificates replaced", &[]),
    ("the authority replaced", &["--ca"]),
    ("the secret of packets replaced", &["--envelopes"]),
];

/// Between two of them. Processes look at their files once a second.
const EVERY: Duration = Duration::from_secs(4);

/// How often it is looked whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Goes on until all is mended; says what was replaced how often.
pub(crate) fn go_on(certs: &Path, mended: &AtomicBool) -> BTreeMap<&'static str, usize> {
    let mut done = BTreeMap::new();
    for (what, how) in KINDS.iter().cycle() {
        for _ in 0..EVERY.as_millis() / LOOK_EVERY.as_millis() {
            if mended.load(Ordering::Relaxed) {
                return done;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_keyway"));
        command.args(["certs", "rotate", "--dir"]).arg(certs).args(*how);
        let output = command.output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what}: {said}");
        *done.entry(*what).or_default() += 1;
    }
    done
}
