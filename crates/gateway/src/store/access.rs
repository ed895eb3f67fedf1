//! Requests to the cluster, and how a command that reads and writes is one step of a key's history.
//!
//! Such a command reads value and version, decides, and writes on the condition that the version is
//! still the same. Versions of a key only grow and none is given twice, so nothing happened to the
//! key in between: the command takes effect where its write does. If it decides to change nothing,
//! it takes effect where its read did. If the version is another one, nothing was written, and it
//! starts anew.
//!
//! What time it is, the cluster alone decides: a value whose time has come is there until its
//! partition's head has ended it, and then it is not. Times from now on are sent as such, and what
//! is said of times rests on what nodes say that it is.

use super::errors::{Answer, not_read, not_written};
use super::{Store, limits};
use crate::Reply;
use client::{CasReply, Expect, Expiry, New, NotDone, Outcome, PutOptions, Value};
use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;
use wire::Version;

/// What a command does to the key that it has read.
#[derive(Debug)]
pub(super) enum Change<'a> {
    /// Nothing.
    None,
    /// Writes it.
    Write(Cow<'a, [u8]>, Expiry),
    /// Leaves the value that is there, and changes when it goes away.
    Expire(Expiry),
    /// Deletes the value that is there.
    Delete,
}

/// What a command does when it has read a key, and its reply if nobody comes in between.
pub(super) type Step<'a> = (Change<'a>, Reply);

/// Tries before a command gives up. Commands that come through this gateway wait for each other, so
/// that this many failures are as many changes made through others, or by plain writes.
pub(super) const TRIES_MAX: u32 = 100;

/// Longest random pause before the second try: about the time of a request.
const PAUSE: Duration = Duration::from_micros(100);
/// How often that is doubled, to some 6 ms: longer than a crowd of clients needs to thin out.
const PAUSE_DOUBLED_MAX: u32 = 6;

pub(super) const CONTENDED: Reply = Reply::error(
    "ERR other clients changed this key again and again; nothing was changed, try again",
);

impl Store {
    /// Reads a key.
    pub(super) async fn get(&self, key: &[u8]) -> Answer<Option<Value>> {
        limits::key(key)?;
        if let Some(view) = &self.view {
            return view.get(&self.space, key).await;
        }
        self.space.get(key).await.into_result().map_err(not_read)
    }

    /// Writes a key, whatever is there.
    pub(super) async fn put(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Answer<()> {
        limits::entry(key, value.len())?;
        if let Some(view) = &self.view {
            return Box::pin(view.put(&self.space, key, value, expiry)).await;
        }
        let written = self.space.put(key, value, PutOptions { expiry }).await;
        written.into_result().map(drop).map_err(not_written)
    }

    /// Deletes a key; whether there was a value.
    pub(super) async fn remove(&self, key: &[u8]) -> Answer<bool> {
        limits::key(key)?;
        let Some(view) = &self.view else {
            let deleted = self.space.del(key).await.into_result().map_err(not_written)?;
            return Ok(deleted.existed);
        };
        let existed = view.get(&self.space, key).await?.is_some();
        if existed {
            view.write(key, None);
        }
        Ok(existed)
    }

    /// Writes a key if it does not exist; whether it did so.
    pub(super) async fn put_new(&self, key: &[u8], value: &[u8], expiry: Expiry) -> Answer<bool> {
        if self.view.is_some() && self.get(key).await?.is_some() {
            return Ok(false);
        }
        self.swap(key, None, Change::Write(value.into(), expiry)).await
    }

    /// Reads a key and does to it what `decide` makes of that, as one step of the key's history.
    pub(super) async fn update<'a>(
        &self,
        key: &[u8],
        decide: impl Fn(Option<&Value>) -> Answer<Step<'a>>,
    ) -> Answer {
        self.step(key, true, 0, decide).await
    }

    /// The same of a command that makes a value of so many bytes, or adds so many to it.
    pub(super) async fn update_with<'a>(
        &self,
        key: &[u8],
        more: usize,
        decide: impl Fn(Option<&Value>) -> Answer<Step<'a>>,
    ) -> Answer {
        self.step(key, true, more, decide).await
    }

    /// The same of a command that does not ask what the value is: a long one is not read, and has
    /// no bytes in what `decide` is given.
    pub(super) async fn update_unread<'a>(
        &self,
        key: &[u8],
        decide: impl Fn(Option<&Value>) -> Answer<Step<'a>>,
    ) -> Answer {
        self.step(key, false, 0, decide).await
    }

    async fn step<'a>(
        &self,
        key: &[u8],
        reads: bool,
        more: usize,
        decide: impl Fn(Option<&Value>) -> Answer<Step<'a>>,
    ) -> Answer {
        // A transaction has a turn of its own.
        let _turn = match self.view {
            Some(_) => None,
            None => Some(self.turns.take(key).await),
        };
        for tries in 0..TRIES_MAX {
            pause(tries).await;
            let looked = self.look(key).await?;
            let read = match &looked {
                Some(long) if long.is_long() && reads => {
                    limits::changed(key, usize::try_from(long.len()).unwrap_or(usize::MAX))?;
                    long.len()
                }
                Some(_) | None => 0,
            };
            let room = self.room.to_change(read.saturating_add(more as u64)).await;
            let found = match looked {
                Some(_) if read > 0 => self.get(key).await?,
                Some(short) => Some(short.at_once().await?),
                None => None,
            };
            let (change, reply) = decide(found.as_ref())?;
            let swapped = self.swap(key, found.as_ref(), change).await?;
            drop(room);
            if swapped {
                return Ok(reply);
            }
        }
        Err(CONTENDED)
    }

    /// Makes a change if what is there is what was found; whether it was. An error says whether it
    /// certainly was not made, or perhaps: nothing may be tried again after that.
    async fn swap(&self, key: &[u8], found: Option<&Value>, change: Change<'_>) -> Answer<bool> {
        let (new, expiry) = match &change {
            Change::None => return Ok(true),
            Change::Write(value, expiry) => (New::Value(value), *expiry),
            Change::Expire(expiry) => (New::Same, *expiry),
            Change::Delete => (New::Nothing, Expiry::Never),
        };
        if let New::Value(value) = new {
            limits::entry(key, value.len())?;
        }
        if let Some(view) = &self.view {
            let same = found.map_or(&[][..], |found| &found.value);
            match new {
                New::Value(value) => view.put(&self.space, key, value, expiry).await?,
                New::Same => view.put(&self.space, key, same, expiry).await?,
                New::Nothing => view.write(key, None),
            }
            return Ok(true);
        }
        let expect = Expect::Version(found.map_or(Version::NONE, |found| found.version));
        match self.space.cas(key, expect, new, PutOptions { expiry }).await {
            Outcome::Done(CasReply::Written { .. }) => Ok(true),
            Outcome::Done(CasReply::Mismatch { .. }) => Ok(false),
            Outcome::Refused(why) => Err(not_written(NotDone::Refused(why))),
            Outcome::Unknown(why) => Err(not_written(NotDone::Unknown(why))),
        }
    }
}

/// Waits before a try that is not the first, for a random time that others do not draw too.
pub(super) async fn pause(tries: u32) {
    if tries > 0 {
        let most = PAUSE * (1 << tries.min(PAUSE_DOUBLED_MAX));
        let draw = RandomState::new().build_hasher().finish() % 1024;
        tokio::time::sleep(most * u32::try_from(draw).unwrap_or_default() / 1024).await;
    }
}
