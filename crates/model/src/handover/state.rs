//! The switches, the nodes, the controller, and what is under way between them.

use crate::state::Bits;
use arrayvec::ArrayVec;

/// Switches there are.
pub const SWITCHES: u8 = 2;
/// Orders there can be, with revisions from 1.
pub const ORDERS_MAX: usize = 4;
/// Delegations that can be over: each was ended by another order.
pub const OVER_MAX: usize = 3;
/// A clock counts so many delegations that began by one order, and itself.
const PER_ORDER: u8 = 2;

/// A directory clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock(pub u8);

/// A switch in one of its incarnations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Which switch.
    pub switch: u8,
    /// Which time it runs.
    pub incarnation: u8,
}

/// An order of hot keys. Its revision is its place, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// Whom it is for.
    pub to: Process,
    /// The number of the key's delegation; 0: none.
    pub delegation: u8,
    /// What it names as `at_home_since`; 0: nothing.
    pub since: u8,
    /// How often the map had named another switch when it was given.
    pub turn: u8,
    /// Whether its switch was heard to have it, so that nodes are given it.
    pub confirmed: bool,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switch {
    /// Which time it runs.
    pub incarnation: u8,
    /// Whether its tables call it active.
    pub active: bool,
    /// The last turn of the map's in which it stood by.
    pub stood_by: u8,
    /// The revision of the installed order; 0: none.
    pub installed: u8,
    /// That of the newest that it has installed in this incarnation.
    pub newest: u8,
    /// Its clock.
    pub clock: Clock,
    /// The clock at which its directory began.
    pub beginning: Clock,
    /// When the delegation of its order began here, if it has.
    pub begun: Option<Clock>,
    /// The last delegation that the request was given a version of; 0: none.
    pub grant: u8,
}

/// What a switch has sent. Any of it may arrive late, again or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packet {
    /// The request, to the nodes of a delegation.
    Granted {
        /// By which switch.
        from: u8,
        /// Of which delegation its version is.
        delegation: u8,
    },
    /// The request, home.
    Home {
        /// By which switch.
        from: u8,
        /// Of which delegation its version is; 0: it has none.
        granted: u8,
        /// The switch's clock.
        clock: Clock,
        /// Whether it was first sent before the directory began.
        old: bool,
    },
}

/// A delegation that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Over {
    /// Its number.
    pub number: u8,
    /// Whether its newest write is no older than the request under it.
    pub has_it: bool,
    /// The order that ended it.
    pub ended: u8,
    /// The switch that it was on.
    pub on: Process,
}

/// The home of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Home {
    /// The revision of the installed order; 0: none.
    pub installed: u8,
    /// The switch whose packet it has applied.
    pub applied: Option<u8>,
    /// The number of the present delegation, 0 for none. Its order says which switch it is on.
    pub present: u8,
    /// Those over, the oldest first.
    pub over: ArrayVec<Over, OVER_MAX>,
}

/// All nodes that delegated writes go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nodes {
    /// The revision of their order; 0: none.
    pub installed: u8,
    /// Delegations under which the request is on record.
    pub records: Bits,
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    /// The switch that the map names.
    pub named: u8,
    /// How often the map has named another one.
    pub turn: u8,
    /// Whether that is not yet active.
    pub handing_over: bool,
    /// Whose directory it gives orders, once it has heard of it.
    pub directory: Option<Process>,
    /// The newest order there was when it heard of that.
    pub known_from: u8,
    /// The order that the directory last said it has.
    pub said: u8,
    /// Whether the directory knows nothing of the orders of before.
    pub forgotten: bool,
    /// The newest order with a delegation that the directory was given.
    pub delegated: u8,
    /// The first order after that one which it has said it has.
    pub since: u8,
    /// The same of the directory before.
    pub before: u8,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    /// How often the map may name the other switch.
    pub turns: u8,
    /// How often switches may crash.
    pub crashes: u8,
    /// How often they may have no lease.
    pub lapses: u8,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// All orders.
    pub orders: ArrayVec<Order, ORDERS_MAX>,
    /// The switches.
    pub switches: [Switch; SWITCHES as usize],
    /// The key's home.
    pub home: Home,
    /// The nodes of its delegations.
    pub nodes: Nodes,
    /// The switch that home and those nodes take requests from.
    pub taken_from: u8,
    /// The controller.
    pub controller: Controller,
    /// The clock that the client knew when it first sent the request, once it has.
    pub first: Option<Clock>,
    /// What was sent, in order.
    pub packets: Vec<Packet>,
    /// Delegations that home has told their switches of, in answer to other requests.
    pub told: Bits,
    /// The same in answer to the request.
    pub answered: Bits,
    /// What may still happen.
    pub left: Left,
}

impl Clock {
    /// That of an order.
    #[must_use]
    pub fn of_order(revision: u8) -> Self {
        Self(revision * PER_ORDER)
    }

    /// Its order.
    #[must_use]
    pub fn order(self) -> u8 {
        self.0 / PER_ORDER
    }

    /// The next one, when a delegation begins.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Home {
    /// The order that ended the last of those over; 0 if there are none.
    #[must_use]
    pub fn ended(&self) -> u8 {
        self.over.iter().map(|over| over.ended).max().unwrap_or(0)
    }

    /// Whether a delegation is on record.
    #[must_use]
    pub fn knows(&self, number: u8) -> bool {
        self.present == number || self.over.iter().any(|over| over.number == number)
    }
}

impl World {
    /// A switch of the model.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn switch(&self, switch: u8) -> &Switch {
        self.switches.get(usize::from(switch)).expect("a switch of the model")
    }

    pub(super) fn switch_mut(&mut self, switch: u8) -> &mut Switch {
        self.switches.get_mut(usize::from(switch)).expect("a switch of the model")
    }

    /// The order of this revision, if there is one.
    #[must_use]
    pub fn order(&self, revision: u8) -> Option<&Order> {
        self.orders.get(usize::from(revision).checked_sub(1)?)
    }

    /// The revision of the newest order; 0 if there is none.
    #[must_use]
    pub fn newest(&self) -> u8 {
        self.orders.len() as u8
    }

    /// The delegation that the order of this revision names; 0 if none.
    #[must_use]
    pub fn delegation(&self, revision: u8) -> u8 {
        self.order(revision).map_or(0, |order| order.delegation)
    }

    /// The switch as it runs now.
    #[must_use]
    pub fn process(&self, switch: u8) -> Process {
        Process { switch, incarnation: self.switch(switch).incarnation }
    }

    /// Whether home's answers pass the switch that the key's present delegation is on.
    #[must_use]
    pub fn tells_of_present(&self) -> bool {
        let order = self.order(self.home.present);
        order.is_some_and(|order| order.to.switch == self.taken_from)
    }

    /// How often the request has taken effect.
    #[must_use]
    pub fn effects(&self) -> usize {
        self.nodes.records.iter().count() + usize::from(self.home.applied.is_some())
    }

    /// Whether anything of a switch may be taken, now or later.
    #[must_use]
    pub fn may_reach(&self, switch: u8) -> bool {
        self.taken_from == switch || self.controller.named == switch || self.left.turns > 0
    }

    pub(super) fn send(&mut self, packet: Packet) {
        if let Err(at) = self.packets.binary_search(&packet) {
            self.packets.insert(at, packet);
        }
    }
}
