//! What the targets in `fuzz_targets` call. The bodies lie with the tests of the switch and of the
//! gateway, which run them over vectors and scripts, so that they cannot rot between two fuzzings.

#[path = "../../crates/switch/tests/fuzzed/mod.rs"]
mod fuzzed;
#[path = "../../crates/switch/tests/oracle/mod.rs"]
mod oracle;

#[path = "../../crates/gateway/tests/fuzzed/mod.rs"]
mod fuzzed_resp;

mod resp;

/// The commands of a connection to the gateway.
pub fn resp(bytes: &[u8]) {
    fuzzed_resp::resp(bytes);
}

/// The packet parser and all bodies.
pub fn packet(bytes: &[u8]) {
    fuzzed::packet(bytes);
}

/// The switch pipeline against a naive model, with tables that the bytes make.
pub fn pipeline(bytes: &[u8]) {
    fuzzed::pipeline(bytes);
}
