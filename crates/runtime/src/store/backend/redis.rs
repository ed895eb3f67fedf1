//! Redis, or Valkey, as a backend.
//!
//! What makes values records is kept beside them, in three hashes for each shard:
//!
//! ```text
//! keyway:#0:about      whose it is, its identity, names of keyspaces
//! keyway:#0:records    of each key its version and expiry
//! keyway:#0:notes      sessions, pending writes, replica records
//! ```
//!
//! A sync is one transaction (MULTI .. EXEC): all of it is there, or nothing. Each carries a
//! number, by which a connection that was made anew sees whether Redis still has what it
//! acknowledged.
//!
//! Of two processes for one shard the later one wins: it writes down that it is the owner, and cuts
//! the other's connection; who connects anew and is not the owner has failed.

mod full;
mod open;

use super::names::OWN;
use super::{Backend, Changes, FoundValue, ListedValue, Trouble, WantedValue};
use crate::clock::Clock;
use crate::store::ShardIdentity;
use cluster::ClockAhead;
use full::{Failed, Stock, overrun, transact};
use machine::UnixMs;
use redis::{Client, Connection, RedisError, RedisResult, Value, cmd, from_redis_value};
use std::time::Duration;
use wire::Room;

/// The values of a shard in Redis, and all that is kept about them.
pub struct RedisBackend {
    client: Client,
    connection: Connection,
    shard: ShardIdentity,
    /// Who has this shard, as long as it is this process.
    owner: String,
    /// Syncs that Redis has acknowledged, in all lives.
    syncs: u64,
    clock: Clock,
    /// How far the cluster's clock is ahead of that.
    ahead: ClockAhead,
    stock: Stock,
}

/// What is in `about` besides names.
const FORMAT_FIELD: &str = "format";
const STORE: &str = "store";
const NODE: &str = "node";
const SHARDS: &str = "shards";
const OWNER: &str = "owner";
const RUN: &str = "run";
const SYNCS: &str = "syncs";

/// Of everything that is kept; raised when any of it changes.
const FORMAT: u32 = 2;

/// The oldest that is still read.
const FORMAT_MIN: u32 = 1;

/// How long to wait for a connection: the backend is beside its node, so more tries do better.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long to wait for an answer. A Redis that says nothing for so long is not waited for any
/// more: what it was sent it might carry out whenever it goes on.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// Names, or fields of a hash, that are read at once.
const SCANNED_AT_ONCE: usize = 1_000;

/// The names of what is kept about a shard.
struct Hashes {
    about: String,
    records: String,
    notes: String,
}

impl Hashes {
    fn of(shard: u16) -> Self {
        let name = |what| format!("{OWN}{shard}:{what}");
        Self { about: name("about"), records: name("records"), notes: name("notes") }
    }
}

/// What an error means. Those that Redis itself says leave the connection as it is.
fn trouble(error: RedisError) -> Trouble {
    let why = format!("redis: {error}");
    if error.is_timeout() {
        return Trouble::Lost(why);
    }
    let said = error.into_server_errors();
    let Some((_, first)) = said.as_ref().and_then(|said| said.first()) else {
        return Trouble::Gone(why);
    };
    let (code, details) = (first.code(), first.details().unwrap_or_default());
    let why = format!("redis: {code} {details}");
    match code {
        code if BUSY.contains(&code) => Trouble::Busy(why),
        code if BROKEN.contains(&code) => Trouble::Lost(why),
        _ => Trouble::Refuses(why),
    }
}

/// What Redis says while it serves nobody, and goes on to later by itself.
const BUSY: [&str; 5] = ["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"];

/// What it says of things that are not as they were left.
const BROKEN: [&str; 3] = ["WRONGTYPE", "MOVED", "ASK"];

/// A connection that others can tell is this shard's.
fn connect(client: &Client, shard: ShardIdentity) -> RedisResult<Connection> {
    let mut connection = client.get_connection_with_timeout(CONNECT_WAIT_MAX)?;
    connection.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    connection.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
    cmd("CLIENT").arg("SETNAME").arg(connection_name(shard)).exec(&mut connection)?;
    Ok(connection)
}

fn connection_name(shard: ShardIdentity) -> String {
    format!("keyway-{}-{}", shard.node, shard.shard)
}

