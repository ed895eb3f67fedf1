//! Who is given which order when, and the generations of its keys.

use super::*;
use crate::ControllerConfig;
use cluster::{Install, Selection};
use std::collections::BTreeMap;
use wire::{Generation, Revision};

#[test]
fn nodes_keep_their_places_and_a_node_that_is_gone_leaves_a_hole() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 400), asked("r", 1_000, 0)];
    let now = world.now;
    world.controller.pin(now, "a", b"k").unwrap();
    world.live();
    let order = has(&world, SWITCH).clone();
    let places = |order: &HotOrder| -> Vec<Option<u16>> {
        order.places.iter().map(|it| it.map(|(NodeId(id), _)| id)).collect()
    };
    assert_eq!(places(&order), [Some(0), Some(1), Some(2), Some(3)]);
    world.member(node(1)).cut_off = true;
    world.live_until(|world| has(world, SWITCH).places.contains(&None));
    world.live();
    let without = has(&world, SWITCH).clone();
    assert_eq!(places(&without), [Some(0), None, Some(2), Some(3)]);
    for it in &without.keys {
        let stayed = entry(&order, std::str::from_utf8(&it.key).unwrap()).unwrap();
        assert_eq!((it.generation, it.first), (stayed.generation, stayed.first));
        assert_eq!(without.readers(it).count(), if it.key == b"k" { 2 } else { 3 });
    }
    let incarnation = world.members[&node(1)].tenure.incarnation();
    world.revive(node(1));
    world.member(node(1)).cut_off = false;
    world.live();
    let back = has(&world, SWITCH);
    assert_eq!(places(back), places(&order));
    assert_ne!(back.places[1], Some((NodeId(1), incarnation)), "it is another incarnation");
    assert!(agreed(&world));
}

#[test]
fn an_order_says_how_the_switch_is_to_choose() {
    let mut world = world();
    for selection in [Selection::Reported, Selection::Random, Selection::Predicted] {
        let config = ControllerConfig { hot_selection: selection, ..world.config.clone() };
        world.restart(config);
        world.member(node(2)).told = vec![asked("k", 1_000, 0)];
        let chooses = |order: &HotOrder| order.selection == selection && !order.keys.is_empty();
        world.live_until(|world| chooses(has(world, SWITCH)) && agreed(world));
    }
}

#[test]
fn a_switch_that_forgets_or_begins_another_incarnation_gets_new_generations_before_any_node() {
    for reborn in [false, true] {
        let mut world = world();
        world.member(node(2)).told = vec![asked("k", 1_000, 0)];
        world.live();
        let before = has(&world, SWITCH).clone();
        if reborn {
            world.member(SWITCH).restart();
        } else {
            world.member(SWITCH).hot = HotOrder::default();
        }
        world.live_until(|world| has(world, SWITCH).revision > before.revision);
        assert!((0..4).all(|id| *has(&world, node(id)) == before));
        let after = has(&world, SWITCH).clone();
        assert_eq!(after.switch == before.switch, !reborn);
        assert_eq!(entry(&after, "k").unwrap().generation, Generation::begun_by(after.revision));
        world.live_until(agreed);
    }
}

#[test]
fn an_order_names_a_map_that_is_newer_than_any_by_which_its_switch_stood_by() {
    let mut world = World::with_keyspace(4, 2, 8, 2);
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    world.delivered.clear();
    for _ in 0..4 {
        let named = world.map().active_switch;
        let active = Member::Switch(named);
        world.live_until(|world| entry(has(world, active), "k").is_some());
        // The next switch reports while it is named and does not serve, for as long as this node
        // may take requests from the one before. Other keys turn hot all the time.
        for member in [active, node(3)] {
            world.member(member).cut_off = true;
        }
        let mut turned_hot = 0;
        while world.map().active_switch == named || world.map().handing_over {
            turned_hot += 1;
            let other = format!("k{turned_hot}");
            world.member(node(2)).told = vec![asked("k", 1_000, 0), asked(&other, 900, 0)];
            world.live_for(Duration::from_millis(20));
            assert!(turned_hot < 1_000, "the switch is never replaced");
        }
        world.member(node(2)).told = vec![asked("k", 1_000, 0)];
        for member in [active, node(3)] {
            world.member(member).cut_off = false;
        }
        world.live();
    }
    let (mut stood_by, mut orders) = (BTreeMap::new(), 0);
    for (to, order) in &world.delivered {
        let Member::Switch(switch) = to else { continue };
        if let Some(Install::Tables(tables)) = &order.install
            && !tables.active
        {
            stood_by.insert(switch, tables.revision);
        }
        if let Some(hot) = &order.hot {
            assert!(stood_by.get(switch).is_none_or(|by| hot.map > *by), "{to}: {}", hot.map);
            orders += 1;
        }
    }
    assert!(orders >= 4 && stood_by.len() == 2, "{orders} orders");
}

/// Or homes would take no writes of keys that were under delegations.
#[test]
fn a_switch_that_forgets_is_told_so_when_no_key_is_hot_any_more() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    world.member(node(2)).told.clear();
    world.live_for(Duration::from_secs(4));
    let before = has(&world, SWITCH).clone();
    assert!(before.revision > Revision::NONE && before.keys.is_empty());
    world.member(SWITCH).hot = HotOrder::default();
    world.live();
    let after = has(&world, SWITCH).revision;
    assert!(after > before.revision && agreed(&world));
    world.live();
    assert_eq!(has(&world, SWITCH).revision, after, "once");
}

