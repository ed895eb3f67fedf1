//! How busy the nodes are: what they report, and what the switch predicts of their queues.
//!
//! The prediction is Pegasus's: what is sent to a node counts up, and the count leaks at the rate
//! at which the node serves, computed when somebody looks. So what is lost on the way is forgotten
//! by itself. A node that does not say its rate leaks one request with each reply, and half of its
//! count every [`HALVED_EVERY_NS`].
//!
//! Nodes of different speed are compared by how long a request would be there, not by how many
//! wait: of two that have as many, the slower one has more to do. One that does not say its rate
//! passes for one of the fastest.
//!
//! A prediction is never less than what the node has just reported. Who sees every packet on its
//! way to a node hardly needs that; but where packets are shared out between pipelines, each leaks
//! at the whole rate what is a part of the requests, and would predict empty queues all the time.

use cluster::NodeId;
use machine::Instant;

/// What is known of each node's load. Each pipeline has its own, and so predicts from its own
/// share of the packets.
#[derive(Clone, Debug)]
pub struct Loads {
    nodes: Vec<Node>,
    /// The most that any of them has said it serves.
    fastest: u32,
}

/// What a reply says of the node that it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Datagrams that it found waiting.
    pub(crate) load: u16,
    /// Requests that it serves in a second; 0: it does not say.
    pub(crate) rate: u32,
    /// Whether a request that was sent there is answered. What is said of copies answers none.
    pub(crate) answers: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Datagrams that it found waiting, when it last said so.
    reported: Option<u16>,
    /// Requests that it serves in a second, as it says; 0: it does not.
    serves: u32,
    /// The same in a nanosecond, in [`REQUEST`]s.
    rate: u64,
    /// Requests that wait there, as predicted for `at`, in [`REQUEST`]s.
    queue: u64,
    at: Instant,
}

/// One request in the fixed point of predictions: a node that serves one a second serves four of
/// these units in a nanosecond, so rates are right within a quarter at that end and far better
/// from there on.
const REQUEST: u64 = 1 << 32;

/// So many requests per second, in [`REQUEST`]s per nanosecond.
fn in_a_nanosecond(rate: u32) -> u64 {
    (u64::from(rate) << 32) / 1_000_000_000
}

/// Half-life of requests to a node of unknown rate: several round trips in a rack, so that a
/// prediction lasts until replies have come and is gone soon when they do not.
const HALVED_EVERY_NS: u64 = 10_000_000;

impl Default for Loads {
    fn default() -> Self {
        Self { nodes: vec![Node::default(); wire::NODES_MAX], fastest: 0 }
    }
}

impl Loads {
    /// Datagrams that this node found waiting when it made the last of its replies to pass here;
    /// `None` if none has passed.
    #[must_use]
    pub fn of(&self, node: NodeId) -> Option<u16> {
        self.nodes.get(usize::from(node.0)).and_then(|it| it.reported)
    }

    /// Every node that has reported, by id, with its last report.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, u16)> {
        let ids = (0u16..).map(NodeId);
        ids.zip(&self.nodes).filter_map(|(node, it)| Some((node, it.reported?)))
    }

    /// Takes the last report of a node, of which nothing else is known.
    ///
    /// # Panics
    ///
    /// If the node's id is not below `NODES_MAX`, as those of compiled tables are.
    pub fn note(&mut self, node: NodeId, load: u16) {
        self.node(node).reported = Some(load);
    }

    /// A reply has come from this node, which says this.
    pub(crate) fn answered(&mut self, now: Instant, node: NodeId, told: Told) {
        let Told { load, rate, answers } = told;
        self.note(node, load);
        self.fastest = self.fastest.max(rate);
        let node = self.node(node);
        node.leak(now);
        (node.serves, node.rate) = (rate, in_a_nanosecond(rate));
        if node.rate == 0 && answers {
            node.queue = node.queue.saturating_sub(REQUEST);
        }
        node.queue = node.queue.max(u64::from(load) * REQUEST);
    }

    /// A request is sent to this node.
    pub(crate) fn sent(&mut self, now: Instant, node: NodeId) {
        let node = self.node(node);
        node.leak(now);
        node.queue = node.queue.saturating_add(REQUEST);
    }

    /// In how many nanoseconds this node would have served a request that is sent there now; if no
    /// node has said its rate, something of which only the order means anything.
    pub(crate) fn predicted(&mut self, now: Instant, node: NodeId) -> u64 {
        let fastest = self.fastest;
        let node = self.node(node);
        node.leak(now);
        let rate = if node.rate == 0 { in_a_nanosecond(fastest) } else { node.rate };
        node.queue.saturating_add(REQUEST) / rate.max(1)
    }

    /// What this node can serve beside others, in units of which [`Self::fastest`] are the most
    /// that any can.
    pub(crate) fn serves(&self, node: NodeId) -> u64 {
        let known = self.nodes.get(usize::from(node.0)).map_or(0, |it| it.serves);
        if known == 0 { self.fastest() } else { known.into() }
    }

    /// See [`Self::serves`].
    pub(crate) fn fastest(&self) -> u64 {
        self.fastest.max(1).into()
    }

    fn node(&mut self, node: NodeId) -> &mut Node {
        let place = self.nodes.get_mut(usize::from(node.0));
        place.expect("node ids are below NODES_MAX, as compiled")
    }
}

