//! What can take effect together, and why other things do not.

use super::errors::not_written;
use super::limits;
use super::view::{Queued, Watched};
use crate::Reply;
use bytes::Bytes;
use client::{NotDone, Refusal, StartError};
use std::collections::BTreeSet;
use wire::BATCH_STEPS_MAX;

/// Why a transaction was not carried out, or is not known to be.
#[derive(Debug)]
pub(crate) enum Undone {
    /// Its keys cannot change together, or are too many, or their values too long: nothing was
    /// done.
    Apart(Reply),
    /// All else.
    Failed(Reply),
}

impl Undone {
    pub(crate) fn into_reply(self) -> Reply {
        match self {
            Self::Apart(reply) | Self::Failed(reply) => reply,
        }
    }
}

impl From<Reply> for Undone {
    fn from(reply: Reply) -> Self {
        Self::Failed(reply)
    }
}

/// Whether commands name more keys than can change together.
pub(crate) fn is_wide(commands: &[Queued]) -> bool {
    keys_of(commands, &Watched::new()).len() > BATCH_STEPS_MAX
}

/// The keys that commands name and that are watched, each once.
pub(super) fn keys_of(commands: &[Queued], watched: &Watched) -> Vec<Bytes> {
    let mut keys: BTreeSet<Bytes> = watched.keys().cloned().collect();
    for (command, args) in commands {
        let positions = command.spec().key_positions(args);
        keys.extend(positions.filter_map(|at| args.get(at).cloned()));
    }
    keys.into_iter().filter(|key| limits::key(key).is_ok()).collect()
}

/// Why a batch had no effect. Clients of Redis Cluster know the first word of one.
pub(super) fn refused(why: Refusal) -> Undone {
    Undone::Apart(match why {
        Refusal::NotTogether => Reply::error(
            "CROSSSLOT Keys in request don't lie in the same partition; give them the same \
             {hash tag}",
        ),
        Refusal::NotSent(StartError::BatchTooLarge { steps, len }) => {
            limits::too_large_together(steps, len)
        }
        why => return Undone::Failed(not_written(NotDone::Refused(why))),
    })
}
