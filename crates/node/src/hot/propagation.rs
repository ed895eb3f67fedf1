//! The tail of a hot key: sends copies of what it commits to the readers, and lets a client know of
//! its write when they have them.
//!
//! Nothing here decides what anybody may be shown: a copy that is lost or late costs a detour by
//! the tail.

use crate::engine::Engine;
use crate::hot::delegation::records::DelegationTable;
use crate::hot::publications::DirectoryKey;
use crate::hot::publish::publishes;
use crate::hot::push::push_copies;
use crate::hot::registrations::Registrations;
use crate::replica::member::Member;
use crate::replica::sessions::outcome::Outcome;
use crate::replica::write::{Write, changes_state};
use crate::shard::context::Context;
use crate::shard::reply::{answer_write, answer_write_when};
use crate::shard::waits::Waits;
use cluster::{Incarnation, Mutant, NodeId, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Endpoint, Generation, Header, HotCopied, Op, Version};

/// The hot keys of a partition that this node is the tail of.
#[derive(Debug, Default)]
pub(crate) struct Propagations {
    table: BTreeMap<Box<[u8]>, Propagation>,
    /// Answers held back, over all keys.
    held: usize,
}

/// A hot key at its tail.
#[derive(Debug)]
struct Propagation {
    /// No version of it that was ever shown is above this: that of its record, if it has one.
    newest: Version,
    /// The incarnation of the switch, and the generation of the key there, that the readers have
    /// spoken for.
    told_for: (Incarnation, Generation),
    readers: Vec<Reader>,
    /// The version that was sent last, and when.
    sent: Version,
    sent_at: Instant,
    /// How often the newest version was sent.
    sends: u32,
    /// When to send it, or to send it again.
    due: Option<Instant>,
    held: Vec<HeldAnswer>,
    /// Its entry in the timers.
    wake: Option<Instant>,
}

#[derive(Debug)]
struct Reader {
    node: NodeId,
    incarnation: Incarnation,
    /// The version that it has last said to hold.
    holds: Option<Version>,
}

/// An answer that is held back.
#[derive(Debug)]
struct HeldAnswer {
    until: Until,
    deadline: Instant,
    header: Header,
    outcome: Outcome,
}

/// What an answer waits for.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// All readers hold this version; after the deadline it is given all the same.
    Copied(Version),
    /// This version is published; after the deadline it is not given: the client asks again.
    Published(Version),
}

impl Propagation {
    fn all_hold(&self, version: Version) -> bool {
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

/// What a tail goes by of the rest of its replica.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'a> {
    pub(crate) member: &'a Member,
    pub(crate) registrations: &'a Registrations,
    pub(crate) delegations: &'a DelegationTable,
    /// The newest version of any tombstone collected here.
    pub(crate) collected: Version,
}

impl Tail<'_> {
    /// What is said to be the version of a key without a record: no version of the key that was
    /// ever shown by its home is newer.
    ///
    /// That is what was collected of the partition. But tombstones of other keys may have been
    /// collected since the key left, whose versions are above all of its delegation, and of
    /// those its home knows nothing. All that it has shown is older than its DELEGATE.
    pub(crate) fn absent_version(&self, key: &[u8]) -> Version {
        let present = self.delegations.present(key);
        let delegated_at = present.map_or(Version::ABOVE_ALL, |it| it.delegated_at);
        self.collected.min(delegated_at)
    }
}

impl Propagations {
    /// The version that this tail vouches for of a hot key; `None` if it is not hot, or this is not
    /// the tail.
    pub(crate) fn newest(&self, key: &[u8]) -> Option<Version> {
        if self.table.is_empty() {
            return None;
        }
        self.table.get(key).map(|propagation| propagation.newest)
    }

    /// Begins an epoch: a tail propagates every key that is registered, another member none.
    pub(crate) fn enter<E: Engine>(&mut self, ctx: &mut Context<'_, E>, tail: &Tail<'_>) {
        let id = tail.member.id();
        ctx.hot.publications.retain(|other| other != id);
        ctx.hot.deferred.retain(|other| other != id);
        let keys: Vec<Box<[u8]>> = tail.registrations.iter().map(|(key, _)| key.into()).collect();
        for key in keys {
            self.propagate_or_stop(ctx, tail, &key);
        }
    }

