//! What happened between two looks at the controller's status.

use crate::partitions::PartitionView;
use cluster::{HotKey, Member, NodeId};
use controller::{GenerationStatus, HotStatus, MemberState, NodeLoad, Status};
use std::cmp::Reverse;

/// A cluster over a short time. Rates are `None` where nothing new was heard meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// When this was, in Unix milliseconds.
    pub(crate) at_ms: u64,
    /// Whether all keys can be read and written.
    pub(crate) covered: bool,
    /// Members that do not answer, or do not do what they were told yet.
    pub(crate) late: Vec<Member>,
    /// Reads per second that switches have sent on; each key of an MGET counts.
    pub(crate) reads: Option<u64>,
    /// Writes per second, likewise.
    pub(crate) writes: Option<u64>,
    /// Reads per second of hot keys that went to copies.
    pub(crate) spread: u64,
    /// Thousandths of the mean rate of requests that the busiest node gets.
    pub(crate) imbalance: Option<u64>,
    /// By id.
    pub(crate) nodes: Vec<NodeView>,
    /// Those that the controller has counted, the most asked for first.
    pub(crate) partitions: Vec<PartitionView>,
    /// The most asked for first.
    pub(crate) keys: Vec<KeyView>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeView {
    pub(crate) id: NodeId,
    pub(crate) ready: bool,
    /// Requests and chain messages per second that it took.
    pub(crate) requests: Option<u64>,
    /// Thousandths of the time of all its threads in which they worked.
    pub(crate) busy: Option<u64>,
    /// Requests found waiting when it was last asked.
    pub(crate) waiting: u64,
    /// Writes recorded and not committed yet.
    pub(crate) pending: u64,
    pub(crate) heads: usize,
    pub(crate) tails: usize,
    /// Thousandths of what it may hold that it holds, if anything limits it.
    pub(crate) room: Option<u64>,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyView {
    pub(crate) keyspace: String,
    pub(crate) key: HotKey,
    pub(crate) pinned: bool,
    /// What became of it, if it is hot.
    pub(crate) generation: Option<GenerationStatus>,
}

impl View {
    /// What happened from one look to the next.
    pub(crate) fn between(before: &Status, after: &Status) -> Self {
        let nodes: Vec<NodeView> =
            after.load.iter().map(|load| NodeView::of(before, after, load)).collect();
        let switch = Member::Switch(after.active_switch);
        let ms = heard_ms(before, switch).zip(heard_ms(after, switch));
        let ms = ms.map_or(0, |(before, after)| after.saturating_sub(before));
        let (earlier, now) = (switched(before), switched(after));
        let mut keys: Vec<KeyView> = after.hot.iter().map(|hot| KeyView::of(after, hot)).collect();
        keys.sort_by_key(|key| Reverse(key.key.rate()));
        Self {
            at_ms: after.at_ms,
            covered: after.covered,
            late: after.late().map(|it| it.member).collect(),
            reads: rate(earlier.0, now.0, ms),
            writes: rate(earlier.1, now.1, ms),
            spread: keys
                .iter()
                .filter_map(|key| key.generation)
                .map(|generation| generation.spread)
                .sum(),
            imbalance: imbalance(&nodes),
            nodes,
            partitions: PartitionView::busiest_first(after),
            keys,
        }
    }
}

impl NodeView {
    fn of(before: &Status, after: &Status, load: &NodeLoad) -> Self {
        let member = Member::Node(load.node);
        let earlier = before.load.iter().find(|it| it.node == load.node);
        let heard = heard_ms(before, member).zip(heard_ms(after, member));
        let ms = heard.map_or(0, |(before, after)| after.saturating_sub(before));
        let requests = earlier.and_then(|it| rate(it.requests, load.requests, ms));
        // Microseconds in a millisecond are thousandths; each shard has a thread.
        let busy = earlier.and_then(|it| rate(it.busy_us, load.busy_us, ms));
        let all = 1_000 * u64::from(load.shards.max(1));
        let ready = after.members.iter().find(|it| it.member == member);
        let burden = after.placement.nodes.iter().find(|it| it.node == load.node);
        Self {
            id: load.node,
            ready: ready.is_some_and(|it| it.state == MemberState::Ready),
            requests,
            busy: busy.map(|busy_us_per_s| (busy_us_per_s / all).min(1_000)),
            waiting: load.waiting,
            pending: load.pending,
            heads: load.heads,
            tails: load.tails,
            room: burden.and_then(|it| it.room_permille),
        }
    }
}

impl KeyView {
    fn of(status: &Status, hot: &HotStatus) -> Self {
        let keyspace = status.keyspaces.iter().find(|it| it.id == hot.key.keyspace);
        Self {
            keyspace: keyspace.map_or_else(String::new, |it| it.name.clone()),
            key: hot.key.clone(),
            pinned: hot.pinned,
            generation: hot.generation,
        }
    }
}

/// When a member said what the status knows of it, in Unix milliseconds.
fn heard_ms(status: &Status, member: Member) -> Option<u64> {
    let member = status.members.iter().find(|it| it.member == member)?;
    Some(status.at_ms.saturating_sub(member.heard_ms_ago?))
}

/// Reads and writes that switches have sent on so far.
fn switched(status: &Status) -> (u64, u64) {
    let partitions = || status.keyspaces.iter().flat_map(|keyspace| &keyspace.partitions);
    (partitions().map(|it| it.reads).sum(), partitions().map(|it| it.writes).sum())
}

/// How fast a counter grew, per second. One that is smaller than before began anew.
fn rate(before: u64, after: u64, ms: u64) -> Option<u64> {
    let grown = after.checked_sub(before).unwrap_or(after);
    grown.saturating_mul(1_000).checked_div(ms)
}

fn imbalance(nodes: &[NodeView]) -> Option<u64> {
    let rates: Vec<u64> = nodes.iter().filter_map(|node| node.requests).collect();
    let (most, sum) = (rates.iter().max()?, rates.iter().sum::<u64>());
    most.saturating_mul(1_000).saturating_mul(rates.len() as u64).checked_div(sum)
}
