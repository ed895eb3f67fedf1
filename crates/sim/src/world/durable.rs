//! What nodes say to orders: when it is durable that they have carried them out.

use super::control::Reply;
use super::{Mandate, Shard, World};
use crate::role::Role;
use cluster::{MemberReport, NodeReport};
use node::Node;

/// An order that a node has carried out, and the turns of its shards that have to be durable before
/// it says so.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    mandate: Mandate,
    turns: Vec<u64>,
}

impl World {
    /// A node has carried an order out, and answers it once that is durable.
    pub(super) fn wait_for_turns(&mut self, node: u16, mandate: &Mandate) {
        let shards = self.shards.get(self.shards_of(node)).unwrap_or_default();
        let turn = |shard: &Shard| shard.machine.as_ref().map_or(0, Node::turn);
        let turns = shards.iter().map(turn).collect();
        if let Some(asked) = self.asked.get_mut(usize::from(node)) {
            asked.push(Asked { mandate: mandate.clone(), turns });
        }
        self.answer_orders(Role::Node(node));
    }

    /// A node answers the orders that it has carried out, once that is durable.
    pub(super) fn answer_orders(&mut self, role: Role) {
        let Role::Node(node) = role else { return };
        let (mine, now) = (self.shards_of(node), self.local(role));
        let shards = self.shards.get(mine).unwrap_or_default();
        let asked = self.asked.get_mut(usize::from(node));
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { return };
        let durable = |shard: &Shard| shard.machine.as_ref().map_or(0, Node::durable_turn);
        let durable: Vec<u64> = shards.iter().map(durable).collect();
        let is_durable =
            |asked: &mut Asked| asked.turns.iter().zip(&durable).all(|(turn, to)| turn <= to);
        let asked: Vec<Asked> = asked.extract_if(.., is_durable).collect();
        if asked.is_empty() {
            return;
        }
        let reports = shards.iter().map(|shard| Some(shard.machine.as_ref()?.report(now)));
        let Some(reports) = reports.collect::<Option<Vec<NodeReport>>>() else { return };
        let store = reports.first().map_or_else(Default::default, |it| it.store);
        let leaving = self.process(role).leaving;
        let report = NodeReport::of_shards(reports.iter(), store, usize::MAX);
        let report = NodeReport { leaving, ..report };
        let state = MemberReport::Node(Box::new(report));
        let report = self.report(role, state);
        for Asked { mandate, .. } in asked {
            self.answer(role, &mandate, Reply::Report(Box::new(report.clone())));
        }
    }
}
