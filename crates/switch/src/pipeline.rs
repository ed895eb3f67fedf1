//! The way of a packet: parse, reply or request, partition, out.

use crate::directory::View;
use crate::hot::{HotTable, Row};
use crate::tables::{Action, Exit};
use crate::{ClockReading, CoherenceDirectory, Counters, Directory, Loads, Tables, observe};
use cluster::{Incarnation, KeyspaceId, Match, MaybeMutant, Mutant, NodeId, Tenure};
use machine::{Instant, Outbox, Rng};
use std::sync::Arc;
use wire::{DropReason, Endpoint, Fields, HEADER_LEN, Op, Packet, flag, hop_flag};

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
    elsewhere: Option<Arc<dyn CoherenceDirectory>>,
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
            elsewhere: None,
            mutant: MaybeMutant::default(),
        };
        pipeline.counters.follow_hot(pipeline.hot.table());
        pipeline.counters.say_it_is_delegated();
        pipeline
    }

    /// For what is left to it by a switch that keeps the directory. It takes no hot keys itself.
    #[must_use]
    pub fn behind(incarnation: Incarnation, elsewhere: Arc<dyn CoherenceDirectory>) -> Self {
        Self { elsewhere: Some(elsewhere), counters: Counters::default(), ..Self::new(incarnation) }
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
    pub fn revision(&self) -> u64 {
        self.tables.as_ref().map_or(0, |tables| tables.revision())
    }

    /// Revision of the installed order of hot keys; 0 for none.
    #[must_use]
    pub fn hot_revision(&self) -> u64 {
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
            | Op::HotCopy
            | Op::DelegationFetch
            | Op::DelegationFound
            | Op::DelegationEnd
            | Op::DelegationCommit => Err(DropReason::BadOp),
            Op::Get | Op::Put | Op::Del | Op::Cas | Op::Incr | Op::Batch | Op::Goodbye => {
                self.admit(leased, now, from, datagram, out)?.single(op, datagram)
            }
            Op::Mget => self.admit(leased, now, from, datagram, out)?.mget(datagram),
            Op::Range => self.admit(leased, now, from, datagram, out)?.range(datagram),
            Op::Describe => self.admit(leased, now, from, datagram, out)?.describe(datagram),
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
    ) -> Result<Pass<'p>, DropReason> {
        let tables = self.tables.as_deref().ok_or(DropReason::NotServing)?;
        if tables.sender(from).is_some() {
            return Err(DropReason::RequestFromNode);
        }
        if !leased {
            return Err(DropReason::NoLease);
        }
        if !tables.active() {
            return Err(DropReason::Standby);
        }
        let (header, _) = split_header(datagram);
        let first_sent = header.directory_clock();
        header.set_reply_addr(from.addr);
        header.set_reply_port(from.port);
        header.set_hop_flags(0);
        header.set_node(0);
        header.set_load(0);
        Ok(self.pass(now, first_sent, out).expect("there are tables"))
    }

    /// What a packet meets, if there are tables.
    fn pass<'p>(
        &'p mut self,
        now: Instant,
        first_sent: u64,
        out: &'p mut Outbox,
    ) -> Option<Pass<'p>> {
        let clock = self.clock();
        let Self { hot: view, counters, loads, rng, blind, by_hints, mutant, .. } = self;
        let (tables, hot) = (self.tables.as_deref()?, view.table());
        let (blind, by_hints, mutant) = (*blind, *by_hints, *mutant);
        Some(Pass {
            now,
            clock,
            first_sent,
            tables,
            view,
            hot,
            counters,
            loads,
            rng,
            blind,
            by_hints,
            mutant,
            elsewhere: self.elsewhere.as_deref(),
            out,
        })
    }

    /// The switch's clock.
    #[inline]
    fn clock(&self) -> ClockReading {
        self.elsewhere.as_ref().map_or_else(|| self.hot.directory().clock(), |it| it.clock())
    }

    /// From a node to the client that it names. The order of the checks is that of the protocol.
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
        let sender = tables.and_then(|tables| tables.sender(from));
        let (header, _) = split_header(datagram);
        let named = self.mutant.is(Mutant::BelieveStrangers).then(|| header.node());
        let sender = sender.or(named.map(NodeId)).ok_or(DropReason::ReplyNotFromNode)?;
        let to = Endpoint { addr: header.reply_addr(), port: header.reply_port() };
        if !to.is_set() {
            return Err(DropReason::BadReplyAddress);
        }
        if header.node() != sender.0 {
            return Err(DropReason::ReplyNotFromNode);
        }
        self.loads.answered(now, sender, observe::of_the_node(self.hot.table(), op, header));
        if let Some(elsewhere) = self.elsewhere.as_ref().filter(|_| observe::is_about_one_key(op))
            && !elsewhere.note(header)
        {
            return Err(DropReason::Contended);
        }
        let known = observe::from_reply(self.hot.table(), op, sender, header, self.mutant);
        let can_be = observe::rate_of(header).is_some();
        self.counters.count_doubted(u64::from(!known) + u64::from(!can_be));
        if op == Op::PutReply && !self.hot.table().is_empty() {
            let pass = self.pass(now, 0, out);
            pass.into_iter().for_each(|mut pass| pass.observe_put(sender, header));
        }
        if observe::answers_a_request(op) {
            header.set_reply_directory_clock(self.clock().present);
        }
        out.push_copy(to, datagram);
        self.counters.count_emitted();
        Ok(())
    }

    /// Takes over the directory's table if it has changed.
    #[inline]
    fn follow_directory(&mut self) {
        if self.hot.follow() {
            self.counters.follow_hot(self.hot.table());
        }
    }
}

