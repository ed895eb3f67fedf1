//! Scripts of hot keys: marks, copies at readers, covers, answers that are held back.

use super::vacating::Noted;
use super::*;
use cluster::{HotEntry, HotOrder, Plant};
use wire::{MgetKey, hop_flag};

pub(super) const HOT: &[u8] = b"hot";
/// The stay of the hot key, and the revision of the order that took it in.
const STAY: u64 = 10;
/// With a chain of three: the member that answers reads, and the two that hold copies.
const TAIL: usize = 2;
const READER: usize = 1;

/// An order by which every node is to hold a copy of these keys, in these stays.
fn order(map: &Map, revision: u64, keys: &[(&[u8], u64)]) -> HotOrder {
    let lives = map.nodes.iter().map(|node| Some((node.id, Life(node.id.0.into()))));
    let readers = u16::try_from(map.nodes.len()).unwrap();
    let entry = |(key, stay): &(&[u8], u64)| HotEntry {
        keyspace: KS,
        key: key.to_vec(),
        keyhash: map.keyspaces[0].keyhash(key),
        stay: *stay,
        first: 0,
        readers,
        trip: None,
    };
    let mut keys: Vec<HotEntry> = keys.iter().map(entry).collect();
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    let order = HotOrder {
        revision,
        switch: Life(99),
        places: lives.collect(),
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
        chain.order_hot(STAY, &[(HOT, STAY)]);
        chain.run();
        chain.replies.clear();
        chain
    }

    fn order_hot(&mut self, revision: u64, keys: &[(&[u8], u64)]) {
        let order = Arc::new(order(&self.map, revision, keys));
        let now = self.now;
        for index in 0..self.nodes.len() {
            self.nodes[index].install_hot(now, Arc::clone(&order));
            self.drain(index);
        }
    }

    fn plant(&mut self, plant: Plant) {
        for node in &mut self.nodes {
            node.plant(plant);
        }
    }

    /// What a node answers at once to a request that came through the switch.
    fn ask(&mut self, to: usize, header: &Header, parts: &[&[u8]]) -> Reply {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, header, parts);
        self.deliver(to, port(SWITCH), &datagram);
        self.only_reply()
    }

    /// A GET as the switch stamps it for a hot key.
    fn get_hot(&mut self, to: usize, floor: u64, stay: u64) -> Reply {
        let seq = self.next();
        let mut header = self.stamped(Op::Get, HOT, seq);
        header.hop_flags = hop_flag::HOT;
        header.object_version = floor;
        header.set_chain([u16::try_from(to).unwrap()]);
        header.set_stay(stay);
        self.ask(to, &header, &[HOT])
    }

    /// Whether the tail vouches for its answer in this stay.
    fn vouches(&mut self, stay: u64) -> bool {
        let tail = self.map.partitions[0].tail().unwrap();
        let reply = self.get_hot(tail.0.into(), 0, stay);
        assert_eq!(reply.header.stay(), stay, "it is told which stay this is about");
        reply.header.hop_flags & hop_flag::NEWEST != 0
    }

    /// Code and version of one key of an MGET; with a floor as it is stamped for a reader.
    fn mget(&mut self, to: usize, floor: Option<u64>) -> (Code, u64) {
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
        header.set_hot_bitmap(u32::from(floor.is_some()));
        let mut datagram = Vec::new();
        wire::emit_mget(&mut datagram, &header, std::iter::once(key));
        self.deliver(to, port(SWITCH), &datagram);
        let reply = self.only_reply();
        let (entry, _) = wire::MgetEntryBody::split(&reply.payload).unwrap();
        (Code::from_wire(entry.code).unwrap(), entry.version)
    }

    /// A RANGE from `start` on, of at most so many entries.
    fn range(&mut self, start: &[u8], limit: u32, flags: u8) -> Reply {
        let seq = self.next();
        let mut header = Header { flags, ..self.stamped(Op::Range, start, seq) };
        header.match_value = 0;
        header.set_match_end(u128::MAX);
        self.ask(TAIL, &header, &[&RangeBody { limit }.to_bytes(), start])
    }

    fn marks(&self) -> Vec<usize> {
        self.nodes.iter().map(Node::hot_keys).collect()
    }

    /// Delivers what is on the way; what is of this kind stays there.
    fn settle_but(&mut self, kept: Op) {
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
fn only_the_tail_of_a_key_that_is_marked_vouches_for_its_newest_version() {
    let mut chain = Chain::new(3);
    assert!(!chain.vouches(STAY));
    chain.order_hot(STAY, &[(HOT, STAY)]);
    assert!(!chain.vouches(STAY), "the mark is not committed yet");
    chain.settle();
    assert_eq!(chain.marks(), [1, 1, 1]);
    assert!(chain.vouches(STAY));
    assert!(!chain.vouches(STAY + 1), "it is marked with another stay");
    assert_eq!(chain.get(HOT), None, "a mark is no state");
    assert_eq!(chain.nodes[0].report().hot_revision, STAY);
}

#[test]
fn a_planted_tail_vouches_for_a_key_that_is_not_marked() {
    let mut chain = Chain::new(3);
    chain.plant(Plant::ProveUnmarked);
    assert!(chain.vouches(STAY));
}

#[test]
fn a_key_that_is_not_ordered_any_more_is_unmarked_and_an_older_order_changes_nothing() {
    let mut chain = Chain::hot();
    chain.order_hot(11, &[(b"other", 11)]);
    chain.run();
    assert_eq!(chain.marks(), [1, 1, 1]);
    assert!(!chain.vouches(STAY));
    chain.order_hot(STAY, &[(HOT, STAY)]);
    chain.run();
    assert!(!chain.vouches(STAY));
    chain.order_hot(12, &[(b"other", 11), (HOT, 12)]);
    chain.run();
    assert_eq!(chain.marks(), [2, 2, 2]);
    assert!(chain.vouches(12));
}

#[test]
fn a_head_that_was_sent_a_late_order_leaves_the_marks_of_a_newer_one() {
    let mut chain = Chain::hot();
    // As after a restart: the new head knows of no order.
    chain.reconfigure(&[1, 2], false, &[1, 2], false);
    let now = chain.now;
    let mut node = Node::new(
        NodeConfig { shard: 0, shards: 1, life: Life(1), rate: 0 },
        std::mem::replace(
            &mut chain.nodes[1],
            Node::new(
                NodeConfig { shard: 0, shards: 1, life: Life(1), rate: 0 },
                MemoryEngine::new(StoreId(1)),
                now,
            ),
        )
        .into_engine(),
        now,
    );
    node.install_hot(now, Arc::new(order(&chain.map, STAY - 1, &[])));
    chain.nodes[1] = node;
    chain.install_at(1);
    chain.run();
    assert!(chain.vouches(STAY));
}

#[test]
fn marks_agree_everywhere_whatever_is_lost_or_overtaken() {
    for seed in 0..20 {
        let mut chain = Chain::new(3);
        let mut rng = machine::Rng::new(seed);
        let mut revision = STAY;
        let mut named: Vec<(&[u8], u64)> = Vec::new();
        let mut rounds = 0;
        let busy = |chain: &Chain| chain.nodes.iter().map(Node::pending).sum::<usize>() > 0;
        while rounds < 60 || busy(&chain) {
            if rounds < 60 && rng.chance(1, 3) {
                revision += 1;
                for key in [HOT, b"warm"] {
                    let known = named.iter().position(|(name, _)| *name == key);
                    match known {
                        Some(at) if rng.chance(1, 2) => drop(named.remove(at)),
                        None if rng.chance(1, 2) => named.push((key, revision)),
                        _ => {}
                    }
                }
                chain.order_hot(revision, &named);
            }
            if rounds < 60 {
                chain.put(HOT, b"1");
                chain.incr(b"warm", 1);
            }
            for _ in 0..chain.wires.len() {
                let at = usize::try_from(rng.below(chain.wires.len() as u64)).unwrap();
                match rng.below(4) {
                    0 => drop(chain.wires.remove(at)),
                    1 => {
                        let again = chain.wires[at].clone();
                        chain.wires.push_back(again);
                        chain.deliver_wire(at);
                    }
                    _ => chain.deliver_wire(at),
                }
            }
            chain.pass(Duration::from_millis(100));
            rounds += 1;
            assert!(rounds < 2_000, "seed {seed} does not heal");
        }
        chain.run();
        let held = |node: &Node<MemoryEngine>| -> Vec<(Vec<u8>, u64)> {
            let marks = &node.replicas[&PartitionId(1)].marks;
            marks.iter().map(|(key, mark)| (key.to_vec(), mark.stay)).collect()
        };
        named.sort_unstable();
        let want: Vec<_> = named.iter().map(|(key, stay)| (key.to_vec(), *stay)).collect();
        for node in &chain.nodes {
            assert_eq!(held(node), want, "seed {seed}");
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
        let reply = chain.get_hot(reader, version, STAY);
        assert_eq!((reply.code, reply.version), (Code::Ok, version));
        assert_eq!(reply.payload[8..], *b"2");
        assert_eq!(reply.header.hop_flags & hop_flag::NEWEST, 0, "it vouches for nothing");
        let reply = chain.get_hot(reader, version + 1, STAY);
        assert_eq!((reply.code, reply.header.stay()), (Code::NotHere, STAY));
    }
    assert_eq!(chain.nodes[READER].counters().hot_reads, 1);
    assert_eq!(chain.nodes[TAIL].hot_copies(), 0, "the tail has the key itself");
    chain.plant(Plant::AnswerBelowFloor);
    assert_eq!(chain.get_hot(READER, version + 1, STAY).code, Code::Ok);
}

#[test]
fn a_reader_knows_of_a_delete_and_leaves_an_expired_value_to_the_tail() {
    let mut chain = Chain::hot();
    chain.del(HOT);
    chain.settle();
    let version = chain.only_reply().version;
    let reply = chain.get_hot(READER, version, STAY);
    assert_eq!((reply.code, reply.version), (Code::NotFound, version));
    let (seq, expiry_ms) = (chain.next(), chain.now.unix_ms() + 50);
    chain.put_again(seq, HOT, b"3", expiry_ms);
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(chain.get_hot(READER, version, STAY).code, Code::Ok);
    chain.now = chain.now + 50 * MS;
    assert_eq!(chain.get_hot(READER, version, STAY).code, Code::NotHere);
    assert_eq!(chain.get_hot(TAIL, version, STAY).code, Code::Expiring);
    chain.settle();
    let reply = chain.get_hot(READER, version + 1, STAY);
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
    assert_eq!(chain.get_hot(READER, version, STAY).code, Code::Ok);
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
    assert_eq!(chain.get_hot(READER, newest, STAY).code, Code::Ok);
}

#[test]
fn what_the_switch_does_not_look_into_shows_only_what_is_covered() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    chain.put(b"i", b"1");
    chain.settle();
    chain.replies.clear();
    let version = chain.get_hot(TAIL, 0, STAY).version;
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    let covers = |chain: &Chain| {
        let is_cover = |bytes: &[u8]| Packet::parse(bytes).unwrap().op() == Op::HotCover;
        chain.wires.iter().filter(|(_, _, bytes)| is_cover(bytes)).count()
    };
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::NotHere);
    assert_eq!(covers(&chain), 1, "one at a time");
    assert_eq!(chain.range(b"i", 9, flag::END_OPEN).code, Code::Ok, "the key lies before it");
    chain.settle();
    assert_eq!(chain.mget(TAIL, None), (Code::Ok, version));
    let reply = chain.range(b"h", 9, flag::END_OPEN);
    assert_eq!((reply.code, reply.header.count), (Code::Ok, 2));
    chain.del(HOT);
    chain.settle();
    chain.replies.clear();
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::NotHere, "nor leaves it out");
    chain.wires.clear(); // The cover is lost.
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    assert_eq!(covers(&chain), 0);
    chain.pass(50 * MS);
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    assert_eq!(covers(&chain), 1, "asked for again");
    chain.plant(Plant::ShowUncovered);
    assert_eq!(chain.mget(TAIL, None).0, Code::NotFound);
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::Ok);
}

