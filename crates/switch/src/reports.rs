//! What all pipelines of a switch know of its nodes: what these say of themselves, and what waits
//! there of what all have sent.
//!
//! Where each thread has a socket of its own a node's replies come to one of them, always the same,
//! and requests leave from all: without this the others would know nothing of the node. No lock and
//! no request of each thread costs another one anything: a report is written when it says something
//! new, and what was sent once in a tick. All of it is for choices, on which no answer depends.

use cluster::NodeId;
use machine::Instant;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Shared by all pipelines of a switch.
#[derive(Debug)]
pub(crate) struct Reports {
    nodes: Box<[Shared]>,
    fastest: Fastest,
}

/// The most that any node has said it serves, in the present window and in the one before: what was
/// said once is not believed for ever. A window begins with what is said in it, so that in a rest
/// nothing is forgotten.
#[derive(Debug, Default)]
struct Fastest {
    window: AtomicU32,
    now: AtomicU32,
    before: AtomicU32,
}

/// What is known of one node, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Shared {
    report: AtomicU64,
    backlog: AtomicU64,
}

/// What a node said of itself last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Datagrams that it found waiting; `None`: it has said nothing yet.
    pub(crate) load: Option<u16>,
    /// Requests that it serves in a second; 0: it does not say.
    pub(crate) rate: u32,
}

/// What waits at a node as of the beginning of a tick, of what all have sent and told the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    tick: u32,
    /// In [`PARTS`] of a request. Below 0: who had the answers was faster to tell than who had sent
    /// what they answer.
    waiting: i32,
}

/// One request in the fixed point of predictions: a node that serves one a second serves four of
/// these units in a nanosecond, so rates are right within a quarter at that end and far better
/// from there on.
pub(crate) const REQUEST: u64 = 1 << 32;

/// One request in a [`Backlog`].
const PARTS: i32 = 1 << 8;
/// One of those parts in [`REQUEST`]s.
const PART: u64 = REQUEST / PARTS as u64;

/// Nanoseconds of a tick, about a thousandth of a second, as a power of two.
const TICK_BITS: u32 = 20;
/// Half-life, in ticks, of requests to a node of unknown rate, about as in `loads`.
const HALVED_EVERY: u32 = 10;
/// Threads may differ by so many ticks in what time it is.
const SKEW_MAX: u32 = 1_000;

/// The tick in which this is; it comes again after 52 days.
pub(crate) fn tick_of(now: Instant) -> u32 {
    (now.0 >> TICK_BITS) as u32
}

/// Nanoseconds of a window of [`Fastest`], about a second, as a power of two: many answers of each
/// node that is asked at all.
const WINDOW_BITS: u32 = 30;

/// When that tick began.
pub(crate) fn tick_began(now: Instant) -> Instant {
    Instant(now.0 >> TICK_BITS << TICK_BITS)
}

impl Default for Reports {
    fn default() -> Self {
        let nodes = std::iter::repeat_with(Shared::default).take(wire::NODES_MAX).collect();
        Self { nodes, fastest: Fastest::default() }
    }
}

impl Reports {
    /// Of this node, if its id is below `NODES_MAX`.
    pub(crate) fn get(&self, node: NodeId) -> Option<&Shared> {
        self.nodes.get(usize::from(node.0))
    }

    /// The most that any node has said it serves lately.
    pub(crate) fn fastest(&self) -> u32 {
        let Fastest { now, before, .. } = &self.fastest;
        now.load(Ordering::Relaxed).max(before.load(Ordering::Relaxed))
    }

    /// A node has said that it serves so much.
    pub(crate) fn serves(&self, now: Instant, rate: u32) {
        if rate > 0 {
            self.fastest.note((now.0 >> WINDOW_BITS) as u32, rate);
        }
    }
}

