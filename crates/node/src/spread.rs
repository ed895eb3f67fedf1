//! The tail of a hot key: sends copies of what it commits to the readers, and lets a client know of
//! its write when they have them.
//!
//! Nothing here decides what anybody may be shown: a copy that is lost or late costs a detour by
//! the tail.

use crate::copies::push_copies;
use crate::cover::Place;
use crate::engine::Engine;
use crate::replica::{Context, Replica, Write, changes_state};
use crate::reply::answer_write;
use crate::session::Outcome;
use cluster::{Life, NodeId, Plant};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Endpoint, Header, Op};

/// The hot keys of a partition that this node is the tail of.
#[derive(Debug, Default)]
pub(crate) struct Spreads {
    table: BTreeMap<Box<[u8]>, Spread>,
    /// Answers held back, over all keys.
    held: usize,
}

/// A hot key at its tail.
#[derive(Debug)]
struct Spread {
    /// No version of it that was ever shown is above this: that of its record, if it has one.
    newest: u64,
    /// The life of the switch, and the stay of the key there, that the readers have spoken for.
    told_for: (Life, u64),
    readers: Vec<Reader>,
    /// The version that was sent last, and when.
    sent: u64,
    sent_at: Instant,
    /// How often the newest version was sent.
    sends: u32,
    /// When to send it, or to send it again.
    due: Option<Instant>,
    held: Vec<Held>,
    /// Its entry in the timers.
    wake: Option<Instant>,
}

#[derive(Debug)]
struct Reader {
    node: NodeId,
    life: Life,
    /// The version that it has last said to hold.
    holds: Option<u64>,
}

/// An answer that is held back.
#[derive(Debug)]
struct Held {
    until: Until,
    deadline: Instant,
    header: Header,
    outcome: Outcome,
}

/// What an answer waits for.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// All readers hold this version; after the deadline it is given all the same.
    Copied(u64),
    /// This version is covered; after the deadline it is not given: the client asks again.
    Covered(u64),
}

impl Spread {
    fn all_hold(&self, version: u64) -> bool {
        self.readers.iter().all(|reader| reader.holds >= Some(version))
    }

    /// Whether copies have been with the readers for so long that no read need come home any more.
    fn is_quiet(&self, now: Instant) -> bool {
        let idle = self.due.is_none() && self.held.is_empty();
        idle && !self.readers.is_empty() && now >= self.sent_at + QUIET_AFTER
    }

    fn wants(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.deadline).chain(self.due).min()
    }
}

impl Replica {
    /// The version that this tail vouches for of a hot key; `None` if it is not hot, or this is not
    /// the tail.
    pub(crate) fn newest_spread(&self, key: &[u8]) -> Option<u64> {
        if self.spreads.table.is_empty() {
            return None;
        }
        self.spreads.table.get(key).map(|spread| spread.newest)
    }

