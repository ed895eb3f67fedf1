//! The machine: what comes in, what is due, and what goes out.

use crate::admission::{Admission, whom_to_evict};
use crate::answer::{answer_to, send_answer};
use crate::asker::{Asker, address};
use crate::crowding::Crowding;
use crate::limit::Limit;
use crate::rules::{Rule, RulePace};
use crate::slots::{Home, Key, Name, Slots, State, Value};
use crate::switches::Switches;
use crate::volumes::{Lender, Volumes};
use cluster::{
    CacheId, CacheTables, Incarnation, KeyspaceId, MaybeMutant, Mutant, NodeId, NodeSpec,
    PartitionId, cache_shard_of,
};
use machine::{Datagram, Instant, LoadMetric, Outbox, Rng};
use std::collections::BTreeMap;
use wire::{
    Body, CacheAnswerBody, CacheCopy, CacheMessage, CacheRenewBody, CacheReports, CacheRules, Code,
    ContentClass, DropReason, Endpoint, Fields, HEADER_LEN, Header, LoanNumber, Op, Packet,
    Version, hop_flag,
};

/// What a cache needs to know before any tables.
#[derive(Clone, Copy, Debug)]
pub struct CacheConfig {
    /// Its id.
    pub id: CacheId,
    /// Which of its shards this is, and how many there are: each holds other keys, and knows
    /// nothing of the others.
    pub shard: (u16, u16),
    /// Which incarnation this is: loans name it.
    pub incarnation: Incarnation,
    /// Keys that it holds at most.
    pub entries_max: usize,
    /// Bytes of keys and values that it holds at most.
    pub bytes_max: u64,
    /// How fast the switch's rules may change.
    pub rule_pace: RulePace,
    /// Which keys it takes when it is full.
    pub admission: Admission,
    /// How it reckons what the keys that it holds are worth: as nodes do that report others.
    pub metric: LoadMetric,
}

/// A cache node.
///
/// The driver feeds it datagrams and the passing of time, then sends what
/// [`poll_transmit`](Self::poll_transmit) gives.
#[derive(Debug)]
pub struct Cache {
    pub(crate) config: CacheConfig,
    pub(crate) tables: Option<CacheTables>,
    nodes: BTreeMap<NodeId, NodeSpec>,
    pub(crate) slots: Slots,
    pub(crate) volumes: Volumes,
    pub(crate) switches: Switches,
    pub(crate) limit: Limit,
    pub(crate) crowding: Crowding,
    /// Hits and misses up to when that was looked at last.
    reads: (u64, u64),
    /// The last number of a question.
    pub(crate) nonce: u64,
    /// When keys are to be asked for next, if any may lack.
    next_fetch: Option<Instant>,
    /// When the present segment of the metric began.
    segment_began: Instant,
    rng: Rng,
    pub(crate) counters: Counters,
    dropped: Vec<u64>,
    pub(crate) out: Outbox,
    pub(crate) leaving: bool,
    pub(crate) mutant: MaybeMutant,
}

/// What a cache has done since it started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) forwarded: u64,
    pub(crate) fetches: u64,
    pub(crate) updates: u64,
}

impl Cache {
    /// One that holds nothing and takes nothing until it is given tables.
    #[must_use]
    pub fn new(config: CacheConfig, now: Instant) -> Self {
        Self {
            config,
            tables: None,
            nodes: BTreeMap::new(),
            slots: Slots::default(),
            volumes: Volumes::default(),
            switches: Switches::new(config.rule_pace),
            limit: Limit::new(now, config.entries_max),
            crowding: Crowding::default(),
            reads: (0, 0),
            nonce: 0,
            next_fetch: None,
            segment_began: now,
            rng: Rng::new(config.incarnation.0).fork("cache"),
            counters: Counters::default(),
            dropped: vec![0; 256],
            out: Outbox::default(),
            leaving: false,
            mutant: MaybeMutant::default(),
        }
    }

    /// Takes tables, unless they are older than those that are installed, or of another cluster.
    pub fn install(&mut self, now: Instant, tables: &CacheTables) {
        let known = self.tables.as_ref();
        let foreign = known.is_some_and(|it| it.cluster != tables.cluster);
        if foreign || known.is_some_and(|it| it.revision >= tables.revision) {
            return;
        }
        self.nodes = tables.nodes.iter().map(|node| (node.id, *node)).collect();
        self.tables = Some(tables.clone());
        self.switches.install(now, tables.switches(), rules_of(&self.slots, tables));
    }

    /// The switch takes changes of rules at this pace from now on.
    pub fn set_rule_pace(&mut self, now: Instant, pace: RulePace) {
        self.switches.set_pace(now, pace);
    }

