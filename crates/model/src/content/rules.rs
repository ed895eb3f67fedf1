//! Bounds, rules that can be broken, and what may happen next.

use super::NODES;
use super::state::{Decision, Map, Node, State};
use crate::check::{self, Bounds};
use crate::state::Bits;
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::fmt;

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A node serves without its lease.
    NoLease,
    /// The controller goes on without a node while its lease runs.
    TakeOverEarly,
    /// A member serves whatever a route brings to it.
    TrustRoutes,
    /// A node serves what its map makes it, though the chain is closed.
    ServeClosed,
    /// A head knows the outcomes of the writes alone that it has ordered.
    OwnOutcomes,
    /// Outcomes are forgotten while copies are under way.
    ForgetEarly,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NoLease,
        Self::TakeOverEarly,
        Self::TrustRoutes,
        Self::ServeClosed,
        Self::OwnOutcomes,
        Self::ForgetEarly,
    ];
}

/// The bounds of one run of the checker.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Nodes of the chain.
    pub nodes: u8,
    /// What the controller may decide, each thing once, in any order.
    pub decisions: Vec<Decision>,
    /// Writes that clients make.
    pub writes: u8,
    /// Reads that clients make.
    pub reads: u8,
    /// Whether outcomes are forgotten.
    pub forgets: bool,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![
            Self::the_tail_is_lost(),
            Self::the_head_is_lost(),
            Self::roles_change(),
            Self::outcomes_go(),
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::NoLease | Bug::TakeOverEarly => Scope::the_tail_is_lost(),
            Bug::TrustRoutes | Bug::ServeClosed | Bug::OwnOutcomes => Scope::roles_change(),
            Bug::ForgetEarly => Scope::outcomes_go(),
        }
    }
}

impl Scope {
    /// The chain goes on without its tail.
    #[must_use]
    pub fn the_tail_is_lost() -> Self {
        let decisions = vec![Decision::CloseWithout(2), Decision::Open];
        let name = "the tail is lost";
        Self { name, nodes: 3, decisions, writes: 2, reads: 2, forgets: false }
    }

    /// The chain goes on without its head.
    #[must_use]
    pub fn the_head_is_lost() -> Self {
        let decisions = vec![Decision::CloseWithout(0), Decision::Open];
        let name = "the head is lost";
        Self { name, nodes: 3, decisions, writes: 2, reads: 2, forgets: false }
    }

    /// Head and tail change places, and one is lost after that.
    #[must_use]
    pub fn roles_change() -> Self {
        let decisions =
            vec![Decision::Close, Decision::Open, Decision::CloseWithout(1), Decision::Open];
        let name = "roles change";
        Self { name, nodes: 2, decisions, writes: 2, reads: 1, forgets: false }
    }

