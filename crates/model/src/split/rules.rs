//! What may happen, what nodes do, and what is promised.

use super::scope::{Bug, Rules, Scope};
use super::state::{
    Action, Held, KEYS, MAPS, Map, Node, PARTITIONS, Partition, REQUESTS, Record, Stamp, Store,
    World, Write,
};
use crate::state::Bits;
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// Places in what is left.
const SPLITS: usize = 0;
const MERGES: usize = 1;
const MOVES: usize = 2;
const CUTS: usize = 3;

/// The key of a request.
fn key_of(request: u8) -> u8 {
    request % KEYS as u8
}

impl Rules {
    /// The partition that a stamp names, if a node goes by it.
    fn partition<'a>(&self, world: &'a World, node: u8, stamp: Stamp) -> Option<&'a Partition> {
        let fits = |it: &&Partition| it.id == stamp.id && it.epoch == stamp.epoch && it.open;
        let installed = usize::from(world.node(node).installed);
        let maps = world.maps.get(..installed).unwrap_or_default();
        let known = if self.has(Bug::ServeParent) {
            maps
        } else {
            maps.get(installed.saturating_sub(1)..).unwrap_or_default()
        };
        known.iter().flat_map(|map| &map.partitions).find(fits)
    }

    /// A request arrives at a node, which takes it if it is the head.
    fn request(&self, world: &mut World, node: u8, request: u8, stamp: Stamp) {
        let Some(partition) = self.partition(world, node, stamp) else { return };
        let is_head = partition.chain.first() == Some(&node);
        let is_made = !partition.parents.is_empty();
        if !is_head || !partition.keys.has(key_of(request)) || !is_ready(world.node(node), stamp.id)
        {
            return;
        }
        let it = world.node_mut(node);
        let Some(held) = it.holds.held(stamp.id) else { return };
        let known = held.session(request);
        let version = if known > 0 { known } else { held.last + 1 };
        if known == 0 {
            it.holds.apply(stamp.id, key_of(request), request, version);
            it.disk = it.holds.clone();
            world.late |= is_made;
        }
        world.network.insert(Write { stamp, version, request });
    }

    /// A write arrives at a node, which takes it if it is the tail.
    fn write(&self, world: &mut World, node: u8, write: Write) {
        let Write { stamp, version, request } = write;
        let Some(partition) = self.partition(world, node, stamp) else { return };
        let is_made = !partition.parents.is_empty();
        if partition.chain.last() != Some(&node) || !is_ready(world.node(node), stamp.id) {
            return;
        }
        let it = world.node_mut(node);
        let Some(held) = it.holds.held(stamp.id) else { return };
        let known = held.session(request);
        if known == 0 && version == held.last + 1 {
            it.holds.apply(stamp.id, key_of(request), request, version);
            it.disk = it.holds.clone();
        } else if known != version {
            return;
        } else {
            world.again |= is_made;
        }
        let answered = world.answer(request);
        world.torn |= answered > 0 && answered != version;
        if let Some(place) = world.answers.get_mut(usize::from(request)) {
            *place = version;
        }
    }

    /// What a node makes of what it holds of those that a partition was made of.
    fn make(&self, world: &World, store: &Store, partition: &Partition) -> Option<Held> {
        let parents: ArrayVec<&Held, PARTITIONS> =
            partition.parents.iter().filter_map(|id| store.held(*id)).collect();
        let first = *parents.first()?;
        let counts = parents.iter().map(|it| it.last).max().unwrap_or(0);
        let of_one = parents.last().filter(|_| self.has(Bug::CountOfOne)).map(|it| it.last);
        let last = if self.has(Bug::CountAnew) { 0 } else { of_one.unwrap_or(counts) };
        let second_half = world.maps.iter().find_map(|map| map.get(partition.id));
        let second_half = second_half.is_some_and(|it| !it.keys.has(0));
        let none = self.has(Bug::SessionsGone) || self.has(Bug::SessionsToOne) && second_half;
        let sessions = std::array::from_fn(|request| {
            let of = |held: &&Held| held.session(request as u8);
            let known = parents.iter().map(of).max().unwrap_or(0);
            let of_one = self.has(Bug::SessionsOfOne).then_some(of(&first));
            if none { 0 } else { of_one.unwrap_or(known) }
        });
        Some(Held { id: partition.id, since: 0, last, sessions })
    }

    /// A node follows a map: it makes what it can, and forgets the rest.
    fn install(&self, world: &mut World, node: u8, revision: u8) {
        let Some(map) = world.maps.get(usize::from(revision) - 1).cloned() else { return };
        let before = world.map_of(node).cloned();
        let mut store = world.node(node).holds.clone();
        let mine = map.partitions.iter().filter(|it| it.chain.contains(&node));
        for partition in mine.clone() {
            let id = partition.id;
            let known = store.held(id).copied();
            if partition.empty == Some(node) {
                if known.is_some_and(|it| it.since != partition.epoch) {
                    store.held.retain(|it| it.id != id);
                    forget(&mut store, partition.keys);
                }
                continue;
            }
            let was_empty = before.as_ref().and_then(|map| map.get(id)?.empty) == Some(node);
            if self.has(Bug::ForgetLate) && was_empty {
                forget(&mut store, partition.keys);
            }
            if known.is_some() && !self.has(Bug::MakeAgain) {
                continue;
            }
            let Some(made) = self.make(world, &store, partition) else { continue };
            store.held.retain(|it| it.id != id);
            store.held.push(made);
        }
        let is_mine = |id: u8| mine.clone().any(|it| it.id == id);
        let is_parent = |id: u8| mine.clone().any(|it| it.parents.contains(&id));
        let keeps = |id: u8| {
            is_mine(id) || self.has(Bug::ServeParent) || self.has(Bug::MakeAgain) && is_parent(id)
        };
        let gone: Vec<u8> = store.held.iter().map(|it| it.id).filter(|id| !keeps(*id)).collect();
        store.held.retain(|it| keeps(it.id));
        let keys = mine.clone().map(|it| it.keys).fold(Bits(0), Bits::or);
        for key in 0..KEYS as u8 {
            let was = |id: &u8| {
                world.maps.iter().any(|map| map.get(*id).is_some_and(|it| it.keys.has(key)))
            };
            if !keys.has(key) || self.has(Bug::ForgetArea) && gone.iter().any(was) {
                store.set(key, Record::default());
            }
        }
        store.revision = revision;
        let it = world.node_mut(node);
        (it.holds, it.installed) = (store, revision);
    }

    /// Whether both nodes of a closed chain have installed it and hold what it needs.
    fn can_settle(world: &World, partition: &Partition) -> bool {
        let there = |node: &u8| {
            let known = world.map_of(*node).and_then(|map| map.get(partition.id));
            known.is_some_and(|it| it.epoch == partition.epoch)
                && is_ready(world.node(*node), partition.id)
        };
        !partition.open && partition.chain.iter().all(there)
    }

    fn settle(world: &mut World, id: u8) {
        let Some(partition) = world.map().get(id).cloned() else { return };
        let [head, tail] = partition.chain[..] else { return };
        copy(world, &partition, (head, tail), None);
        world.settled.insert(id);
    }

    /// The controller changes the map.
    fn change(world: &mut World, with: impl FnOnce(&mut Map)) {
        let mut map = world.map().clone();
        with(&mut map);
        for partition in &map.partitions {
            if world.map().get(partition.id).is_none_or(|it| it.epoch != partition.epoch) {
                world.settled = Bits(world.settled.0 & !Bits::of(partition.id).0);
            }
        }
        world.maps.push(map);
    }

    fn split(world: &mut World, id: u8) {
        let children = [world.next_id, world.next_id + 1];
        world.next_id += 2;
        Self::change(world, |map| {
            let Some(whole) = map.get(id).cloned() else { return };
            map.partitions.retain(|it| it.id != id);
            for (child, key) in children.into_iter().zip(whole.keys.iter()) {
                let parents = [id].into_iter().collect();
                map.partitions.push(Partition {
                    id: child,
                    keys: Bits::of(key),
                    epoch: 1,
                    open: true,
                    parents,
                    ..whole.clone()
                });
            }
        });
    }

    fn merge(world: &mut World) {
        let id = world.next_id;
        world.next_id += 1;
        Self::change(world, |map| {
            let parents = map.partitions.iter().map(|it| it.id).collect();
            let keys = map.partitions.iter().map(|it| it.keys).fold(Bits(0), Bits::or);
            let Some(last) = map.partitions.last().cloned() else { return };
            let joint = Partition { id, keys, epoch: 1, open: true, parents, ..last };
            map.partitions = [joint].into_iter().collect();
        });
    }

    fn orders(&self, world: &World, actions: &mut Vec<Action>) {
        if world.maps.len() >= usize::from(self.scope.maps) {
            return;
        }
        let [splits, merges, moves, _] = world.left;
        let map = world.map();
        for partition in &map.partitions {
            let Partition { id, open, ref chain, .. } = *partition;
            if open {
                if splits + merges + moves > 0 {
                    actions.push(Action::Close(id));
                }
                continue;
            }
            if !world.settled.has(id) {
                continue;
            }
            actions.push(Action::Open(id));
            if splits > 0 && partition.keys.iter().count() > 1 {
                actions.push(Action::Split(id));
            }
            if moves > 0 && (0..self.scope.nodes).any(|node| !chain.contains(&node)) {
                actions.push(Action::Move(id));
            }
        }
        let [one, other] = &map.partitions[..] else { return };
        let together = one.chain == other.chain || self.has(Bug::MergeApart);
        let settled = [one, other].iter().all(|it| !it.open && world.settled.has(it.id));
        if merges > 0 && together && settled {
            actions.push(Action::Merge);
        }
    }

    fn take(world: &mut World, what: usize) {
        if let Some(left) = world.left.get_mut(what) {
            *left -= 1;
        }
    }
}

