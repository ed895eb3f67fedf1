//! Commands that name any number of keys, which lie anywhere. Each key is read or written for
//! itself, all at the same time: such a command is not one step, and what it says of each key was
//! true at some moment while it ran. In a transaction, it is one with that; and MSETNX always is.

use super::Store;
use super::errors::{Answer, FULL, arity, not_read, not_written};
use super::limits;
use super::ranges::length;
use super::terms::{Sights, sight};
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expiry, MANY_KEYS_MAX, NotDone, Outcome, PutOptions, Refusal, Value};
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::yield_now;

/// Keys of a command that are worked on at once. A command may name a million; this many take a
/// worker some milliseconds, after which its other connections have their turn, and are enough to
/// keep a cluster busy.
const SLICE_KEYS_MAX: usize = 4096;

const _: () = assert!(SLICE_KEYS_MAX <= MANY_KEYS_MAX);

impl Store {
    /// MGET.
    pub(super) async fn values(&self, keys: &[Bytes]) -> Answer {
        self.find_all(keys).await.map(|(reply, _)| reply)
    }

    /// MGET, and what its reply tells of each key.
    pub(crate) async fn values_and_sights(&self, keys: &[Bytes]) -> (Reply, Sights) {
        self.find_all(keys).await.unwrap_or_else(|error| (error, Sights::new()))
    }

    async fn find_all(&self, keys: &[Bytes]) -> Answer<(Reply, Sights)> {
        let (mut replies, mut bytes) = (Vec::with_capacity(keys.len()), 0);
        let mut sights = Sights::new();
        let mut gathering = self.room.gather();
        gathering.grow(size_of_val(replies.spare_capacity_mut()))?;
        for keys in keys.chunks(SLICE_KEYS_MAX) {
            let found = self.read_all(keys).await?;
            for (key, found) in keys.iter().zip(found) {
                let found = match found {
                    Some(long) if long.big => self.get(key).await?,
                    short => short,
                };
                // Of short values the client has its own limit.
                let len = found.as_ref().map_or(0, |found| found.value.len());
                bytes += len;
                gathering.grow(len)?;
                if bytes > limits::MANY_MAX {
                    return Err(limits::too_many_bytes());
                }
                sights.push(sight(found.as_ref()));
                replies.push(found.map_or(Reply::Null, |found| Reply::Bulk(found.value.into())));
            }
            yield_now().await;
        }
        Ok((Reply::Array(replies), sights))
    }

    /// EXISTS and TOUCH: a key that is named twice counts twice.
    pub(super) async fn count(&self, keys: &[Bytes]) -> Answer {
        let mut count = 0;
        for keys in keys.chunks(SLICE_KEYS_MAX) {
            count += self.read_all(keys).await?.iter().flatten().count();
            yield_now().await;
        }
        Ok(length(count))
    }

    /// DEL and UNLINK.
    pub(super) async fn delete(&self, keys: &[Bytes]) -> Answer {
        let mut unique = BTreeSet::new();
        for keys in keys.chunks(SLICE_KEYS_MAX) {
            keys.iter().try_for_each(|key| limits::key(key))?;
            unique.extend(keys);
            yield_now().await;
        }
        if self.view.is_some() {
            let mut existed = 0;
            for key in unique {
                existed += usize::from(self.remove(key).await?);
            }
            return Ok(length(existed));
        }
        let (all, mut existed) = (unique.len(), 0);
        let mut tally = WriteTally::new(all);
        while !unique.is_empty() {
            let slice: Vec<&Bytes> = slice_of(|| unique.pop_first());
            let done = tally.take(self.space.mdel(&slice).await)?;
            existed += done.iter().filter(|deleted| deleted.existed).count();
            yield_now().await;
        }
        Ok(length(existed))
    }

    /// MSET. Of a key that is named twice, the last value counts.
    pub(super) async fn set_all(&self, arguments: &[Bytes]) -> Answer {
        let mut pairs = pairs(Keyed::MSet, arguments).await?;
        if self.view.is_some() {
            return self.put_all(&pairs).await.map(|()| Reply::OK);
        }
        let short = |key: &[u8], value: &[u8]| key.len() + value.len() <= wire::ENTRY_MAX;
        let mut tally = WriteTally::new(pairs.len());
        while !pairs.is_empty() {
            let slice: Vec<(Bytes, Bytes)> = slice_of(|| pairs.pop_first());
            let (slice, long): (Vec<_>, Vec<_>) =
                slice.into_iter().partition(|(key, value)| short(key, value));
            for (key, value) in long {
                self.put(&key, &value, Expiry::Never).await?;
                tally.done += 1;
            }
            let options = PutOptions { expiry: Expiry::Never };
            tally.take(self.space.mset(&slice, options).await)?;
            yield_now().await;
        }
        Ok(Reply::OK)
    }

