//! What is seen of nodes, as far as chains depend on it.

use crate::capacity::Weights;
use cluster::NodeId;
use std::collections::BTreeMap;

/// What is seen of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// It has certainly fallen silent, or lost its memory.
    pub(crate) gone: bool,
    /// If it is gone: nobody waits any more to be compared with it.
    pub(crate) given_up: bool,
    /// It answers and does what it is told.
    pub(crate) serving: bool,
    /// It has served for long enough that others who do not are not just a little later.
    pub(crate) steady: bool,
    /// It has answered since the last of the silent fell silent.
    pub(crate) outlasts: bool,
    /// It is to hold nothing in the end.
    pub(crate) departing: bool,
    /// It is about to end, and will be back.
    pub(crate) leaving: bool,
    /// It can send writes on before its disk has them; `None` if it has not said.
    pub(crate) sends_early: Option<bool>,
    /// It can make what it holds of a partition of what it holds of others.
    pub(crate) splits: bool,
    /// It holds so much of what it may that others had better be given what comes next.
    pub(crate) short_of_room: bool,
    /// It takes no pieces of copies, for it has little room or none.
    pub(crate) refuses_copies: bool,
}

/// What is seen of all nodes, and what the operator wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub(crate) nodes: BTreeMap<NodeId, Sight>,
    pub(crate) weights: Weights,
    /// No copy is to begin.
    pub(crate) paused: bool,
    /// Nothing is to change because of the load.
    pub(crate) placement_paused: bool,
}

impl Outlook {
    pub(crate) fn of(&self, node: NodeId) -> Sight {
        self.nodes.get(&node).copied().unwrap_or_default()
    }

    /// Nodes that have certainly fallen silent.
    pub(crate) fn gone(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(|(_, sight)| sight.gone).map(|(id, _)| *id)
    }

    /// Nodes that are about to end.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(|(_, sight)| sight.leaving).map(|(id, _)| *id)
    }

    /// Nodes that may be given replicas.
    pub(crate) fn takers(&self) -> impl Iterator<Item = NodeId> {
        let fit = self.nodes.iter().filter(|(_, sight)| {
            let Sight { serving, departing, leaving, .. } = **sight;
            serving && !departing && !leaving
        });
        fit.map(|(id, _)| *id)
    }

    /// Those of them that take copies now, which they need not.
    pub(crate) fn willing(&self) -> impl Iterator<Item = NodeId> {
        self.takers().filter(|node| !self.of(*node).refuses_copies)
    }
}
