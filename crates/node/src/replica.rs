//! One partition on this node: its place in the chain, its pending writes, its sessions.

use crate::counters::Counters;
use crate::directory::Directory;
use crate::engine::{Engine, KeyRef};
use crate::plant::Plant;
use crate::session::{Outcome, Sessions};
use cluster::{Epoch, NodeId, Partition, PartitionId};
use machine::{Instant, Outbox, RttEstimator};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{Body, ChainWriteBody, Code, Effect, Endpoint, Header, Op, Packet};

/// What a replica works with while it handles one packet: everything of the node but the replica.
pub(crate) struct Context<'a, E> {
    pub(crate) now: Instant,
    /// Datagrams found waiting, for the load report.
    pub(crate) load: u16,
    pub(crate) engine: &'a mut E,
    pub(crate) out: &'a mut Outbox,
    pub(crate) timers: &'a mut Timers,
    pub(crate) counters: &'a mut Counters,
    pub(crate) directory: &'a Directory,
    pub(crate) plant: Option<Plant>,
    /// A buffer to build payloads in, kept for its capacity: whoever takes it clears it and puts it
    /// back.
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// When which pending write is to be sent again.
pub(crate) type Timers = BTreeSet<(Instant, PartitionId, u64)>;

/// Takes out the writes that are due by `now`: partition and version, the earliest first.
pub(crate) fn take_due(timers: &mut Timers, now: Instant) -> Vec<(PartitionId, u64)> {
    let after = now + Duration::from_nanos(1);
    let later = timers.split_off(&(after, PartitionId::default(), 0));
    let due = std::mem::replace(timers, later);
    due.into_iter().map(|(_, partition, version)| (partition, version)).collect()
}

/// A write on its way down the chain, borrowed from a packet or from a [`Pending`].
///
/// The header is that of its CHAIN_WRITE; `object_version` is its version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) header: Header,
    pub(crate) fixed: ChainWriteBody,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A write recorded here and not yet known to be committed.
#[derive(Debug)]
pub(crate) struct Pending {
    header: Header,
    fixed: ChainWriteBody,
    key: Box<[u8]>,
    value: Box<[u8]>,
    /// The successor has recorded it.
    pub(crate) acknowledged: bool,
    /// Copies sent, less one.
    pub(crate) resends: u32,
    pub(crate) sent_at: Instant,
    /// Its entry in the timers.
    pub(crate) due: Instant,
}

impl Write<'_> {
    pub(crate) fn version(&self) -> u64 {
        self.header.object_version
    }

    /// The low-water mark of its client.
    pub(crate) fn floor(&self) -> u64 {
        self.header.seq.saturating_sub(u64::from(self.header.lag))
    }

    pub(crate) fn effect(&self) -> Option<Effect> {
        Effect::from_wire(self.fixed.effect)
    }

    /// The outcome that the head computed; `None` if the packet makes no sense.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let origin = Op::from_wire(self.fixed.origin).filter(|op| op.is_write())?;
        let code = Code::from_wire(self.header.code).filter(|code| code.is_decided())?;
        // A write without effect tells the version that it found, not its own.
        let found = self.effect()? == Effect::None;
        let version = if found { self.fixed.result } else { self.version() };
        Some(Outcome { origin, code, version, result: self.fixed.result })
    }

    fn to_pending(self, now: Instant) -> Pending {
        Pending {
            header: self.header,
            fixed: self.fixed,
            key: self.key.into(),
            value: self.value.into(),
            acknowledged: false,
            resends: 0,
            sent_at: now,
            due: now,
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        wire::emit(out, &self.header, &[&self.fixed.to_bytes(), self.key, self.value]);
    }
}

impl Pending {
    pub(crate) fn write(&self) -> Write<'_> {
        Write { header: self.header, fixed: self.fixed, key: &self.key, value: &self.value }
    }
}

/// One partition on this node.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) partition: Partition,
    pub(crate) ordered: bool,
    /// This node's index in the chain.
    position: usize,
    /// The newest version that this head has given out.
    pub(crate) last_version: u64,
    /// Every version up to this one is committed on every member.
    pub(crate) stable: u64,
    /// The newest version of any tombstone collected here.
    pub(crate) collected: u64,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Versions pending per key, ascending.
    by_key: BTreeMap<Box<[u8]>, Vec<u64>>,
    /// Version pending per request id.
    by_request: BTreeMap<(u64, u64), u64>,
    /// Versions above `stable` that are committed here.
    committed: BTreeSet<u64>,
    pub(crate) sessions: Sessions,
    /// Until the successor acknowledges, and until it says committed.
    pub(crate) acknowledge_rtt: RttEstimator,
    pub(crate) commit_rtt: RttEstimator,
    /// CHAIN_STABLE still to be sent for the present `stable`.
    pub(crate) announcements_left: u8,
}

