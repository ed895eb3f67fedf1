//! Scripts of many keys of one match value, big values that are replaced again and again, and
//! clients that ask much: how many records that costs.

use super::*;
use crate::engine::Engine;
use crate::replica::totals::counts_as;
use cluster::Volume;
use std::ops::{Bound, ControlFlow};
use wire::big::EXPIRY_BIG;
use wire::{ManifestBody, PartKey, RangeCountBody, RangeEntryBody, RangeInterval, UploadBody};

/// All keys, as a client asks for them.
const ALL: u8 = flag::START_OPEN | flag::END_OPEN;

/// The manifest of an upload of so many parts.
pub(super) fn manifest(number: u64, parts: u32) -> [u8; ManifestBody::LEN] {
    let (len, client) = (parts.into(), CLIENT);
    ManifestBody { len, part_len: 1, checksum: 0, client, number }.to_bytes()
}

impl Chain {
    pub(super) fn put_part(&mut self, key: &[u8], number: u64, index: u32) {
        let part = PartKey { key, upload: UploadBody { client: CLIENT, number }, index };
        let seq = self.next();
        self.put_again(seq, &part.to_bytes(), b"p", EXPIRY_BIG);
    }

    fn put_manifest(&mut self, key: &[u8], number: u64, parts: u32) {
        let seq = self.next();
        self.put_again(seq, key, &manifest(number, parts), EXPIRY_BIG);
    }

    pub(super) fn put_big(&mut self, key: &[u8], number: u64, parts: u32) {
        for index in 0..parts {
            self.put_part(key, number, index);
            if index % 1_000 == 999 {
                self.settle();
            }
        }
        self.settle();
        self.put_manifest(key, number, parts);
        self.settle();
        for reply in std::mem::take(&mut self.replies) {
            assert!(reply.op != Op::PutReply || reply.code == Code::Ok, "{reply:?}");
        }
    }

    fn range_header(&mut self, flags: u8, start: &[u8]) -> Header {
        let seq = self.next();
        let mut header = Header { flags, ..self.stamped(Op::Range, start, seq) };
        let first = if start.is_empty() { 0 } else { header.match_value };
        RangeInterval { first, last: u128::MAX }.put(&mut header);
        header
    }

    /// Records that nodes have looked at for scans and counts.
    fn scanned(&self) -> u64 {
        self.nodes.iter().map(|node| node.counters().scanned).sum()
    }

    /// How many keys have a value, in how many pieces, and how many records were looked at.
    fn count(&mut self) -> (RangeCountBody, usize, u64) {
        let (mut sum, mut start, before) = (RangeCountBody::default(), Vec::new(), self.scanned());
        let mut flags = flag::COUNT_ONLY | ALL;
        for pieces in 1.. {
            let header = self.range_header(flags, &start);
            self.send(&header, &[&RangeBody { limit: 1 }.to_bytes(), &start]);
            let reply = self.only_reply();
            let (counted, rest) = RangeCountBody::split(&reply.payload).unwrap();
            (sum.keys, sum.expiring) = (sum.keys + counted.keys, sum.expiring + counted.expiring);
            if reply.header.flags & flag::PARTIAL == 0 {
                return (sum, pieces, self.scanned() - before);
            }
            start = RangeEntryBody::split(rest).unwrap().1.to_vec();
            flags = flag::COUNT_ONLY | flag::START_EXCLUSIVE | flag::END_OPEN;
        }
        unreachable!()
    }

    /// All keys, and how many records were looked at, at most for a piece and altogether.
    fn keys(&mut self) -> (Vec<Vec<u8>>, u64, u64) {
        let (mut keys, mut start, began) = (Vec::new(), Vec::<u8>::new(), self.scanned());
        let (mut flags, mut most) = (flag::KEYS_ONLY | ALL, 0);
        loop {
            let (header, before) = (self.range_header(flags, &start), self.scanned());
            self.send(&header, &[&RangeBody { limit: 1_000 }.to_bytes(), &start]);
            most = most.max(self.scanned() - before);
            let reply = self.only_reply();
            let mut rest = &reply.payload[..];
            while let Some((fixed, after)) = RangeEntryBody::split(rest) {
                start = after[..usize::from(fixed.key_len)].to_vec();
                if fixed.kind == 0 {
                    keys.push(start.clone());
                }
                rest = &after[start.len() + usize::from(fixed.value_len)..];
            }
            if reply.header.flags & flag::PARTIAL == 0 {
                return (keys, most, self.scanned() - began);
            }
            flags = flag::KEYS_ONLY | flag::START_EXCLUSIVE | flag::END_OPEN;
        }
    }

