//! Logs to standard error.

use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging did not start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be parsed.
    #[error("the log filter {filter:?} cannot be understood ({why}); try \"info\" or \"debug\"")]
    Filter {
        /// The filter.
        filter: String,
        /// Why not.
        why: String,
    },
    /// Somebody has started logging in this process already.
    #[error("logging was started twice")]
    Twice(#[from] TryInitError),
}

/// Starts logging for the whole process. `filter` is in the notation of `RUST_LOG`, such as `info`
/// or `runtime=debug,info`.
///
/// # Errors
///
/// If the filter is none, or logging has been started before.
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|why| LogError::Filter { filter: filter.to_owned(), why: why.to_string() })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // Else a log that nobody reads any more would be a panic of whoever writes to it.
    let builder = builder.log_internal_errors(false);
    // Colours are for people at a terminal who want them; a file is searched.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let builder = builder.with_ansi(io::stderr().is_terminal() && !plain);
    match format {
        LogFormat::Text => builder.finish().try_init()?,
        LogFormat::Json => builder.json().finish().try_init()?,
    }
    Ok(())
}
