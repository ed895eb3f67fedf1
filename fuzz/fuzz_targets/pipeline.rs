//! See `keyway_fuzz::pipeline`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keyway_fuzz::pipeline(bytes));
