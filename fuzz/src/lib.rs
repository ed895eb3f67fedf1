//! What the targets in `fuzz_targets` call. The bodies lie in `testkit` and with the tests of the
//! gateway, which run them over vectors and scripts, so that they cannot rot between two fuzzings.

#[path = "../../crates/gateway/tests/fuzzed/mod.rs"]
mod fuzzed_resp;

mod resp;

/// The commands of a connection to the gateway.
pub fn resp(bytes: &[u8]) {
    fuzzed_resp::resp(bytes);
}

/// The packet parser and all bodies.
pub fn packet(bytes: &[u8]) {
    testkit::fuzzed::packet(bytes);
}

/// The switch pipeline against a naive model, with tables that the bytes make.
pub fn pipeline(bytes: &[u8]) {
    testkit::fuzzed::pipeline(bytes);
}
