//! Members that begin another incarnation: their chains are closed until what they hold is
//! compared.
//!
//! A node that was started anew may hold less than it had acknowledged: somebody put an older copy
//! of its store back, or its disk lost what it had said to have synced. So no chain goes on with it
//! by what the map says of an earlier incarnation.

use crate::commands::CommandError;
use crate::controller::Controller;
use crate::peer::{Contact, Standing};
use cluster::{Incarnation, Member, Mutant, NodeId, NodeReport, Returned, StoreId};
use machine::Instant;

impl Controller {
    /// Whether the map can be decided by: not before every node had its say, for one of them may
    /// follow a newer one, nor while one does.
    pub(crate) fn may_decide(&self) -> bool {
        self.acquainted && !self.is_overtaken()
    }

    /// Somebody follows a newer map than this one, which therefore says nothing of what is so.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.peers.values().any(|p| matches!(p.standing, Standing::Ahead(_)))
    }

    pub(crate) fn meet(&mut self) {
        let nodes = self.peers.iter().filter(|(member, _)| matches!(member, Member::Node(_)));
        let mut tried = nodes.map(|(_, peer)| peer.contact != Contact::Untried);
        self.acquainted |= self.alone_at <= self.now || tried.all(|tried| tried);
    }

    /// A node with a memory that the cluster does not know and that holds nothing of it.
    pub(crate) fn take_in(
        &mut self,
        node: NodeId,
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> Standing {
        if let Some(member) = self.foreign().find(|m| *m != Member::Node(node)) {
            return Standing::Waiting(member);
        }
        if !self.may_decide() {
            return Standing::Returning;
        }
        let StoreId(store) = report.store;
        self.state.stores.insert(node, report.store);
        self.state.incarnations.insert(node, incarnation);
        self.advance(
            format!("node {node} has the new memory {store:016x}"),
            format!("take node {node} in"),
        );
        Standing::Accepted
    }

    /// A node that belongs to the cluster speaks. If it does so in another incarnation than the one
    /// that its replicas_held belong to, every chain that it is in is closed, in the same revision
    /// in which that incarnation is put on record.
    pub(crate) fn see_incarnation(
        &mut self,
        node: NodeId,
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> Standing {
        let known = self.state.incarnations.get(&node).copied();
        if known == Some(incarnation) {
            return Standing::Accepted;
        }
        // One change of a chain at a time, each of them durable before the next.
        if !self.may_decide() || known.is_some() && !self.is_durable() {
            return Standing::Returning;
        }
        let believes = self.mutant.is(Mutant::BelieveAnyPast);
        let remembers = known.is_none_or(|known| believes || report.past.contains(&known));
        self.state.incarnations.insert(node, incarnation);
        if let Some(peer) = self.peers.get_mut(&Member::Node(node)) {
            peer.over.extend(report.past.iter().chain(&known));
            // Those that it told of before are older still, and long gone.
            while peer.over.len() > OVER_MAX {
                peer.over.pop_first();
            }
        }
        if !remembers {
            self.state.aged.insert(node, self.state.next_revision(self.now));
        }
        let mut closed = 0_usize;
        if known.is_some() {
            let mine = self.state.map.partitions.iter_mut().filter(|p| p.chain.contains(&node));
            for partition in mine {
                closed += 1;
                partition.epoch.0 = partition.epoch.0.saturating_add(1);
                partition.open = false;
                // Who did not remember once is not believed for having been started again.
                let known = partition.returned.iter_mut().find(|it| it.node == node);
                match known {
                    Some(known) => known.remembers &= remembers,
                    None => partition.returned.push(Returned { node, remembers }),
                }
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
        self.plans.disturb();
        self.advance(saw, did);
        Standing::Accepted
    }

    /// Takes what this node holds for the newest, although its store is an older copy: what was
    /// acknowledged since is lost. For an operator, when nobody else holds it any more.
    ///
    /// # Errors
    ///
    /// If there is no such node, or none of its partitions waits for this.
    pub fn accept_loss(&mut self, now: Instant, node: NodeId) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        if self.state.map.nodes.iter().all(|known| known.id != node) {
            return Err(CommandError::UnknownNode(node));
        }
        let returned = self.state.map.partitions.iter_mut().flat_map(|p| &mut p.returned);
        let aged = returned.filter(|it| it.node == node && !it.remembers);
        let mut accepted = 0_usize;
        for it in aged {
            it.remembers = true;
            accepted += 1;
        }
        if accepted == 0 {
            return Err(CommandError::NothingToAccept(node));
        }
        self.plans.disturb();
        self.advance(
            format!("wanted: what node {node} holds counts, whatever was lost"),
            format!("believe its older store in {accepted} partitions"),
        );
        Ok(())
    }
}

/// Incarnations of one member that are remembered to be over.
const OVER_MAX: usize = 1_024;