    /// Begins an epoch: a tail spreads every key that is marked, another member none.
    pub(crate) fn enter_spreads<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let id = self.id();
        ctx.hot.covers.retain(|other| other != id);
        ctx.hot.withheld.retain(|other| other != id);
        let keys: Vec<Box<[u8]>> = self.marks.iter().map(|(key, _)| key.into()).collect();
        for key in keys {
            self.spread_or_stop(ctx, &key);
        }
    }

    /// The mark of a key has changed, or this node's role has.
    pub(crate) fn spread_or_stop<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let mark = self.marks.get(key).copied();
        // Of a key that is away this node does not know the newest state.
        let spreads = self.is_tail() && self.trips.present(key).is_none();
        let Some(mark) = mark.filter(|_| spreads) else {
            self.stop_spread(ctx, key);
            return;
        };
        if !self.spreads.table.contains_key(key) {
            let at = self.key_ref(&mark.header(), key);
            let known = ctx.engine.read(&at, |record| record.map(|r| r.version));
            let spread = Spread {
                newest: known.unwrap_or_else(|| self.absent_version(key)),
                told_for: (ctx.hot.switch(), 0),
                readers: Vec::new(),
                sent: 0,
                sent_at: ctx.now,
                sends: 0,
                due: None,
                held: Vec::new(),
                wake: None,
            };
            self.spreads.table.insert(key.into(), spread);
        }
        self.follow_readers(ctx, key);
    }

    fn stop_spread<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let away = self.trips.present(key).is_some();
        let Some((key, spread)) = self.spreads.table.remove_entry(key) else { return };
        self.spreads.held -= spread.held.len();
        if let Some(wake) = spread.wake {
            ctx.hot.timers.remove(&(wake, self.id(), key));
        }
        // What is held back here is committed; but where another is the tail now, that one may have
        // shown more since, and the head answers a retry.
        // And while the key has an entry in the directory, what waits to be covered goes on
        // waiting: the client asks again.
        if self.is_tail() {
            for held in spread.held {
                if !away || matches!(held.until, Until::Copied(_)) {
                    answer_write(ctx, &held.header, &held.outcome);
                }
            }
        }
    }

    /// Who is to hold copies has changed, or to whom they speak.
    pub(crate) fn follow_order<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let keys: Vec<Box<[u8]>> = self.spreads.table.keys().cloned().collect();
        for key in keys {
            self.follow_readers(ctx, &key);
        }
    }

    fn follow_readers<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        let space = self.partition.keyspace;
        let stay = ctx.hot.entry(space, key).map_or(0, |entry| entry.stay);
        let told_for = (ctx.hot.switch(), stay);
        let before = std::mem::take(&mut spread.readers);
        let before = if spread.told_for == told_for { before } else { Vec::new() };
        // The tail reads from what it commits: it needs no copy, and says so to nobody.
        let others = ctx.hot.holders(space, key).filter(|(node, _)| *node != ctx.directory.me);
        let said = |node, life| before.iter().find(|r| r.node == node && r.life == life);
        spread.readers = others
            .map(|(node, life)| Reader {
                node,
                life,
                holds: said(node, life).and_then(|r| r.holds),
            })
            .collect();
        spread.told_for = told_for;
        spread.sends = 0;
        let complete = spread.all_hold(spread.newest);
        // By the timers: there may be many such keys at once.
        spread.due = (!complete).then_some(ctx.now);
        self.release(ctx, key);
    }

    /// The committed state of a key has changed. While copies of an earlier one are under way, the
    /// next wait: a key that is written faster than copies travel is copied once in so long.
    pub(crate) fn spread_state<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        version: u64,
    ) {
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        spread.newest = version;
        spread.sends = 0;
        let back = spread.sent_at + ctx.hot.rtt.smoothed().unwrap_or_default();
        if back > ctx.now && !spread.all_hold(spread.sent) {
            spread.due = Some(back);
            self.arm(ctx, key);
        } else {
            self.send_copies(ctx, key);
        }
    }

    /// Sends the newest state to every reader that has not said to hold it.
    fn send_copies<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let (id, Some(mark)) = (self.id(), self.marks.get(key).copied()) else { return };
        let at = mark.header();
        let header = self.hot_header(ctx, &at);
        let place = self.key_ref(&at, key);
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        let newest = spread.newest;
        let lacking = spread.readers.iter().filter(|r| r.holds < Some(newest));
        let to: Vec<Endpoint> =
            lacking.filter_map(|r| ctx.directory.endpoint(r.node, id)).collect();
        if ctx.leased && !to.is_empty() {
            spread.sends += 1;
            ctx.counters.hot_copies_sent += to.len() as u64;
            let out = &mut *ctx.out;
            ctx.engine.read(&place, |record| {
                let object_version = record.map_or(newest, |r| r.version);
                let header = Header { object_version, ..header };
                push_copies(out, &to, &header, key, record.as_ref());
            });
        }
        (spread.sent, spread.sent_at) = (newest, ctx.now);
        let again = !to.is_empty() && spread.sends < SENDS_MAX;
        spread.due = again.then(|| ctx.now + ctx.hot.rtt.timeout(spread.sends));
        self.arm(ctx, key);
    }

    /// A reader has said what it holds.
    pub(crate) fn handle_copied<E: Engine>(&mut self, ctx: &mut Context<'_, E>, header: &Header) {
        for key in self.marks.with_hash(header.keyhash) {
            let Some(spread) = self.spreads.table.get_mut(&key) else { continue };
            let mut readers = spread.readers.iter_mut();
            let Some(reader) = readers.find(|r| r.node.0 == header.node) else { continue };
            let first = reader.holds < Some(header.object_version) && spread.sends == 1;
            if first && header.object_version == spread.newest {
                ctx.hot.rtt.sample(ctx.now.since(spread.sent_at), 1);
            }
            reader.holds = reader.holds.max(Some(header.object_version));
            if spread.all_hold(spread.newest) {
                spread.due = None;
            } else if spread.sends == 0 && spread.all_hold(spread.sent) {
                self.send_copies(ctx, &key);
            }
            self.release(ctx, &key);
        }
    }

    /// A timer of the key has run out.
    pub(crate) fn handle_spread_due<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        spread.wake = None;
        if spread.is_quiet(ctx.now) {
            // What they said before may have reached the switch in another order.
            self.spread_anew(ctx, key);
        } else if spread.due.is_some_and(|due| due <= ctx.now) {
            self.send_copies(ctx, key);
        }
        self.release(ctx, key);
    }

    /// Sends the state to all readers of the key, whatever they have said to hold.
    pub(crate) fn spread_anew<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        spread.readers.iter_mut().for_each(|reader| reader.holds = None);
        spread.sends = 0;
        self.send_copies(ctx, key);
    }

    /// A read of this key was sent home by the switch, or by a client whom a reader had nothing
    /// for. If the copies went out long ago the switch does not know of them, or they are lost:
    /// they are sent again, by the timers, so that the readers say once more what they hold.
    pub(crate) fn remind_readers<E: Engine>(&self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let quiet = self.spreads.table.get(key).is_some_and(|spread| spread.is_quiet(ctx.now));
        if quiet && ctx.plant != Some(Plant::NeverRemind) {
            ctx.hot.timers.insert((ctx.now, self.id(), key.into()));
        }
    }

    /// Gives the answers that were held back long enough.
    pub(crate) fn release<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let id = self.id();
        let Some(mark) = self.marks.get(key) else { return };
        let place = Place::new(id, &mark.header());
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        for held in std::mem::take(&mut spread.held) {
            let late = held.deadline <= ctx.now;
            let (ready, waits) = match held.until {
                Until::Copied(version) => (late || spread.all_hold(version), true),
                Until::Covered(version) => (ctx.hot.covers.is_covered(place, version), !late),
            };
            if ready {
                answer_write(ctx, &held.header, &held.outcome);
            } else if waits {
                spread.held.push(held);
                continue;
            }
            self.spreads.held -= 1;
        }
        self.arm(ctx, key);
    }

    /// Answers a client whose write this tail has committed, or sees to it that it will be.
    pub(crate) fn answer_or_hold<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
        outcome: &Outcome,
    ) {
        if outcome.version == 0 && self.trips.present(write.key).is_some() {
            // The key has left meanwhile, and its tail does not see to covers any more: the client
            // asks again, and the head does.
            return;
        }
        let Some(until) = self.until(ctx, write, outcome) else {
            answer_write(ctx, &write.header, outcome);
            return;
        };
        let Some(spread) = self.spreads.table.get_mut(write.key) else { return };
        if self.spreads.held < HELD_MAX {
            let twice = ctx.hot.rtt.smoothed().map_or(HOLD_MAX, |rtt| rtt * 2);
            let wait = match until {
                Until::Copied(_) => twice.clamp(HOLD_MIN, HOLD_MAX),
                Until::Covered(_) => HOLD_MAX,
            };
            let deadline = ctx.now + wait;
            let (header, outcome) = (write.header, *outcome);
            spread.held.push(Held { until, deadline, header, outcome });
            self.spreads.held += 1;
            self.arm(ctx, write.key);
        } else if matches!(until, Until::Copied(_)) {
            answer_write(ctx, &write.header, outcome);
        }
    }

    /// What the answer to a write has to wait for.
    fn until<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
        outcome: &Outcome,
    ) -> Option<Until> {
        if outcome.origin == Op::Batch {
            return None; // What it shows was covered before it was sent down the chain.
        }
        let newest = self.newest_spread(write.key)?;
        if outcome.version == 0 {
            // Version 0 says that there is no value, and tells the switch nothing. A base that is
            // no version of the key, but of a batch that only checked it, is above all there is.
            let base = write.fixed.base;
            let version = if base == 0 { newest } else { base.min(newest) };
            let covered = self.covers(ctx, &write.header, version);
            return (!covered).then_some(Until::Covered(version));
        }
        let version = write.version();
        let changes = write.effect().is_some_and(changes_state);
        let spread = self.spreads.table.get(write.key)?;
        (changes && !spread.all_hold(version)).then_some(Until::Copied(version))
    }

    fn arm<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let id = self.id();
        let Some(spread) = self.spreads.table.get_mut(key) else { return };
        let wants = spread.wants();
        if wants != spread.wake {
            if let Some(wake) = spread.wake.take() {
                ctx.hot.timers.remove(&(wake, id, key.into()));
            }
            ctx.hot.timers.extend(wants.map(|at| (at, id, key.into())));
            spread.wake = wants;
        }
    }

    /// What messages about a hot key have in common.
    pub(crate) fn hot_header<E>(&self, ctx: &Context<'_, E>, at: &Header) -> Header {
        Header {
            partition: self.id().0,
            epoch: self.epoch().0,
            node: ctx.directory.me.0,
            load: ctx.load,
            match_value: at.match_value,
            keyhash: at.keyhash,
            keyspace: self.partition.keyspace.0,
            ..Header::default()
        }
    }
}

/// Copies of one version to one reader: after so many it is left to the next version or order, or
/// to the next read that comes home. A reader that is down takes that long to be ordered away.
const SENDS_MAX: u32 = 6;

/// Reads come home for about a round trip after each write. What they cost for so long where a mark
/// was lost is little, and so are copies to all readers that often.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// Answers held back per partition, about 200 bytes each; one more is given at once.
const HELD_MAX: usize = 1_024;

/// An answer is held back for twice the way of a copy: one that is lost is not worth a client's
/// time. Timers are no finer than this.
const HOLD_MIN: Duration = Duration::from_millis(1);
/// A client sends its request again about then.
const HOLD_MAX: Duration = Duration::from_millis(20);