    /// MSETNX: all keys at one instant, if there is none of them.
    pub(super) async fn set_all_new(&self, args: &[Bytes]) -> Answer {
        let pairs = pairs(Keyed::MSetNx, args.get(1..).unwrap_or_default()).await?;
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

/// What an MGET replies that has found this.
pub(super) fn in_array(found: Vec<Option<Value>>) -> Reply {
    let shown = |found: Value| Reply::Bulk(found.value.into());
    Reply::Array(found.into_iter().map(|found| found.map_or(Reply::Null, shown)).collect())
}

/// What the writes of a command did so far.
pub(super) struct WriteTally {
    all: usize,
    done: usize,
}

impl WriteTally {
    /// Of a command with so many writes.
    pub(super) fn new(all: usize) -> Self {
        Self { all, done: 0 }
    }

    /// Takes what some of them did. If one did not, the error says of how many nobody knows that
    /// they are done, and no more are to be tried.
    pub(super) fn take<T>(&mut self, outcomes: Vec<Outcome<T>>) -> Answer<Vec<T>> {
        let mut done = Vec::new();
        let mut failed: Option<NotDone> = None;
        for outcome in outcomes {
            match outcome.into_result() {
                Ok(it) => done.push(it),
                // A write that may have happened says more than one that certainly has not.
                Err(why @ NotDone::Unknown(_)) => failed = Some(why),
                Err(why) => failed = Some(failed.unwrap_or(why)),
            }
        }
        self.done += done.len();
        match failed {
            None => Ok(done),
            Some(why) if self.all == 1 => Err(not_written(why)),
            Some(why) => {
                let (all, failed) = (self.all, self.all - self.done);
                if let (NotDone::Refused(Refusal::Full), Some(text)) = (why, FULL.error_text()) {
                    let text = format!("{text} {failed} of {all} keys are not known to be written");
                    return Err(Reply::Error(text.into()));
                }
                let text = format!("ERR {failed} of {all} writes are not known to be done: {why}");
                Err(Reply::Error(text.into()))
            }
        }
    }
}

/// As many as are worked on at once.
fn slice_of<T>(next: impl FnMut() -> Option<T>) -> Vec<T> {
    std::iter::from_fn(next).take(SLICE_KEYS_MAX).collect()
}

/// Keys with their values: for each key the last.
async fn pairs(command: Keyed, arguments: &[Bytes]) -> Answer<BTreeMap<Bytes, Bytes>> {
    let (pairs, rest) = arguments.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return Err(arity(command));
    }
    let mut last = BTreeMap::new();
    for slice in pairs.chunks(SLICE_KEYS_MAX) {
        slice.iter().try_for_each(|[key, value]| limits::entry(key, value.len()))?;
        last.extend(slice.iter().map(|[key, value]| (key.clone(), value.clone())));
        yield_now().await;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_command_of_many_keys_lets_others_have_their_turn() {
        let words = (0..100_000).flat_map(|key: u32| [key.to_string().into(), Bytes::new()]);
        let words: Vec<Bytes> = words.collect();
        let mut read = pin!(pairs(Keyed::MSet, &words));
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = 1;
        let last = loop {
            match read.as_mut().poll(&mut context) {
                Poll::Ready(last) => break last.unwrap(),
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!((last.len(), turns), (100_000, 1 + 100_000_usize.div_ceil(SLICE_KEYS_MAX)));
    }

    #[test]
    fn writes_that_are_not_done_are_counted_with_those_that_were_not_tried() {
        let done = |count| std::iter::repeat_n(Outcome::Done(()), count);
        let mut tally = WriteTally::new(10);
        assert!(tally.take(done(4).collect()).is_ok());
        let some = done(2).chain([Outcome::Refused(client::Refusal::TooLarge)]).collect();
        let Err(Reply::Error(text)) = tally.take(some) else { panic!("all done") };
        assert!(text.starts_with("ERR 4 of 10 writes are not known to be done: "), "{text}");
    }
}
