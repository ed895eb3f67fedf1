//! Whether every request can still be answered, whatever has happened.
//!
//! The checker looks at each state by itself. This looks at where one can get from it: a state is
//! stuck if no further steps at all, however lucky, lead to one in which all requests are answered.
//! It says nothing of how long that takes.

use crate::protocol::{Action, Protocol};
use crate::scope::Scope;
use crate::state::{State, Status};
use crate::story::Story;
use stateright::Model;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The states of a scope and how one gets from each to the next, without the states themselves.
#[derive(Default)]
struct Graph {
    by_hash: BTreeMap<u64, u32>,
    /// For each state, the first found that leads to it, and by which of its actions.
    first: Vec<(u32, usize)>,
    /// From where to where.
    steps: Vec<(u32, u32)>,
    /// States that nothing more is asked of.
    ended: Vec<bool>,
}

/// Visits every state of a scope and tells their number and the shortest way to one that is stuck,
/// if there is any.
#[must_use]
pub fn stuck(scope: &Scope) -> (usize, Option<Story<Action>>) {
    let protocol = Protocol::new(scope.clone(), None);
    let graph = Graph::of(&protocol);
    let hopeful = graph.hopeful();
    let stuck = hopeful.iter().position(|hopeful| !hopeful);
    (hopeful.len(), stuck.map(|state| graph.way_to(&protocol, state)))
}

impl Graph {
    fn of(protocol: &Protocol) -> Self {
        let mut graph = Self::default();
        let mut queue = VecDeque::new();
        for start in protocol.init_states() {
            graph.add(protocol, &start, (0, 0));
            queue.push_back(start);
        }
        let mut actions = Vec::new();
        for from in 0.. {
            let Some(state) = queue.pop_front() else { break };
            protocol.actions(&state, &mut actions);
            for (index, action) in actions.drain(..).enumerate() {
                let Some(next) = protocol.next_state(&state, action) else { continue };
                let (to, is_new) = graph.add(protocol, &next, (from, index));
                graph.steps.push((from, to));
                if is_new {
                    queue.push_back(next);
                }
            }
        }
        graph
    }

    /// The number of a state, and whether it is a new one.
    fn add(&mut self, protocol: &Protocol, state: &State, first: (u32, usize)) -> (u32, bool) {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        let next = u32::try_from(self.first.len()).expect("scopes have millions of states");
        let number = *self.by_hash.entry(hasher.finish()).or_insert(next);
        if number == next {
            self.first.push(first);
            self.ended.push(has_ended(protocol, state));
        }
        (number, number == next)
    }

    /// From which states one can get to an end.
    fn hopeful(&self) -> Vec<bool> {
        let mut back = self.steps.clone();
        back.sort_unstable_by_key(|(_, to)| *to);
        let mut hopeful = self.ended.clone();
        let mut queue: Vec<u32> =
            (0..).zip(&hopeful).filter(|(_, h)| **h).map(|(n, _)| n).collect();
        while let Some(state) = queue.pop() {
            let begin = back.partition_point(|(_, to)| *to < state);
            let into = back.iter().skip(begin).take_while(|(_, to)| *to == state);
            for (from, _) in into {
                if let Some(hope @ false) = hopeful.get_mut(*from as usize) {
                    *hope = true;
                    queue.push(*from);
                }
            }
        }
        hopeful
    }

    fn way_to(&self, protocol: &Protocol, state: usize) -> Story<Action> {
        let mut indices = Vec::new();
        let mut at = state;
        while let Some((from, index)) = self.first.get(at).filter(|_| at > 0) {
            indices.push(*index);
            at = *from as usize;
        }
        let mut state = protocol.init_states().pop();
        let mut way = Vec::new();
        for index in indices.into_iter().rev() {
            let Some(before) = state else { break };
            let mut actions = Vec::new();
            protocol.actions(&before, &mut actions);
            let action = actions.swap_remove(index);
            way.push(action.clone());
            state = protocol.next_state(&before, action);
        }
        Story(way)
    }
}

/// Whether all requests are answered, or nobody can be asked for that: no full member has its
/// memory, or the bounds leave no epochs for the change that it would take.
fn has_ended(protocol: &Protocol, state: &State) -> bool {
    let answered = (0..).zip(&protocol.scope().requests);
    let answered = answered.map(|(request, _)| state.status(request));
    if answered.into_iter().all(|status| matches!(status, Status::Done(_))) {
        return true;
    }
    let map = &state.map;
    let lost = map.replicas.iter().any(|replica| !state.remembers(*replica));
    let changes = match (lost, map.open) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    };
    map.epoch + changes > protocol.scope().epochs
        || map.members().iter().all(|replica| !state.remembers(*replica))
}