    /// Switches have room for so many rules of it: it holds no more keys than that leaves when all
    /// rules of no use are still there that may be.
    pub fn set_rules_max(&mut self, rules_max: usize) {
        let useless = self.config.rule_pace.useless_max();
        let room = self.config.entries_max.min(rules_max.saturating_sub(useless));
        self.limit.set_room(room);
    }

    /// Takes one datagram, behind which so many wait. `now` must have been read after it was
    /// received: leases are held against it.
    pub fn handle_packet(&mut self, now: Instant, from: Endpoint, waiting: u16, datagram: &[u8]) {
        self.limit.see(waiting);
        if let Err(reason) = self.try_packet(now, from, datagram) {
            self.count_drop(reason);
        }
    }

    /// Counts a datagram that was dropped.
    pub fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Datagrams dropped, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (DropReason, u64)> {
        let count = |reason: DropReason| self.dropped.get(reason as usize).copied().unwrap_or(0);
        DropReason::ALL.into_iter().map(move |reason| (reason, count(reason)))
    }

    fn try_packet(
        &mut self,
        now: Instant,
        from: Endpoint,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let packet = Packet::parse(datagram)?;
        let header = Header::read(packet.header());
        let tables = self.tables.as_ref().ok_or(DropReason::NotServing)?;
        if packet.op() == Op::Get {
            let asker = Asker::of(tables, from, &header)?;
            let header = asker.answered_to(header);
            return self.handle_get(now, &header, &packet, (asker, datagram));
        }
        let Body::Cache(message) = packet.body()? else { return Err(DropReason::BadOp) };
        if let CacheMessage::Ruled = message {
            let rules = rules_of(&self.slots, tables);
            let known = self.switches.heard((now, from), (header.client, header.seq), rules);
            return if known { Ok(()) } else { Err(DropReason::NotFromSwitch) };
        }
        let sender = self.nodes.get(&NodeId(header.node)).filter(|node| node.owns(from));
        if sender.is_none() {
            return Err(DropReason::NotFromMember);
        }
        match message {
            CacheMessage::Report(reports) => {
                self.handle_report(now, NodeId(header.node), &reports);
                Ok(())
            }
            message => self.handle_lender(now, &header, &message),
        }
    }

    /// A read: answered if the key is held under a lease, else sent on to its tail.
    fn handle_get(
        &mut self,
        now: Instant,
        header: &Header,
        packet: &Packet<'_>,
        (asker, datagram): (Asker, &[u8]),
    ) -> Result<(), DropReason> {
        let Body::Get { key } = packet.body()? else { return Err(DropReason::BadBody) };
        let Header { match_value, keyhash, .. } = *header;
        let name = Name { keyspace: KeyspaceId(header.keyspace), match_value, keyhash, key };
        let believes = self.mutant.is(Mutant::BelieveRules);
        let unleased = self.mutant.is(Mutant::AnswerUnleased);
        let shows_ended = self.mutant.is(Mutant::ShowEnded);
        let Some(slot) = self.slots.get_mut(&name) else {
            return self.miss(header, (asker, datagram), believes);
        };
        slot.hits = slot.hits.saturating_add(1);
        if let State::Held { lender, loan, version, value } = &slot.state
            && (unleased || self.volumes.holds(now, lender, *loan))
            && let time = self.volumes.latest_time(now, lender)
            && (!value.is_over(time) || shows_ended)
        {
            let answer = answer_to(header, self.config.id, Code::Ok);
            let shown = (value, time.unwrap_or_default());
            send_answer(&mut self.out, asker.way_back(header), answer, *version, shown);
            self.counters.hits += 1;
            return Ok(());
        }
        // Whoever the switch takes for its tail now is to be asked; or who said so of itself.
        if let Some(node) = wire::chain_of(header.chain, header.chain_len).next() {
            let (partition, epoch) = (PartitionId(header.partition), header.epoch);
            slot.home = Home { node: NodeId(node), partition, epoch };
        }
        if let State::Held { lender, .. } = &slot.state
            && (lender.partition, lender.epoch) != (slot.home.partition, slot.home.epoch)
        {
            self.slots.set(&name, State::Wanted(now));
            self.fetch_by(now);
        }
        self.miss(header, (asker, datagram), believes)
    }

