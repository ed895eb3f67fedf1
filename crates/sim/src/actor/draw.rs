//! Which requests a simulated user makes.

use super::batch::grouped_keys;
use super::crowd::{crowded_keys, is_crowded};
use super::many::wide_keys;
use super::{Actor, Ask, Asked, ORDERED_KEYS, READERS, What};
use crate::check::{Key, OpKind, Scan};
use crate::options::Load;
use crate::world::TIME_ERROR_MS;
use client::{Expect, Expiry, New, Request};
use machine::Instant;
use std::ops::Bound;
use std::time::Duration;
use wire::Version;

/// Every key that any user may ever have written.
pub(crate) fn keys(load: &Load) -> Vec<Key> {
    let names = |letter: char, count: u64| (0..count).map(move |n| format!("{letter}{n}"));
    let flooded = u64::try_from(load.flood).expect("a number of writes");
    let registers = (0..load.registers).map(|n| register(load.twins, n));
    let fresh = if load.fresh_percent > 0 { FRESH_KEYS } else { 0 };
    let hashed = names('c', COUNTERS).chain(names('f', flooded)).chain(names('n', fresh));
    let hashed = registers.chain(hashed.map(|name| Key { ordered: false, key: name.into_bytes() }));
    let wide = wide_keys().filter(|_| load.many_percent > 0);
    let wide = wide.map(|name| Key { ordered: false, key: name.into_bytes() });
    let grouped = grouped_keys().filter(|_| load.batch_percent > 0);
    let grouped = grouped.map(|name| Key { ordered: false, key: name.into_bytes() });
    let crowded = crowded_keys().filter(|_| load.crowd_percent > 0);
    let hashed = hashed.chain(wide).chain(grouped).chain(crowded);
    hashed.chain(Actor::ordered_keys().map(|key| Key { ordered: true, key })).collect()
}

/// How often the keys that most requests are about have changed, if each time lasts so long.
fn focus_at(now: Instant, lasts: Duration) -> u64 {
    let nanos = u64::try_from(lasts.as_nanos()).expect("seconds");
    now.0.checked_div(nanos).unwrap_or(0)
}

/// A register of the hash keyspace.
fn register(twins: Option<[[u8; 16]; 2]>, n: u64) -> Key {
    let twin = usize::try_from(n).ok().and_then(|n| twins.as_ref()?.get(n));
    let key = twin.map_or_else(|| format!("r{n}").into_bytes(), |twin| twin.to_vec());
    Key { ordered: false, key }
}

/// The keys that most requests may be about: the first register, or both twins, and the first of
/// the ordered keys, which is the last here.
pub(crate) fn focus(twins: Option<[[u8; 16]; 2]>) -> Vec<Key> {
    let registers = (0..if twins.is_some() { 2 } else { 1 }).map(|n| register(twins, n));
    registers.chain([Key { ordered: true, key: b"k0".to_vec() }]).collect()
}

impl Actor {
    /// Starts a request, drawn from all kinds.
    pub(super) fn start(&mut self, ask: &mut Ask<'_>) {
        self.started += 1;
        self.focus = focus_at(ask.now, self.focus_lasts);
        if self.class == Some(READERS) {
            return self.read_something(ask);
        }
        if self.lock_percent > 0 && self.rng.chance(self.lock_percent, 100) && self.lock(ask) {
            return;
        }
        if self.plain_percent > 0 && self.rng.chance(self.plain_percent, 100) {
            return self.plain(ask);
        }
        if self.many_percent > 0 && self.rng.chance(self.many_percent, 100) {
            return self.many(ask);
        }
        if self.batch_percent > 0 && self.rng.chance(9, 10) {
            return self.together(ask);
        }
        if self.crowd_percent > 0 && self.rng.chance(self.crowd_percent, 100) {
            return self.in_crowd(ask);
        }
        if self.fresh_percent > 0 && self.rng.chance(self.fresh_percent, 100) {
            return self.fresh(ask);
        }
        let register = self.register();
        if self.big_percent > 0 && self.rng.chance(self.big_percent, 100) {
            return self.put_big(ask, register);
        }
        if self.reads_percent > 0 && self.rng.chance(self.reads_percent, 100) {
            return match self.rng.below(8) {
                0 => self.mget(ask),
                1..4 => self.scan(ask),
                _ => self.get(ask, register),
            };
        }
        match self.rng.below(100) {
            0..25 => self.get(ask, register),
            25..45 => {
                let (expiry, expiry_ms) = self.draw_expiry(ask, &register);
                let (value, text) = self.value_and_text();
                let request = Request::Put { key: &register.key, value: text.as_bytes(), expiry };
                let what = What::One(register.clone(), OpKind::Put { value, expiry_ms });
                self.submit(ask, request, what);
            }
            45..55 => {
                let what = What::One(register.clone(), OpKind::Del { existed: None });
                self.submit(ask, Request::Del { key: &register.key }, what);
            }
            55..68 => self.cas(ask, &register),
            68..80 => {
                let counter = self.counter();
                let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
                let what = What::One(counter.clone(), OpKind::Incr { delta, sum: None });
                self.submit(ask, Request::Incr { key: &counter.key, delta }, what);
            }
            80..85 => {
                let counter = self.counter();
                self.get(ask, counter);
            }
            85..93 => self.mget(ask),
            _ => self.scan(ask),
        }
    }

