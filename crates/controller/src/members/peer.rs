//! What the controller knows of one member.

use super::lease::Granted;
use super::sample::Sample;
use super::standing::Standing;
use crate::saved::Saved;
use cluster::{ClusterId, Incarnation, Install, Lease, Member, MemberReport, NodeReport, Report};
use machine::Instant;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::Revision;

/// One switch or node.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// When it is to get its next order.
    pub(crate) due: Instant,
    /// How long after an order the next one follows.
    pub(crate) pace: Duration,
    /// When the order was sent that it has not answered yet.
    pub(crate) in_flight: Option<Instant>,
    /// Revision that the order gave it, if it was a full one.
    pub(crate) given: Option<Revision>,
    /// When it was last heard.
    pub(crate) heard: Option<Instant>,
    /// From when on nobody is taken to be silent only because this member answers and they do not.
    pub(crate) steady_at: Instant,
    /// When the order was sent that it has not answered yet, whatever came in between.
    pub(crate) asked: Option<Instant>,
    /// How its clock differs from the controller's.
    pub(crate) clock: Option<Sample>,
    /// What became of the last order to it.
    pub(crate) contact: Contact,
    /// What its last report makes of it; what was last said if it has fallen silent.
    pub(crate) standing: Standing,
    /// Its last report.
    pub(crate) report: Option<Report>,
    /// Revision of the newest full order sent to it, since it last came back from somewhere.
    pub(crate) offered: Revision,
    /// Revision of the newest order of hot keys sent to it, likewise.
    pub(crate) hot_offered: Revision,
    /// It answered a full order without having installed it.
    pub(crate) stuck: bool,
    /// Incarnations of it that are certainly over: a word of theirs that is late counts for
    /// nothing.
    pub(crate) over: BTreeSet<Incarnation>,
    /// It may hold data: an assignment with partitions was sent, now or in an earlier incarnation.
    pub(crate) may_hold: bool,
    /// What leases it may have.
    pub(crate) granted: Granted,
    /// What leases for requests that pass no switch it may have, in any incarnation, if it is a
    /// node. They are never longer than those.
    pub(crate) direct: Granted,
    /// What leases it may have had with another memory than its present one.
    pub(crate) replaced: Granted,
    /// Since when it has not shown what would renew its lease.
    pub(crate) lapsing_since: Option<Instant>,
    /// Since when it says that it is about to end.
    pub(crate) leaving_since: Option<Instant>,
}

/// How long others have to come back after a node that was started anew and is the first of its
/// chain to answer. Without it, the first to be up after a power cut would be the only one that
/// does not need its data copied.
const RETURN_GRACE: Duration = Duration::from_secs(2);

/// Incarnations of one member that are remembered to be over.
const OVER_MAX: usize = 1_024;

/// How long a member that does not answer is waited for: until it was asked once more.
const MISSED_AFTER: Duration = crate::config::POLL_INTERVAL;

/// For how many leases those who came back wait for one that does not answer, if nobody else is
/// there who has been in the chain all the time: what they hold can be compared with nobody else.
/// Six last longer than a machine takes to start, or a switch port to be seen to.
const COMPARISON_LEASES: u32 = 6;

/// How long one is waited for that answers and does not do what it is told. It runs, and what it
/// was given may only have come too late, or too early.
const STUCK_AFTER: Duration = Duration::from_millis(400);

/// How long a node may serve requests that pass no switch (`DIRECT`) after it was asked by any. No
/// fence keeps them from it, so whoever takes over from it waits for that.
const DIRECT_LEASE: Duration = Duration::from_millis(500);

/// How often a node is asked that has such a lease, so that it has one all the time: what it lends
/// to caches rests on it.
pub(crate) const DIRECT_POLL: Duration = Duration::from_millis(100);

/// How long ago a member may have been asked what its clock shows, as long as a driver waits for
/// most answers: half of it is what may be wrong. A controller that was stopped finds answers that
/// are older, and one that has just begun would take the time of the cluster from them.
const CLOCK_ASKED_MAX: Duration = Duration::from_millis(200);

