//! What there is, and what members do with what comes.

use super::NODES;
use super::rules::{Bug, Rules};
use crate::state::Bits;
use arrayvec::ArrayVec;

/// Writes of all versions, in order: which request each is.
type Log = ArrayVec<u8, 4>;

/// The chain, as of one decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// Counts the decisions.
    pub epoch: u8,
    /// Whether clients are served.
    pub open: bool,
    /// Head first.
    pub members: ArrayVec<u8, NODES>,
}

/// What the controller may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The chain is closed, with all of its members.
    Close,
    /// It is closed without this node.
    CloseWithout(u8),
    /// It opens, and each has another place in it.
    Open,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The map that it has installed, by its place.
    pub map: usize,
    /// Whether it may serve what passes no switch.
    pub lease: bool,
    /// What it has recorded.
    pub log: Log,
    /// How much of that is committed here.
    pub committed: u8,
    /// Requests that it has ordered as the head.
    pub ordered: Bits,
    /// Requests whose outcomes it has forgotten.
    pub forgotten: Bits,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// All that was decided; the last one counts.
    pub maps: Vec<Map>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Reads under way: to whom, and the newest version that was seen when each was sent.
    pub reads: Vec<(u8, u8)>,
    /// Writes that were sent.
    pub sent: Bits,
    /// Those of which no copy is under way any more.
    pub gone: Bits,
    /// The version that each was first answered with.
    pub answers: Vec<Option<u8>>,
    /// The newest version that any client has seen.
    pub seen: u8,
    /// What is left to be decided, and how many reads to be sent.
    pub left: (Vec<Decision>, u8),
    /// Whether a promise was broken.
    pub is_broken: bool,
    /// Whether a write was answered after the chain had changed.
    pub went_on: bool,
}

impl State {
    /// What is decided.
    #[must_use]
    pub fn map(&self) -> &Map {
        self.maps.last().expect("there is a first one")
    }

    pub(super) fn node(&self, node: u8) -> &Node {
        self.nodes.get(usize::from(node)).expect("a node of the model")
    }

    pub(super) fn node_mut(&mut self, node: u8) -> &mut Node {
        self.nodes.get_mut(usize::from(node)).expect("a node of the model")
    }

    /// The map by which a node goes.
    pub(super) fn map_of(&self, node: u8) -> &Map {
        self.maps.get(self.node(node).map).expect("maps stay")
    }

    fn show(&mut self, version: u8, at_least: u8) {
        self.is_broken |= version < at_least;
        self.seen = self.seen.max(version);
    }

    /// A client hears how its write ended.
    fn answer(&mut self, request: u8, version: u8) {
        let first = self.answers.get_mut(usize::from(request)).expect("a request of the model");
        self.is_broken |= first.is_some_and(|first| first != version);
        *first = Some(version);
        self.went_on |= self.map().epoch > 1;
        self.show(version, 0);
    }

    /// Whoever is last commits what it has, and answers it.
    pub(super) fn commit(&mut self, node: u8) {
        let at = self.node(node);
        let news: Vec<(u8, u8)> = (1..).zip(at.log.iter().copied()).collect();
        let news = news.into_iter().skip(at.committed.into());
        let all = u8::try_from(at.log.len()).expect("few writes");
        for (version, request) in news.collect::<Vec<_>>() {
            self.answer(request, version);
        }
        self.node_mut(node).committed = all;
    }

    /// A member records a write; the last one commits it.
    pub(super) fn record(&mut self, node: u8, request: u8) {
        let log = &mut self.node_mut(node).log;
        let twice = log.contains(&request);
        log.push(request);
        if self.map_of(node).members.last() == Some(&node) {
            self.is_broken |= twice;
            self.commit(node);
        }
    }
}

impl Rules {
    /// Whether a node serves what its map makes it, at this place of the chain.
    fn serves(&self, state: &State, node: u8, place: impl Fn(&Map) -> Option<&u8>) -> bool {
        let map = state.map_of(node);
        let leased = state.node(node).lease || self.has(Bug::NoLease);
        let open = map.open || self.has(Bug::ServeClosed);
        let trusts = self.has(Bug::TrustRoutes) && map.members.contains(&node);
        leased && open && (place(map) == Some(&node) || trusts)
    }

    pub(super) fn read(&self, state: &mut State, (node, seen): (u8, u8)) {
        if self.serves(state, node, |map| map.members.last()) {
            let version = state.node(node).committed;
            state.show(version, seen);
        }
    }

    pub(super) fn write(&self, state: &mut State, node: u8, request: u8) {
        if !self.serves(state, node, |map| map.members.first()) {
            return;
        }
        let at = state.node(node);
        let own = !self.has(Bug::OwnOutcomes) || at.ordered.has(request);
        let known = at.log.iter().position(|it| *it == request).filter(|_| own);
        match known.filter(|_| !at.forgotten.has(request)) {
            Some(place) => {
                let version = u8::try_from(place).expect("few writes") + 1;
                if version <= at.committed {
                    state.answer(request, version);
                }
            }
            None if at.log.is_full() => {}
            None => {
                state.node_mut(node).ordered.insert(request);
                state.record(node, request);
            }
        }
    }

    /// The next write that a member lacks comes down the chain.
    pub(super) fn forward(state: &mut State, from: u8, to: u8) {
        let next = state.node(to).log.len();
        let request = state.node(from).log.get(next).copied();
        if let Some(request) = request {
            state.record(to, request);
        }
    }

    /// Whether the controller may decide this now.
    pub(super) fn may_decide(&self, state: &State, decision: Decision) -> bool {
        let map = state.map();
        match decision {
            Decision::Close => map.open,
            Decision::CloseWithout(node) => {
                let over = !state.node(node).lease || self.has(Bug::TakeOverEarly);
                map.members.contains(&node) && map.members.len() > 1 && over
            }
            Decision::Open => !map.open && Self::is_settled(state),
        }
    }

    fn is_settled(state: &State) -> bool {
        let (map, last) = (state.map(), state.maps.len() - 1);
        let logs = map.members.iter().map(|node| &state.node(*node).log);
        let first = map.members.first().map(|node| &state.node(*node).log);
        map.members.iter().all(|node| state.node(*node).map == last)
            && logs.into_iter().all(|log| Some(log) == first)
    }

    pub(super) fn decide(state: &mut State, decision: Decision) {
        let before = state.map();
        let Map { epoch, members, .. } = before.clone();
        let mut map = Map { epoch: epoch + 1, open: decision == Decision::Open, members };
        match decision {
            Decision::Close => {}
            Decision::CloseWithout(node) => map.members.retain(|it| *it != node),
            Decision::Open => {
                map.members.rotate_left(1);
                // All have the same, and whoever becomes the last has it committed.
                let all = map.members.clone();
                for node in all {
                    let node = state.node_mut(node);
                    node.committed = u8::try_from(node.log.len()).expect("few writes");
                }
            }
        }
        state.maps.push(map);
    }
}
