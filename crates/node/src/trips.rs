//! Trips: on which keys of a partition writes go anywhere, and how those that are over ended
//! (section 9 of `spec/protocol.md`).
//!
//! Like marks they are changed by chain writes of the head, kept on record by every member and
//! copied to a joiner. What becomes of a write that comes home depends on nothing else.

use crate::big::place;
use crate::engine::{Engine, Record};
use crate::hot::Hot;
use crate::notes::trips_name;
use crate::replica::{Context, Replica, Write};
use crate::session::IDLE_MAX;
use cluster::{Life, NodeId, Plant};
use std::collections::BTreeMap;
use wire::{
    Code, Effect, Header, LeaveBody, MOMENT_TRIPS_BITS, ReturnBody, TRIP_VERSIONS, TripOverBody,
    TripPresentBody, TripsBody, hop_flag,
};

/// The trips of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trips {
    /// Version of the write that changed them last; 0 if they came with the copy of the partition,
    /// which every live change is newer than.
    version: u64,
    pub(crate) present: Option<Present>,
    /// Oldest first.
    pub(crate) over: Vec<TripOverBody>,
}

/// The trip that a key is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) number: u64,
    /// Version of its LEAVE.
    pub(crate) left: u64,
    /// The life of the switch that it is on.
    pub(crate) switch: Life,
    /// Nodes in the chain of a write.
    pub(crate) replicas: u8,
    /// Nodes that may be in one, in order.
    pub(crate) nodes: Vec<NodeId>,
}

/// What a write that may roam is, when it comes home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was never applied and will not be, but here.
    New,
    /// It took effect on a trip, under this version.
    Applied(u64),
    /// It cannot be told, now or ever.
    Refused(Code),
    /// It is of a trip that nobody remembers: no client waits for it any more.
    Forgotten,
}

/// Trips that are over and kept on record, per key: so many may end while sessions are kept. A key
/// with more stays at home until the oldest is forgotten.
pub(crate) const OVER_MAX: usize = 16;

/// Versions of one trip.
pub(crate) const SPAN: u64 = TRIP_VERSIONS as u64;

impl Trips {
    /// Whether a trip has this number, or had.
    pub(crate) fn knows(&self, number: u64) -> bool {
        let is_present = self.present.as_ref().is_some_and(|trip| trip.number == number);
        is_present || self.over.iter().any(|trip| trip.number == number)
    }

    /// What is kept on record of them, without the version.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let few = |count: usize| u8::try_from(count).expect("bounded by OVER_MAX and NODES_MAX");
        let nodes = self.present.as_ref().map_or(Vec::new(), |trip| bits_of(&trip.nodes));
        let fixed = TripsBody { over: few(self.over.len()), nodes: few(nodes.len()) };
        let mut out = fixed.to_bytes().to_vec();
        for trip in &self.over {
            out.extend(trip.to_bytes());
        }
        if let Some(Present { number, left, switch, replicas, .. }) = self.present {
            let fixed = TripPresentBody { number, left, switch: switch.0, replicas };
            out.extend(fixed.to_bytes());
            out.extend(nodes);
        }
        out
    }

    /// Takes them from the record; `None` if it is none.
    pub(crate) fn from_bytes(version: u64, bytes: &[u8]) -> Option<Self> {
        let (TripsBody { over, nodes }, mut rest) = TripsBody::split(bytes)?;
        let mut trips = Self { version, ..Self::default() };
        for _ in 0..over {
            let (trip, after) = TripOverBody::split(rest)?;
            trips.over.push(trip);
            rest = after;
        }
        if nodes > 0 {
            let (fixed, after) = TripPresentBody::split(rest)?;
            let (bits, after) = after.split_at_checked(nodes.into())?;
            let TripPresentBody { number, left, switch, replicas } = fixed;
            let (switch, nodes) = (Life(switch), nodes_of(bits));
            trips.present = Some(Present { number, left, switch, replicas, nodes });
            rest = after;
        }
        rest.is_empty().then_some(trips)
    }

    /// What is kept on record of them, and since which version.
    fn to_note(&self) -> Vec<u8> {
        [&self.version.to_be_bytes()[..], &self.to_bytes()].concat()
    }

    /// The same, read.
    pub(crate) fn from_note(note: &[u8]) -> Option<Self> {
        let (version, rest) = note.split_first_chunk::<8>()?;
        Self::from_bytes(u64::from_be_bytes(*version), rest)
    }

    /// What a write is that was stamped with this version, or (0) with none.
    fn arrival(&self, request: &Header, installed: u64, switch: Life) -> Arrival {
        let stamped = request.object_version;
        let passed = request.moment() >> MOMENT_TRIPS_BITS;
        let ended = self.over.iter().map(|trip| trip.ended).max().unwrap_or(0);
        if stamped != 0 {
            let trip = self.over.iter().find(|trip| spans(trip.left, stamped));
            return match trip {
                Some(trip) if stamped <= trip.newest => Arrival::Applied(stamped),
                // On a trip after that one it may have been given another stamp since.
                Some(_) if passed < ended => Arrival::Refused(Code::Closed),
                Some(_) => Arrival::New,
                None if self.present.as_ref().is_some_and(|trip| spans(trip.left, stamped)) => {
                    Arrival::Refused(Code::Away)
                }
                None => Arrival::Forgotten,
            };
        }
        if passed < ended {
            return Arrival::Refused(Code::Closed);
        }
        if request.hop_flags & hop_flag::OLD != 0 {
            // A switch of before may have stamped it, and nobody knows that any more. Which one it
            // has passed is known by the installed order alone: by an older one perhaps another.
            if passed != installed {
                return Arrival::Refused(Code::Closed);
            }
            if self.over.iter().any(|trip| trip.switch != switch.0) {
                return Arrival::Refused(Code::Uncertain);
            }
        }
        Arrival::New
    }
}

