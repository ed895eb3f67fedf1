//! Commands that take effect together: those of a transaction, and single ones that are about
//! several keys at once.
//!
//! They are carried out on a *view*: what they read is fetched once, and what they write is only
//! noted. Then one batch checks that everything that was read is still as it was, and writes all of
//! it at one instant, or nothing. If anything has changed in between, all is done again.

use super::Store;
use super::access::{CONTENDED, TRIES_MAX, pause};
use super::errors::{Answer, not_written};
use super::together::{Undone, keys_of, refused};
use super::view::{Cell, Queued, Ran, View, Watched};
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{BatchReply, Change, Condition, Expiry, NotDone, Outcome, Step, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use wire::Version;
use wire::expiry::{TIME_MAX, is_span};

/// How long others wait who change the first key of a transaction, or one that shares its turns: a
/// script may run for seconds.
const TURN_TIME_MAX: Duration = Duration::from_millis(20);

impl Store {
    /// The versions that keys have now, for WATCH.
    ///
    /// # Errors
    ///
    /// The reply, if they cannot be read.
    pub async fn watch(&self, keys: &[Bytes]) -> Result<Watched, Reply> {
        let found = self.read_all(keys).await?;
        let versions =
            found.iter().map(|it| it.as_ref().map_or(Version::NONE, |value| value.version));
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
        self.together(commands, watched).await.map_err(Undone::into_reply)
    }

    /// The same, which tells whether it was refused because of what the commands are about.
    pub(crate) async fn together(
        &self,
        commands: &[Queued],
        watched: &Watched,
    ) -> Result<Option<Vec<Ran>>, Undone> {
        let keys = keys_of(commands, watched);
        let mut turn = match keys.first() {
            Some(key) => Some(self.turns.take(key).await),
            None => None,
        };
        for tries in 0..TRIES_MAX {
            pause(tries).await;
            let view = Arc::new(View::default());
            view.fetch(&self.space, &keys).await;
            let within = Self { view: Some(Arc::clone(&view)), ..self.clone() };
            let mut run = Box::pin(within.run_all(commands));
            let ran = match timeout(TURN_TIME_MAX, &mut run).await {
                Ok(ran) => ran,
                Err(_) => {
                    drop(turn.take());
                    run.await
                }
            };
            if let Some(error) = view.cells().failed.take() {
                return Err(error.into());
            }
            match self.settle(&view, watched).await? {
                Settled::Done => return Ok(Some(ran)),
                Settled::Broken => return Ok(None),
                Settled::Changed => {}
            }
        }
        Err(CONTENDED.into())
    }

    /// Carries commands out, one after the other.
    async fn run_all(&self, commands: &[Queued]) -> Vec<Ran> {
        let mut ran = Vec::new();
        for (command, args) in commands {
            ran.push(Ran::timed(self.run(*command, args)).await);
        }
        ran
    }

    /// One command about several keys, or a script.
    pub(super) async fn atomically(&self, command: Keyed, args: &[Bytes]) -> Answer {
        let commands = [(command, args.to_vec())];
        let ran = Box::pin(self.transact(&commands, &Watched::new())).await?;
        ran.and_then(|mut ran| ran.pop()).map(|it| it.reply).ok_or(CONTENDED)
    }

    /// Checks what a view rests on and makes its writes, with one batch.
    async fn settle(&self, view: &View, watched: &Watched) -> Result<Settled, Undone> {
        let cells = std::mem::take(&mut view.cells().keys);
        let is_broken = |(key, version): (&Bytes, &Version)| {
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
            Outcome::Unknown(why) => return Err(not_written(NotDone::Unknown(why)).into()),
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

/// What a batch does with a key.
fn step<'a>(key: &'a Bytes, cell: &'a Cell, watched: Option<Version>) -> Step<'a> {
    let expected = watched.or_else(|| cell.version().filter(|_| cell.used));
    let condition = match expected {
        None => Condition::Any,
        Some(Version::NONE) => Condition::Absent,
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

const NO_SUCH_KEY: Reply = Reply::error("ERR no such key");
