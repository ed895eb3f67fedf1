//! Which steps there are from a state, and where each leads.

use super::bug::Bug;
use super::controller::{Decision, Hot, Map};
use super::member::{Node, Switch};
use super::network::{Packet, Question};
use super::scope::{Rules, Scope};
use super::{NODES, SWITCHES};
use crate::state::Bits;
use stateright::{Model, Property};
use std::array;
use std::fmt;

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// All that was decided, oldest first.
    pub maps: Vec<Map>,
    /// By number; the first one serves in the beginning.
    pub switches: [Switch; SWITCHES],
    /// By number.
    pub nodes: [Node; NODES],
    /// What was sent and has not been taken, in order.
    pub network: Vec<Packet>,
    /// The newest version that any client has seen.
    pub seen: u8,
    /// What may still happen, of what the scope has.
    pub left: Left,
    /// A read showed something older than what had been seen before it.
    pub is_stale: bool,
}

/// How often what may still happen. See [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    /// What the controller may decide.
    pub decisions: Vec<Decision>,
    /// Writes of clients.
    pub writes: u8,
    /// Reads of clients.
    pub reads: u8,
    /// Leases that end.
    pub expiries: u8,
    /// Starts of switches.
    pub restarts: u8,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The controller decides.
    Decide(Decision),
    /// An order, by its place among all, reaches a switch.
    OrderSwitch(u8, usize),
    /// The last pipeline of a switch takes its tables.
    Swap(u8),
    /// An order reaches the shard of a node that has the key.
    OrderNode(u8, usize),
    /// The newest order reaches another shard of a node.
    OrderOther(u8),
    /// A lease ends: of a switch.
    SwitchExpires(u8),
    /// Of a node.
    NodeExpires(u8),
    /// The right of a node to answer direct requests ends.
    DirectEnds(u8),
    /// A switch starts anew.
    Restart(u8),
    /// A read passes a switch.
    Ask(u8, Question),
    /// A write passes a switch.
    Write(u8),
    /// A read that passes no switch reaches a node.
    AskDirect(u8),
    /// A packet arrives.
    Deliver(Packet),
    /// A node sends the last write that it has down its chain again.
    Resend(u8),
    /// The tail sends what it has to the node that holds a copy.
    Copy,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl State {
    /// The switch of this number.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn switch(&self, number: u8) -> &Switch {
        self.switches.get(usize::from(number)).expect("a switch of the model")
    }

    /// The node of this number.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn node(&self, number: u8) -> &Node {
        self.nodes.get(usize::from(number)).expect("a node of the model")
    }

    pub(super) fn switch_mut(&mut self, number: u8) -> &mut Switch {
        self.switches.get_mut(usize::from(number)).expect("a switch of the model")
    }

    pub(super) fn node_mut(&mut self, number: u8) -> &mut Node {
        self.nodes.get_mut(usize::from(number)).expect("a node of the model")
    }

    pub(super) fn send(&mut self, packet: Packet) {
        if let Err(at) = self.network.binary_search(&packet) {
            self.network.insert(at, packet);
        }
    }

    /// A reply with this version passes the switch that the node's assignment names, if it may. It
    /// raises the floor, unless it is to a request for many keys.
    pub(super) fn reply(&mut self, by: u8, version: u8, raises: bool, seen: u8) {
        if self.switch(by).serves(by).is_none() {
            return;
        }
        let floor = &mut self.switch_mut(by).floor;
        if raises && let Some(floor) = floor {
            *floor = version.max(*floor);
        }
        self.show(version, seen);
    }

    pub(super) fn show(&mut self, version: u8, seen: u8) {
        self.is_stale |= version < seen;
        self.seen = version.max(self.seen);
    }
}

