//! What passes no switch, or none that looks into it: it shows what is published.

use super::*;
use crate::hot::deferred::DEFERRED_MAX;
use wire::{Generation, HotAnswer, Version};

#[test]
fn what_the_switch_does_not_look_into_shows_only_what_is_published() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    chain.put(b"i", b"1");
    chain.settle();
    chain.replies.clear();
    let version = chain.get_hot(TAIL, 0, GENERATION).version;
    chain.ask_mget(TAIL, None);
    chain.ask_range(b"h", 9, flag::END_OPEN);
    assert_eq!((chain.replies.len(), chain.publishes().len()), (0, 1), "one at a time");
    assert_eq!(chain.range(b"i", 9, flag::END_OPEN).code, Code::Ok, "the key lies before it");
    chain.settle();
    let reply = chain.replies.pop().unwrap();
    assert_eq!((reply.code, reply.header.count), (Code::Ok, 2));
    assert_eq!(chain.answered(), (Code::Ok, version));
    assert_eq!(chain.mget(TAIL, None), (Code::Ok, version), "at once");
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::Ok);
    chain.del(HOT);
    chain.settle();
    chain.replies.clear();
    chain.ask_range(b"h", 9, flag::END_OPEN);
    assert!(chain.replies.is_empty(), "nor leaves it out");
    chain.wires.clear(); // The HOT_PUBLISH is lost.
    chain.ask_mget(TAIL, None);
    assert_eq!((chain.replies.len(), chain.publishes().len()), (0, 0));
    chain.pass(50 * MS);
    chain.ask_mget(TAIL, None);
    assert_eq!((chain.replies.len(), chain.publishes().len()), (0, 1), "asked for again");
    chain.mutant(Mutant::ShowUnpublished);
    assert_eq!(chain.mget(TAIL, None).0, Code::NotFound);
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::Ok);
}

/// The switch would not learn it from the answers.
#[test]
fn with_what_is_shown_unseen_a_tail_vouches_for_the_key_once_in_each_generation() {
    let mut chain = Chain::hot();
    let vouched = |chain: &Chain| {
        let says = |it: &Header| {
            (it.hop_flags & hop_flag::NEWEST != 0, HotAnswer::of(it).generation.get())
        };
        chain.publishes().iter().map(says).collect::<Vec<_>>()
    };
    chain.ask_mget(TAIL, None);
    assert_eq!(vouched(&chain), [(true, GENERATION)]);
    chain.settle();
    assert_eq!(chain.answered(), (Code::Ok, 1));
    assert_eq!((chain.mget(TAIL, None), chain.publishes().len()), ((Code::Ok, 1), 0), "once");
    chain.order_hot(GENERATION + 1, &[(HOT, GENERATION + 1)]);
    chain.run();
    assert_eq!(chain.mget(TAIL, None), (Code::Ok, 1), "at once, for it is published");
    assert_eq!(vouched(&chain), [(true, GENERATION + 1)], "but the entry is another");
    chain.wires.clear();
    chain.pass(50 * MS);
    assert_eq!(chain.mget(TAIL, None), (Code::Ok, 1));
    assert_eq!(vouched(&chain), [(true, GENERATION + 1)], "that one was lost");
    chain.settle();
    chain.put(HOT, b"2");
    chain.settle();
    chain.replies.clear();
    chain.ask_mget(TAIL, None);
    chain.settle();
    let (code, version) = chain.answered();
    assert_eq!((code, version > 1), (Code::Ok, true));
    chain.order_hot(GENERATION + 2, &[(HOT, GENERATION + 2)]);
    chain.mutant(Mutant::PublishUnproven);
    chain.run();
    assert_eq!((chain.mget(TAIL, None), chain.publishes().len()), ((Code::Ok, version), 0));
}

#[test]
fn a_reader_that_a_multiget_asks_in_vain_says_so_to_the_switch() {
    let mut chain = Chain::hot();
    assert_eq!((chain.mget(READER, Some(1)), chain.publishes().len()), ((Code::Ok, 1), 0));
    assert_eq!(chain.mget(READER, Some(2)).0, Code::NotHere);
    let [header] = chain.publishes()[..] else { panic!("it says nothing") };
    let says = (header.code, header.hop_flags, header.node, HotAnswer::of(&header).version);
    assert_eq!(says, (Code::NotHere as u8, 0, 1, Version::NONE));
    assert_eq!(
        (HotAnswer::of(&header).generation, header.keyhash),
        (Generation::new(GENERATION), chain.map.keyspaces[0].keyhash(HOT))
    );
    let dropped = |chain: &Chain| {
        let counters = chain.nodes[READER].counters();
        [DropReason::NotFromMember, DropReason::BadBody].map(|it| counters.dropped(it))
    };
    let before = dropped(&chain);
    chain.settle();
    assert_eq!(dropped(&chain), before, "it comes back, and says nothing new");
    chain.put(HOT, b"2");
    chain.settle();
    chain.replies.clear();
    assert_eq!(chain.mget(READER, Some(1)).0, Code::NotHere);
    assert_eq!(chain.publishes().len(), 0, "it has a newer one");
}