    /// Sends a read on, with the mark of a miss: to the tail that the switch has stamped, or where
    /// reads are answered by the tail alone.
    fn miss(
        &mut self,
        header: &Header,
        (asker, datagram): (Asker, &[u8]),
        believes: bool,
    ) -> Result<(), DropReason> {
        self.counters.misses += 1;
        if believes {
            let answer = answer_to(header, self.config.id, Code::NotFound);
            let none = Value { expiry_ms: 0, bytes: Box::default() };
            send_answer(&mut self.out, asker.way_back(header), answer, Version::NONE, (&none, 0));
            return Ok(());
        }
        let to = match asker {
            Asker::Switch(_) => {
                let tail = wire::chain_of(header.chain, header.chain_len).next().map(NodeId);
                tail.and_then(|it| self.home_endpoint(it, PartitionId(header.partition)))
            }
            Asker::Client(_, content) => address(&content, ContentClass::ReadAtHome, header),
        };
        let to = to.ok_or(DropReason::NoNode)?;
        self.counters.forwarded += 1;
        self.out.push(to, |out| {
            let at = out.len();
            out.extend_from_slice(datagram);
            if let Some(header) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<HEADER_LEN>)
            {
                header.set_hop_flags(header.hop_flags() | hop_flag::MISSED);
                if let Asker::Client(client, _) = asker {
                    header.set_reply_addr(client.addr);
                    header.set_reply_port(client.port);
                }
            }
        });
        Ok(())
    }

    fn home_endpoint(&self, node: NodeId, partition: PartitionId) -> Option<Endpoint> {
        self.nodes.get(&node).map(|spec| spec.endpoint_of(partition))
    }

    /// A node says which keys it is asked for most: those that are worth it are wanted.
    fn handle_report(&mut self, now: Instant, node: NodeId, reports: &CacheReports<'_>) {
        for (fixed, key) in reports.iter() {
            let keyspace = KeyspaceId(fixed.keyspace);
            let (match_value, keyhash) = (fixed.match_value, fixed.keyhash);
            let name = Name { keyspace, match_value, keyhash, key };
            let home = Home { node, partition: PartitionId(fixed.partition), epoch: fixed.epoch };
            let (own, shards) = self.config.shard;
            if cache_shard_of(keyhash, shards) != own {
                // Its node has heard of another number of shards.
                continue;
            }
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.home = home;
            } else if self.makes_room(now, fixed.rate.into()) {
                self.slots.want(now, &name, home, fixed.rate.into());
                self.fetch_by(now);
            }
        }
        self.fetch(now);
    }

    /// Whether there is a place for a key that is read this often, if need be that of another.
    fn makes_room(&mut self, now: Instant, rate: u64) -> bool {
        if self.leaving || rate == 0 || !self.switches.are_followed(now) {
            return false;
        }
        let full = self.slots.len() >= self.limit.keys();
        if !full && self.slots.bytes() < self.config.bytes_max {
            return true;
        }
        let offered = (self.config.admission, rate);
        let Some(least) = whom_to_evict(&self.slots, &mut self.rng, offered) else { return false };
        self.evict(now, &least);
        true
    }

    /// Gives up a key: its tail need not wait for this cache any more, and the switch need not send
    /// reads of it here.
    fn evict(&mut self, now: Instant, key: &Key) {
        let Some(slot) = self.slots.remove(&key.name()) else { return };
        if slot.has_rule {
            self.switches.remove(now, Rule::of(&slot.key, self.tables.as_ref()));
        }
        if let State::Held { lender, loan, version, .. } = slot.state {
            self.answer(&lender, loan, &key.name(), version, false);
        }
    }

    /// Gives up the keys that are read least, if there are more than it can serve.
    fn end_interval(&mut self, now: Instant) {
        let Counters { hits, misses, .. } = self.counters;
        let (hits_before, misses_before) = std::mem::replace(&mut self.reads, (hits, misses));
        let reads = (hits - hits_before, misses - misses_before);
        let could_not = self.limit.end_interval(now, self.slots.len(), reads);
        self.crowding.end_interval(now, could_not, &self.slots);
        let excess = self.slots.len().saturating_sub(self.limit.keys());
        for key in self.slots.least_loaded(excess) {
            self.evict(now, &key);
        }
    }

    /// Gives up everything.
    fn give_all_back(&mut self, now: Instant) {
        let all: Vec<Key> = self.slots.iter().map(|slot| slot.key.clone()).collect();
        all.iter().for_each(|key| self.evict(now, key));
    }

    /// Asks tails for the keys that are wanted.
    fn fetch(&mut self, now: Instant) {
        if self.next_fetch.is_none_or(|at| at > now) {
            return;
        }
        for (key, home, nonce) in self.slots.ask_wanted(now, &mut self.nonce) {
            let Some(to) = self.home_endpoint(home.node, home.partition) else { continue };
            let mut header = self.header(Op::CacheFetch, &key.name());
            (header.partition, header.epoch) = (home.partition.0, home.epoch);
            header.seq = nonce;
            self.counters.fetches += 1;
            self.out.push(to, |out| {
                wire::emit(out, &header, &[&key.bytes]);
            });
        }
        self.next_fetch = self.slots.next_fetch(now);
    }

    /// Something is wanted from then on.
    pub(crate) fn fetch_by(&mut self, at: Instant) {
        self.next_fetch = Some(self.next_fetch.map_or(at, |known| known.min(at)));
    }

    /// Says to a lender whether a key is held under a loan of its.
    pub(crate) fn answer(
        &mut self,
        lender: &Lender,
        loan: LoanNumber,
        name: &Name<'_>,
        version: Version,
        held: bool,
    ) {
        let Some(to) = self.home_endpoint(lender.node, lender.partition) else { return };
        let mut header = self.header(Op::CacheAnswer, name);
        (header.partition, header.epoch) = (lender.partition.0, lender.epoch);
        CacheCopy { version }.put(&mut header);
        let fixed = CacheAnswerBody { lender: lender.incarnation, loan, held: held.into() };
        self.out.push(to, |out| {
            wire::emit(out, &header, &[&fixed.to_bytes(), name.key]);
        });
    }

    fn header(&self, op: Op, name: &Name<'_>) -> Header {
        Header {
            op: op as u8,
            node: self.config.id.0,
            client: self.config.incarnation.0,
            keyspace: name.keyspace.0,
            match_value: name.match_value,
            keyhash: name.keyhash,
            key_len: u16::try_from(name.key.len()).expect("keys are at most KEY_MAX long"),
            ..Header::default()
        }
    }

    /// The instant named by [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.segment_ends() {
            self.slots.end_segment(&self.config.metric, now.since(self.segment_began));
            self.segment_began = now;
        }
        if now >= self.limit.due() {
            self.end_interval(now);
        }
        if !self.switches.are_followed(now) && self.slots.len() > 0 {
            self.give_all_back(now);
        }
        let lapsed = self.volumes.forget_lapsed(now);
        if !lapsed.is_empty() {
            self.slots.give_up(now, |slot| lapsed.iter().any(|lender| slot.is_of(lender)));
            self.fetch_by(now);
        }
        for (lender, nonce) in self.volumes.ask_on(now, &mut self.nonce) {
            self.renew(&lender, nonce);
        }
        self.fetch(now);
        self.tell_rules(now);
    }

    fn segment_ends(&self) -> Instant {
        self.segment_began + self.config.metric.segment
    }

    fn renew(&mut self, lender: &Lender, nonce: u64) {
        let Some(to) = self.home_endpoint(lender.node, lender.partition) else { return };
        if self.leaving {
            return;
        }
        let header = Header {
            op: Op::CacheRenew as u8,
            node: self.config.id.0,
            client: self.config.incarnation.0,
            partition: lender.partition.0,
            epoch: lender.epoch,
            seq: nonce,
            ..Header::default()
        };
        let fixed = CacheRenewBody { lender: lender.incarnation }.to_bytes();
        self.out.push(to, |out| {
            wire::emit(out, &header, &[&fixed]);
        });
    }

    fn tell_rules(&mut self, now: Instant) {
        while let Some((to, stream, first, changes)) = self.switches.poll(now) {
            let header = Header {
                op: Op::CacheRules as u8,
                node: self.config.id.0,
                client: stream,
                seq: first,
                ..Header::default()
            };
            let mut payload = Vec::new();
            changes.iter().for_each(|change| CacheRules::push(&mut payload, change));
            self.out.push(to, |out| {
                wire::emit(out, &header, &[&payload]);
            });
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if no packet comes first.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.tables.as_ref()?;
        let known = [self.volumes.due(), self.next_fetch, self.switches.due()];
        let known = known.into_iter().flatten();
        known.chain([self.segment_ends(), self.limit.due()]).min()
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.out.pop()
    }

    /// It is to end: switches send it nothing more, and it borrows nothing more.
    pub fn leave(&mut self, now: Instant) {
        if std::mem::replace(&mut self.leaving, true) {
            return;
        }
        self.give_all_back(now);
        self.switches.remove_all(now);
    }

    /// Breaks a rule on purpose, for the simulator to notice.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
    }
}

/// The rules of all keys that have one.
fn rules_of(slots: &Slots, tables: &CacheTables) -> impl Iterator<Item = Rule> + Clone {
    let ruled = slots.iter().filter(|slot| slot.has_rule);
    ruled.map(|slot| Rule::of(&slot.key, Some(tables)))
}
