//! Delegations of hot keys: which keys go on any, under which number, and what ends them.

mod log;

use super::world::{POLL, World, hash, node};
use crate::{Alteration, HotAction, HotDecision, KeyspaceSpec};
use cluster::{
    Delegation, HotCount, HotEntry, HotKey, HotOrder, HotPolicy, Incarnation, KeyspaceId,
    KeyspaceKind, Member, NodeId,
};
use machine::{Instant, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{DelegationId, Generation, Revision};

const SWITCH: Member = Member::Switch(0);
const SPACE: KeyspaceId = KeyspaceId(1);
const SECOND: Duration = Duration::from_secs(1);

/// Five nodes, two replicas, and so many switches that can let writes go anywhere.
fn world(switches: u8) -> World {
    let mut world = World::with_keyspace(5, switches, 8, 2);
    for index in 0..u16::from(switches) {
        world.member(Member::Switch(index)).delegates = true;
    }
    world
}

/// Time between two looks at what was asked.
const STEP: Duration = Duration::from_millis(20);

/// A world in which key k is asked for.
struct Asked {
    world: World,
    /// Reads, writes, and requests that only its home can answer, per second.
    rates: [u64; 3],
    /// Thousandths of reads and writes that the switch has counted, up to when.
    counted: [u64; 2],
    until: Instant,
    /// What each node has to do, in requests per second.
    load: u64,
    /// Reads per second that find nobody who holds it.
    missed: u64,
}

impl Asked {
    fn new(rates: [u64; 3]) -> Self {
        Self::of(world(1), rates)
    }

    fn of(world: World, rates: [u64; 3]) -> Self {
        let until = world.now;
        Self { world, rates, counted: [0; 2], until, load: 0, missed: 0 }
    }

    /// Key k is delegated.
    fn delegated() -> Self {
        let mut asked = Self::new([100, 1_000, 0]);
        asked.live_until(|world| delegation(world).is_some());
        asked.live_for(SECOND);
        asked
    }

    fn live_for(&mut self, time: Duration) {
        let end = self.world.now + time;
        self.live_until(|world| world.now >= end);
    }

    /// Incarnations until something holds; says how long that took.
    fn live_until(&mut self, holds: impl Fn(&World) -> bool) -> Duration {
        let begin = self.world.now;
        let [reads, writes, home_only] = self.rates;
        self.world.member(node(2)).told = vec![told(SPACE, "k", self.rates)];
        let missed = HotKey { missed: self.missed, ..told(SPACE, "k", [0, 0, home_only]) };
        self.world.member(node(3)).told = vec![missed];
        let keyhash = self.world.map().keyspaces[0].keyhash(b"k");
        while !holds(&self.world) {
            assert!(self.world.now.since(begin) < 1_000 * SECOND, "{:#?}", self.world.status());
            let millis = self.world.now.since(self.until).as_millis();
            let millis = u64::try_from(millis).unwrap();
            self.until = self.until + Duration::from_millis(millis);
            for id in 0..5 {
                self.world.member(node(id)).requests += self.load * millis / 1_000;
            }
            let [read, wrote] = &mut self.counted;
            (*read, *wrote) = (*read + reads * millis, *wrote + writes * millis);
            let (reads, writes) = (*read / 1_000, *wrote / 1_000);
            let count = HotCount { keyspace: SPACE, keyhash, reads, spread: 0, writes };
            let active = active(&self.world);
            self.world.member(active).hot_counts = vec![count];
            self.world.live_for(STEP);
        }
        self.world.now.since(begin)
    }
}

fn told(keyspace: KeyspaceId, key: &str, [reads, writes, home_only]: [u64; 3]) -> HotKey {
    HotKey { keyspace, key: key.into(), reads, writes, home_only, ..HotKey::default() }
}

fn active(world: &World) -> Member {
    Member::Switch(world.map().active_switch)
}

fn order(world: &World) -> &HotOrder {
    &world.members[&active(world)].hot
}

fn entry(world: &World) -> Option<&HotEntry> {
    order(world).keys.iter().find(|it| it.key == b"k")
}

fn delegation(world: &World) -> Option<Delegation> {
    entry(world).and_then(|it| it.delegation)
}

fn did(world: &World) -> Vec<HotAction> {
    world.status().hot_decisions.iter().map(|it| it.did).collect()
}

fn last(world: &World) -> HotDecision {
    world.status().hot_decisions.last().cloned().unwrap()
}

#[test]
fn a_key_that_is_written_much_is_delegated() {
    let mut asked = Asked::new([100, 1_000, 0]);
    asked.live_until(|world| delegation(world).is_some());
    let world = &asked.world;
    let (order, it) = (order(world), entry(world).unwrap());
    assert_eq!(
        it.delegation,
        Some(Delegation { number: DelegationId::begun_by(order.revision), replicas: 2, copies: 0 })
    );
    assert_eq!(order.readers(it).count(), 5, "writes may go to all");
    order.check().unwrap();
    asked.live_for(SECOND);
    let world = &asked.world;
    assert!((0..5).all(|id| world.members[&node(id)].hot == *self::order(world)));
    assert_eq!(did(world), [HotAction::Added, HotAction::DelegationBegun]);
    let status = world.status();
    let known = status.hot[0].generation.unwrap().delegation.unwrap();
    assert_eq!((known.number, known.replicas), (delegation(world).unwrap().number, 2));
    assert!(known.age_ms >= 900 && known.age_ms < 2_000, "{known:?}");
    let text = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<crate::Status>(&text).unwrap(), status);
}

