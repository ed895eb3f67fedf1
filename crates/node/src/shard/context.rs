//! What all replicas of a shard share, and what one of them works with while it handles a packet.

use crate::engine::Engine;
use crate::heat::{Heat, Use};
use crate::hot::Hot;
use crate::lending::Lending;
use crate::lending::tracker::TrackerConfig;
use crate::replica::big::parts::PartTimes;
use crate::replica::sessions::table::SESSIONS_MAX;
use crate::shard::cluster_view::ClusterView;
use crate::shard::counters::Counters;
use crate::shard::direct::Direct;
use crate::shard::noted::Noted;
use crate::shard::room::Stock;
use crate::shard::timers::Timers;
use crate::shard::turn::Turn;
use crate::shard::waits::{AgreedAtRisk, Waits};
use cluster::{ClockAhead, Incarnation, Keyspace, MaybeMutant, Mutant, Tenure};
use machine::{Instant, Outbox, UnixMs};
use std::time::Duration;
use wire::{DropReason, Room};

/// What the replicas of a shard share.
#[derive(Debug)]
pub(crate) struct Shard<E> {
    pub(crate) engine: E,
    pub(crate) tenure: Tenure,
    pub(crate) direct: Direct,
    /// How far the cluster's clock is ahead of this node's; `None` until it was told.
    pub(crate) ahead: Option<ClockAhead>,
    /// Requests per second that the node can serve; 0 if that is not known.
    pub(crate) rate: u32,
    /// What is to be sent once the turn is durable.
    pub(crate) held: Outbox,
    /// What is to be sent when the turn ends: it shows nothing that is not durable.
    pub(crate) free: Outbox,
    /// What is to be sent once the turn is durable, and can wait for another one.
    pub(crate) late: Outbox,
    /// When the last packet came, or whatever was handled last.
    pub(crate) now: Instant,
    /// What was put on record and is not on disk, if the engine syncs apart.
    pub(crate) noted: Noted,
    /// Whether replica records were given or taken, and that is not durable yet: all that is served
    /// rests on it.
    pub(crate) rests_on_replicas: bool,
    pub(crate) agreed_at_risk: AgreedAtRisk,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,
    pub(crate) heat: Heat,
    pub(crate) hot: Hot,
    pub(crate) lending: Lending,
    pub(crate) part_times: PartTimes,
    pub(crate) sessions_max: usize,
    pub(crate) turn: Turn,
    pub(crate) stock: Stock,
    pub(crate) mutant: MaybeMutant,
    pub(crate) scratch: Vec<u8>,
}

impl<E: Engine> Shard<E> {
    pub(crate) fn new(
        now: Instant,
        engine: E,
        incarnation: Incarnation,
        rate: u32,
        tracker: &TrackerConfig,
    ) -> Self {
        Self {
            hot: Hot::restore(now, &engine),
            engine,
            tenure: Tenure::new(incarnation),
            direct: Direct::new(incarnation),
            ahead: None,
            rate,
            held: Outbox::default(),
            free: Outbox::default(),
            late: Outbox::default(),
            now,
            noted: Noted::default(),
            rests_on_replicas: true,
            agreed_at_risk: AgreedAtRisk::default(),
            timers: Timers::new(),
            counters: Counters::default(),
            heat: Heat::new(now, rate),
            lending: Lending::new(now, incarnation, tracker),
            part_times: PartTimes::default(),
            sessions_max: SESSIONS_MAX,
            turn: Turn::default(),
            stock: Stock::default(),
            mutant: MaybeMutant::default(),
            scratch: Vec::new(),
        }
    }

    /// The same for a packet that has come, if the node has the right to serve it.
    pub(crate) fn admit<'a>(
        &'a mut self,
        directory: &'a ClusterView,
        now: Instant,
        load: u16,
        direct: bool,
    ) -> Result<Context<'a, E>, DropReason> {
        let unleased = self.mutant.is(Mutant::TakeUnleased);
        let admitted = !direct || self.direct.admit(now) || unleased;
        let ctx = self.context(directory, now, load);
        if admitted && ctx.leased { Ok(ctx) } else { Err(DropReason::NoLease) }
    }

    /// What a replica works with at `now`. `load` is how many datagrams were found waiting.
    pub(crate) fn context<'a>(
        &'a mut self,
        directory: &'a ClusterView,
        now: Instant,
        load: u16,
    ) -> Context<'a, E> {
        self.now = now;
        let room = self.stock.room(self.engine.usage());
        let apart = self.engine.syncs_apart() && !self.mutant.is(Mutant::AnswerUnsynced);
        let waits = self.rests_on_replicas || !apart;
        self.lending.right_until = self.direct.until();
        Context {
            now,
            time: time(self.ahead, self.mutant, now),
            load,
            rate: self.rate,
            lease: self.tenure.length(),
            leased: self.tenure.holds(now) || self.mutant.is(Mutant::IgnoreLease),
            engine: &mut self.engine,
            out: &mut self.held,
            free: if waits { None } else { Some(&mut self.free) },
            late: apart.then_some(&mut self.late),
            noted: apart.then_some(&mut self.noted),
            agreed_at_risk: &mut self.agreed_at_risk,
            timers: &mut self.timers,
            counters: &mut self.counters,
            heat: &mut self.heat,
            hot: &mut self.hot,
            lending: &mut self.lending,
            direct: &mut self.direct,
            directory,
            part_times: self.part_times,
            sessions_max: self.sessions_max,
            turn: &mut self.turn,
            room,
            uploads_free: self.stock.uploads_free(),
            mutant: self.mutant,
            scratch: &mut self.scratch,
        }
    }
}

