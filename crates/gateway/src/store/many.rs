//! Commands that name any number of keys, which lie anywhere. Each key is read or written for
//! itself, all at the same time: such a command is not one step, and what it says of each key was
//! true at some moment while it ran. In a transaction, it is one with that; and MSETNX always is.

use super::Store;
use super::errors::{Answer, arity, not_read, not_written};
use super::limits;
use super::ranges::length;
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
        let (mut replies, mut bytes) = (Vec::with_capacity(found.len()), 0);
        for (key, found) in keys.iter().zip(found) {
            let found = match found {
                Some(long) if long.big => self.get(key).await?,
                short => short,
            };
            // Of short values the client has its own limit.
            bytes += found.as_ref().map_or(0, |found| found.value.len());
            if bytes > limits::MANY_MAX {
                return Err(limits::too_many_bytes());
            }
            replies.push(found.map_or(Reply::Null, |found| Reply::Bulk(found.value.into())));
        }
        Ok(Reply::Array(replies))
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
        if self.view.is_some() {
            let mut existed = 0;
            for key in keys {
                existed += usize::from(self.remove(key).await?);
            }
            return Ok(length(existed));
        }
        let done = all_done(self.space.mdel(&keys).await)?;
        Ok(length(done.iter().filter(|deleted| deleted.existed).count()))
    }

    /// MSET. Of a key that is named twice, the last value counts.
    pub(super) async fn set_all(&self, arguments: &[Bytes]) -> Answer {
        let pairs = pairs(Keyed::MSet, arguments)?;
        pairs.iter().try_for_each(|(key, value)| limits::entry(key, value.len()))?;
        if self.view.is_some() {
            return self.put_all(&pairs).await.map(|()| Reply::OK);
        }
        let short = |key: &[u8], value: &[u8]| key.len() + value.len() <= wire::ENTRY_MAX;
        let (pairs, long): (Vec<(Bytes, Bytes)>, Vec<_>) =
            pairs.into_iter().partition(|(key, value)| short(key, value));
        for (key, value) in long {
            self.put(&key, &value, Expiry::Never).await?;
        }
        all_done(self.space.mset(&pairs, PutOptions { expiry: Expiry::Never }).await)?;
        Ok(Reply::OK)
    }

    /// MSETNX: all keys at one instant, if there is none of them.
    pub(super) async fn set_all_new(&self, args: &[Bytes]) -> Answer {
        let pairs = pairs(Keyed::MSetNx, args.get(1..).unwrap_or_default())?;
        pairs.iter().try_for_each(|(key, value)| limits::entry(key, value.len()))?;
        if let (1, Some((key, value))) = (pairs.len(), pairs.first_key_value()) {
            return self.set_new(key, value).await;
        }
        if self.view.is_none() {
            return self.atomically(Keyed::MSetNx, args).await;
        }
        for key in pairs.keys() {
            if self.get(key).await?.is_some() {
                return Ok(Reply::Integer(0));
            }
        }
        self.put_all(&pairs).await.map(|()| Reply::Integer(1))
    }

    /// Writes keys one after the other, in a transaction.
    async fn put_all(&self, pairs: &BTreeMap<Bytes, Bytes>) -> Answer<()> {
        for (key, value) in pairs {
            self.put(key, value, Expiry::Never).await?;
        }
        Ok(())
    }

    /// The values of keys, in their order.
    pub(super) async fn read_all(&self, keys: &[Bytes]) -> Answer<Vec<Option<Value>>> {
        keys.iter().try_for_each(|key| limits::key(key))?;
        if self.view.is_some() {
            let mut found = Vec::new();
            for key in keys {
                found.push(self.get(key).await?);
            }
            return Ok(found);
        }
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
