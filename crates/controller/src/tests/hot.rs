//! Hot keys: which become so, who hears of it when, and what outlives whom.

mod order;
mod pins;

use super::world::{POLL, World, config, hash, node};
use crate::{Controller, HotAction, HotDecision, HotStatus, PINS_MAX, Saved};
use cluster::{
    HotCount, HotEntry, HotKey, HotOrder, HotPolicy, KeyName, KeyspaceId, Member, Mutant, NodeId,
};
use machine::Instant;
use std::time::Duration;
use wire::{Generation, Revision};

const SWITCH: Member = Member::Switch(0);
/// Between two orders of hot keys at least.
const ORDER_EVERY: Duration = Duration::from_millis(20);
/// For how long reports are gathered.
const LOOK: Duration = Duration::from_millis(5);
const SPACE: KeyspaceId = KeyspaceId(1);

fn asked(key: &str, reads: u64, writes: u64) -> HotKey {
    HotKey { keyspace: SPACE, key: key.into(), reads, writes, ..HotKey::default() }
}

fn world() -> World {
    World::with_keyspace(4, 1, 8, 2)
}

/// What the member has installed.
fn has(world: &World, member: Member) -> &HotOrder {
    &world.members[&member].hot
}

fn entry<'a>(order: &'a HotOrder, key: &str) -> Option<&'a HotEntry> {
    order.keys.iter().find(|it| it.key == key.as_bytes())
}

fn listed(world: &World, key: &str) -> HotStatus {
    let list = world.status().hot;
    list.into_iter().find(|it| it.key.key == key.as_bytes()).unwrap()
}

fn log(world: &World) -> Vec<(HotAction, String)> {
    let text = |it: HotDecision| (it.did, String::from_utf8(it.name.key).unwrap());
    world.status().hot_decisions.into_iter().map(text).collect()
}

/// Everybody has the same hot keys.
fn agreed(world: &World) -> bool {
    let order = has(world, SWITCH);
    (0..4).all(|id| has(world, node(id)) == order)
}

#[test]
fn a_key_becomes_hot_on_the_switch_first_and_then_on_all_nodes_within_a_poll() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0), asked("cold", 24, 0)];
    let begin = world.now;
    world.live_until(|world| world.members[&SWITCH].hot.revision > Revision::NONE);
    assert!((0..4).all(|id| has(&world, node(id)).revision.is_none()), "nodes come second");
    world.live_until(agreed);
    let took = world.now.since(begin);
    assert!(took <= POLL + LOOK, "{took:?}");
    let order = has(&world, SWITCH).clone();
    assert_eq!(order.switch, world.members[&SWITCH].tenure.incarnation());
    assert_eq!(order.places.len(), 4);
    let [it] = &order.keys[..] else { panic!("{order:?}") };
    let keyspace = &world.map().keyspaces[0];
    assert_eq!(
        (it.keyhash, it.generation),
        (keyspace.keyhash(b"k"), Generation::begun_by(order.revision))
    );
    assert_eq!(order.readers(it).count(), 4, "nobody writes it");
    let status = listed(&world, "k");
    assert!(
        status
            .generation
            .is_some_and(|generation| generation.readers == 4 && generation.reads_before == 1_000)
    );
    assert_eq!(log(&world), [(HotAction::Added, "k".to_owned())]);
    world.delivered.clear();
    world.live();
    assert!(world.delivered.iter().all(|(_, order)| order.hot.is_none()), "told once");
}

/// The node counts the burst at once and alerts, so this is all of the reaction but what nodes and
/// network take: to be asked, and two more rounds of orders.
#[test]
fn an_alert_is_followed_by_a_question_and_an_order_within_five_milliseconds() {
    let mut world = world();
    for offset in [0, 3, 11, 17, 74] {
        let mut world = world.clone();
        world.live_for(Duration::from_millis(offset));
        world.member(node(2)).told = vec![asked("k", 50_000, 0)];
        world.controller.handle_alert(world.now, NodeId(2));
        let took =
            world.live_until(|world| has(world, SWITCH).revision > Revision::NONE && agreed(world));
        assert!(took <= LOOK, "{took:?} after {offset} ms");
    }
    world.kill(node(2));
    world.live_for(POLL * 10);
    world.delivered.clear();
    world.controller.handle_alert(world.now, NodeId(2));
    world.controller.handle_alert(world.now, NodeId(99));
    world.settle();
    assert!(world.delivered.is_empty(), "nobody is asked who does not answer, or is not known");
}

