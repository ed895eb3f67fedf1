//! The way of a packet: parse, reply or request, partition, out.

use crate::directory::View;
use crate::either::Coherence;
use crate::pass::{Pass, split_header, stamp_hot, stamp_partition, stamp_read};
use crate::tables::Action;
use crate::{
    ClockReading, CoherenceDirectory, Counters, Directory, Loads, Tables, WriteRoute, observe,
};
use cluster::{Incarnation, KeyspaceId, Match, MaybeMutant, Mutant, NodeId, Tenure};
use machine::{Instant, Outbox, Rng};
use std::sync::Arc;
use wire::{
    ClientReply, ClientWrite, DirectoryClock, DropReason, Endpoint, Fields, GrantedPut, HEADER_LEN,
    Op, Packet, Revision, Version, flag, hop_flag,
};

/// One thread's switch: shared tables and directory, and counters of its own.
#[derive(Clone, Debug)]
pub struct Pipeline {
    tenure: Tenure,
    tables: Option<Arc<Tables>>,
    hot: View,
    counters: Counters,
    loads: Loads,
    rng: Rng,
    /// Whether readers are chosen whatever they said to hold.
    blind: bool,
    /// Whether multigets with hints are split by these.
    by_hints: bool,
    behind: Option<Arc<dyn CoherenceDirectory>>,
    mutant: MaybeMutant,
}

