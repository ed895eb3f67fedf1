//! What may happen, what the controller decides, and what is promised.

use super::scope::{Bug, Rules};
use super::state::{Chain, Life, NODES_MAX, Node, Store, VERSIONS_MAX, World};
use super::steps::{Action, serves};
use crate::state::Bits;
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::collections::BTreeSet;

impl Rules {
    fn nodes_steps(&self, world: &World, actions: &mut Vec<Action>) {
        for (node, it) in (0..).zip(&world.nodes) {
            if it.life != Life::Known {
                continue;
            }
            let full = it.holds.newest() == VERSIONS_MAX;
            if it.chain.open && it.chain.is_head(node) && !full {
                let news = (1..=self.scope.writes).filter(|write| !it.holds.knows(*write));
                actions.extend(news.map(|write| Action::Take(node, write)));
            }
            if it.disk != it.holds {
                actions.push(Action::Sync(node));
            }
            if world.map.nodes.contains(&node) && it.chain.epoch < world.map.epoch {
                actions.push(Action::Install(node));
            }
            let learns = it.chain.has_learner && it.chain.is_last(node) && it.chain.open;
            if learns && !it.holds.caught_up && world.follows(node) {
                actions.push(Action::Copy(node));
            }
        }
        actions.extend(world.network.iter().copied().map(Action::Deliver));
    }

    fn controllers_steps(&self, world: &World, actions: &mut Vec<Action>) {
        let map = &world.map;
        for (node, it) in (0..).zip(&world.nodes) {
            if it.life == Life::Back {
                actions.push(Action::Report(node));
            }
            let others = map.members().iter().filter(|other| **other != node).count();
            if it.life != Life::Known && map.nodes.contains(&node) && others > 0 {
                actions.push(Action::Drop(node));
            }
        }
        let learner = map.nodes.last().filter(|_| map.has_learner);
        let caught_up = learner.is_some_and(|node| self.has_caught_up(world.node(*node)));
        if map.open && world.closes > 0 && (caught_up || world.joins > 0 && !map.has_learner) {
            actions.push(Action::Close);
        }
        if map.open || !map.nodes.iter().all(|node| world.settled.has(*node)) {
            return;
        }
        let outside = (0..).zip(&world.nodes).filter(|(node, it)| {
            it.life == Life::Known && world.joins > 0 && !map.nodes.contains(node)
        });
        let newcomers = outside.map(|(node, _)| Some(node)).filter(|_| !map.has_learner);
        let orders = if self.scope.reorders && map.nodes.len() > 1 { 0..2 } else { 0..1 };
        for newcomer in newcomers.chain([None]) {
            actions.extend(orders.clone().map(|turn| Action::Open(newcomer, turn > 0)));
        }
    }

    /// Whether a learner has said that it has caught up, which is so when its disk knows.
    fn has_caught_up(&self, learner: &Node) -> bool {
        learner.life == Life::Known && learner.disk.caught_up
    }

    fn faults(&self, world: &World, actions: &mut Vec<Action>) {
        let running: Vec<u8> = (0..)
            .zip(&world.nodes)
            .filter(|(_, it)| it.life == Life::Known)
            .map(|(node, _)| node)
            .collect();
        if world.cuts > 0 {
            let sets = (1..1_u8 << self.scope.nodes).map(Bits);
            let sets = sets.filter(|set| set.iter().all(|node| running.contains(&node)));
            actions.extend(sets.map(Action::Cut));
        }
        if world.losses > 0 {
            actions.extend(running.iter().map(|node| Action::Lose(*node)));
        }
    }

    /// The next epoch, closed.
    fn close(&self, world: &mut World, without: Option<u8>) {
        world.settled = Bits(0);
        let map = &mut world.map;
        let learner = map.nodes.last().copied().filter(|_| map.has_learner);
        (map.epoch, map.open) = (map.epoch + 1, false);
        map.nodes.retain(|node| Some(*node) != without);
        map.has_learner = learner.is_some() && learner != without;
    }

    fn open(&self, world: &mut World, newcomer: Option<u8>, turn: bool) {
        let map = &world.map;
        let learner = map.nodes.last().filter(|_| map.has_learner);
        let stays = learner.is_some_and(|node| !self.has_caught_up(world.node(*node)));
        world.settled = Bits(0);
        let map = &mut world.map;
        (map.epoch, map.opened, map.open) = (map.epoch + 1, map.epoch + 1, true);
        map.has_learner = stays || newcomer.is_some();
        if turn {
            let members = map.nodes.len() - usize::from(stays);
            if let Some(members) = map.nodes.get_mut(..members) {
                members.rotate_left(1);
            }
        }
        world.joins -= u8::from(newcomer.is_some());
        map.nodes.extend(newcomer);
    }

    fn report(&self, world: &mut World, node: u8) {
        world.node_mut(node).life = Life::Known;
        let map = &world.map;
        let is_learner = map.has_learner && map.nodes.last() == Some(&node);
        if map.nodes.contains(&node) && !self.has(Bug::RestartGoesOn) {
            self.close(world, Some(node).filter(|_| is_learner));
        }
    }