/// How many versions home leaves to a trip: all of it, but if that is planted.
pub(crate) fn span_left(plant: Option<Plant>) -> u64 {
    if plant == Some(Plant::ResetVersions) { 0 } else { SPAN }
}

/// Whether a version is one of the trip that began with this LEAVE.
pub(crate) fn spans(left: u64, version: u64) -> bool {
    version.checked_sub(left).is_some_and(|after| (1..=SPAN).contains(&after))
}

/// A bit for each node that there may be, as far as there are any. 128 bytes at most, where the ids
/// of all would take a datagram of their own.
pub(crate) fn bits_of(nodes: &[NodeId]) -> Vec<u8> {
    let last = nodes.iter().max().map_or(0, |node| usize::from(node.0) / 8 + 1);
    let mut bits = vec![0; last];
    for NodeId(id) in nodes {
        *bits.get_mut(usize::from(id / 8)).expect("up to the last") |= 1 << (id % 8);
    }
    bits
}

/// The same, read.
fn nodes_of(bits: &[u8]) -> Vec<NodeId> {
    let is_set = |id: &u16| bits.get(usize::from(id / 8)).is_some_and(|it| it >> (id % 8) & 1 != 0);
    (0..wire::NODES_MAX as u16).filter(is_set).map(NodeId).collect()
}

/// The trips of a partition's keys.
#[derive(Debug, Default)]
pub(crate) struct TripTable {
    table: BTreeMap<Box<[u8]>, Trips>,
}

impl TripTable {
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Trips> {
        // Most partitions have none at all.
        if self.table.is_empty() {
            return None;
        }
        self.table.get(key)
    }

    /// The trip that a key is on.
    #[inline]
    pub(crate) fn present(&self, key: &[u8]) -> Option<&Present> {
        self.get(key)?.present.as_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The highest revision of an order that began or ended one of them; 0 for none.
    pub(crate) fn newest_order(&self) -> u64 {
        let orders = |trips: &Trips| {
            let begun = trips.present.as_ref().map(|trip| trip.number);
            trips.over.iter().map(|trip| trip.ended).chain(begun).max()
        };
        self.table.values().filter_map(orders).max().unwrap_or(0)
    }

    /// All keys with any, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Trips)> {
        self.after(None)
    }

    /// Those after a key, or all.
    pub(crate) fn after(&self, key: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &Trips)> {
        let from = key.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let range = self.table.range::<[u8], _>((from, std::ops::Bound::Unbounded));
        range.map(|(key, trips)| (&**key, trips))
    }

    /// Takes what is on record.
    pub(crate) fn recall(&mut self, key: &[u8], trips: Trips) {
        self.table.insert(key.into(), trips);
    }
}

impl Replica {
    /// Whether the home of a key has nothing to say of it: it is on a trip, or about to leave.
    pub(crate) fn is_away(&self, key: &[u8]) -> bool {
        self.trips.present(key).is_some() || self.is_leaving(key)
    }

    /// Whether its home takes a write of a key that is about to return, which is planted.
    pub(crate) fn serves_too_soon<E>(&self, ctx: &Context<'_, E>, key: &[u8]) -> bool {
        ctx.plant == Some(Plant::ServeBeforeReturn) && self.homecomings.knows(key)
    }

