//! What time it is in the cluster. No machine's clock is trusted with that: it is what most of
//! them said when the cluster began, and from then on it goes on by the controller's steady clock,
//! whoever sets a clock, and whoever starts anew with one that was set.
//!
//! A controller that begins takes the time from any node that was told it in its present
//! incarnation. Only where there is none (all nodes have started anew) the clocks of the nodes and
//! its own are asked, and the one in the middle is taken. No node gets a lease before the time is
//! known, so none serves by another. After that the time follows the middle one, slowly, and only
//! while it is near: a correction is followed, a step is not.

use crate::controller::Controller;
use crate::peer::{Contact, Peer};
use cluster::{ClockAhead, ClockOrder, Member, MemberReport, Mutant, Report};
use machine::Instant;
use std::time::Duration;

/// A clock that is further than this from the cluster's was set, and is not followed: more than
/// daemons that keep clocks right ever leave, and less than anybody means to be off.
pub(crate) const FOLLOW_MAX: Duration = Duration::from_secs(10);

/// Of an elapsed time, the part by which the cluster's clock comes nearer to those that it follows:
/// 0.05 %, the most that NTP slews by.
const FOLLOW_PART: u64 = 2_000;

/// Of the age of a sample, the part by which it may be off more than when it was taken: clocks
/// differ in rate by at most some 1 %.
const AGE_PART: u32 = 100;

/// How long most of the nodes are waited for, if only some answer and none of these was told the
/// time. Without any nobody serves, and there is no hurry.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How a member's clock was found to differ from the controller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// How far the member's is ahead, or so.
    pub(crate) ahead: ClockAhead,
    /// The most that this is wrong by: half of what passed from the question to the answer.
    error: Duration,
    at: Instant,
}

impl Sample {
    /// From a report that was made at `said`, between two instants of the controller's.
    fn new(asked: Instant, heard: Instant, said: Instant) -> Self {
        let error = heard.since(asked) / 2;
        Self { ahead: ClockAhead::of(said, asked + error), error, at: heard }
    }

    /// Whether it says more than an older one.
    fn is_better_than(self, older: Self) -> bool {
        self.error <= older.error + self.at.since(older.at) / AGE_PART
    }
}

/// The cluster's clock, as one controller keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterClock {
    /// How far it is ahead of the controller's; `None` until that is known.
    ahead: Option<ClockAhead>,
    /// Since when nodes are waited for that may know, and how long the controller is patient with
    /// one that does not answer.
    since: Instant,
    patience: Duration,
    followed_at: Instant,
}

impl ClusterClock {
    pub(crate) fn new(now: Instant, patience: Duration) -> Self {
        Self { ahead: None, since: now, patience, followed_at: now }
    }

    /// When to look again whether the time is known, if it is not.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let waits = [self.patience, WAIT_MAX].map(|wait| self.since + wait);
        let next = waits.into_iter().find(|at| *at > now);
        next.filter(|_| self.ahead.is_none())
    }

    pub(crate) fn is_known(&self) -> bool {
        self.ahead.is_some()
    }

    /// How far a member's clock is ahead of it.
    pub(crate) fn behind(&self, member: &Sample) -> Option<ClockAhead> {
        self.ahead_of(member).map(opposite)
    }

    /// How far it is ahead of a member's clock.
    pub(crate) fn ahead_of(&self, member: &Sample) -> Option<ClockAhead> {
        Some(minus(self.ahead?, member.ahead))
    }
}

fn minus(a: ClockAhead, b: ClockAhead) -> ClockAhead {
    ClockAhead(a.0.saturating_sub(b.0))
}

impl Controller {
    /// Whether it is known what time it is in the cluster. Else nodes get no leases: they would
    /// serve by their own clocks.
    #[must_use]
    pub fn knows_the_time(&self) -> bool {
        self.clock.is_known()
    }

    /// The time that goes with an order.
    pub(crate) fn clock_for(&self, member: Member) -> Option<ClockOrder> {
        let Member::Node(_) = member else { return None };
        let peer = self.peers.get(&member)?;
        let ahead = self.clock.ahead_of(peer.clock.as_ref()?)?;
        Some(ClockOrder { incarnation: peer.report.as_ref()?.incarnation, ahead })
    }