#[test]
fn a_range_that_ends_before_a_hot_key_shows_what_it_has() {
    let mut chain = Chain::hot();
    chain.put(b"a", b"1");
    chain.put(b"z", b"1");
    chain.put(HOT, b"2");
    chain.settle();
    chain.replies.clear();
    let open = flag::START_OPEN | flag::END_OPEN;
    let reply = chain.range(b"", 1, open);
    assert_eq!((reply.code, reply.header.count), (Code::Ok, 1));
    let reply = chain.range(b"", 1, open | flag::REVERSE);
    assert_eq!((reply.code, reply.header.count), (Code::Ok, 1));
    assert_eq!(chain.range(b"", 2, open).code, Code::NotHere);
}

#[test]
fn a_range_does_not_leave_out_a_hot_value_whose_time_has_come() {
    let mut chain = Chain::hot();
    let (seq, expiry_ms) = (chain.next(), chain.now.unix_ms() + 50);
    chain.put_again(seq, HOT, b"2", expiry_ms);
    chain.settle();
    chain.replies.clear();
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    chain.settle();
    chain.now = chain.now + 50 * MS;
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::NotHere);
    chain.settle(); // The head has written a tombstone, which is to be covered, too.
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::NotHere);
    chain.settle();
    let reply = chain.range(b"h", 9, flag::END_OPEN);
    assert_eq!((reply.code, reply.header.count), (Code::Ok, 0));
}

