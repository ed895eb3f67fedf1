//! Logs to standard error.

use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
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
    let filter = filter_of(filter)?;
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

/// Libraries whose own doings are for those who look for a fault in them: their INFO is our DEBUG.
const LIBRARIES: [&str; 4] = ["fjall", "lsm_tree", "value_log", "redb"];

fn filter_of(text: &str) -> Result<EnvFilter, LogError> {
    let parse = |all: &str| {
        EnvFilter::try_new(all)
            .map_err(|why| LogError::Filter { filter: text.to_owned(), why: why.to_string() })
    };
    let filter = parse(text)?;
    if filter.max_level_hint().is_none_or(|level| level > LevelFilter::INFO) {
        return Ok(filter);
    }
    let unnamed = LIBRARIES.into_iter().filter(|library| !text.contains(library));
    let quiet: Vec<String> = unnamed.map(|library| format!("{library}=warn")).collect();
    parse(&[text.to_owned()].into_iter().chain(quiet).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, PoisonError};
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// What is logged with this filter, of an engine and of us.
    fn logged(filter: &str) -> [bool; 3] {
        let lines = Lines::default();
        let builder = tracing_subscriber::fmt().with_env_filter(filter_of(filter).unwrap());
        tracing::subscriber::with_default(builder.with_writer(lines.clone()).finish(), || {
            tracing::info!(target: "fjall::journal", "inside");
            tracing::warn!(target: "lsm_tree::compaction", "trouble");
            tracing::info!(target: "runtime::server", "ours");
        });
        let text = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(text).unwrap();
        ["inside", "trouble", "ours"].map(|word| text.contains(word))
    }

    #[test]
    fn what_engines_do_inside_is_told_to_those_who_debug() {
        assert_eq!(logged("info"), [false, true, true]);
        assert_eq!(logged("debug"), [true, true, true]);
        assert_eq!(logged("warn"), [false, true, false]);
        assert_eq!(logged("info,fjall=info"), [true, true, true], "who asks is answered");
        assert!(filter_of("=nonsense=").is_err());
    }
}
