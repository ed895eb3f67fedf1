//! See `keyway_fuzz::packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keyway_fuzz::packet(bytes));