#[test]
fn an_alert_during_a_question_is_followed_by_another() {
    let world = world();
    let asks_again = |alert: bool| {
        let mut world = world.clone();
        world.controller.handle_alert(world.now, NodeId(2));
        let (member, order) = world.controller.poll_order().unwrap();
        assert_eq!(member, node(2));
        if alert {
            world.controller.handle_alert(world.now, NodeId(2));
        }
        assert!(world.controller.poll_order().is_none(), "one at a time");
        world.deliver(member, order);
        world.controller.poll_order().is_some()
    };
    assert_eq!([false, true].map(asks_again), [false, true]);
}

#[test]
fn what_several_nodes_see_of_a_key_is_summed_and_the_mean_load_is_the_measure() {
    let mut world = world();
    for id in 0..4 {
        world.member(node(id)).told = vec![asked("k", 20, 0), asked("other", 5, 0)];
    }
    world.live();
    assert!(entry(has(&world, SWITCH), "k").is_some());
    assert!(entry(has(&world, SWITCH), "other").is_none());

    // 16 000 requests per second on each node make the threshold 1 000.
    let mut world = self::world();
    for id in 0..4 {
        world.member(node(id)).told = vec![asked("k", 240, 0)];
    }
    world.live();
    for _ in 0..5 {
        for id in 0..4 {
            world.member(node(id)).requests += 1_600;
        }
        world.live_for(POLL);
    }
    assert!(entry(has(&world, SWITCH), "k").is_some(), "an idle cluster took it in");
    world.member(node(0)).told = vec![asked("warm", 700, 0)];
    world.member(node(1)).told = vec![asked("hot", 1_200, 0)];
    for id in 0..4 {
        world.controller.handle_alert(world.now, NodeId(id));
    }
    world.live_for(LOOK);
    assert!(entry(has(&world, SWITCH), "hot").is_some());
    assert!(entry(has(&world, SWITCH), "warm").is_none());
}

#[test]
fn a_key_goes_when_it_was_cold_for_two_seconds_and_no_sooner() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    for _ in 0..3 {
        world.member(node(2)).told.clear();
        world.live_for(Duration::from_millis(1_500));
        assert!(entry(has(&world, SWITCH), "k").is_some());
        world.member(node(2)).told = vec![asked("k", 30, 0)];
        world.live();
    }
    world.member(node(2)).told.clear();
    let took = world.live_until(|world| has(world, SWITCH).keys.is_empty());
    assert!(took >= Duration::from_millis(1_900), "{took:?}");
    world.live_until(agreed);
    let decisions = world.status().hot_decisions;
    let (Some(added), Some(removed)) = (decisions.first(), decisions.last()) else { panic!() };
    assert_eq!((added.did, removed.did), (HotAction::Added, HotAction::Removed));
    assert_eq!((added.nodes.as_str(), removed.nodes.as_str()), ("0-3", ""));
    assert!(removed.why.contains("less than 12"), "{}", removed.why);
}

#[test]
fn the_switchs_counts_keep_a_key_in_that_nodes_no_longer_tell_of() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    world.member(node(2)).told.clear();
    let keyhash = world.map().keyspaces[0].keyhash(b"k");
    for round in 1..50 {
        let (reads, spread, writes) = (400 * round, 300 * round, 100 * round);
        let count = HotCount { keyspace: SPACE, keyhash, reads, spread, writes };
        world.member(SWITCH).hot_counts = vec![count];
        world.live_for(POLL);
    }
    let status = listed(&world, "k");
    let generation = status.generation.unwrap();
    let near = |rate: u64, wanted: u64| rate.abs_diff(wanted) < wanted / 4;
    assert!(near(status.key.reads, 4_000) && near(status.key.writes, 1_000), "{status:?}");
    assert!(near(generation.spread, 3_000) && near(generation.home, 1_000), "{generation:?}");
    assert_eq!(generation.readers, 2, "four reads for each write pay two copies");
    let decisions = world.status().hot_decisions;
    let last = decisions.last().unwrap();
    assert_eq!((last.did, last.readers), (HotAction::Readers, 2));
    assert!(last.why.starts_with("4 before; 4 reads for each write pay "), "{}", last.why);
    let effect = last.effect;
    assert!(effect.spread > 10_000, "{last:?}");
    assert!(effect.home.abs_diff(effect.spread / 3) < 10, "{last:?}");
}

