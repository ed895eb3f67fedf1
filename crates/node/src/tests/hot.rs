//! Scripts of hot keys: registrations, copies at readers, publishes, answers that are held back.

mod publishes;
mod registrations;

use super::*;
use cluster::{HotEntry, HotOrder, Mutant};
use wire::{
    Generation, HotAnswer, HotGet, HotMget, MgetKey, RangeInterval, Revision, Version, hop_flag,
};

pub(super) const HOT: &[u8] = b"hot";
/// The generation of the hot key, and the revision of the order that took it in.
const GENERATION: u64 = 10;
/// With a chain of three: the member that answers reads, and the two that hold copies.
const TAIL: usize = 2;
const READER: usize = 1;

/// An order by which every node is to hold a copy of these keys, in these stays.
fn order(map: &Map, revision: u64, keys: &[(&[u8], u64)]) -> HotOrder {
    let incarnations = map.nodes.iter().map(|node| Some((node.id, Incarnation(node.id.0.into()))));
    let readers = u16::try_from(map.nodes.len()).unwrap();
    let entry = |(key, generation): &(&[u8], u64)| HotEntry {
        keyspace: KS,
        key: key.to_vec(),
        keyhash: map.keyspaces[0].keyhash(key),
        match_value: map.keyspaces[0].match_value(key),
        generation: Generation::new(*generation),
        first: 0,
        readers,
        delegation: None,
    };
    let mut keys: Vec<HotEntry> = keys.iter().map(entry).collect();
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    let order = HotOrder {
        cluster: cluster::ClusterId(1),
        revision: Revision::new(revision),
        switch: Incarnation(99),
        places: incarnations.collect(),
        keys,
        ..HotOrder::default()
    };
    order.check().unwrap();
    order
}

impl Chain {
    /// A chain of three with a hot key, all of whose readers hold it.
    fn hot() -> Self {
        Self::hot_of(3)
    }

    /// The same with so many members.
    pub(super) fn hot_of(members: u16) -> Self {
        let mut chain = Self::new(members);
        chain.put(HOT, b"1");
        chain.settle();
        chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
        chain.run();
        chain.replies.clear();
        chain
    }

    pub(super) fn order_hot(&mut self, revision: u64, keys: &[(&[u8], u64)]) {
        let order = Arc::new(order(&self.map, revision, keys));
        let now = self.now;
        for index in 0..self.nodes.len() {
            self.nodes[index].install_hot(now, Arc::clone(&order));
            self.drain(index);
        }
    }

    pub(super) fn mutant(&mut self, mutant: Mutant) {
        for node in &mut self.nodes {
            node.mutant(mutant);
        }
    }

    /// What a node answers at once to a request that came through the switch.
    fn ask(&mut self, to: usize, header: &Header, parts: &[&[u8]]) -> Reply {
        self.tell(to, header, parts);
        self.only_reply()
    }

