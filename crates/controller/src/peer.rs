//! What the controller knows of one member.

use crate::clock::Sample;
use crate::lease::Granted;
use cluster::{Incarnation, Member, Report};
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

/// What the controller thinks of a member that has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing has been heard of it.
    Unheard,
    /// It belongs to the cluster and is given full orders and leases.
    Accepted,
    /// A node to be taken in once that member no longer follows another controller.
    Waiting(Member),
    /// A node that was started anew, or is new, while nothing can be decided: a decision is being
    /// saved, or others have not been heard of yet.
    Returning,
    /// A node that came back with another memory than the one that held its partitions.
    Forgotten,
    /// It follows somebody else. The text says how that shows and what to do.
    Foreign(String),
    /// It knows more than this controller, which therefore must not decide anything. The text says
    /// how that shows and what to do.
    Ahead(String),
}

impl Standing {
    /// Whether somebody has to look after it.
    pub(crate) fn is_trouble(&self) -> bool {
        match self {
            Self::Unheard | Self::Accepted | Self::Returning => false,
            Self::Waiting(_) | Self::Forgotten | Self::Foreign(_) | Self::Ahead(_) => true,
        }
    }

    /// What is seen in a member that says to have this revision, and what is done about it.
    pub(crate) fn explain(self, member: Member, revision: Revision) -> (String, String) {
        match self {
            Self::Unheard => (format!("{member} has not been heard of"), "ask again".into()),
            Self::Accepted => {
                (format!("{member} answers with revision {revision}"), "keep it up to date".into())
            }
            Self::Waiting(other) => (
                format!("{member} is new, but {other} follows another controller"),
                "do not take it in yet".into(),
            ),
            Self::Returning => (
                format!("{member} was started anew while nothing can be decided"),
                "see to it when all have been heard of and what was decided is saved".into(),
            ),
            Self::Forgotten => (
                format!("{member} came back without the memory of its partitions"),
                "give it no assignment".into(),
            ),
            Self::Foreign(why) => (format!("{member}: {why}"), "give it no order".into()),
            Self::Ahead(why) => (format!("{member}: {why}"), "decide nothing more".into()),
        }
    }
}

impl Peer {
    /// A member that may have been granted a lease up to now, to be asked at this pace.
    pub(crate) fn new(now: Instant, pace: Duration, lease: Duration) -> Self {
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
            granted: Granted::up_to(now, lease),
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

    /// It has certainly fallen silent: it has not shown what would renew its lease, and the last
    /// lease that it may have has ended.
    pub(crate) fn is_gone(&self, now: Instant) -> bool {
        self.is_delegated() && self.granted.is_over(now)
    }

    /// It has not shown what would renew its lease.
    pub(crate) fn is_delegated(&self) -> bool {
        match self.contact {
            Contact::Untried => false,
            Contact::Silent => true,
            Contact::Answering => !self.is_serving(),
        }
    }

    /// It answers, and belongs to the cluster.
    pub(crate) fn follows(&self) -> bool {
        self.contact == Contact::Answering && self.standing == Standing::Accepted
    }
}
