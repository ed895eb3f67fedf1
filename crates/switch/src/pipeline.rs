//! The way of a packet: parse, reply or request, partition, out.

use crate::split;
use crate::tables::{Action, Exit};
use crate::{Counters, Loads, Tables};
use cluster::{
    InstallError, KeyspaceId, Lease, Life, Match, SwitchControl, SwitchCounters, SwitchTables,
    Tenure,
};
use machine::{Instant, Outbox};
use std::sync::Arc;
use wire::{DropReason, Endpoint, Fields, HEADER_LEN, Op, Packet};

/// One thread's switch: shared tables, and counters of its own.
#[derive(Clone, Debug)]
pub struct Pipeline {
    tenure: Tenure,
    tables: Option<Arc<Tables>>,
    counters: Counters,
    loads: Loads,
}

impl Pipeline {
    /// A pipeline without tables and lease: it drops everything until it has both.
    #[must_use]
    pub fn new(life: Life) -> Self {
        Self {
            tenure: Tenure::new(life),
            tables: None,
            counters: Counters::default(),
            loads: Loads::default(),
        }
    }

    /// Takes one datagram that came to the service address and queues what becomes of it. The
    /// datagram is rewritten in place; its bytes are of no use afterwards. `now` must have been
    /// read after the datagram was received: the lease is held against it.
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

    /// Replaces all tables between two packets. Older ones than the present are ignored, and the
    /// counters of partitions that stay go on.
    pub fn install_compiled(&mut self, tables: Arc<Tables>) {
        if tables.revision() < self.revision() {
            return;
        }
        self.counters.follow(&tables);
        self.tables = Some(tables);
    }

    /// Revision of the installed tables; 0 for none.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.tables.as_ref().map_or(0, |tables| tables.revision())
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

    /// The loads that nodes reported in replies that passed here.
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
            | Op::DescribeReply => self.forward_reply(leased, from, datagram, out),
            Op::ChainWrite
            | Op::ChainAck
            | Op::ChainCommit
            | Op::ChainStable
            | Op::ChainExpire
            | Op::ChainCopy
            | Op::ChainCopied => Err(DropReason::BadOp),
            Op::Get | Op::Put | Op::Del | Op::Cas | Op::Incr => {
                let tables = admit(self.tables.as_deref(), leased, from, datagram)?;
                forward_single(tables, &mut self.counters, op, datagram, out)
            }
            Op::Mget => {
                let tables = admit(self.tables.as_deref(), leased, from, datagram)?;
                split::mget(tables, &mut self.counters, datagram, out)
            }
            Op::Range => {
                let tables = admit(self.tables.as_deref(), leased, from, datagram)?;
                split::range(tables, &mut self.counters, datagram, out)
            }
            Op::Describe => {
                let tables = admit(self.tables.as_deref(), leased, from, datagram)?;
                forward_describe(tables, &mut self.counters, datagram, out)
            }
        }
    }

    /// From a node to the client that it names. The order of the checks is that of the protocol.
    fn forward_reply(
        &mut self,
        leased: bool,
        from: Endpoint,
        datagram: &mut [u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if !leased {
            return Err(DropReason::NoLease);
        }
        let sender = self.tables.as_ref().and_then(|tables| tables.sender(from));
        let sender = sender.ok_or(DropReason::ReplyNotFromNode)?;
        let (header, _) = split_header(datagram);
        let to = Endpoint { addr: header.reply_addr(), port: header.reply_port() };
        if !to.is_set() {
            return Err(DropReason::BadReplyAddress);
        }
        if header.node() != sender.0 {
            return Err(DropReason::ReplyNotFromNode);
        }
        self.loads.note(sender, header.load());
        emit(&mut self.counters, to, datagram, out);
        Ok(())
    }
}

impl SwitchControl for Pipeline {
    fn install(&mut self, tables: &SwitchTables) -> Result<(), InstallError> {
        self.install_compiled(Arc::new(Tables::compile(tables)?));
        Ok(())
    }

