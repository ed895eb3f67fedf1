//! What nodes and the switch do, and what is promised.

use super::scope::{Bug, Rules};
use super::state::{End, Map, NODES_MAX, Node, WRITES_MAX, World};
use crate::returns::Store;
use crate::state::Bits;
use stateright::{Model, Property};
use std::fmt;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A head takes a write.
    Write(u8),
    /// A member records the next write of its predecessor.
    Pass(u8),
    /// A member commits its next write.
    Commit(u8),
    /// The head of a closed chain records a write that another member has pending.
    Offer(u8),
    /// The newest order reaches a node.
    Order(u8),
    /// The switch takes the newest tables.
    Tables,
    /// A node is asked to end.
    Ask(u8),
    /// It is told that it may.
    MayEnd(u8),
    /// It ends.
    End(u8),
    /// A node crashes.
    Crash(u8),
    /// A node starts.
    Start(u8),
    /// A node that does not run has not answered for very long.
    GiveUp(u8),
    /// The controller puts a node's new incarnation on record.
    Register(u8),
    /// It closes the chain, which somebody leaves or is back to.
    Close,
    /// It closes the chain without a node that does not run.
    CloseWithout(u8),
    /// It takes a node back into the closed chain.
    TakeBack(u8),
    /// It opens the chain, in the same order or the other way round.
    Open(bool),
    /// It fences a node that leaves.
    Fence(u8),
    /// It lets a node in again.
    Lift(u8),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(node) => write!(f, "{node} takes a write"),
            Self::Pass(node) => write!(f, "{node} records a write"),
            Self::Commit(node) => write!(f, "{node} commits a write"),
            Self::Offer(node) => write!(f, "{node} offers the head a write"),
            Self::Order(node) => write!(f, "{node} is given the newest order"),
            Self::Tables => f.write_str("the switch is given the newest tables"),
            Self::Ask(node) => write!(f, "{node} is asked to end"),
            Self::MayEnd(node) => write!(f, "{node} is told that it may end"),
            Self::End(node) => write!(f, "{node} ends"),
            Self::Crash(node) => write!(f, "{node} crashes"),
            Self::Start(node) => write!(f, "{node} starts"),
            Self::GiveUp(node) => write!(f, "{node} is waited for no longer"),
            Self::Register(node) => write!(f, "the incarnation of {node} is put on record"),
            Self::Close => f.write_str("the chain is closed"),
            Self::CloseWithout(node) => write!(f, "the chain is closed without {node}"),
            Self::TakeBack(node) => write!(f, "{node} is taken back into the closed chain"),
            Self::Open(false) => f.write_str("the chain opens"),
            Self::Open(true) => f.write_str("the chain opens the other way round"),
            Self::Fence(node) => write!(f, "{node} is fenced"),
            Self::Lift(node) => write!(f, "{node} is let in again"),
        }
    }
}

/// The promises.
const SHOWN: &str = "what is acknowledged is shown";
const NOBODY_WAITS: &str = "nobody waits for a node that ended when it might";

/// The members before and behind a node, in the chain that it follows.
fn neighbours(world: &World, node: u8) -> (Option<u8>, Option<u8>) {
    let Some(own) = &world.node(node).map else { return (None, None) };
    let Some(place) = own.chain.iter().position(|member| *member == node) else {
        return (None, None);
    };
    // What one of another epoch sends is refused.
    let fits = |other: &u8| world.is_in(*other, own.epoch);
    let before = place.checked_sub(1).and_then(|place| own.chain.get(place)).copied();
    let behind = own.chain.get(place + 1).copied();
    (before.filter(fits), behind.filter(fits))
}

/// The next write that a node is sent: the oldest that its predecessor has pending and it lacks.
fn next_of(before: &Store, own: &Store) -> Option<u8> {
    before.pending().into_iter().find(|version| own.write(*version) == 0)
}

/// Whether a node is the last of the chain that it follows.
fn is_last(it: &Node, node: u8) -> bool {
    it.map.as_ref().is_some_and(|map| map.chain.last() == Some(&node))
}

/// What a member of a closed chain has pending and the head of it lacks, with the head.
fn next_offer(world: &World, node: u8) -> Option<(u8, u8)> {
    let it = world.node(node);
    let own = it.map.as_ref().filter(|own| !own.open && own.chain.contains(&node))?;
    let head = own.chain.first().copied().filter(|head| world.is_in(*head, own.epoch))?;
    Some((head, next_of(&it.store, &world.node(head).store)?))
}

impl Rules {
    /// Whether a node answers reads.
    fn serves(&self, it: &Node, node: u8) -> bool {
        let is_tail = |map: &Map| map.open && map.chain.last() == Some(&node);
        let away = |map: &Map| self.has(Bug::ServeAway) && map.away.has(node);
        it.up && it.map.as_ref().is_some_and(|map| is_tail(map) || away(map))
    }

