//! What outlives the controller: all that a successor needs to go on.

use cluster::{Away, Incarnation, KeyName, Map, NodeId, PartitionId, Standby, StoreId, Term};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use wire::Revision;

/// Number of the form that [`Saved`] has now; a controller refuses any other.
pub const FORMAT: u32 = 2;

/// Everything that the durable store holds, always written and read as a whole.
///
/// There is no record of what the controller is about: which partition is being closed, copied or
/// opened is read off the map, and what comes next is worked out anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// [`FORMAT`] when it was written.
    pub format: u32,
    /// The term of the leader that wrote it: the next one's is higher.
    #[serde(default)]
    pub term: Term,
    /// Seed of all hashes over keys. It never changes: all data lies where it says.
    pub seed: u64,
    /// Service endpoints of the switches, as every node was told.
    pub switches: Vec<SocketAddr>,
    /// Where orders reach each node, as far as the driver has said. The controller only keeps it.
    pub controls: BTreeMap<NodeId, SocketAddr>,
    /// The map. Its revision counts changes of anything in here.
    pub map: Map,
    /// Identity of each node's memory when it was taken in.
    pub stores: BTreeMap<NodeId, StoreId>,
    /// The incarnation of each node that its replicas belong to: the last that it was heard to
    /// begin.
    #[serde(default)]
    pub incarnations: BTreeMap<NodeId, Incarnation>,
    /// The incarnation of each switch that was last heard to begin, by service endpoint.
    #[serde(default)]
    pub switch_incarnations: BTreeMap<SocketAddr, Incarnation>,
    /// Nodes whose store did not remember the incarnation before that, for an older copy was put
    /// back, and the revision of the map in which that was seen last.
    #[serde(default)]
    pub aged: BTreeMap<NodeId, Revision>,
    /// The latest revisions of the map, the oldest first. A member that follows one between them
    /// has it from a map that this store knows nothing of.
    #[serde(default)]
    pub issued: VecDeque<Revision>,
    /// Every switch that does not serve by the map, also one that is not configured any more and
    /// may not have heard of it, by service endpoint.
    #[serde(default)]
    pub standbys: BTreeMap<SocketAddr, Standby>,
    /// Nodes that may have been given a lease for requests that pass no switch, by which a node
    /// also lends keys to caches; `None` in a store from before that was kept: all of them.
    #[serde(default)]
    pub direct: Option<BTreeSet<NodeId>>,
    /// Nodes that are to hold nothing in the end.
    pub departing: BTreeSet<NodeId>,
    /// Whether copying is paused; the map then has rate 0.
    pub paused: bool,
    /// Whether nothing is to change because of the load.
    #[serde(default)]
    pub placement_paused: bool,
    /// Keys that are to be hot whatever is asked of them.
    #[serde(default)]
    pub pins: BTreeSet<KeyName>,
    /// Numbers of clients' passes below this may have been given. None is given twice.
    #[serde(default)]
    pub passes: u64,
    /// Classes of rights, by whose they are. None is given twice.
    #[serde(default)]
    pub classes: BTreeMap<String, u16>,
    /// The longest lease that a member may still have, in milliseconds: what a controller that
    /// comes back waits for before it takes anybody to be silent.
    pub lease_ms: u64,
    /// The next keyspace's id. Ids are never used twice.
    pub next_keyspace: u16,
    /// The next partition's id. Ids are never used twice.
    pub next_partition: u32,
}

impl Saved {
    /// The same for a leader of a term above this one, which a member was heard to obey, whatever
    /// the clock says.
    #[must_use]
    pub fn above(self, heard: Term) -> Self {
        Self { term: self.term.max(heard), ..self }
    }

    /// Gives the contents a new revision, after they changed.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.map.revision = self.next_revision(now);
        if self.issued.len() == ISSUED_MAX {
            self.issued.pop_front();
        }
        self.issued.push_back(self.map.revision);
    }

    /// Whether this revision, which a member follows, is of a map that this store knows nothing of:
    /// newer than all of it, or decided after this store was copied and before it was put back.
    pub(crate) fn is_strange(&self, revision: Revision) -> bool {
        let after_the_oldest = self.issued.front().is_some_and(|oldest| revision > *oldest);
        revision > self.map.revision
            || (after_the_oldest && self.issued.binary_search(&revision).is_err())
    }

    /// The revision that a change made now will have.
    ///
    /// It is the Unix time in milliseconds unless that has been reached already. So a
    /// controller that lost its store, or was given an old copy of it, does not hand out a number
    /// that members know from its earlier incarnation with other contents.
    pub(crate) fn next_revision(&self, now: Instant) -> Revision {
        self.map.revision.next(now.unix_ms())
    }

    /// The service endpoint of the active switch.
    pub(crate) fn active_endpoint(&self) -> Option<SocketAddr> {
        self.switches.get(usize::from(self.map.active_switch)).copied()
    }

    /// Another switch is named than this one, and waits until that reaches nobody any more.
    pub(crate) fn succeed(&mut self, before: SocketAddr, revision: Revision) {
        let served = Standby { since: revision, unnamed: None };
        self.standbys.entry(before).or_insert(served).unnamed = Some(revision);
        if let Some(named) = self.active_endpoint() {
            self.standbys.entry(named).or_insert(served).unnamed = None;
        }
        self.map.handing_over = true;
    }

    /// The switch that is named serves. No other reaches anybody.
    pub(crate) fn hand_over(&mut self) {
        self.map.handing_over = false;
        let active = self.active_endpoint();
        let switches = &self.switches;
        self.standbys.retain(|at, _| Some(*at) != active && switches.contains(at));
    }

    /// These nodes are not waited for any more in the partitions that they had left for a while;
    /// tells where and who.
    pub(crate) fn forget_away(
        &mut self,
        is_over: impl Fn(&Away) -> bool,
    ) -> Vec<(NodeId, PartitionId)> {
        let mut forgotten = Vec::new();
        for partition in &mut self.map.partitions {
            let over = partition.away.extract_if(.., |it| is_over(it));
            forgotten.extend(over.map(|it| (it.node, partition.id)));
        }
        forgotten
    }

    /// Whether this node has left a chain for a while.
    pub(crate) fn is_away(&self, node: NodeId) -> bool {
        self.map.partitions.iter().any(|it| it.kept_since(node).is_some())
    }

    /// Whether this node may have been given a lease for requests that pass no switch.
    pub(crate) fn may_be_direct(&self, node: NodeId) -> bool {
        self.direct.as_ref().is_none_or(|known| known.contains(&node))
    }

    /// How many partitions have this node in their chain.
    pub(crate) fn partitions_of(&self, node: NodeId) -> usize {
        self.map.partitions.iter().filter(|p| p.chain.contains(&node)).count()
    }
}

/// Revisions remembered, 8 bytes each. Changes come in bursts of some dozen; while one is not
/// remembered any more, a member that follows an older one has missed hundreds of them.
const ISSUED_MAX: usize = 1_024;