#[test]
fn a_switch_with_an_order_that_nobody_here_gave_gets_new_generations() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    let foreign = HotOrder { revision: Revision::new(9_999_999), ..has(&world, SWITCH).clone() };
    world.member(SWITCH).hot = foreign;
    world.live();
    let order = has(&world, SWITCH);
    assert!(
        order.revision > Revision::new(9_999_999)
            && entry(order, "k").unwrap().generation == Generation::begun_by(order.revision)
    );
    assert!(agreed(&world));
    // The same of a node, which may have taken marks away by it.
    world.member(node(0)).hot.revision = Revision::new(99_999_999);
    world.live();
    let order = has(&world, SWITCH);
    assert!(
        order.revision > Revision::new(99_999_999)
            && entry(order, "k").unwrap().generation == Generation::begun_by(order.revision)
    );
    assert!(agreed(&world));
}

#[test]
fn an_order_that_nodes_have_on_record_alone_is_followed_by_a_newer_one() {
    let mut world = world();
    world.live();
    assert_eq!(has(&world, SWITCH).revision, Revision::NONE, "there is no hot key");
    world.member(node(1)).hot_known = Revision::new(9_999_999);
    world.live();
    assert!(has(&world, SWITCH).revision > Revision::new(9_999_999), "homes take nothing below it");
    assert!(has(&world, SWITCH).keys.is_empty() && agreed(&world));
}

#[test]
fn a_revision_that_no_clock_comes_to_is_taken_for_none() {
    for forged in [u64::MAX, u64::MAX - 1, 1 << 60] {
        let mut world = world();
        world.live();
        world.member(node(1)).hot_known = Revision::new(forged);
        world.live();
        world.member(node(2)).told = vec![asked("k", 1_000, 0)];
        world.live();
        let order = has(&world, SWITCH);
        assert!((1..1 << 50).contains(&order.revision.get()), "{}", order.revision);
        assert_eq!(order.keys.len(), 1, "keys turn hot as ever");
    }
}

#[test]
fn the_standby_gets_no_hot_keys_until_it_takes_over() {
    let mut world = World::with_keyspace(4, 2, 8, 2);
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    let before = has(&world, SWITCH).clone();
    assert_eq!(before.keys.len(), 1);
    assert_eq!(has(&world, Member::Switch(1)).revision, Revision::NONE);
    world.member(SWITCH).cut_off = true;
    world.delivered.clear();
    world.live_until(|world| has(world, Member::Switch(1)).revision > Revision::NONE);
    let to_standby = world.delivered.iter().filter(|(m, o)| *m == SWITCH && o.hot.is_some());
    assert_eq!(to_standby.count(), 0);
    assert!((0..4).all(|id| *has(&world, node(id)) == before));
    world.live();
    let after = has(&world, Member::Switch(1)).clone();
    assert_eq!(entry(&after, "k").unwrap().generation, Generation::begun_by(after.revision));
    assert!((0..4).all(|id| *has(&world, node(id)) == after));
}

#[test]
fn a_controller_that_comes_back_tells_nodes_nothing_before_the_switch_has_its_order() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    let before = has(&world, SWITCH).clone();
    world.restart(world.config.clone());
    world.live_until(|world| has(world, SWITCH).revision > before.revision);
    assert!((0..4).all(|id| *has(&world, node(id)) == before));
    let after = has(&world, SWITCH).clone();
    assert_eq!(
        entry(&after, "k").map(|it| it.generation),
        Some(Generation::begun_by(after.revision)),
        "found again at once"
    );
    world.live_until(agreed);

    // Without anything hot, what is left of the old is taken away.
    world.member(node(2)).told.clear();
    world.restart(world.config.clone());
    world.live();
    assert!(has(&world, SWITCH).revision > after.revision && agreed(&world));
    assert!(has(&world, SWITCH).keys.is_empty());
}

#[test]
fn a_switch_that_takes_no_hot_keys_is_lived_with_and_said_once() {
    let mut world = world();
    world.member(SWITCH).takes_no_hot = true;
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live_for(Duration::from_secs(5));
    assert!((0..4).all(|id| has(&world, node(id)).revision.is_none()));
    let said = |it: &&crate::Decision| it.saw.contains("does not take the hot keys");
    assert_eq!(world.status().decisions.iter().filter(said).count(), 1);
    assert!(world.status().ready && world.status().hot_revision.is_none());
    let pace = world.delivered.iter().filter(|(m, _)| *m == SWITCH).count();
    world.live_for(Duration::from_secs(5));
    let later = world.delivered.iter().filter(|(m, _)| *m == SWITCH).count();
    assert!(later - pace <= 55, "it is asked no more often for that: {}", later - pace);
}

#[test]
fn a_switch_that_took_an_order_and_forgot_it_unheard_is_given_other_generations() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.member(SWITCH).takes_no_hot = true;
    world.live_until(|world| {
        world.delivered.iter().any(|(member, order)| *member == SWITCH && order.hot.is_some())
    });
    let given = world.delivered.iter().find_map(|(_, order)| order.hot.clone()).unwrap();
    world.member(SWITCH).takes_no_hot = false;
    world.member(SWITCH).hot_floor = given.revision.get();
    world.live_for(Duration::from_secs(2));
    let order = has(&world, SWITCH);
    assert!(
        order.keys.iter().all(|it| it.generation > Generation::begun_by(given.revision)),
        "{order:?}"
    );
    assert!(order.keys.len() == 1 && agreed(&world));
}

#[test]
fn the_mutant_haste_tells_nodes_first() {
    let mut world = world();
    world.controller.mutant(Mutant::NodesBeforeSwitch);
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live_until(|world| (0..4).any(|id| has(world, node(id)).revision > Revision::NONE));
    assert_eq!(has(&world, SWITCH).revision, Revision::NONE);
}
