//! What a driver and people can ask of a controller.

use super::Controller;
use crate::chains;
use crate::decisions::Decision;
use crate::hot::HotNews;
use crate::placement::PlacementDecision;
use crate::status::{Status, View};
use cluster::{Map, NodeId};
use machine::{Instant, UnixMs};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use wire::Revision;

impl Controller {
    /// How everything stands, for people and dashboards. O(partitions).
    #[must_use]
    pub fn status(&self, now: Instant) -> Status {
        let (lease, mutant) = (self.config.lease, self.mutant);
        let (members, hot) = (&self.members, &self.hot);
        let seen = chains::Seen { now, members, hot, lease, mutant };
        let view = View {
            now,
            state: &self.ledger.state,
            durable: self.ledger.durable(),
            members: &self.members,
            watches: &self.watches,
            verifying: &self.verifying,
            decisions: &self.ledger.decisions,
            hot: &self.hot,
            placement: self.chains.placement_status(&self.ledger.state, (seen, &self.placement)),
            clock: &self.clock,
            orders: self.orders.sent,
            lease_ms: self.config.lease_ms(),
        };
        view.status()
    }

    /// The map as decided; durable up to [`Self::durable_revision`].
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.ledger.state.map
    }

    /// Where orders reach nodes, as far as the configuration or [`Self::add_node`] said.
    #[must_use]
    pub fn controls(&self) -> &BTreeMap<NodeId, SocketAddr> {
        &self.ledger.state.controls
    }

    /// Revision of the newest map that is durable; 0 for none yet.
    #[must_use]
    pub fn durable_revision(&self) -> Revision {
        self.ledger.durable()
    }

    /// What time it is in the cluster, if that is known. At the same time every controller that
    /// leads says the same, whatever its machine's clock shows.
    #[must_use]
    pub fn cluster_time(&self, now: Instant) -> Option<UnixMs> {
        self.clock.time(now)
    }

    /// Whether it is known what time it is in the cluster. Else nodes get no leases: they would
    /// serve by their own clocks.
    #[must_use]
    pub fn knows_the_time(&self) -> bool {
        self.clock.is_known()
    }

    /// How often a member of a chain that had settled was found to hold other than the rest, since
    /// this controller began. Without damage to a store none ever does.
    #[must_use]
    pub fn unequal(&self) -> u64 {
        self.chains.unequal()
    }

    /// How many decisions were made since this controller began.
    #[must_use]
    pub fn decisions_noted(&self) -> u64 {
        self.ledger.decisions.noted()
    }

    /// The decisions after the first `seen`, oldest first, as far as they are remembered: for a
    /// driver's log.
    pub fn decisions_since(&self, seen: u64) -> impl Iterator<Item = &Decision> {
        self.ledger.decisions.since(seen)
    }

    /// How many decisions were made because of the load, since this controller began.
    #[must_use]
    pub fn placements_noted(&self) -> u64 {
        self.placement.noted()
    }

    /// Those after the first `seen`, oldest first, as far as they are remembered.
    pub fn placements_since(&self, seen: u64) -> impl Iterator<Item = &PlacementDecision> {
        self.placement.since(seen)
    }

    /// What is new about hot keys, oldest first: for a driver's log, to be asked for until there is
    /// no more after every call. It is kept until then.
    pub fn poll_hot_news(&mut self) -> Option<HotNews> {
        self.hot.log.poll()
    }
}