#[test]
fn a_key_is_left_at_home_where_delegations_cannot_be_or_do_not_pay() {
    for (rates, why) in [
        ([100, 1_000, 3], "what is asked can only be answered there"),
        ([1_000, 1, 0], "it is hardly written, and five copies are made"),
        ([10, 15, 0], "nobody wants it"),
    ] {
        let mut asked = Asked::new(rates);
        asked.live_for(3 * SECOND);
        assert_eq!(delegation(&asked.world), None, "{why}");
    }
    let mut asked = Asked::new([100, 1_000, 0]);
    asked.world.member(SWITCH).delegates = false;
    asked.live_for(3 * SECOND);
    assert_eq!(order(&asked.world).revision, Revision::NONE, "and it is not taken in for one");
}

#[test]
fn the_measure_is_an_eighth_of_what_a_node_has_to_do() {
    let mut asked = Asked::new([0; 3]);
    asked.load = 80_000;
    asked.live_for(SECOND);
    // Two nodes have a part in each write at home.
    asked.rates = [0, 4_750, 0];
    asked.live_for(2 * SECOND);
    assert_eq!(delegation(&asked.world), None);
    asked.rates = [0, 5_250, 0];
    asked.live_for(SECOND);
    assert!(delegation(&asked.world).is_some());
    asked.rates = [0, 2_750, 0];
    asked.live_for(5 * SECOND);
    assert!(delegation(&asked.world).is_some(), "it ends at half of that");
    asked.rates = [0, 2_250, 0];
    asked.live_for(5 * SECOND);
    assert_eq!(entry(&asked.world), None);
}

