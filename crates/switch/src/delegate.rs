//! Writes of delegated keys (section 9 of `spec/protocol.md`): which are stamped, with what, and
//! where they go.

use crate::delegation::Delegation;
use crate::directory::View;
use crate::grants::{Grant, Met, Who};
use crate::hot::Row;
use crate::pass::Pass;
use crate::selection::OF_WRITES;
use crate::{WriteRoute, observe};
use arrayvec::ArrayVec;
use cluster::{KeyspaceId, Mutant, NodeId};
use std::ops::Range;
use wire::{
    CHAIN_MAX, Code, DelegatedReply, DropReason, Endpoint, Fields, GrantedPut, HEADER_LEN,
    KeyReply, Version,
};

/// All places of a chain.
const CHAIN_LEN_MAX: u8 = CHAIN_MAX as u8;

impl View {
    /// What becomes of a write that may be delegated: under its delegation if it has a grant of
    /// that or can be given one, else home, where it would go to `home`.
    pub(crate) fn delegate_or_not(
        &self,
        pass: &mut Pass<'_>,
        header: &mut [u8; HEADER_LEN],
        home: Option<Endpoint>,
    ) -> Result<WriteRoute, DropReason> {
        let grants = self.directory().grants();
        let who = Who { client: header.client(), seq: header.seq() };
        let low = who.seq.saturating_sub(header.lag().into());
        let row = pass.row_of(header);
        let met = grants.meet(pass.now, who, low);
        let grant = match met {
            Met::Stale => return Err(DropReason::StaleRequest),
            Met::Granted(grant) if !pass.mutant.is(Mutant::ForgetGrants) => Some(grant),
            Met::Granted(_) | Met::New => row.and_then(|row| self.grant_new(pass, row, who)),
        };
        let Some(grant) = grant else {
            let delegated = row.and_then(|row| row.delegation.as_deref()?.begun()).is_some();
            let crowded = delegated && home.is_some() && !grants.has_room(who.client);
            if crowded {
                pass.counters.count_crowded();
            }
            return Ok(WriteRoute::Home { version: Version::NONE, crowded });
        };
        if row.and_then(|row| row.delegation(grant.delegation)).is_none() {
            return Ok(WriteRoute::Home { version: grant.version, crowded: false });
        }
        if !self.is_present() {
            return Err(DropReason::Contended);
        }
        if pass.depart(header, &grant) {
            pass.counters.count_delegated(met == Met::New);
        }
        Ok(WriteRoute::Delegated)
    }

    /// The grant of a request that has none, if it was certainly not applied before the delegation.
    fn grant_new(&self, pass: &mut Pass<'_>, row: &Row, who: Who) -> Option<Grant> {
        let delegation = row.delegation.as_deref()?;
        let unborn = pass.first_sent < delegation.begun()?;
        if unborn && !pass.mutant.is(Mutant::GrantUnborn) {
            return None;
        }
        let forgets = pass.mutant.is(Mutant::ForgetGrants);
        self.grant(pass, row, (delegation, who), |_| forgets)
    }

    /// What the answer to a write says of delegations (rules D11 and D12).
    pub(crate) fn observe_put(
        &self,
        pass: &mut Pass<'_>,
        sender: NodeId,
        header: &[u8; HEADER_LEN],
    ) {
        if header.code() == Code::Delegated as u8 {
            self.observe_delegation(pass, header);
        } else if observe::is_delegated(header) {
            self.observe_delegated(sender, header);
        }
    }

    /// The head's word that this write was never applied at home, and that the delegation has
    /// begun.
    fn observe_delegation(&self, pass: &mut Pass<'_>, header: &[u8; HEADER_LEN]) {
        let says = DelegatedReply::read(header);
        let row = self.table().find(KeyspaceId(header.keyspace()), header.keyhash());
        let Some(row) = row else { return };
        let Some(delegation) = row.delegation(says.delegation) else { return };
        delegation.begin(says.delegated_at, self.directory().shared_clock());
        if delegation.begun().is_some() {
            let who = Who { client: header.client(), seq: header.seq() };
            let outdated = |grant: &Grant| grant.delegation < delegation.number;
            let _ = self.grant(pass, row, (delegation, who), outdated);
        }
    }

