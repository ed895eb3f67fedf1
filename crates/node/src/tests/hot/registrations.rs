//! Registrations of hot keys: who has them, and what a tail vouches for by them.

use super::*;
use wire::Revision;

#[test]
fn only_the_tail_of_a_key_that_is_marked_vouches_for_its_newest_version() {
    let mut chain = Chain::new(3);
    assert!(!chain.vouches(GENERATION));
    chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
    assert!(!chain.vouches(GENERATION), "the registration is not committed yet");
    chain.settle();
    assert_eq!(chain.registrations(), [1, 1, 1]);
    assert!(chain.vouches(GENERATION));
    assert!(!chain.vouches(GENERATION + 1), "it is registered with another generation");
    assert_eq!(chain.get(HOT), None, "a registration is no state");
    assert_eq!(chain.nodes[0].report(chain.now).hot_revision, Revision::new(GENERATION));
}

#[test]
fn a_mutant_tail_vouches_for_a_key_that_is_not_marked() {
    let mut chain = Chain::new(3);
    chain.mutant(Mutant::ProveUnregistered);
    assert!(chain.vouches(GENERATION));
}

#[test]
fn a_key_that_is_not_ordered_any_more_is_unmarked_and_an_older_order_changes_nothing() {
    let mut chain = Chain::hot();
    chain.order_hot(11, &[(b"other", 11)]);
    chain.run();
    assert_eq!(chain.registrations(), [1, 1, 1]);
    assert!(!chain.vouches(GENERATION));
    chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
    chain.run();
    assert!(!chain.vouches(GENERATION));
    chain.order_hot(12, &[(b"other", 11), (HOT, 12)]);
    chain.run();
    assert_eq!(chain.registrations(), [2, 2, 2]);
    assert!(chain.vouches(12));
}

#[test]
fn a_head_that_was_sent_a_late_order_leaves_the_registrations_of_a_newer_one() {
    let mut chain = Chain::hot();
    // As after a restart: the new head knows of no order.
    chain.reconfigure(&[1, 2], false, &[1, 2], false);
    let now = chain.now;
    let mut node = Node::new(
        config(1, 0),
        std::mem::replace(&mut chain.nodes[1], Node::new(config(1, 0), Noted::new(1), now))
            .into_engine(),
        now,
    );
    node.install_hot(now, Arc::new(order(&chain.map, GENERATION - 1, &[])));
    chain.nodes[1] = node;
    chain.install_at(1);
    chain.run();
    assert!(chain.vouches(GENERATION));
}

#[test]
fn marks_agree_everywhere_whatever_is_lost_or_overtaken() {
    for seed in 0..20 {
        let mut chain = Chain::new(3);
        let mut rng = machine::Rng::new(seed);
        let mut revision = GENERATION;
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
        let held = |node: &Node<Noted>| -> Vec<(Vec<u8>, u64)> {
            let registrations = &node.replicas[&PartitionId(1)].registrations;
            registrations
                .iter()
                .map(|(key, registration)| (key.to_vec(), registration.generation.get()))
                .collect()
        };
        named.sort_unstable();
        let want: Vec<_> =
            named.iter().map(|(key, generation)| (key.to_vec(), *generation)).collect();
        for node in &chain.nodes {
            assert_eq!(held(node), want, "seed {seed}");
        }
    }
}

fn joined(mutant: Option<Mutant>) -> Chain {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    if let Some(mutant) = mutant {
        chain.mutant(mutant);
    }
    chain.order_hot(GENERATION, &[(HOT, GENERATION), (b"warm", GENERATION)]);
    chain.run();
    chain.take_in_third();
    // While it is copied to, one key is registered and one unregistered.
    chain.order_hot(GENERATION + 1, &[(HOT, GENERATION), (b"late", GENERATION + 1)]);
    chain.run();
    assert!(chain.caught_up(2));
    chain.reconfigure(&[0, 1, 2], true, &[0, 1, 2], false);
    chain
}

#[test]
fn a_learner_gets_the_registrations_and_those_that_change_meanwhile() {
    let mut chain = joined(None);
    assert_eq!(chain.registrations(), [2, 2, 2]);
    assert!(chain.vouches(GENERATION));
    let mut chain = joined(Some(Mutant::DropRegistrations));
    assert_eq!(chain.registrations(), [2, 2, 1]);
    assert!(!chain.vouches(GENERATION));
}

#[test]
fn marks_are_known_again_after_a_restart() {
    let map = Chain::new(1).map;
    let now = Instant::from_unix_ms(1_000_000);
    let assignment = map.assignment(NodeId(0), StoreId(0), port(SWITCH));
    let start = |engine: Noted| {
        let mut node = Node::new(config(0, 0), engine, now);
        node.install(now, &assignment);
        node.renew(&Lease {
            cluster: cluster::ClusterId(1),
            incarnation: Incarnation(0),
            revision: Revision::new(1),
            from: now,
            duration_ms: 1 << 40,
        });
        node.flush().unwrap();
        node
    };
    let mut node = start(Noted::new(0));
    node.install_hot(
        now,
        Arc::new(order(&map, GENERATION, &[(HOT, GENERATION), (b"warm", GENERATION)])),
    );
    node.install_hot(now + MS, Arc::new(order(&map, GENERATION + 1, &[(HOT, GENERATION)])));
    node.flush().unwrap();
    assert_eq!(node.hot_keys(), 1);
    let mut node = start(node.into_engine());
    assert_eq!((node.hot_keys(), node.report(now).hot_revision), (1, Revision::NONE));
    node.install_hot(now, Arc::new(order(&map, GENERATION + 2, &[])));
    assert_eq!(node.hot_keys(), 0);
}

#[test]
fn a_registration_that_is_pending_hides_no_state() {
    let mut chain = Chain::new(2);
    chain.incr(HOT, 5);
    chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
    chain.incr(HOT, 2);
    chain.run();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"7"[..]));
    chain.replies.clear();
    assert!(chain.vouches(GENERATION));
}

#[test]
fn a_read_of_a_hot_key_waits_for_no_sync_of_other_writes() {
    let mut chain = Chain::hot_of(1);
    chain.sync_apart();
    chain.put(b"cold", b"1");
    assert!(chain.replies.is_empty() && chain.nodes[0].is_syncing());
    let reply = chain.get_hot(0, 0, GENERATION);
    assert_eq!((reply.op, reply.code), (Op::GetReply, Code::Ok));
    assert_ne!(reply.header.hop_flags & hop_flag::NEWEST, 0);
}

#[test]
fn a_tail_vouches_for_nothing_by_a_registration_that_a_crash_could_take_back() {
    let mut chain = Chain::new(2);
    chain.put(HOT, b"1");
    chain.settle();
    chain.replies.clear();
    chain.sync_apart();
    chain.order_hot(GENERATION, &[(HOT, GENERATION)]);
    chain.end_sync(0);
    chain.settle();
    assert_eq!(chain.registrations(), [0, 1], "the tail has just committed it");
    assert!(!chain.vouches(GENERATION) && chain.nodes[1].is_syncing());
    chain.end_sync(1);
    assert!(chain.vouches(GENERATION));
}
