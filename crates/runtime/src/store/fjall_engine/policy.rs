//! When a commit is safe from what.

use fjall::PersistMode;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long a commit may wait for the disk with [`SyncPolicy::Interval`]: long enough for hundreds
/// of commits to share an fsync, short enough to be a small loss.
pub const PERSIST_INTERVAL: Duration = Duration::from_millis(100);

/// What a commit is safe from when it is acknowledged. All of them survive the death of the
/// process; what differs is the death of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPolicy {
    /// Each sync waits for the disk: nothing acknowledged is lost to a power cut.
    #[default]
    Always,
    /// The disk is asked every [`PERSIST_INTERVAL`]: a power cut of all copies loses that much.
    Interval,
    /// The operating system writes when it sees fit: a power cut of all copies loses some seconds.
    Never,
}

impl SyncPolicy {
    /// How much a commit does by itself. Data without the file's times is all that recovery needs;
    /// fjall syncs directories itself when it makes new files.
    pub(super) const fn commit_mode(self) -> PersistMode {
        match self {
            Self::Always => PersistMode::SyncData,
            Self::Interval | Self::Never => PersistMode::Buffer,
        }
    }
}

impl fmt::Display for SyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "always",
            Self::Interval => "interval",
            Self::Never => "never",
        })
    }
}

impl FromStr for SyncPolicy {
    type Err = UnknownSyncPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownSyncPolicy> {
        [Self::Always, Self::Interval, Self::Never]
            .into_iter()
            .find(|policy| policy.to_string() == text)
            .ok_or_else(|| UnknownSyncPolicy(text.to_string()))
    }
}

/// A text that names no [`SyncPolicy`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no sync policy; there are always, interval and never")]
pub struct UnknownSyncPolicy(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_as_it_is_written() {
        for policy in [SyncPolicy::Always, SyncPolicy::Interval, SyncPolicy::Never] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
            let json = serde_json::to_string(&policy).unwrap();
            assert_eq!(json, format!("\"{policy}\""));
            assert_eq!(serde_json::from_str::<SyncPolicy>(&json).unwrap(), policy);
        }
        let error = "sometimes".parse::<SyncPolicy>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"sometimes\" is no sync policy; there are always, interval and never"
        );
    }
}
