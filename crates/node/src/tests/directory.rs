//! Random worlds of one hot key: a directory of a switch, as the protocol has it, between clients
//! and a chain; everything may be lost, doubled or late. No answer may be older than what anybody
//! was told before it was asked for.

use super::*;
use cluster::{HotEntry, HotOrder, Mutant, NodeReport, Settled};
use machine::Rng;
use std::collections::{BTreeMap, BTreeSet};
use wire::{
    Effect, Generation, HotAnswer, HotCopied, HotGet, HotMget, MgetEntryBody, MgetKey, Revision,
    Version, hop_flag,
};

const HOT: &[u8] = b"hot";
const STEPS: u32 = 4_000;

/// The directory's entry for the key.
#[derive(Default)]
struct Entry {
    generation: u64,
    floor: u64,
    proven: bool,
    /// What each reader last said to hold.
    holders: BTreeMap<u16, u64>,
}

struct World {
    chain: Chain,
    rng: Rng,
    entry: Option<Entry>,
    /// The partition as the switch knows it: it may be late.
    view: Partition,
    revision: u64,
    /// What the order of hot keys last told the nodes of the key.
    ordered: bool,
    /// Replies on their way to the switch, and from there to the client.
    to_switch: Vec<Reply>,
    to_client: Vec<Reply>,
    /// The newest version that the client was told of.
    told: u64,
    /// The same when each request was sent.
    asked: BTreeMap<u64, u64>,
    /// What writes that changed nothing were computed from.
    bases: BTreeMap<u64, u64>,
    /// The writes that were asked for last.
    writes: Vec<Header>,
    /// Stamps the floor also where it is not proven.
    careless: bool,
    stale: u32,
    spread: u32,
}