/// What all nodes hold of all keys.
fn records(world: &World) -> impl Iterator<Item = Record> {
    world.nodes.iter().flat_map(|it| it.holds.records)
}

/// Whether what a node holds of a partition is on its disk.
fn is_ready(node: &Node, id: u8) -> bool {
    node.holds.held(id).is_some() && node.disk.held(id).is_some()
}

fn forget(store: &mut Store, keys: Bits) {
    keys.iter().for_each(|key| store.set(key, Record::default()));
}

/// Has one node hold of a partition what another holds, on disk.
fn copy(world: &mut World, partition: &Partition, (from, to): (u8, u8), since: Option<u8>) {
    let giver = world.node(from).holds.clone();
    let Some(held) = giver.held(partition.id).copied() else { return };
    let it = world.node_mut(to);
    let known = it.holds.held(partition.id).map_or(0, |it| it.since);
    it.holds.held.retain(|it| it.id != partition.id);
    it.holds.held.push(Held { since: since.unwrap_or(known), ..held });
    partition.keys.iter().for_each(|key| it.holds.set(key, giver.record(key)));
    it.disk = it.holds.clone();
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let chain: ArrayVec<u8, 2> = [0, 1].into_iter().collect();
        let partition = |id: u8, keys: Bits| Partition {
            id,
            keys,
            epoch: 1,
            open: true,
            chain: chain.clone(),
            parents: ArrayVec::new(),
            empty: None,
        };
        let keys: Bits = (0..KEYS as u8).collect();
        let partitions: ArrayVec<Partition, PARTITIONS> = if self.scope.two {
            keys.iter().map(|key| partition(key + 1, Bits::of(key))).collect()
        } else {
            [partition(1, keys)].into_iter().collect()
        };
        let held = partitions.iter().map(|it| Held { id: it.id, ..Held::default() }).collect();
        let store = Store { held, revision: 1, ..Store::default() };
        let member = Node { holds: store.clone(), disk: store, installed: 1 };
        let other = Node { installed: 1, ..Node::default() };
        let Scope { splits, merges, moves, cuts, .. } = self.scope;
        vec![World {
            maps: [Map { partitions }].into_iter().collect(),
            nodes: (0..self.scope.nodes)
                .map(|node| if chain.contains(&node) { member.clone() } else { other.clone() })
                .collect(),
            network: BTreeSet::new(),
            settled: Bits(0),
            answers: [0; REQUESTS],
            torn: false,
            late: false,
            again: false,
            left: [splits, merges, moves, cuts],
            next_id: 3,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let opened = world.maps.iter().flat_map(|map| &map.partitions).filter(|it| it.open);
        let stamps: BTreeSet<Stamp> =
            opened.map(|it| Stamp { id: it.id, epoch: it.epoch }).collect();
        for (node, it) in (0..).zip(&world.nodes) {
            for request in 0..self.scope.requests {
                let arrives = |stamp: &Stamp| Action::Request(node, request, *stamp);
                actions.extend(stamps.iter().map(arrives));
            }
            actions.extend(world.network.iter().map(|write| Action::Deliver(node, *write)));
            let newer = it.holds.revision.max(it.installed + 1)..=world.maps.len() as u8;
            actions.extend(newer.map(|revision| Action::Install(node, revision)));
            if it.disk != it.holds {
                actions.push(Action::Sync(node));
            }
            if world.left.get(CUTS).is_some_and(|left| *left > 0) {
                actions.push(Action::Cut(node));
            }
        }
        for partition in &world.map().partitions {
            let Partition { id, ref chain, empty, .. } = *partition;
            if Self::can_settle(world, partition) && !world.settled.has(id) {
                actions.push(Action::Settle(id));
            }
            let copies = |it: &u8| world.node(*it).holds.held(id).is_none();
            let follows = |it: &u8| {
                let known = world.map_of(*it).and_then(|map| map.get(id));
                known.is_some_and(|it| it.epoch == partition.epoch)
            };
            let giver = chain.last().is_some_and(|it| follows(it) && is_ready(world.node(*it), id));
            if empty.is_some_and(|it| copies(&it) && follows(&it)) && giver {
                actions.push(Action::Copy(id));
            }
        }
        self.orders(world, actions);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Request(node, request, stamp) => {
                self.request(&mut world, node, request, stamp);
            }
            Action::Deliver(node, write) => self.write(&mut world, node, write),
            Action::Close(id) => Self::change(&mut world, |map| {
                if let Some(it) = map.get_mut(id) {
                    (it.open, it.epoch) = (false, it.epoch + 1);
                }
            }),
            Action::Open(id) => Self::change(&mut world, |map| {
                if let Some(it) = map.get_mut(id) {
                    (it.open, it.epoch, it.empty) = (true, it.epoch + 1, None);
                }
            }),
            Action::Split(id) => {
                Self::take(&mut world, SPLITS);
                Self::split(&mut world, id);
            }
            Action::Merge => {
                Self::take(&mut world, MERGES);
                Self::merge(&mut world);
            }
            Action::Move(id) => {
                Self::take(&mut world, MOVES);
                let nodes = self.scope.nodes;
                Self::change(&mut world, |map| {
                    let Some(it) = map.get_mut(id) else { return };
                    let to = (0..nodes).find(|node| !it.chain.contains(node));
                    if let (Some(head), Some(to)) = (it.chain.first_mut(), to) {
                        *head = to;
                    }
                    (it.epoch, it.empty) = (it.epoch + 1, to);
                });
            }
            Action::Settle(id) => Self::settle(&mut world, id),
            Action::Copy(id) => {
                let partition = world.map().get(id)?.clone();
                let [head, tail] = partition.chain[..] else { return None };
                copy(&mut world, &partition, (tail, head), Some(partition.epoch));
            }
            Action::Install(node, revision) => self.install(&mut world, node, revision),
            Action::Sync(node) => {
                let it = world.node_mut(node);
                it.disk = it.holds.clone();
            }
            Action::Cut(node) => {
                Self::take(&mut world, CUTS);
                let it = world.node_mut(node);
                (it.holds, it.installed) = (it.disk.clone(), 0);
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("no request is applied twice", |_, world: &World| {
                !world.torn && records(world).all(|it| !it.twice)
            }),
            Property::always("versions of a key increase", |_, world: &World| {
                records(world).all(|it| !it.back)
            }),
            Property::always("what was answered is held", |rules: &Self, world: &World| {
                world.map().partitions.iter().all(|it| rules.holds_answered(world, it))
            }),
            Property::sometimes("all requests are answered", |rules: &Self, world: &World| {
                (0..rules.scope.requests).all(|request| world.answer(request) > 0)
            }),
        ];
        if self.scope.splits + self.scope.merges > 0 {
            properties
                .push(Property::sometimes("a new partition takes a write", |_, world: &World| {
                    world.late
                }));
            properties
                .push(Property::sometimes("it knows what was done before", |_, world: &World| {
                    world.again
                }));
        }
        if self.scope.moves > 0 {
            properties.push(Property::sometimes(
                "a node that was copied to serves",
                |_, world: &World| {
                    world.map().partitions.iter().any(|it| {
                        it.open && it.chain.first() == Some(&2) && is_ready(world.node(2), it.id)
                    })
                },
            ));
        }
        properties
    }
}

impl Rules {
    /// Whether the nodes of a partition that follow the newest map and hold it have all that was
    /// answered of its keys.
    fn holds_answered(&self, world: &World, partition: &Partition) -> bool {
        let newest = world.maps.len() as u8;
        let nodes = partition.chain.iter().map(|node| world.node(*node));
        let holders =
            nodes.filter(|it| it.installed == newest && it.holds.held(partition.id).is_some());
        let answered: Vec<u8> = (0..self.scope.requests)
            .filter(|it| world.answer(*it) > 0 && partition.keys.has(key_of(*it)))
            .collect();
        holders.into_iter().all(|it| {
            answered.iter().all(|request| it.holds.record(key_of(*request)).made_by.has(*request))
        })
    }
}

const _: () = assert!(MAPS >= 7, "two become one after a move: seven maps");
