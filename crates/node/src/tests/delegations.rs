//! Scripts of delegations: a key leaves its home, its writes go anywhere, and it returns.

mod early;
mod recall;

use super::hot::HOT;
use super::*;
use crate::hot::delegation::orders::OrdersGiven;
use crate::hot::delegation::records::SPAN;
use cluster::{Delegation, HotEntry, HotOrder, Mutant};
use wire::{
    DelegatedReply, DelegationId, DirectoryClock, Generation, GrantedPut, HomeWrite, HotAnswer,
    HotGet, Revision, Version, hop_flag,
};

const GENERATION: u64 = 10;
const DELEGATION: u64 = 20;
const OVER: u64 = 30;

/// What the head says of a write that is not for it.
fn delegated(reply: &Reply) -> Option<(u64, u64)> {
    assert_eq!(reply.code, Code::Delegated);
    let DelegatedReply { delegation, .. } = DelegatedReply::of(&reply.header);
    (delegation != DelegationId::NONE).then_some((delegation.get(), reply.version))
}

impl Chain {
    /// Three nodes with a hash keyspace and a hot key of value 1, which is registered.
    fn with_hot_key() -> Self {
        let mut chain = Self::new(3);
        chain.map.keyspaces[0].kind = KeyspaceKind::Hash;
        chain.map.revision = chain.map.revision.next(0);
        chain.install();
        chain.put(HOT, b"1");
        chain.run();
        chain.order_delegation(GENERATION, None);
        chain.replies.clear();
        chain
    }

    fn order_delegation(&mut self, revision: u64, delegation: Option<Delegation>) {
        self.give(revision, delegation, &[0, 1, 2]);
        self.run();
    }

    /// Gives some nodes an order that names this delegation for the hot key.
    fn give(&mut self, revision: u64, delegation: Option<Delegation>, to: &[usize]) {
        let incarnations =
            self.map.nodes.iter().map(|node| Some((node.id, Incarnation(node.id.0.into()))));
        let keyspace = &self.map.keyspaces[0];
        let entry = HotEntry {
            keyspace: KS,
            key: HOT.to_vec(),
            keyhash: keyspace.keyhash(HOT),
            match_value: keyspace.match_value(HOT),
            generation: Generation::new(GENERATION),
            first: 0,
            readers: 3,
            delegation,
        };
        let (switch, places, keys) = (Incarnation(99), incarnations.collect(), vec![entry]);
        let order = Arc::new(HotOrder {
            cluster: cluster::ClusterId(1),
            revision: Revision::new(revision),
            switch,
            places,
            keys,
            ..HotOrder::default()
        });
        order.check().unwrap();
        for node in to {
            let now = self.now;
            self.nodes[*node].install_hot(now, Arc::clone(&order));
            self.drain(*node);
        }
    }

    /// The same, under a delegation with so many nodes in a chain; gives the version of DELEGATE.
    fn delegated(replicas: u8, copies: u16) -> (Self, u64) {
        let mut chain = Self::with_hot_key();
        chain.order_delegation(
            DELEGATION,
            Some(Delegation { number: DelegationId::new(DELEGATION), replicas, copies }),
        );
        chain.put(HOT, b"delegated");
        let (delegation, delegated_at) =
            delegated(&chain.only_reply()).expect("DELEGATE is committed");
        assert_eq!(delegation, DELEGATION);
        (chain, delegated_at)
    }

    /// Lets time pass until nothing more happens.
    fn come_home(&mut self) {
        for _ in 0..6 {
            self.pass(25 * MS);
            self.settle();
        }
    }

    /// A write as the switch grants it under a delegation.
    fn delegate(&mut self, seq: u64, version: u64, nodes: &[u16], value: &[u8]) {
        self.delegate_by(seq, version, (nodes, nodes.len()), value);
    }

