//! Scripts of members that have little room.

use super::*;
use crate::MemoryLimit;
use wire::{ManifestBody, PartKey, Room, UploadBody, big::EXPIRY_BIG};

impl Chain {
    /// Gives a member so many bytes beyond what it has now, and lets it notice.
    fn leave_room(&mut self, index: usize, bytes: u64) {
        self.pass(Duration::from_millis(200));
        let bytes = self.nodes[index].memory_used() + bytes + RESERVE;
        let limit = MemoryLimit { bytes, reserve: RESERVE, uploads: u64::MAX };
        self.nodes[index].limit_memory(Some(limit));
        self.pass(Duration::from_millis(200));
        self.settle();
    }

    /// How a write of this value ends.
    fn put_code(&mut self, key: &[u8], value: &[u8]) -> Code {
        self.put(key, value);
        self.settle();
        self.only_reply().code
    }

    fn held(&self) -> usize {
        self.nodes.iter().map(Node::pending).sum()
    }
}

const RESERVE: u64 = 1 << 20;

#[test]
fn a_member_without_room_has_the_head_refuse_what_grows_and_nothing_else() {
    for lacking in 0..3 {
        let mut chain = Chain::new(3);
        assert_eq!(chain.put_code(b"a", b"four"), Code::Ok);
        chain.leave_room(lacking, 0);
        assert_eq!(chain.nodes[lacking].room(), Room::Full);
        // The head hears of it with the first write, which is taken.
        chain.put(b"first", b"1");
        chain.settle();
        chain.replies.clear();
        assert_eq!(chain.put_code(b"b", b"1"), Code::Full, "a new key, member {lacking}");
        assert_eq!(chain.get(b"b"), None);
        assert_eq!(chain.put_code(b"a", b"longer"), Code::Full);
        assert_eq!(chain.put_code(b"a", b"same"), Code::Ok);
        chain.incr(b"n", 1);
        chain.settle();
        assert_eq!(chain.only_reply().code, Code::Full);
        let seq = chain.next();
        chain.put_again(seq, b"a", b"same", chain.now.unix_ms() + 10_000);
        chain.settle();
        assert_eq!(chain.only_reply().code, Code::Full, "an expiry takes room, too");
        assert_eq!(chain.get(b"a").as_deref(), Some(&b"same"[..]));
        chain.del(b"a");
        chain.settle();
        assert_eq!(chain.only_reply().code, Code::Ok);
        assert_eq!((chain.get(b"a"), chain.held()), (None, 0));
        chain.leave_room(lacking, 1 << 20);
        chain.pass(Duration::from_secs(1));
        assert_eq!(chain.put_code(b"b", b"1"), Code::Ok, "there is room again");
    }
}

#[test]
fn what_was_refused_for_room_is_never_applied_later() {
    let mut chain = Chain::new(3);
    chain.leave_room(2, 0);
    chain.put(b"first", b"1");
    chain.settle();
    chain.replies.clear();
    let seq = chain.put(b"a", b"1");
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::Full);
    chain.leave_room(2, 1 << 20);
    chain.pass(Duration::from_secs(1));
    chain.lag = 1;
    chain.put_again(seq, b"a", b"1", 0);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::Full, "a late copy is told the same");
    assert_eq!(chain.get(b"a"), None);
}

#[test]
fn a_member_takes_what_comes_down_the_chain_whatever_room_it_has() {
    let mut chain = Chain::new(3);
    chain.nodes[1].limit_memory(Some(MemoryLimit { bytes: 0, reserve: 0, uploads: 0 }));
    chain.nodes[2].limit_memory(Some(MemoryLimit { bytes: 0, reserve: 0, uploads: 0 }));
    assert_eq!(chain.put_code(b"a", b"1"), Code::Ok, "the head had not heard");
    assert_eq!(chain.put_code(b"b", b"1"), Code::Full);
    assert_eq!(chain.held(), 0);
}

