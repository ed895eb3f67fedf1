//! The store, the controllers, and what is under way between them.

use arrayvec::ArrayVec;

/// How long a leader counts on itself, and how long its signs have to stand still: in ticks.
pub const LEAD_FOR: u8 = 2;
/// How long the leader's lease lasts, which is more.
pub const LEASE: u8 = 3;

/// The leader's last sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sign {
    /// The change of the store with which it was given.
    pub number: u8,
    /// Of the leader with this seat.
    pub seat: u8,
}

/// What a candidate is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The change with which the key was taken, 0 if nobody has it.
    pub seat: u8,
    /// By whom.
    pub who: u8,
    /// The last sign, if there is any.
    pub sign: Option<Sign>,
}

/// A key that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Taking {
    /// The change with which it was.
    pub seat: u8,
    /// By whom.
    pub who: u8,
    /// Ticks since.
    pub age: u8,
    /// Whether in view of a sign of the one before.
    pub by_sign: bool,
}

/// What the controllers share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// Counts its changes.
    pub changes: u8,
    /// What is there.
    pub now: View,
    /// Ticks since the leader's lease was renewed.
    pub lease_age: u8,
    /// Whether it has no room.
    pub is_full: bool,
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// The seat by which it leads.
    pub seat: Option<u8>,
    /// Ticks since it sent what it counts on.
    pub age: u8,
    /// The last sign that it has seen, and the ticks since it saw it first.
    pub vigil: Option<(Sign, u8)>,
    /// Whether it has looked whether it leads, and goes by that later: a broken rule.
    pub is_sure: bool,
}

/// What a call asks of the store, or what it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// The key, if it was taken last with change `found` and the last sign is `sign`.
    Take {
        /// 0: nobody has it.
        found: u8,
        /// 0: there is none.
        sign: u8,
        /// Whether it stood still for long enough.
        by_sign: bool,
    },
    /// A sign is given, if the key is the asker's.
    Give,
    /// The last sign is removed.
    Remove,
    /// Whether the key is the asker's.
    Confirm,
    /// The answer.
    Told(bool),
}

/// A call that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// Of which controller.
    pub who: u8,
    /// The seat that it has, or is told that it has taken.
    pub seat: u8,
    /// Ticks since it was sent.
    pub age: u8,
    /// What it is.
    pub ask: Ask,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The store.
    pub store: Store,
    /// The controllers.
    pub controllers: ArrayVec<Controller, 3>,
    /// What is under way, in order. It may come at any time or never.
    pub calls: Vec<Call>,
    /// Each time that the key was taken.
    pub takings: ArrayVec<Taking, 4>,
    /// How often leaders may renew, candidates take, and the store be full.
    pub left: (u8, u8, u8),
    /// Somebody counts on itself who must not.
    pub leads_beside: bool,
    /// Somebody gives a lease that nobody counts on.
    pub lease_is_late: bool,
}

impl View {
    /// The number of the last sign, 0 if there is none.
    #[must_use]
    pub fn last_sign(&self) -> u8 {
        self.sign.map_or(0, |sign| sign.number)
    }

    /// The last sign if it is one of the leader's.
    #[must_use]
    pub fn sign_of_leader(&self) -> Option<Sign> {
        self.sign.filter(|sign| sign.seat == self.seat)
    }
}

impl Controller {
    /// One that stands by.
    #[must_use]
    pub fn standing_by() -> Self {
        Self { seat: None, age: LEAD_FOR, vigil: None, is_sure: false }
    }
}

impl World {
    /// A controller of the model.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn controller(&self, who: u8) -> &Controller {
        self.controllers.get(usize::from(who)).expect("a controller of the model")
    }

    pub(super) fn controller_mut(&mut self, who: u8) -> &mut Controller {
        self.controllers.get_mut(usize::from(who)).expect("a controller of the model")
    }

    /// How others took the key after a leader that has this seat.
    pub(super) fn taken_from(&self, who: u8, seat: u8) -> impl Iterator<Item = &Taking> {
        self.takings.iter().filter(move |taking| taking.seat > seat && taking.who != who)
    }

    pub(super) fn send(&mut self, call: Call) {
        if let Err(at) = self.calls.binary_search(&call) {
            self.calls.insert(at, call);
        }
    }

    /// Time goes on by a tick. Nothing is counted beyond what matters.
    pub(super) fn tick(&mut self) {
        let older = |age: &mut u8, most: u8| *age = most.min(*age + 1);
        older(&mut self.store.lease_age, LEASE);
        self.takings.iter_mut().for_each(|taking| older(&mut taking.age, LEAD_FOR));
        for controller in &mut self.controllers {
            older(&mut controller.age, LEAD_FOR);
            if let Some((_, age)) = &mut controller.vigil {
                older(age, LEAD_FOR);
            }
        }
        for call in &mut self.calls {
            older(&mut call.age, LEASE);
        }
        // What is told of a renewal so late changes nothing.
        self.calls.retain(|call| {
            let renews = matches!(call.ask, Ask::Told(true) | Ask::Confirm);
            let is_news =
                self.controllers.get(usize::from(call.who)).is_some_and(|it| it.seat.is_none());
            !renews || is_news || call.age < LEAD_FOR
        });
        self.calls.sort_unstable();
        self.calls.dedup();
    }
}