    /// The same, with a chain of so many of the nodes; the others are readers.
    fn delegate_by(&mut self, seq: u64, version: u64, (nodes, of): (&[u16], usize), value: &[u8]) {
        let mut header = self.stamped(Op::Put, HOT, seq);
        let (version, delegation) = (Version::new(version), DelegationId::new(DELEGATION));
        GrantedPut { version, delegation }.put(&mut header);
        header.chain = wire::delegated_chain(nodes.iter().copied());
        header.chain_len = u8::try_from(of).unwrap();
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[&PutBody { expiry_ms: 0 }.to_bytes(), HOT, value]);
        self.deliver(usize::from(nodes[0]), port(SWITCH), &datagram);
    }

    /// A write that the switch sends home, with the version it was stamped with (0: none), at a
    /// clock in the order of this revision.
    fn put_home(&mut self, seq: u64, version: u64, revision: u64, hop_flags: u8) -> Reply {
        self.send_home(seq, version, revision, hop_flags);
        self.run();
        self.only_reply()
    }

    /// The same without waiting for anything.
    fn send_home(&mut self, seq: u64, version: u64, revision: u64, hop_flags: u8) {
        let mut header = self.stamped(Op::Put, HOT, seq);
        header.hop_flags = hop_flags;
        let clock = DirectoryClock::of_order(Revision::new(revision));
        HomeWrite { granted: Version::new(version), clock }.put(&mut header);
        self.send(&header, &[&PutBody { expiry_ms: 0 }.to_bytes(), HOT, b"home"]);
    }

    fn read_hot(&mut self, at: u16, floor: u64) -> (Code, u64, bool) {
        let seq = self.next();
        let mut header = self.stamped(Op::Get, HOT, seq);
        header.set_chain([at]);
        let generation = Generation::new(GENERATION);
        HotGet { floor: Version::new(floor), generation }.put(&mut header);
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[HOT]);
        self.deliver(usize::from(at), port(SWITCH), &datagram);
        let reply = self.only_reply();
        (reply.code, reply.version, reply.header.hop_flags & hop_flag::NEWEST != 0)
    }

    fn holds(&self) -> Vec<usize> {
        self.nodes.iter().map(Node::hot_delegated_keys).collect()
    }
}

#[test]
fn a_key_is_away_from_when_it_leaves_and_the_switch_is_told_once_all_members_know() {
    let mut chain = Chain::with_hot_key();
    chain.give(
        DELEGATION,
        Some(Delegation { number: DelegationId::new(DELEGATION), replicas: 1, copies: 0 }),
        &[0, 1, 2],
    );
    chain.put(HOT, b"2");
    assert_eq!(delegated(&chain.only_reply()), None, "DELEGATE is still on its way down the chain");
    assert_eq!(chain.read_hot(2, 1), (Code::Ok, 1, true));
    chain.settle();
    chain.put(HOT, b"2");
    let (delegation, delegated_at) = delegated(&chain.only_reply()).unwrap();
    assert_eq!((delegation, delegated_at), (DELEGATION, 3), "after the write and the registration");
    chain.put(b"cold", b"1");
    chain.settle();
    assert_eq!(chain.only_reply().version, delegated_at + SPAN + 1, "others are numbered on");
    assert_eq!(chain.read_hot(2, 1), (Code::Ok, 1, false), "what was left behind, and no more");
    assert_eq!(chain.read_hot(2, delegated_at + 1).0, Code::NotHere);
    assert_eq!(chain.get_code(HOT), Code::NotHere, "without a floor nothing is new enough");
}

#[test]
fn home_vouches_to_the_switch_for_a_delegated_key_that_only_multigets_ask_for() {
    let (mut chain, _) = Chain::delegated(1, 0);
    assert_eq!(chain.mget(2, None).0, Code::NotHere);
    let [publish] = chain.publishes()[..] else { panic!("it is said once") };
    let HotAnswer { version, generation } = HotAnswer::of(&publish);
    let says = (publish.hop_flags, generation, version, publish.code);
    assert_eq!(
        says,
        (hop_flag::NEWEST, Generation::new(GENERATION), Version::new(1), Code::Ok as u8),
        "what was left behind"
    );
    chain.settle();
    assert_eq!((chain.mget(2, None).0, chain.publishes().len()), (Code::NotHere, 0));
    chain.order_delegation(OVER, None);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"1"[..]));
}

#[test]
fn what_needs_its_home_is_told_so_and_wanted_there() {
    let (mut chain, _) = Chain::delegated(1, 0);
    let home_only = |chain: &Chain| {
        chain.nodes[0].report(chain.now).hot.iter().map(|it| it.home_only).sum::<u64>()
    };
    assert_eq!(home_only(&chain), 0);
    chain.del(HOT);
    assert_eq!(delegated(&chain.only_reply()), None);
    assert!(home_only(&chain) > 0);
    let (seq, expiry_ms) = (chain.next(), chain.now.unix_ms() + 50);
    chain.put_again(seq, HOT, b"3", expiry_ms);
    assert_eq!(delegated(&chain.only_reply()), None, "only time could end it");
}

