//! Which of its readers the kernel asks for a hot key: those that have less to do, drawn alone, by
//! what they report, and what the processors have sent to them.

use crate::hot::{HOME, INCARNATION, addr, asks, hot_switch, order, rack, reply, says, warm_up};
use crate::stand::{Outcome, Stand, Switch, ready};
use crate::untouched::CLIENT;
use cluster::{
    Delegation, HotOrder, Incarnation, NodeId, NodeSpec, Selection, SwitchControl as _,
    SwitchTables,
};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use testkit::skip;
use wire::{DelegationId, Endpoint, Header, NodeReply, Op, RangeBody, RangeInterval};
use xdp::Program;

#[test]
fn of_two_readers_the_less_busy_is_asked_and_those_without_a_way_are_not() {
    let Some((stand, program)) = ready("choosing readers in the kernel") else { return };
    let mut switch = hot_switch(&stand, program);
    warm_up(&switch, 1);
    reply(&switch, &Header { load: 3, ..says(Op::HotCopied, 2, 5, 1) });
    reply(&switch, &Header { load: 2, ..says(Op::HotCopied, 3, 5, 1) });
    for _ in 0..100 {
        assert_eq!(asks(&switch).0, 3, "that says it has less to do");
    }
    let predicted = HotOrder { selection: Selection::Predicted, ..order(2, 1) };
    switch.plane.install_hot(&predicted).unwrap();
    let mut asked = [0_i32; 4];
    for _ in 0..1_000 {
        asked[usize::from(asks(&switch).0)] += 1;
    }
    assert!((asked[2] - asked[3]).abs() < 200 && asked[HOME as usize] == 0, "{asked:?}");
    let random = HotOrder { selection: Selection::Random, ..order(3, 1) };
    switch.plane.install_hot(&random).unwrap();
    let asked: BTreeSet<u16> = (0..100).map(|_| asks(&switch).0).collect();
    assert_eq!(asked, BTreeSet::from([2, 3]));
    switch.plane.set_way(NodeId(2), 0, [[0; 6]; 2]).unwrap();
    for _ in 0..100 {
        assert_eq!(asks(&switch).0, 3, "the kernel knows no way to the other");
    }
    switch.plane.set_way(NodeId(3), 0, [[0; 6]; 2]).unwrap();
    assert_eq!(asks(&switch).0, HOME);
}

/// What a node reports is more than what has been sent to it here if others send to it, too.
#[test]
fn no_node_has_less_to_do_than_it_has_just_reported() {
    let Some((stand, program)) = ready("predictions of one processor") else { return };
    let mut switch = hot_switch(&stand, program);
    let predicted = HotOrder { selection: Selection::Predicted, ..order(2, 1) };
    switch.plane.install_hot(&predicted).unwrap();
    stay_on(processors()[0]);
    warm_up(&switch, 1);
    say_what_waits(&switch, &[(2, 50), (3, 0)]);
    let asked = asks_many(&switch);
    assert!(asked[3] >= 65 && asked[2] >= 15, "{asked:?}: the first 49, and half of the others");
}

/// What a node says of its copies takes nothing off of what it has to do.
#[test]
fn what_is_said_of_copies_answers_no_request() {
    let Some((stand, program)) = ready("predictions without rates") else { return };
    let mut switch = hot_switch(&stand, program);
    let predicted = HotOrder { selection: Selection::Predicted, ..order(2, 1) };
    switch.plane.install_hot(&predicted).unwrap();
    stay_on(processors()[0]);
    warm_up(&switch, 1);
    reply(&switch, &says(Op::HotCopied, 3, 5, 1));
    for op in [Op::HotCopied, Op::HotPublish] {
        asks_many(&switch);
        (0..60).for_each(|_| reply(&switch, &says(op, 2, 5, 1)));
        let asked = asks_many(&switch);
        assert!((asked[2] - asked[3]).abs() < 10, "{asked:?}: both have as much to do");
    }
}

/// A node that does not say its rate passes for one of the fastest: what somebody has said once
/// makes it as fast for a while, and no longer.
#[test]
fn a_rate_that_was_said_once_is_not_believed_for_ever() {
    let Some((stand, program)) = ready("rates in the kernel") else { return };
    let mut switch = hot_switch(&stand, program);
    let predicted = HotOrder { selection: Selection::Predicted, ..order(2, 1) };
    switch.plane.install_hot(&predicted).unwrap();
    stay_on(processors()[0]);
    warm_up(&switch, 1);
    let say = |rate| {
        let mut said = says(Op::HotCopied, 2, 5, 1);
        NodeReply { rate }.put(&mut said);
        reply(&switch, &said);
        reply(&switch, &Header { load: 60_000, ..says(Op::HotCopied, 3, 5, 1) });
    };
    say(100);
    assert_eq!(asks(&switch).0, 2, "the other has more to do");
    say(wire::RATE_MAX as u32 + 1);
    assert_eq!(asks(&switch).0, 2, "that cannot be");
    say(wire::RATE_MAX as u32);
    say(100);
    assert_eq!(asks(&switch).0, 3, "it passes for as fast as that");
    let forgotten = (0..200).any(|_| {
        std::thread::sleep(TICKS);
        say(100);
        asks(&switch).0 == 2
    });
    assert!(forgotten, "it still does");
}

