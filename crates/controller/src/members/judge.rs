//! What a member's report makes of it.

use super::standing::Standing;
use crate::saved::Saved;
use cluster::{
    CacheReport, ClusterId, NodeId, NodeReport, PartitionSample, SwitchCounters,
    is_plausible_revision,
};
use machine::Instant;
use wire::Revision;

/// What to do about a node's report.
pub(crate) enum Verdict {
    /// Nothing but to note its standing.
    Stands(Standing),
    /// It has a memory that is new to the cluster: save that, then give it orders.
    TakeIn,
}

/// Judges a switch by the cluster and the revision it reports: it has no memory that could matter.
pub(crate) fn judge_switch(now: Instant, state: &Saved, report: &SwitchCounters) -> Standing {
    judge_follower(now, state, "switch", (report.cluster, report.revision))
}

/// Judges a cache, in the same way.
pub(crate) fn judge_cache(now: Instant, state: &Saved, report: &CacheReport) -> Standing {
    judge_follower(now, state, "cache", (report.cluster, report.revision))
}

fn judge_follower(
    now: Instant,
    state: &Saved,
    kind: &str,
    (cluster, installed): (Option<ClusterId>, Revision),
) -> Standing {
    let ours = state.map.cluster;
    if let Some(theirs) = cluster.filter(|cluster| *cluster != ours) {
        return Standing::Foreign(format!(
            "this {kind} follows cluster {:016x}, and this is cluster {:016x}: give each cluster \
             members of its own; to hand this one over, end the controller of the other cluster \
             and restart the {kind}, which keeps nothing",
            theirs.0, ours.0
        ));
    }
    if installed.is_none() || !state.is_strange(installed) {
        return Standing::Accepted;
    }
    if !is_plausible_revision(now, installed) {
        return Standing::Foreign(lie(installed));
    }
    Standing::Ahead(format!(
        "it has tables of revision {installed}, which this controller knows nothing of: {ADVICE}"
    ))
}

/// Judges a node by the memory it reports.
///
/// A node is given assignments only after its memory was saved. So one that follows some
/// assignment with a memory that is not saved has it from somebody else, unless it is of this
/// cluster: then another process has spoken for it since.
pub(crate) fn judge_node(
    now: Instant,
    state: &Saved,
    (node, may_hold): (NodeId, bool),
    report: &NodeReport,
    blind: bool,
) -> Verdict {
    let ours = state.map.cluster;
    if let Some(theirs) = report.cluster.filter(|cluster| *cluster != ours) {
        return foreign(format!(
            "it holds data of cluster {:016x}, and this is cluster {:016x}: {STRANGE}",
            theirs.0, ours.0
        ));
    }
    let recorded = report.recorded.max(report.revision);
    if !is_plausible_revision(now, recorded) {
        return foreign(lie(recorded));
    }
    if !recorded.is_none() && state.is_strange(recorded) && report.cluster.is_some() && !blind {
        return Verdict::Stands(Standing::Ahead(format!(
            "it follows revision {recorded}, which this controller knows nothing of: {ADVICE}"
        )));
    }
    let holder = state.stores.iter().find(|(_, store)| **store == report.store);
    match holder {
        Some((other, _)) if *other != node => foreign(format!(
            "it has the memory of node {other}: two nodes were given one data directory, or a copy"
        )),
        Some(_) => Verdict::Stands(Standing::Accepted),
        None if !report.revision.is_none() && report.cluster.is_none() => foreign(format!(
            "it serves revision {} of a controller that this one knows nothing of: {STRANGE}",
            report.revision
        )),
        None if may_hold => Verdict::Stands(Standing::Forgotten),
        None => Verdict::TakeIn,
    }
}

/// What an operator does about a controller whose store is older than what members follow.
const ADVICE: &str = "the controller's store is an old copy, and until that is mended nothing is \
     decided, and what nodes hold stays as it is; stop the controller, and put the newest copy of \
     its store back or, if there is none, make the map anew from what nodes have on record: keyway \
     controller rebuild";

/// The same about one that has no store, or that of another cluster.
const STRANGE: &str = "if this controller has lost its store, stop it and make the map anew from \
     what nodes have on record: keyway controller rebuild; else give it the store that belongs to \
     that cluster, or give the node an empty data directory";

/// Nobody has given such a revision out, so that it says nothing of how old the store is: the
/// others are led on.
fn lie(revision: Revision) -> String {
    format!(
        "it says that it follows revision {revision}, which cannot be: its store is damaged, or \
         its clock and this one's are years apart; set the clocks, or take its data directory away \
         and let it be copied to"
    )
}

fn foreign(why: String) -> Verdict {
    Verdict::Stands(Standing::Foreign(why))
}

/// A report is no longer than what it can be about, and in order, to be searched.
pub(crate) fn bound(report: &mut NodeReport) {
    report.past.truncate(PAST_MAX);
    report.settled.truncate(wire::PARTITIONS_MAX);
    report.settled.sort_unstable();
    report.caught_up.truncate(wire::PARTITIONS_MAX);
    report.caught_up.sort_unstable();
    report.vacating.truncate(wire::PARTITIONS_MAX);
    report.vacating.sort_unstable();
    report.copies.truncate(wire::PARTITIONS_MAX);
    report.verified.truncate(wire::PARTITIONS_MAX);
    report.samples.truncate(SAMPLES_MAX);
    for sample in &mut report.samples {
        for points in [&mut sample.asked, &mut sample.stored] {
            points.truncate(PartitionSample::POINTS_MAX);
            points.sort_unstable();
        }
    }
}

/// Incarnations that a node is heard to tell of: more than one keeps on record.
const PAST_MAX: usize = 256;

/// Partitions that a node is heard to speak of in one report: more than all of its shards do.
const SAMPLES_MAX: usize = 4096;