#[test]
fn only_hash_keyspaces_that_want_it_have_delegations_and_only_with_enough_nodes() {
    let mut world = world(1);
    let specs = [
        KeyspaceSpec { hot: HotPolicy::Reads, ..hash("reads", 2, 2) },
        KeyspaceSpec { hot: HotPolicy::Off, ..hash("off", 2, 2) },
        KeyspaceSpec { kind: KeyspaceKind::Range { prefix: vec![] }, ..hash("order", 1, 2) },
        hash("five", 2, 5),
        hash("four", 2, 4),
    ];
    for spec in specs {
        world.controller.create_keyspace(world.now, spec).unwrap();
    }
    let spaces = world.map().keyspaces;
    let under_delegations = |world: &World| -> Vec<String> {
        let delegated = order(world).keys.iter().filter(|it| it.delegation.is_some());
        let space = |it: &HotEntry| spaces.iter().find(|space| space.id == it.keyspace).unwrap();
        delegated.map(|it| space(it).name.clone()).collect()
    };
    // Counts so much more of each key every time.
    let ask = |world: &mut World, from: u64| {
        let all = spaces.iter();
        world.member(node(2)).told = all.map(|it| told(it.id, "k", [9_000, 1_000, 0])).collect();
        for round in from..from + 20 {
            let count = |it: &cluster::Keyspace| HotCount {
                keyspace: it.id,
                keyhash: it.keyhash(b"k"),
                reads: 900 * round,
                spread: 0,
                writes: 100 * round,
            };
            world.member(SWITCH).hot_counts = spaces.iter().map(count).collect();
            world.live_for(POLL);
        }
    };
    world.member(node(4)).cut_off = true;
    world.live_for(2 * SECOND);
    ask(&mut world, 0);
    assert_eq!(under_delegations(&world), ["a", "four"]);
    let hot: Vec<u16> = order(&world).keys.iter().map(|it| it.keyspace.0).collect();
    assert_eq!(hot, [1, 2, 4, 5, 6], "all but one have copies");
    world.revive(node(4));
    world.member(node(4)).cut_off = false;
    ask(&mut world, 20);
    assert_eq!(under_delegations(&world), ["a", "five", "four"]);
}

/// Their delegations would not fit a piece of a copy: their heads keep them at home.
#[test]
fn a_long_key_is_not_said_to_be_delegated() {
    let mut world = world(1);
    let key = |len| "k".repeat(len);
    let lens = [wire::DELEGATED_KEY_MAX, wire::DELEGATED_KEY_MAX + 1];
    let read = lens.map(|len| told(SPACE, &format!("r{}", key(len - 1)), [9_000, 1_000, 0]));
    let written = lens.map(|len| told(SPACE, &key(len), [100, 1_000, 0]));
    world.member(node(2)).told = [read, written].concat();
    world.live_for(SECOND);
    let known: Vec<(usize, bool)> =
        order(&world).keys.iter().map(|it| (it.key.len(), it.delegation.is_some())).collect();
    let [long, longer] = lens;
    assert_eq!(known, [(long, true), (long, true), (longer, false)]);
    let mut decisions = world.status().hot_decisions;
    decisions.retain(|it| it.did == HotAction::DelegationBegun && it.name.key.len() == longer);
    assert_eq!(decisions, []);
}

#[test]
fn copies_are_made_where_reads_pay_for_them() {
    let mut asked = Asked::new([0, 1_000, 0]);
    asked.live_until(|world| delegation(world).is_some());
    let first = delegation(&asked.world).unwrap();
    assert_eq!(first.copies, 0);
    asked.rates = [20_000, 1_000, 0];
    asked.live_for(SECOND);
    let more = delegation(&asked.world).unwrap();
    assert_eq!(
        (more.number, more.copies),
        (first.number, 4),
        "the same delegation: all five hold it"
    );
    asked.rates = [4_000, 1_000, 0];
    asked.live_for(SECOND);
    assert_eq!(delegation(&asked.world), Some(first), "the last of the chain has it in any case");
}

#[test]
fn copies_do_not_follow_what_lasts_for_a_second() {
    let copies = |asked: &Asked| delegation(&asked.world).unwrap().copies;
    let mut asked = Asked::new([20_000, 1_000, 0]);
    asked.live_until(|world| delegation(world).is_some());
    asked.live_for(SECOND);
    for _ in 0..4 {
        for reads in [9_000, 20_000] {
            asked.rates = [reads, 1_000, 0];
            asked.live_for(SECOND);
            assert_eq!(copies(&asked), 4, "three would pay at 9,000");
        }
    }
    asked.rates = [9_000, 1_000, 0];
    asked.live_for(4 * SECOND);
    assert_eq!(copies(&asked), 2);
}

