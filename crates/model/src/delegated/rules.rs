//! What may happen, what nodes do, and what is promised.

use super::scope::{Bug, Rules};
use super::state::{Action, CHAIN, Life, Message, Node, Store, VERSIONS, World};
use crate::state::Bits;
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// The order that names the first delegation.
const FIRST: u8 = 1;
/// The order that ends it.
const ENDED: u8 = 2;
/// The order that names the second.
const SECOND: u8 = 3;

impl Rules {
    /// The order that began the delegation of a version.
    fn delegation(&self, version: u8) -> u8 {
        if version <= self.scope.first { FIRST } else { SECOND }
    }

    /// Whether two versions are of the same delegation.
    fn are_together(&self, one: u8, other: u8) -> bool {
        one > 0 && other > 0 && self.delegation(one) == self.delegation(other)
    }

    /// Whether a store has a version or a newer one of its delegation.
    fn has_it(&self, store: &Store, version: u8) -> bool {
        store.newest >= version && self.are_together(store.newest, version)
    }

    /// Whether what a node has told says that its disk has a version.
    fn says(&self, told: u8, version: u8) -> bool {
        if self.has(Bug::OlderCounts) {
            return self.are_together(told, version);
        }
        told >= version && (self.has(Bug::OtherDelegation) || self.are_together(told, version))
    }

    /// Whether a node takes writes of the delegation of a version.
    fn takes(&self, node: &Node, version: u8) -> bool {
        let delegation = self.delegation(version);
        let over = node.holds.newest > 0 && self.delegation(node.holds.newest) > delegation;
        let open = node.installed > 0 && node.installed <= delegation && !over;
        open && (!Self::is_anew(node, delegation) || self.has(Bug::TakeAnew))
    }

    /// Whether a node has started anew since a delegation began.
    fn is_anew(node: &Node, delegation: u8) -> bool {
        node.begun_with >= delegation
    }

    /// A write arrives at a place of its chain.
    fn take(&self, world: &mut World, version: u8, place: u8, unsynced: Bits) {
        let chain: ArrayVec<u8, CHAIN> = world.chain(version).iter().copied().collect();
        let Some(node) = chain.get(usize::from(place)).copied() else { return };
        let it = world.node(node);
        if it.life != Life::Up || !self.takes(it, version) {
            return;
        }
        let it = world.node_mut(node);
        it.holds.newest = it.holds.newest.max(version);
        if usize::from(place) + 1 == chain.len() {
            let told = it.told;
            if let Some(waits) = it.waits_mut(version) {
                let before = waits.map_or(unsynced, |before| before.and(unsynced));
                *waits = Some(before);
            }
            self.hear(world, node, told);
            return;
        }
        let lacks = !self.has_it(&it.disk, version) && !self.has(Bug::HideUnsynced);
        let own = if lacks { Bits::of(place) } else { Bits(0) };
        let unsynced = unsynced.or(own);
        world.network.insert(Message::Write { version, place: place + 1, unsynced });
    }

    /// The last of chains looks at what it was told.
    fn hear(&self, world: &mut World, last: u8, told: [u8; super::NODES]) {
        for version in 1..=world.chains.len() as u8 {
            let chain: ArrayVec<u8, CHAIN> = world.chain(version).iter().copied().collect();
            let it = world.node_mut(last);
            it.told = told;
            let says = |place: u8| {
                let node = chain.get(usize::from(place)).copied();
                node.is_some_and(|node| self.says(it.told_by(node), version))
            };
            let anyone = self.has(Bug::AnyoneCounts) && (0..chain.len() as u8).any(says);
            let missing = |waits: Bits| waits.iter().filter(|it| !anyone && !says(*it)).collect();
            let waits = it.waits.get(usize::from(version) - 1).copied().flatten().map(missing);
            if let Some(place) = it.waits_mut(version) {
                *place = waits;
            }
        }
    }