impl Pipeline {
    /// The only pipeline of a switch; it drops everything until it has tables and a lease.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Self {
        Self::sharing(incarnation, Arc::new(Directory::new(incarnation)))
    }

    /// One of several pipelines of a switch, which have one directory.
    #[must_use]
    pub fn sharing(incarnation: Incarnation, directory: Arc<Directory>) -> Self {
        let mut pipeline = Self {
            tenure: Tenure::new(incarnation),
            tables: None,
            loads: Loads::sharing(directory.reports()),
            hot: View::new(directory),
            counters: Counters::default(),
            rng: Rng::new(incarnation.0).fork("readers"),
            blind: false,
            by_hints: false,
            behind: None,
            mutant: MaybeMutant::default(),
        };
        pipeline.counters.follow_hot(pipeline.hot.table());
        pipeline.counters.say_it_can_all();
        pipeline
    }

    /// For what is left to it by a switch that keeps the directory. It takes no hot keys itself.
    #[must_use]
    pub fn behind(incarnation: Incarnation, behind: Arc<dyn CoherenceDirectory>) -> Self {
        Self { behind: Some(behind), counters: Counters::default(), ..Self::new(incarnation) }
    }

    /// Breaks a rule on purpose, for the simulator to notice.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
        self.loads.mutant(self.mutant);
    }

    /// From now on, spreads reads over all readers, whatever they said to hold. Marks are hints.
    pub fn choose_blindly(&mut self) {
        self.blind = true;
    }

    /// From now on, splits multigets with hints by these, as a target without loops must.
    pub fn split_by_hints(&mut self) {
        self.by_hints = true;
    }

    /// Takes one datagram that came to the service address, rewrites it in place, and queues what
    /// becomes of it. `now` must have been read after that came: the lease is held against it.
    ///
    /// # Errors
    ///
    /// The reason for which the datagram was dropped as a whole; it is counted already. Keys of
    /// an MGET and pieces of a RANGE that have nowhere to go are counted and are no error.
    pub fn process(
        &mut self,
        now: Instant,
        from: Endpoint,
        datagram: &mut [u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        self.follow_directory();
        let outcome = match Packet::parse(datagram).map(|packet| packet.op()) {
            Ok(op) => {
                self.counters.count_packet(op);
                self.forward(op, now, from, datagram, out)
            }
            Err(reason) => {
                self.counters.count_unparsed();
                Err(reason)
            }
        };
        outcome.inspect_err(|reason| self.counters.count_drop(*reason))
    }

    /// Replaces all tables between two packets. Older ones than the present are ignored, and those
    /// of another cluster than the first; the counters of partitions that stay go on.
    pub fn install_compiled(&mut self, tables: Arc<Tables>) {
        let ours = self.hot.directory().claim(tables.cluster());
        if !ours || tables.revision() < self.revision() {
            return;
        }
        self.counters.follow(&tables);
        let keeps = self.mutant.is(Mutant::KeepDirectory);
        self.hot.directory().follow(tables.revision(), tables.active(), keeps);
        self.follow_directory();
        self.tables = Some(tables);
    }

    /// Revision of the installed tables; 0 for none.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.tables.as_ref().map_or(Revision::NONE, |tables| tables.revision())
    }

    /// Revision of the installed order of hot keys; 0 for none.
    #[must_use]
    pub fn hot_revision(&self) -> Revision {
        self.hot.directory().revision()
    }

    /// Whether it has a lease at `now`.
    #[must_use]
    pub fn is_leased(&self, now: Instant) -> bool {
        self.tenure.holds(now)
    }

    /// What this pipeline has done so far.
    #[must_use]
    pub fn counters_ref(&self) -> &Counters {
        &self.counters
    }

    /// The loads that nodes reported in replies that passed the switch.
    #[must_use]
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    fn forward(
        &mut self,
        op: Op,
        now: Instant,
        from: Endpoint,
        datagram: &mut [u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let leased = self.tenure.holds(now);
        match op {
            Op::GetReply
            | Op::PutReply
            | Op::DelReply
            | Op::CasReply
            | Op::IncrReply
            | Op::MgetReply
            | Op::RangeReply
            | Op::DescribeReply
            | Op::BatchReply
            | Op::HotCopied
            | Op::HotPublish => self.forward_reply(op, leased, now, from, datagram, out),
            Op::ChainWrite
            | Op::ChainAck
            | Op::ChainCommit
            | Op::ChainStable
            | Op::ChainExpire
            | Op::ChainCopy
            | Op::ChainCopied
            | Op::ChainVerify
            | Op::ChainVerified
            | Op::ChainMend
            | Op::ChainGoodbye
            | Op::ChainDurable
            | Op::ChainOffer
            | Op::ChainOffered
            | Op::HotCopy
            | Op::DelegationFetch
            | Op::DelegationFound
            | Op::DelegationEnd
            | Op::DelegationCommit
            | Op::DelegationWrite
            | Op::DelegationDurable
            | Op::CacheFetch
            | Op::CacheLoan
            | Op::CacheRenew
            | Op::CacheGrant
            | Op::CacheUpdate
            | Op::CacheRecall
            | Op::CacheAnswer
            | Op::CacheReport
            | Op::CacheRuled => Err(DropReason::BadOp),
            Op::CacheRules => self.take_rules(now, from, datagram, out),
            Op::Get | Op::Put | Op::Del | Op::Cas | Op::Incr | Op::Batch | Op::Goodbye => {
                let (pass, directory) = self.admit(leased, now, from, datagram, out)?;
                pass.single(directory, op, datagram)
            }
            Op::Mget => {
                let (pass, directory) = self.admit(leased, now, from, datagram, out)?;
                pass.mget(directory, datagram)
            }
            Op::Range => self.admit(leased, now, from, datagram, out)?.0.range(datagram),
            Op::Describe => self.admit(leased, now, from, datagram, out)?.0.describe(datagram),
        }
    }

    /// What holds for every request: it comes from a client, whose address the answer will need,
    /// and the switch has tables, a lease, and the turn.
    fn admit<'p>(
        &'p mut self,
        leased: bool,
        now: Instant,
        from: Endpoint,
        datagram: &mut [u8],
        out: &'p mut Outbox,
    ) -> Result<(Pass<'p>, Coherence<'p>), DropReason> {
        let tables = self.tables.as_deref().ok_or(DropReason::NotServing)?;
        if tables.sender(from).is_some() || tables.cache_at(from).is_some() {
            return Err(DropReason::RequestFromNode);
        }
        if !leased {
            return Err(DropReason::NoLease);
        }
        if !tables.active() {
            return Err(DropReason::Standby);
        }
        let (header, _) = split_header(datagram);
        let ClientWrite { first_sent } = ClientWrite::read(header);
        header.set_reply_addr(from.addr);
        header.set_reply_port(from.port);
        header.set_hop_flags(0);
        header.set_node(0);
        header.set_load(0);
        // Before anything is looked at.
        let clock = self.directory().clock();
        Ok(self.pass(now, (clock, first_sent), out).expect("there are tables"))
    }

    /// What a packet meets, if there are tables.
    fn pass<'p>(
        &'p mut self,
        now: Instant,
        (clock, first_sent): (ClockReading, DirectoryClock),
        out: &'p mut Outbox,
    ) -> Option<(Pass<'p>, Coherence<'p>)> {
        let Self { hot: view, counters, loads, rng, blind, by_hints, mutant, .. } = self;
        let (tables, hot) = (self.tables.as_deref()?, view.table());
        let (blind, by_hints, mutant) = (*blind, *by_hints, *mutant);
        let directory = Coherence::of(view, self.behind.as_deref());
        let pass = Pass {
            now,
            clock,
            first_sent,
            tables,
            hot,
            counters,
            loads,
            rng,
            blind,
            by_hints,
            mutant,
            out,
        };
        Some((pass, directory))
    }

    /// The directory that it uses.
    #[inline]
    fn directory(&self) -> Coherence<'_> {
        Coherence::of(&self.hot, self.behind.as_deref())
    }

    /// From a node or a cache to the client that it names. The order of the checks is that of the
    /// protocol.
    fn forward_reply(
        &mut self,
        op: Op,
        leased: bool,
        now: Instant,
        from: Endpoint,
        datagram: &mut [u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if !leased {
            return Err(DropReason::NoLease);
        }
        let tables = self.tables.as_ref();
        if tables.is_some_and(|tables| !tables.active()) {
            return Err(DropReason::Standby);
        }
        let (header, _) = split_header(datagram);
        let cache = tables.filter(|_| op == Op::GetReply).and_then(|it| it.cache_at(from));
        if let Some(cache) = cache {
            let to = client_of(header, cache.id.0)?;
            self.emit_reply(op, to, datagram, out);
            return Ok(());
        }
        let sender = tables.and_then(|tables| tables.sender(from));
        let named = self.mutant.is(Mutant::BelieveStrangers).then(|| header.node());
        let sender = sender.or(named.map(NodeId)).ok_or(DropReason::ReplyNotFromNode)?;
        let to = client_of(header, sender.0)?;
        self.loads.answered(now, sender, observe::of_the_node(self.hot.table(), op, header));
        if observe::is_about_one_key(op) {
            let unasked = (ClockReading::default(), DirectoryClock::NONE);
            if let Some((mut pass, directory)) = self.pass(now, unasked, out) {
                directory.note(&mut pass, (op, sender), header)?;
            }
        }
        let can_be = observe::rate_of(header).is_some();
        self.counters.count_doubted(u64::from(!can_be));
        self.emit_reply(op, to, datagram, out);
        Ok(())
    }

    /// Sends an answer on to the client, with the clock that clients go by.
    fn emit_reply(&mut self, op: Op, to: Endpoint, datagram: &mut [u8], out: &mut Outbox) {
        if observe::answers_a_request(op) {
            let (header, _) = split_header(datagram);
            ClientReply { clock: self.directory().clock().present }.write(header);
        }
        out.push_copy(to, datagram);
        self.counters.count_emitted();
    }

    /// Takes over the directory's table if it has changed.
    #[inline]
    fn follow_directory(&mut self) {
        if self.hot.follow() {
            self.counters.follow_hot(self.hot.table());
        }
    }
}