/// What a lease is given for, and on what terms.
pub(crate) struct Terms {
    pub(crate) cluster: ClusterId,
    pub(crate) lasts: Duration,
    /// Revision of the newest state known to be durable, and whether there is no newer one.
    pub(crate) durable: Revision,
    pub(crate) is_durable: bool,
    /// Whether it is known what time it is in the cluster.
    pub(crate) time_is_known: bool,
    /// Whether the member is the active switch.
    pub(crate) is_active: bool,
}

/// Whether orders reach a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// None has been answered or given up yet.
    Untried,
    /// The last one was answered.
    Answering,
    /// The last one was not.
    Silent,
}

impl Peer {
    /// A member that may have been granted a lease up to now, to be asked at this pace.
    pub(crate) fn new(now: Instant, pace: Duration, lease: Duration) -> Self {
        Self::after(now, pace, (lease, Duration::ZERO))
    }

    /// The same if a predecessor may go on granting such leases for a while.
    pub(crate) fn after(
        now: Instant,
        pace: Duration,
        (lease, overlap): (Duration, Duration),
    ) -> Self {
        Self {
            due: now,
            pace,
            in_flight: None,
            given: None,
            heard: None,
            steady_at: now,
            asked: None,
            clock: None,
            contact: Contact::Untried,
            standing: Standing::Unheard,
            report: None,
            offered: Revision::NONE,
            hot_offered: Revision::NONE,
            stuck: false,
            over: BTreeSet::new(),
            may_hold: false,
            granted: Granted::up_to(now, lease + overlap),
            direct: Granted::up_to(now, DIRECT_LEASE.min(lease) + overlap),
            replaced: Granted::up_to(now, lease + overlap),
            lapsing_since: None,
            leaving_since: None,
        }
    }

    /// Revision of what it has installed, as last heard.
    pub(crate) fn revision(&self) -> Revision {
        self.report.as_ref().map_or(Revision::NONE, Report::revision)
    }

    /// It does everything that this revision asks.
    pub(crate) fn is_ready(&self, revision: Revision) -> bool {
        self.follows() && self.revision() == revision
    }

    /// A full order would help it, and it is there to take one.
    pub(crate) fn is_behind(&self, revision: Revision) -> bool {
        self.follows() && self.revision() < revision
    }

    /// It answers and does what it is told.
    pub(crate) fn is_serving(&self) -> bool {
        self.follows() && !self.stuck
    }

    /// Its standing while what it answers past the switch, or has lent, has to be waited for: it is
    /// asked again when that is over.
    pub(crate) fn lending(&mut self) -> Standing {
        self.due = self.due.min(self.direct.over_at());
        Standing::Lending
    }

    /// It has certainly fallen silent: it has not shown what would renew its lease, and the last
    /// lease that it may have has ended.
    pub(crate) fn is_gone(&self, now: Instant) -> bool {
        self.is_lapsing() && self.granted.is_over(now)
    }