    /// Outcomes are forgotten while roles change.
    #[must_use]
    pub fn outcomes_go() -> Self {
        let decisions = vec![Decision::Close, Decision::Open];
        let name = "outcomes go";
        Self { name, nodes: 2, decisions, writes: 2, reads: 1, forgets: true }
    }
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The controller decides.
    Decide(Decision),
    /// This node is given this map; with the last one its lease.
    Order(u8, usize),
    /// The lease of this node ends.
    LeaseEnds(u8),
    /// A client sends a read, which leads to this node.
    Ask(u8),
    /// A read comes to where it leads.
    Read(u8, u8),
    /// A client sends a write.
    Send(u8),
    /// A copy of a write comes to this node.
    Write(u8, u8),
    /// No copy of a write is left.
    Gone(u8),
    /// This node forgets the outcome of a write.
    Forget(u8, u8),
    /// What is next comes from this node to the next of the chain.
    Forward(u8, u8),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Rules {
    fn nodes(&self) -> std::ops::Range<u8> {
        0..self.scope.nodes
    }

    fn of_controller(&self, state: &State, actions: &mut Vec<Action>) {
        let may = |it: &&Decision| self.may_decide(state, **it);
        let decisions = state.left.0.iter().filter(may);
        actions.extend(decisions.map(|it| Action::Decide(*it)));
        let last = state.maps.len() - 1;
        for node in self.nodes() {
            let at = state.node(node);
            actions.extend((at.map + 1..=last).map(|map| Action::Order(node, map)));
            if at.map == last && !at.lease {
                actions.push(Action::Order(node, last));
            }
            if at.lease {
                actions.push(Action::LeaseEnds(node));
            }
        }
    }

    fn of_clients(&self, state: &State, actions: &mut Vec<Action>) {
        if state.left.1 > 0 {
            actions.extend(self.nodes().map(Action::Ask));
        }
        actions.extend(state.reads.iter().map(|(node, seen)| Action::Read(*node, *seen)));
        for request in 0..self.scope.writes {
            let is_out = state.sent.has(request) && !state.gone.has(request);
            if !state.sent.has(request) {
                actions.push(Action::Send(request));
            }
            if is_out {
                actions.extend(self.nodes().map(|node| Action::Write(node, request)));
                if self.scope.forgets {
                    actions.push(Action::Gone(request));
                }
            }
            let may_forget = state.gone.has(request) || is_out && self.has(Bug::ForgetEarly);
            if self.scope.forgets && may_forget {
                let knows = |node: &u8| state.node(*node).log.contains(&request);
                let nodes = self.nodes().filter(knows);
                actions.extend(nodes.map(|node| Action::Forget(node, request)));
            }
        }
    }

    /// A member takes what its predecessor has if both are in one epoch.
    fn of_chain(&self, state: &State, actions: &mut Vec<Action>) {
        for from in self.nodes() {
            let map = state.map_of(from);
            let next = map.members.iter().skip_while(|it| **it != from).nth(1);
            let follows = |to: &&u8| {
                let lacks = state.node(**to).log.len() < state.node(from).log.len();
                state.map_of(**to).epoch == map.epoch && lacks
            };
            actions.extend(next.filter(follows).map(|to| Action::Forward(from, *to)));
        }
    }
}

impl Model for Rules {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = Node {
            map: 0,
            lease: true,
            log: ArrayVec::new(),
            committed: 0,
            ordered: Bits::default(),
            forgotten: Bits::default(),
        };
        let members: ArrayVec<u8, NODES> = self.nodes().collect();
        vec![State {
            maps: vec![Map { epoch: 1, open: true, members }],
            nodes: vec![node; self.scope.nodes.into()],
            reads: Vec::new(),
            sent: Bits::default(),
            gone: Bits::default(),
            answers: vec![None; self.scope.writes.into()],
            seen: 0,
            left: (self.scope.decisions.clone(), self.scope.reads),
            is_broken: false,
            went_on: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.is_broken {
            self.of_controller(state, actions);
            self.of_clients(state, actions);
            self.of_chain(state, actions);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Decide(decision) => {
                Self::decide(&mut state, decision);
                let place = state.left.0.iter().position(|it| *it == decision)?;
                state.left.0.remove(place);
            }
            Action::Order(node, map) => {
                let is_last = map + 1 == state.maps.len();
                let at = state.node_mut(node);
                (at.map, at.lease) = (map, at.lease || is_last);
                if state.map_of(node).members.last() == Some(&node) {
                    state.commit(node);
                }
            }
            Action::LeaseEnds(node) => state.node_mut(node).lease = false,
            Action::Ask(node) => {
                state.left.1 -= 1;
                state.reads.push((node, state.seen));
                state.reads.sort_unstable();
            }
            Action::Read(node, seen) => {
                let place = state.reads.iter().position(|it| *it == (node, seen))?;
                state.reads.remove(place);
                self.read(&mut state, (node, seen));
            }
            Action::Send(request) => state.sent.insert(request),
            Action::Write(node, request) => self.write(&mut state, node, request),
            Action::Gone(request) => state.gone.insert(request),
            Action::Forget(node, request) => state.node_mut(node).forgotten.insert(request),
            Action::Forward(from, to) => Self::forward(&mut state, from, to),
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("reads are new and writes applied once", |_, state: &State| {
                !state.is_broken
            }),
            // What the bounds allow must happen, else the checker looks at too little.
            Property::sometimes("a write is answered by another chain", |_, state: &State| {
                state.went_on
            }),
            Property::sometimes("a node is left behind that has a map of before", left_behind),
        ]
    }
}

/// Whether the chain serves while a node goes by a map in which it was the tail, or the head.
fn left_behind(_: &Rules, state: &State) -> bool {
    let map = state.map();
    let ends = |node: u8| {
        let own = state.map_of(node);
        let is_end = own.members.first() == Some(&node) || own.members.last() == Some(&node);
        own.open && own.epoch < map.epoch && is_end
    };
    map.epoch > 1 && (0..state.nodes.len() as u8).any(ends)
}
