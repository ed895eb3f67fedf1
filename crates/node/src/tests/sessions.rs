//! Clients beyond what a partition remembers: somebody is forgotten, and nothing is done twice.

use super::*;
use crate::replica::sessions::table::KEPT;
use wire::{Fields as _, Revision, SinceBody, Version};

const ROOM: usize = 8;
const LONG: Duration = Duration::from_millis(KEPT.as_millis() as u64 + 1_000);

impl Chain {
    fn of_few_clients(count: u16) -> Self {
        let mut chain = Self::new(count);
        chain.nodes.iter_mut().for_each(|node| node.set_sessions_max(ROOM));
        chain
    }

    /// One INCR of the same key by this client, perhaps with `since` and `next`.
    fn incr_as(&mut self, client: u64, seq: u64, since: Option<(u64, u64)>) -> Option<Reply> {
        let mut header = Header { client, ..self.stamped(Op::Incr, b"n", seq) };
        let body = IncrBody { delta: 1 }.to_bytes();
        let last =
            since.map(|(since, next)| SinceBody { since: Version::new(since), next }.to_bytes());
        header.flags = if last.is_some() { flag::SINCE } else { 0 };
        self.send(&header, &[&body, b"n", last.as_ref().map_or(&[], |it| &it[..])]);
        self.settle();
        self.replies.pop()
    }

    fn code_as(&mut self, client: u64, seq: u64, since: Option<(u64, u64)>) -> Code {
        self.incr_as(client, seq, since).expect("an answer").code
    }

    /// So many clients that the first of them are forgotten: gives the number of increments.
    fn crowd(&mut self) -> u64 {
        for client in 1..=ROOM as u64 {
            assert_eq!(self.code_as(client, 1, None), Code::Ok);
        }
        self.pass(LONG);
        self.settle();
        assert_eq!(self.code_as(ROOM as u64 + 1, 1, None), Code::Ok, "somebody goes");
        ROOM as u64 + 1
    }

    fn sum(&mut self) -> u64 {
        String::from_utf8(self.get(b"n").unwrap()).unwrap().parse().unwrap()
    }
}

#[test]
fn room_is_made_for_new_clients_by_forgetting_who_was_heard_longest_ago() {
    let mut chain = Chain::of_few_clients(3);
    let mut sum = chain.crowd();
    for client in 100..200 {
        let told = chain.incr_as(client, 1, None).unwrap();
        assert_eq!(told.code, Code::NoSession);
        let reply = chain.incr_as(client, 1, Some((told.version, 2))).unwrap();
        sum += u64::from(reply.code == Code::Ok);
        assert!(matches!(reply.code, Code::Ok | Code::Overloaded), "{reply:?}");
        chain.pass(LONG / 4);
        chain.settle();
    }
    assert!(sum > 100, "{sum}");
    assert_eq!(chain.sum(), sum);
    for node in &chain.nodes {
        assert!(node.sessions() <= ROOM, "{}", node.sessions());
        assert!(node.counters().sessions_forgotten > 50);
    }
}

#[test]
fn who_was_heard_a_moment_ago_is_not_forgotten() {
    let mut chain = Chain::of_few_clients(2);
    for client in 1..=ROOM as u64 {
        assert_eq!(chain.code_as(client, 1, None), Code::Ok);
    }
    assert_eq!(chain.code_as(99, 1, None), Code::Overloaded);
    // While it is sure that it was not taken, it learns how to say so later.
    let told = chain.incr_as(99, 1, None).unwrap();
    assert_eq!(told.code, Code::NoSession);
    let since = Some((told.version, 2));
    chain.pass(KEPT);
    chain.settle();
    assert_eq!(chain.code_as(99, 1, since), Code::Overloaded);
    assert_eq!(chain.incr_as(1, 1, None).unwrap().code, Code::Ok, "a retry is answered");
    assert_eq!(chain.code_as(2, 2, None), Code::Ok, "all is known of this one");
    chain.pass(Duration::from_millis(100));
    chain.settle();
    assert_eq!(chain.code_as(99, 1, since), Code::Ok);
    assert_eq!(chain.sum(), ROOM as u64 + 2);
}

