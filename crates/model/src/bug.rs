//! Rules of the protocol that the model can be told to break, each with the bounds that show it.

use crate::history::Kind::{self, Append, Create, Delete, Put};
use crate::scope::Scope;
use crate::state::Faults;
use cluster::Plant;

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// One that the machines can be told to have as well.
    Plant(Plant),
    /// A member takes a CHAIN_COMMIT while that of the write's base is still on its way.
    CommitBeforeBase,
    /// A joiner that is whole goes on taking pieces of the copy.
    WholeTakesPieces,
    /// Low-water marks are not copied to a joiner.
    MarksStayBehind,
}

impl From<Plant> for Bug {
    fn from(plant: Plant) -> Self {
        Self::Plant(plant)
    }
}

impl Bug {
    /// All that the model knows.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let plants = Plant::ALL.into_iter().map(Self::Plant);
        let own = [Self::CommitBeforeBase, Self::WholeTakesPieces, Self::MarksStayBehind];
        plants.chain(own).filter(|bug| bug.scope().is_some()).collect()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Plant(plant) => format!("{plant:?}"),
            own => format!("{own:?}"),
        }
    }

    /// The smallest bounds in which clients see what it does; `None` for what the model has not:
    /// hot keys and their trips, requests for many keys, and late syncs, since a node here writes
    /// to its disk whenever it takes something, in the same step.
    #[must_use]
    pub fn scope(self) -> Option<Scope> {
        Some(match self {
            Self::CommitBeforeBase => joining(&[Put, Create]),
            Self::WholeTakesPieces => Scope { epochs: 3, ..joining(&[Put, Delete]) },
            Self::MarksStayBehind => {
                let scope = quiet(&[Put, Put]).of_one_client();
                Scope { epochs: 5, faults: CUT, reorders: true, ..scope }
            }
            Self::Plant(plant) => return scope_of(plant),
        })
    }
}

const CUT: Faults = Faults { cuts: 1, restarts: 0, losses: 0, takeovers: 0 };
const LOSS: Faults = Faults { cuts: 0, restarts: 0, losses: 1, takeovers: 0 };

fn quiet(kinds: &[Kind]) -> Scope {
    Scope::quiet("smallest", kinds)
}

fn joining(kinds: &[Kind]) -> Scope {
    Scope { joining: true, ..quiet(kinds) }
}

/// A member is lost, and another one copied to.
fn copied() -> Scope {
    Scope { epochs: 5, faults: CUT, reorders: true, ..quiet(&[Put]) }
}

/// Its chain changes once.
fn moving() -> Scope {
    Scope { epochs: 3, moves: true, ..quiet(&[Put]) }
}

fn scope_of(plant: Plant) -> Option<Scope> {
    Some(match plant {
        Plant::ForgetRequests | Plant::AnswerAtHead => quiet(&[Put]),
        Plant::RetryElsewhere => quiet(&[Put, Put]),
        Plant::IgnoreBase => Scope { epochs: 3, faults: LOSS, ..quiet(&[Append, Append]) },
        Plant::IgnoreEpoch => Scope { epochs: 5, faults: LOSS, ..joining(&[Put]) },
        Plant::IgnoreLease => Scope { epochs: 3, faults: CUT, ..quiet(&[Put]) },
        Plant::ReadPending => joining(&[Put, Put]),
        Plant::DropPending | Plant::StaleIsFinal => moving(),
        Plant::DropSessions | Plant::WholeTooSoon => copied(),
        Plant::CopyOverwrites => Scope { epochs: 3, ..joining(&[Put, Put]) },
        Plant::CollectAtOnce => Scope { epochs: 3, ..joining(&[Put, Delete]) },
        Plant::KeepLeftovers => Scope { epochs: 5, faults: CUT, ..quiet(&[Put, Delete]) },
        Plant::OpenUnsettled => Scope { reorders: true, ..moving() },
        Plant::ImpatientController => Scope { epochs: 3, ..quiet(&[Put]) },
        Plant::TrustTheForgetful => Scope { faults: LOSS, ..quiet(&[Put]) },
        // The others break rules that the model does not have.
        _ => return None,
    })
}