    fn of_nodes(&self, world: &World, actions: &mut Vec<Action>) {
        for (node, it) in (0..).zip(&world.nodes) {
            let Some(own) = it.map.as_ref().filter(|_| it.up) else { continue };
            let is_head = own.open && own.chain.first() == Some(&node);
            let has_room = usize::from(it.store.newest()) < WRITES_MAX;
            if is_head && has_room && world.writes < self.scope.writes {
                actions.push(Action::Write(node));
            }
            let (before, _) = neighbours(world, node);
            let next = before.and_then(|before| next_of(&world.node(before).store, &it.store));
            if next.is_some() {
                actions.push(Action::Pass(node));
            }
            if self.next_commit(world, node).is_some() {
                actions.push(Action::Commit(node));
            }
            if next_offer(world, node).is_some() && !self.has(Bug::CommitForBeingLast) {
                actions.push(Action::Offer(node));
            }
        }
    }

    fn of_processes(&self, world: &World, actions: &mut Vec<Action>) {
        let (leaves, crashes, starts) = world.left;
        for (node, it) in (0..).zip(&world.nodes) {
            if !it.up {
                if starts > 0 {
                    actions.push(Action::Start(node));
                }
                if self.scope.crashes > 0 && !world.given_up.has(node) {
                    actions.push(Action::GiveUp(node));
                }
                continue;
            }
            if leaves > 0 && world.is_known(node) && !world.leaving.has(node) {
                actions.push(Action::Ask(node));
            }
            if crashes > 0 {
                actions.push(Action::Crash(node));
            }
            if it.end != End::Untold {
                actions.push(Action::End(node));
            }
            let newest = it.map.as_ref().map(|map| map.revision);
            if world.is_known(node) && newest != Some(world.map.revision) {
                actions.push(Action::Order(node));
            }
        }
        if world.tables.revision != world.map.revision {
            actions.push(Action::Tables);
        }
    }

    fn of_controller(&self, world: &World, actions: &mut Vec<Action>) {
        if self.may_close(world) {
            actions.push(Action::Close);
        }
        if self.may_open(world) {
            actions.extend([Action::Open(false), Action::Open(true)]);
        }
        for (node, it) in (0..).zip(&world.nodes) {
            if it.up && !world.is_known(node) {
                actions.push(Action::Register(node));
            }
            if self.may_close_without(world, node) {
                actions.push(Action::CloseWithout(node));
            }
            if self.may_take_back(world, node) {
                actions.push(Action::TakeBack(node));
            }
            if Self::may_fence(world, node) {
                actions.push(Action::Fence(node));
            }
            if self.may_lift(world, node) {
                actions.push(Action::Lift(node));
            }
            if self.may_end(world, node).is_some_and(|end| end != it.end) {
                actions.push(Action::MayEnd(node));
            }
        }
    }

    /// A node installs the present map.
    fn order(&self, world: &mut World, node: u8) {
        let map = world.map.clone();
        let it = world.node_mut(node);
        if map.chain.contains(&node) {
            // The versions may have been given to other writes since.
            if it.returns && it.store.epoch < map.opened && !self.has(Bug::KeepPending) {
                it.store.pending().into_iter().for_each(|version| it.store.forget(version));
            }
            (it.returns, it.store.epoch) = (false, map.epoch);
        } else {
            it.returns = true;
            if !map.away.has(node) {
                it.store = Store::default();
                it.base = None;
            } else if self.has(Bug::ForgetAway) {
                it.store = Store { stable: it.store.stable, ..Store::default() };
            }
        }
        it.map = Some(map);
    }

    /// What a node commits next, if it may: the last of a chain what has come down to it, others
    /// what their successors have committed. In a closed chain what has come down is what all have.
    fn next_commit(&self, world: &World, node: u8) -> Option<u8> {
        let it = world.node(node);
        let own = it.map.as_ref().filter(|_| it.up)?;
        let version = it.store.pending().first().copied()?;
        if own.chain.last() != Some(&node) {
            let (_, behind) = neighbours(world, node);
            let behind = world.node(behind?);
            return behind.store.committed.has(version).then_some(version);
        }
        let has = |other: &u8| {
            *other == node
                || world.is_in(*other, own.epoch) && world.node(*other).store.write(version) > 0
        };
        let at_once = own.open || self.has(Bug::CommitForBeingLast);
        (at_once || own.chain.iter().all(has)).then_some(version)
    }

    fn offer(world: &mut World, node: u8) {
        let Some((head, version)) = next_offer(world, node) else { return };
        let write = world.node(node).store.write(version);
        world.node_mut(head).store.record(version, write);
    }

    fn commit(&self, world: &mut World, node: u8) {
        let Some(version) = self.next_commit(world, node) else { return };
        let it = world.node_mut(node);
        it.store.committed.insert(version);
        let (write, is_last) = (it.store.write(version), is_last(it, node));
        let told = world.acknowledged.get_mut(usize::from(write).wrapping_sub(1));
        if let Some(told) = told.filter(|_| is_last) {
            *told = version;
        }
    }