    /// A delegated write is acknowledged, under the version that is the floor now: whoever it was
    /// stamped for holds it, or will when a read gets there, for its copies are ahead of that.
    fn observe_delegated(&self, sender: NodeId, header: &[u8; HEADER_LEN]) {
        let row = self.table().find(KeyspaceId(header.keyspace()), header.keyhash());
        let KeyReply { version } = KeyReply::read(header);
        let Some(row) = row.filter(|row| row.entry.floor().0 == version) else { return };
        self.table().holder(row, sender, Some(version));
        self.table().note_near(row, sender);
        let replicas = row.delegation.as_deref().map_or(u8::MAX, |delegation| delegation.replicas);
        if row.chosen > replicas
            && let Some(grant) = self.directory().grants().of(header.client(), header.seq())
            && grant.version == version
        {
            grant.nodes().for_each(|node| self.table().holder(row, node, Some(version)));
        }
    }

    fn grant(
        &self,
        pass: &mut Pass<'_>,
        row: &Row,
        (delegation, who): (&Delegation, Who),
        outdated: impl FnOnce(&Grant) -> bool,
    ) -> Option<Grant> {
        let nodes = pass.choose_nodes(row, delegation.replicas)?;
        let chain = wire::delegated_chain(nodes.iter().map(|node| node.0));
        let chain_len = delegation.replicas;
        let make = || {
            Some(Grant {
                delegation: delegation.number,
                version: delegation.version()?,
                chain,
                chain_len,
            })
        };
        let grants = self.directory().grants();
        if pass.mutant.is(Mutant::EvictGrants) {
            grants.evict(who.client);
        }
        grants.note(pass.now, who, outdated, make)
    }
}

impl Pass<'_> {
    /// Nodes of a bank of the key's candidates that have little to do: those of the chain of a
    /// write, and those that it is to be copied to.
    fn choose_nodes(&mut self, row: &Row, least: u8) -> Option<ArrayVec<NodeId, CHAIN_MAX>> {
        let mut nodes = ArrayVec::new();
        let mut taken = 0;
        let bank = self.any_bank(row);
        for _ in 0..row.chosen {
            let of = (bank.len(), OF_WRITES);
            let from = (bank.clone(), taken);
            let Some((reader, node)) = self.least_busy(row, from, of, |_| true) else { break };
            taken |= 1 << (reader - bank.start);
            nodes.push(node.id);
        }
        (nodes.len() >= least.into()).then_some(nodes)
    }

    /// One of the banks of the candidates at random; most have but one.
    fn any_bank(&mut self, row: &Row) -> Range<usize> {
        let readers = row.readers();
        let many = readers > wire::HOT_BANK_MAX;
        row.bank(if many { self.rng.below(readers as u64) as usize } else { 0 })
    }

    /// Stamps a write with its grant, but for the partition; says whether its first node is known.
    fn depart(&mut self, header: &mut [u8; HEADER_LEN], grant: &Grant) -> bool {
        let Grant { version, delegation, .. } = *grant;
        GrantedPut { version, delegation }.write(header);
        header.set_chain(grant.chain);
        header.set_chain_len(grant.chain_len);
        let nodes = grant.nodes();
        let first = nodes.clone().next().and_then(|node| self.tables.node(node));
        if first.is_some() && self.hot.predicts() {
            nodes.for_each(|node| self.loads.sent(self.now, node));
        }
        first.is_some()
    }
}

impl Grant {
    /// The nodes of the chain, first to last, and those that it is copied to.
    fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        let nodes = crate::tables::chain_nodes(self.chain, CHAIN_LEN_MAX);
        nodes.filter(|node| node.0 != wire::NOBODY)
    }
}
