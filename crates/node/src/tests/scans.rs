//! Scripts of scans and counts.

use super::*;
use wire::RangeInterval;

#[test]
fn a_scan_gives_pieces_that_follow_each_other() {
    let mut chain = Chain::new(1);
    for n in 0..100u64 {
        chain.put(format!("k{n:03}").as_bytes(), &[7; 100]);
    }
    chain.replies.clear();
    let mut start = b"k".to_vec();
    let mut flags = flag::END_OPEN;
    let mut keys = Vec::new();
    loop {
        let mut header = Header { flags, ..chain.stamped(Op::Range, &start, 1_000) };
        RangeInterval { first: header.match_value, last: u128::MAX }.put(&mut header);
        chain.send(&header, &[&RangeBody { limit: 1_000 }.to_bytes(), &start]);
        let seq = chain.replies.len();
        assert_eq!(seq, 1);
        let reply = chain.replies.pop().unwrap();
        let partial = scan_reply(&reply, &mut keys);
        let Some(last) = keys.last().filter(|_| partial).cloned() else { break };
        start = last;
        flags |= flag::START_EXCLUSIVE;
    }
    let want: Vec<_> = (0..100).map(|n| format!("k{n:03}").into_bytes()).collect();
    assert_eq!(keys, want);
    let [count] = chain.nodes[0].report(chain.now).counts[..] else { panic!("one partition") };
    // Of each piece but the last, one record more is examined, for which there is no room.
    let pieces = keys.len().div_ceil(11);
    assert_eq!(count.scanned, (keys.len() + pieces - 1) as u64);
    assert!(count.bytes_out > 100 * 104 && count.bytes_in > 100 * 104, "{count:?}");
}

/// Scans of few keys cost as much as many requests for others; in the sample of what is asked for
/// they count as much.
#[test]
fn the_sample_of_what_is_asked_for_has_scans_by_what_they_cost() {
    let mut chain = Chain::new(1);
    for n in 0..64u64 {
        chain.put(format!("k{n:02}").as_bytes(), b"v");
    }
    chain.settle();
    for round in 0..400u64 {
        // One request of five is a scan of 32 records, and costs as much as the others together.
        if round.is_multiple_of(5) {
            let flags = flag::END_OPEN;
            let mut header = Header { flags, ..chain.stamped(Op::Range, b"k00", 1_000 + round) };
            RangeInterval { first: header.match_value, last: u128::MAX }.put(&mut header);
            chain.send(&header, &[&RangeBody { limit: 32 }.to_bytes(), b"k00"]);
        } else {
            chain.get(b"k50").unwrap();
        }
        chain.replies.clear();
        chain.pass(MS * 2);
    }
    let asked = (0..100).find_map(|_| {
        chain.pass(MS);
        let samples = chain.nodes[0].report(chain.now).samples;
        samples.into_iter().find(|it| !it.asked.is_empty()).map(|it| it.asked)
    });
    let asked = asked.expect("a busy partition is told of");
    let at = chain.map.keyspaces[0].match_value(b"k00");
    let scans = asked.iter().filter(|it| **it == at).count();
    assert!((26..=44).contains(&scans), "{scans} of {}", asked.len());
}