/// Cuts all other connections of this shard, so that nothing that was sent on them is carried out
/// from now on.
fn cut_others(connection: &mut Connection, shard: ShardIdentity) -> RedisResult<()> {
    let mine: u64 = cmd("CLIENT").arg("ID").query(connection)?;
    let list: String = cmd("CLIENT").arg("LIST").query(connection)?;
    let name = format!("name={}", connection_name(shard));
    let ours = list.lines().filter(|line| line.split(' ').any(|field| field == name));
    let ids = ours.filter_map(|line| line.split(' ').find_map(|field| field.strip_prefix("id=")));
    for id in ids.filter(|id| *id != mine.to_string()) {
        // One that is gone by now is no loss.
        let _: i64 = cmd("CLIENT").arg("KILL").arg("ID").arg(id).query(connection)?;
    }
    Ok(())
}

impl RedisBackend {
    /// What time it is in the cluster.
    fn now(&mut self) -> UnixMs {
        self.ahead.time(self.clock.now())
    }

    fn hashes(&self) -> Hashes {
        Hashes::of(self.shard.shard)
    }

    /// Checks that this is still the Redis that acknowledged everything, and ours.
    fn check(&mut self) -> Result<(), Trouble> {
        let about = self.hashes().about;
        let fields = [OWNER, SYNCS];
        let (owner, syncs): (Option<String>, Option<u64>) =
            cmd("HMGET").arg(about).arg(&fields).query(&mut self.connection).map_err(trouble)?;
        match (owner, syncs) {
            (Some(owner), _) if owner != self.owner => {
                Err(Trouble::Lost("redis: another process has taken this shard over".to_owned()))
            }
            // The one on its way when the connection broke may have arrived.
            (Some(_), Some(syncs)) if syncs == self.syncs || syncs == self.syncs + 1 => Ok(()),
            _ => Err(Trouble::Lost(
                "redis: it has lost writes that it had acknowledged, in a restart".to_owned(),
            )),
        }
    }

    /// What a sync carries out, in this order. That which says how many there were is the first.
    fn steps<'a>(&self, names: &'a Hashes, syncs: &'a str, changes: &'a Changes) -> Vec<Step<'a>> {
        let Hashes { about, records, notes } = names;
        let known = changes.about.iter().flat_map(|(field, content)| [field, content]);
        let mut all = vec![SYNCS.as_bytes(), syncs.as_bytes()];
        all.extend(known.map(String::as_bytes));
        let mut steps = Vec::new();
        add(&mut steps, "HSET", Some(about), &all);
        let (set, gone) = split(&changes.values);
        add(&mut steps, "MSET", None, &set);
        add(&mut steps, "DEL", None, &gone);
        let marks = changes.records.iter().map(|(at, mark)| (at, mark.as_ref().map(|m| &m.0)));
        let (set, gone) = split_each(marks);
        add(&mut steps, "HSET", Some(records), &set);
        add(&mut steps, "HDEL", Some(records), &gone);
        let (set, gone) = split(&changes.notes);
        add(&mut steps, "HSET", Some(notes), &set);
        add(&mut steps, "HDEL", Some(notes), &gone);
        steps
    }
}

fn unreadable(why: impl std::fmt::Display) -> Trouble {
    Trouble::Lost(format!("redis: {why}"))
}

/// When a value expires that has so many milliseconds left at `now`, 0 for never; `None` if it is
/// gone.
fn expiry_ms(now: UnixMs, left_ms: i64) -> Option<u64> {
    match u64::try_from(left_ms) {
        Ok(left_ms) => Some((now + Duration::from_millis(left_ms)).0),
        Err(_) => (left_ms == FOR_EVER).then_some(0),
    }
}

/// What PTTL says of a value that does not expire.
const FOR_EVER: i64 = -1;

/// What is to be set, names and contents in turn, and the names of what is to be removed.
fn split(changes: &std::collections::BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> Parts<'_> {
    split_each(changes.iter().map(|(name, content)| (name, content.as_ref())))
}

type Parts<'a> = (Vec<&'a [u8]>, Vec<&'a [u8]>);

fn split_each<'a, C: AsRef<[u8]> + 'a + ?Sized>(
    changes: impl Iterator<Item = (&'a Vec<u8>, Option<&'a C>)>,
) -> Parts<'a> {
    let (mut set, mut gone) = (Vec::new(), Vec::new());
    for (name, content) in changes {
        match content {
            Some(content) => set.extend([name.as_slice(), content.as_ref()]),
            None => gone.push(name.as_slice()),
        }
    }
    (set, gone)
}

/// A command of a sync, with the hash that it is about if it is about one.
type Step<'a> = (&'static str, Option<&'a str>, Vec<&'a [u8]>);

/// Arguments of one command, names and contents in turn: the stack of a script takes some thousand.
const ARGUMENTS_MAX: usize = 2_000;