    /// How many keys are on trips, or about to leave for one, that the order does not name.
    pub(crate) fn strays(&self, hot: &Hot) -> u64 {
        let named = |key: &[u8]| hot.entry(self.partition.keyspace, key)?.trip;
        let number = |key: &[u8]| named(key).map(|trip| trip.number);
        let present = self.trips.iter().filter_map(|(key, it)| Some((key, it.present.as_ref()?)));
        let away = present.filter(|(key, trip)| number(key) != Some(trip.number)).count();
        let changing = self.keys_with_pending_mark();
        let leaving = changing.filter(|key| self.is_leaving(key) && named(key).is_none()).count();
        (away + leaving) as u64
    }

    fn is_leaving(&self, key: &[u8]) -> bool {
        let change = self.pending_mark(key).and_then(|write| write.effect());
        change == Some(Effect::Leave)
    }

    /// The trip that a key is on, as far as the head has the word of all members for it and it is
    /// not about to end.
    pub(crate) fn settled_trip(&self, key: &[u8]) -> Option<&Present> {
        self.trips.present(key).filter(|_| self.pending_mark(key).is_none())
    }

    /// What a write that may roam is, at the head that knows it neither from sessions nor pending.
    pub(crate) fn arrival<E>(&self, ctx: &Context<'_, E>, request: &Header, key: &[u8]) -> Arrival {
        let trips = self.trips.get(key);
        let arrival = match trips {
            None if request.object_version == 0 => return Arrival::New,
            None => Arrival::Forgotten,
            Some(trips) => trips.arrival(request, ctx.hot.revision(), ctx.hot.switch()),
        };
        match (ctx.plant, arrival) {
            (Some(Plant::RunAgain), Arrival::Applied(_)) => Arrival::New,
            (Some(Plant::TakeLatecomers), Arrival::Refused(_)) => Arrival::New,
            _ => arrival,
        }
    }

