//! The head of a key that is away: asks all nodes of its trip, once that is over, what they hold of
//! it, and brings the newest of it home.

use crate::engine::Engine;
use crate::replica::{Context, PENDING_MAX, Replica};
use crate::trips::{OVER_MAX, Present, bits_of, spans};
use cluster::{HotEntry, Keyspace, NodeId, Plant, Trip};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{
    ChainWriteBody, DropReason, Effect, Endpoint, Found, Header, LeaveBody, Op, ReturnBody,
    RoamEndBody, RoamFetchBody, TripOverBody,
};

/// The keys of a partition that are being brought home.
#[derive(Debug, Default)]
pub(crate) struct Homecomings {
    table: BTreeMap<Box<[u8]>, Homecoming>,
    /// When nodes were last told of trips that have ended.
    told_at: Instant,
}

/// A trip that is over, as far as its nodes have told of it.
#[derive(Debug)]
struct Homecoming {
    trip: u64,
    /// Revision of the order that ended it, as far as this head knows.
    ended: u64,
    asked_at: Instant,
    /// Who takes no more writes of it and has said all.
    told: BTreeSet<NodeId>,
    newest: Option<(u64, Box<[u8]>)>,
}

impl Homecoming {
    /// Whether so many nodes have told that nothing of the trip can be unknown.
    fn is_told(&self, present: &Present, plant: Option<Plant>) -> bool {
        self.told.len() + present.may_be_silent(plant) >= present.nodes.len()
    }
}

impl Homecomings {
    /// Whether the nodes of the key's trip are being asked.
    pub(crate) fn knows(&self, key: &[u8]) -> bool {
        self.table.contains_key(key)
    }

    /// In another epoch, another head may ask.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
    }
}

/// What the order asks of the head for one key's trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Nothing, or nothing that could be done.
    None,
    /// The key is to go on this trip.
    Leave(Trip),
    /// The trip that it is on is over.
    Fetch,
}

/// Before a node that has not answered is asked again.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// For how long a RETURN is told of, and how often.
const TELL_FOR: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_millis(500);

impl Replica {
    /// What is to be done about the trips of a key. The caller has seen that no change of the key
    /// is pending.
    pub(crate) fn errand<E: Engine>(&self, ctx: &Context<'_, E>, key: &[u8]) -> Errand {
        let entry = ctx.hot.entry(self.partition.keyspace, key);
        let wanted = entry.and_then(|entry| entry.trip);
        if let Some(present) = self.trips.present(key) {
            // A trip with a later number than the order's was begun by a newer one than is
            // installed here.
            let late = present.number > ctx.hot.revision();
            let goes_on = wanted.is_some_and(|trip| trip.number == present.number);
            return if late || goes_on { Errand::None } else { Errand::Fetch };
        }
        match (entry, wanted) {
            (Some(entry), Some(trip)) if self.may_leave(ctx, key, entry, trip) => {
                Errand::Leave(trip)
            }
            _ => Errand::None,
        }
    }

