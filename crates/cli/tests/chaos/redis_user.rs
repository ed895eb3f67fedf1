//! A user of a gateway: a Redis client that asks for one thing after the other, and writes down
//! what it saw.
//!
//! Replies of Redis carry no versions, without which a long history leaves the checker too many
//! choices. So all users go on to new keys every few hundred milliseconds.

use crate::appended::{Appended, Seen};
use crate::front::Phase;
use crate::run::CLOCK_OFF_MS;
use crate::watch::{Watch, pause};
use machine::{Instant, Rng};
use redis::{Connection, Value};
use sim::check::{History, Key, Op, OpKind};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wire::Version;

/// A bug that a gateway might have, acted by its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Values that were read before are served again for a while.
    CachedReads,
    /// An increment whose reply is lost is sent once more.
    BlindRetry,
}

/// Asks one thing at a time.
pub(crate) struct RedisUser {
    index: usize,
    rng: Rng,
    watch: Arc<Watch>,
    phase: Arc<Phase>,
    mutant: Option<Mutant>,
    /// The gateway of this host.
    at: SocketAddr,
    connection: Option<Connection>,
    began: Instant,
    written: i64,
    /// What it last saw of each key, and when.
    seen: BTreeMap<Key, (i64, Instant)>,
    pub(crate) history: History,
    pub(crate) appended: BTreeMap<String, Appended>,
    pub(crate) done: usize,
    pub(crate) unknown: usize,
    /// What had to be answered and was not.
    pub(crate) failures: Vec<String>,
}

/// How it ended.
enum Outcome {
    Done(Value),
    /// It certainly changed nothing.
    NotDone,
    Unknown,
}

/// For how long users ask for the same keys.
const GENERATION: Duration = Duration::from_millis(600);
/// Mean time between two requests of one user.
const THINK: Duration = Duration::from_millis(12);
/// How long an answer is waited for: longer than a gateway waits for its cluster.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long answers may take to come once the cluster is whole again.
const PATIENCE_WHEN_CALM: Duration = Duration::from_secs(20);
const REGISTERS: u64 = 2;
/// How long mutant caches serve what they hold.
const CACHED: Duration = Duration::from_millis(200);

impl RedisUser {
    pub(crate) fn new(
        (seed, index): (u64, usize),
        at: SocketAddr,
        watch: Arc<Watch>,
        phase: Arc<Phase>,
        mutant: Option<Mutant>,
    ) -> Self {
        let rng = Rng::new(seed).fork(&format!("redis user {index}"));
        let began = watch.now();
        Self {
            index,
            rng,
            watch,
            phase,
            mutant,
            at,
            connection: None,
            began,
            written: 0,
            seen: BTreeMap::new(),
            history: History::default(),
            appended: BTreeMap::new(),
            done: 0,
            unknown: 0,
            failures: Vec::new(),
        }
    }

    /// Asks for whatever comes to its mind while things go wrong, and reads everything when the
    /// cluster is whole again. `first` is when the first of all users began.
    pub(crate) fn run(mut self, first: Instant) -> Self {
        self.began = first;
        while !self.phase.mended.load(Ordering::Relaxed) {
            self.ask();
        }
        let generations = self.generation();
        while !self.phase.calm.load(Ordering::Relaxed) {
            pause(THINK);
        }
        for generation in 0..=generations {
            // All keys are read by somebody; twice would be more than a search can bear.
            if generation % 6 == self.index as u64 % 6 && self.failures.is_empty() {
                self.read_all(generation);
            }
        }
        self
    }

    fn generation(&self) -> u64 {
        let ms = self.watch.now().since(self.began).as_millis();
        u64::try_from(ms / GENERATION.as_millis()).expect("a run is short")
    }

