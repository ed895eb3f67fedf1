//! What a transaction has read and written so far.

use super::errors::{Answer, not_read};
use super::limits;
use super::looked::Looked;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::asynchronous::Space;
use client::{Expiry, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use wire::{BATCH_STEPS_MAX, Version, expiry::TIME_MAX};

/// Keys that a client watches, with the version that each had then; 0 if it had no value.
pub type Watched = BTreeMap<Bytes, Version>;

/// A command that waits for its transaction, with its arguments.
pub type Queued = (Keyed, Vec<Bytes>);

/// A command of a transaction that was carried out.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its reply.
    pub reply: Reply,
    /// How long it took, without what all commands of the transaction waited for.
    pub took: Duration,
}

impl Ran {
    /// What is known without being carried out.
    pub(crate) fn at_once(reply: Reply) -> Self {
        Self { reply, took: Duration::ZERO }
    }

    pub(crate) async fn timed(run: impl Future<Output = Reply>) -> Self {
        let began = Instant::now();
        let reply = run.await;
        Self { reply, took: began.elapsed() }
    }
}

/// What the commands of a transaction have read and written so far.
#[derive(Debug, Default)]
pub(super) struct View(Mutex<Cells>);

#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) keys: BTreeMap<Bytes, Cell>,
    /// Why something could not be read. Nothing of the transaction is done then.
    pub(super) failed: Option<Reply>,
}

/// A key in a view.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// What the cluster has, if it was fetched.
    pub(super) found: Option<Option<Value>>,
    /// Whether a reply, or what is written, rests on that.
    pub(super) used: bool,
    /// What the transaction has written, if it has.
    pub(super) written: Option<Option<Value>>,
}

impl View {
    pub(super) fn cells(&self) -> MutexGuard<'_, Cells> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a key holds, after what was written so far.
    pub(super) async fn get(&self, space: &Space, key: &[u8]) -> Answer<Option<Value>> {
        if let Some(known) = self.cells().keys.get_mut(key).and_then(Cell::look) {
            return Ok(known);
        }
        let found = read(space, key).await;
        let mut cells = self.cells();
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                cells.failed.get_or_insert_with(|| error.clone());
                return Err(error);
            }
        };
        let cell = cells.keys.entry(Bytes::copy_from_slice(key)).or_default();
        (cell.found, cell.used) = (Some(found.clone()), true);
        Ok(found)
    }

    /// Notes what a key is to hold.
    pub(super) async fn put(
        &self,
        space: &Space,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
    ) -> Answer<()> {
        let expiry_ms = match expiry {
            Expiry::Never => 0,
            Expiry::AtMs(at) => at.clamp(1, TIME_MAX),
            // As the batch will say it: the cluster makes a time of it.
            Expiry::In(after) => client::span_of(after),
            Expiry::Keep => self.get(space, key).await?.map_or(0, |found| found.expiry_ms),
        };
        self.write(key, Some(Value { value: value.to_vec(), expiry_ms, ..Value::default() }));
        Ok(())
    }

    /// Notes what a key is to hold; `None` for nothing.
    pub(super) fn write(&self, key: &[u8], value: Option<Value>) {
        self.cells().keys.entry(Bytes::copy_from_slice(key)).or_default().written = Some(value);
    }

    /// Fetches keys at once that commands will probably read. What it does not get is read later.
    pub(super) async fn fetch(&self, space: &Space, keys: &[Bytes]) {
        let outcomes = space.mget(keys).await;
        let mut cells = self.cells();
        for (key, outcome) in keys.iter().zip(outcomes) {
            // Of one that goes some day it must be known what time it is.
            let whole = |found: &Option<Value>| {
                found.as_ref().is_none_or(|found| !found.big && found.expiry_ms == 0)
            };
            if let Some(found) = outcome.done().filter(whole) {
                cells.keys.entry(key.clone()).or_default().found = Some(found);
            }
        }
    }
}

/// What the cluster has under a key, if a transaction may hold that much.
async fn read(space: &Space, key: &[u8]) -> Answer<Option<Value>> {
    let Some(found) = space.download(key).await.into_result().map_err(not_read)? else {
        return Ok(None);
    };
    if found.is_long() {
        limits::changed(key, usize::try_from(found.len).unwrap_or(usize::MAX))?;
        return space.get(key).await.into_result().map_err(not_read);
    }
    Looked::Stored(found).at_once().await.map(Some)
}

impl Cells {
    /// Why what was read and written so far cannot become true, if that is certain: of too many
    /// keys. Of values, there is an end as well to what is kept.
    pub(super) fn excess(&self) -> Option<Reply> {
        let touched = || self.keys.iter().filter(|(_, cell)| cell.used || cell.written.is_some());
        let len = |value: &Option<Option<Value>>| {
            value.as_ref().and_then(Option::as_ref).map_or(0, |value| value.value.len())
        };
        let written: usize = touched().map(|(key, cell)| key.len() + len(&cell.written)).sum();
        let found: usize = self.keys.values().map(|cell| len(&cell.found)).sum();
        let (steps, bytes) = (touched().count(), written.max(found));
        if steps > BATCH_STEPS_MAX {
            return Some(limits::too_large_together(steps, bytes));
        }
        (bytes > limits::CHANGED_MAX).then(|| limits::too_much_held(bytes))
    }
}

impl Cell {
    /// What the key holds, if that is known; then something rests on it.
    pub(super) fn look(&mut self) -> Option<Option<Value>> {
        if let Some(written) = &self.written {
            return Some(written.clone());
        }
        let found = self.found.clone()?;
        self.used = true;
        Some(found)
    }

    pub(super) fn version(&self) -> Option<Version> {
        let found = self.found.as_ref()?;
        Some(found.as_ref().map_or(Version::NONE, |value| value.version))
    }

    /// Whether no batch is needed to say that the key was as it was read: nothing is written.
    pub(super) fn is_plain_read(&self) -> bool {
        self.used && self.written.is_none()
    }
}