    /// It was about to end, as it said last.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving_since.is_some()
    }

    /// It has not shown what would renew its lease. (Who waits for a lease of its own to end is
    /// there, and others wait with it.)
    pub(crate) fn is_lapsing(&self) -> bool {
        match self.contact {
            Contact::Untried => false,
            Contact::Silent => true,
            Contact::Answering => !self.is_serving() && self.standing != Standing::Lending,
        }
    }

    /// It answers, and belongs to the cluster.
    pub(crate) fn follows(&self) -> bool {
        self.contact == Contact::Answering && self.standing == Standing::Accepted
    }

    /// It has not shown that for so long that others had better take over from it, if they may.
    pub(crate) fn is_missed(&self, now: Instant) -> bool {
        self.missed_at().is_some_and(|at| at <= now)
    }

    /// When it will be missed, unless it shows that before.
    pub(crate) fn missed_at(&self) -> Option<Instant> {
        let wait = if self.contact == Contact::Silent { MISSED_AFTER } else { STUCK_AFTER };
        self.lapsing_since.map(|at| at + wait)
    }

    /// It has lost its memory, or has been silent for so long that nobody waits any more to be
    /// compared with it.
    pub(crate) fn is_given_up(&self, now: Instant, lease: Duration) -> bool {
        self.standing == Standing::Forgotten || self.given_up_at(lease).is_some_and(|at| at <= now)
    }

    /// When that will be so, unless it answers before.
    pub(crate) fn given_up_at(&self, lease: Duration) -> Option<Instant> {
        self.lapsing_since.map(|at| at + lease * COMPARISON_LEASES)
    }

    /// It belongs to the cluster, and has this revision or a newer one, as far as it was heard.
    pub(crate) fn has_installed(&self, revision: Revision) -> bool {
        self.standing == Standing::Accepted && self.revision() >= revision
    }

    /// Nobody has asked it for a while, so its silence does not mean anything before `now`.
    pub(crate) fn excuse(&mut self, now: Instant, patience: Duration) {
        self.in_flight = self.in_flight.map(|_| now);
        self.steady_at = self.steady_at.max(now + patience);
        self.lapsing_since = self.lapsing_since.map(|_| now + patience);
    }

    fn note_lapse(&mut self, now: Instant) {
        self.lapsing_since = self.is_lapsing().then(|| self.lapsing_since.unwrap_or(now));
    }

    /// Its last report, if it is a node's.
    pub(crate) fn node_report(&self) -> Option<&NodeReport> {
        match self.report.as_ref().map(|report| &report.state) {
            Some(MemberReport::Node(report)) => Some(report),
            Some(MemberReport::Switch(_) | MemberReport::Cache(_)) | None => None,
        }
    }

    /// Notes that it has answered, and so much of what it says that all members say; tells whether
    /// it is another than before. Others have `patience` to show that they are there as well.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        patience: Duration,
        report: &Report,
        standing: Standing,
    ) -> bool {
        let reborn =
            self.report.as_ref().is_some_and(|last| last.incarnation != report.incarnation);
        let returns =
            self.contact != Contact::Answering || reborn || report.revision() < self.revision();
        if returns {
            // It has no lease, or not for long, until the next order brings it one.
            (self.offered, self.hot_offered, self.due) = (Revision::NONE, Revision::NONE, now);
        }
        if self.heard.is_none() || self.is_gone(now) {
            let grace = if report.revision().is_none() { RETURN_GRACE } else { patience };
            self.steady_at = self.steady_at.max(now + grace);
        }
        self.stuck = match self.given.take() {
            Some(given) => report.revision() < given,
            None => self.stuck && !returns && report.revision() < self.offered,
        };
        let changes = returns || self.standing != standing;
        self.leaving_since = report.is_leaving().then(|| self.leaving_since.unwrap_or(now));
        self.heard = Some(now);
        self.contact = Contact::Answering;
        self.standing = standing;
        self.note_lapse(now);
        changes
    }

    /// Notes what its report says of its clock; gives what is known of that now, and whether it is
    /// in another incarnation than before.
    pub(crate) fn hear_clock(&mut self, now: Instant, report: &Report) -> Option<(Sample, bool)> {
        let asked = self.asked.take().filter(|asked| now.since(*asked) <= CLOCK_ASKED_MAX);
        let MemberReport::Node(_) = &report.state else { return None };
        let reborn = self.report.as_ref().is_none_or(|last| last.incarnation != report.incarnation);
        let older = self.clock.filter(|_| !reborn);
        let sample = asked.map(|asked| Sample::new(asked, now, report.at));
        let news = sample.filter(|it| older.is_none_or(|older| it.is_better_than(older)));
        self.clock = news.or(older);
        Some((self.clock?, reborn))
    }

    /// It is sent an order that gives it this, if anything.
    pub(crate) fn give(&mut self, now: Instant, install: Option<&Install>) {
        self.given = install.map(Install::revision);
        self.offered = self.offered.max(self.given.unwrap_or_default());
        if let Some(Install::Assignment(assignment)) = install {
            let mut partitions = assignment.partitions.iter();
            self.may_hold |= partitions.any(|it| it.chain.contains(&assignment.node));
        }
        (self.in_flight, self.asked) = (Some(now), Some(now));
    }

    /// Notes that an order did not reach it, or was not answered; tells whether it answered before.
    pub(crate) fn fall_silent(&mut self, now: Instant) -> bool {
        (self.in_flight, self.asked, self.given) = (None, None, None);
        let news = std::mem::replace(&mut self.contact, Contact::Silent) != Contact::Silent;
        self.lapsing_since = self.lapsing_since.filter(|_| !news);
        self.note_lapse(now);
        news
    }

    /// The lease that goes with an order that gives this revision, or none.
    ///
    /// It is for what the member is to do now, never for less: with an old assignment a node would
    /// serve chains that it has been taken out of. While a decision is not durable, it is for the
    /// newest that is, and only for a member whose lease has not ended: others may have been
    /// replaced by that very decision. The active switch may go on with old tables, for nodes
    /// refuse what is wrong with them.
    pub(crate) fn lease(
        &mut self,
        now: Instant,
        member: Member,
        given: Option<Revision>,
        terms: &Terms,
    ) -> Option<Lease> {
        let unbroken = terms.is_durable || !self.granted.is_over(now);
        // A node without a clock of the cluster would serve by its own.
        let timely =
            terms.time_is_known && self.clock.is_some() || matches!(member, Member::Switch(_));
        if self.standing != Standing::Accepted || !unbroken || !timely {
            return None;
        }
        let installed = self.revision();
        let revision = if terms.is_active && !installed.is_none() {
            installed
        } else {
            let current = |it: &Revision| *it == terms.durable && !it.is_none() && !self.stuck;
            Some(given.unwrap_or(installed)).filter(current)?
        };
        let (report, heard) = (self.report.as_ref()?, self.heard?);
        Some(self.granted.grant(terms.cluster, report, heard, revision, terms.lasts))
    }

    /// Whether this report is the first to ask for a lease for requests that pass no switch.
    pub(crate) fn wants_direct_lease(&self, report: &Report) -> bool {
        let asks = matches!(&report.state, MemberReport::Node(it) if it.asked_directly);
        asks && !self.node_report().is_some_and(|before| before.asked_directly)
    }

    /// The lease that goes with that one, for requests that pass no switch: for a node that is sent
    /// some, unless others may be taking over from it.
    pub(crate) fn direct_lease(&mut self, lease: &Lease, may_be_out: bool) -> Option<Lease> {
        let asked = self.node_report().is_some_and(|report| report.asked_directly);
        let (report, heard) = (self.report.as_ref()?, self.heard?);
        let lasts = DIRECT_LEASE.min(Duration::from_millis(lease.duration_ms));
        let wanted = asked && !may_be_out;
        wanted.then(|| self.direct.grant(lease.cluster, report, heard, lease.revision, lasts))
    }

    /// Whether this is a late word of an incarnation that is over. One that remembers the one that
    /// is on record is newer than that: it was the other that came late.
    pub(crate) fn is_over(&self, member: Member, report: &Report, state: &Saved) -> bool {
        let (Member::Node(id), MemberReport::Node(it)) = (member, &report.state) else {
            return false;
        };
        let known = state.incarnations.get(&id);
        self.over.contains(&report.incarnation)
            && !known.is_some_and(|known| it.past.contains(known))
    }

    /// It is in this incarnation now, and these are over.
    pub(super) fn begin(
        &mut self,
        incarnation: Incarnation,
        over: impl Iterator<Item = Incarnation>,
    ) {
        self.over.extend(over);
        // Those that it told of before are older still, and long gone.
        while self.over.len() > OVER_MAX {
            self.over.pop_first();
        }
        self.over.remove(&incarnation);
    }
}