    fn ask(&mut self) {
        let think = u64::try_from(THINK.as_micros()).expect("short");
        pause(Duration::from_micros(self.rng.below(2 * think)));
        let generation = self.generation();
        match self.rng.below(100) {
            0..55 => {
                let number = self.rng.below(REGISTERS);
                self.use_register(&key('r', generation, number));
            }
            55..70 => self.use_counter(&key('c', generation, 0)),
            70..85 => self.use_fleeting(&key('t', generation, 0)),
            _ => self.use_appended(&format!("a{generation}")),
        }
    }

    fn read_all(&mut self, generation: u64) {
        let registers = (0..REGISTERS).map(|number| key('r', generation, number));
        let others = [key('c', generation, 0), key('t', generation, 0)];
        for key in registers.chain(others) {
            self.get(&key);
        }
        self.look(&format!("a{generation}"));
    }

    fn use_register(&mut self, key: &Key) {
        self.written += 1;
        let new = (i64::try_from(self.index).expect("few users") + 1) * 1_000_000 + self.written;
        let seen = self.seen.get(key).map(|(value, _)| *value);
        let (expiry, expiry_ms) = self.expiry();
        let text = new.to_string();
        match self.rng.below(10) {
            0..3 => self.get(key),
            3 if self.rng.chance(1, 2) => self.set_and_get(key, new),
            3 => {
                let words = [vec!["SET", &text], words(&expiry)].concat();
                let kind = OpKind::Put { value: new, expiry_ms };
                self.write(key, &words, kind, |kind, _| kind);
            }
            4 => self.write(key, &["SET", &text, "GET"], put(new), |_, old| {
                cas(number(old), Some(new), 0, true)
            }),
            5 => {
                let words = [vec!["SET", &text, "NX"], words(&expiry)].concat();
                let kind = OpKind::Cas {
                    expect: None,
                    at: None,
                    value: Some(new),
                    expiry_ms,
                    written: None,
                };
                self.write(key, &words, kind, |_, reply| {
                    cas(None, Some(new), expiry_ms, *reply == Value::Okay)
                });
            }
            6 => self.write(key, &["DEL"], OpKind::Del { existed: None }, |_, reply| OpKind::Del {
                existed: Some(*reply == Value::Int(1)),
            }),
            7 => self.write(
                key,
                &["GETDEL"],
                OpKind::Del { existed: None },
                |_, reply| match number(reply) {
                    Some(old) => cas(Some(old), None, 0, true),
                    None => OpKind::Read(None),
                },
            ),
            _ => {
                let Some(old) = seen else { return self.get(key) };
                let old_text = old.to_string();
                let words = [vec!["SET", &text, "IFEQ", &old_text], words(&expiry)].concat();
                let kind = OpKind::Cas {
                    expect: Some(old),
                    at: None,
                    value: Some(new),
                    expiry_ms,
                    written: None,
                };
                self.write(key, &words, kind, |_, reply| {
                    cas(Some(old), Some(new), expiry_ms, *reply == Value::Okay)
                });
            }
        }
    }

    fn use_counter(&mut self, key: &Key) {
        if self.rng.chance(1, 4) {
            return self.get(key);
        }
        let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
        let text = delta.to_string();
        if self.mutant == Some(Mutant::BlindRetry) && self.rng.chance(1, 3) {
            // Its reply is lost, so it is sent again.
            self.send(&key.key, &["INCRBY", &text], true);
        }
        let kind = OpKind::Incr { delta, sum: None };
        self.write(key, &["INCRBY", &text], kind, |_, reply| OpKind::Incr {
            delta,
            sum: number(reply),
        });
    }