    fn deliver(&self, world: &mut World, message: Message) {
        match message {
            Message::Write { version, place, unsynced } => {
                self.take(world, version, place, unsynced);
            }
            Message::Durable { from, to, version } => {
                let it = world.node_mut(to);
                let known = it.told_by(from);
                let newer = version > known;
                if it.life == Life::Up && newer && self.takes(it, version) {
                    let mut told = it.told;
                    if let Some(place) = told.get_mut(usize::from(from)) {
                        *place = version;
                    }
                    self.hear(world, to, told);
                }
            }
        }
    }

    /// What every node says and does at once whenever it can: more of it at more moments is only
    /// harder, for what is said arrives when it likes.
    fn follow_up(&self, world: &mut World) {
        for version in 1..=world.chains.len() as u8 {
            let chain: ArrayVec<u8, CHAIN> = world.chain(version).iter().copied().collect();
            let Some((last, before)) = chain.split_last() else { continue };
            for node in before {
                let it = world.node(*node);
                let store = if self.has(Bug::TellRecorded) { it.holds } else { it.disk };
                if it.life == Life::Up && self.has_it(&store, version) {
                    let (from, to, version) = (*node, *last, store.newest);
                    world.network.insert(Message::Durable { from, to, version });
                }
            }
            let it = world.node(*last);
            let waits = it.waits.get(usize::from(version) - 1).copied().flatten();
            let told = waits.is_some_and(|waits| waits == Bits(0) || self.has(Bug::LastUntold));
            let synced = self.has_it(&it.disk, version) || self.has(Bug::LastUnsynced);
            if it.life == Life::Up && told && synced {
                world.shown.insert(version);
                world.node_mut(*last).shown.insert(version);
            }
        }
    }

    /// What a node says to home that it holds of the first delegation; `None`: nothing yet.
    fn answer(&self, node: &Node) -> Option<u8> {
        if node.life != Life::Up || node.installed < ENDED || node.disk != node.holds {
            return None;
        }
        let newest = node.holds.newest;
        let shows = !self.has(Bug::FetchShownOnly) || node.shown.has(newest);
        Some(if self.are_together(newest, FIRST) && shows { newest } else { 0 })
    }

    fn grants(&self, world: &World, actions: &mut Vec<Action>) {
        let given = world.chains.len() as u8;
        let open = match world.order {
            FIRST => given < self.scope.first,
            SECOND => (self.scope.first..self.scope.first + self.scope.second).contains(&given),
            _ => false,
        };
        if !open {
            return;
        }
        let mut chains: Vec<ArrayVec<u8, CHAIN>> = vec![ArrayVec::new()];
        for _ in 0..self.scope.chain {
            let longer = chains.iter().flat_map(|chain| {
                let others = (0..self.scope.nodes).filter(|node| !chain.contains(node));
                others.map(|node| chain.iter().copied().chain([node]).collect())
            });
            chains = longer.collect();
        }
        // Nodes are all alike: the first chain is one of them.
        let many = if given == 0 { 1 } else { chains.len() };
        actions.extend(chains.into_iter().take(many).map(Action::Grant));
    }

    fn start_anew(world: &mut World, node: u8, disk: Store) {
        // It has installed none.
        *world.node_mut(node) = Node { holds: disk, disk, begun_with: u8::MAX, ..Node::default() };
    }