#[test]
fn a_value_that_time_will_end_does_not_leave() {
    let mut chain = Chain::with_hot_key();
    let (seq, expiry_ms) = (chain.next(), chain.now.unix_ms() + 60_000);
    chain.put_again(seq, HOT, b"3", expiry_ms);
    chain.run();
    chain.replies.clear();
    chain.order_delegation(
        DELEGATION,
        Some(Delegation { number: DelegationId::new(DELEGATION), replicas: 1, copies: 0 }),
    );
    chain.put(HOT, b"2");
    chain.run();
    assert_eq!(chain.only_reply().code, Code::Ok);
}

#[test]
fn any_node_takes_a_write_and_answers_reads_no_older_than_the_floor() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seq = chain.next();
    for _ in 0..2 {
        chain.delegate(seq, delegated_at + 5, &[1], b"five");
        let reply = chain.only_reply();
        assert_eq!((reply.code, reply.version), (Code::Ok, delegated_at + 5));
        assert_eq!(reply.header.hop_flags, hop_flag::GRANTED);
    }
    assert_eq!(chain.read_hot(1, delegated_at + 5), (Code::Ok, delegated_at + 5, false));
    assert_eq!(chain.read_hot(1, delegated_at + 6).0, Code::NotHere);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 4, &[1], b"four");
    assert_eq!(chain.only_reply().version, delegated_at + 4, "it was overwritten at once");
    assert_eq!(chain.read_hot(1, delegated_at + 4), (Code::Ok, delegated_at + 5, false));
    assert_eq!(chain.holds(), [0, 1, 0]);
    assert_eq!(chain.nodes[1].counters().hot_delegated_writes, 2);
}

#[test]
fn what_home_says_of_a_key_without_a_record_is_older_than_all_of_its_delegation() {
    let mut chain = Chain::with_hot_key();
    let collect = |chain: &mut Chain, key: &[u8]| {
        chain.del(key);
        chain.settle();
        for _ in 0..70 {
            chain.pass(Duration::from_secs(1));
            chain.settle();
        }
        chain.replies.clear();
        chain.nodes[2].counters().collected
    };
    assert_eq!(collect(&mut chain, HOT), 1);
    chain.order_delegation(
        DELEGATION,
        Some(Delegation { number: DelegationId::new(DELEGATION), replicas: 1, copies: 0 }),
    );
    chain.put(HOT, b"delegated");
    let (_, delegated_at) = delegated(&chain.only_reply()).expect("DELEGATE is committed");
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    chain.put(b"cold", b"1");
    chain.settle();
    assert_eq!(collect(&mut chain, b"cold"), 2, "one that is newer than all of the delegation");
    let (code, floor, proves) = chain.read_hot(2, u64::MAX);
    assert_eq!((code, proves), (Code::NotHere, true));
    assert!(floor <= delegated_at, "{floor} would make reads wait for the end of the delegation");
    let read = chain.read_hot(2, floor);
    assert_eq!(read, (Code::NotFound, floor, false), "as it was when the key left");
    assert_eq!(
        chain.read_hot(2, delegated_at + 1).0,
        Code::NotHere,
        "what is newer is not at home"
    );
    assert_eq!(chain.read_hot(1, delegated_at + 1).0, Code::Ok);
}

#[test]
fn the_newest_write_of_a_delegation_comes_home_under_its_version() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seqs: Vec<u64> = (0..3).map(|_| chain.next()).collect();
    chain.delegate(seqs[0], delegated_at + 1, &[1], b"one");
    chain.delegate(seqs[1], delegated_at + 2, &[2], b"two");
    chain.replies.clear();
    chain.order_delegation(OVER, None);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"two"[..]));
    assert_eq!(
        chain.read_hot(2, 0),
        (Code::Ok, delegated_at + 2, true),
        "home vouches for it again"
    );
    assert_eq!(chain.holds(), [0, 1, 1]);
    chain.pass(Duration::from_secs(1));
    chain.settle();
    assert_eq!(chain.holds(), [0; 3], "nobody keeps what is home");
    chain.delegate(seqs[2], delegated_at + 3, &[1], b"three");
    assert_eq!(delegated(&chain.only_reply()), None, "the delegation is over");
    chain.lag = 3;
    for version in [delegated_at + 1, delegated_at + 2] {
        let seq = seqs[usize::try_from(version - delegated_at - 1).unwrap()];
        let reply = chain.put_home(seq, version, OVER, 0);
        assert_eq!((reply.code, reply.version), (Code::Ok, version), "it took effect");
    }
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"two"[..]));
    let reply = chain.put_home(seqs[2], delegated_at + 3, OVER, 0);
    assert!(reply.version > delegated_at + SPAN, "it never took effect, so it does now");
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"home"[..]));
}