#[test]
fn a_reader_shows_in_an_mget_the_very_version_that_the_switch_asks_for() {
    let mut chain = Chain::hot();
    assert_eq!(chain.mget(READER, Some(1)), (Code::Ok, 1));
    chain.put(HOT, b"2");
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(chain.mget(READER, Some(version)), (Code::Ok, version));
    assert_eq!(chain.mget(READER, Some(version + 1)).0, Code::NotHere);
    assert_eq!(chain.mget(READER, Some(1)).0, Code::NotHere, "nobody has been shown that one");
    chain.plant(Plant::ShowUncovered);
    assert_eq!(chain.mget(READER, Some(1)), (Code::Ok, version));
    assert_eq!(chain.mget(READER, None).0, Code::NotOwner, "without a floor it is no reader");
}

/// So it is asked while the key is to go on a trip and has not left.
#[test]
fn a_tail_shows_in_an_mget_the_floor_that_it_is_asked_for_or_what_is_covered() {
    let mut chain = Chain::hot();
    assert_eq!(chain.mget(TAIL, Some(1)), (Code::Ok, 1));
    chain.put(HOT, b"2");
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(chain.mget(TAIL, Some(version)), (Code::Ok, version));
    assert_eq!(chain.mget(TAIL, Some(1)).0, Code::NotHere, "who knows of the newer one?");
    chain.settle();
    assert_eq!(chain.mget(TAIL, Some(1)), (Code::Ok, version), "the switch does by now");
}

