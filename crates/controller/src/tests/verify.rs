//! Comparing replicas, and a status that says only what is known.

use super::world::{World, node};
use crate::CommandError;
use cluster::{Difference, Epoch, Findings, Member, MemberReport, PartitionId, Verification};
use wire::Version;

fn tail_says(world: &mut World, said: Verification) {
    let partition = world.map().partitions.into_iter().find(|it| it.id == said.partition).unwrap();
    let tail = Member::Node(partition.tail().unwrap());
    let mut report = world.report_of(tail);
    let MemberReport::Node(node) = &mut report.state else { panic!() };
    (node.verify, node.verified) = (said.number, vec![said]);
    let now = world.now;
    world.controller.handle_report(now, tail, report);
}

#[test]
fn nodes_are_told_what_to_compare_and_the_status_adds_up_what_they_say() {
    let mut world = World::with_keyspace(3, 1, 2, 3);
    assert_eq!(world.status().verify, None);
    let now = world.now;
    let refused = world.controller.verify(now, Some(PartitionId(9)), false);
    assert_eq!(refused, Err(CommandError::NoPartition(PartitionId(9))));
    let number = world.controller.verify(now, None, true).unwrap();
    world.delivered.clear();
    world.settle();
    for (member, order) in &world.delivered {
        let wish = order.verify.map(|it| (it.number, it.partition, it.mend));
        let wanted = matches!(member, Member::Node(_)).then_some((number, None, true));
        assert_eq!(wish, wanted, "{member}");
    }
    assert!(world.delivered.iter().any(|(member, _)| *member == node(0)));

    let first = Difference {
        key: b"k".to_vec(),
        versions: vec![Some(Version::new(1)), None],
        mended: true,
    };
    let done = |partition| Verification {
        partition: PartitionId(partition),
        epoch: Epoch(1),
        number,
        members: 3,
        done: true,
        permille: 1_000,
        found: Findings {
            keys: 50,
            different: 1,
            mended: 1,
            first: vec![first.clone()],
            ..Findings::default()
        },
    };
    tail_says(&mut world, done(1));
    tail_says(&mut world, Verification { done: false, permille: 500, ..done(2) });
    let said = world.status().verify.unwrap();
    assert_eq!((said.partitions, said.done, said.permille, said.found.keys), (2, 1, 750, 100));
    let known = |world: &World| {
        let status = world.status();
        let partitions = status.keyspaces[0].partitions.iter();
        let mut known: Vec<_> = partitions.map(|it| (it.id.0, it.verified)).collect();
        known.sort_by_key(|it| it.0);
        known.into_iter().map(|(_, it)| it.map(|it| it.members)).collect::<Vec<_>>()
    };
    assert_eq!(known(&world), [Some(3), None], "half a comparison says nothing");
    tail_says(&mut world, done(2));
    // A late word, or one of a tail that has begun anew, takes nothing back.
    tail_says(&mut world, Verification { done: false, epoch: Epoch(7), permille: 0, ..done(1) });
    let said = world.status().verify.unwrap();
    let found = said.found;
    assert_eq!((said.done, found.different, found.mended, found.first.len()), (2, 2, 2, 2));
    assert_eq!(known(&world), [Some(3), Some(3)]);
    let next = world.controller.verify(world.now, None, false).unwrap();
    assert!(next > number);
    let begun = Verification { number: next, done: false, permille: 10, ..done(1) };
    tail_says(&mut world, begun);
    assert_eq!(world.status().verify.unwrap().done, 0);
    assert_eq!(known(&world), [Some(3), Some(3)], "what was known before still is");
}

#[test]
fn a_controller_that_begins_says_of_no_replica_that_it_is_there() {
    let mut world = World::with_keyspace(3, 1, 6, 2);
    assert!(world.status().replicated);
    world.restart(world.config.clone());
    let status = world.status();
    assert_eq!((status.replicated, status.unheard), (false, 6), "the map alone says so");
    world.live();
    assert!(world.status().replicated);
    world.kill(node(1));
    world.live_until(|world| world.status().unheard > 0);
    assert!(!world.status().replicated);
}
