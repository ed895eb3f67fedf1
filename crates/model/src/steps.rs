//! Which steps there are from a state, and where each leads.

use crate::history::Possible;
use crate::node::Turn;
use crate::protocol::{Action, Protocol};
use crate::state::{Bits, Breach, Chain, Message, Node, Replica, State, Status};
use crate::state::{Faults, VERSIONS_MAX};
use cluster::Mutant;
use stateright::{Model, Property};
use std::array;

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let scope = self.scope();
        let replica = |node: &u8| Replica { node: *node, since: 0, store: 0 };
        let replicas = scope.chain.iter().map(replica).collect();
        let map = Chain { epoch: 1, open: true, has_learner: scope.has_learner, replicas };
        let mut state = State {
            nodes: array::from_fn(|_| Node::default()),
            map: map.clone(),
            earlier: Vec::new(),
            settled: Bits::default(),
            caught_up: false,
            network: Vec::new(),
            faults: scope.faults,
            clients: array::from_fn(|_| Status::New),
            possible: Possible::START,
            breach: None,
        };
        for node in map.nodes() {
            state.node_mut(node).lease = true;
            self.turn(&mut state, node, |node, turn| node.install(turn, &map, 0));
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.breach.is_some() {
            return;
        }
        self.clients_steps(state, actions);
        let arriving = state.network.iter().filter(|message| self.accepts(state, message));
        actions.extend(arriving.map(|message| Action::Deliver(*message)));
        self.nodes_steps(state, actions);
        self.controllers_steps(state, actions);
        self.faults_steps(state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        self.step(&mut state, action);
        state.hear_reports();
        self.read_everywhere(&mut state);
        self.tidy(&mut state);
        if state.breach.is_none() && self.loses(&state) {
            state.breach = Some(Breach::Lost);
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("what clients see has an order", |_, state: &State| {
                state.breach != Some(Breach::Order)
            }),
            Property::always("every write is applied once", |_, state: &State| {
                state.breach != Some(Breach::Twice)
            }),
            Property::always("what is acknowledged is kept", |_, state: &State| {
                state.breach != Some(Breach::Lost)
            }),
            Property::always("what is read is kept", |_, state: &State| {
                state.breach != Some(Breach::Dirty)
            }),
        ];
        // What the bounds allow must happen, else the checker looks at too little.
        let scope = self.scope();
        if scope.changes() {
            properties.push(Property::sometimes("a chain opens again", |_, state| reopened(state)));
            properties.push(Property::sometimes(
                "a write of a later epoch is acknowledged",
                acknowledges_later,
            ));
        }
        if scope.grows() {
            properties.push(Property::sometimes("a learner becomes a member", takes_in));
        }
        if scope.collects() {
            properties.push(Property::sometimes("a tombstone is collected", |_, state: &State| {
                state.nodes.iter().any(|node| node.collected > 0)
            }));
        }
        properties
    }
}

/// Whether all nodes of the present chain have installed it, and it is open, and not the first.
fn reopened(state: &State) -> bool {
    let installed = |node: u8| state.node(node).chain() == Some(&state.map);
    state.map.epoch > 1 && state.map.open && state.map.nodes().all(installed)
}

/// Whether a chain has opened with a member that was a learner before.
fn takes_in(model: &Protocol, state: &State) -> bool {
    let scope = model.scope();
    let first = scope.chain.last().filter(|_| scope.has_learner);
    let members = state.map.members();
    reopened(state)
        && members.iter().any(|replica| replica.since > 0 || Some(&replica.node) == first)
}

/// Whether a write that an open chain after the first has ordered is acknowledged. (Nothing is
/// pending when a chain opens, so what is sent down it was ordered in it.)
fn acknowledges_later(_: &Protocol, state: &State) -> bool {
    let later = |message: &Message| match message {
        Message::Write(way, write, _) => {
            way.epoch == state.map.epoch && matches!(state.status(write.request), Status::Done(_))
        }
        Message::Commit(..) | Message::Stable(..) | Message::Copy(..) => false,
    };
    reopened(state) && state.network.iter().any(later)
}

impl Protocol {
    fn clients_steps(&self, state: &State, actions: &mut Vec<Action>) {
        for (node, _) in (0..).zip(&state.nodes).filter(|(_, node)| node.newest < VERSIONS_MAX) {
            let requests = self.requests().map(|(request, _)| request);
            let requests = requests.filter(|request| self.orders(state, node, *request));
            actions.extend(requests.map(|request| Action::Request { node, request }));
        }
        if self.has(Mutant::StaleIsFinal) && self.asks_again(state) {
            let requests = self.requests().map(|(request, _)| request);
            actions.extend(requests.map(|request| Action::AskAgain { request }));
        }
    }

