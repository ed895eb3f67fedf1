//! Certificates, their authority and the secret of packets are replaced, again and again, and the
//! keys of packets change by themselves.

use envelope::Period;
use runtime::clock::Clock;
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

/// What comes every three minutes in a run that is long enough.
const PERIOD: &str = "a period of keys begun";

/// Between two of them. Processes look at their files once a second.
const EVERY: Duration = Duration::from_secs(4);

/// How often it is looked whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Goes on until all is mended; says what was replaced how often.
pub(crate) fn go_on(certs: &Path, mended: &AtomicBool) -> BTreeMap<&'static str, usize> {
    let (mut done, mut clock) = (BTreeMap::new(), Clock::new());
    let mut period = Period::at(clock.now().unix_ms());
    for (what, how) in KINDS.iter().cycle() {
        for _ in 0..EVERY.as_millis() / LOOK_EVERY.as_millis() {
            if mended.load(Ordering::Relaxed) {
                return done;
            }
            std::thread::park_timeout(LOOK_EVERY);
            let now = Period::at(clock.now().unix_ms());
            if std::mem::replace(&mut period, now) != now {
                *done.entry(PERIOD).or_default() += 1;
            }
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
