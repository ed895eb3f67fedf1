//! Writers with keys of their own, who know what each must hold in the end: the last value that was
//! acknowledged, or one whose outcome they were never told.

use super::notes::Notes;
use crate::process::pause;
use machine::Rng;
use redis::{Connection, RedisResult};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What one Redis client has written through a gateway.
pub(super) struct Ledger {
    index: usize,
    rng: Rng,
    notes: Arc<Notes>,
    at: SocketAddr,
    connection: Option<Connection>,
    written: u64,
    keys: BTreeMap<u64, Entry>,
    /// Increments that were acknowledged, and that were perhaps carried out.
    sums: (u64, u64),
}

/// What a key may hold.
#[derive(Debug, Default)]
struct Entry {
    acknowledged: Option<u64>,
    /// Written without an answer.
    unknown: Vec<u64>,
}

/// Keys of each, most of which are seldom written.
const KEYS: u64 = 400;
/// Mean time between two commands.
const THINK: Duration = Duration::from_millis(10);
/// How long an answer is waited for: longer than a gateway waits for its cluster.
const PATIENCE: Duration = Duration::from_secs(4);
/// Tries to read a key in the end, a pause apart.
const TRIES: usize = 60;
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Ledger {
    pub(super) fn new((seed, index): (u64, usize), notes: Arc<Notes>, at: SocketAddr) -> Self {
        let rng = Rng::new(seed).fork(&format!("ledger {index}"));
        let (connection, keys) = (None, BTreeMap::new());
        Self { index, rng, notes, at, connection, written: 0, keys, sums: (0, 0) }
    }

    /// Writes until the soak is over. Gives itself back, to be audited.
    pub(super) fn run(mut self) -> Self {
        while !self.notes.is_over() {
            let think = u64::try_from(THINK.as_micros()).expect("short");
            pause(Duration::from_micros(self.rng.below(2 * think)));
            match self.rng.below(10) {
                0..6 => self.set(),
                6..8 => self.incr(),
                _ => self.mget(),
            }
        }
        self.connection = None;
        self
    }

    fn name(&self, key: u64) -> String {
        format!("l{}-{key}", self.index)
    }

    fn sum_name(&self) -> String {
        format!("sum{}", self.index)
    }

    /// Few are written often.
    fn key(&mut self) -> u64 {
        if self.rng.chance(1, 2) { self.rng.below(4) } else { self.rng.below(KEYS) }
    }

    fn set(&mut self) {
        let key = self.key();
        self.written += 1;
        let number = self.written;
        let padding = "x".repeat(usize::try_from(self.rng.below(800)).expect("short"));
        let value = format!("{number}:{padding}");
        let name = self.name(key);
        let outcome = self.ask::<()>(redis::cmd("SET").arg(name).arg(value));
        let entry = self.keys.entry(key).or_default();
        match outcome {
            Ok(()) => entry.acknowledged = Some(number),
            Err(_) => entry.unknown.push(number),
        }
    }

    fn incr(&mut self) {
        let name = self.sum_name();
        match self.ask::<i64>(redis::cmd("INCR").arg(name)) {
            Ok(_) => self.sums.0 += 1,
            Err(_) => self.sums.1 += 1,
        }
    }

    fn mget(&mut self) {
        let names: Vec<String> = (0..8).map(|key| self.name(key)).collect();
        // What is read is looked at in the end.
        drop(self.ask::<Vec<Option<String>>>(redis::cmd("MGET").arg(names)));
    }

    fn ask<T: redis::FromRedisValue>(&mut self, command: &redis::Cmd) -> RedisResult<T> {
        let outcome = self.try_to(command);
        if outcome.is_err() {
            // Whoever has not answered may still do so, to the next question.
            self.connection = None;
        }
        let counter = if outcome.is_ok() { &self.notes.answered } else { &self.notes.unknown };
        counter.fetch_add(1, Ordering::Relaxed);
        outcome
    }

    fn try_to<T: redis::FromRedisValue>(&mut self, command: &redis::Cmd) -> RedisResult<T> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let client = redis::Client::open(format!("redis://{}", self.at))?;
                let connection = client.get_connection_with_timeout(PATIENCE)?;
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.set_write_timeout(Some(PATIENCE))?;
                none.insert(connection)
            }
        };
        command.query(connection)
    }

    /// Once all is mended: reads every key, and says what should not be there.
    pub(super) fn audit(mut self) {
        for (key, entry) in std::mem::take(&mut self.keys) {
            let name = self.name(key);
            match self.read::<Option<String>>(&name) {
                Ok(found) => {
                    if let Some(wrong) = entry.contradicts(found.as_deref()) {
                        self.notes.fail(format!("{name}: {wrong}"));
                    }
                }
                Err(why) => self.notes.fail(format!("{name} cannot be read in the end: {why}")),
            }
        }
        let ((done, unknown), name) = (self.sums, self.sum_name());
        match self.read::<Option<u64>>(&name) {
            Ok(sum) if (done..=done + unknown).contains(&sum.unwrap_or(0)) => {}
            Ok(sum) => {
                let sum = sum.unwrap_or(0);
                let what = format!("{done} increments acknowledged, {unknown} unknown, sum {sum}");
                self.notes.fail(format!("{name}: {what}"));
            }
            Err(why) => self.notes.fail(format!("{name} cannot be read in the end: {why}")),
        }
    }

    fn read<T: redis::FromRedisValue>(&mut self, name: &str) -> RedisResult<T> {
        let mut last = self.ask(redis::cmd("GET").arg(name));
        for _ in 0..TRIES {
            if last.is_ok() {
                break;
            }
            pause(TRY_AGAIN);
            last = self.ask(redis::cmd("GET").arg(name));
        }
        last
    }
}

impl Entry {
    /// What is wrong with what was found, if anything is.
    fn contradicts(&self, found: Option<&str>) -> Option<String> {
        let number = found.and_then(|text| text.split(':').next()?.parse::<u64>().ok());
        let may = match number {
            Some(number) => self.acknowledged == Some(number) || self.unknown.contains(&number),
            None => found.is_none() && self.acknowledged.is_none(),
        };
        (!may)
            .then(|| format!("write {:?} was acknowledged, {number:?} is there", self.acknowledged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledged_write_that_is_gone_is_noticed() {
        let entry = Entry { acknowledged: Some(7), unknown: vec![5, 8] };
        for fine in ["7:xx", "8:", "5:x"] {
            assert_eq!(entry.contradicts(Some(fine)), None, "{fine}");
        }
        for wrong in [None, Some("6:x"), Some("9:"), Some("what")] {
            assert!(entry.contradicts(wrong).is_some(), "{wrong:?}");
        }
        assert_eq!(Entry::default().contradicts(None), None);
    }
}
