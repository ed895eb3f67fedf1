//! Bounds: what is in the model and how often what may happen.

use crate::history::Kind::{Append, Create, Delete, Put};
use crate::history::{Kind, Request};
use crate::state::Faults;

/// The bounds of one run of the checker.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// The writes that clients make; any copy of each may arrive at any time.
    pub requests: Vec<Request>,
    /// The nodes of the first chain, head first.
    pub chain: Vec<u8>,
    /// Whether the last of them is a learner.
    pub has_learner: bool,
    /// How many full members the controller wants.
    pub replicas: usize,
    /// The last epoch. A change of the chain takes two.
    pub epochs: u8,
    /// What may go wrong.
    pub faults: Faults,
    /// Whether the controller changes chains that lack nobody.
    pub moves: bool,
    /// Whether it changes the order of members.
    pub reorders: bool,
    /// Whether orders may be overtaken by later ones and arrive all the same.
    pub late_orders: bool,
}

impl Scope {
    /// Two nodes of three in a chain, a client for each write, and nothing else that happens.
    #[must_use]
    pub fn quiet(name: &'static str, kinds: &[Kind]) -> Self {
        let requests = (0..).zip(kinds).map(|(client, kind)| Request { kind: *kind, client });
        Self {
            name,
            requests: requests.collect(),
            chain: vec![0, 1],
            has_learner: false,
            replicas: 2,
            epochs: 1,
            faults: Faults::default(),
            moves: false,
            reorders: false,
            late_orders: false,
        }
    }

    /// The same with all writes by one client, which raises its low-water mark as they end.
    #[must_use]
    pub fn of_one_client(mut self) -> Self {
        for request in &mut self.requests {
            request.client = 0;
        }
        self
    }

    /// Whether there are tombstones to collect.
    #[must_use]
    pub fn collects(&self) -> bool {
        self.requests.iter().any(|request| request.kind == Kind::Delete)
    }

    /// Whether there is a reason and room for a change of the chain.
    #[must_use]
    pub fn changes(&self) -> bool {
        let Faults { cuts, restarts, losses, .. } = self.faults;
        self.epochs >= 3 && (self.has_learner || self.moves || cuts + restarts + losses > 0)
    }

    /// Whether there is room to take a node in and make it a member.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.changes() && (self.has_learner || self.epochs >= 5)
    }

    /// The bounds that every run of the tests exhausts.
    #[must_use]
    pub fn everyday() -> Vec<Self> {
        [Self::copies(), Self::losses(), Self::changes_of_all_kinds()].concat()
    }

    /// Nothing fails, or one node that is being copied to.
    fn copies() -> Vec<Self> {
        let quiet = Self::quiet;
        let joining = |scope| Self { has_learner: true, ..scope };
        vec![
            quiet("three writes", &[Put, Append, Create]),
            joining(quiet("a copy beside three writes", &[Put, Delete, Create])),
            Self {
                chain: vec![0, 1, 2],
                epochs: 3,
                ..joining(quiet("a copy behind two members", &[Put, Create]))
            },
            Self {
                epochs: 3,
                faults: Faults { restarts: 1, ..Faults::default() },
                ..joining(quiet("a restart during a copy", &[Put, Delete]))
            },
        ]
    }

    /// Nodes lose their memory.
    fn losses() -> Vec<Self> {
        let quiet = Self::quiet;
        let loss = Faults { losses: 1, ..Faults::default() };
        vec![
            Self {
                epochs: 5,
                faults: loss,
                ..quiet("a loss, and retries", &[Put, Append, Append])
            },
            Self {
                epochs: 5,
                faults: Faults { cuts: 1, takeovers: 1, ..loss },
                ..quiet("a cut, a loss, a new controller", &[Put, Append])
            },
            Self {
                epochs: 5,
                faults: Faults { cuts: 1, ..loss },
                late_orders: true,
                ..quiet("late orders", &[Put, Append])
            },
            Self {
                epochs: 5,
                faults: Faults { cuts: 1, ..loss },
                reorders: true,
                ..quiet("conditions during changes", &[Put, Create])
            },
            Self {
                epochs: 7,
                faults: Faults { losses: 2, ..loss },
                ..quiet("one loss after the other", &[Append, Append])
            },
        ]
    }

    /// Nodes come back as they were, or nothing has happened to them.
    fn changes_of_all_kinds() -> Vec<Self> {
        let quiet = Self::quiet;
        let cut = Faults { cuts: 1, ..Faults::default() };
        vec![
            Self {
                epochs: 5,
                faults: cut,
                reorders: true,
                ..quiet("low-water marks", &[Put, Append]).of_one_client()
            },
            Self {
                epochs: 5,
                faults: Faults { restarts: 1, ..cut },
                reorders: true,
                ..quiet("a cut and a restart", &[Put, Append])
            },
            Self { epochs: 5, faults: cut, ..quiet("leftovers and tombstones", &[Put, Delete]) },
            Self {
                chain: vec![0, 1, 2],
                replicas: 3,
                epochs: 5,
                faults: cut,
                ..quiet("three members", &[Append, Create])
            },
            Self {
                epochs: 5,
                moves: true,
                reorders: true,
                ..quiet("planned changes", &[Put, Append])
            },
        ]
    }

    /// Larger bounds, for a long run: minutes to hours.
    #[must_use]
    pub fn long() -> Vec<Self> {
        let quiet = Self::quiet;
        let cut = Faults { cuts: 1, ..Faults::default() };
        let behind = |scope| Self { chain: vec![0, 1, 2], has_learner: true, ..scope };
        vec![
            behind(quiet("a copy behind two members beside three writes", &[Put, Delete, Create])),
            behind(Self {
                epochs: 3,
                faults: Faults { restarts: 1, ..Faults::default() },
                ..quiet("a restart during a copy behind two members", &[Put, Delete])
            }),
            Self {
                epochs: 7,
                faults: Faults { losses: 2, ..cut },
                ..quiet("a cut and two losses", &[Put, Append])
            },
            Self {
                chain: vec![0, 1, 2],
                replicas: 3,
                epochs: 5,
                faults: Faults { losses: 2, ..Faults::default() },
                ..quiet("two of three members", &[Append, Create])
            },
            Self {
                epochs: 5,
                faults: Faults { losses: 1, ..cut },
                ..quiet("one client's three writes", &[Put, Append, Append]).of_one_client()
            },
            Self {
                epochs: 5,
                faults: cut,
                ..quiet("a cut beside three writes", &[Put, Delete, Create])
            },
            Self {
                epochs: 5,
                faults: cut,
                moves: true,
                reorders: true,
                late_orders: true,
                ..quiet("planned changes, a cut, late orders", &[Put, Append])
            },
            Self {
                epochs: 5,
                faults: Faults { cuts: 1, restarts: 1, losses: 1, takeovers: 1 },
                ..quiet("every fault once", &[Put, Append])
            },
            Self {
                epochs: 5,
                faults: Faults { cuts: 1, restarts: 1, losses: 1, takeovers: 0 },
                ..quiet("every fault of a node, and tombstones", &[Put, Delete])
            },
        ]
    }
}
