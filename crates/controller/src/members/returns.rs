//! Members that begin another incarnation: their chains are closed until what they hold is
//! compared.
//!
//! A node that was started anew may hold less than it had acknowledged: somebody put an older copy
//! of its store back, or its disk lost what it had said to have synced. So no chain goes on with it
//! by what the map says of an earlier incarnation.

use super::peer::Peer;
use super::standing::Standing;
use crate::decisions::Level;
use crate::ledger::Ledger;
use cluster::{
    Incarnation, MaybeMutant, Member, Mutant, NodeId, NodeReport, Partition, Returned, StoreId,
};
use machine::Instant;

/// A node that speaks, when it may be in another incarnation than before.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) now: Instant,
    pub(crate) node: NodeId,
    pub(crate) incarnation: Incarnation,
    pub(crate) report: &'a NodeReport,
    /// Another member that follows another controller.
    pub(crate) foreign: Option<Member>,
    /// Whether the map can be decided by.
    pub(crate) may_decide: bool,
}

/// A node with a memory that the cluster does not know and that holds nothing of it.
pub(crate) fn take_in(ledger: &mut Ledger, peer: &mut Peer, it: Arrival<'_>) -> Standing {
    if let Some(member) = it.foreign {
        return Standing::Waiting(member);
    }
    if !it.may_decide {
        return Standing::Returning;
    }
    let (node, StoreId(store)) = (it.node, it.report.store);
    let is_known = ledger.state.stores.insert(node, it.report.store).is_some();
    if is_known && !peer.granted.is_over(it.now) {
        // The process that had the former memory may run on, and nothing that this one says counts
        // for that.
        let since = ledger.state.next_revision(it.now);
        ledger.state.map.fence_off(node, since).replaced = true;
        peer.replaced = peer.granted;
    }
    ledger.state.incarnations.insert(node, it.incarnation);
    ledger.state.forget_away(|away| away.node == node);
    // A word of theirs may still be on its way, and they were never known.
    peer.begin(it.incarnation, it.report.past.iter().copied());
    ledger.advance(
        it.now,
        Level::Usual,
        format!("node {node} has the new memory {store:016x}"),
        format!("take node {node} in"),
    );
    Standing::Accepted
}

/// A node that belongs to the cluster speaks in another incarnation than the one that its replicas
/// belong to: every chain that it is in is closed, in the same revision in which that incarnation
/// is put on record.
pub(crate) fn begin_incarnation(
    ledger: &mut Ledger,
    peer: &mut Peer,
    it: Arrival<'_>,
    mutant: MaybeMutant,
) -> Standing {
    let (node, past) = (it.node, &it.report.past);
    let known = ledger.state.incarnations.get(&node).copied();
    // One change of a chain at a time, each of them durable before the next.
    if !it.may_decide || known.is_some() && !ledger.is_durable() {
        return Standing::Returning;
    }
    // What that incarnation answers past the switch, or has lent, is right only as long as nobody
    // commits anything newer. Without this node nobody does: it is the tail, or has settled since.
    let lends = ledger.state.may_be_direct(node) && !peer.direct.is_over(it.now);
    if known.is_some() && lends && !mutant.is(Mutant::ForgetLent) {
        return peer.lending();
    }
    let remembers =
        known.is_none_or(|known| mutant.is(Mutant::BelieveAnyPast) || past.contains(&known));
    ledger.state.incarnations.insert(node, it.incarnation);
    if !remembers {
        ledger.state.aged.insert(node, ledger.state.next_revision(it.now));
    }
    let mut closed = 0_usize;
    if known.is_some() {
        let chains = ledger.state.map.partitions.iter_mut();
        for partition in chains.filter(|partition| partition.chain.contains(&node)) {
            closed += 1;
            close(partition, node, remembers);
        }
    }
    let saw = match (known, remembers) {
        (None, _) => format!("node {node} speaks for the first time"),
        (Some(_), true) => format!("node {node} was started anew"),
        (Some(_), false) => format!(
            "node {node} was started anew with an older copy of its store: it does not \
             remember the incarnation that it was last known by"
        ),
    };
    let did = match closed {
        0 => "put its incarnation on record".to_owned(),
        _ => format!("close its {closed} partitions and compare what it holds"),
    };
    let is_older = known.is_some() && !remembers;
    let level = if is_older { Level::Trouble } else { Level::Usual };
    ledger.advance(it.now, level, saw, did);
    peer.begin(it.incarnation, past.iter().copied().chain(known));
    Standing::Accepted
}

fn close(partition: &mut Partition, node: NodeId, remembers: bool) {
    partition.epoch.0 = partition.epoch.0.saturating_add(1);
    partition.open = false;
    // Who did not remember once is not believed for having been started again.
    let known = partition.returned.iter_mut().find(|it| it.node == node);
    match known {
        Some(known) => known.remembers &= remembers,
        None => partition.returned.push(Returned { node, remembers, left: false }),
    }
}

/// Takes what this node holds for the newest, although its store is an older copy; tells in how
/// many partitions.
pub(crate) fn accept_loss(ledger: &mut Ledger, now: Instant, node: NodeId) -> usize {
    let returned = ledger.state.map.partitions.iter_mut().flat_map(|it| &mut it.returned);
    let aged = returned.filter(|it| it.node == node && !it.remembers);
    let accepted = aged.map(|it| it.remembers = true).count();
    if accepted > 0 {
        ledger.advance(
            now,
            Level::Usual,
            format!("wanted: what node {node} holds counts, whatever was lost"),
            format!("believe its older store in {accepted} partitions"),
        );
    }
    accepted
}
