//! How busy the nodes are: what they report, and what the switch predicts of their queues.
//!
//! The prediction is Pegasus's: what is sent to a node counts up, and the count leaks at the rate
//! at which the node serves, computed when somebody looks. So what is lost on the way is forgotten
//! by itself. A node that does not say its rate leaks one request with each answer, and half of its
//! count every [`HALVED_EVERY_NS`].
//!
//! Nodes of different speed are compared by how long a request would be there, not by how many
//! wait: of two that have as many, the slower one has more to do. One that does not say its rate
//! passes for one of the fastest.
//!
//! A prediction is never less than what the node has just reported to any pipeline of the switch.
//! Each pipeline counts what it sends for itself, at once. When it first looks at a node in a tick
//! it tells the others, and hears from them, what was sent there before ([`Backlog`]): so each
//! knows of all, of the others' requests a tick or two late.

use crate::reports::{Backlog, REQUEST, Report, Reports, Shared, tick_began, tick_of};
use cluster::{MaybeMutant, Mutant, NodeId};
use machine::Instant;
use std::sync::Arc;

/// What is known of each node's load, as one pipeline of a switch sees it.
#[derive(Clone, Debug)]
pub struct Loads {
    reports: Arc<Reports>,
    nodes: Vec<Node>,
    mutant: MaybeMutant,
}

/// What a reply says of the node that it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadReport {
    /// Datagrams that it found waiting.
    pub(crate) load: u16,
    /// Requests that it serves in a second; 0: it does not say.
    pub(crate) rate: u32,
    /// Whether a request is answered that was counted when it was sent there. What is said of
    /// copies answers none.
    pub(crate) answers: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// What it has said of itself, as this pipeline knows it.
    report: Report,
    /// Requests that it serves in a nanosecond, in [`REQUEST`]s.
    rate: u64,
    /// Requests that wait there, as predicted for `at`, in [`REQUEST`]s.
    queue: u64,
    at: Instant,
    /// The tick in which this pipeline last heard of the others.
    tick: u32,
    /// What it then knew to wait there.
    backlog: Backlog,
    /// Requests that it has sent since, less those that were answered.
    untold: i32,
    /// Whether it has heard since that more wait than it knew.
    surprised: bool,
}

/// So many requests per second, in [`REQUEST`]s per nanosecond.
fn in_a_nanosecond(rate: u32) -> u64 {
    (u64::from(rate) << 32) / 1_000_000_000
}

/// Half-life of requests to a node of unknown rate: several round trips in a rack, so that a
/// prediction lasts until replies have come and is gone soon when they do not.
const HALVED_EVERY_NS: u64 = 10_000_000;

impl Default for Loads {
    fn default() -> Self {
        Self::sharing(Arc::default())
    }
}

impl Loads {
    /// Those of one of several pipelines, which share what nodes report.
    pub(crate) fn sharing(reports: Arc<Reports>) -> Self {
        Self {
            reports,
            nodes: vec![Node::default(); wire::NODES_MAX],
            mutant: MaybeMutant::default(),
        }
    }

    pub(crate) fn mutant(&mut self, mutant: MaybeMutant) {
        self.mutant = mutant;
    }

    /// Datagrams that this node found waiting when it made the last of its replies to pass the
    /// switch; `None` if none has passed.
    #[must_use]
    pub fn of(&self, node: NodeId) -> Option<u16> {
        self.reports.get(node).and_then(|it| it.report().load)
    }

    /// Every node that has reported, by id, with its last report.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, u16)> {
        let ids = (0u16..).map(NodeId).take(self.nodes.len());
        ids.filter_map(|node| Some((node, self.of(node)?)))
    }

    /// Takes the last report of a node, of which nothing else is known.
    ///
    /// # Panics
    ///
    /// If the node's id is not below `NODES_MAX`, as those of compiled tables are.
    pub fn note(&mut self, node: NodeId, load: u16) {
        let shared = self.reports.get(node).expect(COMPILED);
        shared.tell(Report { load: Some(load), ..shared.report() });
    }

    /// A reply has come from this node, which says this.
    pub(crate) fn answered(&mut self, now: Instant, node: NodeId, told: LoadReport) {
        self.reports.serves(now, told.rate);
        // By the rate that it said before.
        let (own, shared) = self.look(now, node);
        own.answered(told);
        shared.tell(own.report);
    }

    /// A request is sent to this node.
    pub(crate) fn sent(&mut self, now: Instant, node: NodeId) {
        let (own, _) = self.look(now, node);
        own.queue = own.queue.saturating_add(REQUEST);
        own.untold = own.untold.saturating_add(1);
    }

    /// Whole requests that this pipeline predicts to wait at a node now; 0 for what is no node.
    #[must_use]
    pub fn waiting(&self, now: Instant, node: NodeId) -> u64 {
        let Some(own) = self.nodes.get(usize::from(node.0)) else { return 0 };
        let mut own = *own;
        own.leak(now, self.mutant);
        own.queue / REQUEST
    }

    /// In how many nanoseconds this node would have served a request that is sent there now; if no
    /// node has said its rate, something of which only the order means anything.
    pub(crate) fn predicted(&mut self, now: Instant, node: NodeId) -> u64 {
        let fastest = self.reports.fastest();
        let (own, _) = self.look(now, node);
        let rate = if own.rate == 0 { in_a_nanosecond(fastest) } else { own.rate };
        own.queue.saturating_add(REQUEST) / rate.max(1)
    }

    /// What this node can serve beside others, in units of which [`Self::fastest`] are the most
    /// that any can.
    pub(crate) fn serves(&self, node: NodeId) -> u64 {
        let known = self.reports.get(node).map_or(0, |it| it.report().rate);
        if known == 0 { self.fastest() } else { known.into() }
    }

    /// See [`Self::serves`].
    pub(crate) fn fastest(&self) -> u64 {
        self.reports.fastest().max(1).into()
    }

    /// What is known of a node now, here and by all.
    fn look(&mut self, now: Instant, node: NodeId) -> (&mut Node, &Shared) {
        let own = self.nodes.get_mut(usize::from(node.0)).expect(COMPILED);
        let shared = self.reports.get(node).expect(COMPILED);
        own.leak(now, self.mutant);
        if own.tick != tick_of(now) {
            own.pool(now, shared, self.mutant);
        }
        let report = shared.report();
        if own.report != report {
            own.hear(report); // Through another pipeline.
        }
        (own, shared)
    }
}