/// Each processor has its own share of the packets; once a tick it hears of the others'.
#[test]
fn a_processor_knows_what_the_others_have_sent() {
    let Some((stand, program)) = ready("predictions of two processors") else { return };
    let [one, other, ..] = processors()[..] else {
        return skip::report("predictions of two processors", "there is only one");
    };
    let mut switch = hot_switch(&stand, program);
    let predicted = HotOrder { selection: Selection::Predicted, ..order(2, 1) };
    switch.plane.install_hot(&predicted).unwrap();
    stay_on(one);
    warm_up(&switch, 1);
    say_what_waits(&switch, &[(2, 0)]);
    assert_eq!(asks_many(&switch)[2], 90, "nobody else holds it");
    std::thread::sleep(TICKS);
    assert_eq!(asks(&switch).0, 2, "which passes on what was sent before");
    stay_on(other);
    say_what_waits(&switch, &[(2, 0), (3, 0)]);
    let asked = asks_many(&switch);
    assert!(asked[3] >= 75, "{asked:?}: the other has 90 to do, less what it did in {TICKS:?}");
}

/// A few ticks of any kernel.
const TICKS: std::time::Duration = std::time::Duration::from_millis(50);

/// Nodes that serve a hundred requests in a second reply, and have so much to do.
fn say_what_waits(switch: &Switch<'_>, loads: &[(u16, u16)]) {
    for &(node, load) in loads {
        let mut said = Header { load, ..says(Op::HotCopied, node, 5, 1) };
        NodeReply { rate: 100 }.put(&mut said);
        reply(switch, &said);
    }
}

/// How often each node is asked of 90 times.
fn asks_many(switch: &Switch<'_>) -> [i32; 4] {
    let mut asked = [0; 4];
    for _ in 0..90 {
        asked[usize::from(asks(switch).0)] += 1;
    }
    asked
}

/// Those that this thread may run on.
fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|core| allowed.is_set(*core) == Ok(true)).collect()
}

fn stay_on(processor: usize) {
    let mut one = CpuSet::new();
    one.set(processor).unwrap();
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &one).unwrap();
}

/// Readers of the key in the tests below; the first half of them has more to do.
const READERS: RangeInclusive<u16> = 2..=17;

fn is_busy(node: u16) -> bool {
    node <= 9
}

/// A delegation with chains of one.
const DELEGATION: Delegation = Delegation { number: DelegationId::new(2), replicas: 1, copies: 0 };

/// A switch with a key that these nodes may hold.
pub(crate) fn many_hold(
    stand: &Stand,
    program: Program,
    readers: RangeInclusive<u16>,
    selection: Selection,
    delegation: Option<Delegation>,
) -> Switch<'_> {
    let mut switch = hot_switch(stand, program);
    let mut tables: SwitchTables = rack(2);
    let node =
        |id| NodeSpec { id: NodeId(id), endpoint: Endpoint::from(addr(id)), ..tables.nodes[0] };
    let nodes = readers.clone().map(node).collect::<Vec<_>>();
    tables.nodes.truncate(1);
    tables.nodes.extend(nodes);
    switch.install(&tables);
    let mut order = order(2, 2);
    order.places = readers.map(|id| Some((NodeId(id), Incarnation(1)))).collect();
    order.keys[0].readers = u16::try_from(order.places.len()).unwrap();
    order.keys[0].delegation = delegation;
    switch.plane.install_hot(&HotOrder { switch: INCARNATION, selection, ..order }).unwrap();
    reply(&switch, &says(Op::GetReply, HOME, 5, 2));
    switch
}

/// How many of so many reads go to the half that has more to do.
fn asks_the_busy(switch: &Switch<'_>, reads: usize) -> usize {
    let busy = (0..reads).filter(|_| is_busy(asks(switch).0)).count();
    println!("{busy} of {reads} reads go to the half of the nodes that has more to do");
    busy
}