/// What one request meets on its way through.
pub(crate) struct Pass<'p> {
    pub(crate) now: Instant,
    /// The switch's, before anything was looked at.
    pub(crate) clock: ClockReading,
    /// The clock at which a write was first sent.
    pub(crate) first_sent: u64,
    pub(crate) tables: &'p Tables,
    pub(crate) view: &'p View,
    pub(crate) hot: &'p HotTable,
    pub(crate) counters: &'p mut Counters,
    pub(crate) loads: &'p mut Loads,
    pub(crate) rng: &'p mut Rng,
    pub(crate) blind: bool,
    pub(crate) by_hints: bool,
    pub(crate) mutant: MaybeMutant,
    pub(crate) elsewhere: Option<&'p dyn CoherenceDirectory>,
    out: &'p mut Outbox,
}

impl<'p> Pass<'p> {
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
    fn single(mut self, op: Op, datagram: &mut [u8]) -> Result<(), DropReason> {
        let (header, payload) = split_header(datagram);
        let keyspace = KeyspaceId(header.keyspace());
        let table = self.tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
        let action = table.find(Match(header.match_value())).ok_or(DropReason::NoPartition)?;
        let to = if !op.is_for_head() {
            self.read(header, action)
        } else {
            self.count_write(header, action);
            if self.delegates() && wire::may_be_delegated(header, payload) {
                self.delegate(header, action)?
            } else {
                self.go_home(header, action, 0)
            }
        };
        self.emit(to.ok_or(DropReason::NoNode)?, datagram);
        Ok(())
    }