impl Replica {
    /// Takes up a partition, with whatever the engine remembers of it.
    ///
    /// # Panics
    ///
    /// If `me` is not in the chain: the assignment names only partitions that it is in.
    pub(crate) fn open<E: Engine>(
        partition: Partition,
        me: NodeId,
        ordered: bool,
        now: Instant,
        engine: &E,
        timers: &mut Timers,
    ) -> Self {
        let position = partition.chain.iter().position(|id| *id == me);
        let mut replica = Self {
            position: position.expect("assigned partitions have this node in their chain"),
            partition,
            ordered,
            last_version: 0,
            stable: 0,
            collected: 0,
            pending: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_request: BTreeMap::new(),
            committed: BTreeSet::new(),
            sessions: Sessions::default(),
            acknowledge_rtt: RttEstimator::new(RESEND_MIN, RESEND_FIRST, RESEND_MAX),
            commit_rtt: RttEstimator::new(RESEND_MIN, COMMIT_FIRST, RESEND_MAX),
            announcements_left: 0,
        };
        engine.notes(replica.partition.id, |name, note| {
            replica.remember(now, name, note, timers);
        });
        replica.settle_stable();
        replica
    }

    /// Follows a change of epoch, bounds or chain that keeps this node in it.
    pub(crate) fn adopt(&mut self, partition: Partition, me: NodeId) {
        let position = partition.chain.iter().position(|id| *id == me);
        self.position = position.expect("assigned partitions have this node in their chain");
        self.partition = partition;
    }

    fn remember(&mut self, now: Instant, name: &[u8], note: &[u8], timers: &mut Timers) {
        match name.split_first() {
            Some((b'c', [])) => {
                if let ([last, stable, collected], []) = note.as_chunks::<8>() {
                    self.last_version = self.last_version.max(u64::from_be_bytes(*last));
                    self.stable = u64::from_be_bytes(*stable);
                    self.collected = u64::from_be_bytes(*collected);
                }
            }
            Some((b'p', _)) => {
                let Ok(packet) = Packet::parse(note) else { return };
                let Ok(Body::ChainWrite { fixed, key, value }) = packet.body() else { return };
                let header = Header::read(packet.header());
                let write = Write { header, fixed, key, value };
                self.last_version = self.last_version.max(write.version());
                self.insert_pending(now, &write, now, timers);
            }
            Some((b's', id)) => {
                let ([client, seq], []) = id.as_chunks::<8>() else { return };
                let Some((outcome, floor)) = Outcome::from_note(note) else { return };
                let (client, seq) = (u64::from_be_bytes(*client), u64::from_be_bytes(*seq));
                self.sessions.record(now, client, seq, floor, outcome);
            }
            _ => {}
        }
    }

    pub(crate) fn id(&self) -> PartitionId {
        self.partition.id
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.partition.epoch
    }

    pub(crate) fn is_head(&self) -> bool {
        self.position == 0
    }