#[test]
fn parts_of_big_values_are_refused_before_anything_else() {
    let upload = UploadBody::default();
    let part = |index| PartKey { key: b"big", upload, index }.to_bytes();
    let put_part = |chain: &mut Chain, index: u32| {
        let seq = chain.next();
        chain.put_again(seq, &part(index), &[7; 1_000], EXPIRY_BIG);
        chain.settle();
        chain.only_reply().code
    };
    let mut chain = Chain::new(2);
    assert_eq!(put_part(&mut chain, 0), Code::Ok);
    // One sixteenth is left.
    chain.leave_room(0, 50);
    assert_eq!(chain.nodes[0].room(), Room::Tight);
    assert_eq!(put_part(&mut chain, 1), Code::Full);
    assert_eq!(chain.put_code(b"a", b"1"), Code::Ok);
    // There is room, but enough of it is taken by parts that are no value's.
    let limit = MemoryLimit { bytes: 1 << 30, reserve: 0, uploads: 1_500 };
    chain.nodes[0].limit_memory(Some(limit));
    assert_eq!(put_part(&mut chain, 2), Code::Ok);
    chain.pass(Duration::from_millis(200));
    assert_eq!(chain.nodes[0].upload_bytes(), 2_000);
    assert_eq!(put_part(&mut chain, 3), Code::Full);
}

#[test]
fn copies_of_parts_count_once_and_those_of_values_not_at_all() {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    let put_big = |chain: &mut Chain, key: &[u8], value: &[u8]| {
        let seq = chain.next();
        chain.put_again(seq, key, value, EXPIRY_BIG);
        chain.settle();
        assert_eq!(chain.only_reply().code, Code::Ok);
    };
    let (len, checksum) = (2_000, 0);
    for number in 0..20 {
        let manifest = ManifestBody { len, part_len: 1_000, checksum, client: 1, number };
        let (key, upload) = (format!("big{number}"), manifest.upload());
        for index in 0..2 {
            let part = PartKey { key: key.as_bytes(), upload, index };
            put_big(&mut chain, &part.to_bytes(), &[7; 1_000]);
        }
        if number > 0 {
            put_big(&mut chain, key.as_bytes(), &manifest.to_bytes());
        }
    }
    let bytes = |chain: &mut Chain| {
        chain.pass(Duration::from_millis(200));
        [0, 1, 2].map(|index: usize| chain.nodes[index].upload_bytes())
    };
    assert_eq!(bytes(&mut chain), [2_000, 2_000, 0]);
    // Each epoch begins the copy anew.
    for _ in 0..3 {
        chain.reconfigure(&[0, 1], false, &[0, 1, 2], true);
        assert_eq!(bytes(&mut chain), [2_000; 3], "of one upload that is no value yet");
    }
    chain.reconfigure(&[0, 1, 2], true, &[2, 0, 1], false);
    let upload = UploadBody { client: 1, number: 0 };
    let part = PartKey { key: b"big0", upload, index: 2 }.to_bytes();
    let limit = MemoryLimit { bytes: 1 << 30, reserve: 0, uploads: 2_500 };
    chain.nodes[2].limit_memory(Some(limit));
    put_big(&mut chain, &part, &[7; 1_000]);
}

#[test]
fn a_learner_is_not_sent_the_parts_of_values_that_were_replaced() {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    for number in 0..20 {
        let manifest = ManifestBody { len: 1_000, part_len: 1_000, checksum: 0, client: 1, number };
        let part = PartKey { key: b"big", upload: manifest.upload(), index: 0 }.to_bytes();
        for (key, value) in [(&part[..], &[7; 1_000][..]), (b"big", &manifest.to_bytes())] {
            let seq = chain.next();
            chain.put_again(seq, key, value, EXPIRY_BIG);
            chain.settle();
            assert_eq!(chain.only_reply().code, Code::Ok);
        }
    }
    let uploads = |chain: &Chain| [0, 1, 2].map(|index: usize| chain.nodes[index].uploads());
    assert_eq!(uploads(&chain), [19, 19, 0], "left to those who read them");
    chain.reconfigure(&[0, 1], false, &[0, 1, 2], true);
    chain.pass(Duration::from_millis(200));
    assert!(chain.caught_up(2));
    assert_eq!(uploads(&chain), [19, 19, 0]);
}

