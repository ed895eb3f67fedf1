//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Controllers, of which the first leads at the beginning.
    pub controllers: u8,
    /// How often leaders renew their leases.
    pub renewals: u8,
    /// How often candidates ask for the key.
    pub takes: u8,
    /// How often the store has no room.
    pub fills: u8,
    /// A controller of an earlier version: it goes by leases, and gives no signs.
    pub mute: Option<u8>,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A candidate takes the key as soon as it has seen a sign.
    TakeAtOnce,
    /// It forgets that its clock may be faster than the leader's.
    ForgetRates,
    /// It takes the key whether or not there is a newer sign.
    TakeAnyway,
    /// It goes by a sign that stands still, though it is an older leader's.
    BelieveAnySign,
    /// A leader gives orders however long it has renewed nothing.
    LeadOn,
    /// It counts on itself from when it was answered.
    CountFromAnswer,
    /// It counts on itself when the lease is renewed, whether or not it has given a sign.
    LeaseIsEnough,
    /// It gives leases that rest on reports that it has heard after it looked whether it leads.
    HearLater,
    /// Without room for a sign it leaves the last one.
    LeaveSign,
    /// When it has removed that, it does not look whether the key is still its own.
    RemoveIsEnough,
    /// Where there was no sign, a new leader counts leases from when it took the key.
    CountAtOnce,
}

const PAUSED: Scope = Scope {
    name: "a leader is paused",
    controllers: 2,
    renewals: 3,
    takes: 2,
    fills: 0,
    mute: None,
};

const FULL: Scope = Scope { name: "the store has no room", renewals: 2, fills: 1, ..PAUSED };

const THREE: Scope = Scope { name: "three controllers", controllers: 3, renewals: 2, ..PAUSED };

const MUTE: Scope = Scope {
    name: "one of them gives no signs",
    controllers: 3,
    renewals: 1,
    takes: 2,
    mute: Some(1),
    ..PAUSED
};

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![PAUSED, FULL, THREE, MUTE]
    }

    fn long() -> Vec<Self> {
        vec![
            Self { name: "a leader is paused, and renews often", renewals: 4, ..PAUSED },
            Self { name: "the store has no room twice", fills: 2, ..FULL },
            Self { name: "three controllers without room", controllers: 3, ..FULL },
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::TakeAtOnce | Bug::ForgetRates | Bug::TakeAnyway | Bug::LeadOn => PAUSED,
            Bug::CountFromAnswer | Bug::LeaseIsEnough | Bug::HearLater => PAUSED,
            Bug::LeaveSign | Bug::RemoveIsEnough | Bug::CountAtOnce => FULL,
            Bug::BelieveAnySign => MUTE,
        }
    }
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::TakeAtOnce,
        Self::ForgetRates,
        Self::TakeAnyway,
        Self::BelieveAnySign,
        Self::LeadOn,
        Self::CountFromAnswer,
        Self::LeaseIsEnough,
        Self::HearLater,
        Self::LeaveSign,
        Self::RemoveIsEnough,
        Self::CountAtOnce,
    ];
}
