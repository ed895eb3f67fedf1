//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Halves of periods that pass at most.
    pub halves: u8,
    /// How often the client asks.
    pub asks: u8,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A leader says which period it is by a clock of its own.
    OwnClock,
    /// Members forget the keys of a period when the next one begins.
    ForgetAtOnce,
    /// They have the keys of one period more.
    ForgetLate,
    /// They have no keys of a period before it begins.
    LearnLate,
    /// A member seals with the newest keys that it has.
    SealAhead,
    /// A switch sends a request on in an envelope of the period that it was told of.
    ForwardAfresh,
    /// A client has its pass renewed when its keys are over.
    RenewLate,
    /// It asks for a cookie of the present period before it asks for anything else.
    CookieFirst,
    /// It asks for a cookie of the present period with some of its packets only.
    AskSeldom,
}

const SHORT: Scope = Scope { name: "two periods begin", halves: 5, asks: 3 };

const LONG: Scope = Scope { name: "four periods begin", halves: 9, asks: 2 };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![SHORT, LONG]
    }

    fn long() -> Vec<Self> {
        vec![Self { name: "four periods begin, and much is asked", asks: 4, ..LONG }]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::ForgetLate => LONG,
            _ => SHORT,
        }
    }
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OwnClock,
        Self::ForgetAtOnce,
        Self::ForgetLate,
        Self::LearnLate,
        Self::SealAhead,
        Self::ForwardAfresh,
        Self::RenewLate,
        Self::CookieFirst,
        Self::AskSeldom,
    ];
}