#[test]
fn a_mutant_home_runs_again_what_took_effect_under_a_delegation() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    chain.replies.clear();
    chain.order_delegation(OVER, None);
    chain.come_home();
    chain.nodes[0].mutant(Mutant::RunAgain);
    assert!(chain.put_home(seq, delegated_at + 1, OVER, 0).version > delegated_at + SPAN);
}

#[test]
fn home_takes_no_write_that_another_copy_of_may_have_taken_effect() {
    let (mut chain, _) = Chain::delegated(1, 0);
    chain.order_delegation(OVER, None);
    chain.come_home();
    let seq = chain.next();
    assert_eq!(chain.put_home(seq, 0, OVER - 1, 0).code, Code::Closed, "it passed too soon");
    assert_eq!(chain.put_home(seq, 0, OVER, hop_flag::OLD).code, Code::Ok);
    let seq = chain.next();
    let later = OVER + 1;
    assert_eq!(chain.put_home(seq, 0, later, hop_flag::OLD).code, Code::Closed, "unheard of");
    chain.order_delegation(later, None);
    let over = chain.put_home(seq, 0, OVER, hop_flag::OLD);
    assert_eq!(over.code, Code::Closed, "that may have been another switch, which stands by now");
    assert_eq!(chain.put_home(seq, 0, later, hop_flag::OLD).code, Code::Ok);
    chain.nodes[0].mutant(Mutant::TakeLatecomers);
    let seq = chain.next();
    assert_eq!(chain.put_home(seq, 0, OVER - 1, 0).code, Code::Ok);
}

#[test]
fn more_copies_are_made_of_each_write_as_the_delegation_says() {
    let (mut chain, delegated_at) = Chain::delegated(1, 1);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    chain.settle();
    chain.replies.clear();
    let codes = [0, 1, 2].map(|node| chain.read_hot(node, delegated_at + 1).0);
    assert_eq!(codes[1..], [Code::Ok, Code::Ok], "the node behind it in the row has a copy");
    assert_eq!(codes[0], Code::NotHere);
}

#[test]
fn copies_go_to_the_others_of_the_chain_first_and_to_nobody_if_none_are_wanted() {
    let no = Code::NotHere;
    for (copies, first, other) in [(0, no, no), (1, Code::Ok, no), (2, Code::Ok, Code::Ok)] {
        let (mut chain, delegated_at) = Chain::delegated(2, copies);
        let seq = chain.next();
        chain.delegate(seq, delegated_at + 1, &[1, 2], b"one");
        chain.settle();
        chain.replies.clear();
        let codes = [0, 1, 2].map(|node| chain.read_hot(node, delegated_at + 1).0);
        assert_eq!(codes, [other, first, Code::Ok], "{copies} copies");
        assert_eq!(chain.holds(), [0, 1, 1], "the chain has it on record in any case");
    }
}

#[test]
fn an_overtaken_write_is_shown_from_its_commit_until_the_next() {
    for order in [[1, 2], [2, 1]] {
        let (mut chain, delegated_at) = Chain::delegated(2, 1);
        for write in order {
            let (seq, last) = (chain.next(), if write == 1 { 2 } else { 0 });
            chain.delegate(seq, delegated_at + write, &[1, last], &write.to_be_bytes());
        }
        assert_eq!(chain.read_hot(1, delegated_at + 1).0, Code::NotHere, "neither is committed");
        let first = order.iter().position(|write| *write == 1).unwrap();
        chain.deliver_wire(first);
        chain.deliver_wire(1);
        chain.replies.clear();
        assert_eq!(
            chain.read_hot(1, delegated_at + 1),
            (Code::Ok, delegated_at + 1, false),
            "{order:?}"
        );
        assert_eq!(chain.read_hot(1, delegated_at + 2).0, Code::NotHere);
        chain.settle();
        chain.replies.clear();
        assert_eq!(
            chain.read_hot(1, delegated_at + 1),
            (Code::Ok, delegated_at + 2, false),
            "{order:?}"
        );
    }
}