    /// Asks a node what it may not answer at once.
    fn tell(&mut self, to: usize, header: &Header, parts: &[&[u8]]) {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, header, parts);
        self.deliver(to, port(SWITCH), &datagram);
    }

    /// A GET as the switch grants it for a hot key.
    fn get_hot(&mut self, to: usize, floor: u64, generation: u64) -> Reply {
        let seq = self.next();
        let mut header = self.stamped(Op::Get, HOT, seq);
        header.set_chain([u16::try_from(to).unwrap()]);
        let generation = Generation::new(generation);
        HotGet { floor: Version::new(floor), generation }.put(&mut header);
        self.ask(to, &header, &[HOT])
    }

    /// Whether the tail vouches for its answer in this generation.
    fn vouches(&mut self, generation: u64) -> bool {
        let tail = self.map.partitions[0].tail().unwrap();
        let reply = self.get_hot(tail.0.into(), 0, generation);
        assert_eq!(
            HotAnswer::of(&reply.header).generation,
            Generation::new(generation),
            "it is told which stay this is about"
        );
        reply.header.hop_flags & hop_flag::NEWEST != 0
    }

    /// Code and version of one key of an MGET; with a floor as it is stamped for a reader.
    pub(super) fn mget(&mut self, to: usize, floor: Option<u64>) -> (Code, u64) {
        self.ask_mget(to, floor);
        self.answered()
    }

    /// What the only reply, one to an MGET of one key, says of that.
    fn answered(&mut self) -> (Code, u64) {
        let reply = self.only_reply();
        let (entry, _) = wire::MgetEntryBody::split(&reply.payload).unwrap();
        (Code::from_wire(entry.code).unwrap(), entry.version.get())
    }

    fn ask_mget(&mut self, to: usize, floor: Option<u64>) {
        let seq = self.next();
        let keyspace = &self.map.keyspaces[0];
        let match_value = floor.map_or(keyspace.match_value(HOT).0, u128::from);
        let key = MgetKey { match_value, keyhash: keyspace.keyhash(HOT), key: HOT };
        let mut header = Header {
            op: Op::Mget as u8,
            bitmap: 1,
            keyspace: KS.0,
            reply_addr: [9; 16],
            reply_port: 9,
            client: CLIENT,
            seq,
            ..Header::default()
        };
        header.set_chain([u16::try_from(to).unwrap()]);
        HotMget { hot: u32::from(floor.is_some()) }.put(&mut header);
        let mut datagram = Vec::new();
        wire::emit_mget(&mut datagram, &header, std::iter::once(key));
        self.deliver(to, port(SWITCH), &datagram);
    }

    /// The publishes that are on the way.
    pub(super) fn publishes(&self) -> Vec<Header> {
        let packets = self.wires.iter().map(|(_, _, bytes)| Packet::parse(bytes).unwrap());
        let publishes = packets.filter(|packet| packet.op() == Op::HotPublish);
        publishes.map(|packet| Header::read(packet.header())).collect()
    }

    /// A RANGE from `start` on, of at most so many entries.
    fn range(&mut self, start: &[u8], limit: u32, flags: u8) -> Reply {
        self.ask_range(start, limit, flags);
        self.only_reply()
    }

    fn ask_range(&mut self, start: &[u8], limit: u32, flags: u8) {
        let seq = self.next();
        let mut header = Header { flags, ..self.stamped(Op::Range, start, seq) };
        RangeInterval { first: 0, last: u128::MAX }.put(&mut header);
        self.tell(TAIL, &header, &[&RangeBody { limit }.to_bytes(), start]);
    }

    fn registrations(&self) -> Vec<usize> {
        self.nodes.iter().map(Node::hot_keys).collect()
    }

    /// Delivers what is on the way; what is of this kind stays there.
    pub(super) fn settle_but(&mut self, kept: Op) {
        let is_other = |(_, _, bytes): &(Endpoint, Endpoint, Vec<u8>)| {
            Packet::parse(bytes).unwrap().op() != kept
        };
        while let Some(at) = self.wires.iter().position(is_other) {
            self.deliver_wire(at);
        }
    }

    /// Delivers what is on the way, but nothing of this kind: that is lost.
    pub(super) fn settle_without(&mut self, lost: Op) {
        while let Some((_, _, bytes)) = self.wires.front() {
            if Packet::parse(bytes).unwrap().op() == lost {
                self.wires.pop_front();
            } else {
                self.deliver_wire(0);
            }
        }
    }
}

#[test]
fn a_reader_answers_from_its_copy_no_older_than_the_switch_asks_for() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    chain.settle();
    let version = chain.only_reply().version;
    for reader in [0, READER] {
        let reply = chain.get_hot(reader, version, GENERATION);
        assert_eq!((reply.code, reply.version), (Code::Ok, version));
        assert_eq!(reply.payload[wire::GetReplyBody::LEN..], *b"2");
        assert_eq!(reply.header.hop_flags & hop_flag::NEWEST, 0, "it vouches for nothing");
        let reply = chain.get_hot(reader, version + 1, GENERATION);
        assert_eq!(
            (reply.code, HotAnswer::of(&reply.header).generation),
            (Code::NotHere, Generation::new(GENERATION))
        );
    }
    assert_eq!(chain.nodes[READER].counters().hot_reads, 1);
    assert_eq!(chain.nodes[TAIL].hot_copies(), 0, "the tail has the key itself");
    chain.mutant(Mutant::AnswerBelowFloor);
    assert_eq!(chain.get_hot(READER, version + 1, GENERATION).code, Code::Ok);
}