/// Whoever were told to ask again would find a newer one each time.
#[test]
fn a_key_that_is_written_faster_than_publishes_travel_is_shown_as_it_was() {
    let mut chain = Chain::hot();
    let write = |chain: &mut Chain, value: &[u8]| {
        chain.put(HOT, value);
        chain.settle_but(Op::HotPublish);
        chain.replies.pop().unwrap().version
    };
    let first = write(&mut chain, b"2");
    chain.ask_range(b"h", 9, flag::END_OPEN);
    let second = write(&mut chain, b"3");
    chain.ask_mget(TAIL, None);
    write(&mut chain, b"4");
    assert_eq!((chain.replies.len(), chain.publishes().len()), (0, 1));
    chain.deliver_wire(0);
    let range = chain.only_reply();
    let (entry, rest) = wire::RangeEntryBody::split(&range.payload).unwrap();
    assert_eq!(
        (entry.version, rest),
        (Version::new(first), &b"hot2"[..]),
        "as it was when that was asked"
    );
    assert_eq!(chain.publishes().len(), 1, "of what the MGET shows");
    chain.deliver_wire(0);
    assert_eq!(chain.answered(), (Code::Ok, second));
    assert_eq!(chain.publishes().len(), 0, "nobody has been shown the last one");
}

#[test]
fn an_answer_waits_for_all_that_it_shows_and_not_behind_another_epoch() {
    const OTHER: &[u8] = b"j";
    let mut chain = Chain::hot();
    chain.put(OTHER, b"1");
    chain.settle();
    chain.order_hot(GENERATION + 1, &[(HOT, GENERATION), (OTHER, GENERATION + 1)]);
    chain.run();
    chain.put(HOT, b"2");
    chain.put(OTHER, b"2");
    chain.settle();
    chain.replies.clear();
    chain.ask_range(b"h", 9, flag::END_OPEN);
    assert_eq!(chain.publishes().len(), 2);
    chain.deliver_wire(0);
    assert!(chain.replies.is_empty(), "half of it");
    chain.deliver_wire(0);
    assert_eq!(chain.only_reply().header.count, 2);
    chain.put(HOT, b"3");
    chain.settle();
    chain.replies.clear();
    chain.ask_range(b"h", 9, flag::END_OPEN);
    let publish = chain.wires.pop_front().unwrap().2;
    chain.reconfigure(&[0, 1, 2], false, &[0, 1, 2], false);
    chain.deliver(TAIL, port(SWITCH), &publish);
    assert!(chain.replies.is_empty(), "that was the last one's");
}

#[test]
fn only_so_many_answers_wait() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    chain.settle();
    chain.replies.clear();
    for _ in 0..DEFERRED_MAX {
        chain.ask_mget(TAIL, None);
    }
    assert!(chain.replies.is_empty());
    assert_eq!(chain.mget(TAIL, None).0, Code::NotHere);
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::NotHere);
    chain.wires.clear();
    chain.pass(20 * MS);
    chain.ask_range(b"h", 9, flag::END_OPEN);
    assert!(chain.replies.is_empty(), "the clients of those have asked again");
    chain.pass(20 * MS);
    chain.ask_mget(TAIL, None);
    chain.settle();
    assert_eq!(chain.replies.len(), 2, "what has waited long is no worse than a slow way");
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
    chain.ask_range(b"", 2, open);
    assert!(chain.replies.is_empty());
}