    /// The row of a request's key, if that is hot.
    pub(crate) fn row_of(&self, header: &[u8; HEADER_LEN]) -> Option<&'p Row> {
        let keyspace = KeyspaceId(header.keyspace());
        self.row((keyspace, header.keyhash()), Match(header.match_value()))
    }

    /// The row of the key with this hash that lies there.
    pub(crate) fn row(&self, key: (KeyspaceId, u64), at: Match) -> Option<&'p Row> {
        let trusts = self.mutant.is(Mutant::TrustKeyhashes);
        self.hot.find(key.0, key.1).filter(|row| row.lies_at(at) || trusts)
    }

    fn count_write(&mut self, header: &[u8; HEADER_LEN], action: &Action) {
        self.counters.count_write(action.counter);
        if let Some(row) = self.row_of(header) {
            self.counters.count_hot_write(row.counter.into());
        }
    }

    /// A write to its partition's head, with the version that it was granted, or 0.
    pub(crate) fn go_home(
        &mut self,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
        version: u64,
    ) -> Option<Endpoint> {
        stamp_write(header, action);
        header.set_object_version(version);
        header.set_directory_clock(self.clock.present);
        if self.first_sent < self.clock.beginning {
            header.set_hop_flags(hop_flag::OLD);
        }
        if self.hot.predicts() && action.head.is_some() {
            action.nodes().for_each(|node| self.loads.sent(self.now, node));
        }
        action.head
    }

    fn read(&mut self, header: &mut [u8; HEADER_LEN], action: &Action) -> Option<Endpoint> {
        self.counters.count_read(action.counter);
        let at_home = header.flags() & flag::AT_HOME != 0;
        let name = (KeyspaceId(header.keyspace()), header.keyhash());
        let at = Match(header.match_value());
        if let Some(read) = self.elsewhere.and_then(|it| it.select_replica(name, at, at_home)) {
            let exit = self.copy_of(&read, action.partition).or(action.tail)?;
            stamp_partition(header, action);
            stamp_hot(header, exit, read.floor, read.generation);
            return Some(exit.to);
        }
        let exit = match self.row_of(header) {
            None => stamp_read(header, action)?,
            Some(row) => {
                let spread = self.select_replica(row, action.partition, at_home);
                self.counters.count_hot_read(row.counter.into(), spread.is_some());
                stamp_partition(header, action);
                let floor = spread.as_ref().map(|it| it.floor).or_else(|| row.floor_at_home());
                let exit = spread.map_or(action.tail, |it| Some(it.exit))?;
                stamp_hot(header, exit, floor, row.entry.generation());
                exit
            }
        };
        self.send_to(exit.node);
        Some(exit.to)
    }

    /// Remembers that a request goes to this node, if a choice may depend on it.
    #[inline]
    pub(crate) fn send_to(&mut self, node: NodeId) {
        if self.hot.predicts() {
            self.loads.sent(self.now, node);
        }
    }

    pub(crate) fn emit(&mut self, to: Endpoint, datagram: &[u8]) {
        self.out.push_copy(to, datagram);
        self.counters.count_emitted();
    }
}

/// Floor of a read that only a tail may answer, which takes none: no copy is as new as that.
const AT_TAIL: u64 = u64::MAX;

/// What whoever answers a read of a hot key is to know.
fn stamp_hot(header: &mut [u8; HEADER_LEN], exit: Exit, floor: Option<u64>, generation: u64) {
    stamp_chain_of_one(header, exit);
    header.set_hop_flags(hop_flag::HOT);
    header.set_object_version(floor.unwrap_or(AT_TAIL));
    header.set_generation(generation);
}

fn stamp_write(header: &mut [u8; HEADER_LEN], action: &Action) {
    stamp_partition(header, action);
    header.set_chain(action.chain);
    header.set_chain_len(action.chain_len);
}

/// Stamps a read of one partition; also a piece of a RANGE is one.
pub(crate) fn stamp_read(header: &mut [u8; HEADER_LEN], action: &Action) -> Option<Exit> {
    stamp_partition(header, action);
    let exit = action.tail?;
    stamp_chain_of_one(header, exit);
    Some(exit)
}

pub(crate) fn stamp_partition(header: &mut [u8; HEADER_LEN], action: &Action) {
    header.set_partition(action.partition.0);
    header.set_epoch(action.epoch.0);
    header.set_chain_pos(0);
    header.set_bitmap(0);
}

/// Stamps one node alone as chain, the unused places zero.
pub(crate) fn stamp_chain_of_one(header: &mut [u8; HEADER_LEN], exit: Exit) {
    let (chain, len) = wire::chain_bytes([exit.node.0]);
    header.set_chain(chain);
    header.set_chain_len(len);
}

/// The header of a datagram that passed the parser, and its payload.
pub(crate) fn split_header(datagram: &mut [u8]) -> (&mut [u8; HEADER_LEN], &mut [u8]) {
    datagram.split_first_chunk_mut().expect("parsed: it has a header")
}

mod control;
#[cfg(test)]
mod tests;