    pub(crate) fn is_tail(&self) -> bool {
        self.position + 1 == self.partition.chain.len()
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Index and id of the member after this one.
    pub(crate) fn successor(&self) -> Option<(usize, NodeId)> {
        let next = self.position + 1;
        Some((next, *self.partition.chain.get(next)?))
    }

    pub(crate) fn predecessor(&self) -> Option<NodeId> {
        self.partition.chain.get(self.position.checked_sub(1)?).copied()
    }

    pub(crate) fn key_ref<'a>(&self, header: &Header, key: &'a [u8]) -> KeyRef<'a> {
        KeyRef {
            keyspace: self.partition.keyspace,
            partition: self.partition.id,
            ordered: self.ordered,
            match_value: cluster::Match(header.match_value),
            keyhash: header.keyhash,
            key,
        }
    }

    /// The newest pending write of this key that has an effect.
    pub(crate) fn newest_pending(&self, key: &[u8]) -> Option<&Pending> {
        let versions = self.by_key.get(key)?;
        let pending = versions.iter().rev().filter_map(|version| self.pending.get(version));
        pending.into_iter().find(|p| p.fixed.effect != Effect::None as u8)
    }

    pub(crate) fn pending_of(&self, client: u64, seq: u64) -> Option<u64> {
        self.by_request.get(&(client, seq)).copied()
    }

    /// Whether this version is known here, pending or committed.
    pub(crate) fn knows(&self, version: u64) -> bool {
        self.is_committed(version) || self.pending.contains_key(&version)
    }

    pub(crate) fn is_committed(&self, version: u64) -> bool {
        version <= self.stable || self.committed.contains(&version)
    }

    /// Records a write as pending, in memory and as a note.
    pub(crate) fn pend<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let mut note = Vec::new();
        write.emit(&mut note);
        ctx.engine.note(self.id(), &pending_name(write.version()), Some(&note));
        let due = ctx.now + self.acknowledge_rtt.timeout(0);
        self.insert_pending(ctx.now, write, due, ctx.timers);
    }

    fn insert_pending(
        &mut self,
        now: Instant,
        write: &Write<'_>,
        due: Instant,
        timers: &mut Timers,
    ) {
        let version = write.version();
        let versions = self.by_key.entry(write.key.into()).or_default();
        let at = versions.partition_point(|v| *v < version);
        versions.insert(at, version);
        if write.header.client != 0 {
            self.by_request.insert((write.header.client, write.header.seq), version);
            self.sessions.raise_floor(now, write.header.client, write.floor());
        }
        timers.insert((due, self.partition.id, version));
        let pending = Pending { due, ..write.to_pending(now) };
        assert!(self.pending.insert(version, pending).is_none(), "a version is recorded once");
    }

    /// Takes a write out of the pending ones, because it is committed now.
    pub(crate) fn unpend<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: u64,
    ) -> Option<Pending> {
        let pending = self.pending.remove(&version)?;
        ctx.timers.remove(&(pending.due, self.partition.id, version));
        ctx.engine.note(self.id(), &pending_name(version), None);
        self.by_request.remove(&(pending.header.client, pending.header.seq));
        if let Some(versions) = self.by_key.get_mut(&pending.key) {
            versions.retain(|v| *v != version);
            if versions.is_empty() {
                self.by_key.remove(&pending.key);
            }
        }
        Some(pending)
    }

    /// Notes that a version is committed here; at the head also how far that makes it stable.
    pub(crate) fn mark_committed(&mut self, version: u64) {
        self.committed.insert(version);
        self.settle_stable();
    }

    /// The head knows from its pending writes how far the partition is stable.
    fn settle_stable(&mut self) {
        if self.is_head() {
            let oldest = self.pending.keys().next();
            self.raise_stable(oldest.map_or(self.last_version, |version| version - 1));
        }
    }

    /// Every version up to `stable` is committed on every member.
    pub(crate) fn raise_stable(&mut self, stable: u64) {
        if stable > self.stable {
            self.stable = stable;
            self.committed = self.committed.split_off(&(stable + 1));
            self.announcements_left = ANNOUNCEMENTS;
        }
    }

    /// Keeps the partition's counters as a note.
    pub(crate) fn note_counters<E: Engine>(&self, engine: &mut E) {
        let mut note = [0; 24];
        let words = [self.last_version, self.stable, self.collected];
        for (to, word) in note.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        engine.note(self.id(), b"c", Some(&note));
    }

    /// Where this node's replies to a request go: the switch, unless there is none on the way.
    pub(crate) fn reply_endpoint(header: &Header, directory: &Directory) -> Endpoint {
        if header.hop_flags & wire::hop_flag::DIRECT == 0 {
            directory.switch
        } else {
            Endpoint { addr: header.reply_addr, port: header.reply_port }
        }
    }

    /// Sends a pending write to the successor.
    pub(crate) fn send_on<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: u64) {
        let Some((next, successor)) = self.successor() else { return };
        let Some(to) = ctx.directory.endpoint(successor, self.partition.id) else { return };
        let Some(pending) = self.pending.get_mut(&version) else { return };
        pending.fixed.stable = self.stable;
        let header = &mut pending.header;
        header.epoch = self.partition.epoch.0;
        header.node = ctx.directory.me.0;
        header.load = ctx.load;
        header.set_chain(self.partition.chain.iter().map(|id| id.0));
        header.chain_pos = u8::try_from(next).expect("chains are at most CHAIN_MAX long");
        ctx.out.push(to, |out| pending.write().emit(out));
    }
}

fn pending_name(version: u64) -> [u8; 9] {
    let mut name = [b'p'; 9];
    if let Some((_, number)) = name.split_first_mut() {
        number.copy_from_slice(&version.to_be_bytes());
    }
    name
}

/// The name of the note that keeps one outcome.
pub(crate) fn session_name(client: u64, seq: u64) -> [u8; 17] {
    let mut name = [b's'; 17];
    if let Some((_, id)) = name.split_first_mut() {
        let (first, second) = id.split_at_mut(8);
        first.copy_from_slice(&client.to_be_bytes());
        second.copy_from_slice(&seq.to_be_bytes());
    }
    name
}

/// Pending writes per partition. At the largest entry this is 6 MiB of a partition's memory; a
/// chain that far behind is told *overloaded* to its clients rather than let its queue grow.
pub(crate) const PENDING_MAX: usize = 4_096;

/// Shorter resends would race the group commit of a successor with a durable engine.
const RESEND_MIN: Duration = Duration::from_millis(5);
/// Before anything is known of the successor.
const RESEND_FIRST: Duration = Duration::from_millis(50);
/// The same for the commit, which waits for the rest of the chain.
const COMMIT_FIRST: Duration = Duration::from_millis(200);
/// A successor that is down is asked this often at least, so that a chain heals soon after it.
const RESEND_MAX: Duration = Duration::from_secs(1);
/// CHAIN_STABLE is not acknowledged: it is said a few times, and the next write says it again.
const ANNOUNCEMENTS: u8 = 3;