impl Model for Rules {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let scope = &self.scope;
        let hot = if scope.hot { Hot::Copied } else { Hot::Cold };
        let map = Map {
            revision: 1,
            term: 0,
            epoch: 1,
            open: true,
            members: [0, 1].into_iter().collect(),
            fenced: Bits::default(),
            named: 0,
            is_active: true,
            hot,
            incarnations: [0; SWITCHES],
        };
        let told = Some(map.clone());
        let switch = |number: usize| Switch {
            incarnation: 0,
            lease: true,
            map: told.clone(),
            told: told.clone(),
            floor: (number == 0 && scope.hot).then_some(0),
        };
        let node = |_| Node {
            lease: true,
            direct: scope.direct,
            map: told.clone(),
            other_shard: 1,
            newest: 0,
            committed: 0,
            copy: 0,
        };
        let Scope { decisions, writes, reads, expiries, restarts, .. } = scope.clone();
        vec![State {
            maps: vec![map],
            switches: array::from_fn(switch),
            nodes: array::from_fn(node),
            network: Vec::new(),
            seen: 0,
            left: Left { decisions, writes, reads, expiries, restarts },
            is_stale: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.is_stale {
            return;
        }
        let may = |decision: &&Decision| self.may_decide(state, **decision);
        actions.extend(
            state.left.decisions.iter().filter(may).map(|decision| Action::Decide(*decision)),
        );
        self.orders(state, actions);
        let Left { writes, reads, expiries, restarts, .. } = state.left;
        for number in self.scope.switches() {
            let switch = state.switch(number);
            if let Some(map) = switch.serves(number) {
                if writes > 0 {
                    actions.push(Action::Write(number));
                }
                if reads > 0 {
                    let copy = switch.floor.map(Question::Copy);
                    let many = self.scope.nodes().map(Question::Many);
                    let questions = many.chain(copy).chain([Question::Get(map.epoch)]);
                    actions.extend(questions.map(|it| Action::Ask(number, it)));
                }
            }
            if expiries > 0 && switch.lease {
                actions.push(Action::SwitchExpires(number));
            }
            if restarts > 0 && switch.map.is_some() {
                actions.push(Action::Restart(number));
            }
        }
        for number in self.scope.nodes() {
            let node = state.node(number);
            if expiries > 0 && node.lease {
                actions.push(Action::NodeExpires(number));
            }
            if node.direct {
                actions.push(Action::DirectEnds(number));
                if reads > 0 {
                    actions.push(Action::AskDirect(number));
                }
            }
            if node.newest > 0 {
                actions.push(Action::Resend(number));
            }
        }
        if self.scope.hot {
            actions.push(Action::Copy);
        }
        actions.extend(state.network.iter().map(|packet| Action::Deliver(*packet)));
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        self.step(&mut state, action);
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all =
            vec![Property::always("no read is stale", |_, state: &State| !state.is_stale)];
        // What the bounds allow must happen, else the checker looks at too little.
        if self.scope.decisions.contains(&Decision::Open) {
            all.push(Property::sometimes(
                "a chain serves without a node whose lease runs",
                left_node,
            ));
        }
        if self.scope.decisions.contains(&Decision::Activate) {
            all.push(Property::sometimes(
                "a switch serves while the lease of the other runs",
                left_switch,
            ));
        }
        if self.scope.decisions.contains(&Decision::Forget) {
            all.push(Property::sometimes("a key is forgotten", |_, state: &State| {
                state.map().hot == Hot::Cold
            }));
        }
        all
    }
}

/// Whether a write was seen that the chain has taken without a node that has a lease still, and
/// has not heard of it.
fn left_node(_: &Rules, state: &State) -> bool {
    let map = state.map();
    let left = |number: &u8| {
        let node = state.node(*number);
        let knows = node.map.as_ref().is_some_and(|own| own.epoch == map.epoch);
        !map.members.contains(number) && node.lease && !knows && node.newest < state.seen
    };
    map.open && (0..2).any(|number: u8| left(&number))
}

/// Whether a switch serves while the other has a lease and the tables of before.
fn left_switch(_: &Rules, state: &State) -> bool {
    (0..SWITCHES as u8).all(|number| state.switch(number).serves(number).is_some())
}

impl Rules {
    fn orders(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, map) in state.maps.iter().enumerate() {
            let switches = self.scope.switches().filter(|it| {
                state.switch(*it).accepts(self, *it, map) || self.renews(state, at, *it, true)
            });
            actions.extend(switches.map(|switch| Action::OrderSwitch(switch, at)));
            let nodes = self
                .scope
                .nodes()
                .filter(|it| state.node(*it).accepts(map) || self.renews(state, at, *it, false));
            actions.extend(nodes.map(|node| Action::OrderNode(node, at)));
        }
        let behind =
            self.scope.switches().filter(|it| state.switch(*it).map != state.switch(*it).told);
        actions.extend(behind.map(Action::Swap));
        if self.scope.decisions.iter().any(|it| matches!(it, Decision::LetIn(_))) {
            let newest = state.map().revision;
            let others = self.scope.nodes().filter(|it| state.node(*it).other_shard < newest);
            actions.extend(others.map(Action::OrderOther));
        }
    }