#[test]
fn what_passes_no_switch_is_not_answered_for_a_hot_key() {
    let mut chain = Chain::new(3);
    chain.put(HOT, b"1");
    chain.settle();
    chain.replies.clear();
    let (get, put) = (chain.stamped(Op::Get, HOT, 90), chain.stamped(Op::Put, HOT, 91));
    let direct = |header: Header| {
        let Endpoint { addr, port } = port(SWITCH);
        let hop_flags = hop_flag::DIRECT;
        Header { hop_flags, reply_addr: addr, reply_port: port, ..header }
    };
    // The replies come where the test looks for them; their address says that they were direct.
    let ask = |chain: &mut Chain, to: usize, header: Header, parts: &[&[u8]]| {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &direct(header), parts);
        let now = chain.now;
        chain.nodes[to].handle_packet(now, port(200), 0, &datagram);
        chain.nodes[to].flush().unwrap();
        let reply = chain.nodes[to].poll_transmit()?;
        Code::from_wire(Header::read(Packet::parse(reply.payload).unwrap().header()).code)
    };
    assert_eq!(ask(&mut chain, TAIL, get, &[HOT]), Some(Code::Ok));
    chain.order_hot(STAY, &[(HOT, STAY)]);
    let body = PutBody::default().to_bytes();
    let pending = chain.nodes[0].pending();
    let refused = ask(&mut chain, 0, put, &[&body, HOT, b"2"]);
    assert_eq!(refused, Some(Code::NotHere), "the mark is on its way");
    assert_eq!(chain.nodes[0].pending(), pending);
    chain.run();
    assert_eq!(ask(&mut chain, TAIL, get, &[HOT]), Some(Code::NotHere));
    let hot = Header { hop_flags: hop_flag::HOT, ..get };
    assert_eq!(ask(&mut chain, READER, hot, &[HOT]), Some(Code::NotOwner));
}