/// The second one that is looked at is no neighbour of the first: nodes that have much to do would
/// be compared with each other then, for they often are neighbours.
#[test]
fn readers_under_a_delegation_are_drawn_alone() {
    let Some((stand, program)) = ready("drawing readers of a delegated key") else { return };
    let switch = many_hold(&stand, program, READERS, Selection::Reported, Some(DELEGATION));
    for node in READERS {
        let load = if is_busy(node) { 9 } else { 0 };
        reply(&switch, &Header { load, ..says(Op::HotCopied, node, 5, 2) });
    }
    let busy = asks_the_busy(&switch, 4_000);
    assert!((667..1_200).contains(&busy), "of 16 nodes two busy ones: 0.23");
}

/// Where half of the nodes are slow two of those would be all that is looked at for a quarter of
/// the reads. So there may be four.
#[test]
fn more_readers_are_looked_at_if_those_that_were_are_slow() {
    let Some((stand, program)) = ready("choosing among slow readers") else { return };
    let switch = many_hold(&stand, program, READERS, Selection::Predicted, None);
    stay_on(processors()[0]);
    half_is_slow(&switch);
    let busy = asks_the_busy(&switch, 4_000);
    assert!((80..300).contains(&busy), "of 16 nodes four slow ones: 0.04");
}

/// Half of the nodes is slow, and has much to do.
fn half_is_slow(switch: &Switch<'_>) {
    for node in READERS {
        let (rate, load) = if is_busy(node) { (60, 60_000) } else { (200, 0) };
        let mut said = Header { load, ..says(Op::HotCopied, node, 5, 2) };
        NodeReply { rate }.put(&mut said);
        reply(switch, &said);
    }
}

/// Replies come to some processors, and requests to others.
#[test]
fn a_processor_without_replies_knows_how_fast_nodes_are() {
    let Some((stand, program)) = ready("choosing where no replies come") else { return };
    let [one, other, ..] = processors()[..] else {
        return skip::report("choosing where no replies come", "there is one processor");
    };
    let switch = many_hold(&stand, program, READERS, Selection::Predicted, None);
    stay_on(one);
    half_is_slow(&switch);
    std::thread::sleep(TICKS);
    half_is_slow(&switch); // Which passes on what it has heard before.
    stay_on(other);
    let busy = asks_the_busy(&switch, 2_000);
    assert!((40..150).contains(&busy), "of 16 nodes four slow ones: 0.04");
}

/// As many as there are holders for, and numbers that are no powers of two.
#[test]
fn each_of_many_readers_is_asked() {
    for delegation in [None, Some(DELEGATION)] {
        for last in [18, 42, 65] {
            let Some((stand, program)) = ready("many readers in the kernel") else { return };
            let switch = many_hold(&stand, program, 2..=last, Selection::Random, delegation);
            (2..=last).for_each(|node| reply(&switch, &says(Op::HotCopied, node, 5, 2)));
            let asked: BTreeSet<u16> = (0..2_000).map(|_| asks(&switch).0).collect();
            assert_eq!(asked, (2..=last).collect(), "{delegation:?}");
            reply(&switch, &says(Op::PutReply, HOME, 6, 2));
            reply(&switch, &says(Op::HotCopied, last, 6, 2));
            let asked: BTreeSet<u16> = (0..500).map(|_| asks(&switch).0).collect();
            let found = if delegation.is_some() { vec![last] } else { vec![HOME, last] };
            assert_eq!(asked, found.into_iter().collect(), "one alone holds it: {delegation:?}");
        }
    }
}

#[test]
fn pieces_of_a_range_count_where_they_go() {
    let Some((stand, program)) = ready("ranges in the kernel's predictions") else { return };
    let mut switch = hot_switch(&stand, program);
    let mut tables: SwitchTables = rack(2);
    tables.partitions.iter_mut().for_each(|partition| partition.chain = vec![NodeId(2)]);
    switch.install(&tables);
    let predicted = HotOrder { selection: Selection::Predicted, ..order(2, 1) };
    switch.plane.install_hot(&predicted).unwrap();
    stay_on(processors()[0]);
    warm_up(&switch, 1);
    say_what_waits(&switch, &[(2, 0), (3, 0)]);
    let mut header = Header { op: Op::Range as u8, keyspace: 1, count: 1, ..Header::default() };
    RangeInterval { first: 0, last: u128::MAX }.put(&mut header);
    let mut range = Vec::new();
    wire::emit(&mut range, &header, &[&RangeBody { limit: 1 }.to_bytes()]);
    let client = Endpoint::from(SocketAddr::from((CLIENT.0, CLIENT.1)));
    for _ in 0..60 {
        let Outcome::Dealt(sent) = switch.process(client, &range) else { panic!("left") };
        assert_eq!((sent.len(), sent[0].0), (1, Endpoint::from(addr(2))));
    }
    let asked = asks_many(&switch);
    assert!(asked[3] >= 60, "{asked:?}: the first 59, and half of the others");
}