#[test]
fn readers_do_not_follow_counts_that_go_to_and_fro() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 4_000, 560)];
    world.live();
    let keyhash = world.map().keyspaces[0].keyhash(b"k");
    let (mut reads, mut writes) = (0, 0);
    let mut live = |world: &mut World, rounds: u32, written: u64| {
        for _ in 0..rounds {
            (reads, writes) = (reads + 400, writes + written);
            let count = HotCount { keyspace: SPACE, keyhash, reads, spread: 0, writes };
            world.member(SWITCH).hot_counts = vec![count];
            world.live_for(POLL);
        }
    };
    let readers = |world: &World| listed(world, "k").generation.unwrap().readers;
    // Seven reads for each write pay two copies, 14 pay four: nodes have nothing else to do.
    for _ in 0..6 {
        live(&mut world, 5, 56);
        live(&mut world, 5, 28);
    }
    assert_eq!(readers(&world), 2);
    let changes = log(&world).iter().filter(|(did, _)| *did == HotAction::Readers).count();
    assert_eq!(changes, 0, "{:?}", log(&world));
    live(&mut world, 30, 28);
    assert_eq!(readers(&world), 4, "they are off for long");
    live(&mut world, 3, 100);
    assert_eq!(readers(&world), 4, "not off by much, and not for long");
    let orders = has(&world, SWITCH).revision;
    live(&mut world, 20, 100);
    assert!(readers(&world) == 2 && has(&world, SWITCH).revision > orders);
}

#[test]
fn a_key_of_which_no_write_is_seen_for_a_while_is_not_copied_to_all_for_that() {
    let mut world = World::with_keyspace(10, 1, 8, 2);
    world.member(node(2)).told = vec![asked("k", 100, 0)];
    world.live();
    let keyhash = world.map().keyspaces[0].keyhash(b"k");
    let readers = |world: &World| listed(world, "k").generation.unwrap().readers;
    assert_eq!(readers(&world), 2, "its writes are not known yet");
    let (mut reads, mut writes) = (0, 0);
    let mut live = |world: &mut World, rounds: u32, wrote: u64| {
        for round in 0..rounds {
            reads += 2;
            writes += if round % 10 == 9 { wrote } else { 0 };
            let count = HotCount { keyspace: SPACE, keyhash, reads, spread: 0, writes };
            world.member(SWITCH).hot_counts = vec![count];
            world.live_for(POLL);
        }
    };
    live(&mut world, 15, 0);
    assert_eq!(readers(&world), 4, "20 reads for what may be one write pay four copies");
    live(&mut world, 60, 0);
    assert_eq!(readers(&world), 10, "more than 100 without a write pay for all");
    live(&mut world, 100, 1);
    assert_eq!(readers(&world), 4, "80 reads for four writes, or five, do not");
}

/// The switch sees the first key of a batch alone; its home sees all.
#[test]
fn a_key_that_is_written_as_a_later_step_of_batches_is_not_taken_for_unwritten() {
    let mut world = World::with_keyspace(10, 1, 8, 2);
    let told = |steps: u64| HotKey { steps, ..asked("k", 1_000, steps) };
    world.member(node(2)).told = vec![told(50)];
    world.live();
    let keyhash = world.map().keyspaces[0].keyhash(b"k");
    let (mut reads, mut writes) = (0, 0);
    let mut live = |world: &mut World, rounds: u32, wrote: u64| {
        for _ in 0..rounds {
            (reads, writes) = (reads + 100, writes + wrote);
            let count = HotCount { keyspace: SPACE, keyhash, reads, spread: 0, writes };
            world.member(SWITCH).hot_counts = vec![count];
            world.live_for(POLL);
        }
        let HotStatus { key, generation, .. } = listed(world, "k");
        (key.writes, generation.unwrap().readers)
    };
    let (writes, readers) = live(&mut world, 100, 0);
    assert!(writes.abs_diff(50) <= 5 && readers == 4, "20 reads per write: {writes}, {readers}");
    let (writes, readers) = live(&mut world, 100, 15);
    assert!(writes.abs_diff(200) <= 10 && readers == 2, "both are counted: {writes}, {readers}");
    world.member(node(2)).told = vec![told(0)];
    let (writes, readers) = live(&mut world, 100, 1);
    assert!(writes.abs_diff(10) <= 2 && readers == 10, "each once: {writes}, {readers}");
}