#[test]
fn that_there_is_no_value_is_told_when_it_is_covered_what_took_it_away() {
    let mut chain = Chain::hot();
    chain.del(HOT);
    chain.settle_without(Op::HotCopied); // Its own answer is held back.
    assert!(chain.replies.is_empty());
    chain.lag = 100;
    chain.del(HOT);
    let seq = chain.seq;
    chain.settle_without(Op::HotCover);
    assert!(chain.replies.is_empty(), "version 0 would tell the switch nothing");
    chain.pass(25 * MS);
    chain.settle_without(Op::HotCover);
    assert_eq!(chain.only_reply().code, Code::Ok, "of the first");
    // The client asks again, and the head answers from its sessions.
    let again = chain.stamped(Op::Del, HOT, seq);
    chain.send(&again, &[HOT]);
    assert!(chain.replies.is_empty());
    chain.settle();
    chain.send(&again, &[HOT]);
    assert_eq!(chain.only_reply().code, Code::NotFound);
    chain.put(HOT, b"2");
    chain.settle();
    chain.del(HOT);
    chain.settle();
    chain.replies.clear();
    chain.del(HOT);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::NotFound, "the tail tells it when that is so");
}

#[test]
fn of_a_key_that_it_does_not_know_a_tail_says_the_version_of_what_was_collected() {
    let mut chain = Chain::new(3);
    chain.put(HOT, b"1");
    chain.settle();
    chain.del(HOT);
    chain.settle();
    for _ in 0..70 {
        chain.pass(Duration::from_secs(1));
        chain.settle();
    }
    assert_eq!(chain.nodes[TAIL].counters().collected, 1);
    chain.order_hot(STAY, &[(HOT, STAY)]);
    chain.run();
    chain.replies.clear();
    for node in [READER, TAIL] {
        let reply = chain.get_hot(node, 2, STAY);
        assert_eq!((reply.code, reply.version), (Code::NotFound, 2), "node {node}");
    }
}

#[test]
fn a_new_tail_sends_what_it_has_and_covers_anew() {
    let mut chain = Chain::hot();
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    chain.settle();
    assert_eq!(chain.mget(TAIL, None).0, Code::Ok);
    chain.reconfigure(&[0, 1, 2], false, &[2, 0, 1], false);
    assert!(chain.vouches(STAY));
    assert_eq!(chain.mget(1, None).0, Code::NotHere);
    chain.settle();
    assert_eq!(chain.mget(1, None).0, Code::Ok);
    chain.put(HOT, b"2");
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(chain.get_hot(2, version, STAY).code, Code::Ok, "the old tail reads from a copy");
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
    chain.order_hot(STAY + 1, &[(HOT, STAY)]);
    chain.run();
    assert_eq!(sent(&chain), before, "nothing has changed for this key");
    let mut other = order(&chain.map, STAY + 2, &[(HOT, STAY)]);
    other.places[READER] = Some((NodeId(1), Life(77)));
    let now = chain.now;
    chain.nodes[TAIL].install_hot(now, Arc::new(other.clone()));
    chain.drain(TAIL);
    chain.run();
    assert_eq!(sent(&chain), before + 1, "one reader was started anew");
    (other.revision, other.switch) = (STAY + 3, Life(98));
    let now = chain.now;
    chain.nodes[TAIL].install_hot(now, Arc::new(other));
    chain.drain(TAIL);
    chain.run();
    assert_eq!(sent(&chain), before + 3, "the switch was started anew");
}