    /// A report was heard: what it says of clocks, if it is a node's.
    pub(crate) fn hear_clock(&mut self, member: Member, report: &Report) {
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&member) else { return };
        let asked = peer.asked.take();
        let MemberReport::Node(of_node) = &report.state else { return };
        let reborn = peer.report.as_ref().is_none_or(|last| last.incarnation != report.incarnation);
        let older = peer.clock.filter(|_| !reborn);
        let sample = asked.map(|asked| Sample::new(asked, now, report.at));
        let news = sample.filter(|it| older.is_none_or(|older| it.is_better_than(older)));
        peer.clock = news.or(older);
        let Some(sample) = peer.clock else { return };
        if let Some(ahead) = of_node.clock
            && !self.clock.is_known()
            && !self.mutant.is(Mutant::TimeByController)
        {
            self.know(ClockAhead(sample.ahead.0.saturating_add(ahead.0)));
            let saw = format!("{member} knows what time it is in the cluster");
            self.decisions.note(now, saw, "go by that", "");
        }
        self.look_at_clock();
        let Some(off) = self.clock.behind(&sample).filter(|off| is_far(*off)) else { return };
        if reborn {
            let saw = format!("the clock of {member} is {} the cluster's", shown(off));
            self.decisions.note_seen(now, saw, "let it go by the cluster's clock", true);
        }
    }

    /// Finds out what time it is, if it is time for that, and follows the clocks of most.
    pub(crate) fn look_at_clock(&mut self) {
        let now = self.now;
        let Some(ahead) = self.clock.ahead else {
            let nodes = self.peers.iter().filter(|(it, _)| matches!(it, Member::Node(_)));
            let nodes: Vec<&Peer> = nodes.map(|(_, peer)| peer).collect();
            let heard = nodes.iter().filter(|peer| peer.clock.is_some()).count();
            let waited = now.since(self.clock.since);
            if self.mutant.is(Mutant::TimeByController) {
                return self.know(ClockAhead::default());
            }
            let enough = heard == nodes.len()
                || heard * 2 >= nodes.len() && waited >= self.clock.patience
                || heard > 0 && waited >= WAIT_MAX;
            if enough {
                self.know(self.middle());
            }
            return;
        };
        let off = minus(self.middle(), ahead);
        let step = now.since(self.clock.followed_at).as_nanos() / u128::from(FOLLOW_PART);
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.clock.followed_at = now;
        if !is_far(off) {
            let off = off.0.clamp(-step, step);
            self.clock.ahead = Some(ClockAhead(ahead.0.saturating_add(off)));
        }
    }

    /// From now on it is known what time it is: nodes that wait for that get their leases.
    fn know(&mut self, ahead: ClockAhead) {
        (self.clock.ahead, self.clock.followed_at) = (Some(ahead), self.now);
        let nodes = self.peers.iter_mut().filter(|(it, _)| matches!(it, Member::Node(_)));
        nodes.filter(|(_, peer)| peer.follows()).for_each(|(_, peer)| peer.due = self.now);
    }

    /// How far the clock in the middle of those of all nodes that answer, and of this machine, is
    /// ahead of this one; of two the one that is behind, by which nothing expires too early.
    fn middle(&self) -> ClockAhead {
        // The one that is being heard may be said to answer only after this.
        let answering = self.peers.values().filter(|peer| peer.contact != Contact::Silent);
        let clocks = answering.filter_map(|peer| Some(peer.clock?.ahead));
        let mut clocks: Vec<ClockAhead> = clocks.chain([ClockAhead::default()]).collect();
        clocks.sort_unstable();
        clocks.get((clocks.len() - 1) / 2).copied().unwrap_or_default()
    }
}

fn opposite(ahead: ClockAhead) -> ClockAhead {
    ClockAhead(ahead.0.saturating_neg())
}

/// As `3600 s ahead of`.
pub(crate) fn shown(ahead: ClockAhead) -> String {
    let seconds = Duration::from_nanos(ahead.0.unsigned_abs()).as_secs();
    format!("{seconds} s {}", if ahead.0 < 0 { "behind" } else { "ahead of" })
}

/// Whether a clock that is so far off was set, and not just drifts.
pub(crate) fn is_far(off: ClockAhead) -> bool {
    Duration::from_nanos(off.0.unsigned_abs()) > FOLLOW_MAX
}