#[test]
fn what_a_home_said_of_a_burst_holds_while_others_answer_for_it() {
    let mut world = World::with_keyspace(10, 1, 8, 2);
    world.member(node(2)).told = vec![asked("k", 4_000, 200)];
    world.live_for(POLL);
    let told = |world: &World| {
        let HotStatus { key, generation, .. } = listed(world, "k");
        (key.reads, key.writes, generation.unwrap().readers)
    };
    assert_eq!(told(&world), (4_000, 200, 4));
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live_for(POLL * 2);
    assert_eq!(told(&world), (4_000, 200, 4), "the rest of it is asked elsewhere");
    world.live_for(Duration::from_secs(1));
    assert_eq!(told(&world), (1_000, 0, 10), "a switch that does not count says nothing else");
}

#[test]
fn a_key_that_is_written_much_is_left_alone() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("log", 1_000, 900), asked("mixed", 1_000, 80)];
    world.live();
    assert!(entry(has(&world, SWITCH), "log").is_none());
    let order = has(&world, SWITCH);
    assert_eq!(order.readers(entry(order, "mixed").unwrap()).count(), 4);
}

#[test]
fn many_new_keys_come_in_several_orders() {
    let mut world = World::with_keyspace(8, 1, 8, 2);
    let keys = |node: u16| (0..50).map(move |i| asked(&format!("{node}-{i}"), 1_000, 0));
    for id in 0..2 {
        world.member(node(id)).told = keys(id).collect();
    }
    // It asks all before it decides anything.
    world.restart(world.config.clone());
    let mut orders: Vec<(Instant, usize)> = Vec::new();
    while orders.last().is_none_or(|(_, keys)| *keys < 100) {
        let before = has(&world, SWITCH).revision;
        world.live_until(|world| has(world, SWITCH).revision > before);
        orders.push((world.now, has(&world, SWITCH).keys.len()));
    }
    let new: Vec<usize> = orders.iter().map(|(_, keys)| *keys).collect();
    assert_eq!(new, [64, 100], "so many copies are made at once");
    assert!(orders[1].0.since(orders[0].0) >= ORDER_EVERY, "{orders:?}");
}

#[test]
fn no_more_keys_come_in_than_are_enough() {
    let mut world = world();
    let keys =
        |node: u16| (0..30).map(move |i| asked(&format!("{node}-{i}"), 1_000 - u64::from(node), 0));
    for id in 0..4 {
        world.member(node(id)).told = keys(id).collect();
    }
    world.live();
    assert_eq!(has(&world, SWITCH).keys.len(), 64, "8 n log n of four nodes");
    world.delivered.clear();
    world.live();
    assert!(world.delivered.iter().all(|(_, order)| order.hot.is_none()), "and it rests there");
}

/// As many keys as are enough, which are warm; the coldest is delegated.
fn full() -> World {
    let mut world = world();
    world.member(SWITCH).delegates = true;
    let warm = |reads, writes| {
        let keys = (0..63).map(move |i| asked(&format!("warm-{i}"), reads, 0));
        keys.chain([asked("delegation", 0, writes)]).collect::<Vec<_>>()
    };
    world.member(node(2)).told = warm(100, 1_000);
    world.live();
    // Half of the threshold is 12; that is no reason to go, nor to come.
    world.member(node(2)).told = warm(15, 14);
    world.live_for(Duration::from_secs(5));
    let order = has(&world, SWITCH);
    assert_eq!(
        (order.keys.len(), entry(order, "delegation").unwrap().delegation.is_some()),
        (64, true)
    );
    world
}

