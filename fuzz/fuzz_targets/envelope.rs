//! See `keyway_fuzz::envelope`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keyway_fuzz::envelope(bytes));
