//! Commands that take effect together: those of a transaction, and single ones that are about
//! several keys at once.
//!
//! They are carried out on a *view*: what they read is fetched once, and what they write is only
//! noted. Then one batch checks that everything that was read is still as it was, and writes all of
//! it at one instant, or nothing. If anything has changed in between, all is done again.

use super::Store;
use super::access::{CONTENDED, TRIES_MAX, pause};
use super::big::Looked;
use super::errors::{Answer, not_read, not_written};
use super::limits;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::asynchronous::Space;
use client::{
    BatchReply, Change, Condition, Expiry, NotDone, Outcome, Refusal, StartError, Step, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use wire::expiry::{TIME_MAX, is_span};
use wire::{BATCH_BYTES_MAX, BATCH_STEPS_MAX};

/// Keys that a client watches, with the version that each had then; 0 if it had no value.
pub type Watched = BTreeMap<Bytes, u64>;

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
struct Cells {
    keys: BTreeMap<Bytes, Cell>,
    /// Why something could not be read. Nothing of the transaction is done then.
    failed: Option<Reply>,
}

/// A key in a view.
#[derive(Debug, Default)]
struct Cell {
    /// What the cluster has, if it was fetched.
    found: Option<Option<Value>>,
    /// Whether a reply, or what is written, rests on that.
    used: bool,
    /// What the transaction has written, if it has.
    written: Option<Option<Value>>,
}

impl View {
    fn cells(&self) -> MutexGuard<'_, Cells> {
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
    async fn fetch(&self, space: &Space, keys: &[Bytes]) {
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

impl Cell {
    /// What the key holds, if that is known; then something rests on it.
    fn look(&mut self) -> Option<Option<Value>> {
        if let Some(written) = &self.written {
            return Some(written.clone());
        }
        let found = self.found.clone()?;
        self.used = true;
        Some(found)
    }

    fn version(&self) -> Option<u64> {
        let found = self.found.as_ref()?;
        Some(found.as_ref().map_or(0, |value| value.version))
    }

    /// Whether no batch is needed to say that the key was as it was read: nothing is written.
    fn is_plain_read(&self) -> bool {
        self.used && self.written.is_none()
    }
}

impl Store {
    /// The versions that keys have now, for WATCH.
    ///
    /// # Errors
    ///
    /// The reply, if they cannot be read.
    pub async fn watch(&self, keys: &[Bytes]) -> Result<Watched, Reply> {
        let found = self.read_all(keys).await?;
        let versions = found.iter().map(|it| it.as_ref().map_or(0, |value| value.version));
        Ok(keys.iter().cloned().zip(versions).collect())
    }

    /// Carries out the commands of a transaction: all at one instant, at which the watched keys
    /// are still as they were. What they did, in their order; `None` if a watched key
    /// is not as it was, and nothing was done.
    ///
    /// # Errors
    ///
    /// The reply, if nothing was done for another reason, or nobody knows.
    pub async fn transact(
        &self,
        commands: &[Queued],
        watched: &Watched,
    ) -> Result<Option<Vec<Ran>>, Reply> {
        let keys = keys_of(commands, watched);
        let _turn = match keys.first() {
            Some(key) => Some(self.turns.take(key).await),
            None => None,
        };
        for tries in 0..TRIES_MAX {
            pause(tries).await;
            let view = Arc::new(View::default());
            view.fetch(&self.space, &keys).await;
            let within = Self { view: Some(Arc::clone(&view)), ..self.clone() };
            let mut ran = Vec::new();
            for (command, args) in commands {
                ran.push(Ran::timed(within.run(*command, args)).await);
            }
            if let Some(error) = view.cells().failed.take() {
                return Err(error);
            }
            match self.settle(&view, watched).await? {
                Settled::Done => return Ok(Some(ran)),
                Settled::Broken => return Ok(None),
                Settled::Changed => {}
            }
        }
        Err(CONTENDED)
    }

    /// One command about several keys.
    pub(super) async fn atomically(&self, command: Keyed, args: &[Bytes]) -> Answer {
        let commands = [(command, args.to_vec())];
        let ran = Box::pin(self.transact(&commands, &Watched::new())).await?;
        ran.and_then(|mut ran| ran.pop()).map(|it| it.reply).ok_or(CONTENDED)
    }

    /// Checks what a view rests on and makes its writes, with one batch.
    async fn settle(&self, view: &View, watched: &Watched) -> Answer<Settled> {
        let cells = std::mem::take(&mut view.cells().keys);
        let is_broken = |(key, version): (&Bytes, &u64)| {
            cells.get(key).and_then(Cell::version).is_some_and(|found| found != *version)
        };
        if watched.iter().any(is_broken) {
            return Ok(Settled::Broken);
        }
        let none = Cell::default();
        let keys: BTreeSet<&Bytes> = cells.keys().chain(watched.keys()).collect();
        let of_key = |key: &Bytes| cells.get(key).unwrap_or(&none);
        let all = keys.into_iter().map(|key| step(key, of_key(key), watched.get(key).copied()));
        let steps: Vec<Step<'_>> = all.filter(does_something).collect();
        match &steps[..] {
            [] => return Ok(Settled::Done),
            [only] if cells.get(only.key).is_some_and(Cell::is_plain_read) => {
                return Ok(Settled::Done);
            }
            _ => {}
        }
        let failed = match self.space.batch(&steps).await {
            Outcome::Done(BatchReply::Applied { .. }) => return Ok(Settled::Done),
            Outcome::Done(BatchReply::Failed { step }) => steps.get(step),
            Outcome::Refused(why) => return Err(refused(why)),
            Outcome::Unknown(why) => return Err(not_written(NotDone::Unknown(why))),
        };
        let was_watched = failed.is_some_and(|step| watched.contains_key(step.key));
        Ok(if was_watched { Settled::Broken } else { Settled::Changed })
    }

    /// RENAME and RENAMENX; within a transaction, if only one of itself.
    pub(super) async fn rename(&self, command: Keyed, from: &[u8], to: &[u8]) -> Answer {
        let found = self.get(from).await?.ok_or(NO_SUCH_KEY)?;
        let spares = command == Keyed::RenameNx;
        let stays = from == to || spares && self.get(to).await?.is_some();
        if !stays {
            self.put(to, &found.value, expiry_of(&found)).await?;
            self.remove(from).await?;
        }
        Ok(if spares { Reply::Integer((!stays).into()) } else { Reply::OK })
    }

    /// COPY; within a transaction, if only one of itself.
    pub(super) async fn copy(&self, from: &[u8], to: &[u8], replaces: bool) -> Answer {
        let Some(found) = self.get(from).await? else { return Ok(Reply::Integer(0)) };
        if !replaces && self.get(to).await?.is_some() {
            return Ok(Reply::Integer(0));
        }
        self.put(to, &found.value, expiry_of(&found)).await?;
        Ok(Reply::Integer(1))
    }
}

/// How an attempt to make a view true has ended.
enum Settled {
    Done,
    /// A watched key is not as it was.
    Broken,
    /// Something else is not as it was read.
    Changed,
}

/// The keys that commands name and that are watched, each once.
fn keys_of(commands: &[Queued], watched: &Watched) -> Vec<Bytes> {
    let mut keys: BTreeSet<Bytes> = watched.keys().cloned().collect();
    for (command, args) in commands {
        let positions = command.spec().key_positions(args.len());
        keys.extend(positions.filter_map(|at| args.get(at).cloned()));
    }
    keys.into_iter().filter(|key| limits::key(key).is_ok()).collect()
}

/// What a batch does with a key.
fn step<'a>(key: &'a Bytes, cell: &'a Cell, watched: Option<u64>) -> Step<'a> {
    let expected = watched.or_else(|| cell.version().filter(|_| cell.used));
    let condition = match expected {
        None => Condition::Any,
        Some(0) => Condition::Absent,
        Some(version) => Condition::Version(version),
    };
    let change = match &cell.written {
        None => Change::None,
        Some(None) => Change::Delete,
        Some(Some(Value { value, expiry_ms, .. })) => Change::Put { value, expiry_ms: *expiry_ms },
    };
    Step { key, condition, change }
}

fn does_something(step: &Step<'_>) -> bool {
    step.condition != Condition::Any || step.change != Change::None
}

fn expiry_of(value: &Value) -> Expiry {
    match value.expiry_ms {
        0 => Expiry::Never,
        span if is_span(span) => Expiry::In(Duration::from_millis(span & TIME_MAX)),
        at_ms => Expiry::AtMs(at_ms),
    }
}

/// Why a batch had no effect. Clients of Redis Cluster know the first word of one.
fn refused(why: Refusal) -> Reply {
    match why {
        Refusal::NotTogether => Reply::error(
            "CROSSSLOT Keys in request don't lie in the same partition; give them the same \
             {hash tag}",
        ),
        Refusal::NotSent(StartError::BatchTooLarge { steps, len }) => Reply::Error(
            format!(
                "ERR this would take {steps} keys and {len} bytes at once; at most \
                 {BATCH_STEPS_MAX} keys and {BATCH_BYTES_MAX} bytes (22 for each key, keys, and \
                 values written) take effect together"
            )
            .into(),
        ),
        Refusal::NotSent(StartError::EntryTooLarge { .. }) => limits::too_long_together(),
        why => not_written(NotDone::Refused(why)),
    }
}

const NO_SUCH_KEY: Reply = Reply::error("ERR no such key");
