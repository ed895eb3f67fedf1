//! What a step of the chains goes by, and what follows from it.

use super::compare::{Comparison, compare};
use super::sight::{Outlook, Sight};
use super::split::parts_left;
use crate::capacity::Weights;
use crate::fences::Reach;
use crate::holdings::{Holding, Holdings};
use crate::hot::Hot;
use crate::members::{Members, Standing};
use crate::placement::{self, Change};
use crate::saved::Saved;
use cluster::{Map, MaybeMutant, MemberReport, Mutant, NodeId, Partition, PartitionId, Settled};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Room;

/// What a step goes by, beside the state.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) now: Instant,
    pub(crate) members: &'a Members,
    pub(crate) hot: &'a Hot,
    /// How long leases last.
    pub(crate) lease: Duration,
    pub(crate) mutant: MaybeMutant,
}

impl<'a> Seen<'a> {
    /// What placement looks at.
    pub(super) fn of_load(
        self,
        state: &'a Saved,
        outlook: &'a Outlook,
        under_way: &'a BTreeMap<PartitionId, Change>,
    ) -> placement::PlacementInputs<'a> {
        placement::PlacementInputs {
            now: self.now,
            map: &state.map,
            weights: &outlook.weights,
            holdings: holdings(&state.map, self.members),
            takers: outlook.willing().collect(),
            under_way,
            can_be_remade: Box::new(self.can_be_remade(outlook)),
            parts_left: parts_left(state),
            paused: outlook.paused || outlook.placement_paused,
            mutant: self.mutant,
        }
    }

    /// Whether a partition can be split and merged now: all of its members know how, and no key of
    /// it is delegated, which would have to come home first.
    fn can_be_remade(self, outlook: &'a Outlook) -> impl Fn(&Partition) -> bool + use<'a> {
        move |it| {
            it.chain.iter().all(|node| outlook.of(*node).splits)
                && !self.hot.delegates_any(it.keyspace, it.first..=it.last)
        }
    }

    pub(super) fn outlook(&self, state: &Saved) -> Outlook {
        let (now, members, mutant) = (self.now, self.members, self.mutant);
        let reach = Reach { now, state, members, mutant };
        let nodes = state.map.nodes.iter().filter_map(|node| {
            let peer = self.members.node(node.id)?;
            let sight = Sight {
                gone: reach.is_out(node.id),
                given_up: peer.is_given_up(self.now, self.lease)
                    || self.mutant.is(Mutant::GoOnUncompared),
                serving: peer.is_serving(),
                steady: peer.steady_at <= self.now,
                outlasts: members.outlasts(node.id),
                departing: state.departing.contains(&node.id),
                leaving: peer.is_leaving(),
                sends_early: members.sends_early(node.id),
                splits: members.splits(node.id),
                short_of_room: peer
                    .node_report()
                    .and_then(Holding::of)
                    .is_some_and(|it| it.is_no_taker()),
                refuses_copies: peer
                    .node_report()
                    .is_some_and(|it| it.resources.room != Room::Plenty),
            };
            Some((node.id, sight))
        });
        let (nodes, weights) = (nodes.collect(), weights(&state.map, self.members));
        let (paused, placement_paused) = (state.paused, state.placement_paused);
        Outlook { nodes, weights, paused, placement_paused }
    }

    /// What came of comparing the nodes of a closed chain, if all of them have said that they
    /// settled in this very epoch.
    pub(super) fn compared(&self, partition: &Partition, caught_up: bool) -> Option<Comparison> {
        if partition.open {
            return None;
        }
        if self.mutant.is(Mutant::OpenUnsettled) {
            return Some(Comparison::default());
        }
        let said = |node: &NodeId| {
            let peer = self.members.node(*node)?;
            let report = peer.report.as_ref().filter(|_| peer.standing == Standing::Accepted)?;
            let MemberReport::Node(report) = &report.state else { return None };
            let sought = (partition.id, partition.epoch);
            let found = report.settled.binary_search_by_key(&sought, Settled::place).ok()?;
            Some((*node, *report.settled.get(found)?))
        };
        let settled: Option<BTreeMap<NodeId, Settled>> = partition.chain.iter().map(said).collect();
        let settled = settled?;
        let left = partition.returned.iter().any(|it| it.left);
        if self.mutant.is(Mutant::OpenUncompared) || left && self.mutant.is(Mutant::BelieveAway) {
            return Some(Comparison::default());
        }
        compare(partition, &settled, caught_up, self.mutant)
    }
}

/// What nodes hold of what they may hold, as their last reports say.
fn holdings(map: &Map, members: &Members) -> Holdings {
    let known = |id| Some((id, Holding::of(members.node_report(id)?)?));
    map.nodes.iter().filter_map(|node| known(node.id)).collect()
}

/// What nodes can bear, as their last reports say.
pub(crate) fn weights(map: &Map, members: &Members) -> Weights {
    let rate = |node| members.node_report(node).map_or(0, |report| report.rate);
    Weights::new(map.nodes.iter().map(|node| (node.id, rate(node.id))))
}