/// Reads are counted over less time than writes are, of which there are fewer.
#[test]
fn copies_outlast_a_pause_of_all_who_ask() {
    let mut asked = Asked::new([900, 30, 0]);
    asked.load = 1_000;
    asked.live_until(|world| delegation(world).is_some());
    asked.live_for(5 * SECOND);
    let copies = delegation(&asked.world).unwrap().copies;
    assert_eq!(copies, 4, "all five hold it");
    for pause in (20..900).step_by(20) {
        for (rates, millis) in [([0, 0, 0], pause), ([900, 30, 0], 730)] {
            asked.rates = rates;
            let end = asked.world.now + Duration::from_millis(millis);
            asked.live_until(|world| {
                assert_eq!(delegation(world).map(|it| it.copies), Some(copies), "{pause} ms");
                world.now >= end
            });
        }
    }
}

/// What was answered under the one before is with too few nodes, or with more than are asked for.
#[test]
fn another_begins_when_the_keyspace_is_to_have_another_number_of_replicas() {
    let mut asked = Asked::delegated();
    for replicas in [3, 1] {
        let before = delegation(&asked.world).unwrap();
        let alteration = Alteration { replicas: Some(replicas), hot: None };
        let now = asked.world.now;
        asked.world.controller.alter_keyspace(now, "a", alteration).unwrap();
        let took = asked.live_until(|world| delegation(world) != Some(before));
        assert!(took < SECOND, "{took:?}");
        let present = delegation(&asked.world).unwrap();
        assert_eq!(present.replicas, replicas);
        assert!(present.number > before.number, "{present:?}");
        let decisions = asked.world.status().hot_decisions;
        let ended = decisions.iter().rfind(|it| it.did == HotAction::DelegationEnded).unwrap();
        let why = format!("to have {replicas} replicas, not {}", before.replicas);
        assert!(ended.why.contains(&why), "{ended:?}");
        asked.live_for(SECOND);
    }
}

#[test]
fn hot_keys_follow_what_their_keyspace_wants() {
    let mut asked = Asked::delegated();
    let alter = |asked: &mut Asked, hot| {
        let alteration = Alteration { replicas: None, hot: Some(hot) };
        asked.world.controller.alter_keyspace(asked.world.now, "a", alteration).unwrap();
        asked.live_for(SECOND);
        assert_eq!(asked.world.status().keyspaces[0].hot, hot);
    };
    asked.rates = [9_000, 1_000, 0];
    alter(&mut asked, HotPolicy::Reads);
    assert!(entry(&asked.world).is_some_and(|it| it.delegation.is_none()));
    alter(&mut asked, HotPolicy::Off);
    assert_eq!(entry(&asked.world), None);
    assert_eq!(last(&asked.world).did, HotAction::Removed);
    alter(&mut asked, HotPolicy::Replicate);
    asked.live_until(|world| delegation(world).is_some());
}

#[test]
fn a_delegation_goes_on_where_few_reads_are_lost_and_ends_where_many_are() {
    let mut asked = Asked::delegated();
    let number = delegation(&asked.world).unwrap().number;
    (asked.rates, asked.missed) = ([3_200, 1_000, 0], 50);
    asked.live_for(3 * SECOND);
    assert_eq!(delegation(&asked.world).unwrap().number, number, "one of 64");
    asked.missed = 3_200;
    let took = asked.live_until(|world| delegation(world).is_none());
    assert!(took < SECOND / 4, "{took:?}");
    let why = last(&asked.world).why;
    assert!(why.contains("found nobody with it; it stays there for 1 s"), "{why}");
}