    /// The registration of a key has changed, or this node's role has.
    pub(crate) fn propagate_or_stop<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        key: &[u8],
    ) {
        let registration = tail.registrations.get(key).copied();
        // Of a key that is delegated this node does not know the newest state.
        let propagations = tail.member.is_tail() && tail.delegations.present(key).is_none();
        let Some(registration) = registration.filter(|_| propagations) else {
            self.stop_propagation(ctx, tail, key);
            return;
        };
        if !self.table.contains_key(key) {
            let at = tail.member.key_ref(&registration.header(), key);
            let known = ctx.engine.read(&at, |record| record.map(|r| r.version));
            let propagation = Propagation {
                newest: known.unwrap_or_else(|| tail.absent_version(key)),
                told_for: (ctx.hot.switch(), Generation::NONE),
                readers: Vec::new(),
                sent: Version::NONE,
                sent_at: ctx.now,
                sends: 0,
                due: None,
                held: Vec::new(),
                wake: None,
            };
            self.table.insert(key.into(), propagation);
        }
        self.follow_readers(ctx, tail, key);
    }

    fn stop_propagation<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        key: &[u8],
    ) {
        let delegated = tail.delegations.present(key).is_some();
        let Some((key, propagation)) = self.table.remove_entry(key) else { return };
        self.held -= propagation.held.len();
        if let Some(wake) = propagation.wake {
            ctx.hot.timers.remove(&(wake, tail.member.id(), key));
        }
        // What is held back here is committed; but where another is the tail now, that one may have
        // shown more since, and the head answers a retry.
        // And while the key has an entry in the directory, what waits to be published goes on
        // waiting: the client asks again.
        if tail.member.is_tail() {
            for held in propagation.held {
                if !delegated || matches!(held.until, Until::Copied(_)) {
                    answer_write(ctx, &held.header, &held.outcome);
                }
            }
        }
    }

    /// Who is to hold copies has changed, or to whom they speak.
    pub(crate) fn follow_order<E: Engine>(&mut self, ctx: &mut Context<'_, E>, tail: &Tail<'_>) {
        let keys: Vec<Box<[u8]>> = self.table.keys().cloned().collect();
        for key in keys {
            self.follow_readers(ctx, tail, &key);
        }
    }

    fn follow_readers<E: Engine>(&mut self, ctx: &mut Context<'_, E>, tail: &Tail<'_>, key: &[u8]) {
        let Some(propagation) = self.table.get_mut(key) else { return };
        let space = tail.member.partition.keyspace;
        let generation =
            ctx.hot.entry(space, key).map_or(Generation::NONE, |entry| entry.generation);
        let told_for = (ctx.hot.switch(), generation);
        let before = std::mem::take(&mut propagation.readers);
        let before = if propagation.told_for == told_for { before } else { Vec::new() };
        // The tail reads from what it commits: it needs no copy, and says so to nobody.
        let others = ctx.hot.holders(space, key).filter(|(node, _)| *node != ctx.directory.me);
        let said = |node, incarnation| {
            before.iter().find(|r| r.node == node && r.incarnation == incarnation)
        };
        propagation.readers = others
            .map(|(node, incarnation)| Reader {
                node,
                incarnation,
                holds: said(node, incarnation).and_then(|r| r.holds),
            })
            .collect();
        propagation.told_for = told_for;
        propagation.sends = 0;
        let complete = propagation.all_hold(propagation.newest);
        // By the timers: there may be many such keys at once.
        propagation.due = (!complete).then_some(ctx.now);
        self.release(ctx, tail, key);
    }

    /// The committed state of a key has changed. While copies of an earlier one are under way, the
    /// next wait: a key that is written faster than copies travel is copied once in so long.
    pub(crate) fn propagate_state<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        key: &[u8],
        version: Version,
    ) {
        let Some(propagation) = self.table.get_mut(key) else { return };
        propagation.newest = version;
        propagation.sends = 0;
        let back = propagation.sent_at + ctx.hot.rtt.smoothed().unwrap_or_default();
        if back > ctx.now && !propagation.all_hold(propagation.sent) {
            propagation.due = Some(back);
            self.arm(ctx, tail, key);
        } else {
            self.send_copies(ctx, tail, key);
        }
    }

    /// Sends the newest state to every reader that has not said to hold it.
    fn send_copies<E: Engine>(&mut self, ctx: &mut Context<'_, E>, tail: &Tail<'_>, key: &[u8]) {
        let (id, Some(registration)) = (tail.member.id(), tail.registrations.get(key).copied())
        else {
            return;
        };
        let at = registration.header();
        let header = tail.member.hot_header(ctx, &at);
        let place = tail.member.key_ref(&at, key);
        let Some(propagation) = self.table.get_mut(key) else { return };
        let newest = propagation.newest;
        let lacking = propagation.readers.iter().filter(|r| r.holds < Some(newest));
        let to: Vec<Endpoint> =
            lacking.filter_map(|r| ctx.directory.endpoint(r.node, id)).collect();
        if ctx.leased && !to.is_empty() {
            propagation.sends += 1;
            ctx.counters.hot_copies_sent += to.len() as u64;
            let out = &mut *ctx.out;
            ctx.engine.read(&place, |record| {
                let version = record.map_or(newest, |r| r.version);
                push_copies(out, &to, &header, (key, version), record.as_ref());
            });
        }
        (propagation.sent, propagation.sent_at) = (newest, ctx.now);
        let again = !to.is_empty() && propagation.sends < SENDS_MAX;
        propagation.due = again.then(|| ctx.now + ctx.hot.rtt.timeout(propagation.sends));
        self.arm(ctx, tail, key);
    }

    /// A reader has said what it holds.
    pub(crate) fn handle_copied<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        header: &Header,
    ) {
        let HotCopied { held } = HotCopied::of(header);
        for key in tail.registrations.with_hash(header.keyhash) {
            let Some(propagation) = self.table.get_mut(&key) else { continue };
            let mut readers = propagation.readers.iter_mut();
            let Some(reader) = readers.find(|r| r.node.0 == header.node) else { continue };
            let first = reader.holds < Some(held) && propagation.sends == 1;
            if first && held == propagation.newest {
                ctx.hot.rtt.sample(ctx.now.since(propagation.sent_at), 1);
            }
            reader.holds = reader.holds.max(Some(held));
            if propagation.all_hold(propagation.newest) {
                propagation.due = None;
            } else if propagation.sends == 0 && propagation.all_hold(propagation.sent) {
                self.send_copies(ctx, tail, &key);
            }
            self.release(ctx, tail, &key);
        }
    }

    /// A timer of the key has run out.
    pub(crate) fn handle_due<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        key: &[u8],
    ) {
        let Some(propagation) = self.table.get_mut(key) else { return };
        propagation.wake = None;
        if propagation.is_quiet(ctx.now) {
            // What they said before may have reached the switch in another order.
            self.propagate_anew(ctx, tail, key);
        } else if propagation.due.is_some_and(|due| due <= ctx.now) {
            self.send_copies(ctx, tail, key);
        }
        self.release(ctx, tail, key);
    }

    /// Sends the state to all readers of the key, whatever they have said to hold.
    pub(crate) fn propagate_anew<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        key: &[u8],
    ) {
        let Some(propagation) = self.table.get_mut(key) else { return };
        propagation.readers.iter_mut().for_each(|reader| reader.holds = None);
        propagation.sends = 0;
        self.send_copies(ctx, tail, key);
    }

    /// A read of this key was sent home by the switch, or by a client whom a reader had nothing
    /// for. If the copies went out long ago the switch does not know of them, or they are lost:
    /// they are sent again, by the timers, so that the readers say once more what they hold.
    pub(crate) fn remind<E>(&self, ctx: &mut Context<'_, E>, id: PartitionId, key: &[u8]) {
        if self.table.is_empty() {
            return;
        }
        let quiet = self.table.get(key).is_some_and(|it| it.is_quiet(ctx.now));
        if quiet && !ctx.mutant.is(Mutant::NeverRemind) {
            ctx.hot.timers.insert((ctx.now, id, key.into()));
        }
    }

    /// Gives the answers that were held back long enough.
    pub(crate) fn release<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        key: &[u8],
    ) {
        let id = tail.member.id();
        let Some(registration) = tail.registrations.get(key) else { return };
        let place = DirectoryKey::new(id, &registration.header());
        let Some(propagation) = self.table.get_mut(key) else { return };
        for held in std::mem::take(&mut propagation.held) {
            let late = held.deadline <= ctx.now;
            let (ready, waits) = match held.until {
                Until::Copied(version) => (late || propagation.all_hold(version), true),
                Until::Published(version) => {
                    (ctx.hot.publications.is_published(place, version), !late)
                }
            };
            if ready {
                answer_write(ctx, &held.header, &held.outcome);
            } else if waits {
                propagation.held.push(held);
                continue;
            }
            self.held -= 1;
        }
        self.arm(ctx, tail, key);
    }

    /// Answers a client whose write this tail has committed, or sees to it that it will be.
    pub(crate) fn answer_or_hold<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        write: &Write<'_>,
        outcome: &Outcome,
        waits: Waits,
    ) {
        if outcome.version.is_none() && tail.delegations.present(write.key).is_some() {
            // The key has left meanwhile, and its tail does not publish any more: the
            // client asks again, and the head does.
            return;
        }
        let Some(until) = self.until(ctx, tail, write, outcome) else {
            answer_write_when(ctx, &write.header, outcome, waits);
            return;
        };
        let Some(propagation) = self.table.get_mut(write.key) else { return };
        if self.held < HELD_MAX {
            let twice = ctx.hot.rtt.smoothed().map_or(HOLD_MAX, |rtt| rtt * 2);
            let wait = match until {
                Until::Copied(_) => twice.clamp(HOLD_MIN, HOLD_MAX),
                Until::Published(_) => HOLD_MAX,
            };
            let deadline = ctx.now + wait;
            let (header, outcome) = (write.header, *outcome);
            propagation.held.push(HeldAnswer { until, deadline, header, outcome });
            self.held += 1;
            self.arm(ctx, tail, write.key);
        } else if matches!(until, Until::Copied(_)) {
            answer_write(ctx, &write.header, outcome);
        }
    }

    /// What the answer to a write has to wait for.
    fn until<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        tail: &Tail<'_>,
        write: &Write<'_>,
        outcome: &Outcome,
    ) -> Option<Until> {
        if outcome.origin == Op::Batch {
            return None; // What it shows was published before it was sent down the chain.
        }
        let newest = self.newest(write.key)?;
        if outcome.version.is_none() {
            // Version 0 says that there is no value, and tells the switch nothing. A base that is
            // no version of the key, but of a batch that only checked it, is above all there is.
            let base = write.fixed.base;
            let version = if base.is_none() { newest } else { base.min(newest) };
            let published = publishes(ctx, tail.member, &write.header, version);
            return (!published).then_some(Until::Published(version));
        }
        let version = write.version();
        let changes = write.effect().is_some_and(changes_state);
        let propagation = self.table.get(write.key)?;
        (changes && !propagation.all_hold(version)).then_some(Until::Copied(version))
    }

    fn arm<E: Engine>(&mut self, ctx: &mut Context<'_, E>, tail: &Tail<'_>, key: &[u8]) {
        let id = tail.member.id();
        let Some(propagation) = self.table.get_mut(key) else { return };
        let wants = propagation.wants();
        if wants != propagation.wake {
            if let Some(wake) = propagation.wake.take() {
                ctx.hot.timers.remove(&(wake, id, key.into()));
            }
            ctx.hot.timers.extend(wants.map(|at| (at, id, key.into())));
            propagation.wake = wants;
        }
    }
}

/// Copies of one version to one reader: after so many it is left to the next version or order, or
/// to the next read that comes home. A reader that is down takes that long to be ordered away.
const SENDS_MAX: u32 = 6;

/// Reads come home for about a round trip after each write. What they cost for so long where a
/// holder was not noted is little, and so are copies to all readers that often.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// Answers held back per partition, about 200 bytes each; one more is given at once.
const HELD_MAX: usize = 1_024;

/// An answer is held back for twice the way of a copy: one that is lost is not worth a client's
/// time. Timers are no finer than this.
const HOLD_MIN: Duration = Duration::from_millis(1);
/// A client sends its request again about then.
const HOLD_MAX: Duration = Duration::from_millis(20);