    /// What there is in the store of a node, looked at one by one.
    fn counted_by_hand(&self, index: usize) -> RangeCountBody {
        let mut sum = RangeCountBody::default();
        let interval = crate::engine::Interval {
            keyspace: &self.map.keyspaces[0],
            partition: PartitionId(1),
            first: Match::MIN,
            last: Match::MAX,
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            reverse: false,
        };
        self.nodes[index].engine().scan(&interval, |key, record| {
            let counts = counts_as(key, Some(&record)).filter(|_| PartKey::parse(key).is_none());
            sum.keys += u64::from(counts.is_some());
            sum.expiring += u64::from(counts.is_some_and(|it| it.expires));
            ControlFlow::Continue(())
        });
        sum
    }

    /// How much is stored at a node, looked at one by one: a big value is as long as it says.
    fn volume_by_hand(&self, index: usize) -> Volume {
        let mut sum = Volume::default();
        let area = self.nodes[index].replicas[&PartitionId(1)].member.area();
        let mut cursor = self.nodes[index].engine().walk(&area);
        let _ = self.nodes[index].engine().walk_on(&area, &mut cursor, |key, record| {
            if !record.tombstone && PartKey::parse(key).is_none() {
                let manifest = ManifestBody::parse(key, record.value);
                let big = manifest.filter(|_| wire::big::is_big(record.expiry_ms));
                sum.keys += 1;
                sum.bytes += key.len() as u64;
                sum.bytes += big.map_or(record.value.len() as u64, |manifest| manifest.len);
            }
            ControlFlow::Continue(())
        });
        sum
    }

    fn volume(&self, index: usize) -> Option<Volume> {
        let report = self.nodes[index].report(self.now);
        let [stored] = &report.stored[..] else { panic!("{:?}", report.stored) };
        let is_tail = index + 1 == self.nodes.len();
        let at_tail = if is_tail { stored.held } else { Volume::default() };
        assert_eq!(stored.as_tail, at_tail, "each key is counted at its tail");
        stored.counted.then_some(stored.held)
    }

    fn totals(&self, index: usize) -> Option<RangeCountBody> {
        self.nodes[index].replicas[&PartitionId(1)].totals.known()
    }
}

#[test]
fn keys_of_one_tag_are_scanned_in_time_for_what_is_given_and_counted_in_none() {
    let mut chain = Chain::of(1, KeyspaceKind::Hash);
    for n in 0..40_000 {
        chain.put(format!("{{t}}:{n}").as_bytes(), b"x");
    }
    chain.replies.clear();
    let (counted, pieces, scanned) = chain.count();
    assert_eq!((counted.keys, pieces, scanned), (40_000, 1, 0));
    let (keys, most, scanned) = chain.keys();
    assert_eq!(keys.len(), 40_000);
    // One more than fits is looked at in each.
    assert!(most <= 512 && scanned < 42_000, "{most} for a piece, {scanned} for all");
}

#[test]
fn parts_of_a_long_value_are_passed_by_in_one_step() {
    let mut chain = Chain::of(2, KeyspaceKind::Hash);
    chain.put(b"other", b"v");
    chain.put_big(b"k", 1, 20_000);
    let (counted, pieces, scanned) = chain.count();
    assert_eq!((counted.keys, pieces, scanned), (2, 1, 0));
    let (keys, _, scanned) = chain.keys();
    assert_eq!(keys.len(), 2);
    assert!(scanned < 20, "{scanned} records");
}