#[test]
fn a_range_does_not_leave_out_a_hot_value_whose_time_has_come() {
    let mut chain = Chain::hot();
    let (seq, expiry_ms) = (chain.next(), chain.now.unix_ms() + 50);
    chain.put_again(seq, HOT, b"2", expiry_ms);
    chain.settle();
    chain.replies.clear();
    chain.ask_mget(TAIL, None);
    chain.settle();
    assert_eq!(chain.answered().0, Code::Ok);
    chain.now = chain.now + 50 * MS;
    assert_eq!(chain.range(b"h", 9, flag::END_OPEN).code, Code::NotHere);
    chain.settle(); // The head has written a tombstone, which is to be published, too.
    chain.ask_range(b"h", 9, flag::END_OPEN);
    assert!(chain.replies.is_empty());
    chain.settle();
    let reply = chain.only_reply();
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
    chain.mutant(Mutant::ShowUnpublished);
    assert_eq!(chain.mget(READER, Some(1)), (Code::Ok, version));
    assert_eq!(chain.mget(READER, None).0, Code::NotOwner, "without a floor it is no reader");
}

/// So it is asked while the key is to be delegated and has not left.
#[test]
fn a_tail_shows_in_an_mget_the_floor_that_it_is_asked_for_or_what_is_published() {
    let mut chain = Chain::hot();
    assert_eq!(chain.mget(TAIL, Some(1)), (Code::Ok, 1));
    chain.put(HOT, b"2");
    chain.settle();
    let version = chain.only_reply().version;
    assert_eq!(chain.mget(TAIL, Some(version)), (Code::Ok, version));
    chain.ask_mget(TAIL, Some(1));
    assert!(chain.replies.is_empty(), "who knows of the newer one?");
    chain.settle();
    assert_eq!(chain.answered(), (Code::Ok, version), "the switch does by now");
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
    chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
    let body = PutBody::default().to_bytes();
    let pending = chain.nodes[0].pending();
    let refused = ask(&mut chain, 0, put, &[&body, HOT, b"2"]);
    assert_eq!(refused, Some(Code::NotHere), "the registration is on its way");
    assert_eq!(chain.nodes[0].pending(), pending);
    chain.run();
    assert_eq!(ask(&mut chain, TAIL, get, &[HOT]), Some(Code::NotHere));
    let hot = Header { hop_flags: hop_flag::HOT, ..get };
    assert_eq!(ask(&mut chain, READER, hot, &[HOT]), Some(Code::NotOwner));
}

#[test]
fn that_there_is_no_value_is_told_when_it_is_published_what_took_it_away() {
    let mut chain = Chain::hot();
    chain.del(HOT);
    chain.settle_without(Op::HotCopied); // Its own answer is held back.
    assert!(chain.replies.is_empty());
    chain.lag = 100;
    chain.del(HOT);
    let seq = chain.seq;
    chain.settle_without(Op::HotPublish);
    assert!(chain.replies.is_empty(), "version 0 would tell the switch nothing");
    chain.pass(25 * MS);
    chain.settle_without(Op::HotPublish);
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
    chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
    chain.run();
    chain.replies.clear();
    for node in [READER, TAIL] {
        let reply = chain.get_hot(node, 2, GENERATION);
        assert_eq!((reply.code, reply.version), (Code::NotFound, 2), "node {node}");
    }
}

/// Delivers everything, and gives what of it says something of copies, with the rate in it.
fn said_of_copies(chain: &mut Chain) -> Vec<(Op, u8, u32)> {
    let mut said = Vec::new();
    while let Some((_, _, bytes)) = chain.wires.front() {
        let header = Header::read(Packet::parse(bytes).unwrap().header());
        let op = Op::from_wire(header.op).unwrap();
        if matches!(op, Op::HotCopied | Op::HotPublish) {
            let (rate, _) = header.chain.split_first_chunk().unwrap();
            said.push((op, header.chain_len, u32::from_be_bytes(*rate)));
        }
        chain.deliver_wire(0);
    }
    said
}

#[test]
fn copies_and_publishes_say_what_the_node_can_serve() {
    let mut chain = Chain::hot();
    chain.put(HOT, b"2");
    assert_eq!(said_of_copies(&mut chain), [(Op::HotCopied, 0, RATE); 2]);
    chain.replies.clear();
    chain.ask_mget(TAIL, None);
    assert_eq!(said_of_copies(&mut chain), [(Op::HotPublish, 0, RATE)]);
}

#[test]
fn copies_and_publishes_are_taken_from_whom_they_may_come() {
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
    chain.replies.clear();
    chain.ask_mget(TAIL, None);
    let (_, _, publish) = chain.wires.pop_back().unwrap();
    chain.deliver(TAIL, port(200), &publish);
    assert_eq!(dropped(&chain, TAIL), [0, 1]);
    assert!(chain.replies.is_empty());
    chain.deliver(TAIL, port(SWITCH), &publish);
    assert_eq!(chain.answered().0, Code::Ok);
    assert_eq!(chain.mget(TAIL, None).0, Code::Ok);
}