impl Pass<'_> {
    /// Any node knows all keyspaces. The client id spreads the askers over them, the number sends
    /// one who asks again to another.
    fn describe(&mut self, datagram: &mut [u8]) -> Result<(), DropReason> {
        let (header, _) = split_header(datagram);
        let nodes = self.tables.nodes();
        let count = u64::try_from(nodes.len()).expect("at most NODES_MAX");
        let place = header.client().wrapping_add(header.seq());
        let place = place.checked_rem(count).ok_or(DropReason::NoNode)?;
        let place = usize::try_from(place).expect("below the number of nodes");
        let node = nodes.get(place).ok_or(DropReason::NoNode)?;
        self.emit(node.endpoint, datagram);
        Ok(())
    }

    /// One key: a read to its tail, or to one who holds a copy, a write to its head with the chain
    /// it will walk.
    fn single(
        mut self,
        directory: Coherence<'_>,
        op: Op,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let (header, payload) = split_header(datagram);
        let keyspace = KeyspaceId(header.keyspace());
        let table = self.tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
        let action = table.find(Match(header.match_value())).ok_or(DropReason::NoPartition)?;
        let to = if !op.is_for_head() {
            self.read(directory, header, action)
        } else {
            self.counters.count_write(action.counter);
            directory.count_write(&mut self, header);
            if directory.delegates() && wire::may_be_delegated(header, payload) {
                self.delegate(directory, header, action)?
            } else {
                self.go_home(header, action, Version::NONE)
            }
        };
        self.emit(to.ok_or(DropReason::NoNode)?, datagram);
        Ok(())
    }

    /// A read to its tail, or to one who holds a copy.
    fn read(
        &mut self,
        directory: Coherence<'_>,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
    ) -> Option<Endpoint> {
        self.counters.count_read(action.counter);
        let at_home = header.flags() & flag::AT_HOME != 0;
        let key = (KeyspaceId(header.keyspace()), header.keyhash());
        let at = Match(header.match_value());
        let exit = match directory.select_replica(self, key, at, at_home) {
            None => {
                let exit = stamp_read(header, action)?;
                if let Some(cache) = self.cache_of(directory, key, at_home) {
                    return Some(cache);
                }
                exit
            }
            Some(read) => {
                let exit = self.copy_of(&read, action.partition).or(action.tail)?;
                stamp_partition(header, action);
                stamp_hot(header, exit, read.floor, read.generation);
                exit
            }
        };
        self.send_to(exit.node);
        Some(exit.to)
    }

    /// A write that may be delegated: under its delegation if it has a grant of that or can be
    /// given one, else home.
    fn delegate(
        &mut self,
        directory: Coherence<'_>,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
    ) -> Result<Option<Endpoint>, DropReason> {
        ClientWrite { first_sent: self.first_sent }.write(header);
        if let WriteRoute::Home { version, crowded } =
            directory.delegate(self, header, action.head)?
        {
            let exit = self.go_home(header, action, version);
            if crowded {
                header.set_hop_flags(header.hop_flags() | hop_flag::CROWDED);
            }
            return Ok(exit);
        }
        let granted = GrantedPut::read(header);
        stamp_partition(header, action);
        granted.write(header);
        let first = crate::tables::chain_nodes(header.chain(), header.chain_len()).next();
        let first = first.and_then(|node| self.tables.node(node));
        Ok(first.map(|node| node.endpoint_of(action.partition)))
    }
}

/// Where an answer of this sender goes.
fn client_of(header: &[u8; HEADER_LEN], sender: u16) -> Result<Endpoint, DropReason> {
    let to = Endpoint { addr: header.reply_addr(), port: header.reply_port() };
    if !to.is_set() {
        return Err(DropReason::BadReplyAddress);
    }
    if header.node() != sender {
        return Err(DropReason::ReplyNotFromNode);
    }
    Ok(to)
}

mod caches;
mod control;
#[cfg(test)]
mod tests;
