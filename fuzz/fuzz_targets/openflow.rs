//! See `keyway_fuzz::openflow`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keyway_fuzz::openflow(bytes));