#[test]
fn a_hash_keyspace_is_scanned_in_the_order_of_match_values() {
    let mut chain = Chain::of(1, KeyspaceKind::Hash);
    for n in 0..100u64 {
        chain.put(format!("k{n:03}").as_bytes(), &[7; 100]);
    }
    chain.settle();
    chain.replies.clear();
    let keyspace = chain.map.keyspaces[0].clone();
    for (extra, pieces) in [(0, 11), (flag::KEYS_ONLY, 3)] {
        let (mut keys, mut start) = (Vec::<Vec<u8>>::new(), Vec::new());
        let mut flags = extra | flag::START_OPEN | flag::END_OPEN;
        for piece in 1.. {
            let mut header = Header { flags, ..chain.stamped(Op::Range, &start, 1_000) };
            let first = if piece == 1 { 0 } else { header.match_value };
            RangeInterval { first, last: u128::MAX }.put(&mut header);
            chain.send(&header, &[&RangeBody { limit: 1_000 }.to_bytes(), &start]);
            let reply = chain.only_reply();
            let mut rest = &reply.payload[..];
            while let Some((fixed, after)) = wire::RangeEntryBody::split(rest) {
                let (key, after) = after.split_at(usize::from(fixed.key_len));
                assert_eq!(fixed.value_len, if extra == 0 { 100 } else { 0 });
                keys.push(key.to_vec());
                rest = &after[usize::from(fixed.value_len)..];
            }
            if reply.header.flags & flag::PARTIAL == 0 {
                assert!(piece <= pieces, "{piece} pieces");
                break;
            }
            start = keys.last().unwrap().clone();
            flags = extra | flag::START_EXCLUSIVE | flag::END_OPEN;
        }
        let mut want: Vec<_> = (0..100).map(|n| format!("k{n:03}").into_bytes()).collect();
        want.sort_by_key(|key| keyspace.match_value(key));
        assert_eq!(keys, want);
    }
}

#[test]
fn a_count_is_of_the_keys_that_have_a_value() {
    let mut chain = Chain::of(2, KeyspaceKind::Hash);
    for n in 0..1_200u64 {
        chain.put(format!("k{n:04}").as_bytes(), &[7; 10]);
    }
    chain.settle();
    for n in 0..100u64 {
        chain.del(format!("k{n:04}").as_bytes());
    }
    chain.settle();
    chain.replies.clear();
    assert_eq!(count(&mut chain), (1_100, 1), "it is known");
    let tail = chain.nodes[1].replicas.get_mut(&PartitionId(1)).unwrap();
    tail.begin_survey();
    assert_eq!(count(&mut chain), (1_100, 3), "512 records at a time");
}

/// How many keys have a value, and in how many pieces that was said.
fn count(chain: &mut Chain) -> (u64, usize) {
    let (mut keys, mut start, mut pieces) = (0, Vec::new(), 0);
    let mut flags = flag::COUNT_ONLY | flag::START_OPEN | flag::END_OPEN;
    loop {
        let mut header = Header { flags, ..chain.stamped(Op::Range, &start, 1_000) };
        let first = if start.is_empty() { 0 } else { header.match_value };
        RangeInterval { first, last: u128::MAX }.put(&mut header);
        chain.send(&header, &[&RangeBody { limit: 1 }.to_bytes(), &start]);
        let reply = chain.only_reply();
        pieces += 1;
        assert_ne!(reply.header.flags & flag::COUNT_ONLY, 0);
        let (counted, rest) = wire::RangeCountBody::split(&reply.payload).unwrap();
        keys += counted.keys;
        if reply.header.flags & flag::PARTIAL == 0 {
            assert!(rest.is_empty() && reply.header.count == 0);
            return (keys, pieces);
        }
        let (hole, key) = wire::RangeEntryBody::split(rest).unwrap();
        assert_eq!((hole.kind, reply.header.count), (1, 1));
        start = key.to_vec();
        flags = flag::COUNT_ONLY | flag::START_EXCLUSIVE | flag::END_OPEN;
    }
}

fn scan_reply(reply: &Reply, keys: &mut Vec<Vec<u8>>) -> bool {
    let mut datagram = Vec::new();
    let mut count = 0;
    let mut rest = &reply.payload[..];
    while let Some((fixed, after)) = wire::RangeEntryBody::split(rest) {
        count += 1;
        rest = &after[usize::from(fixed.key_len) + usize::from(fixed.value_len)..];
    }
    let header = Header { op: Op::RangeReply as u8, count, ..Header::default() };
    wire::emit(&mut datagram, &header, &[&reply.payload]);
    let Body::RangeReply(entries) = Packet::parse(&datagram).unwrap().body().unwrap() else {
        panic!()
    };
    keys.extend(entries.iter().map(|(key, _)| key.to_vec()));
    count < 100 && !entries.iter().any(|(key, _)| key == b"k099")
}