#[test]
fn of_many_overtaken_writes_the_newest_are_held() {
    let (mut chain, delegated_at) = Chain::delegated(2, 1);
    for write in [1, 3, 2, 5, 6, 4, 7] {
        let seq = chain.next();
        chain.delegate(seq, delegated_at + write, &[1, 2], b"value");
    }
    let shown = (1..=7).map(|write| {
        let at = chain.wires.iter().position(|(_, _, bytes)| {
            let header = Header::read(Packet::parse(bytes).unwrap().header());
            GrantedPut::of(&header).version == Version::new(delegated_at + write)
        });
        chain.deliver_wire(at.unwrap());
        while chain.under_way(Op::DelegationCommit) > 0 {
            chain.deliver_wire(chain.wires.len() - 1);
        }
        chain.replies.clear();
        chain.read_hot(1, delegated_at + write).0
    });
    let shown: Vec<Code> = shown.collect();
    let (no, yes) = (Code::NotHere, Code::Ok);
    assert_eq!(shown, [no, no, yes, yes, yes, yes, yes], "four of them, and the newest of all");
}

#[test]
fn readers_that_were_chosen_are_sent_copies_whatever_the_order_says_by_now() {
    let (mut chain, delegated_at) = Chain::delegated(2, 0);
    let seq = chain.next();
    chain.delegate_by(seq, delegated_at + 1, (&[1, 2, 0], 2), b"one");
    chain.settle();
    chain.replies.clear();
    let codes = [0, 1, 2].map(|node| chain.read_hot(node, delegated_at + 1).0);
    assert_eq!(codes, [Code::Ok; 3]);
}

#[test]
fn copies_go_to_the_readers_that_the_switch_has_chosen_and_not_to_more_than_the_delegation_says() {
    for (copies, other, answers) in [(1, Code::NotHere, 0), (2, Code::Ok, 1)] {
        let (mut chain, delegated_at) = Chain::delegated(1, copies);
        let copied = |chain: &Chain| chain.nodes[1].counters().requests(Op::HotCopied);
        let before = copied(&chain);
        let seq = chain.next();
        chain.delegate_by(seq, delegated_at + 1, (&[1, 0], 1), b"one");
        chain.settle();
        chain.replies.clear();
        assert_eq!(copied(&chain) - before, answers, "of the stamp the switch knows already");
        let codes = [0, 1, 2].map(|node| chain.read_hot(node, delegated_at + 1).0);
        assert_eq!(codes, [Code::Ok, Code::Ok, other]);
        assert_eq!(chain.holds(), [0, 1, 0], "a reader keeps nothing on record");
    }
}

#[test]
fn which_orders_it_was_given_a_store_keeps_on_record() {
    let mut engine = Noted::new(0);
    let order =
        |revision| HotOrder { cluster: cluster::ClusterId(1), revision, ..HotOrder::default() };
    let mut given = OrdersGiven::restore(Instant::from_unix_ms(1_000_000), &engine);
    assert!(given.admits(&order(Revision::new(DELEGATION))));
    given.follow(&mut engine, &order(Revision::new(DELEGATION)));
    given.follow(&mut engine, &order(Revision::new(OVER)));
    let again = OrdersGiven::restore(Instant::from_unix_ms(1_000_000), &engine);
    assert!(
        again.admits(&order(Revision::new(OVER))) && !again.admits(&order(Revision::new(OVER - 1)))
    );
}

#[test]
fn a_write_that_the_switch_has_no_room_for_hears_overloaded_and_the_key_is_asked_back() {
    let (mut chain, _) = Chain::delegated(2, 0);
    let home_only = |chain: &Chain| {
        let reports = chain.nodes.iter().map(|node| node.report(chain.now));
        reports.flat_map(|it| it.hot).any(|it| it.key == HOT && it.home_only > 0)
    };
    assert_eq!(chain.put_home(50, 0, DELEGATION, 0).code, Code::Delegated);
    assert!(!home_only(&chain));
    chain.send_home(51, 0, DELEGATION, hop_flag::CROWDED);
    assert_eq!(chain.only_reply().code, Code::Overloaded);
    // For this the controller ends the delegation; then home takes it.
    assert!(home_only(&chain));
    assert_eq!(chain.put_home(51, 0, DELEGATION, hop_flag::CROWDED).code, Code::Overloaded);
    chain.order_delegation(OVER, None);
    chain.come_home();
    chain.replies.clear();
    assert_eq!(chain.put_home(51, 0, OVER, 0).code, Code::Ok);
}
