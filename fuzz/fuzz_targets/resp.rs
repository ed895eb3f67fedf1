//! See `keyway_fuzz::resp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keyway_fuzz::resp(bytes));