/// Adds a command, or several; none if there is nothing to do.
fn add<'a>(
    steps: &mut Vec<Step<'a>>,
    name: &'static str,
    hash: Option<&'a String>,
    arguments: &[&'a [u8]],
) {
    let pieces = arguments.chunks(ARGUMENTS_MAX);
    steps.extend(pieces.map(|piece| (name, hash.map(String::as_str), piece.to_vec())));
}

impl Backend for RedisBackend {
    const KEEPS: bool = true;

    /// One MGET, and for what is to be asked after its expiry a PTTL each, in the same round trip.
    fn fetch(&mut self, wanted: &[WantedValue]) -> Result<Vec<FoundValue>, Trouble> {
        let mut pipe = redis::pipe();
        let names: Vec<&[u8]> = wanted.iter().map(|it| it.name.as_slice()).collect();
        pipe.cmd("MGET").arg(names);
        for it in wanted.iter().filter(|it| it.with_expiry) {
            pipe.cmd("PTTL").arg(&it.name);
        }
        let answers: Vec<Value> = pipe.query(&mut self.connection).map_err(trouble)?;
        let (mut answers, now) = (answers.into_iter(), self.now());
        let values = answers.next().unwrap_or(Value::Nil);
        let values: Vec<Option<Vec<u8>>> = from_redis_value(values).map_err(unreadable)?;
        if values.len() != wanted.len() {
            return Err(unreadable("it answered with another number of values"));
        }
        let mut found = Vec::new();
        for (it, value) in wanted.iter().zip(values) {
            let expiry_ms = if it.with_expiry {
                let left_ms = from_redis_value(answers.next().unwrap_or(Value::Nil));
                expiry_ms(now, left_ms.map_err(unreadable)?)
            } else {
                Some(0)
            };
            let there = expiry_ms.map(|expiry_ms| FoundValue { value, expiry_ms });
            found.push(there.unwrap_or_default());
        }
        Ok(found)
    }

    /// One EXISTS, which counts; unless all are there, one for each name in one more round trip.
    fn exist(&mut self, names: &[Vec<u8>]) -> Result<Vec<bool>, Trouble> {
        let all = cmd("EXISTS").arg(names).query::<usize>(&mut self.connection);
        let there = all.map_err(trouble)?;
        if there == names.len() || there == 0 {
            return Ok(vec![there != 0; names.len()]);
        }
        let mut pipe = redis::pipe();
        names.iter().for_each(|name| {
            pipe.cmd("EXISTS").arg(name);
        });
        pipe.query(&mut self.connection).map_err(trouble)
    }

    /// Strings only: nothing else is a value.
    fn list(&mut self, cursor: u64) -> Result<(u64, Vec<ListedValue>), Trouble> {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("COUNT").arg(SCANNED_AT_ONCE).arg("TYPE").arg("string");
        let (next, names): (u64, Vec<Vec<u8>>) =
            scan.query(&mut self.connection).map_err(trouble)?;
        if names.is_empty() {
            // A pipeline without commands is refused before it is sent.
            return Ok((next, Vec::new()));
        }
        let mut pipe = redis::pipe();
        names.iter().for_each(|name| {
            pipe.cmd("PTTL").arg(name);
        });
        let left_ms: Vec<i64> = pipe.query(&mut self.connection).map_err(trouble)?;
        let (all, now) = (names.into_iter().zip(left_ms), self.now());
        let dated = all.filter_map(|(name, left)| Some((name, expiry_ms(now, left)?)));
        Ok((next, dated.collect()))
    }

    fn apply(&mut self, changes: &Changes) -> Result<(), Trouble> {
        self.stock.check(&mut self.connection)?;
        let (names, syncs) = (self.hashes(), (self.syncs + 1).to_string());
        let steps = self.steps(&names, &syncs, changes);
        match transact(&mut self.connection, &steps) {
            Err(Failed::Full(why)) => {
                self.stock.is_full();
                overrun(&mut self.connection, &names.about, &steps, why)?;
            }
            Err(Failed::Otherwise(trouble)) => return Err(trouble),
            Ok(()) => {}
        }
        self.syncs += 1;
        Ok(())
    }

    fn room(&self) -> Room {
        self.stock.room()
    }

    fn look(&mut self) -> Result<(), Trouble> {
        self.stock.look(&mut self.connection)
    }

    fn set_clock(&mut self, ahead: ClockAhead) {
        self.ahead = ahead;
    }

    fn reconnect(&mut self) -> Result<(), Trouble> {
        self.connection = connect(&self.client, self.shard).map_err(trouble)?;
        self.check()?;
        cut_others(&mut self.connection, self.shard).map_err(trouble)?;
        // What was on its way may have been carried out just before its connection was cut.
        self.check()
    }
}
