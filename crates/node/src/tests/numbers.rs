//! Numbers that cannot be, from whoever pretends to be a member: dropped, counted, and nothing
//! rests on them.

use super::*;
use machine::Rng;
use wire::{
    ChainResult, ChainWrite, ChainWriteBody, CopyEndBody, CopyEntry, DelegateBody, Effect,
    HEADER_LEN, Revision, VERSION_MAX, Version, hop_flag,
};

const MAX: u64 = u64::MAX;

impl Chain {
    /// A message as this member of the chain would send it to that one.
    pub(super) fn forge(&mut self, (from, to): (u16, u16), op: Op, version: u64, parts: &[&[u8]]) {
        let mut header = Header {
            client: 0,
            node: from,
            chain_pos: u8::try_from(to).unwrap(),
            lag: 0,
            key_len: 1,
            ..self.stamped(Op::Put, b"k", 0)
        };
        ChainWrite { version: Version::new(version), unsynced: 0, based: 0 }.put(&mut header);
        let key_len = u16::from(matches!(op, Op::ChainWrite | Op::ChainExpire));
        self.forge_as((from, to), &Header { op: op as u8, key_len, ..header }, parts);
    }

    pub(super) fn forge_as(&mut self, (from, to): (u16, u16), header: &Header, parts: &[&[u8]]) {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, header, parts);
        self.deliver(to.into(), port(100 + from), &datagram);
    }

    fn forge_write(&mut self, way: (u16, u16), version: u64, fixed: ChainWriteBody, value: &[u8]) {
        let fixed = ChainWriteBody { origin: Op::Put as u8, ..fixed };
        self.forge(way, Op::ChainWrite, version, &[&fixed.to_bytes(), b"k", value]);
    }

    fn implausible(&self, node: usize) -> u64 {
        self.nodes[node].counters().dropped(DropReason::Implausible)
    }

    /// Writes are acknowledged, and there afterwards on whoever is left.
    fn works(&mut self) {
        for n in 0..20u32 {
            let key = format!("w{n}");
            self.put(key.as_bytes(), b"v");
            self.run();
            let reply = self.replies.pop().expect("an answer");
            assert_eq!(reply.code, Code::Ok);
            assert!(reply.version < 1_000, "{}", reply.version);
            self.replies.clear();
        }
        self.reconfigure(&[1, 2], false, &[2, 1], false);
        for n in 0..20u32 {
            assert_eq!(self.get(format!("w{n}").as_bytes()).as_deref(), Some(&b"v"[..]));
        }
    }
}

#[test]
fn nothing_is_stable_that_is_above_the_newest_version() {
    for version in [2, 1 << 40, MAX - 1, MAX] {
        let mut chain = Chain::new(3);
        chain.put(b"a", b"1");
        chain.run();
        chain.forge((0, 1), Op::ChainStable, version, &[&[0; 8]]);
        chain.forge((0, 2), Op::ChainStable, version, &[&[0; 8]]);
        assert_eq!((chain.implausible(1), chain.implausible(2)), (1, 1));
        chain.replies.clear();
        chain.works();
    }
}

#[test]
fn no_write_is_further_ahead_than_what_may_be_pending() {
    let put = ChainWriteBody { effect: Effect::Put as u8, ..ChainWriteBody::default() };
    let far = [0, 1 << 50, VERSION_MAX as u64 + 1, MAX - 1, MAX];
    let mut cases: Vec<(u64, ChainWriteBody)> = far.map(|version| (version, put)).into();
    cases.push((1, ChainWriteBody { stable: Version::new(2), ..put }));
    cases.push((1, ChainWriteBody { stable: Version::new(MAX), ..put }));
    cases.push((1, ChainWriteBody { base: Version::new(1), ordered: 1, ..put }));
    cases.push((1, ChainWriteBody { base: Version::new(MAX), ordered: 1, ..put }));
    for (version, fixed) in cases {
        let mut chain = Chain::new(3);
        chain.forge_write((0, 1), version, fixed, b"v");
        chain.forge_write((1, 2), version, fixed, b"v");
        assert_eq!((chain.implausible(1), chain.implausible(2)), (1, 1), "{version} {fixed:?}");
        assert!(chain.wires.is_empty() && chain.replies.is_empty());
        chain.works();
    }
}

#[test]
fn no_delegation_and_no_generation_has_a_number_that_no_clock_comes_to() {
    for effect in [Effect::Register, Effect::Delegate, Effect::Recall] {
        for result in [MAX, MAX - 1, 1 << 47] {
            let mut chain = Chain::new(3);
            let fixed = ChainWriteBody {
                effect: effect as u8,
                result: ChainResult::new(result),
                ordered: 1,
                ..Default::default()
            };
            let leave = DelegateBody { switch: 1, replicas: 1 }.to_bytes();
            chain.forge_write((1, 2), 1, fixed, &[&leave[..], &[7]].concat());
            assert_eq!(chain.implausible(2), 1, "{effect:?} {result}");
            assert_eq!(chain.nodes[2].report(chain.now).hot_known, Revision::NONE);
            chain.works();
        }
    }
}