#[test]
fn a_key_that_is_much_hotter_takes_the_place_of_the_coldest() {
    let mut world = full();
    let begin = world.status().hot_decisions.len();
    let come = |world: &mut World, key: &str, reads: u64| {
        world.member(node(1)).told.push(asked(key, reads, 0));
        world.live_for(Duration::from_secs(1));
        entry(has(world, SWITCH), key).is_some()
    };
    assert!(!come(&mut world, "warmer", 27), "they would change places all the time");
    assert!(come(&mut world, "hot", 300), "twenty times as hot as the others");
    assert!(agreed(&world) && has(&world, SWITCH).keys.len() == 64);
    let decisions = world.status().hot_decisions.split_off(begin);
    let did: Vec<_> = decisions.iter().map(|it| (it.did, it.name.key.as_slice())).collect();
    let gone = |did| (did, &b"delegation"[..]);
    let came = (HotAction::Added, &b"hot"[..]);
    assert_eq!(did, [gone(HotAction::DelegationEnded), gone(HotAction::Removed), came]);
    assert!(decisions[1].why.contains("14 times per second is little beside 300"), "{decisions:?}");
    // What is pinned stays, however cold.
    world.controller.pin(world.now, "a", b"warm-5").unwrap();
    world.member(node(2)).told.retain(|it| it.key != b"warm-5");
    assert!(come(&mut world, "hotter", 400) && come(&mut world, "hottest", 500));
    assert!(entry(has(&world, SWITCH), "warm-5").is_some());
    assert_eq!(has(&world, SWITCH).keys.len(), 65, "beside as many as are enough");
}

#[test]
fn of_two_keys_with_one_hash_there_is_no_second_and_other_keyspaces_may_be_off() {
    let mut world = world();
    let now = world.now;
    let spec = crate::KeyspaceSpec { hot: HotPolicy::Off, ..hash("b", 2, 2) };
    world.controller.create_keyspace(now, spec).unwrap();
    let off = HotKey { keyspace: KeyspaceId(2), ..asked("k", 9_000, 0) };
    let nowhere = HotKey { keyspace: KeyspaceId(9), ..asked("k", 9_000, 0) };
    let long = HotKey { key: vec![7; wire::KEY_MAX + 1], ..asked("", 9_000, 0) };
    world.member(node(1)).told = vec![off, nowhere, long, asked("k", 100, 0)];
    world.live();
    assert_eq!(has(&world, SWITCH).keys.len(), 1);
    let status = world.status();
    assert_eq!(status.keyspaces[1].hot, HotPolicy::Off);
    let refused = world.controller.pin(world.now, "b", b"k").unwrap_err();
    assert!(refused.to_string().contains("\"b\""), "{refused}");
}

#[test]
fn one_node_has_nobody_to_share_with() {
    let mut world = World::with_keyspace(1, 1, 2, 1);
    world.member(node(0)).told = vec![asked("k", 9_000, 0)];
    world.controller.pin(world.now, "a", b"p").unwrap();
    world.live();
    assert_eq!(has(&world, SWITCH).revision, Revision::NONE);
    let mut two = World::with_keyspace(2, 1, 2, 1);
    two.member(node(0)).told = vec![asked("k", 9_000, 0)];
    two.live();
    assert_eq!(has(&two, SWITCH).keys.len(), 1);
    two.member(node(1)).cut_off = true;
    two.live_for(Duration::from_secs(2));
    assert!(has(&two, SWITCH).keys.is_empty());
}

#[test]
fn the_status_with_hot_keys_survives_its_json() {
    let mut world = world();
    world.member(node(2)).told = vec![asked("k", 1_000, 0)];
    world.live();
    let status = world.status();
    assert!(
        !status.hot.is_empty()
            && !status.hot_decisions.is_empty()
            && status.hot_revision > Revision::NONE
    );
    let text = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<crate::Status>(&text).unwrap(), status);
    let alone = Controller::new(config(1, 1), None, Instant(0)).unwrap().status(Instant(0));
    assert!(alone.hot.is_empty() && alone.hot_revision.is_none());
}