#[test]
fn a_value_that_is_replaced_again_and_again_leaves_little() {
    let mut chain = Chain::of(3, KeyspaceKind::Hash);
    chain.put(b"other", b"v");
    for number in 1..=3_000 {
        chain.put_big(b"k", number, 4);
        if number % 10 == 0 {
            chain.pass(MS * 10);
            chain.settle();
        }
    }
    for node in &chain.nodes {
        // Beside those that wait for readers, what was replaced in the last 100 ms.
        assert!(node.uploads() <= 64 + 100, "{} uploads", node.uploads());
        assert!(node.engine().len() <= 2 + 4 * (1 + 64 + 100), "{} records", node.engine().len());
    }
    let (counted, pieces, scanned) = chain.count();
    assert_eq!((counted.keys, pieces, scanned), (2, 1, 0));
    let (keys, _, scanned) = chain.keys();
    assert_eq!(keys.len(), 2);
    assert!(scanned < 20, "{scanned} records");
    (0..12).for_each(|_| chain.pass(Duration::from_secs(1)));
    for node in &chain.nodes {
        assert_eq!((node.uploads(), node.engine().len()), (0, 6), "after the grace for readers");
    }
}

#[test]
fn a_manifest_that_was_overtaken_leaves_no_parts() {
    let mut chain = Chain::of(2, KeyspaceKind::Hash);
    for number in [1, 2] {
        chain.put_part(b"k", number, 0);
        chain.settle();
    }
    chain.put_manifest(b"k", 1, 1);
    chain.put_manifest(b"k", 2, 1);
    assert_eq!(chain.wires.len(), 2);
    chain.deliver_wire(1);
    chain.settle();
    (0..12).for_each(|_| chain.pass(Duration::from_secs(1)));
    for node in &chain.nodes {
        assert_eq!((node.uploads(), node.engine().len()), (0, 2), "the manifest and its part");
    }
}

#[test]
fn uploads_that_nobody_goes_on_with_take_nobody_s_room_for_long() {
    let mut chain = Chain::of(2, KeyspaceKind::Hash);
    for (number, key) in (0..256).map(|number| (number, b"k")) {
        chain.put_part(key, number, 0);
    }
    chain.settle();
    chain.replies.clear();
    chain.put_part(b"k", 1_000, 0);
    assert_eq!(chain.only_reply().code, Code::Overloaded);
    chain.pass(Duration::from_secs(3));
    chain.put_big(b"other", 1, 1);
    chain.put_part(b"k", 1_000, 0);
    assert_eq!(chain.only_reply().code, Code::Overloaded, "a client may still be about it");
    chain.pass(Duration::from_secs(3));
    chain.put_part(b"k", 1_000, 0);
    assert_eq!(chain.only_reply().code, Code::Overloaded, "the first who comes makes room");
    chain.pass(MS * 100);
    chain.settle();
    chain.put_big(b"k", 1_000, 1);
}

#[test]
fn a_question_that_is_sent_again_is_looked_into_once_in_a_turn() {
    let mut chain = Chain::of(1, KeyspaceKind::Hash);
    for n in 0..1_000 {
        chain.put(format!("k{n}").as_bytes(), b"x");
    }
    chain.replies.clear();
    let ask = |chain: &mut Chain, flags: u8, client: u64| {
        let header = Header { client, ..chain.range_header(flags, b"") };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[&RangeBody { limit: 1_000 }.to_bytes()]);
        let before = chain.scanned();
        let now = chain.now;
        chain.nodes[0].handle_packet(now, port(SWITCH), 0, &datagram);
        chain.scanned() - before
    };
    let keys = flag::KEYS_ONLY | ALL;
    assert!(ask(&mut chain, keys, CLIENT) > 0);
    assert_eq!(ask(&mut chain, keys, CLIENT), 0, "it is told the same");
    assert!(ask(&mut chain, ALL, CLIENT) > 0, "another question");
    assert_eq!(chain.nodes[0].counters().duplicates, 1);
    chain.drain(0);
    let [first, again, other] = &chain.replies[..] else { panic!("{}", chain.replies.len()) };
    assert_eq!((first.payload.len(), &first.payload), (again.payload.len(), &again.payload));
    assert_eq!(first.header.seq + 1, again.header.seq, "each under its number");
    assert_ne!(first.payload, other.payload);
    assert!(ask(&mut chain, keys, CLIENT) > 0, "what was answered before is asked anew");
    chain.drain(0);
}

