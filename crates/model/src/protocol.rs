//! The model as the checker sees it: states, steps and what must always hold.

use crate::bug::Bug;
use crate::check::{self, Verdict};
use crate::history::{Possible, Request, Ways};
use crate::node::Turn;
use crate::scope::Scope;
use crate::state::{
    Bits, Breach, Chain, Effect, Faults, Message, Node, Outcome, Replica, State, Status, Value,
};
use cluster::Mutant;

/// The protocol within the bounds of a scope, perhaps with a mutant.
#[derive(Debug)]
pub struct Protocol {
    scope: Scope,
    bug: Option<Bug>,
    strict: bool,
    ways: Ways,
}

/// One step. Each is atomic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A copy of a request reaches a node. When the client sent it, through which switch and how
    /// often does not matter: the node sees whether it is of its own epoch.
    Request {
        /// Who takes it.
        node: u8,
        /// Which.
        request: u8,
    },
    /// A copy of a request is answered *ask again*.
    AskAgain {
        /// Which.
        request: u8,
    },
    /// A message arrives.
    Deliver(Message),
    /// The tail sends the next piece of its copy.
    Copy {
        /// The tail.
        node: u8,
    },
    /// A node collects its tombstone.
    Collect {
        /// Who.
        node: u8,
    },
    /// An order with this epoch arrives, and with it a lease if it is the present one.
    Order {
        /// Where.
        node: u8,
        /// Which epoch it installs.
        epoch: u8,
    },
    /// A node does not hear of the controller until its lease has ended.
    Cut {
        /// Who.
        node: u8,
    },
    /// A node stops and comes back with its disk.
    Restart {
        /// Who.
        node: u8,
    },
    /// A node stops and comes back without its memory.
    Lose {
        /// Who.
        node: u8,
    },
    /// The controller closes the chain or opens it.
    Decide(Chain),
    /// The controller stops and comes back with its map.
    TakeOver,
}

impl Protocol {
    /// The protocol within `scope`, with a bug or without.
    #[must_use]
    pub fn new(scope: Scope, bug: Option<Bug>) -> Self {
        let ways = Ways::new(&scope.requests);
        Self { scope, bug, strict: true, ways }
    }

    /// The same, but that only those breaches count which clients have seen.
    #[must_use]
    pub fn seen_by_clients(self) -> Self {
        Self { strict: false, ..self }
    }