    fn may_leave<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        key: &[u8],
        entry: &HotEntry,
        trip: Trip,
    ) -> bool {
        let marked = self.marks.get(key).is_some_and(|mark| mark.stay == entry.stay);
        let trips = self.trips.get(key);
        let fresh = trips.is_none_or(|it| !it.knows(trip.number) && it.over.len() < OVER_MAX);
        let keyspace = ctx.directory.keyspace(self.partition.keyspace);
        let hashed = keyspace.is_some_and(|it| !Keyspace::is_ordered(it));
        if !marked || !fresh || !hashed || key.len() > wire::ROAMING_KEY_MAX {
            return false;
        }
        // What time ends has to be ended at home.
        let ends = |expiry_ms: u64, tombstone: bool| expiry_ms != 0 && !tombstone;
        let pending = self.newest_pending(key);
        let pending_ends = pending
            .is_some_and(|write| ends(write.fixed.expiry_ms, write.effect() != Some(Effect::Put)));
        let Some(at) = self.place_of(ctx, key) else { return false };
        let committed_ends = ctx.engine.read(&self.key_ref(&at, key), |record| {
            record.is_some_and(|r| ends(r.expiry_ms, r.tombstone))
        });
        !pending_ends && !committed_ends
    }

    /// Lets a key go.
    pub(crate) fn order_leave<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        trip: Trip,
    ) {
        let readers = ctx.hot.readers(self.partition.keyspace, key);
        let nodes: Vec<NodeId> = readers.map(|(node, _)| node).collect();
        let fixed = LeaveBody { switch: ctx.hot.switch().0, replicas: trip.replicas };
        let value = [&fixed.to_bytes()[..], &bits_of(&nodes)].concat();
        self.order_change(ctx, key, Effect::Leave, trip.number, &value);
    }

    /// Orders a change of what is known of a hot key: of its mark or its trips.
    pub(crate) fn order_change<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        effect: Effect,
        number: u64,
        value: &[u8],
    ) {
        let Some(at) = self.place_of(ctx, key) else { return };
        let header = self.own_header(&at, key);
        let fixed = ChainWriteBody {
            base: self.newest_version_pending(key).unwrap_or(0),
            stable: self.history.stable(),
            result: number,
            effect: effect as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        self.order(ctx, &header, fixed, key, value);
    }

    /// Asks those nodes of a trip that have not yet told what they hold of it, if that matters.
    pub(crate) fn fetch<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let Some(present) = self.trips.present(key) else { return };
        let (now, id) = (ctx.now, self.id());
        let Some(at) = self.place_of(ctx, key) else { return };
        let known = self.homecomings.table.get(key).filter(|it| it.trip == present.number);
        if known.is_some_and(|it| it.is_told(present, ctx.plant)) {
            // There was no room for the RETURN when the last of them told.
            self.bring_home(ctx, key);
            return;
        }
        if known.is_some_and(|it| now < it.asked_at + ASK_EVERY) {
            return;
        }
        let ended = known.map_or(ctx.hot.revision(), |it| it.ended);
        let silent = |node: &&NodeId| known.is_none_or(|it| !it.told.contains(node));
        let nodes = present.nodes.iter().filter(silent);
        let to: Vec<Endpoint> = nodes.filter_map(|it| ctx.directory.endpoint(*it, id)).collect();
        let trip = present.number;
        let body = RoamFetchBody { trip, ended }.to_bytes();
        self.tell_nodes(ctx, Op::RoamFetch, (&at, key), &body, &to);
        let fresh =
            || Homecoming { trip, ended, asked_at: now, told: BTreeSet::new(), newest: None };
        let it = self.homecomings.table.entry(key.into()).or_insert_with(fresh);
        if it.trip != trip {
            *it = fresh();
        }
        it.asked_at = now;
    }

    fn tell_nodes<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        op: Op,
        (at, key): (&Header, &[u8]),
        body: &[u8],
        to: &[Endpoint],
    ) {
        let header = Header {
            op: op as u8,
            key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
            ..self.hot_header(ctx, at)
        };
        for to in to.iter().filter(|_| ctx.leased) {
            ctx.out.push(*to, |out| {
                wire::emit(out, &header, &[body, key]);
            });
        }
    }

    /// A node tells what it holds of a key from a trip.
    pub(crate) fn handle_found<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        from: Endpoint,
        header: &Header,
        (trip, key): (u64, &[u8]),
        found: Found<'_>,
    ) -> Result<(), DropReason> {
        let node = NodeId(header.node);
        if !ctx.directory.owns(node, from) {
            return Err(DropReason::NotFromMember);
        }
        let Some(present) = self.trips.present(key).filter(|it| it.number == trip) else {
            return Ok(());
        };
        let Some(it) = self.homecomings.table.get_mut(key).filter(|it| it.trip == trip) else {
            return Ok(());
        };
        if !present.nodes.contains(&node) {
            return Err(DropReason::NotFromMember);
        }
        match found {
            Found::Value(value) => {
                let version = header.object_version;
                if !spans(present.left, version) {
                    return Err(DropReason::Implausible);
                }
                if it.newest.as_ref().is_none_or(|(known, _)| *known < version) {
                    it.newest = Some((version, value.into()));
                }
            }
            Found::Young if ctx.plant != Some(Plant::TrustTheYoung) => return Ok(()),
            Found::Young | Found::Nothing => {}
        }
        it.told.insert(node);
        if it.is_told(present, ctx.plant) {
            self.bring_home(ctx, key);
        }
        Ok(())
    }

    /// Orders the RETURN of a key, if that may be ordered now; else it is tried again.
    fn bring_home<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let room = self.pending_mark(key).is_none() && self.pending.len() + 1 < PENDING_MAX;
        if !self.is_head() || !self.partition.open || !ctx.leased || !room {
            return;
        }
        let Some(Present { left, switch, .. }) = self.trips.present(key).cloned() else { return };
        let Some(it) = self.homecomings.table.remove(key) else { return };
        let (newest, value) = it.newest.unwrap_or_default();
        let fixed = ReturnBody { newest, ended: it.ended, left, switch: switch.0 };
        let value = [&fixed.to_bytes()[..], &value].concat();
        self.order_change(ctx, key, Effect::Return, it.trip, &value);
    }

    /// Tells the nodes of trips that ended lately that they may forget them.
    pub(crate) fn tell_ends<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if !self.is_head() || ctx.now < self.homecomings.told_at + TELL_EVERY {
            return;
        }
        self.homecomings.told_at = ctx.now;
        let now_ms = ctx.time.0;
        let tell_ms = u64::try_from(TELL_FOR.as_millis()).expect("seconds");
        let lately = |trip: &&TripOverBody| trip.since_ms.saturating_add(tell_ms) > now_ms;
        let ended = |(key, trips): (&[u8], &crate::trips::Trips)| {
            let last = trips.over.last().filter(lately)?;
            Some((Box::<[u8]>::from(key), last.number))
        };
        let ended: Vec<(Box<[u8]>, u64)> = self.trips.iter().filter_map(ended).collect();
        for (key, trip) in ended {
            let Some(at) = self.place_of(ctx, &key) else { continue };
            let to = ctx.directory.endpoints(self.id());
            let body = RoamEndBody { trip }.to_bytes();
            self.tell_nodes(ctx, Op::RoamEnd, (&at, &key), &body, &to);
        }
    }
}

impl Present {
    /// How many of its nodes need not answer: of each chain one has.
    fn may_be_silent(&self, plant: Option<Plant>) -> usize {
        if plant == Some(Plant::ReturnEarly) {
            return self.nodes.len().saturating_sub(1);
        }
        usize::from(self.replicas).saturating_sub(1)
    }
}