    fn copy(&self, world: &mut World, learner: u8) -> Option<()> {
        let tail = *world.map.members().last()?;
        let source = world.follows(tail).then(|| world.node(tail).holds)?;
        let it = world.node_mut(learner);
        for version in source.committed.iter() {
            it.holds.record(version, source.write(version));
            it.holds.committed.insert(version);
        }
        it.holds.stable = it.holds.stable.max(source.stable);
        it.holds.caught_up = true;
        Some(())
    }

    /// Whether anything that is no fault and no new request leads on from here.
    fn goes_on(&self, world: &World) -> bool {
        let mut actions = Vec::new();
        self.nodes_steps(world, &mut actions);
        self.controllers_steps(world, &mut actions);
        let steps = actions.into_iter().filter(|it| !matches!(it, Action::Take(..)));
        steps.into_iter().any(|action| self.next_state(world, action).is_some())
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let nodes: ArrayVec<u8, NODES_MAX> = (0..self.scope.members).collect();
        let map = Chain { epoch: 1, opened: 1, open: true, has_learner: false, nodes };
        let node = |node: u8| {
            if node >= self.scope.members {
                return Node::default();
            }
            let store = Store { epoch: 1, caught_up: true, ..Store::default() };
            Node { holds: store, disk: store, chain: map.clone(), ..Node::default() }
        };
        vec![World {
            nodes: (0..self.scope.nodes).map(node).collect(),
            map: map.clone(),
            settled: Bits(0),
            network: BTreeSet::new(),
            shown: [0; VERSIONS_MAX as usize],
            joins: self.scope.joins,
            // To take each in, and to make it a member.
            closes: 2 * self.scope.joins,
            cuts: self.scope.cuts,
            losses: self.scope.losses,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.nodes_steps(world, actions);
        self.controllers_steps(world, actions);
        self.faults(world, actions);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Take(node, write) => self.take(&mut world, node, write),
            Action::Deliver(message) => self.deliver(&mut world, message),
            Action::Sync(node) => {
                let it = world.node_mut(node);
                it.disk = it.holds;
            }
            Action::Cut(nodes) => {
                world.cuts -= 1;
                for node in nodes.iter() {
                    let it = world.node_mut(node);
                    let (holds, disk) = (it.disk, it.disk);
                    *it = Node { life: Life::Back, holds, disk, ..Node::default() };
                }
            }
            Action::Lose(node) => {
                world.losses -= 1;
                *world.node_mut(node) = Node { life: Life::Gone, ..Node::default() };
            }
            Action::Report(node) => self.report(&mut world, node),
            Action::Drop(node) => self.close(&mut world, Some(node)),
            Action::Close => {
                world.closes -= 1;
                self.close(&mut world, None);
            }
            Action::Open(newcomer, turn) => self.open(&mut world, newcomer, turn),
            Action::Install(node) => self.install(&mut world, node),
            Action::Copy(node) => self.copy(&mut world, node)?,
        }
        self.follow_up(&mut world);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(KEPT, |rules: &Self, world: &World| {
                let mut tails = (0..).zip(&world.nodes).filter(|(node, it)| serves(it, *node));
                tails.all(|(_, it)| rules.shows_all(world, &it.holds))
            }),
            Property::always(ONCE, |rules: &Self, world: &World| {
                let times = |write: u8| world.shown.iter().filter(|it| **it == write).count();
                (1..=rules.scope.writes).all(|write| times(write) <= 1)
            }),
            Property::always(GOES_ON, |rules: &Self, world: &World| {
                let faults = world.cuts + world.losses;
                let rests = world.map.open
                    && world.map.nodes.iter().all(|node| {
                        world.follows(*node) && world.node(*node).holds.pending() == Bits(0)
                    });
                let gone =
                    world.map.members().iter().all(|node| world.node(*node).life == Life::Gone);
                faults > 0 || rests || gone || rules.goes_on(world)
            }),
            Property::sometimes("a write is shown", |_, world: &World| world.shown[0] > 0),
        ];
        if self.scope.cuts + self.scope.losses > 0 {
            properties.push(Property::sometimes(
                "a chain that was closed shows a write",
                |_, world: &World| {
                    let mut nodes = (0..).zip(&world.nodes);
                    world.map.opened > 1
                        && nodes.any(|(node, it)| {
                            serves(it, node) && it.chain.epoch > 1 && it.holds.committed != Bits(0)
                        })
                },
            ));
        }
        if self.scope.joins > 0 {
            properties.push(Property::sometimes("a learner is a member", |_, world: &World| {
                world.map.open && world.map.members().len() > 1
            }));
        }
        properties
    }
}

impl Rules {
    /// Whether all that was ever shown is shown, and nothing without what it was computed from.
    fn shows_all(&self, world: &World, holds: &Store) -> bool {
        (1..).zip(world.shown).all(|(version, write)| {
            let kept = write == 0 || holds.committed.has(version) && holds.write(version) == write;
            let based = !self.scope.ordered
                || !holds.committed.has(version)
                || version == 1
                || holds.committed.has(version - 1);
            kept && based
        })
    }
}

/// The promises.
const KEPT: &str = "what was shown is shown";
const ONCE: &str = "every request is done once";
const GOES_ON: &str = "nothing waits for ever";