    /// Whether what nodes have told includes all that was shown. Of the nodes that started anew as
    /// many may lack some as may fail.
    fn is_told(&self, world: &World) -> bool {
        let count = |nodes: Bits| nodes.iter().count();
        let may_fail = usize::from(self.scope.chain) - 1;
        let silent = usize::from(self.scope.nodes) - count(world.asked);
        let waits = self.scope.torn && !self.has(Bug::TrustTheRestarted);
        let doubtful = if waits { may_fail } else { 0 };
        silent + count(world.anew).min(doubtful) <= may_fail
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let store = Store { newest: 0, order: FIRST };
        let node = Node { holds: store, disk: store, installed: FIRST, ..Node::default() };
        vec![World {
            nodes: (0..self.scope.nodes).map(|_| node.clone()).collect(),
            order: FIRST,
            chains: ArrayVec::new(),
            network: BTreeSet::new(),
            asked: Bits(0),
            anew: Bits(0),
            found: 0,
            home: None,
            shown: Bits(0),
            cuts: self.scope.cuts,
            losses: self.scope.losses,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.grants(world, actions);
        let firsts = (1..=world.chains.len() as u8).map(|version| Message::Write {
            version,
            place: 0,
            unsynced: Bits(0),
        });
        actions.extend(world.network.iter().copied().chain(firsts).map(Action::Deliver));
        for (node, it) in (0..).zip(&world.nodes) {
            if it.life != Life::Up {
                continue;
            }
            if it.disk != it.holds {
                actions.push(Action::Sync(node));
            }
            // None that is older than one that it was given.
            let orders = it.holds.order.max(it.installed + 1)..=world.order;
            actions.extend(orders.map(|order| Action::Install(node, order)));
            if world.home.is_none() && !world.asked.has(node) && self.answer(it).is_some() {
                actions.push(Action::Tell(node));
            }
            if world.cuts > 0 {
                actions.push(Action::Cut(node));
            }
            if world.losses > 0 {
                actions.push(Action::Lose(node));
                actions.extend(self.scope.torn.then_some(Action::Tear(node)));
            }
        }
        if world.home.is_none() && self.is_told(world) {
            actions.push(Action::Recall);
        }
        if world.order == FIRST || world.order == ENDED && world.home.is_some() {
            actions.push(Action::Order);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Grant(chain) => world.chains.push(chain),
            Action::Deliver(message) => self.deliver(&mut world, message),
            Action::Sync(node) => {
                let it = world.node_mut(node);
                it.disk = it.holds;
            }
            Action::Cut(node) => {
                world.cuts -= 1;
                let disk = world.node(node).disk;
                Self::start_anew(&mut world, node, disk);
            }
            Action::Lose(node) => {
                world.losses -= 1;
                *world.node_mut(node) = Node { life: Life::Gone, ..Node::default() };
            }
            Action::Tear(node) => {
                world.losses -= 1;
                Self::start_anew(&mut world, node, Store { newest: 0, order: FIRST });
            }
            Action::Order => {
                // Without a second delegation nothing more is to be seen.
                if world.order == ENDED && self.scope.second == 0 {
                    return None;
                }
                world.order += 1;
            }
            Action::Install(node, order) => {
                let it = world.node_mut(node);
                it.installed = order;
                it.begun_with = it.begun_with.min(order);
                it.holds.order = order;
            }
            Action::Tell(node) => {
                world.found = world.found.max(self.answer(world.node(node))?);
                world.asked.insert(node);
                if Self::is_anew(world.node(node), FIRST) {
                    world.anew.insert(node);
                }
            }
            Action::Recall => world.home = Some(world.found),
        }
        self.follow_up(&mut world);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("what was shown comes home", |rules: &Self, world: &World| {
                let mut shown = world.shown.iter().filter(|it| *it <= rules.scope.first);
                world.home.is_none_or(|home| shown.all(|version| version <= home))
            }),
            Property::sometimes("a write is shown", |_, world: &World| world.shown.has(1)),
            Property::sometimes("one comes home that was shown", |_, world: &World| {
                world.shown.has(1) && world.home == Some(1)
            }),
        ];
        if self.scope.losses > 0 {
            properties.push(Property::sometimes(
                "one comes home without the last of its chain",
                |_, world: &World| {
                    let last = world.chain(1).last();
                    let gone = last.is_some_and(|last| world.node(*last).life == Life::Gone);
                    world.home == Some(1) && world.shown.has(1) && gone
                },
            ));
        }
        if self.scope.second > 0 {
            properties.push(Property::sometimes("one of each is shown", |rules, world: &World| {
                world.shown.has(1) && world.shown.has(rules.scope.first + 1)
            }));
        }
        properties
    }
}

const _: () = assert!(VERSIONS <= 7, "sets of versions have eight bits");