    /// What changes nothing.
    fn read_something(&mut self, ask: &Ask<'_>) {
        match self.rng.below(8) {
            0 => self.mget(ask),
            1..4 => self.scan(ask),
            _ => {
                let register = self.register();
                self.get(ask, register);
            }
        }
    }

    /// What a delegated key can answer wherever it is.
    fn plain(&mut self, ask: &Ask<'_>) {
        let key = self.hashed();
        if self.rng.chance(self.reads_percent, 100) {
            return self.get(ask, key);
        }
        let value = self.value();
        self.put(ask, key, value, OpKind::Put { value, expiry_ms: 0 });
    }

    /// Writes one of very many keys, or deletes it.
    fn fresh(&mut self, ask: &Ask<'_>) {
        let key = format!("n{}", self.rng.below(FRESH_KEYS)).into_bytes();
        let key = Key { ordered: false, key };
        if self.rng.chance(1, 3) {
            let what = What::One(key.clone(), OpKind::Del { existed: None });
            return self.submit(ask, Request::Del { key: &key.key }, what);
        }
        let value = self.value();
        self.put(ask, key, value, OpKind::Put { value, expiry_ms: 0 });
    }

    /// A read and a write of every ordered key.
    pub(super) fn probe_all(&mut self, ask: &mut Ask<'_>) {
        for key in Self::ordered_keys() {
            self.started += 1;
            let key = Key { ordered: true, key };
            self.get(ask, key.clone());
            let value = self.value();
            self.put(ask, key, value, OpKind::Put { value, expiry_ms: 0 });
        }
    }

    pub(super) fn get(&mut self, ask: &Ask<'_>, key: Key) {
        let bytes = key.key.clone();
        self.submit(ask, Request::Get { key: &bytes }, What::One(key, OpKind::Read(None)));
    }

    /// A write without an end.
    pub(super) fn put(&mut self, ask: &Ask<'_>, key: Key, value: i64, kind: OpKind) {
        let (bytes, text) = (key.key.clone(), value.to_string());
        let expiry = Expiry::Never;
        let request = Request::Put { key: &bytes, value: text.as_bytes(), expiry };
        self.submit(ask, request, What::One(key, kind));
    }

    /// Expects what it last read, by version or by value; writes another, deletes it, or gives it
    /// another end.
    fn cas(&mut self, ask: &Ask<'_>, register: &Key) {
        let (value, text) = self.value_and_text();
        // A big value is never the expected one.
        let by_version = self.rng.chance(1, 2) || self.big_percent > 0;
        let seen = self.seen.get(&register.key).copied();
        let expected = seen.map_or(String::new(), |(value, _)| value.to_string());
        let (expect, at) = match seen {
            Some((_, version)) if by_version => (Expect::Version(version), Some(version)),
            Some(_) => (Expect::Value(expected.as_bytes()), None),
            None => (Expect::Version(Version::NONE), Some(Version::NONE)),
        };
        let wanted = seen.map(|(value, _)| value);
        let (new, value, (expiry, expiry_ms)) = match self.rng.below(4) {
            0 if seen.is_some() => (New::Nothing, None, (Expiry::Never, 0)),
            1 if seen.is_some() => (New::Same, wanted, self.draw_expiry(ask, register)),
            _ => (New::Value(text.as_bytes()), Some(value), (Expiry::Never, 0)),
        };
        let request = Request::Cas { key: &register.key, expect, new, expiry };
        let kind = OpKind::Cas { expect: wanted, at, value, expiry_ms, written: None };
        self.submit(ask, request, What::One(register.clone(), kind));
    }