#[test]
fn a_learner_takes_no_counters_that_contradict_each_other() {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    chain.put(b"a", b"1");
    chain.run();
    chain.take_in_third();
    chain.wires.clear();
    let end = CopyEndBody {
        last_version: Version::new(5),
        stable: Version::new(3),
        collected: Version::new(1),
        ..CopyEndBody::default()
    };
    for end in [
        CopyEndBody { last_version: Version::new(MAX), ..end },
        CopyEndBody { stable: Version::new(6), ..end },
        CopyEndBody { collected: Version::new(MAX), ..end },
        CopyEndBody { forgotten: Version::new(MAX), ..end },
    ] {
        let mut payload = Vec::new();
        assert!(CopyEntry::End(end).push(&mut payload));
        let before = chain.implausible(2);
        chain.forge((1, 2), Op::ChainCopy, 1, &[&payload]);
        assert_eq!(chain.implausible(2), before + 1, "{end:?}");
        assert!(!chain.caught_up(2));
    }
    chain.forge((0, 2), Op::ChainStable, MAX, &[&[0; 8]]);
    chain.wires.clear();
    chain.run();
    assert!(chain.caught_up(2));
    chain.put(b"b", b"1");
    chain.run();
    assert!(chain.replies.pop().unwrap().version < 10);
}

#[test]
fn no_forged_number_ends_a_node_and_later_writes_still_work() {
    let extremes = [0, MAX, MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 62 | 1, 1 << 50];
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut chain = Chain::new(3);
        let mut pick = |most: usize| usize::try_from(rng.below(most as u64)).unwrap();
        for _ in 0..300 {
            let way = [(0, 1), (1, 2), (1, 0), (2, 1), (0, 2)][pick(5)];
            let op = [
                Op::ChainWrite,
                Op::ChainAck,
                Op::ChainCommit,
                Op::ChainStable,
                Op::ChainExpire,
                Op::HotCopy,
                Op::DelegationFetch,
                Op::DelegationFound,
                Op::DelegationEnd,
                Op::DelegationCommit,
                Op::DelegationWrite,
                Op::DelegationDurable,
                Op::ChainCopied,
            ][pick(13)];
            let effect = u8::try_from(pick(9)).unwrap();
            let (base, stable, expiry_ms) =
                (extremes[pick(7)], extremes[pick(7)], extremes[pick(7)]);
            let (result, origin) = (extremes[pick(7)], Op::Put as u8);
            let fixed = ChainWriteBody {
                base: Version::new(base),
                stable: Version::new(stable),
                expiry_ms,
                result: ChainResult::new(result),
                origin,
                effect,
                ordered: 1,
            };
            let bytes = fixed.to_bytes();
            let (first, second) =
                (extremes[pick(7)].to_be_bytes(), extremes[pick(7)].to_be_bytes());
            let payload: &[&[u8]] = match op {
                Op::ChainWrite => &[&bytes, b"k", &first],
                Op::ChainStable => &[&first],
                Op::ChainExpire => &[b"k"],
                Op::HotCopy => &[&[0], &first, b"k", b"v"],
                Op::DelegationFetch => &[&first, &second, b"k"],
                Op::DelegationFound => &[&first, &[0], b"k", b"v"],
                Op::DelegationEnd | Op::DelegationCommit | Op::DelegationDurable => &[&first, b"k"],
                Op::DelegationWrite => &[&[1], b"k", &first],
                _ => &[],
            };
            let key_len = u16::from(!payload.is_empty());
            let mut header = Header {
                client: 0,
                seq: extremes[pick(7)],
                lag: u16::try_from(pick(1 << 16)).unwrap(),
                node: way.0,
                chain_pos: u8::try_from(way.1).unwrap(),
                op: op as u8,
                key_len,
                ..chain.stamped(Op::Put, b"k", 0)
            };
            ChainWrite { version: Version::new(extremes[pick(7)]), unsynced: 0, based: 0 }
                .put(&mut header);
            chain.forge_as(way, &header, payload);
            chain.wires.clear();
        }
        chain.replies.clear();
        chain.works();
    }
}