#[test]
fn a_late_copy_of_a_forgotten_client_is_never_taken() {
    let mut chain = Chain::of_few_clients(3);
    let mut sum = chain.crowd();
    let told = chain.incr_as(1, 1, None).unwrap();
    assert_eq!(told.code, Code::NoSession, "it may have been applied");
    assert_eq!(chain.sum(), sum);
    // The client goes on: what it sends from now on, and only that, is certainly new.
    chain.lag = 2;
    assert_eq!(chain.code_as(1, 3, Some((told.version, 4))), Code::Ok);
    assert_eq!(chain.code_as(1, 2, None), Code::NoSession);
    assert_eq!(chain.code_as(1, 4, None), Code::Ok);
    sum += 2;
    assert_eq!(chain.sum(), sum);
    // It is forgotten once more, with what it sent since.
    for client in 50..50 + 2 * ROOM as u64 {
        chain.pass(LONG);
        chain.settle();
        let told = chain.incr_as(client, 3, None).unwrap();
        assert_eq!(told.code, Code::NoSession);
        assert_eq!(chain.code_as(client, 3, Some((told.version, 4))), Code::Ok);
        sum += 1;
    }
    for (seq, since) in [(1, None), (3, Some((told.version, 4))), (4, None)] {
        let code = chain.code_as(1, seq, since);
        assert!(matches!(code, Code::NoSession | Code::Uncertain), "{code:?}");
    }
    assert_eq!(chain.sum(), sum);
}

#[test]
fn a_version_that_was_never_there_proves_nothing() {
    let mut chain = Chain::of_few_clients(2);
    let sum = chain.crowd();
    for since in [0, 1, sum + 1, u64::MAX] {
        assert_eq!(chain.code_as(1, 1, Some((since, 2))), Code::Uncertain, "{since}");
    }
    assert_eq!(chain.sum(), sum);
}

