//! What the controller knows of one member, and what it thinks of it.

use crate::saved::Saved;
use cluster::{Member, NodeId, NodeReport, Report};
use machine::Instant;

/// One switch or node.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// When it is to get its next order.
    pub(crate) due: Instant,
    /// When the order was sent that it has not answered yet.
    pub(crate) in_flight: Option<Instant>,
    /// When it was last heard.
    pub(crate) heard: Option<Instant>,
    /// What became of the last order to it.
    pub(crate) contact: Contact,
    /// What its last report makes of it; what was last said if it has fallen silent.
    pub(crate) standing: Standing,
    /// Its last report.
    pub(crate) report: Option<Report>,
    /// Revision of the newest full order sent to it, since it last came back from somewhere.
    pub(crate) offered: u64,
    /// It may hold data: an assignment with partitions was sent, now or in an earlier life.
    pub(crate) may_hold: bool,
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
    /// It belongs to the cluster and is given full orders.
    Accepted,
    /// A node to be taken in once that member no longer follows another controller.
    Waiting(Member),
    /// A node that came back with another memory than the one that held its partitions.
    Forgotten,
    /// It follows somebody else. The text says how that shows and what to do.
    Foreign(String),
}

/// What to do about a node's report.
pub(crate) enum Verdict {
    /// Nothing but to note its standing.
    Stands(Standing),
    /// It has a memory that is new to the cluster: save that, then give it orders.
    TakeIn,
}

impl Peer {
    pub(crate) fn new(now: Instant, may_hold: bool) -> Self {
        Self {
            due: now,
            in_flight: None,
            heard: None,
            contact: Contact::Untried,
            standing: Standing::Unheard,
            report: None,
            offered: 0,
            may_hold,
        }
    }

    /// Revision of what it has installed, as last heard.
    pub(crate) fn revision(&self) -> u64 {
        self.report.as_ref().map_or(0, Report::revision)
    }

    /// It does everything that this revision asks.
    pub(crate) fn is_ready(&self, revision: u64) -> bool {
        self.follows() && self.revision() == revision
    }

    /// A full order would help it, and it is there to take one.
    pub(crate) fn is_behind(&self, revision: u64) -> bool {
        self.follows() && self.revision() < revision
    }

    fn follows(&self) -> bool {
        self.contact == Contact::Answering && self.standing == Standing::Accepted
    }
}

/// Judges a switch by the revision it reports: it has no memory that could matter.
pub(crate) fn judge_switch(state: &Saved, installed: u64) -> Standing {
    if installed <= state.map.revision {
        return Standing::Accepted;
    }
    Standing::Foreign(format!(
        "it has tables of revision {installed}, newer than all this controller knows: restore the \
         controller's own store, or restart the switch if that is lost"
    ))
}

/// Judges a node by the memory it reports.
///
/// A node is given assignments only after its memory was saved. So one that follows some
/// assignment with a memory that is not saved has it from somebody else.
pub(crate) fn judge_node(
    state: &Saved,
    node: NodeId,
    may_hold: bool,
    report: &NodeReport,
) -> Verdict {
    if report.revision > state.map.revision {
        return foreign(format!(
            "it serves revision {}, newer than all this controller knows: restore the \
             controller's own store",
            report.revision
        ));
    }
    let holder = state.stores.iter().find(|(_, store)| **store == report.store);
    match holder {
        Some((other, _)) if *other != node => foreign(format!(
            "it has the memory of node {other}: two nodes were given one data directory, or a copy"
        )),
        Some(_) => Verdict::Stands(Standing::Accepted),
        None if report.revision > 0 => foreign(format!(
            "it serves revision {} of a controller that this one knows nothing of: restore that \
             one's store, or give the node an empty data directory",
            report.revision
        )),
        None if may_hold => Verdict::Stands(Standing::Forgotten),
        None => Verdict::TakeIn,
    }
}

fn foreign(why: String) -> Verdict {
    Verdict::Stands(Standing::Foreign(why))
}