impl World {
    fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut chain = Chain::new(3);
        for node in &mut chain.nodes {
            mutant.into_iter().for_each(|mutant| node.mutant(mutant));
        }
        Self {
            view: chain.map.partitions[0].clone(),
            chain,
            rng: Rng::new(seed),
            entry: None,
            revision: 10,
            ordered: false,
            to_switch: Vec::new(),
            to_client: Vec::new(),
            told: 0,
            asked: BTreeMap::new(),
            bases: BTreeMap::new(),
            writes: Vec::new(),
            careless: false,
            stale: 0,
            spread: 0,
        }
    }

    fn live(mut self) -> Self {
        for _ in 0..STEPS {
            let open = self.chain.map.partitions[0].open;
            match self.rng.below(400) {
                0 => self.order_hot(),
                1..4 => self.change_chain(),
                4..20 if !open => self.change_chain(),
                20..25 => self.view = self.chain.map.partitions[0].clone(),
                25..40 => {
                    let ms = self.rng.below(20);
                    self.chain.pass(Duration::from_millis(ms));
                }
                40..45 => self.write(),
                45..75 => self.get(),
                75..95 => self.mget(),
                95..300 => self.deliver(),
                300..350 => self.pass_switch(),
                _ => self.pass_client(),
            }
            self.to_switch.append(&mut self.chain.replies);
        }
        self
    }

    fn pick(&mut self, among: usize) -> usize {
        usize::try_from(self.rng.below(among as u64)).unwrap()
    }

    /// Takes the key in or drops it: first at the switch, later at the nodes.
    fn order_hot(&mut self) {
        if self.ordered == self.entry.is_some() {
            self.revision += 1;
            let entry = Entry { generation: self.revision, ..Entry::default() };
            self.entry = self.entry.is_none().then_some(entry);
            return;
        }
        self.ordered = self.entry.is_some();
        let map = &self.chain.map;
        let entry = |entry: &Entry| HotEntry {
            keyspace: KS,
            key: HOT.to_vec(),
            keyhash: map.keyspaces[0].keyhash(HOT),
            match_value: map.keyspaces[0].match_value(HOT),
            generation: Generation::new(entry.generation),
            first: 0,
            readers: 3,
            delegation: None,
        };
        let order = Arc::new(HotOrder {
            cluster: cluster::ClusterId(1),
            revision: Revision::new(self.revision),
            switch: Incarnation(1),
            places: map.nodes.iter().map(|n| Some((n.id, Incarnation(n.id.0.into())))).collect(),
            keys: self.entry.iter().map(entry).collect(),
            ..HotOrder::default()
        });
        let now = self.chain.now;
        for index in 0..3 {
            self.chain.nodes[index].install_hot(now, Arc::clone(&order));
            self.chain.drain(index);
        }
    }

    /// Closes the chain, or opens it once all have settled: with the roles moved, without one of
    /// its members, or with that one as a learner.
    fn change_chain(&mut self) {
        let before = self.chain.map.partitions[0].clone();
        let nodes = before.chain.iter().map(|id| &self.chain.nodes[usize::from(id.0)]);
        let reports: Vec<_> = nodes.map(|node| node.report(self.chain.now)).collect();
        let here = [(before.id, before.epoch)];
        let whole = !before.has_learner || reports.iter().any(|report| report.caught_up == here);
        let places = |report: &NodeReport| report.settled.iter().map(Settled::place).eq(here);
        let settled = reports.iter().all(places);
        if before.open && !whole || !before.open && !settled {
            return;
        }
        if !before.open {
            let members = before.members().len() + usize::from(before.has_learner && whole);
            let held = |report: &NodeReport| {
                let Settled { newest, history, digest, writes, .. } = report.settled[0];
                (newest, history, digest, writes)
            };
            let held: BTreeSet<_> = reports.iter().take(members).map(held).collect();
            assert_eq!(held.len(), 1, "members that have settled hold the same: {held:?}");
        }
        let mut members = before.chain.clone();
        let mut joining = before.has_learner;
        if !before.open {
            let by = self.pick(members.len());
            members.rotate_left(by);
            joining = members.len() == 2;
            if joining {
                members.extend((0..3).map(NodeId).find(|id| !before.chain.contains(id)));
            } else if !before.has_learner && self.rng.chance(1, 2) {
                members.pop();
            }
        }
        let members: Vec<u16> = members.iter().map(|id| id.0).collect();
        self.chain.change(&members, joining, !before.open);
        self.chain.install();
    }

    /// A request as the switch grants it.
    fn stamped(&mut self, op: Op) -> Header {
        let seq = self.chain.next();
        self.asked.insert(seq, self.told);
        let mut header = Header { lag: u16::MAX, ..self.chain.stamped(op, HOT, seq) };
        header.epoch = self.view.epoch.0;
        let chain = self.view.chain.iter().map(|id| id.0);
        if op.is_write() {
            header.set_chain(chain);
        } else {
            header.set_chain(self.view.tail().map(|id| id.0));
        }
        header
    }

    fn send(&mut self, to: u16, datagram: Vec<u8>) {
        self.chain.wires.push_back((port(SWITCH), port(100 + to), datagram));
    }

    /// A PUT, or two deletes of which the second finds nothing; or the last ones again.
    fn write(&mut self) {
        let ops: &[Op] = match self.rng.below(4) {
            0 | 1 => &[Op::Del, Op::Del],
            2 => &[Op::Put],
            _ => {
                let again = self.writes.clone();
                again.into_iter().for_each(|header| self.send_write(header));
                return;
            }
        };
        self.writes.clear();
        for op in ops {
            let header = self.stamped(*op);
            self.writes.push(header);
            self.send_write(header);
        }
    }

    fn send_write(&mut self, mut header: Header) {
        let head = self.view.chain[0].0;
        header.epoch = self.view.epoch.0;
        header.set_chain(self.view.chain.iter().map(|id| id.0));
        let delete = header.op == Op::Del as u8;
        let body = PutBody::default().to_bytes();
        let parts: &[&[u8]] = if delete { &[HOT] } else { &[&body, HOT, b"value"] };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, parts);
        self.send(head, datagram);
    }

    /// A node that the directory takes to hold the newest version; and that version.
    fn reader(&mut self) -> Option<(u16, u64)> {
        let entry = self.entry.as_ref().filter(|entry| entry.proven)?;
        let full = entry.holders.iter().filter(|(_, version)| **version == entry.floor);
        let full: Vec<u16> = full.map(|(node, _)| *node).collect();
        let floor = entry.floor;
        if full.is_empty() {
            return None;
        }
        self.spread += 1;
        let at = self.pick(full.len());
        Some((full[at], floor))
    }

    fn get(&mut self) {
        let mut header = self.stamped(Op::Get);
        let tail = self.view.tail().unwrap().0;
        let reader = self.reader();
        if let Some(entry) = &self.entry {
            let unproven = if self.careless { entry.floor } else { u64::MAX };
            let floor = Version::new(reader.map_or(unproven, |(_, floor)| floor));
            header.set_chain([reader.map_or(tail, |(node, _)| node)]);
            HotGet { floor, generation: Generation::new(entry.generation) }.put(&mut header);
        }
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[HOT]);
        self.send(reader.map_or(tail, |(node, _)| node), datagram);
    }

    fn mget(&mut self) {
        let header = self.stamped(Op::Get);
        let tail = self.view.tail().unwrap().0;
        let reader = self.reader();
        let match_value = reader.map_or(header.match_value, |(_, floor)| floor.into());
        let key = MgetKey { match_value, keyhash: header.keyhash, key: HOT };
        let mut header = Header { op: Op::Mget as u8, bitmap: 1, key_len: 0, ..header };
        header.set_chain([reader.map_or(tail, |(node, _)| node)]);
        HotMget { hot: u32::from(reader.is_some()) }.put(&mut header);
        let mut datagram = Vec::new();
        wire::emit_mget(&mut datagram, &header, std::iter::once(key));
        self.send(reader.map_or(tail, |(node, _)| node), datagram);
    }

    /// Something on its way to a node arrives, or is lost, or arrives and will again.
    fn deliver(&mut self) {
        if self.chain.wires.is_empty() {
            return;
        }
        // Mostly in order: else nothing would be committed.
        let far = self.chain.wires.len().min(if self.rng.chance(1, 8) { 50 } else { 1 });
        let at = self.pick(far);
        match self.rng.below(30) {
            0 => {
                self.chain.wires.remove(at);
                return;
            }
            1 => {
                let again = self.chain.wires[at].clone();
                self.chain.wires.push_back(again);
            }
            _ => {}
        }
        let packet = Packet::parse(&self.chain.wires[at].2).unwrap();
        let header = Header::read(packet.header());
        if let Body::ChainWrite { fixed, .. } = packet.body().unwrap()
            && fixed.effect == Effect::None as u8
        {
            self.bases.insert(header.seq, fixed.base.get());
        }
        if let Some(entry) = &mut self.entry {
            match Op::from_wire(header.op).unwrap() {
                Op::HotCopied => {
                    let _ = entry.holders.insert(header.node, HotCopied::of(&header).held.get());
                }
                Op::HotPublish => {
                    entry.floor = entry.floor.max(HotAnswer::of(&header).version.get());
                }
                _ => {}
            }
        }
        self.chain.deliver_wire(at);
    }

    fn pass_switch(&mut self) {
        if self.to_switch.is_empty() {
            return;
        }
        let at = self.pick(self.to_switch.len());
        let reply = self.to_switch.swap_remove(at);
        let flags = reply.header.hop_flags;
        if let Some(entry) = self.entry.as_mut().filter(|_| reply.op != Op::MgetReply) {
            let of_generation = flags & hop_flag::HOT != 0
                && HotAnswer::of(&reply.header).generation == Generation::new(entry.generation);
            if reply.code.is_decided() {
                entry.floor = entry.floor.max(reply.version);
                entry.proven |= of_generation && flags & hop_flag::NEWEST != 0;
            } else if reply.code == Code::NotHere && of_generation {
                entry.holders.remove(&reply.header.node);
            }
        }
        self.to_client.push(reply);
    }

    fn pass_client(&mut self) {
        if self.to_client.is_empty() {
            return;
        }
        let at = self.pick(self.to_client.len());
        let reply = self.to_client.swap_remove(at);
        let (code, version) = if reply.op == Op::MgetReply {
            let (entry, _) = MgetEntryBody::split(&reply.payload).unwrap();
            (Code::from_wire(entry.code).unwrap(), entry.version)
        } else {
            (reply.code, Version::new(reply.version))
        };
        if !code.is_decided() {
            return;
        }
        let (seq, before) = (reply.header.seq, self.asked[&reply.header.seq]);
        // A delete that found nothing tells of the one before it.
        let found = self.bases.get(&seq).copied().filter(|_| reply.op == Op::DelReply);
        let changed = matches!(reply.op, Op::PutReply | Op::DelReply) && found.is_none();
        let version = found.unwrap_or(version.get());
        let stale = if changed { version <= before } else { version < before };
        self.stale += u32::from(stale);
        self.told = self.told.max(version);
    }
}

#[test]
fn no_answer_is_older_than_what_was_told_before_it_was_asked_for() {
    let (mut spread, mut told) = (0, 0);
    for seed in 0..400 {
        let world = World::new(seed, None).live();
        assert_eq!(world.stale, 0, "seed {seed}");
        (spread, told) = (spread + world.spread, told + world.told);
    }
    assert!(spread > 3_000 && told > 1_000, "{spread} reads from copies, {told} versions");
}

#[test]
fn each_rule_that_is_broken_shows() {
    for mutant in [Mutant::AnswerBelowFloor, Mutant::ShowUnpublished, Mutant::DropRegistrations] {
        let found = (0..600).any(|seed| World::new(seed, Some(mutant)).live().stale > 0);
        assert!(found, "{mutant:?}");
    }
    let careless = |seed: &u64| {
        let world = World { careless: true, ..World::new(*seed, None) };
        world.live().stale > 0
    };
    assert!((0..300).any(|seed| careless(&seed)), "a floor that is not proven");
}
