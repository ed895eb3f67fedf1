//! What the targets in `fuzz_targets` call. The bodies lie in `testkit` and with the tests of the
//! gateway and of OpenFlow, which run them over vectors and scripts, so that they cannot rot
//! between two fuzzings.

#[path = "../../crates/openflow/tests/fuzzed/mod.rs"]
mod fuzzed_openflow;
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

/// Envelopes at those who look at them.
pub fn envelope(bytes: &[u8]) {
    testkit::fuzzed::envelope(bytes);
}

/// What an OpenFlow switch says.
pub fn openflow(bytes: &[u8]) {
    fuzzed_openflow::openflow(bytes);
}
