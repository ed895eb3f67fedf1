//! Stores that builds have left behind are understood: recorded ones, a file for each format.
//! `RECORD_FIXTURES=1 cargo test -p keyway-runtime --test recorded` records those of the present
//! formats that are not there yet.

mod archive;
mod map;
mod shard;

use std::path::PathBuf;

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/fixtures")
}

/// Whether this run is to record what is not on record.
fn records(name: &str) -> bool {
    std::env::var_os("RECORD_FIXTURES").is_some() && !fixtures().join(name).exists()
}