#[test]
fn a_reader_knows_of_a_delete_and_leaves_an_expired_value_to_the_tail() {
    let mut chain = Chain::hot();
    chain.del(HOT);
    chain.settle();
    let version = chain.only_reply().version;
    let reply = chain.get_hot(READER, version, GENERATION);
    assert_eq!((reply.code, reply.version), (Code::NotFound, version));
    let (seq, expiry_ms) = (chain.next(), chain.now.unix_ms() + 50);
    chain.put_again(seq, HOT, b"3", expiry_ms);
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(chain.get_hot(READER, version, GENERATION).code, Code::Ok);
    chain.now = chain.now + 50 * MS;
    assert_eq!(chain.get_hot(READER, version, GENERATION).code, Code::NotHere);
    assert_eq!(chain.get_hot(TAIL, version, GENERATION).code, Code::Expiring);
    chain.settle();
    let reply = chain.get_hot(READER, version + 1, GENERATION);
    assert_eq!((reply.code, reply.version), (Code::NotFound, version + 1));
}

#[test]
fn a_write_is_answered_when_all_readers_have_it_or_after_a_while() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    chain.settle_without(Op::HotCopy);
    assert!(chain.replies.is_empty());
    chain.pass(25 * MS); // The copies are sent again; the deadline has come as well.
    assert_eq!(chain.only_reply().code, Code::Ok);
    chain.settle();
    chain.put(HOT, b"3");
    chain.settle_without(Op::HotCopied);
    assert!(chain.replies.is_empty());
    chain.pass(MS / 2);
    assert!(chain.replies.is_empty());
    let due = chain.nodes[TAIL].poll_timeout().unwrap();
    assert!(due <= chain.now + 20 * MS);
    chain.put(b"cold", b"1");
    chain.settle_without(Op::HotCopied);
    assert_eq!(chain.only_reply().code, Code::Ok, "others do not wait");
    chain.pass(20 * MS);
    assert_eq!(chain.only_reply().code, Code::Ok);
}

#[test]
fn a_reader_that_is_down_is_given_up_until_the_next_version() {
    let mut chain = Chain::hot();
    let sent = |chain: &Chain| chain.nodes[TAIL].counters().hot_copies_sent;
    let before = sent(&chain);
    chain.put(HOT, b"2");
    for _ in 0..100 {
        chain.settle_without(Op::HotCopy);
        chain.pass(100 * MS);
    }
    assert_eq!(sent(&chain) - before, 2 * 6);
    chain.put(HOT, b"3");
    chain.settle();
    assert_eq!(sent(&chain) - before, 2 * 7);
    let version = chain.replies.last().unwrap().version;
    chain.replies.clear();
    assert_eq!(chain.get_hot(READER, version, GENERATION).code, Code::Ok);
}

/// The switch may have heard what readers say in another order, and then asks none of them.
#[test]
fn a_key_that_is_still_read_at_home_is_copied_again() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    chain.settle();
    chain.replies.clear();
    let sent = |chain: &Chain| chain.nodes[TAIL].counters().hot_copies_sent;
    let read = |chain: &mut Chain| {
        let before = sent(chain);
        assert_eq!(chain.get_hot(TAIL, u64::MAX, GENERATION).code, Code::Ok);
        chain.pass(MS);
        chain.settle();
        sent(chain) - before
    };
    assert_eq!(read(&mut chain), 0, "the switch has hardly heard of the copies");
    let before = sent(&chain);
    chain.pass(1_000 * MS);
    assert_eq!(sent(&chain), before, "nobody reads it");
    chain.mutant(Mutant::NeverRemind);
    assert_eq!(read(&mut chain), 0);
    let mut chain = Chain::hot();
    chain.pass(1_000 * MS);
    assert_eq!((read(&mut chain), read(&mut chain)), (2, 0));
    chain.pass(1_000 * MS);
    let before = sent(&chain);
    chain.ask_mget(TAIL, None);
    chain.settle_without(Op::HotCopied);
    chain.pass(MS);
    chain.settle_without(Op::HotCopied);
    assert_eq!(chain.answered().0, Code::Ok);
    assert_eq!(sent(&chain) - before, 2);
    chain.pass(100 * MS);
    assert!(sent(&chain) - before > 2, "and again, until they say that they hold it");
}