#[test]
fn a_store_that_was_poisoned_does_not_end_the_node() {
    let mut engine = Noted::new(0);
    let id = PartitionId(1);
    let max = [MAX.to_be_bytes(); 5].concat();
    crate::engine::Engine::note(&mut engine, id, b"c", Some(&max));
    let nobody = PartitionId(u32::MAX);
    crate::engine::Engine::note(&mut engine, nobody, b"o", Some(&max[..24]));
    let Chain { map, now, .. } = Chain::new(1);
    let mut node = Node::new(config(0, 0), engine, now);
    node.install(now, &map.assignment(NodeId(0), StoreId(0), port(SWITCH)));
    node.renew(&Lease {
        cluster: ClusterId(1),
        incarnation: Incarnation(0),
        revision: Revision::new(1),
        from: now,
        duration_ms: 1 << 40,
    });
    let chain = Chain::new(1);
    let header = chain.stamped(Op::Put, b"k", 1);
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[&PutBody::default().to_bytes(), b"k", b"v"]);
    node.handle_packet(now, port(SWITCH), 0, &datagram);
    node.handle_timeout(now + Duration::from_secs(5));
    node.flush().unwrap();
    let reply = Packet::parse(node.poll_transmit().unwrap().payload).unwrap().header()[118];
    assert_eq!(Code::from_wire(reply), Some(Code::Overloaded), "it can number no more");
    assert_eq!(node.report(now).hot_known, Revision::NONE);
}

#[test]
fn notes_of_a_store_that_make_no_sense_are_counted_and_left_out() {
    let mut chain = Chain::new(3);
    chain.put(b"k", b"v");
    chain.run();
    let impossible = [MAX.to_be_bytes(); 4].concat();
    let notes: [(&[u8], &[u8]); 9] = [
        (b"c", b"short"),
        (b"f", b"short"),
        (b"e1234567", &[0; 8]),
        (b"gno part", &[]),
        (b"v1", &[]),
        (b"p12345678", b"no packet"),
        (b"s12345678", &[0; 8]),
        (b"mkey", &impossible),
        (b"tkey", &impossible),
    ];
    for (name, note) in notes {
        crate::engine::Engine::note(chain.nodes[1].engine_mut(), PartitionId(1), name, Some(note));
    }
    chain.restart(1);
    chain.run();
    assert_eq!(chain.nodes[1].counters().notes_ignored, notes.len() as u64);
    assert_eq!(chain.nodes[0].counters().notes_ignored, 0);
    chain.works();
}

#[test]
fn who_asks_without_a_switch_is_answered_where_it_asks_from() {
    let mut chain = Chain::new(1);
    let stamped = chain.stamped(Op::Get, b"k", 1);
    for (op, parts) in [
        (Op::Get, vec![&b"k"[..]]),
        (Op::Put, vec![&[0; 8][..], b"k", b"v"]),
        (Op::Del, vec![&b"k"[..]]),
    ] {
        let hop_flags = hop_flag::DIRECT;
        let header = Header { op: op as u8, hop_flags, seq: op as u64, ..stamped };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &parts);
        chain.nodes[0].handle_packet(chain.now, port(33), 0, &datagram);
        chain.nodes[0].flush().unwrap();
        let reply = chain.nodes[0].poll_transmit().expect("an answer");
        assert_eq!(reply.to, port(33), "{op:?} names somebody else");
    }
}

/// Numbers at their ends in whatever place, from the switch and from members: none is reckoned with
/// wrongly, and none leaves the partition with versions that nobody can go on from.
#[test]
fn no_number_in_any_place_of_any_packet_ends_a_node() {
    for position in 0..3 {
        let mut chain = Chain::new(3);
        chain.put(b"k", b"v");
        chain.settle();
        chain.replies.clear();
        for op in Op::ALL {
            let mut stamped = chain.stamped(op, b"k", 1);
            stamped.set_chain([0, 1, 2]);
            stamped.chain_pos = u8::try_from(position).unwrap();
            ChainWrite { version: Version::new(1), unsynced: 0, based: 0 }.put(&mut stamped);
            let mut bytes = [0; HEADER_LEN];
            stamped.write(&mut bytes);
            for (at, len) in (4..HEADER_LEN).flat_map(|at| [1, 2, 4, 8].map(|len| (at, len))) {
                for (first, rest) in [(0, 0), (0, 1), (0xff, 0xff), (0x7f, 0xff), (0x80, 0)] {
                    let mut changed = bytes;
                    let Some(field) = changed.get_mut(at..at + len) else { continue };
                    field.fill(rest);
                    field[0] = first;
                    let header = Header { op: op as u8, ..Header::read(&changed) };
                    for body in [&[0; 60][..], &[0xff; 60]] {
                        let mut datagram = Vec::new();
                        wire::emit(&mut datagram, &header, &[body, b"k", b"v"]);
                        for from in [port(SWITCH), port(100), port(101), port(102)] {
                            let (now, node) = (chain.now, &mut chain.nodes[position]);
                            node.handle_packet(now, from, u16::MAX, &datagram);
                            node.flush().unwrap();
                            while node.poll_transmit().is_some() {}
                        }
                    }
                }
            }
        }
        let now = chain.now + Duration::from_secs(10);
        let node = &mut chain.nodes[position];
        node.handle_timeout(now);
        node.flush().unwrap();
        assert!(
            node.replicas[&PartitionId(1)].last_version
                < Version::new(wire::VERSION_MAX as u64 / 2)
        );
    }
}
