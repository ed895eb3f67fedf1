//! Nodes that fall silent: at every place of a chain, several at once, and at every step.

use super::world::{POLL, World, ids, node};
use cluster::{Member, Mutant, NodeId, Partition};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::Revision;

fn one_chain_of_three(nodes: u16) -> World {
    let world = World::with_keyspace(nodes, 1, 1, 3);
    assert_eq!(world.partition(0).chain, ids(&[0, 1, 2]));
    world
}

fn set(nodes: &[NodeId]) -> BTreeSet<u16> {
    nodes.iter().map(|id| id.0).collect()
}

/// Incarnations until the only partition is in some state.
fn until(world: &mut World, holds: impl Fn(&Partition) -> bool) -> Partition {
    world.live_until(|world| holds(&world.partition(0)));
    world.partition(0)
}

#[test]
fn whichever_place_a_node_had_its_chain_closes_settles_and_opens_without_it() {
    for lost in 0..3 {
        let mut world = one_chain_of_three(3);
        let before = world.partition(0);
        world.settling = Duration::from_millis(30);
        world.kill(node(lost));
        let closed = until(&mut world, |p| !p.open);
        assert_eq!(closed.epoch.0, before.epoch.0 + 1);
        let rest: Vec<NodeId> =
            before.chain.iter().copied().filter(|id| *id != NodeId(lost)).collect();
        assert_eq!(closed.chain, rest, "in the old order");
        let at = world.now;
        let open = until(&mut world, |p| p.open);
        assert_eq!(open.epoch.0, before.epoch.0 + 2);
        assert_eq!(set(&open.chain), set(&rest));
        assert!(rest.iter().all(|id| open.since(*id) == before.since(*id)));
        let settled_in = world.now.since(at);
        assert!(settled_in >= world.settling && settled_in < world.settling * 2);
        world.live();
        let status = world.status();
        assert!(status.covered && !status.replicated);
        assert_eq!((status.under_replicated, status.keyspaces[0].partitions[0].missing), (1, 1));
    }
}

#[test]
fn whoever_is_lost_is_trouble_and_whatever_follows_is_a_line_each() {
    let mut world = World::with_keyspace(4, 2, 30, 3);
    let noted = world.controller.decisions_noted();
    world.live_for(Duration::from_secs(60));
    assert_eq!(world.controller.decisions_noted(), noted, "nothing changes, and nothing is said");
    world.kill(node(1));
    world.live_until_replicated();
    world.member(Member::Switch(0)).cut_off = true;
    world.live_until(|world| world.controller.map().active_switch == 1);
    let decisions: Vec<_> = world.controller.decisions_since(noted).cloned().collect();
    let said = |words: &str| decisions.iter().filter(|it| it.saw.contains(words)).collect();
    let losses: [(&str, Vec<&crate::Decision>); 3] = [
        ("node 1 does not answer", said("node 1 does not answer")),
        ("no client reaches: node 1", said("no client reaches: node 1")),
        ("switch 0 is silent", said("switch 0 is silent")),
    ];
    for (what, said) in losses {
        assert_eq!(said.len(), 1, "{what}: {decisions:#?}");
        assert!(said.iter().all(|it| it.trouble), "{what}: {decisions:#?}");
    }
    let (most, longest) = (100, 400);
    assert!(decisions.len() < most, "{} lines", decisions.len());
    let lengths = decisions.iter().map(|it| it.saw.len() + it.did.len());
    assert!(lengths.max() < Some(longest), "however many partitions: {decisions:#?}");
}