impl Node {
    /// Lets go what has been served since the last look.
    fn leak(&mut self, now: Instant) {
        let elapsed = now.0.saturating_sub(self.at.0);
        if self.rate != 0 {
            self.queue = self.queue.saturating_sub(elapsed.saturating_mul(self.rate));
            self.at = self.at.max(now);
            return;
        }
        let halvings = elapsed / HALVED_EVERY_NS;
        if halvings > 0 {
            let shift = u32::try_from(halvings).unwrap_or(u32::MAX);
            self.queue = self.queue.checked_shr(shift).unwrap_or(0);
            self.at = Instant(self.at.0 + halvings * HALVED_EVERY_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    fn told(load: u16, rate: u32) -> Told {
        Told { load, rate, answers: true }
    }

    fn ms(ms: u64) -> Instant {
        Instant::from_unix_ms(1_000_000 + ms)
    }

    /// What waits, in units of which [`REQUEST`] are one request.
    fn queue(loads: &mut Loads, now: Instant) -> u64 {
        let node = loads.node(NODE);
        node.leak(now);
        node.queue
    }

    #[test]
    fn nodes_of_different_speed_are_compared_by_the_time_that_a_request_takes() {
        let [slow, fast, silent] = [1, 2, 3].map(NodeId);
        let mut loads = Loads::default();
        let wait = |loads: &mut Loads, node| loads.predicted(ms(0), node);
        assert_eq!(wait(&mut loads, slow), REQUEST, "nobody has said a rate: what waits");
        assert_eq!((loads.serves(slow), loads.fastest()), (1, 1));
        loads.answered(ms(0), slow, told(0, 200));
        loads.answered(ms(0), fast, told(0, 400));
        loads.answered(ms(0), silent, told(0, 0));
        let of = |loads: &mut Loads| [slow, fast, silent].map(|node| wait(loads, node) / 100_000);
        assert_eq!(of(&mut loads), [50, 25, 25], "5 ms, and 2.5");
        let serves = [slow, fast, silent].map(|node| loads.serves(node));
        assert_eq!((serves, loads.fastest()), ([200, 400, 400], 400));
        for node in [fast, silent] {
            loads.sent(ms(0), node);
        }
        assert_eq!(of(&mut loads), [50, 50, 50]);
        loads.sent(ms(0), slow);
        loads.sent(ms(0), fast);
        assert_eq!(of(&mut loads), [100, 75, 50]);
    }

    #[test]
    fn a_known_rate_drains_the_queue_and_no_further() {
        let mut loads = Loads::default();
        loads.answered(ms(0), NODE, told(0, 1_000));
        for _ in 0..10 {
            loads.sent(ms(0), NODE);
        }
        let of = |loads: &mut Loads, at| queue(loads, ms(at)) as f64 / REQUEST as f64;
        assert!((of(&mut loads, 0) - 10.0).abs() < 1e-6);
        assert!((of(&mut loads, 4) - 6.0).abs() < 1e-3, "one a millisecond");
        assert!((of(&mut loads, 3) - 6.0).abs() < 1e-3, "time does not run back");
        loads.answered(ms(4), NODE, told(0, 2_000));
        assert!((of(&mut loads, 5) - 4.0).abs() < 1e-2, "two a millisecond, none for the reply");
        assert_eq!(queue(&mut loads, ms(60_000)), 0);
        loads.sent(ms(60_000), NODE);
        assert_eq!(queue(&mut loads, ms(60_000)), REQUEST, "nothing is saved up");
        loads.answered(ms(60_000), NODE, told(0, u32::MAX));
        assert_eq!(queue(&mut loads, Instant(u64::MAX)), 0);
    }

    #[test]
    fn an_unknown_rate_leaks_by_replies_and_by_half_for_what_is_lost() {
        let mut loads = Loads::default();
        for _ in 0..8 {
            loads.sent(ms(0), NODE);
        }
        loads.answered(ms(1), NODE, told(0, 0));
        assert_eq!(queue(&mut loads, ms(9)), 7 * REQUEST);
        loads.sent(ms(9), NODE);
        assert_eq!(queue(&mut loads, ms(10)), 4 * REQUEST);
        assert_eq!(queue(&mut loads, ms(19)), 4 * REQUEST, "half a period counts later");
        assert_eq!(queue(&mut loads, ms(35)), REQUEST);
        for _ in 0..3 {
            loads.answered(ms(36), NODE, told(0, 0));
        }
        assert_eq!(queue(&mut loads, ms(36)), 0);
        loads.sent(ms(36), NODE);
        assert_eq!(queue(&mut loads, ms(3_600_000)), 0);
    }

    #[test]
    fn what_others_have_sent_is_known_by_reports() {
        for rate in [0, 1_000] {
            let mut loads = Loads::default();
            loads.answered(ms(0), NODE, told(0, rate));
            loads.sent(ms(1), NODE);
            loads.answered(ms(1), NODE, told(12, rate));
            assert_eq!(queue(&mut loads, ms(1)), 12 * REQUEST);
            loads.sent(ms(1), NODE);
            loads.answered(ms(1), NODE, told(2, rate));
            let answered = if rate == 0 { 12 } else { 13 };
            assert_eq!(queue(&mut loads, ms(1)), answered * REQUEST, "it was less before");
        }
    }

    #[test]
    fn reports_are_kept_by_node() {
        let mut loads = Loads::default();
        assert_eq!(loads.of(NODE), None);
        loads.note(NODE, 9);
        loads.note(NodeId(1023), 0);
        assert_eq!((loads.of(NODE), loads.of(NodeId(5_000))), (Some(9), None));
        assert_eq!(loads.iter().collect::<Vec<_>>(), [(NODE, 9), (NodeId(1023), 0)]);
    }
}