    /// A key that has one value and no other, as long as it is there: it may be given another time
    /// to live, and once it is gone nothing brings it back.
    fn use_fleeting(&mut self, key: &Key) {
        let value = FLEETING;
        let text = value.to_string();
        let at = self.watch.now().unix_ms() + 1 + self.rng.below(500);
        let (at_text, gone_at) = (at.to_string(), at + CLOCK_OFF_MS);
        match self.rng.below(10) {
            0..4 => self.get(key),
            // Whoever comes first: nobody writes it again.
            4..6 if self.index.is_multiple_of(6) && !self.seen.contains_key(key) => {
                self.seen.insert(key.clone(), (value, self.watch.now()));
                let kind = OpKind::Put { value, expiry_ms: gone_at };
                self.write(key, &["SET", &text, "PXAT", &at_text], kind, |kind, _| kind);
            }
            4..9 => {
                let same = |expiry_ms, written| {
                    let (expect, value) = (Some(value), Some(value));
                    OpKind::Cas { expect, at: None, value, expiry_ms, written }
                };
                let words = ["PEXPIREAT", &at_text];
                self.write(key, &words, same(gone_at, None), |_, reply| {
                    same(gone_at, Some(*reply == Value::Int(1)))
                });
            }
            _ => self.get(key),
        }
    }

    fn use_appended(&mut self, key: &str) {
        if self.rng.chance(1, 3) {
            return self.look(key);
        }
        self.written += 1;
        let record = format!("{}-{};", self.index, self.written);
        let called = self.watch.now();
        let outcome = self.send(key.as_bytes(), &["APPEND", &record], false);
        let returned = self.watch.now();
        let known = self.appended.entry(key.to_owned()).or_default();
        match outcome {
            Outcome::Done(Value::Int(end)) => {
                let end = usize::try_from(end).expect("a length");
                known.known.push(Seen { called, returned, end, record: Some(record) });
            }
            Outcome::Done(other) => self.failures.push(format!("APPEND answered {other:?}")),
            Outcome::NotDone => {}
            Outcome::Unknown => drop(known.unknown.insert(record)),
        }
    }

