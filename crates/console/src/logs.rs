//! The logging options of commands that run a part of a cluster.

use crate::exit::Failure;
use runtime::logging::{self, LogFormat};

/// Where and how much is logged: always to standard error.
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// What is logged: error, warn, info, debug, or a filter such as runtime=debug,info.
    #[arg(long, value_name = "FILTER", env = "KEYWAY_LOG")]
    log: Option<String>,
    /// Log JSON, one object per line.
    #[arg(long)]
    log_json: bool,
}

impl Logs {
    /// Starts logging.
    pub fn start(&self, default_filter: &str) -> Result<(), Failure> {
        let format = if self.log_json { LogFormat::Json } else { LogFormat::Text };
        let filter = self.log.as_deref().unwrap_or(default_filter);
        logging::start(format, filter).map_err(|error| Failure::usage(error.to_string()))
    }
}