#[test]
fn a_delegation_ends_when_it_was_not_worth_it_for_two_seconds() {
    let mut asked = Asked::delegated();
    asked.rates = [10, 5, 0];
    asked.live_for(SECOND);
    asked.rates = [100, 1_000, 0];
    asked.live_for(SECOND);
    assert_eq!(did(&asked.world), [HotAction::Added, HotAction::DelegationBegun]);
    asked.rates = [5, 0, 0];
    let took = asked.live_until(|world| delegation(world).is_none());
    assert!(took >= 2 * SECOND, "{took:?}");
    asked.live_until(|world| order(world).keys.is_empty());
    let end = [
        HotAction::Added,
        HotAction::DelegationBegun,
        HotAction::DelegationEnded,
        HotAction::Removed,
    ];
    assert_eq!(did(&asked.world), end);
}

#[test]
fn a_pinned_key_goes_for_little_and_is_hot_at_home_as_well() {
    let mut asked = Asked::new([10, 10, 0]);
    asked.load = 10_000;
    let now = asked.world.now;
    asked.world.controller.pin(now, "a", b"k").unwrap();
    asked.live_for(SECOND);
    let it = entry(&asked.world).expect("it is pinned");
    assert_eq!((it.delegation, it.readers), (None, 2));
    asked.rates = [10, 60, 0];
    asked.live_until(|world| delegation(world).is_some());
    asked.rates = [10, 0, 0];
    asked.live_until(|world| delegation(world).is_none());
    let ended = last(&asked.world);
    assert!(
        ended.did == HotAction::DelegationEnded && ended.why.contains("by itself"),
        "{ended:?}"
    );
    asked.live_for(6 * SECOND);
    assert_eq!(entry(&asked.world).unwrap().readers, 5, "nobody writes it any more");
}

#[test]
fn requests_that_only_the_home_can_answer_end_a_delegation_at_once_and_for_longer_each_time() {
    let mut asked = Asked::delegated();
    let mut stays = Vec::new();
    for round in 0..10 {
        asked.rates = [100, 1_000, 1];
        let took = asked.live_until(|world| delegation(world).is_none());
        assert!(took <= POLL + 2 * STEP, "{took:?} in round {round}");
        assert_eq!(last(&asked.world).did, HotAction::DelegationEnded);
        asked.rates = [100, 1_000, 0];
        let stayed = asked.live_until(|world| delegation(world).is_some());
        stays.push((stayed.as_millis() + 500) / 1_000);
    }
    assert_eq!(stays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    // It goes on for as long as it had to stay at home: that is forgiven.
    asked.live_for(301 * SECOND);
    asked.rates = [100, 1_000, 1];
    asked.live_until(|world| delegation(world).is_none());
    asked.rates = [100, 1_000, 0];
    let stayed = asked.live_until(|world| delegation(world).is_some());
    assert!(stayed <= 2 * SECOND, "{stayed:?}");
    let given = asked.world.delivered.iter().filter(|(member, _)| *member == SWITCH);
    let orders = given.filter_map(|(_, order)| order.hot.as_ref());
    let delegations = orders.filter_map(|order| order.keys.first()?.delegation);
    let mut numbers: Vec<DelegationId> = delegations.map(|delegation| delegation.number).collect();
    assert!(numbers.is_sorted());
    numbers.dedup();
    assert_eq!(numbers.len(), 12);
}

#[test]
fn a_key_whose_candidates_changes_is_given_another_delegation() {
    let mut asked = Asked::delegated();
    let mut numbers = vec![delegation(&asked.world).unwrap().number];
    let mut next = |asked: &mut Asked, what: &str| {
        let last = *numbers.last().unwrap();
        asked.live_until(|world| delegation(world).is_some_and(|it| it.number != last));
        let given = |(_, order): &(Member, cluster::Order)| order.hot.clone();
        let orders = asked.world.delivered.iter().filter_map(given);
        let number = delegation(&asked.world).unwrap().number;
        let first = orders.into_iter().find(|order| order.revision >= number.order()).unwrap();
        assert_eq!(first.revision, number.order(), "{what}");
        assert_eq!(first.keys[0].delegation.unwrap().number, number, "{what}");
        numbers.push(number);
        asked.live_for(SECOND);
    };
    asked.world.member(node(4)).cut_off = true;
    next(&mut asked, "a node goes");
    asked.world.revive(node(4));
    asked.world.member(node(4)).cut_off = false;
    next(&mut asked, "it comes back");
    asked.world.member(node(1)).restart();
    next(&mut asked, "a node begins another incarnation");
    asked.world.add_node(5);
    next(&mut asked, "a node is new");
    let mut given = asked.world.delivered.iter().filter(|(member, _)| *member == node(5));
    let first = given.find_map(|(_, order)| order.hot.as_ref()).unwrap();
    let began = delegation(&asked.world).unwrap().number;
    assert!(first.revision < began.order(), "it has had an order before it may be in a delegation");
    asked.world.controller.drain_node(asked.world.now, NodeId(0)).unwrap();
    next(&mut asked, "a node is to go");
    assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[0] != pair[1]));
    let ends = did(&asked.world).iter().filter(|did| **did == HotAction::DelegationEnded).count();
    assert_eq!(ends, 5);
    // Nothing changes: the delegation goes on.
    asked.live_for(5 * SECOND);
    assert_eq!(delegation(&asked.world).unwrap().number, *numbers.last().unwrap());
}