#[test]
fn a_key_that_is_written_faster_than_copies_travel_is_copied_once_in_so_long() {
    let mut chain = Chain::hot();
    let sent = |chain: &Chain| chain.nodes[TAIL].counters().hot_copies_sent;
    for _ in 0..20 {
        chain.put(HOT, b"2");
        chain.settle_but(Op::HotCopied);
        chain.now = chain.now + 2 * MS; // The answers take as long.
        chain.settle();
    }
    let before = sent(&chain);
    chain.replies.clear();
    for _ in 0..10 {
        chain.put(HOT, b"3");
    }
    chain.settle_but(Op::HotCopied);
    assert_eq!(sent(&chain) - before, 2, "of the first");
    chain.settle();
    assert_eq!(sent(&chain) - before, 4, "and of the last");
    let newest = chain.replies.iter().map(|reply| reply.version).max().unwrap();
    assert_eq!(chain.replies.len(), 10);
    chain.replies.clear();
    assert_eq!(chain.get_hot(READER, newest, GENERATION).code, Code::Ok);
}

#[test]
fn a_new_tail_sends_what_it_has_and_publishes_anew() {
    let mut chain = Chain::hot();
    chain.ask_mget(TAIL, None);
    chain.settle();
    assert_eq!(chain.answered().0, Code::Ok);
    chain.reconfigure(&[0, 1, 2], false, &[2, 0, 1], false);
    assert!(chain.vouches(GENERATION));
    chain.ask_mget(1, None);
    assert!(chain.replies.is_empty());
    chain.settle();
    assert_eq!(chain.answered().0, Code::Ok);
    chain.put(HOT, b"2");
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(
        chain.get_hot(2, version, GENERATION).code,
        Code::Ok,
        "the old tail reads from a copy"
    );
}

#[test]
fn a_tail_that_loses_its_role_drops_what_it_holds_back_and_the_head_answers() {
    let mut chain = Chain::hot();
    chain.lag = 100;
    let seq = chain.put(HOT, b"2");
    chain.settle_without(Op::HotCopy);
    assert!(chain.replies.is_empty());
    chain.change(&[0, 1, 2], false, false);
    chain.install();
    chain.change(&[2, 0, 1], false, true);
    chain.install();
    chain.wires.clear();
    chain.pass(100 * MS);
    chain.settle();
    assert!(chain.replies.is_empty());
    chain.put_again(seq, HOT, b"2", 0);
    assert_eq!(chain.only_reply().code, Code::Ok);
}

#[test]
fn a_changed_order_has_the_copies_announced_anew() {
    let mut chain = Chain::hot();
    let sent = |chain: &Chain| chain.nodes[TAIL].counters().hot_copies_sent;
    let before = sent(&chain);
    chain.order_hot(GENERATION + 1, &[(HOT, GENERATION)]);
    chain.run();
    assert_eq!(sent(&chain), before, "nothing has changed for this key");
    let mut other = order(&chain.map, GENERATION + 2, &[(HOT, GENERATION)]);
    other.places[READER] = Some((NodeId(1), Incarnation(77)));
    let now = chain.now;
    chain.nodes[TAIL].install_hot(now, Arc::new(other.clone()));
    chain.drain(TAIL);
    chain.run();
    assert_eq!(sent(&chain), before + 1, "one reader was started anew");
    (other.revision, other.switch) = (Revision::new(GENERATION + 3), Incarnation(98));
    let now = chain.now;
    chain.nodes[TAIL].install_hot(now, Arc::new(other));
    chain.drain(TAIL);
    chain.run();
    assert_eq!(sent(&chain), before + 3, "the switch was started anew");
}
