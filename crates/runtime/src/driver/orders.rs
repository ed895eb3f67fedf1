//! From an order to a report: what a member does with what the controller sends, however it came.

#[cfg(test)]
mod tests;

use super::{NodeHandle, SwitchHandle};
use crate::mailbox::MailError;
use cluster::{Assignment, InstallError, Map, MapError, NodeSpec, Order, Report};
use cluster::{KeyspaceId, Match, Partition, StoreId, SwitchControl};
use std::collections::{BTreeMap, BTreeSet};

/// A switch or a node of this process.
#[derive(Clone, Debug)]
pub enum MemberHandle {
    /// A switch.
    Switch(SwitchHandle),
    /// A storage node.
    Node(NodeHandle),
}

/// Why an order was not carried out. The member has then what it had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// An order for the other role.
    #[error("this is a {is}, and the order is one for a {wanted}: check the control addresses")]
    WrongRole {
        /// What this is.
        is: &'static str,
        /// What the order is for.
        wanted: &'static str,
    },
    /// The assignment is for another node, or for one at another place.
    #[error("the assignment is for {wanted}, and this is {is}: check the configuration of both")]
    WrongNode {
        /// This node.
        is: String,
        /// The one that the assignment is for.
        wanted: String,
    },
    /// The node had another memory when the assignment was made.
    #[error(
        "the assignment is for a node with memory {wanted}, and this one has {is}; it serves \
         nothing until the controller has seen that"
    )]
    OtherMemory {
        /// This node's.
        is: StoreId,
        /// The one that the assignment is for.
        wanted: StoreId,
    },
    /// The assignment contradicts itself.
    #[error("unsound assignment: {0}")]
    Unsound(String),
    /// The switch cannot hold the tables.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A thread could not be reached.
    #[error("a thread of this process cannot be reached: {0}")]
    Unreached(#[from] MailError),
}

impl MemberHandle {
    /// Carries an order out and says how the member is afterwards.
    ///
    /// # Errors
    ///
    /// If the order was not carried out, or not by all threads.
    pub fn obey(&mut self, order: Order) -> Result<Report, OrderError> {
        match (&mut *self, order) {
            (_, Order::Report) => {}
            (Self::Switch(switch), Order::Tables(tables)) => switch.install(&tables)?,
            (Self::Node(node), Order::Assign(assignment)) => {
                let (is, wanted) = (node.store(), assignment.store);
                if is != wanted {
                    return Err(OrderError::OtherMemory { is, wanted });
                }
                check(&node.spec(), &assignment)?;
                node.assign(assignment)?;
            }
            (Self::Switch(_), Order::Assign(_)) => {
                return Err(OrderError::WrongRole { is: "switch", wanted: "node" });
            }
            (Self::Node(_), Order::Tables(_)) => {
                return Err(OrderError::WrongRole { is: "node", wanted: "switch" });
            }
        }
        self.report()
    }

    fn report(&self) -> Result<Report, OrderError> {
        Ok(match self {
            Self::Switch(switch) => {
                let snapshot = switch.snapshot()?;
                Report::Switch(snapshot.counters.report(snapshot.revision))
            }
            Self::Node(node) => Report::Node(node.snapshot()?.report),
        })
    }
}

/// An assignment comes from outside; the machine relies on it. So whatever the machine takes for
/// granted is checked here.
fn check(me: &NodeSpec, assignment: &Assignment) -> Result<(), OrderError> {
    let Assignment { node, nodes, keyspaces, .. } = assignment;
    let Some(wanted) = nodes.iter().find(|spec| spec.id == *node) else {
        return Err(OrderError::Unsound(format!("node {node} is not in its own node table")));
    };
    if wanted != me {
        let (is, wanted) = (describe(me), describe(wanted));
        return Err(OrderError::WrongNode { is, wanted });
    }
    let unsound = |why: MapError| OrderError::Unsound(why.to_string());
    Map { nodes: nodes.clone(), ..Map::default() }.check().map_err(unsound)?;
    if !assignment.switch.is_set() {
        return Err(OrderError::Unsound("the switch has no port".into()));
    }
    let known: BTreeSet<KeyspaceId> = keyspaces.iter().map(|keyspace| keyspace.id).collect();
    if known.len() != keyspaces.len() {
        return Err(OrderError::Unsound("a keyspace id is there twice".into()));
    }
    check_partitions(me, assignment, &known).map_err(OrderError::Unsound)
}

fn describe(spec: &NodeSpec) -> String {
    let NodeSpec { id, endpoint, shards } = spec;
    format!("node {id} at {endpoint} with {shards} shards")
}

fn check_partitions(
    me: &NodeSpec,
    assignment: &Assignment,
    known: &BTreeSet<KeyspaceId>,
) -> Result<(), String> {
    let nodes: BTreeSet<_> = assignment.nodes.iter().map(|spec| spec.id).collect();
    let mut ids = BTreeSet::new();
    let mut intervals: BTreeMap<KeyspaceId, Vec<(Match, Match)>> = BTreeMap::new();
    for partition in &assignment.partitions {
        let Partition { id, keyspace, first, last, chain, .. } = partition;
        let members: BTreeSet<_> = chain.iter().collect();
        let sound = (1..=wire::CHAIN_MAX).contains(&chain.len())
            && members.len() == chain.len()
            && chain.iter().all(|member| nodes.contains(member));
        if !sound || !members.contains(&me.id) {
            return Err(format!("partition {id} has an impossible chain"));
        }
        if id.0 == 0 || !ids.insert(id) || !known.contains(keyspace) || first > last {
            return Err(format!("partition {id} is there twice, empty, or of no keyspace"));
        }
        intervals.entry(*keyspace).or_default().push((*first, *last));
    }
    for (keyspace, mut intervals) in intervals {
        intervals.sort_unstable();
        let overlap = intervals.windows(2).any(|pair| match pair {
            [(_, last), (first, _)] => first <= last,
            _ => false,
        });
        if overlap {
            return Err(format!("partitions of keyspace {keyspace} overlap"));
        }
    }
    Ok(())
}