    /// Its bounds.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn bug(&self) -> Option<Bug> {
        self.bug
    }

    pub(crate) fn has(&self, bug: impl Into<Bug>) -> bool {
        self.bug == Some(bug.into())
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (u8, &Request)> {
        (0..).zip(&self.scope.requests)
    }

    /// Whether a node takes packets: it has an assignment and a lease.
    pub(crate) fn takes(&self, node: &Node) -> bool {
        node.place.is_some() && (node.lease || self.has(Mutant::IgnoreLease))
    }

    /// Whether this node orders this request when a copy of it arrives.
    pub(crate) fn orders(&self, state: &State, number: u8, request: u8) -> bool {
        let node = state.node(number);
        let Some(chain) = node.chain().filter(|chain| chain.open) else { return false };
        let strays = self.has(Mutant::RetryElsewhere) && state.status(request) != Status::New;
        let member = chain.members().iter().any(|replica| replica.node == number);
        self.takes(node) && (chain.head() == Some(number) || strays && member)
    }

    /// What a read of this node returns, if it takes one.
    fn serves(&self, node: &Node, number: u8) -> Option<(u8, Value)> {
        let chain = node.chain().filter(|chain| chain.open)?;
        if !self.takes(node) || chain.tail() != Some(number) {
            return None;
        }
        match node.newest_pending().filter(|_| self.has(Mutant::ReadPending)) {
            Some(write) => match write.effect {
                Effect::Put(value) => Some((write.version, value)),
                Effect::Delete | Effect::None => Some((write.version, Value::default())),
            },
            None => Some((node.record.version, node.record.value)),
        }
    }

    /// The requests below the low-water mark of this one's client.
    pub(crate) fn ended(&self, state: &State, request: u8) -> Bits {
        let of = |number: u8| self.requests().find(|(n, _)| *n == number).map(|(_, r)| r.client);
        let own = self.requests().map(|(number, _)| number).filter(|n| of(*n) == of(request));
        own.take_while(|number| {
            *number < request && matches!(state.status(*number), Status::Done(_))
        })
        .collect()
    }

    pub(crate) fn accepts(&self, state: &State, message: &Message) -> bool {
        let way = message.way();
        let node = state.node(way.to);
        let Some(chain) = node.chain().filter(|_| self.takes(node)) else { return false };
        if chain.epoch != way.epoch && !self.has(Mutant::IgnoreEpoch) {
            return false;
        }
        let sender = match message {
            Message::Write(..) => chain.predecessor(way.to),
            Message::Commit(..) => chain.successor(way.to),
            Message::Stable(..) => chain.head(),
            Message::Copy(..) => chain.tail().filter(|_| chain.learner() == Some(way.to)),
        };
        sender == Some(way.from)
    }

    /// The order with this epoch, if one is on its way that this node would install or renew by.
    pub(crate) fn order<'a>(&self, state: &'a State, number: u8, epoch: u8) -> Option<&'a Chain> {
        let chains = state.earlier.iter().chain([&state.map]);
        let chain = chains.into_iter().find(|chain| chain.epoch == epoch)?;
        let node = state.node(number);
        let installed = node.chain().map_or(0, |chain| chain.epoch);
        let news = installed < epoch || installed == epoch && !node.lease;
        (news && self.suits(state, chain, number)).then_some(chain)
    }

    /// Whether a node may install this: it is in the chain with the memory that it has.
    fn suits(&self, state: &State, chain: &Chain, number: u8) -> bool {
        let replica = chain.replica(number);
        let trusted = self.has(Mutant::TrustTheForgetful);
        replica.is_some_and(|replica| trusted || state.remembers(replica))
    }

    /// One step of one node, and what comes of it.
    pub(crate) fn turn(
        &self,
        state: &mut State,
        number: u8,
        step: impl FnOnce(&mut Node, &mut Turn<'_>),
    ) {
        let mut turn = Turn::new(number, &self.scope.requests, self.bug);
        let node = state.node_mut(number);
        step(node, &mut turn);
        node.resend(&mut turn, self.scope.collects());
        let Turn { sent, answers, .. } = turn;
        for message in sent {
            state.send(message);
        }
        for (request, outcome) in answers {
            self.answer(state, request, outcome);
        }
    }

    fn answer(&self, state: &mut State, request: u8, outcome: Outcome) {
        match state.status(request) {
            Status::New | Status::Open => {
                set(state, request, Status::Done(outcome));
                let possible = self.ways.answered(state.possible, request, outcome.result);
                self.learn(state, possible);
            }
            Status::Done(known) if known != outcome => {
                state.breach.get_or_insert(Breach::Twice);
            }
            Status::Done(_) | Status::Refused => {}
        }
    }

    /// A first copy of a request is taken somewhere: from now on it may have taken effect.
    pub(crate) fn begin(&self, state: &mut State, request: u8) {
        if state.status(request) == Status::New {
            set(state, request, Status::Open);
            self.learn(state, state.possible);
        }
    }

    /// A client takes *ask again* for the end.
    pub(crate) fn give_up(&self, state: &mut State, request: u8) {
        if matches!(state.status(request), Status::New | Status::Open) {
            set(state, request, Status::Refused);
            self.learn(state, self.ways.refused(state.possible, request));
        }
    }

    /// Takes note of which orders are left, and adds what may have happened since.
    pub(crate) fn learn(&self, state: &mut State, possible: Possible) {
        let open = |request: &u8| matches!(state.status(*request), Status::Open);
        let open: Bits = self.requests().map(|(number, _)| number).filter(open).collect();
        state.possible = self.ways.allow(possible, open);
        if possible.is_empty() {
            state.breach.get_or_insert(Breach::Order);
        }
    }

    /// Reads every node that would answer, until nothing more can be learnt from it.
    pub(crate) fn read_everywhere(&self, state: &mut State) {
        let served = (0..).zip(&state.nodes);
        let served = served.filter_map(|(number, node)| self.serves(node, number));
        let served: Vec<(u8, Value)> = served.collect();
        for (version, _) in &served {
            let lacks = |replica: &Replica| state.node(replica.node).state_version() < *version;
            if self.strict && self.full(state).any(|replica| lacks(&replica)) {
                state.breach.get_or_insert(Breach::Dirty);
            }
        }
        loop {
            let before = state.possible;
            for (_, value) in &served {
                let possible = self.ways.read(state.possible, *value);
                self.learn(state, possible);
            }
            if state.possible == before {
                return;
            }
        }
    }

    /// The full members of the present chain that have their memory.
    fn full<'a>(&self, state: &'a State) -> impl Iterator<Item = Replica> + 'a {
        state.map.members().iter().copied().filter(|replica| state.remembers(*replica))
    }

    /// Whether an acknowledged write is missing at a full member that has its memory, or there is
    /// no such member although fewer nodes have failed than there were members.
    pub(crate) fn loses(&self, state: &State) -> bool {
        let left = state.faults;
        let Faults { cuts, restarts, losses, .. } = self.scope.faults;
        let failures = cuts + restarts + losses - (left.cuts + left.restarts + left.losses);
        let members = self.scope.chain.len() - usize::from(self.scope.has_learner);
        let survives = usize::from(failures) < members;
        let missing = self.requests().any(|(number, _)| {
            let Status::Done(outcome) = state.status(number) else { return false };
            self.full(state).any(|replica| {
                let node = state.node(replica.node);
                let older = outcome.result > 0 && node.state_version() < outcome.version;
                older || !node.knows(number)
            })
        });
        self.strict && (missing || survives && self.full(state).next().is_none())
    }

    /// Forgets what can have no effect any more, so that states that differ in nothing else are
    /// one.
    pub(crate) fn tidy(&self, state: &mut State) {
        let mut earlier = std::mem::take(&mut state.earlier);
        earlier.retain(|chain| chain.nodes().any(|node| self.may_install(state, chain, node)));
        state.earlier = earlier;
        if !self.has(Mutant::IgnoreEpoch) {
            let mut network = std::mem::take(&mut state.network);
            network.retain(|message| self.may_arrive(state, message));
            state.network = network;
        }
    }

    fn may_install(&self, state: &State, chain: &Chain, number: u8) -> bool {
        let installed = state.node(number).chain().map_or(0, |chain| chain.epoch);
        installed < chain.epoch && self.suits(state, chain, number)
    }

    fn may_arrive(&self, state: &State, message: &Message) -> bool {
        let way = message.way();
        let installed = state.node(way.to).chain().map(|chain| chain.epoch);
        let mut orders = state.earlier.iter().chain([&state.map]);
        installed == Some(way.epoch)
            || orders.any(|c| c.epoch == way.epoch && self.may_install(state, c, way.to))
    }
}

fn set(state: &mut State, request: u8, status: Status) {
    if let Some(place) = state.clients.get_mut(usize::from(request)) {
        *place = status;
    }
}

/// Visits every state of a scope.
#[must_use]
pub fn exhaust(scope: &Scope, threads: usize) -> Verdict<Action> {
    check::run(Protocol::new(scope.clone(), None), threads, None)
}

/// Looks for the shortest story in which clients see what a bug does, in its own scope.
///
/// # Panics
///
/// If the model has nothing that the bug is about: it is none of [`Bug::all`].
#[must_use]
pub fn hunt(bug: Bug) -> Verdict<Action> {
    let scope = bug.scope().expect("a bug of the model");
    check::shortest(|| Protocol::new(scope.clone(), Some(bug)).seen_by_clients())
}