    /// Whether there is a node that would answer *ask again*: it is closed, or a copy that was
    /// stamped with an earlier epoch may still reach it.
    fn asks_again(&self, state: &State) -> bool {
        let mut nodes = state.nodes.iter().filter(|node| self.takes(node));
        nodes.any(|node| node.chain().is_some_and(|chain| !chain.open || chain.epoch > 1))
    }

    fn nodes_steps(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, node) in (0..).zip(&state.nodes) {
            let turn = Turn::new(number, &self.scope().requests, self.bug());
            if self.takes(node) && node.next_piece(&turn).is_some() && self.is_awaited(state, node)
            {
                actions.push(Action::Copy { node: number });
            }
            if node.may_collect() {
                actions.push(Action::Collect { node: number });
            }
        }
    }

    /// Whether there is a learner that has not caught up: a whole one takes nothing from a copy.
    fn is_awaited(&self, state: &State, tail: &Node) -> bool {
        let Some(chain) = tail.chain() else { return false };
        let learner = chain.learner().and_then(|learner| chain.replica(learner));
        learner.is_some_and(|replica| {
            let node = state.node(replica.node);
            !(node.caught_up && node.since == replica.since && node.store == replica.store)
        })
    }

    fn controllers_steps(&self, state: &State, actions: &mut Vec<Action>) {
        for (node, _) in (0..).zip(&state.nodes) {
            let epochs = state.earlier.iter().chain([&state.map]).map(|chain| chain.epoch);
            let orders = epochs.filter(|epoch| self.order(state, node, *epoch).is_some());
            actions.extend(orders.map(|epoch| Action::Order { node, epoch }));
            if state.node(node).place.is_some() && state.map.replica(node).is_none() {
                actions.push(Action::Order { node, epoch: state.map.epoch });
            }
        }
        let closings = state.closings(self.scope(), self.bug());
        let openings = state.openings(self.scope(), self.bug());
        actions.extend(closings.into_iter().chain(openings).map(Action::Decide));
    }

    fn faults_steps(&self, state: &State, actions: &mut Vec<Action>) {
        let Faults { cuts, restarts, losses, takeovers } = state.faults;
        for replica in &state.map.replicas {
            let node = replica.node;
            if cuts > 0 && state.node(node).lease {
                actions.push(Action::Cut { node });
            }
            if restarts > 0 && state.node(node).place.is_some() {
                actions.push(Action::Restart { node });
            }
            if losses > 0 && state.remembers(*replica) {
                actions.push(Action::Lose { node });
            }
        }
        if takeovers > 0 && (state.settled != Bits::default() || state.caught_up) {
            actions.push(Action::TakeOver);
        }
    }

    fn step(&self, state: &mut State, action: Action) {
        match action {
            Action::Request { node, request } => self.request(state, node, request),
            Action::AskAgain { request } => self.give_up(state, request),
            Action::Deliver(message) => self.deliver(state, message),
            Action::Copy { node } => self.turn(state, node, Node::send_piece),
            Action::Collect { node } => state.node_mut(node).collect(),
            Action::Order { node, epoch } => self.install(state, node, epoch),
            Action::Cut { node } => {
                state.faults.cuts -= 1;
                state.node_mut(node).lease = false;
            }
            Action::Restart { node } => {
                state.faults.restarts -= 1;
                state.node_mut(node).restart();
            }
            Action::Lose { node } => {
                state.faults.losses -= 1;
                let store = state.node(node).store + 1;
                *state.node_mut(node) = Node { store, ..Node::default() };
            }
            Action::Decide(chain) => state.decide(self.scope(), chain),
            Action::TakeOver => {
                state.faults.takeovers -= 1;
                state.take_over();
            }
        }
    }

    fn request(&self, state: &mut State, node: u8, request: u8) {
        self.begin(state, request);
        let ended = self.ended(state, request);
        self.turn(state, node, |node, turn| node.take_request(turn, request, ended));
    }

    fn deliver(&self, state: &mut State, message: Message) {
        let way = message.way();
        self.turn(state, way.to, |node, turn| node.take_message(turn, message));
        if let Message::Copy(_, run, piece) = message {
            self.turn(state, way.from, |node, _| node.take_copied(way.epoch, run, piece));
        }
    }

    fn install(&self, state: &mut State, number: u8, epoch: u8) {
        let Some(chain) = self.order(state, number, epoch).cloned() else {
            // The node is in no chain of the present map.
            state.node_mut(number).lease = false;
            state.node_mut(number).place = None;
            return;
        };
        let Some(replica) = chain.replica(number) else { return };
        let present = epoch == state.map.epoch;
        state.node_mut(number).lease |= present;
        if state.node(number).chain().is_none_or(|installed| installed.epoch < epoch) {
            self.turn(state, number, |node, turn| node.install(turn, &chain, replica.since));
        }
    }
}