    /// Whether an order brings a lease to a member that has none and follows that very map.
    fn renews(&self, state: &State, at: usize, member: u8, is_switch: bool) -> bool {
        let Some(map) = state.maps.get(at) else { return false };
        let forgets = is_switch && !state.switch(member).is_known_to(member, map);
        if !self.gives_leases(state, at, forgets) {
            return false;
        }
        let (lease, own) = if is_switch {
            (state.switch(member).lease, &state.switch(member).told)
        } else {
            (state.node(member).lease, &state.node(member).map)
        };
        !lease && own.as_ref() == Some(map)
    }

    /// Whether whoever gives this order gives leases with it: the leader, by the present map. To
    /// one that `forgets` it, a leader that was deposed would look like the leader.
    fn gives_leases(&self, state: &State, at: usize, forgets: bool) -> bool {
        let is_last_of_its_leader = state
            .maps
            .get(at + 1)
            .is_none_or(|next| state.maps.get(at).is_some_and(|map| map.term < next.term));
        let deposed_may =
            self.has(Bug::DeposedGrants) || self.has(Bug::ObeyUnregistered) && forgets;
        at + 1 == state.maps.len() || deposed_may && is_last_of_its_leader
    }

    fn step(&self, state: &mut State, action: Action) {
        match action {
            Action::Decide(decision) => {
                let map = Self::decide(state, decision);
                state.maps.push(map);
                state.left.decisions.retain(|left| *left != decision);
            }
            Action::OrderSwitch(number, at) => self.order_switch(state, number, at),
            Action::Swap(number) => {
                let told = state.switch(number).told.clone();
                state.switch_mut(number).map = told;
            }
            Action::OrderNode(number, at) => self.order_node(state, number, at),
            Action::OrderOther(number) => {
                state.node_mut(number).other_shard = state.map().revision;
            }
            Action::SwitchExpires(number) => {
                state.left.expiries -= 1;
                let switch = state.switch_mut(number);
                (switch.lease, switch.floor) = (false, None);
            }
            Action::NodeExpires(number) => {
                state.left.expiries -= 1;
                let node = state.node_mut(number);
                (node.lease, node.direct) = (false, false);
            }
            Action::DirectEnds(number) => state.node_mut(number).direct = false,
            Action::Restart(number) => {
                state.left.restarts -= 1;
                let incarnation = state.switch(number).incarnation + 1;
                *state.switch_mut(number) = Switch { incarnation, ..Switch::default() };
            }
            Action::Ask(by, question) => Self::ask(state, by, question),
            Action::Write(by) => Self::write(state, by),
            Action::AskDirect(number) => {
                state.left.reads -= 1;
                Self::answer_direct(state, number);
            }
            Action::Deliver(packet) => self.deliver(state, packet),
            Action::Resend(number) => Self::resend(state, number),
            Action::Copy => Self::copy(state),
        }
    }

    fn order_switch(&self, state: &mut State, number: u8, at: usize) {
        let Some(map) = state.maps.get(at).cloned() else { return };
        let forgets = !state.switch(number).is_known_to(number, &map);
        let gives = self.gives_leases(state, at, forgets);
        let accepts = state.switch(number).accepts(self, number, &map);
        let switch = state.switch_mut(number);
        if accepts {
            switch.install(self, number, &map);
        }
        switch.lease |= gives && switch.told.as_ref() == Some(&map);
    }

    fn order_node(&self, state: &mut State, number: u8, at: usize) {
        let gives = self.gives_leases(state, at, false);
        let Some(map) = state.maps.get(at).cloned() else { return };
        let direct = self.scope.direct;
        let node = state.node_mut(number);
        let committed = if node.accepts(&map) { node.install(number, &map) } else { None };
        if gives && node.map.as_ref() == Some(&map) {
            (node.lease, node.direct) = (true, direct);
        }
        if let Some(version) = committed.filter(|_| node.lease) {
            state.reply(map.named, version, true, 0);
        }
    }
}