impl<E> Context<'_, E> {
    /// Bytes that were ever written to be sent.
    pub(crate) fn written(&self) -> u64 {
        let apart = [&self.free, &self.late].into_iter().flatten();
        self.out.written() + apart.map(|out| out.written()).sum::<u64>()
    }
}

/// What time it is in the cluster, of whose clock the node was told how far it is ahead. Nobody has
/// a lease who was not told.
fn time(told: Option<ClockAhead>, mutant: MaybeMutant, now: Instant) -> UnixMs {
    let own = mutant.is(Mutant::OwnClock);
    told.filter(|_| !own).unwrap_or_default().time(now)
}

/// What a replica works with while it handles one packet: everything of the node but the replica.
pub(crate) struct Context<'a, E> {
    /// By the clock of this node, for all that takes some time.
    pub(crate) now: Instant,
    /// By the clock of the cluster, for all that happens at some time.
    pub(crate) time: UnixMs,
    /// Datagrams found waiting, for the load report.
    pub(crate) load: u16,
    /// Requests per second that the node can serve; 0 if that is not known.
    pub(crate) rate: u32,
    pub(crate) engine: &'a mut E,
    pub(crate) out: &'a mut Outbox,
    /// Where answers go that show nothing which is not durable, if they need not wait.
    pub(crate) free: Option<&'a mut Outbox>,
    /// Where goes what can wait for a later sync, if syncs go on apart.
    pub(crate) late: Option<&'a mut Outbox>,
    /// Where it is noted which writes the next sync has, if somebody wants to know.
    pub(crate) noted: Option<&'a mut Noted>,
    /// A tail that vouches rests on this.
    pub(crate) agreed_at_risk: &'a mut AgreedAtRisk,
    pub(crate) timers: &'a mut Timers,
    pub(crate) counters: &'a mut Counters,
    pub(crate) heat: &'a mut Heat,
    pub(crate) hot: &'a mut Hot,
    pub(crate) lending: &'a mut Lending,
    direct: &'a mut Direct,
    pub(crate) directory: &'a ClusterView,
    pub(crate) part_times: PartTimes,
    /// Clients that a partition remembers.
    pub(crate) sessions_max: usize,
    pub(crate) turn: &'a mut Turn,
    pub(crate) mutant: MaybeMutant,
    /// Whether the node has a lease: without one it sends nothing and orders nothing.
    pub(crate) leased: bool,
    /// How long its leases last.
    pub(crate) lease: Duration,
    /// This node's own room.
    pub(crate) room: Room,
    /// Bytes of parts of unfinished uploads that it has room for.
    pub(crate) uploads_free: u64,
    /// A buffer to build payloads in, kept for its capacity: whoever takes it clears it and puts it
    /// back.
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl<E> Context<'_, E> {
    /// Where a message goes that waits for this.
    pub(crate) fn outbox(&mut self, waits: Waits) -> &mut Outbox {
        self.outbox_and_engine(waits).0
    }

    /// The same, with the engine to fill it from.
    pub(crate) fn outbox_and_engine(&mut self, waits: Waits) -> (&mut Outbox, &E) {
        let other = match waits {
            Waits::Turn => None,
            Waits::No => self.free.as_deref_mut(),
            Waits::Late => self.late.as_deref_mut(),
        };
        (other.unwrap_or(self.out), self.engine)
    }

    /// A client asked for this key, and was served. Where caches hold what is hot, the controller
    /// can do nothing about a burst, so it is not told at once.
    pub(crate) fn see_use(&mut self, of: &Keyspace, keyhash: u64, key: &[u8], how: Use) {
        if of.hot.caches() {
            self.heat.see_hot(of.id, keyhash, key, how);
        } else {
            self.heat.see(of.id, keyhash, key, how);
        }
    }

    /// A cache wants to be lent something, which takes a right that no fence ends.
    pub(crate) fn wants_to_lend(&mut self) {
        self.direct.ask(self.now);
    }

    /// Whether this member is to take no piece of a copy.
    pub(crate) fn refuses_copies(&self) -> bool {
        self.room != Room::Plenty
    }

    /// Whether a member that has no room refuses what comes down the chain, which it must not.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.mutant.is(Mutant::MembersRefuse) && self.room >= Room::Full
    }
}