#[test]
fn all_delegations_end_when_generations_are_renewed() {
    for takes_over in [false, true] {
        let mut asked = Asked::of(world(2), [100, 1_000, 0]);
        asked.live_until(|world| delegation(world).is_some());
        asked.live_for(SECOND);
        let first = delegation(&asked.world).unwrap();
        if takes_over {
            asked.world.member(SWITCH).cut_off = true;
        } else {
            asked.world.member(SWITCH).hot = HotOrder::default();
        }
        let before = asked.world.members[&node(0)].hot.revision;
        asked.live_until(|world| order(world).revision > before);
        let it = entry(&asked.world).unwrap();
        assert!(it.generation > Generation::begun_by(before));
        assert!(did(&asked.world).contains(&HotAction::DelegationEnded));
        asked.live_until(|world| delegation(world).is_some());
        assert!(delegation(&asked.world).unwrap().number > first.number);
    }
}

#[test]
fn a_controller_that_comes_back_begins_no_delegation_under_a_number_of_before() {
    let mut asked = Asked::delegated();
    let before = delegation(&asked.world).unwrap();
    asked.world.restart(asked.world.config.clone());
    let was = order(&asked.world).revision;
    asked.live_until(|world| order(world).revision > was);
    asked.live_until(|world| delegation(world).is_some());
    assert!(delegation(&asked.world).unwrap().number > before.number);
}

/// A key, and the number of its delegation.
type Name = (Vec<u8>, DelegationId);

/// The generation of a key, its candidates, the incarnation of the switch, and the nodes in a
/// chain.
type Same = (Generation, Vec<(NodeId, Incarnation)>, Incarnation, u8);

/// What is the same in all orders that name one delegation, and what no later one may name.
#[derive(Default)]
struct Named {
    delegations: BTreeMap<Name, Same>,
    over: BTreeSet<Name>,
    revision: Revision,
}

impl Named {
    fn look(&mut self, order: &HotOrder) {
        order.check().unwrap();
        if order.revision <= self.revision {
            return;
        }
        self.revision = order.revision;
        let mut present = BTreeSet::new();
        for (it, delegation) in
            order.keys.iter().filter_map(|it| it.delegation.map(|delegation| (it, delegation)))
        {
            let row: Vec<_> = order.readers(it).collect();
            assert!(row.len() >= usize::from(delegation.replicas), "{it:?}");
            assert!(usize::from(delegation.copies) <= row.len(), "{it:?}");
            let name = (it.key.clone(), delegation.number);
            assert!(!self.over.contains(&name), "it is over: {it:?}");
            let same = (it.generation, row, order.switch, delegation.replicas);
            let known = self.delegations.entry(name.clone()).or_insert_with(|| {
                assert_eq!(delegation.number, DelegationId::begun_by(order.revision), "a new one");
                same.clone()
            });
            assert_eq!(*known, same);
            present.insert(name);
        }
        self.over.extend(self.delegations.keys().filter(|name| !present.contains(*name)).cloned());
    }
}