#[test]
fn a_turn_looks_at_a_bounded_number_of_records_whatever_is_asked() {
    let mut chain = Chain::of(1, KeyspaceKind::Hash);
    for n in 0..40_000 {
        chain.put(format!("{{t}}:{n}").as_bytes(), b"x");
        chain.del(format!("{{t}}:{n}").as_bytes());
    }
    chain.replies.clear();
    let before = chain.scanned();
    for n in 0..64 {
        let start = format!("{{t}}:{n}");
        let flags = flag::COUNT_ONLY | flag::START_EXCLUSIVE | flag::END_OPEN;
        let header = chain.range_header(flags, start.as_bytes());
        let mut datagram = Vec::new();
        let limit = RangeBody { limit: 1 }.to_bytes();
        wire::emit(&mut datagram, &header, &[&limit, start.as_bytes()]);
        let now = chain.now;
        chain.nodes[0].handle_packet(now, port(SWITCH), 0, &datagram);
    }
    let scanned = chain.scanned() - before;
    assert!(scanned <= 8_192 + 512 + 64 * 32, "{scanned} records");
    chain.drain(0);
    assert_eq!(chain.replies.len(), 64, "each is told something");
}

#[test]
fn the_number_of_keys_is_kept_whatever_becomes_of_them() {
    let mut chain = Chain::of(3, KeyspaceKind::Hash);
    let mut rng = machine::Rng::new(5);
    let mut change = |chain: &mut Chain, at_once: bool| {
        let n = rng.below(3_000);
        let key = format!("{{{}}}{n}", n % 5).into_bytes();
        match rng.below(8) {
            0 | 1 => chain.del(&key),
            2 => {
                let (seq, soon) = (chain.next(), chain.now.unix_ms() + rng.below(400));
                chain.put_again(seq, &key, b"v", soon);
            }
            3 => {
                let (seq, later) = (chain.next(), chain.now.unix_ms() + 1_000_000);
                chain.put_again(seq, &key, b"v", later);
            }
            4 if at_once => {
                let number = chain.seq;
                chain.put_big(&key, number, 2);
            }
            _ => {
                chain.put(&key, b"v");
            }
        }
    };
    for round in 0..2_000 {
        (0..4).for_each(|_| change(&mut chain, true));
        chain.settle();
        if round % 10 == 0 {
            chain.pass(MS * 100);
            chain.settle();
        }
        chain.replies.clear();
    }
    for index in 0..3 {
        let (counted, volume) = (chain.counted_by_hand(index), chain.volume_by_hand(index));
        assert!(counted.keys > 1_000 && counted.expiring > 100, "{counted:?}");
        assert_eq!(chain.totals(index), Some(counted), "node {index}");
        assert_eq!(chain.volume(index), Some(volume), "node {index}");
    }
    // What an earlier incarnation has left is counted bit by bit, while it changes.
    for node in &mut chain.nodes {
        node.replicas.get_mut(&PartitionId(1)).unwrap().begin_survey();
    }
    let mut rounds = 0;
    while chain.totals(2).is_none() {
        let (_, pieces, scanned) = chain.count();
        assert!(pieces > 1 && scanned > 1_000, "the tail does not know yet");
        (0..50).for_each(|_| change(&mut chain, false));
        chain.settle();
        chain.replies.clear();
        chain.pass(MS * 10);
        chain.settle();
        rounds += 1;
    }
    assert!(rounds >= 2, "{rounds} rounds");
    for index in 0..3 {
        assert_eq!(chain.totals(index), Some(chain.counted_by_hand(index)), "node {index}");
        assert_eq!(chain.volume(index), Some(chain.volume_by_hand(index)), "node {index}");
    }
    let (counted, pieces, scanned) = chain.count();
    assert_eq!((counted, pieces, scanned), (chain.counted_by_hand(2), 1, 0));
}