    fn mget(&mut self, ask: &Ask<'_>) {
        let of_text = |key: String| Key { ordered: false, key: key.into_bytes() };
        let mut keys: Vec<Key> = (0..self.registers).map(|n| register(self.twins, n)).collect();
        keys.extend((0..COUNTERS).map(|n| of_text(format!("c{n}"))));
        let slices: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
        self.submit(ask, Request::Mget { keys: &slices, within: None }, What::Many(keys.clone()));
    }

    fn scan(&mut self, ask: &Ask<'_>) {
        let a = if self.is_focused() { 0 } else { self.rng.below(ORDERED_KEYS) };
        let b = self.rng.below(ORDERED_KEYS);
        let (first, last) = (a.min(b), a.max(b));
        let limit = self.rng.chance(1, 2).then(|| self.rng.below(4) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        let reverse = self.rng.chance(1, 2);
        let (start, end) = (format!("k{first}"), format!("k{last}"));
        let request = Request::Range {
            start: Bound::Included(start.as_bytes()),
            end: Bound::Included(end.as_bytes()),
            reverse,
            limit,
            keys_only: false,
        };
        let scan = Scan { crowd: false, first, last, limit, reverse };
        self.submit(ask, request, What::Scan(scan));
    }

    pub(super) fn submit(&mut self, ask: &Ask<'_>, request: Request<'_>, what: What) {
        let [hashed, in_order] = ask.keyspaces;
        let keyspace = match &what {
            What::One(Key { ordered: true, .. }, _) => in_order,
            What::Scan(scan) if !scan.crowd => in_order,
            What::Many(keys) if keys.iter().all(|key| key.ordered) => in_order,
            What::One(..)
            | What::Many(_)
            | What::Writes(_)
            | What::Batch(_)
            | What::Big(_)
            | What::Lock(_)
            | What::Scan(_)
            | What::Count => hashed,
        };
        let ticket = self.machine.start(ask.local, keyspace, request).expect("a sound request");
        self.waiting.insert(ticket, Asked { at: ask.now, sure: self.is_sure(), what });
    }

    fn is_focused(&mut self) -> bool {
        self.focus_percent > 0 && self.rng.chance(self.focus_percent, 100)
    }

    fn register(&mut self) -> Key {
        if self.is_focused() {
            return self.focused();
        }
        if self.rng.chance(1, 3) {
            let key = format!("k{}", self.rng.below(ORDERED_KEYS)).into_bytes();
            Key { ordered: true, key }
        } else {
            self.hashed()
        }
    }

    /// One of the keys that most requests are about.
    fn focused(&mut self) -> Key {
        if self.focus_lasts.is_zero() {
            let mut keys = focus(self.twins);
            let ordered = keys.pop().expect("it is the last");
            let twin = self.twins.is_some() && self.rng.chance(1, 2);
            let hashed = keys.swap_remove(usize::from(twin));
            return if self.rng.chance(1, 2) { ordered } else { hashed };
        }
        if self.rng.chance(1, 2) {
            let key = format!("k{}", self.focus % ORDERED_KEYS).into_bytes();
            return Key { ordered: true, key };
        }
        register(self.twins, self.focus % self.registers)
    }

    fn hashed(&mut self) -> Key {
        register(self.twins, self.rng.below(self.registers))
    }

    fn counter(&mut self) -> Key {
        Key { ordered: false, key: format!("c{}", self.rng.below(COUNTERS)).into_bytes() }
    }

    pub(super) fn value_and_text(&self) -> (i64, String) {
        let value = self.value();
        (value, value.to_string())
    }

    /// Now and then a value that goes by itself; not where it would be scanned, since a scan leaves
    /// out a value whose time has come without waiting for its tombstone. With the latest time at
    /// which it may go.
    pub(super) fn draw_expiry(&mut self, ask: &Ask<'_>, key: &Key) -> (Expiry, u64) {
        let may = self.lock_percent == 0 && !key.ordered && !is_crowded(key);
        if may && self.rng.chance(1, 5) {
            let at = ask.now.unix_ms() + 1 + self.rng.below(400);
            (Expiry::AtMs(at), at + TIME_ERROR_MS)
        } else {
            (Expiry::Never, 0)
        }
    }
}

const COUNTERS: u64 = 2;

/// So many that most writes of one are of a key that has no value.
const FRESH_KEYS: u64 = 300;