#[test]
fn a_learner_knows_that_clients_were_forgotten() {
    let mut chain = Chain::of_few_clients(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    let sum = chain.crowd();
    chain.reconfigure(&[0, 1], false, &[0, 1, 2], true);
    assert!(chain.caught_up(2));
    chain.reconfigure(&[0, 1, 2], false, &[2, 0, 1], false);
    assert_eq!(chain.code_as(1, 1, None), Code::NoSession);
    let last = ROOM as u64 + 1;
    assert_eq!(chain.code_as(last, 1, None), Code::Ok, "this one it knows");
    assert_eq!(chain.code_as(last, 2, None), Code::NoSession, "by what the tail knew");
    assert_eq!(chain.sum(), sum);
}

/// A node that is started anew for each packet, with what the one before it had on record.
struct Restarted {
    map: Map,
    now: Instant,
    engine: Option<Noted>,
    /// Clients that had ended for the last one.
    ended: usize,
}

impl Restarted {
    fn new() -> Self {
        let Chain { map, now, .. } = Chain::new(1);
        Self { map, now, engine: Some(Noted::new(0)), ended: 0 }
    }

    /// What it answers to an INCR, or to a GOODBYE.
    fn ask(&mut self, op: Op, client: u64) -> Option<Code> {
        let mut chain = Chain::new(1);
        chain.map = self.map.clone();
        let header = Header { client, ..chain.stamped(op, b"n", 1) };
        let mut node = Node::new(config(0, 0), self.engine.take().unwrap(), self.now);
        node.set_sessions_max(ROOM);
        node.install(self.now, &self.map.assignment(NodeId(0), StoreId(0), port(SWITCH)));
        let lease = Lease {
            cluster: ClusterId(1),
            incarnation: Incarnation(0),
            revision: Revision::new(1),
            from: self.now,
            duration_ms: 1 << 40,
        };
        node.renew(&lease);
        self.ended = node.sessions_ended();
        // What it finds after a restart it has just heard.
        self.now = self.now + LONG;
        let mut datagram = Vec::new();
        let payload = [&IncrBody { delta: 1 }.to_bytes()[..], b"n"];
        if op == Op::Goodbye {
            wire::emit(&mut datagram, &Header { key_len: 0, ..header }, &[]);
        } else {
            wire::emit(&mut datagram, &header, &payload);
        }
        node.handle_packet(self.now, port(SWITCH), 0, &datagram);
        node.flush().unwrap();
        let code =
            node.poll_transmit().map(|it| Packet::parse(it.payload).unwrap().header().code());
        self.engine = Some(node.into_engine());
        Code::from_wire(code?)
    }
}

#[test]
fn a_node_that_restarts_knows_that_clients_were_forgotten() {
    let mut node = Restarted::new();
    for client in 1..=ROOM as u64 + 1 {
        assert_eq!(node.ask(Op::Incr, client), Some(Code::Ok));
    }
    let again = (1..=ROOM as u64 + 1).map(|client| node.ask(Op::Incr, client).unwrap());
    let codes: Vec<Code> = again.collect();
    assert!(codes.contains(&Code::NoSession) && codes.contains(&Code::Ok), "{codes:?}");
    assert_eq!(node.ask(Op::Incr, 99), Some(Code::NoSession));
}

#[test]
fn a_node_that_restarts_knows_which_clients_have_ended() {
    let mut node = Restarted::new();
    for client in 1..=3 {
        assert_eq!(node.ask(Op::Incr, client), Some(Code::Ok));
    }
    assert_eq!(node.ask(Op::Goodbye, 2), None);
    assert_eq!(node.ask(Op::Incr, 1), Some(Code::Ok), "its outcome is kept");
    assert_eq!(node.ended, 1);
    assert_eq!(node.ask(Op::Incr, 2), None, "a late copy is dropped");
    assert_eq!(node.ask(Op::Goodbye, 1), None);
    assert_eq!(node.ask(Op::Incr, 3), Some(Code::Ok));
    assert_eq!(node.ended, 2);
}

#[test]
fn a_client_that_never_moves_its_mark_is_told_overloaded_and_nobody_else() {
    let mut chain = Chain::new(1);
    let bound = crate::replica::sessions::table::OUTCOMES_MAX as u64;
    for seq in 1..=bound {
        chain.lag = u16::try_from(seq - 1).unwrap();
        assert_eq!(chain.code_as(1, seq, None), Code::Ok);
    }
    chain.lag = u16::try_from(bound).unwrap();
    assert_eq!(chain.code_as(1, bound + 1, None), Code::Overloaded);
    chain.lag = 0;
    assert_eq!(chain.code_as(2, 1, None), Code::Ok);
    assert_eq!(chain.code_as(1, bound + 1, None), Code::Overloaded, "its mark is above by that");
}

impl Chain {
    fn say_goodbye(&mut self, client: u64) {
        let header = Header { client, key_len: 0, ..self.stamped(Op::Goodbye, b"n", 9) };
        self.send(&header, &[]);
        self.settle();
        assert!(self.replies.is_empty(), "nobody waits for an answer");
    }

    fn ended(&self) -> Vec<usize> {
        self.nodes.iter().map(Node::sessions_ended).collect()
    }
}

#[test]
fn who_says_goodbye_takes_no_room_from_others_and_is_never_served_again() {
    let mut chain = Chain::of_few_clients(3);
    for client in 1..=3 * ROOM as u64 {
        assert_eq!(chain.code_as(client, 1, None), Code::Ok, "nobody has to wait for room");
        chain.say_goodbye(client);
    }
    assert_eq!(chain.ended(), [3 * ROOM; 3]);
    for node in &chain.nodes {
        assert_eq!((node.sessions(), node.counters().sessions_forgotten), (0, 0));
    }
    // Neither a late copy nor what was never seen; and nobody is told to say since when.
    for seq in [1, 2] {
        assert_eq!(chain.incr_as(7, seq, None), None);
    }
    assert_eq!(chain.code_as(99, 1, None), Code::Ok);
    assert_eq!(chain.sum(), 3 * ROOM as u64 + 1);
    chain.pass(crate::replica::sessions::table::IDLE_MAX);
    chain.settle();
    assert_eq!(chain.ended(), [0; 3]);
}

#[test]
fn whoever_said_goodbye_first_is_forgotten_like_any_client() {
    let mut chain = Chain::of_few_clients(3);
    let room = crate::replica::sessions::ended::ENDED_PER_SESSION_MAX * ROOM;
    let mut sum = 0;
    for client in 1..=room as u64 + 1 {
        assert_eq!(chain.code_as(client, 1, None), Code::Ok);
        chain.say_goodbye(client);
        sum += 1;
    }
    assert_eq!(chain.ended(), [room; 3]);
    for client in 1..=room as u64 + 1 {
        let reply = chain.incr_as(client, 1, None);
        assert_eq!(reply.map(|it| it.code), (client == 1).then_some(Code::NoSession), "{client}");
    }
    let told = chain.incr_as(99, 1, None).unwrap();
    assert_eq!(told.code, Code::NoSession);
    assert_eq!(chain.code_as(99, 1, Some((told.version, 2))), Code::Ok);
    sum += 1;
    assert_eq!(chain.sum(), sum);
}

#[test]
fn a_learner_is_sent_who_has_said_goodbye() {
    let mut chain = Chain::of_few_clients(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    for client in 1..=3 {
        assert_eq!(chain.code_as(client, 1, None), Code::Ok);
    }
    chain.say_goodbye(1);
    chain.reconfigure(&[0, 1], false, &[0, 1, 2], true);
    assert!(chain.caught_up(2));
    chain.say_goodbye(2);
    chain.reconfigure(&[0, 1, 2], false, &[2, 0, 1], false);
    assert_eq!(chain.ended(), [2, 2, 2]);
    assert_eq!((chain.incr_as(1, 1, None), chain.incr_as(2, 1, None)), (None, None));
    assert_eq!(chain.code_as(3, 1, None), Code::Ok);
    assert_eq!(chain.sum(), 3);
}

#[test]
fn a_goodbye_that_overtakes_the_commit_of_a_write_ends_that_as_well() {
    let mut chain = Chain::of_few_clients(3);
    assert_eq!(chain.code_as(1, 1, None), Code::Ok);
    let body = IncrBody { delta: 1 }.to_bytes();
    let header = Header { client: 1, ..chain.stamped(Op::Incr, b"n", 2) };
    chain.send(&header, &[&body, b"n"]);
    let goodbye = Header { client: 1, key_len: 0, ..chain.stamped(Op::Goodbye, b"n", 3) };
    chain.send(&goodbye, &[]);
    chain.settle();
    assert_eq!(chain.replies.pop().map(|it| it.code), Some(Code::Ok));
    assert_eq!(chain.ended(), [1; 3]);
    assert_eq!(chain.nodes.iter().map(Node::sessions).sum::<usize>(), 0);
    assert_eq!(chain.incr_as(1, 2, None), None);
    assert_eq!(chain.sum(), 2);
}

#[test]
fn a_goodbye_to_the_wrong_place_or_of_another_time_changes_nothing() {
    let mut chain = Chain::of_few_clients(2);
    assert_eq!(chain.code_as(1, 1, None), Code::Ok);
    let right = Header { client: 1, key_len: 0, ..chain.stamped(Op::Goodbye, b"n", 2) };
    let mut short = right;
    short.set_chain([0]);
    for wrong in [
        Header { client: 0, ..right },
        Header { client: 2, ..right },
        Header { epoch: right.epoch + 1, ..right },
        Header { keyspace: right.keyspace + 7, ..right },
        Header { partition: right.partition + 9, ..right },
        short,
    ] {
        chain.send(&wrong, &[]);
        chain.send(&wrong, &[b"n"]);
        chain.settle();
        assert!(chain.replies.is_empty());
        assert_eq!(chain.ended(), [0; 2], "{wrong:?}");
    }
}