    fn renew(&mut self, lease: &Lease) {
        self.tenure.renew(self.revision(), lease);
    }

    fn counters(&self) -> SwitchCounters {
        self.counters.report(self.revision())
    }
}

/// What holds for every request: it comes from a client, whose address the answer will need, and
/// the switch has tables, a lease, and the turn.
fn admit<'t>(
    tables: Option<&'t Tables>,
    leased: bool,
    from: Endpoint,
    datagram: &mut [u8],
) -> Result<&'t Tables, DropReason> {
    let tables = tables.ok_or(DropReason::NotServing)?;
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
    header.set_reply_addr(from.addr);
    header.set_reply_port(from.port);
    header.set_hop_flags(0);
    header.set_node(0);
    header.set_load(0);
    Ok(tables)
}

/// Any node knows all keyspaces. The client id spreads the askers over them, the number sends one
/// who asks again to another.
fn forward_describe(
    tables: &Tables,
    counters: &mut Counters,
    datagram: &mut [u8],
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let (header, _) = split_header(datagram);
    let count = u64::try_from(tables.nodes().len()).expect("at most NODES_MAX");
    let place =
        header.client().wrapping_add(header.seq()).checked_rem(count).ok_or(DropReason::NoNode)?;
    let place = usize::try_from(place).expect("below the number of nodes");
    let node = tables.nodes().get(place).ok_or(DropReason::NoNode)?;
    emit(counters, node.endpoint, datagram, out);
    Ok(())
}

/// One key: a read to its tail, a write to its head with the chain it will walk.
fn forward_single(
    tables: &Tables,
    counters: &mut Counters,
    op: Op,
    datagram: &mut [u8],
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let (header, _) = split_header(datagram);
    let keyspace = KeyspaceId(header.keyspace());
    let table = tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
    let action = table.find(Match(header.match_value())).ok_or(DropReason::NoPartition)?;
    let to = if op.is_write() {
        counters.count_write(action.counter);
        stamp_write(header, action).ok_or(DropReason::NoNode)?
    } else {
        counters.count_read(action.counter);
        stamp_read(header, action).ok_or(DropReason::NoNode)?.to
    };
    emit(counters, to, datagram, out);
    Ok(())
}

fn stamp_write(header: &mut [u8; HEADER_LEN], action: &Action) -> Option<Endpoint> {
    stamp_partition(header, action);
    header.set_chain(action.chain);
    header.set_chain_len(action.chain_len);
    action.head
}

/// Stamps a read of one partition; also a piece of a RANGE is one.
pub(crate) fn stamp_read(header: &mut [u8; HEADER_LEN], action: &Action) -> Option<Exit> {
    stamp_partition(header, action);
    let exit = action.tail?;
    stamp_chain_of_one(header, exit);
    Some(exit)
}

fn stamp_partition(header: &mut [u8; HEADER_LEN], action: &Action) {
    header.set_partition(action.partition.0);
    header.set_epoch(action.epoch.0);
    header.set_chain_pos(0);
    header.set_bitmap(0);
}

/// Stamps the tail alone as chain, the unused places zero.
pub(crate) fn stamp_chain_of_one(header: &mut [u8; HEADER_LEN], exit: Exit) {
    let (chain, len) = wire::chain_bytes([exit.node.0]);
    header.set_chain(chain);
    header.set_chain_len(len);
}

/// The header of a datagram that passed the parser, and its payload.
pub(crate) fn split_header(datagram: &mut [u8]) -> (&mut [u8; HEADER_LEN], &[u8]) {
    let (header, payload) = datagram.split_first_chunk_mut().expect("parsed: it has a header");
    (header, payload)
}

pub(crate) fn emit(counters: &mut Counters, to: Endpoint, datagram: &[u8], out: &mut Outbox) {
    out.push_copy(to, datagram);
    counters.count_emitted();
}
