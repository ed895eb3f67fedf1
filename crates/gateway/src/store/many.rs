//! Commands that name any number of keys, which lie anywhere. Each key is read or written for
//! itself, all at the same time: such a command is not one step, and what it says of each key was
//! true at some moment while it ran.

use super::Store;
use super::errors::{Answer, arity, not_read, not_written};
use super::limits;
use super::ranges::length;
use super::strings::value_or_null;
use crate::Reply;
use crate::command::Keyed;
use crate::resp::Limits;
use bytes::Bytes;
use client::{Expiry, MANY_KEYS_MAX, NotDone, Outcome, PutOptions, Value};
use std::collections::{BTreeMap, BTreeSet};

// So no command has more keys than one request may.
const _: () = assert!(Limits::DEFAULT.args_max <= MANY_KEYS_MAX);

impl Store {
    /// MGET.
    pub(super) async fn values(&self, keys: &[Bytes]) -> Answer {
        let found = self.read_all(keys).await?;
        Ok(Reply::Array(found.iter().map(|it| value_or_null(it.as_ref())).collect()))
    }

    /// EXISTS and TOUCH: a key that is named twice counts twice.
    pub(super) async fn count(&self, keys: &[Bytes]) -> Answer {
        let found = self.read_all(keys).await?;
        Ok(length(found.iter().flatten().count()))
    }

    /// DEL and UNLINK.
    pub(super) async fn delete(&self, keys: &[Bytes]) -> Answer {
        keys.iter().try_for_each(|key| limits::key(key))?;
        let keys: Vec<&Bytes> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let done = all_done(self.space.mdel(&keys).await)?;
        Ok(length(done.iter().filter(|deleted| deleted.existed).count()))
    }

    /// MSET. Of a key that is named twice, the last value counts.
    pub(super) async fn set_all(&self, arguments: &[Bytes]) -> Answer {
        let pairs = pairs(Keyed::MSet, arguments)?;
        pairs.iter().try_for_each(|(key, value)| limits::entry(key, value.len()))?;
        let pairs: Vec<(Bytes, Bytes)> = pairs.into_iter().collect();
        all_done(self.space.mset(&pairs, PutOptions { expiry: Expiry::Never }).await)?;
        Ok(Reply::OK)
    }

    /// MSETNX, of one key.
    pub(super) async fn set_all_new(&self, arguments: &[Bytes]) -> Answer {
        let mut pairs = pairs(Keyed::MSetNx, arguments)?.into_iter();
        match (pairs.next(), pairs.next()) {
            (Some((key, value)), None) => self.set_new(&key, &value).await,
            _ => Err(Reply::error(
                "ERR MSETNX of more than one key would not be atomic here; use SET with NX for \
                 each key",
            )),
        }
    }

    /// The values of keys, in their order.
    async fn read_all(&self, keys: &[Bytes]) -> Answer<Vec<Option<Value>>> {
        keys.iter().try_for_each(|key| limits::key(key))?;
        let outcomes = self.space.mget(keys).await.into_iter();
        outcomes.map(|outcome| outcome.into_result().map_err(not_read)).collect()
    }
}

/// What writes did, or if some did not, how many.
fn all_done<T>(outcomes: Vec<Outcome<T>>) -> Answer<Vec<T>> {
    let mut done = Vec::new();
    let mut failed: Option<(usize, NotDone)> = None;
    for outcome in outcomes {
        match outcome.into_result() {
            Ok(it) => done.push(it),
            // A write that may have happened says more than one that certainly has not.
            Err(why @ NotDone::Unknown(_)) => failed = Some((count(failed) + 1, why)),
            Err(why) => failed = Some((count(failed) + 1, failed.map_or(why, |(_, first)| first))),
        }
    }
    match failed {
        None => Ok(done),
        Some((1, why)) if done.is_empty() => Err(not_written(why)),
        Some((failed, why)) => {
            let all = failed + done.len();
            let text = format!("ERR {failed} of {all} writes are not known to be done: {why}");
            Err(Reply::Error(text.into()))
        }
    }
}

/// Keys with their values: for each key the last.
fn pairs(command: Keyed, arguments: &[Bytes]) -> Answer<BTreeMap<Bytes, Bytes>> {
    let (pairs, rest) = arguments.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return Err(arity(command));
    }
    Ok(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
}

fn count(failed: Option<(usize, NotDone)>) -> usize {
    failed.map_or(0, |(count, _)| count)
}
