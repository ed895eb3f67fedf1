//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// How many orders there are.
    pub orders: u8,
    /// How often the map names the other switch.
    pub turns: u8,
    /// How often a switch crashes, and comes back as another incarnation.
    pub crashes: u8,
    /// How often the active switch has no lease for an instant.
    pub lapses: u8,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The newest order is named, whatever the switch has said and granted.
    NameNewest,
    /// What was confirmed is named, though an order with a delegation was given after it.
    KeepSince,
    /// An order with a delegation counts as the first one after it.
    HearOlder,
    /// Nothing is `OLD`.
    NeverOld,
    /// A switch that forgets its directory forgets what it has granted.
    ForgetGrants,
    /// A request first sent before the delegation began here is given a version at once.
    GrantUnborn,
    /// Home takes a request without a version that passed before a delegation was over.
    TakeLate,
    /// The same of one with the version of a delegation that ended without it.
    TakeLateGrants,
    /// Home takes what is `OLD` by another order than its own for certain.
    TakeOtherOrders,
    /// Home takes what another switch may have granted.
    TakeUncertain,
    /// Nodes answer home before they have the order that ends the delegation.
    FetchEarly,
    /// The map names a switch that has not stood by since it served before.
    NameUntold,
    /// A switch takes an order of an earlier time in which it served.
    TakeFormerOrders,
}

const HAND_OVER: Scope =
    Scope { name: "a switch hands over", orders: 3, turns: 1, crashes: 0, lapses: 0 };

const CRASH: Scope = Scope { name: "a switch crashes", orders: 2, crashes: 1, ..HAND_OVER };

const LAPSE: Scope = Scope { name: "a directory is forgotten", lapses: 1, ..HAND_OVER };

const BACK: Scope = Scope { name: "the first switch is back", turns: 2, ..HAND_OVER };

const SHORT: Scope = Scope { name: "two orders", orders: 2, ..HAND_OVER };

const ALONE: Scope = Scope { name: "a switch goes on", orders: 4, turns: 0, ..HAND_OVER };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::OF_ONE_TURN;
    const LONG_BUGS: &'static [Bug] = &[Bug::NameUntold, Bug::TakeFormerOrders];

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![HAND_OVER, CRASH, LAPSE]
    }

    fn long() -> Vec<Self> {
        vec![
            Self { name: "a switch crashes, and three orders", orders: 3, ..CRASH },
            Self { name: "a switch hands over, and four orders", orders: 4, ..HAND_OVER },
            BACK,
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::NameNewest | Bug::NeverOld | Bug::TakeUncertain => SHORT,
            Bug::GrantUnborn | Bug::TakeLate | Bug::FetchEarly => SHORT,
            Bug::KeepSince | Bug::HearOlder | Bug::TakeOtherOrders => HAND_OVER,
            Bug::ForgetGrants => Self { orders: 2, ..LAPSE },
            Bug::TakeLateGrants => ALONE,
            Bug::NameUntold | Bug::TakeFormerOrders => BACK,
        }
    }
}

impl Bug {
    /// Those that do harm when the map names another switch once.
    pub const OF_ONE_TURN: [Self; 11] = [
        Self::NameNewest,
        Self::KeepSince,
        Self::HearOlder,
        Self::NeverOld,
        Self::ForgetGrants,
        Self::GrantUnborn,
        Self::TakeLate,
        Self::TakeLateGrants,
        Self::TakeOtherOrders,
        Self::TakeUncertain,
        Self::FetchEarly,
    ];
}