#[test]
fn another_node_takes_the_place_of_a_lost_one() {
    let mut world = one_chain_of_three(4);
    world.copying = Duration::from_millis(500);
    let before = world.partition(0);
    world.kill(node(1));
    let joining = until(&mut world, |p| p.open && p.has_learner);
    assert_eq!(joining.epoch.0, before.epoch.0 + 2, "it joins as the chain opens again");
    assert_eq!(set(joining.members()), BTreeSet::from([0, 2]));
    assert_eq!(joining.learner(), Some(NodeId(3)));
    assert_eq!(joining.since(NodeId(3)), Some(world.map().revision));
    let since = joining.since.clone();
    world.live_for(Duration::from_millis(300));
    let status = world.status();
    let [copy] = &status.copies[..] else { panic!("{:?}", status.copies) };
    assert_eq!((Some(copy.from), copy.to), (joining.tail(), NodeId(3)));
    assert!((300..900).contains(&copy.permille), "{copy:?}");
    assert_eq!(copy.bytes, u64::from(copy.permille) * 1_000);
    let eta_ms = copy.eta_ms.unwrap();
    assert!((100..300).contains(&eta_ms), "{copy:?}");
    assert!(!status.replicated);
    let whole = until(&mut world, |p| p.open && !p.has_learner);
    assert_eq!(set(&whole.chain), BTreeSet::from([0, 2, 3]));
    assert_eq!(whole.epoch.0, joining.epoch.0 + 2);
    let mut kept: Vec<Revision> = whole.since.clone();
    kept.sort_unstable();
    let mut expected = since;
    expected.sort_unstable();
    assert_eq!(kept, expected, "nobody was taken in anew");
    world.live();
    assert!(world.status().replicated && world.status().covered);
}

#[test]
fn a_chain_that_loses_another_while_it_is_closed_closes_again() {
    let mut world = one_chain_of_three(3);
    world.settling = Duration::from_secs(2);
    let before = world.partition(0);
    world.kill(node(0));
    let closed = until(&mut world, |p| !p.open);
    assert_eq!(closed.chain, ids(&[1, 2]));
    world.kill(node(2));
    let again = until(&mut world, |p| p.chain.len() == 1);
    assert!(!again.open);
    assert_eq!((again.epoch.0, &again.chain), (before.epoch.0 + 2, &ids(&[1])));
    let open = until(&mut world, |p| p.open);
    assert_eq!((open.epoch.0, &open.chain), (before.epoch.0 + 3, &ids(&[1])));
}

#[test]
fn the_last_member_is_never_dropped() {
    let mut world = one_chain_of_three(4);
    for id in 0..3 {
        world.kill(node(id));
    }
    world.live_for(Duration::from_secs(10));
    let left = world.partition(0);
    assert_eq!(
        (left.open, &left.chain),
        (true, &ids(&[0, 1, 2])),
        "all at once: it stays as it was"
    );
    world.revive(node(1));
    let back = until(&mut world, |p| p.chain.len() < 3);
    assert_eq!((back.open, &back.chain), (false, &ids(&[1])));
    let joining = until(&mut world, |p| p.open);
    assert_eq!((joining.members(), joining.learner()), (&ids(&[1])[..], Some(NodeId(3))));
    // The last one again, with a learner that holds nothing yet.
    world.copying = Duration::from_secs(3);
    world.kill(node(1));
    world.live_for(Duration::from_secs(10));
    assert!(world.partition(0).members().contains(&NodeId(1)));
}

#[test]
fn nobody_is_left_out_while_those_who_stay_may_have_forgotten() {
    // Node 0 is cut off, and node 1 loses its memory while its lease still runs.
    let mut world = World::with_keyspace(2, 1, 1, 2);
    world.member(node(0)).cut_off = true;
    world.live_for(POLL);
    world.kill(node(1));
    world.live_for(Duration::from_millis(300));
    world.member(node(1)).wipe(999);
    world.member(node(1)).alive = true;
    world.live_for(Duration::from_secs(3));
    assert!(world.partition(0).chain.contains(&NodeId(0)), "the only one who has it all");
    world.member(node(0)).cut_off = false;
    world.live_until_replicated();
}

#[test]
fn a_learner_that_is_lost_is_dropped_and_another_is_found() {
    let mut world = one_chain_of_three(5);
    world.copying = Duration::from_secs(5);
    world.kill(node(1));
    let joining = until(&mut world, |p| p.open && p.has_learner);
    assert_eq!(joining.learner(), Some(NodeId(3)));
    world.live();
    world.kill(node(3));
    let closed = until(&mut world, |p| !p.open);
    assert!(!closed.has_learner);
    assert_eq!(set(&closed.chain), BTreeSet::from([0, 2]));
    let next = until(&mut world, |p| p.open && p.has_learner);
    assert_eq!(next.learner(), Some(NodeId(4)));
    world.live_until_replicated();
    assert_eq!(set(&world.partition(0).chain), BTreeSet::from([0, 2, 4]));
}

