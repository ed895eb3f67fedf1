//! Writes of keys on trips (section 9 of `spec/protocol.md`): which are stamped, with what, and
//! where they go.

use crate::hot::Row;
use crate::pipeline::{Pass, stamp_partition};
use crate::spread::OF_WRITES;
use crate::stamps::{Met, Stamp, Who};
use crate::tables::Action;
use crate::trip::Trip;
use crate::{Keeper, Roamed, learn};
use arrayvec::ArrayVec;
use cluster::{KeyspaceId, NodeId, Plant};
use std::ops::Range;
use wire::{CHAIN_MAX, Code, DropReason, Endpoint, Fields, HEADER_LEN, hop_flag};

/// All places of a chain.
const CHAIN_LEN_MAX: u8 = CHAIN_MAX as u8;

impl Pass<'_> {
    /// Whether a write that may roam has to be looked at: a key is on a trip, or was.
    #[inline]
    pub(crate) fn roams(&self) -> bool {
        let own = || self.hot.roams() || self.view.directory().stamps().any();
        self.keeper.map_or_else(own, Keeper::roams)
    }

    /// A write that may roam: on its trip if it has a stamp of that or can be given one, else home.
    pub(crate) fn roam(
        &mut self,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
    ) -> Result<Option<Endpoint>, DropReason> {
        if let Some(keeper) = self.keeper {
            return self.roam_behind(keeper, header, action);
        }
        let who = Who { client: header.client(), seq: header.seq() };
        let low = who.seq.saturating_sub(header.lag().into());
        let row = self.row_of(header);
        let met = self.view.directory().stamps().meet(self.now, who, low);
        let stamp = match met {
            Met::Stale => return Err(DropReason::StaleRequest),
            Met::Stamped(stamp) if self.plant != Some(Plant::ForgetStamps) => Some(stamp),
            Met::Stamped(_) | Met::New => row.and_then(|row| self.stamp_new(row, who)),
        };
        let Some(stamp) = stamp else {
            let exit = self.go_home(header, action, 0);
            let away = row.and_then(|row| row.trip.as_deref()?.begun()).is_some();
            if away && exit.is_some() && !self.view.directory().stamps().has_room(who.client) {
                self.say_crowded(header);
            }
            return Ok(exit);
        };
        if row.and_then(|row| row.trip(stamp.trip)).is_none() {
            return Ok(self.go_home(header, action, stamp.version));
        }
        if !self.view.is_present() {
            return Err(DropReason::Contended);
        }
        let exit = self.depart(header, action, &stamp);
        if exit.is_some() {
            self.counters.count_roamed(met == Met::New);
        }
        Ok(exit)
    }

    /// A write goes home whose key is away, and which there is no room to remember a stamp for.
    fn say_crowded(&mut self, header: &mut [u8; HEADER_LEN]) {
        header.set_hop_flags(header.hop_flags() | hop_flag::CROWDED);
        self.counters.count_crowded();
    }

    /// The same for what is left by a switch that has the table of stamps.
    fn roam_behind(
        &mut self,
        keeper: &dyn Keeper,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
    ) -> Result<Option<Endpoint>, DropReason> {
        header.set_moment(self.first_sent);
        if let Roamed::Home { version, crowded } = keeper.roam(header)? {
            let exit = self.go_home(header, action, version);
            if crowded {
                header.set_hop_flags(header.hop_flags() | hop_flag::CROWDED);
            }
            return Ok(exit);
        }
        let trip = header.trip();
        stamp_partition(header, action);
        header.set_trip(trip);
        let first = crate::tables::chain_nodes(header.chain(), header.chain_len()).next();
        let first = first.and_then(|node| self.tables.node(node));
        Ok(first.map(|node| node.endpoint_of(action.partition)))
    }

    /// The stamp of a request that has none, if it was certainly not applied before the trip.
    fn stamp_new(&mut self, row: &Row, who: Who) -> Option<Stamp> {
        let trip = row.trip.as_deref()?;
        let unborn = self.first_sent < trip.begun()?;
        if unborn && self.plant != Some(Plant::StampUnborn) {
            return None;
        }
        let forgets = self.plant == Some(Plant::ForgetStamps);
        self.stamp(row, trip, who, |_| forgets)
    }

    /// What the answer to a write says of trips (rules 5 and 6 of section 9).
    pub(crate) fn learn_put(&mut self, sender: NodeId, header: &[u8; HEADER_LEN]) {
        if header.code() == Code::Away as u8 {
            self.learn_away(header);
        } else if learn::is_roamed(header) {
            self.learn_roamed(sender, header);
        }
    }

    /// The head's word that this write was never applied at home, and that the trip has begun.
    fn learn_away(&mut self, header: &[u8; HEADER_LEN]) {
        let row = self.hot.find(KeyspaceId(header.keyspace()), header.keyhash());
        let Some(row) = row else { return };
        let Some(trip) = row.trip(header.stay()) else { return };
        trip.begin(header.object_version(), self.view.directory().moments());
        if trip.begun().is_some() {
            let who = Who { client: header.client(), seq: header.seq() };
            let _ = self.stamp(row, trip, who, |stamp| stamp.trip < trip.number);
        }
    }

    /// A write on a trip is acknowledged, under the version that is the floor now: whoever it was
    /// stamped for holds it, or will when a read gets there, for its copies are ahead of that.
    fn learn_roamed(&self, sender: NodeId, header: &[u8; HEADER_LEN]) {
        let row = self.hot.find(KeyspaceId(header.keyspace()), header.keyhash());
        let version = header.object_version();
        let Some(row) = row.filter(|row| row.entry.floor().0 == version) else { return };
        self.hot.mark(row, sender, Some(version));
        self.hot.note_near(row, sender);
        let replicas = row.trip.as_deref().map_or(u8::MAX, |trip| trip.replicas);
        if row.chosen > replicas
            && let Some(stamp) = self.view.directory().stamps().of(header.client(), header.seq())
            && stamp.version == version
        {
            stamp.nodes().for_each(|node| self.hot.mark(row, node, Some(version)));
        }
    }

    fn stamp(
        &mut self,
        row: &Row,
        trip: &Trip,
        who: Who,
        outdated: impl FnOnce(&Stamp) -> bool,
    ) -> Option<Stamp> {
        let nodes = self.choose_nodes(row, trip.replicas)?;
        let chain = wire::roaming_chain(nodes.iter().map(|node| node.0));
        let chain_len = trip.replicas;
        let make = || Some(Stamp { trip: trip.number, version: trip.version()?, chain, chain_len });
        let stamps = self.view.directory().stamps();
        if self.plant == Some(Plant::EvictStamps) {
            stamps.evict(who.client);
        }
        stamps.note(self.now, who, outdated, make)
    }

    /// Nodes of a window of the key's row of places that have little to do: those of the chain of a
    /// write, and those that it is to be copied to.
    fn choose_nodes(&mut self, row: &Row, least: u8) -> Option<ArrayVec<NodeId, CHAIN_MAX>> {
        let mut nodes = ArrayVec::new();
        let mut taken = 0;
        let window = self.any_window(row);
        for _ in 0..row.chosen {
            let of = (window.len(), OF_WRITES);
            let from = (window.clone(), taken);
            let Some((reader, node)) = self.least_busy(row, from, of, |_| true) else { break };
            taken |= 1 << (reader - window.start);
            nodes.push(node.id);
        }
        (nodes.len() >= least.into()).then_some(nodes)
    }

    /// One of the windows of a row of places at random; most have but one.
    fn any_window(&mut self, row: &Row) -> Range<usize> {
        let readers = row.readers();
        let many = readers > wire::HOT_WINDOW_MAX;
        row.window(if many { self.rng.below(readers as u64) as usize } else { 0 })
    }

    fn depart(
        &mut self,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
        stamp: &Stamp,
    ) -> Option<Endpoint> {
        stamp_partition(header, action);
        header.set_hop_flags(hop_flag::ROAM);
        header.set_trip(stamp.trip);
        header.set_object_version(stamp.version);
        header.set_chain(stamp.chain);
        header.set_chain_len(stamp.chain_len);
        let nodes = stamp.nodes();
        let first = self.tables.node(nodes.clone().next()?)?;
        if self.hot.predicts() {
            nodes.for_each(|node| self.loads.sent(self.now, node));
        }
        Some(first.endpoint_of(action.partition))
    }
}

impl Stamp {
    /// The nodes of the chain, first to last, and those that it is copied to.
    fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        let nodes = crate::tables::chain_nodes(self.chain, CHAIN_LEN_MAX);
        nodes.filter(|node| node.0 != wire::NOBODY)
    }
}