    fn take_write(world: &mut World, node: u8) {
        world.writes += 1;
        let write = world.writes;
        let store = &mut world.node_mut(node).store;
        store.record(store.newest() + 1, write);
    }

    fn pass(world: &mut World, node: u8) {
        let (Some(before), _) = neighbours(world, node) else { return };
        let source = world.node(before).store;
        let store = &mut world.node_mut(node).store;
        if let Some(version) = next_of(&source, store) {
            store.record(version, source.write(version));
        }
    }

    fn start(world: &mut World, node: u8) {
        world.left.2 -= 1;
        let Node { store, incarnation, .. } = *world.node(node);
        *world.node_mut(node) = Node {
            store,
            up: true,
            incarnation: incarnation + 1,
            base: Some(store.stable),
            returns: true,
            ..Node::default()
        };
    }

    /// Its process is gone, and what it had in memory.
    fn stop(world: &mut World, node: u8) {
        let it = world.node_mut(node);
        (it.up, it.map, it.base) = (false, None, None);
    }

    fn step(&self, world: &mut World, action: Action) {
        match action {
            Action::Write(node) => Self::take_write(world, node),
            Action::Pass(node) => Self::pass(world, node),
            Action::Commit(node) => self.commit(world, node),
            Action::Offer(node) => Self::offer(world, node),
            Action::Order(node) => self.order(world, node),
            Action::Tables => world.tables = world.map.clone(),
            Action::Ask(node) => {
                world.left.0 -= 1;
                world.leaving.insert(node);
            }
            Action::MayEnd(node) => {
                let end = self.may_end(world, node).unwrap_or_default();
                world.node_mut(node).end = end;
            }
            Action::End(node) => Self::stop(world, node),
            Action::Crash(node) => {
                world.left.1 -= 1;
                Self::stop(world, node);
                world.node_mut(node).end = End::Untold;
            }
            Action::Start(node) => Self::start(world, node),
            Action::GiveUp(node) => world.given_up.insert(node),
            Action::Register(node) => Self::register(world, node),
            Action::Close => Self::close_chain(world),
            Action::CloseWithout(node) => Self::close_without(world, node),
            Action::TakeBack(node) => self.take_back(world, node),
            Action::Open(is_turned) => self.open(world, is_turned),
            Action::Fence(node) => Self::fence(world, node),
            Action::Lift(node) => Self::lift(world, node),
        }
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let map = Map {
            revision: 1,
            epoch: 1,
            opened: 1,
            open: true,
            chain: (0..self.scope.nodes).collect(),
            returned: [None; NODES_MAX],
            incarnations: [0; NODES_MAX],
            away: Bits(0),
            fences: [0; NODES_MAX],
        };
        let store = Store { epoch: 1, ..Store::default() };
        let node = Node { store, up: true, map: Some(map.clone()), ..Node::default() };
        vec![World {
            nodes: (0..self.scope.nodes).map(|_| node.clone()).collect(),
            tables: map.clone(),
            map,
            leaving: Bits(0),
            given_up: Bits(0),
            writes: 0,
            acknowledged: [0; WRITES_MAX],
            left: (self.scope.leaves, self.scope.crashes, self.scope.starts),
            back: (Bits(0), Bits(0)),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.of_nodes(world, actions);
        self.of_processes(world, actions);
        self.of_controller(world, actions);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        self.step(&mut world, action);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(SHOWN, |rules: &Self, world: &World| {
                let mut served =
                    (0..).zip(&world.nodes).filter(|(node, it)| rules.serves(it, *node));
                served.all(|(_, it)| it.store.holds(&world.acknowledged, true))
            }),
            Property::always(NOBODY_WAITS, |_, world: &World| {
                (0..).zip(&world.nodes).all(|(node, it)| {
                    it.up || it.end != End::InOrder || is_waited_for_by_nobody(world, node)
                })
            }),
            // What the bounds allow must happen, else the checker looks at too little.
            Property::sometimes("a node ends when it might", |_, world: &World| {
                world.nodes.iter().any(|it| !it.up && it.end == End::InOrder)
            }),
            Property::sometimes("a node is back and holds the same", |_, world: &World| {
                world.map.open && world.back.0 != Bits(0)
            }),
        ];
        if self.scope.writes > 0 {
            all.push(Property::sometimes("a node is sent what it lacks", |_, world: &World| {
                world.map.open && world.back.1 != Bits(0)
            }));
        }
        all
    }
}

/// Whether a node is in no chain, and the switch sends it nothing.
fn is_waited_for_by_nobody(world: &World, node: u8) -> bool {
    !world.map.chain.contains(&node) && world.tables.fence(node).is_some()
}