#[test]
fn a_giver_that_is_lost_is_replaced_and_the_copy_begins_anew() {
    let mut world = one_chain_of_three(4);
    world.copying = Duration::from_secs(2);
    world.kill(node(1));
    let joining = until(&mut world, |p| p.open && p.has_learner);
    let giver = joining.tail().unwrap();
    world.live();
    world.kill(node(giver.0));
    let next = until(&mut world, |p| p.open && p.members().len() == 1);
    assert_eq!(next.learner(), Some(NodeId(3)));
    assert_eq!(next.since(NodeId(3)), joining.since(NodeId(3)), "it keeps what it has");
    world.live_until(|world| world.partition(0).members().len() == 2);
}

#[test]
fn a_node_that_comes_back_too_late_is_copied_to() {
    let mut world = one_chain_of_three(3);
    let before = world.partition(0);
    world.kill(node(2));
    until(&mut world, |p| p.open && p.chain.len() == 2);
    world.revive(node(2));
    world.live_until_replicated();
    let after = world.partition(0);
    assert_eq!(set(&after.chain), BTreeSet::from([0, 1, 2]));
    assert!(after.since(NodeId(2)) > before.since(NodeId(2)), "as one who holds nothing");
}

#[test]
fn a_controller_that_is_restarted_after_every_step_gets_as_far() {
    let mut world = World::with_keyspace(5, 2, 8, 3);
    world.settling = Duration::from_millis(25);
    world.copying = Duration::from_millis(60);
    world.kill(node(1));
    world.live_until(|world| world.status().closed > 0);
    let mut seen = BTreeSet::new();
    for _ in 0..2_000 {
        let revision = world.controller.durable_revision();
        world.live_until(|world| {
            world.controller.durable_revision() != revision || world.status().replicated
        });
        let map = world.map();
        let states = map.partitions.iter().map(|p| (p.open, p.has_learner, p.chain.len()));
        seen.extend(states);
        if world.status().replicated {
            break;
        }
        world.restart(world.config.clone());
    }
    assert!(world.status().replicated);
    // Lost, with the learner, with the learner as a member.
    assert!(seen.contains(&(false, false, 2)), "{seen:?}");
    assert!(seen.contains(&(true, true, 3)), "{seen:?}");
    assert!(seen.contains(&(false, true, 3)), "{seen:?}");
    assert_eq!(world.replicas_held()[1], 0);
}

#[test]
fn all_partitions_that_a_node_leaves_close_in_one_revision() {
    let mut world = World::with_keyspace(4, 1, 64, 2);
    let before = world.map().revision;
    world.kill(node(0));
    world.live_until(|world| world.status().closed > 0);
    let map = world.map();
    let without = |p: &Partition| !p.chain.contains(&NodeId(0));
    assert!(map.partitions.iter().all(without));
    assert_eq!(map.partitions.iter().filter(|p| !p.open).count(), 32);
    assert!(map.revision > before);
    world.live_until_replicated();
    world.revive(node(0));
    world.live_until(|world| world.replicas_held() == [32, 32, 32, 32]);
    let status = world.status();
    let heads: Vec<usize> = status.load.iter().map(|node| node.heads).collect();
    let tails: Vec<usize> = status.load.iter().map(|node| node.tails).collect();
    for roles in [heads, tails] {
        let (least, most) = (roles.iter().min().unwrap(), roles.iter().max().unwrap());
        assert!(most - least <= 3, "{roles:?}");
    }
}

#[test]
fn a_mutant_shows() {
    let mut world = one_chain_of_three(3);
    world.settling = Duration::from_secs(1);
    world.controller.mutant(Mutant::OpenUnsettled);
    world.kill(node(2));
    until(&mut world, |p| !p.open);
    let at = world.now;
    until(&mut world, |p| p.open);
    assert!(world.now.since(at) < world.settling, "it opened what had not settled");

    let mut world = one_chain_of_three(3);
    world.controller.mutant(Mutant::ImpatientController);
    world.member(node(2)).cut_off = true;
    until(&mut world, |p| p.chain.len() == 2);
    assert!(world.members[&node(2)].serves(world.now), "it was replaced while it served");

    let mut world = one_chain_of_three(3);
    let before = world.partition(0);
    world.controller.mutant(Mutant::TrustTheForgetful);
    world.member(node(2)).wipe(999);
    world.live_for(Duration::from_secs(2));
    assert_eq!(world.partition(0), before, "it went on as if nothing were missing");
    assert!(world.members[&node(2)].serves(world.now));
}
