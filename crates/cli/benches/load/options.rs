//! What can be said on the command line: `cargo bench -p keyway --bench NAME -- [OPTIONS]`.

use clap::Parser;
use std::time::Duration;

/// How long and how often to measure, and how to say it.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Print JSON, one object per row.
    #[arg(long)]
    pub(crate) json: bool,
    /// Rounds of each arm, which alternate.
    #[arg(long, value_name = "N", default_value_t = 31)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Milliseconds of each round. Many short ones let the median pass over the 50 ms in a second
    /// for which the kernel stops real-time threads while others wait.
    #[arg(long, value_name = "N", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    millis: u64,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// Length of a round.
    pub(crate) fn round(&self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// A line that says them and where it is measured.
    pub(crate) fn describe(&self) -> String {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("kernel {}, {} rounds of {} ms each", kernel.trim(), self.rounds, self.millis)
    }
}