const COMPILED: &str = "node ids are below NODES_MAX, as compiled";

impl Node {
    fn answered(&mut self, LoadReport { load, rate, answers }: LoadReport) {
        if rate == 0 && answers {
            self.queue = self.queue.saturating_sub(REQUEST);
            self.untold = self.untold.saturating_sub(1);
        }
        self.hear(Report { load: Some(load), rate });
    }

    /// It has said this of itself.
    fn hear(&mut self, report: Report) {
        if self.report.rate != report.rate {
            self.rate = in_a_nanosecond(report.rate);
        }
        self.report = report;
        let waiting = u64::from(report.load.unwrap_or(0)) * REQUEST;
        if self.queue < waiting {
            self.queue = waiting;
            self.surprised = true;
        }
    }

    /// Lets go what has been served since the last look.
    fn leak(&mut self, now: Instant, mutant: MaybeMutant) {
        if mutant.is(Mutant::CountUntilAnswered) {
            return;
        }
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

    /// Tells the others, in another tick than before, what was sent from here, and takes over what
    /// they have told. Who is alone goes on by its own count, which is finer.
    fn pool(&mut self, now: Instant, shared: &Shared, mutant: MaybeMutant) {
        let (tick, began, known) = (tick_of(now), tick_began(now), shared.backlog());
        let is_news = known != self.backlog;
        let mut all = known;
        if self.untold != 0 {
            all = all.left(self.tick, self.rate).plus(self.untold);
        }
        all = all.left(tick, self.rate);
        if self.surprised {
            let since = (now.0 - began.0).saturating_mul(self.rate);
            all = all.at_least(self.queue.saturating_add(since));
        }
        (self.tick, self.backlog) = (tick, known);
        // If another one has just been here, this is told in the next tick.
        if (self.untold != 0 || self.surprised) && shared.replace(known, all) {
            (self.backlog, self.untold, self.surprised) = (all, 0, false);
        }
        if is_news {
            (self.queue, self.at) = (all.queue(), began);
            self.leak(now, mutant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);

    fn told(load: u16, rate: u32) -> LoadReport {
        LoadReport { load, rate, answers: true }
    }

    fn ms(ms: u64) -> Instant {
        Instant::from_unix_ms(1_000_000 + ms)
    }

    /// What waits, in units of which [`REQUEST`] are one request.
    fn queue(loads: &mut Loads, now: Instant) -> u64 {
        loads.look(now, NODE).0.queue
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

    /// Two pipelines of one switch.
    fn two() -> [Loads; 2] {
        let reports = Arc::<Reports>::default();
        [(); 2].map(|()| Loads::sharing(reports.clone()))
    }

    #[test]
    fn what_a_node_tells_one_pipeline_all_know() {
        let [mut hears, mut other] = two();
        assert_eq!(queue(&mut other, ms(0)), 0);
        for (load, rate) in [(12, 0), (15, 1_000)] {
            hears.answered(ms(0), NODE, told(load, rate));
            assert_eq!(other.of(NODE), Some(load));
            assert_eq!(queue(&mut other, ms(0)), u64::from(load) * REQUEST, "at once");
            assert_eq!(other.serves(NODE), u64::from(rate).max(1));
            assert_eq!(other.fastest(), u64::from(rate).max(1));
        }
        // It says the same again, when it has served some.
        assert_eq!(queue(&mut other, ms(10)) / REQUEST, 5);
        hears.answered(ms(10), NODE, told(15, 1_000));
        for loads in [&mut hears, &mut other] {
            queue(loads, ms(12));
        }
        assert_eq!(queue(&mut other, ms(14)) / REQUEST, 11);
    }

    #[test]
    fn what_pipelines_have_sent_all_know_soon() {
        let [mut one, mut other] = two();
        one.answered(ms(0), NODE, told(0, 1_000));
        (0..20).for_each(|_| one.sent(ms(0), NODE));
        assert_eq!(queue(&mut other, ms(0)), 0);
        queue(&mut one, ms(2));
        (0..20).for_each(|_| other.sent(ms(2), NODE));
        queue(&mut other, ms(4));
        // One a millisecond is served, in all, and a tick more or less is none.
        for loads in [&mut one, &mut other] {
            let waiting = queue(loads, ms(6)) / REQUEST;
            assert!((32..=34).contains(&waiting), "{waiting}");
        }
        let gone = [&mut one, &mut other].map(|loads| queue(loads, ms(60)));
        assert_eq!(gone, [0, 0]);
    }

    #[test]
    fn answers_count_whichever_pipeline_they_come_to() {
        let [mut sends, mut hears] = two();
        (0..8).for_each(|_| sends.sent(ms(0), NODE));
        (0..6).for_each(|_| hears.answered(ms(0), NODE, told(0, 0)));
        // Who has the answers tells of them first.
        for loads in [&mut hears, &mut sends] {
            queue(loads, ms(2));
        }
        let left = [&mut hears, &mut sends].map(|loads| queue(loads, ms(4)));
        assert_eq!(left, [2 * REQUEST; 2]);
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