impl Fastest {
    fn note(&self, window: u32, rate: u32) {
        let last = self.window.load(Ordering::Relaxed);
        let is_later = window.wrapping_sub(last).cast_signed() > 0;
        let swap =
            |last| self.window.compare_exchange(last, window, Ordering::Relaxed, Ordering::Relaxed);
        if is_later && swap(last).is_ok() {
            self.before.store(self.now.swap(rate, Ordering::Relaxed), Ordering::Relaxed);
        } else if self.now.load(Ordering::Relaxed) < rate {
            self.now.fetch_max(rate, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// What the node said last.
    pub(crate) fn report(&self) -> Report {
        Report::of_word(self.report.load(Ordering::Relaxed))
    }

    /// The node has said this.
    pub(crate) fn tell(&self, report: Report) {
        if self.report() != report {
            self.report.store(report.word(), Ordering::Relaxed);
        }
    }

    /// What waits there, as far as pipelines have told.
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog::of_word(self.backlog.load(Ordering::Relaxed))
    }

    /// Puts another backlog in the place of a known one, unless somebody else has just done that.
    pub(crate) fn replace(&self, known: Backlog, next: Backlog) -> bool {
        let (known, next) = (known.word(), next.word());
        let replaced =
            self.backlog.compare_exchange(known, next, Ordering::Relaxed, Ordering::Relaxed);
        replaced.is_ok()
    }
}

impl Report {
    fn word(self) -> u64 {
        u64::from(self.rate) << 32 | self.load.map_or(0, |load| u64::from(load) + 1)
    }

    fn of_word(word: u64) -> Self {
        let load = (word as u32).checked_sub(1).and_then(|load| u16::try_from(load).ok());
        Self { load, rate: (word >> 32) as u32 }
    }
}

impl Backlog {
    fn word(self) -> u64 {
        u64::from(self.tick) << 32 | u64::from(self.waiting.cast_unsigned())
    }

    fn of_word(word: u64) -> Self {
        Self { tick: (word >> 32) as u32, waiting: (word as u32).cast_signed() }
    }

    /// What waits, in [`REQUEST`]s.
    pub(crate) fn queue(self) -> u64 {
        u64::try_from(self.waiting).unwrap_or(0) * PART
    }

    /// With so many requests more, or fewer.
    pub(crate) fn plus(self, requests: i32) -> Self {
        Self { waiting: self.waiting.saturating_add(requests.saturating_mul(PARTS)), ..self }
    }

    /// No less than so many [`REQUEST`]s.
    pub(crate) fn at_least(self, queue: u64) -> Self {
        let queue = i32::try_from(queue / PART).unwrap_or(i32::MAX);
        Self { waiting: self.waiting.max(queue), ..self }
    }

    /// What is left in that tick, if the node serves so many [`REQUEST`]s in a nanosecond; 0: that
    /// is not known. Nothing goes by if the tick is over already.
    pub(crate) fn left(self, tick: u32, rate: u64) -> Self {
        let elapsed = tick.wrapping_sub(self.tick);
        if elapsed > u32::MAX - SKEW_MAX {
            return self;
        }
        let waiting = if rate == 0 {
            let halvings = (tick / HALVED_EVERY).wrapping_sub(self.tick / HALVED_EVERY);
            self.waiting >> halvings.min(i32::BITS - 1)
        } else {
            let served = (u64::from(elapsed) << TICK_BITS).saturating_mul(rate) / PART;
            let served = i32::try_from(served).unwrap_or(i32::MAX);
            self.waiting.max(0).saturating_sub(served).max(0)
        };
        Self { tick, waiting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_backlogs_fit_into_words() {
        let reports = [None, Some(0), Some(9), Some(u16::MAX)];
        for report in reports.map(|load| Report { load, rate: u32::MAX - 5 }) {
            assert_eq!(Report::of_word(report.word()), report);
        }
        assert_eq!(Report::of_word(0), Report::default());
        for waiting in [0, 1, -1, i32::MIN, i32::MAX] {
            let backlog = Backlog { tick: u32::MAX - 7, waiting };
            assert_eq!(Backlog::of_word(backlog.word()), backlog);
        }
        assert_eq!(size_of::<Shared>(), 64, "a line of its own");
    }

    #[test]
    fn what_a_node_has_said_once_is_not_believed_for_ever() {
        let window = |number: u64| Instant(number << WINDOW_BITS);
        let reports = Reports::default();
        let says = |number, rate| {
            reports.serves(window(number), rate);
            reports.fastest()
        };
        assert_eq!(
            (says(7, 200), says(7, 90_000_000), says(7, 100)),
            (200, 90_000_000, 90_000_000)
        );
        assert_eq!(says(8, 200), 90_000_000, "the window before counts as well");
        assert_eq!(says(7, 300), 90_000_000, "a thread is late");
        assert_eq!(says(8, 0), 90_000_000);
        assert_eq!(says(9, 0), 90_000_000, "who says nothing ends no window");
        assert_eq!(says(9, 100), 300);
        assert_eq!((says(900, 50), says(901, 50)), (100, 50), "after a rest");
    }

    #[test]
    fn a_backlog_leaks_from_tick_to_tick() {
        let one = Backlog::default().plus(100);
        assert_eq!(one.queue(), 100 * REQUEST);
        // Two requests in a tick.
        let rate = (2 * REQUEST) >> TICK_BITS;
        assert_eq!(one.left(10, rate), Backlog { tick: 10, ..one.plus(-20) });
        assert_eq!(one.left(60, rate).queue(), 0);
        assert_eq!(one.left(u32::MAX - 5, rate), one, "a thread is a little late");
        assert_eq!(one.left(u32::MAX / 2 * 2 - 2_000, rate).queue(), 0, "far later");
        assert_eq!(one.left(9, 0).queue(), 100 * REQUEST);
        assert_eq!(one.left(29, 0).queue(), 25 * REQUEST);
        assert_eq!(one.left(u32::MAX / 2, 0).queue(), 0);
        assert_eq!(one.plus(-101).queue(), 0, "answers were told first");
        assert_eq!(one.plus(-101).plus(1), Backlog::default());
        assert_eq!(one.at_least(7 * REQUEST), one);
        assert_eq!(one.at_least(u64::MAX).waiting, i32::MAX);
    }

    #[test]
    fn what_somebody_else_has_told_meanwhile_is_not_lost() {
        let shared = Shared::default();
        let known = shared.backlog();
        assert!(shared.replace(known, known.plus(1)));
        assert!(!shared.replace(known, known.plus(2)));
        assert_eq!(shared.backlog(), known.plus(1));
    }
}
