//! Writes of delegated keys (section 9 of `spec/protocol.md`): which are stamped, with what, and
//! where they go.

use crate::delegation::Delegation;
use crate::grants::{Grant, Met, Who};
use crate::hot::Row;
use crate::pipeline::{Pass, stamp_partition};
use crate::selection::OF_WRITES;
use crate::tables::Action;
use crate::{CoherenceDirectory, WriteRoute, observe};
use arrayvec::ArrayVec;
use cluster::{KeyspaceId, Mutant, NodeId};
use std::ops::Range;
use wire::{CHAIN_MAX, Code, DropReason, Endpoint, Fields, HEADER_LEN, hop_flag};

/// All places of a chain.
const CHAIN_LEN_MAX: u8 = CHAIN_MAX as u8;

impl Pass<'_> {
    /// Whether a write that may be delegated has to be looked at: a key is delegated, or was.
    #[inline]
    pub(crate) fn delegates(&self) -> bool {
        let own = || self.hot.delegates() || self.view.directory().grants().any();
        self.elsewhere.map_or_else(own, CoherenceDirectory::delegates)
    }

    /// A write that may be delegated: under its delegation if it has a grant of that or can be
    /// given one, else home.
    pub(crate) fn delegate(
        &mut self,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
    ) -> Result<Option<Endpoint>, DropReason> {
        if let Some(elsewhere) = self.elsewhere {
            return self.delegate_behind(elsewhere, header, action);
        }
        let who = Who { client: header.client(), seq: header.seq() };
        let low = who.seq.saturating_sub(header.lag().into());
        let row = self.row_of(header);
        let met = self.view.directory().grants().meet(self.now, who, low);
        let grant = match met {
            Met::Stale => return Err(DropReason::StaleRequest),
            Met::Granted(grant) if !self.mutant.is(Mutant::ForgetGrants) => Some(grant),
            Met::Granted(_) | Met::New => row.and_then(|row| self.grant_new(row, who)),
        };
        let Some(grant) = grant else {
            let exit = self.go_home(header, action, 0);
            let delegated = row.and_then(|row| row.delegation.as_deref()?.begun()).is_some();
            if delegated && exit.is_some() && !self.view.directory().grants().has_room(who.client) {
                self.say_crowded(header);
            }
            return Ok(exit);
        };
        if row.and_then(|row| row.delegation(grant.delegation)).is_none() {
            return Ok(self.go_home(header, action, grant.version));
        }
        if !self.view.is_present() {
            return Err(DropReason::Contended);
        }
        let exit = self.depart(header, action, &grant);
        if exit.is_some() {
            self.counters.count_delegated(met == Met::New);
        }
        Ok(exit)
    }

    /// A write goes home whose key is delegated, and which there is no room to remember a grant
    /// for.
    fn say_crowded(&mut self, header: &mut [u8; HEADER_LEN]) {
        header.set_hop_flags(header.hop_flags() | hop_flag::CROWDED);
        self.counters.count_crowded();
    }

    /// The same for what is left by a switch that has the table of grants.
    fn delegate_behind(
        &mut self,
        elsewhere: &dyn CoherenceDirectory,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
    ) -> Result<Option<Endpoint>, DropReason> {
        header.set_directory_clock(self.first_sent);
        if let WriteRoute::Home { version, crowded } = elsewhere.delegate(header)? {
            let exit = self.go_home(header, action, version);
            if crowded {
                header.set_hop_flags(header.hop_flags() | hop_flag::CROWDED);
            }
            return Ok(exit);
        }
        let delegation = header.delegation();
        stamp_partition(header, action);
        header.set_delegation(delegation);
        let first = crate::tables::chain_nodes(header.chain(), header.chain_len()).next();
        let first = first.and_then(|node| self.tables.node(node));
        Ok(first.map(|node| node.endpoint_of(action.partition)))
    }

    /// The grant of a request that has none, if it was certainly not applied before the delegation.
    fn grant_new(&mut self, row: &Row, who: Who) -> Option<Grant> {
        let delegation = row.delegation.as_deref()?;
        let unborn = self.first_sent < delegation.begun()?;
        if unborn && !self.mutant.is(Mutant::GrantUnborn) {
            return None;
        }
        let forgets = self.mutant.is(Mutant::ForgetGrants);
        self.grant(row, delegation, who, |_| forgets)
    }

    /// What the answer to a write says of delegations (rules D11 and D12).
    pub(crate) fn observe_put(&mut self, sender: NodeId, header: &[u8; HEADER_LEN]) {
        if header.code() == Code::Delegated as u8 {
            self.observe_delegation(header);
        } else if observe::is_delegated(header) {
            self.observe_delegated(sender, header);
        }
    }

    /// The head's word that this write was never applied at home, and that the delegation has
    /// begun.
    fn observe_delegation(&mut self, header: &[u8; HEADER_LEN]) {
        let row = self.hot.find(KeyspaceId(header.keyspace()), header.keyhash());
        let Some(row) = row else { return };
        let Some(delegation) = row.delegation(header.reply_delegation()) else { return };
        delegation.begin(header.object_version(), self.view.directory().shared_clock());
        if delegation.begun().is_some() {
            let who = Who { client: header.client(), seq: header.seq() };
            let _ = self.grant(row, delegation, who, |grant| grant.delegation < delegation.number);
        }
    }

    /// A delegated write is acknowledged, under the version that is the floor now: whoever it was
    /// stamped for holds it, or will when a read gets there, for its copies are ahead of that.
    fn observe_delegated(&self, sender: NodeId, header: &[u8; HEADER_LEN]) {
        let row = self.hot.find(KeyspaceId(header.keyspace()), header.keyhash());
        let version = header.object_version();
        let Some(row) = row.filter(|row| row.entry.floor().0 == version) else { return };
        self.hot.holder(row, sender, Some(version));
        self.hot.note_near(row, sender);
        let replicas = row.delegation.as_deref().map_or(u8::MAX, |delegation| delegation.replicas);
        if row.chosen > replicas
            && let Some(grant) = self.view.directory().grants().of(header.client(), header.seq())
            && grant.version == version
        {
            grant.nodes().for_each(|node| self.hot.holder(row, node, Some(version)));
        }
    }

    fn grant(
        &mut self,
        row: &Row,
        delegation: &Delegation,
        who: Who,
        outdated: impl FnOnce(&Grant) -> bool,
    ) -> Option<Grant> {
        let nodes = self.choose_nodes(row, delegation.replicas)?;
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
        let grants = self.view.directory().grants();
        if self.mutant.is(Mutant::EvictGrants) {
            grants.evict(who.client);
        }
        grants.note(self.now, who, outdated, make)
    }

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

    fn depart(
        &mut self,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
        grant: &Grant,
    ) -> Option<Endpoint> {
        stamp_partition(header, action);
        header.set_hop_flags(hop_flag::GRANTED);
        header.set_delegation(grant.delegation);
        header.set_object_version(grant.version);
        header.set_chain(grant.chain);
        header.set_chain_len(grant.chain_len);
        let nodes = grant.nodes();
        let first = self.tables.node(nodes.clone().next()?)?;
        if self.hot.predicts() {
            nodes.for_each(|node| self.loads.sent(self.now, node));
        }
        Some(first.endpoint_of(action.partition))
    }
}

impl Grant {
    /// The nodes of the chain, first to last, and those that it is copied to.
    fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        let nodes = crate::tables::chain_nodes(self.chain, CHAIN_LEN_MAX);
        nodes.filter(|node| node.0 != wire::NOBODY)
    }
}