#[test]
fn a_learner_with_little_room_takes_writes_and_no_pieces_of_the_copy() {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    for n in 0..100u8 {
        chain.put(&[b'k', n], &[n; 100]);
    }
    chain.run();
    chain.replies.clear();
    let full = MemoryLimit { bytes: 1 << 20, reserve: 1 << 20, uploads: 0 };
    chain.nodes[2].limit_memory(Some(full));
    chain.reconfigure(&[0, 1], false, &[0, 1, 2], true);
    assert!(!chain.caught_up(2));
    assert!(chain.nodes[2].counters().dropped(DropReason::NoRoom) > 0);
    chain.put(b"k\x07", &[1; 100]);
    chain.run();
    assert_eq!(chain.only_reply().code, Code::Ok, "what grows nothing goes on");
    chain.nodes[2].limit_memory(None);
    (0..100).for_each(|_| chain.run());
    assert!(chain.caught_up(2));
}

#[test]
fn a_node_that_can_write_nothing_answers_reads_and_turns_all_else_away() {
    let mut chain = Chain::new(1);
    assert_eq!(chain.put_code(b"a", b"1"), Code::Ok);
    chain.nodes[0].set_store_room(Room::Shut, true);
    chain.del(b"a");
    chain.put(b"b", b"1");
    chain.pass(Duration::from_secs(5));
    let codes: Vec<Code> = chain.replies.drain(..).map(|reply| reply.code).collect();
    assert_eq!(codes, [Code::StoreRefuses; 2], "whoever writes is told so, and may ask again");
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::NoRoom), 2);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    chain.nodes[0].set_store_room(Room::Shut, false);
    assert_eq!(chain.put_code(b"a", b"2"), Code::Full, "only deletes");
    chain.del(b"a");
    assert_eq!(chain.only_reply().code, Code::Ok);
    chain.nodes[0].set_store_room(Room::Plenty, false);
    assert_eq!(chain.put_code(b"a", b"2"), Code::Ok);
}

/// The first member refuses what comes from clients, any other what comes down the chain.
#[test]
fn what_a_store_refuses_is_told_to_clients_in_its_words_and_answered_when_it_is_taken() {
    for refusing in 0..3 {
        let mut chain = Chain::new(3);
        assert_eq!(chain.put_code(b"a", b"1"), Code::Ok);
        chain.nodes[refusing].put_off(&"OOM no room ".repeat(50));
        chain.put(b"a", b"2");
        chain.settle();
        let reply = chain.only_reply();
        assert_eq!((reply.op, reply.code), (Op::PutReply, Code::StoreRefuses));
        assert_eq!(reply.payload.len(), wire::STORE_WORDS_MAX);
        assert!(reply.payload.starts_with(b"OOM no room"));
        assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]), "reads go on");
        chain.nodes[refusing].take_up();
        if refusing == 0 {
            assert_eq!(chain.put_code(b"a", b"3"), Code::Ok);
        } else {
            // What the head has taken goes down the chain by itself.
            chain.pass(Duration::from_secs(5));
            chain.settle();
            assert!(chain.replies.drain(..).any(|reply| reply.code == Code::Ok));
            assert_eq!(chain.get(b"a").as_deref(), Some(&b"2"[..]));
        }
    }
}

/// What was put off rests on changes that nobody has: it leaves when they are taken.
#[test]
fn nothing_that_was_put_off_leaves_before_the_store_has_taken_it() {
    let mut chain = Chain::new(1);
    let now = chain.now;
    chain.put(b"a", b"1");
    chain.replies.clear();
    let header = chain.stamped(Op::Put, b"a", 9);
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[&PutBody { expiry_ms: 0 }.to_bytes(), b"a", b"2"]);
    let node = &mut chain.nodes[0];
    node.handle_packet(now, port(SWITCH), 0, &datagram);
    node.put_off("OOM");
    node.flush().unwrap();
    assert!(node.poll_transmit().is_none());
    node.take_up();
    assert!(node.poll_transmit().is_some());
}