    /// The key has left: from here on its home has no part in its writes.
    pub(crate) fn commit_leave<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let Some((LeaveBody { switch, replicas }, bits)) = LeaveBody::split(write.value) else {
            return;
        };
        let (number, left, nodes) = (write.fixed.result, write.version(), nodes_of(bits));
        let present = Present { number, left, switch: Life(switch), replicas, nodes };
        self.last_version = self.last_version.max(left + span_left(ctx.plant));
        if self.change_trips(ctx, write, |trips| trips.present = Some(present)) {
            self.spread_or_stop(ctx, write.key);
        }
    }

    /// The key is home again: what was newest on the trip is its state, under the version that it
    /// was given there.
    pub(crate) fn commit_return<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let Some((fixed, value)) = ReturnBody::split(write.value) else { return };
        let ReturnBody { newest, ended, left, switch } = fixed;
        let (number, since_ms) = (write.fixed.result, ctx.time.0);
        let over = TripOverBody { number, left, newest, ended, switch, since_ms };
        let news = self.change_trips(ctx, write, |trips| {
            trips.present = None;
            trips.over.push(over);
        });
        if !news {
            return;
        }
        // Not `is_superseded`: the floor of collected tombstones says nothing of these versions.
        let at = self.key_ref(&write.header, write.key);
        let known = ctx.engine.read(&at, |record| record.map_or(0, |r| r.version));
        if known < newest {
            let record = Record { version: newest, expiry_ms: 0, tombstone: false, value };
            self.write_state(ctx, &at, &record);
        }
        self.spread_or_stop(ctx, write.key);
    }

    /// Changes the trips of a key, unless a newer change is known; says whether it did.
    fn change_trips<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
        change: impl FnOnce(&mut Trips),
    ) -> bool {
        let trips = self.trips.table.entry(write.key.into()).or_default();
        if trips.version >= write.version() {
            return false;
        }
        trips.version = write.version();
        change(trips);
        let note = trips.to_note();
        ctx.engine.note(self.id(), &trips_name(write.key), Some(&note));
        true
    }

    /// Takes trips that were copied from the tail. The tail commits after the joiner: whether the
    /// key is away, the joiner knows better, if it has seen any change; but of trips that were over
    /// before, it hears only now.
    pub(crate) fn take_trips<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        mut trips: Trips,
    ) {
        if let Some(known) = self.trips.get(key) {
            let news = trips.over.iter().filter(|trip| !known.knows(trip.number));
            let mut over: Vec<TripOverBody> = news.copied().collect();
            over.extend(&known.over);
            over.sort_by_key(|trip| trip.left);
            trips = Trips { over, ..known.clone() };
        }
        ctx.engine.note(self.id(), &trips_name(key), Some(&trips.to_note()));
        self.trips.recall(key, trips);
        self.spread_or_stop(ctx, key);
    }

    /// Forgets trips that ended as long ago as sessions are kept. A joiner that is not whole may
    /// still be copied an older state of the same key.
    pub(crate) fn forget_trips<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if !self.whole || self.trips.table.is_empty() {
            return;
        }
        let now_ms = ctx.time.0;
        let idle_ms = u64::try_from(IDLE_MAX.as_millis()).expect("minutes");
        let recent = |trip: &TripOverBody| trip.since_ms.saturating_add(idle_ms) > now_ms;
        let (id, stable) = (self.id(), self.history.stable());
        self.trips.table.retain(|key, trips| {
            let before = trips.over.len();
            trips.over.retain(recent);
            let gone = trips.present.is_none() && trips.over.is_empty();
            // An older change that the network has doubled must not be taken for news.
            let gone = gone && trips.version <= stable;
            if gone || trips.over.len() != before {
                let note = trips.to_note();
                ctx.engine.note(id, &trips_name(key), (!gone).then_some(&note));
            }
            !gone
        });
    }

    /// What the switch knows a key by.
    pub(crate) fn place_of<E>(&self, ctx: &Context<'_, E>, key: &[u8]) -> Option<Header> {
        let keyspace = ctx.directory.keyspace(self.partition.keyspace)?;
        Some(place(keyspace, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn over(number: u64, left: u64, newest: u64, ended: u64) -> TripOverBody {
        TripOverBody { number, left, newest, ended, switch: 3, since_ms: 5 }
    }

    fn trips() -> Trips {
        let nodes = vec![NodeId(2), NodeId(700)];
        let left = 20 + SPAN;
        let present = Present { number: 30, left, switch: Life(3), replicas: 2, nodes };
        Trips { version: left, present: Some(present), over: vec![over(10, 7, 15, 20)] }
    }

    fn arrival(version: u64, moment: u64, hop_flags: u8) -> Arrival {
        let mut header = Header { object_version: version, hop_flags, ..Header::default() };
        header.set_moment(moment << MOMENT_TRIPS_BITS);
        trips().arrival(&header, 25, Life(3))
    }

    #[test]
    fn trips_survive_their_note() {
        for trips in [trips(), Trips::default(), Trips { present: None, ..trips() }] {
            let note = trips.to_note();
            assert_eq!(Trips::from_note(&note), Some(trips));
            assert_eq!(Trips::from_note(&note[..note.len() - 1]), None);
            assert_eq!(Trips::from_note(&[note, vec![0]].concat()), None);
        }
    }

    #[test]
    fn a_stamped_write_took_effect_if_the_trip_came_home_with_it_or_a_newer_one() {
        assert_eq!(arrival(8, 0, 0), Arrival::Applied(8));
        assert_eq!(arrival(15, 0, 0), Arrival::Applied(15));
        assert_eq!(arrival(16, 20, 0), Arrival::New, "nobody has it, and nobody will");
        assert_eq!(arrival(7 + SPAN, 20, 0), Arrival::New);
        assert_eq!(arrival(7, 0, 0), Arrival::Forgotten, "no trip gave this version");
        assert_eq!(arrival(21 + SPAN, 0, 0), Arrival::Refused(Code::Away), "it is on its way");
    }

    #[test]
    fn a_stamp_of_a_trip_before_the_last_says_nothing_of_the_last() {
        let before_the_last = arrival(16, 19, 0);
        assert_eq!(before_the_last, Arrival::Refused(Code::Closed), "it may have another by now");
    }

    #[test]
    fn a_write_without_a_stamp_is_new_if_it_passed_after_all_trips_that_are_over() {
        assert_eq!(arrival(0, 19, 0), Arrival::Refused(Code::Closed));
        assert_eq!(arrival(0, 20, 0), Arrival::New);
        assert_eq!(arrival(0, 26, 0), Arrival::New);
        assert_eq!(arrival(0, 25, hop_flag::OLD), Arrival::New, "the switch is the same");
        assert_eq!(arrival(0, 26, hop_flag::OLD), Arrival::Refused(Code::Closed));
        let mut header = Header { hop_flags: hop_flag::OLD, ..Header::default() };
        header.set_moment(25 << MOMENT_TRIPS_BITS);
        let another = trips().arrival(&header, 25, Life(4));
        assert_eq!(another, Arrival::Refused(Code::Uncertain));
    }
}