    /// Reads a key that is appended to.
    fn look(&mut self, key: &str) {
        let Some((called, reply)) = self.read(key.as_bytes()) else { return };
        let returned = self.watch.now();
        let value = match reply {
            Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        let known = self.appended.entry(key.to_owned()).or_default();
        known.known.push(Seen { called, returned, end: value.len(), record: None });
        known.saw(&value);
    }

    fn get(&mut self, key: &Key) {
        let now = self.watch.now();
        if self.mutant == Some(Mutant::CachedReads)
            && let Some((value, at)) = self.seen.get(key)
            && now.since(*at) < CACHED
        {
            let kind = OpKind::Read(Some(*value));
            return self.record(key, now, Some(self.watch.now()), kind);
        }
        let Some((called, reply)) = self.read(&key.key) else { return };
        let (returned, value) = (self.watch.now(), number(&reply));
        self.record(key, called, Some(returned), OpKind::Read(value));
        match value {
            Some(value) => drop(self.seen.insert(key.clone(), (value, called))),
            // Of a fleeting key it has to remember that it was there.
            None if key.key.starts_with(b"t") => {}
            None => drop(self.seen.remove(key)),
        }
    }

    /// A SET with a GET behind it, which the gateway may answer with what was set.
    fn set_and_get(&mut self, key: &Key, new: i64) {
        let Some(mut connection) = self.connect() else { return };
        let mut pipeline = redis::pipe();
        pipeline.cmd("SET").arg(&key.key).arg(new).cmd("GET").arg(&key.key);
        let called = self.watch.now();
        let answer: redis::RedisResult<(Value, Value)> = pipeline.query(&mut connection);
        let Ok((_, found)) = answer else {
            self.unknown += 1;
            return self.record(key, called, None, put(new));
        };
        let returned = Some(self.watch.now());
        self.record(key, called, returned, put(new));
        self.record(key, called, returned, OpKind::Read(number(&found)));
        self.connection = Some(connection);
        self.done += 2;
    }

    /// What a key holds, and when that was asked. A whole cluster has to say it.
    fn read(&mut self, key: &[u8]) -> Option<(Instant, Value)> {
        let calm = self.phase.calm.load(Ordering::Relaxed);
        let began = self.watch.now();
        loop {
            let called = self.watch.now();
            if let Outcome::Done(reply) = self.send(key, &["GET"], false) {
                return Some((called, reply));
            }
            if !calm || called.since(began) > PATIENCE_WHEN_CALM {
                let key = String::from_utf8_lossy(key);
                let what = format!("a whole cluster does not say what {key} holds");
                self.failures.extend(calm.then_some(what));
                return None;
            }
        }
    }

    /// Sends a command that may write; `asked` is what is known of it without a reply.
    fn write(
        &mut self,
        key: &Key,
        words: &[&str],
        asked: OpKind,
        seen: impl FnOnce(OpKind, &Value) -> OpKind,
    ) {
        let called = self.watch.now();
        match self.send(&key.key, words, false) {
            Outcome::Done(reply) => {
                let returned = Some(self.watch.now());
                self.record(key, called, returned, seen(asked, &reply));
            }
            Outcome::NotDone => {}
            Outcome::Unknown => self.record(key, called, None, asked),
        }
    }

    fn record(&mut self, key: &Key, called: Instant, returned: Option<Instant>, kind: OpKind) {
        let op = Op { client: self.index, called, returned, kind, version: Version::NONE };
        self.history.record(key, op);
    }

    /// Sends a command, its name first and the key behind that. `lost`: its reply is.
    fn send(&mut self, key: &[u8], words: &[&str], lost: bool) -> Outcome {
        let Some(mut connection) = self.connect() else { return Outcome::NotDone };
        let (name, rest) = words.split_first().expect("a command has a name");
        let mut command = redis::cmd(name);
        command.arg(key).arg(rest);
        let answer: redis::RedisResult<Value> = command.query(&mut connection);
        if lost {
            return Outcome::Unknown;
        }
        match answer {
            Ok(reply) => {
                self.connection = Some(connection);
                self.done += 1;
                Outcome::Done(reply)
            }
            Err(error) => {
                // What the gateway says of it, or nothing at all, and then nobody knows.
                if error.to_string().contains("nothing was changed") {
                    return Outcome::NotDone;
                }
                self.unknown += 1;
                Outcome::Unknown
            }
        }
    }

    /// The connection, or a new one once the gateway is there.
    fn connect(&mut self) -> Option<Connection> {
        if let Some(connection) = self.connection.take() {
            return Some(connection);
        }
        let url = format!("redis://{}/", self.at);
        let open = || {
            let connection =
                redis::Client::open(url.as_str())?.get_connection_with_timeout(PATIENCE)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            Ok::<_, redis::RedisError>(connection)
        };
        let mut found = None;
        // In vain now and then: whoever asks tries again.
        let waited = self.watch.wait_for(THINK, || {
            found = Some(open().map_err(|error| error.to_string())?);
            Ok(())
        });
        drop(waited);
        found
    }

    /// Now and then a value goes by itself.
    fn expiry(&mut self) -> (Vec<String>, u64) {
        if !self.rng.chance(1, 4) {
            return (Vec::new(), 0);
        }
        let at = self.watch.now().unix_ms() + 1 + self.rng.below(300);
        (vec!["PXAT".to_owned(), at.to_string()], at + CLOCK_OFF_MS)
    }
}

/// The one value of keys that go by themselves.
const FLEETING: i64 = 7;

fn key(kind: char, generation: u64, number: u64) -> Key {
    Key { ordered: false, key: format!("{kind}{generation}-{number}").into_bytes() }
}

fn words(text: &[String]) -> Vec<&str> {
    text.iter().map(String::as_str).collect()
}

fn put(value: i64) -> OpKind {
    OpKind::Put { value, expiry_ms: 0 }
}

fn cas(expect: Option<i64>, value: Option<i64>, expiry_ms: u64, written: bool) -> OpKind {
    OpKind::Cas { expect, at: None, value, expiry_ms, written: Some(written) }
}

/// A number that was answered; `None` for nothing.
fn number(reply: &Value) -> Option<i64> {
    match reply {
        Value::Int(number) => Some(*number),
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}