fn joined(plant: Option<Plant>) -> Chain {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    if let Some(plant) = plant {
        chain.plant(plant);
    }
    chain.order_hot(STAY, &[(HOT, STAY), (b"warm", STAY)]);
    chain.run();
    chain.change(&[0, 1], false, false);
    chain.install();
    chain.run();
    chain.change(&[0, 1, 2], true, true);
    chain.install();
    // While it is copied to, one key is marked and one unmarked.
    chain.order_hot(STAY + 1, &[(HOT, STAY), (b"late", STAY + 1)]);
    chain.run();
    assert!(chain.whole(2));
    chain.reconfigure(&[0, 1, 2], true, &[0, 1, 2], false);
    chain
}

#[test]
fn a_joiner_gets_the_marks_and_those_that_change_meanwhile() {
    let mut chain = joined(None);
    assert_eq!(chain.marks(), [2, 2, 2]);
    assert!(chain.vouches(STAY));
    let mut chain = joined(Some(Plant::DropMarks));
    assert_eq!(chain.marks(), [2, 2, 1]);
    assert!(!chain.vouches(STAY));
}

#[test]
fn marks_are_known_again_after_a_restart() {
    let map = Chain::new(1).map;
    let now = Instant::from_unix_ms(1_000_000);
    let config = NodeConfig { shard: 0, shards: 1, life: Life(0), rate: 0 };
    let assignment = map.assignment(NodeId(0), StoreId(0), port(SWITCH));
    let start = |engine: Noted| {
        let mut node = Node::new(config, engine, now);
        node.install(now, &assignment);
        node.renew(&Lease { life: Life(0), revision: 1, from: now, duration_ms: 1 << 40 });
        node.flush().unwrap();
        node
    };
    let mut node = start(Noted::new());
    node.install_hot(now, Arc::new(order(&map, STAY, &[(HOT, STAY), (b"warm", STAY)])));
    node.install_hot(now + MS, Arc::new(order(&map, STAY + 1, &[(HOT, STAY)])));
    node.flush().unwrap();
    assert_eq!(node.hot_keys(), 1);
    let mut node = start(node.into_engine());
    assert_eq!((node.hot_keys(), node.report().hot_revision), (1, 0));
    node.install_hot(now, Arc::new(order(&map, STAY + 2, &[])));
    assert_eq!(node.hot_keys(), 0);
}

#[test]
fn a_mark_that_is_pending_hides_no_state() {
    let mut chain = Chain::new(2);
    chain.incr(HOT, 5);
    chain.order_hot(STAY, &[(HOT, STAY)]);
    chain.incr(HOT, 2);
    chain.run();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"7"[..]));
    chain.replies.clear();
    assert!(chain.vouches(STAY));
}

#[test]
fn copies_and_covers_are_taken_from_whom_they_may_come() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    let copy = loop {
        let op = Packet::parse(&chain.wires[0].2).unwrap().op();
        if op == Op::HotCopy {
            break chain.wires.remove(0).unwrap();
        }
        chain.deliver_wire(0);
    };
    let dropped = |chain: &Chain, node: usize| {
        let counters = chain.nodes[node].counters();
        [DropReason::NotFromMember, DropReason::NotFromSwitch].map(|why| counters.dropped(why))
    };
    chain.deliver(READER, port(200), &copy.2);
    assert_eq!(dropped(&chain, READER), [1, 0]);
    chain.settle();
    chain.mget(TAIL, None);
    let (_, _, cover) = chain.wires.pop_back().unwrap();
    chain.deliver(TAIL, port(200), &cover);
    assert_eq!(dropped(&chain, TAIL), [0, 1]);
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    chain.deliver(TAIL, port(SWITCH), &cover);
    chain.replies.clear();
    assert_eq!(chain.mget(TAIL, None).0, Code::Ok);
}
