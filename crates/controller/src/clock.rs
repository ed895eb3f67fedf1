//! What time it is in the cluster. No machine's clock is trusted with that: it is what most of
//! them said when the cluster began, and from then on it goes on by the controller's steady clock,
//! whoever sets a clock, and whoever starts anew with one that was set.
//!
//! A controller that begins takes the time from any node that was told it in its present
//! incarnation. Only where there is none (all nodes have started anew) the clocks of the nodes and
//! its own are asked, and the one in the middle is taken. No node gets a lease before the time is
//! known, so none serves by another. After that the time follows the middle one, slowly, and only
//! while it is near: a correction is followed, a step is not.

use crate::decisions::{Decisions, Level};
use crate::members::{Contact, Members, Peer, Sample};
use cluster::{ClockAhead, ClockOrder, MaybeMutant, Member, MemberReport, Mutant, Report};
use machine::{Instant, UnixMs};
use std::time::Duration;

/// A clock that is further than this from the cluster's was set, and is not followed: more than
/// daemons that keep clocks right ever leave, and less than anybody means to be off.
pub(crate) const FOLLOW_MAX: Duration = Duration::from_secs(10);

/// Of an elapsed time, the part by which the cluster's clock comes nearer to those that it follows:
/// 0.05 %, the most that NTP slews by.
const FOLLOW_PART: u64 = 2_000;

/// How long most of the nodes are waited for, and for answers that come soon enough to be exact, if
/// only some answer. Without any nobody serves, and there is no hurry.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The cluster's clock, as one controller keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterClock {
    /// How far it is ahead of the controller's; `None` until that is known.
    ahead: Option<ClockAhead>,
    /// What it is by a node that was told the time, but whose own clock is known but roughly.
    rough: Option<ClockAhead>,
    /// Since when nodes are waited for that may know, and how long the controller is patient with
    /// one that does not answer.
    since: Instant,
    patience: Duration,
    followed_at: Instant,
}

impl ClusterClock {
    pub(crate) fn new(now: Instant, patience: Duration) -> Self {
        Self { ahead: None, rough: None, since: now, patience, followed_at: now }
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

    /// What it shows when the controller's clock shows this; `None` until that is known.
    pub(crate) fn time(&self, now: Instant) -> Option<UnixMs> {
        Some(self.ahead?.time(now))
    }

    /// How far a member's clock is ahead of it.
    pub(crate) fn behind(&self, member: &Sample) -> Option<ClockAhead> {
        self.ahead_of(member).map(opposite)
    }

    /// How far it is ahead of a member's clock.
    pub(crate) fn ahead_of(&self, member: &Sample) -> Option<ClockAhead> {
        Some(minus(self.ahead?, member.ahead))
    }

    /// The time that goes with an order.
    pub(crate) fn order_for(&self, member: Member, peer: &Peer) -> Option<ClockOrder> {
        let Member::Node(_) = member else { return None };
        let ahead = self.ahead_of(peer.clock.as_ref()?)?;
        Some(ClockOrder { incarnation: peer.report.as_ref()?.incarnation, ahead })
    }

    /// A report was heard: what it says of clocks, if it is a node's.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        (member, report): (Member, &Report),
        members: &mut Members,
        decisions: &mut Decisions,
        mutant: MaybeMutant,
    ) {
        let heard = members.get_mut(member).and_then(|peer| peer.hear_clock(now, report));
        let Some((sample, reborn)) = heard else { return };
        if let MemberReport::Node(of_node) = &report.state
            && let Some(ahead) = of_node.clock
            && !self.is_known()
            && !mutant.is(Mutant::TimeByController)
        {
            let ahead = ClockAhead(sample.ahead.0.saturating_add(ahead.0));
            self.rough.get_or_insert(ahead);
            if sample.is_exact() {
                self.know(now, ahead, members);
                let saw = format!("{member} knows what time it is in the cluster");
                decisions.note(now, Level::Usual, saw, "go by that", "");
            }
        }
        self.look(now, members, mutant);
        let Some(off) = self.behind(&sample).filter(|off| is_far(*off)) else { return };
        if reborn {
            let saw = format!("the clock of {member} is {} the cluster's", shown(off));
            decisions.note(now, Level::Trouble, saw, "let it go by the cluster's clock", "");
        }
    }

    /// Finds out what time it is, if it is time for that, and follows the clocks of most.
    pub(crate) fn look(&mut self, now: Instant, members: &mut Members, mutant: MaybeMutant) {
        let Some(ahead) = self.ahead else {
            let (mut nodes, mut heard, mut exact) = (0, 0, 0);
            for (_, peer) in members.nodes() {
                nodes += 1;
                heard += usize::from(peer.clock.is_some());
                exact += usize::from(peer.clock.is_some_and(|it| it.is_exact()));
            }
            let waited = now.since(self.since);
            if mutant.is(Mutant::TimeByController) {
                return self.know(now, ClockAhead::default(), members);
            }
            let enough = exact == nodes
                || (exact * 2 >= nodes || self.rough.is_some()) && waited >= self.patience
                || heard > 0 && waited >= WAIT_MAX;
            if enough {
                let ahead = self.rough.unwrap_or_else(|| middle(members));
                self.know(now, ahead, members);
            }
            return;
        };
        let off = minus(middle(members), ahead);
        let step = now.since(self.followed_at).as_nanos() / u128::from(FOLLOW_PART);
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.followed_at = now;
        if !is_far(off) {
            let off = off.0.clamp(-step, step);
            self.ahead = Some(ClockAhead(ahead.0.saturating_add(off)));
        }
    }

    /// From now on it is known what time it is: nodes that wait for that get their leases.
    fn know(&mut self, now: Instant, ahead: ClockAhead, members: &mut Members) {
        (self.ahead, self.followed_at) = (Some(ahead), now);
        members.ask_nodes(now);
    }
}

/// How far the clock in the middle of those of all nodes that answer, and of this machine, is
/// ahead of this one; of two the one that is behind, by which nothing expires too early.
fn middle(members: &Members) -> ClockAhead {
    // The one that is being heard may be said to answer only after this.
    let answering = members.iter().filter(|(_, peer)| peer.contact != Contact::Silent);
    let samples: Vec<Sample> = answering.filter_map(|(_, peer)| peer.clock).collect();
    let any_exact = samples.iter().any(Sample::is_exact);
    let clocks = samples.iter().filter(|it| it.is_exact() || !any_exact).map(|it| it.ahead);
    let mut clocks: Vec<ClockAhead> = clocks.chain([ClockAhead::default()]).collect();
    clocks.sort_unstable();
    clocks.get((clocks.len() - 1) / 2).copied().unwrap_or_default()
}

fn minus(a: ClockAhead, b: ClockAhead) -> ClockAhead {
    ClockAhead(a.0.saturating_sub(b.0))
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
