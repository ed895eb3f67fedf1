//! How the process ends, so that scripts can tell the cases apart.

use client::NotDone;
use std::io;
use std::process::ExitCode;

/// A command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Exit code 0.
    Yes,
    /// Exit code 1: it ran, and the answer is no: no such key, another value than expected, not
    /// ready. The command has said which.
    No,
}

/// A command that did not run to its end.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 2: the command line asks for something impossible.
    Usage(String),
    /// Exit code 3: refused, certainly without effect.
    Refused(String),
    /// Exit code 4: no answer in time; a write may have happened.
    Unknown(String),
    /// Exit code 5: what was found or done could not be written to standard output.
    Unwritten(io::Error),
    /// Exit code 0: nobody reads standard output any more, as in `keyway scan | head`.
    Unread,
    /// Exit code 5: something else stands in the way: an address in use, no controller, a disk.
    Other(anyhow::Error),
}

/// Said in the help of the binary.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  done, and the answer is no: no such key, another value than expected, not ready
  2  the command line is wrong
  3  refused: it had no effect and never will
  4  unknown: nobody answered in time; a write may have happened
  5  something else stands in the way: an address in use, no controller, a disk,
     or standard output cannot be written (if it is a pipe that nobody reads: 0)";

impl Failure {
    pub fn usage(why: impl Into<String>) -> Self {
        Self::Usage(why.into())
    }

    /// The word for it in JSON.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
            Self::Unwritten(_) | Self::Unread | Self::Other(_) => "failed",
        }
    }

    /// What went wrong and what to do.
    pub fn message(&self) -> String {
        match self {
            Self::Usage(why) | Self::Refused(why) | Self::Unknown(why) => why.clone(),
            Self::Unwritten(error) => format!("cannot write to standard output: {error}"),
            Self::Unread => "nobody reads standard output".to_owned(),
            Self::Other(error) => format!("{error:#}"),
        }
    }

    /// Whether it is standard output that failed.
    pub fn is_of_output(&self) -> bool {
        matches!(self, Self::Unwritten(_) | Self::Unread)
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
            Self::Unknown(_) => 4,
            Self::Unread => return ExitCode::SUCCESS,
            Self::Unwritten(_) | Self::Other(_) => 5,
        })
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Yes => Self::SUCCESS,
            Verdict::No => Self::from(1),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<NotDone> for Failure {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Refused(_) => Self::Refused(not_done.to_string()),
            NotDone::Unknown(_) => Self::Unknown(not_done.to_string()),
        }
    }
}
