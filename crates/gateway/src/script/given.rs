//! What a script is run with, and what comes of it.

use super::source::Source;
use crate::Reply;
use bytes::Bytes;
use std::sync::Arc;

/// Carries out a command that a script has called: what it replies, errors among that; or why
/// nothing of the script can go on.
pub(crate) type Commands = Box<dyn FnMut(&[Bytes]) -> Result<Reply, Reply> + Send>;

/// What a script is run with.
pub(crate) struct Given {
    /// Its text.
    pub(crate) source: Arc<Source>,
    /// What it finds in KEYS.
    pub(crate) keys: Vec<Bytes>,
    /// What it finds in ARGV.
    pub(crate) args: Vec<Bytes>,
    /// What carries its commands out.
    pub(crate) commands: Commands,
}

/// How a script has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// By itself, with an error perhaps; what its commands did takes effect.
    Done(Reply),
    /// Somebody has ended it, and nothing of it takes effect.
    Over(Reply),
}
