//! The expiry options that PUT and CAS share.

use client::{Expiry, PutOptions};
use console::parse;
use std::time::Duration;

/// When the value goes away by itself.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Ttl {
    /// The value goes away after this time, such as 90s, 1h30m or 7d.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    ttl: Option<Duration>,
    /// The value goes away at this time, in Unix milliseconds.
    #[arg(long, value_name = "UNIX_MS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    expires_at: Option<u64>,
    /// Keep the expiry that the present value has.
    #[arg(long)]
    keep_expiry: bool,
}

impl Ttl {
    pub(crate) fn options(&self) -> PutOptions {
        let expiry = match (self.ttl, self.expires_at) {
            (Some(after), _) => Expiry::In(after),
            (None, Some(ms)) => Expiry::AtMs(ms),
            (None, None) if self.keep_expiry => Expiry::Keep,
            (None, None) => Expiry::Never,
        };
        PutOptions { expiry }
    }
}