#[test]
fn whatever_happens_a_delegation_is_of_one_key_and_one_candidates_and_comes_but_once() {
    let mut delegations = 0;
    for seed in 0..20 {
        let mut rng = Rng::new(seed).fork("delegations");
        let mut world = world(2);
        world.add_node(5);
        let mut named = Named::default();
        let mut counts = BTreeMap::new();
        for _ in 0..300 {
            let victim = node(u16::try_from(rng.below(6)).unwrap());
            match rng.below(24) {
                0 => world.member(victim).cut_off = true,
                1..4 => (0..6).for_each(|id| world.member(node(id)).cut_off = false),
                4 => world.member(victim).restart(),
                5 => {
                    let active = active(&world);
                    world.member(active).hot = HotOrder::default();
                }
                6 => {
                    let active = active(&world);
                    world.member(active).restart();
                }
                7 => world.restart(world.config.clone()),
                8 => {
                    let home_only = u64::from(rng.chance(1, 4));
                    world.member(victim).told = vec![told(SPACE, "k", [0, 0, home_only])];
                }
                9 => {
                    let hot = &mut world.member(victim).hot;
                    hot.revision = Revision::new(hot.revision.get() + rng.below(1_000));
                }
                _ => {}
            }
            let keyspace = world.map().keyspaces[0].clone();
            let keys = ["k", "l", "m"];
            let rates = keys.map(|key| told(SPACE, key, [rng.below(900), rng.below(600), 0]));
            world.member(node(0)).told = rates.to_vec();
            let count = |it: HotKey| {
                let [reads, writes] = counts.entry(it.key.clone()).or_insert([0; 2]);
                (*reads, *writes) = (*reads + it.reads / 10, *writes + it.writes / 10);
                let (keyspace, keyhash) = (SPACE, keyspace.keyhash(&it.key));
                let (reads, writes) = (*reads, *writes);
                HotCount { keyspace, keyhash, reads, spread: 0, writes }
            };
            let counted: Vec<HotCount> = rates.into_iter().map(count).collect();
            let active = active(&world);
            world.member(active).hot_counts = counted;
            world.live_for(POLL);
            for (_, order) in world.delivered.drain(..) {
                order.hot.iter().for_each(|order| named.look(order));
            }
        }
        delegations += named.delegations.len();
    }
    assert!(delegations > 200, "{delegations}");
}

#[test]
fn a_node_is_not_removed_while_it_may_hold_the_newest_write_of_a_key() {
    let mut asked = Asked::delegated();
    let last = NodeId(4);
    asked.world.controller.drain_node(asked.world.now, last).unwrap();
    asked.live_until(|world| world.map().partitions.iter().all(|it| !it.chain.contains(&last)));
    asked.world.member(node(0)).recall = 1;
    asked.live_for(SECOND);
    let refused = |asked: &mut Asked| {
        let told = asked.world.controller.remove_node(asked.world.now, last);
        assert_eq!(told, Err(crate::CommandError::NodeInDelegations(last)));
    };
    refused(&mut asked);
    // A controller that starts anew has heard of no delegation.
    asked.world.restart(asked.world.config.clone());
    refused(&mut asked);
    asked.live_for(SECOND);
    refused(&mut asked);
    asked.world.member(node(0)).recall = 0;
    asked.live_for(SECOND);
    asked.world.controller.remove_node(asked.world.now, last).unwrap();
}
