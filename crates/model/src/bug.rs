//! Rules of the protocol that the model can be told to break, each with the bounds that show it.

use crate::history::Kind::{self, Append, Create, Delete, Put};
use crate::scope::Scope;
use crate::state::Faults;
use cluster::Mutant;

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// One that the machines can be told to have as well.
    Mutant(Mutant),
    /// A member takes a CHAIN_COMMIT while that of the write's base is still on its way.
    CommitBeforeBase,
    /// A learner that has caught up goes on taking pieces of the copy.
    CaughtUpTakesPieces,
    /// Low-water marks are not copied to a learner.
    MarksStayBehind,
}

impl From<Mutant> for Bug {
    fn from(mutant: Mutant) -> Self {
        Self::Mutant(mutant)
    }
}

impl Bug {
    /// All that the model knows.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mutants = Mutant::ALL.into_iter().map(Self::Mutant);
        let own = [Self::CommitBeforeBase, Self::CaughtUpTakesPieces, Self::MarksStayBehind];
        mutants.chain(own).filter(|bug| bug.scope().is_some()).collect()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Mutant(mutant) => format!("{mutant:?}"),
            own => format!("{own:?}"),
        }
    }

    /// The smallest bounds in which clients see what it does; `None` for what the model has not:
    /// hot keys and their delegations, requests for many keys, and late syncs, since a node here
    /// writes to its disk whenever it takes something, in the same step.
    #[must_use]
    pub fn scope(self) -> Option<Scope> {
        Some(match self {
            Self::CommitBeforeBase => joining(&[Put, Create]),
            Self::CaughtUpTakesPieces => Scope { epochs: 3, ..joining(&[Put, Delete]) },
            Self::MarksStayBehind => {
                let scope = quiet(&[Put, Put]).of_one_client();
                Scope { epochs: 5, faults: CUT, reorders: true, ..scope }
            }
            Self::Mutant(mutant) => return scope_of(mutant),
        })
    }
}

const CUT: Faults = Faults { cuts: 1, restarts: 0, losses: 0, takeovers: 0 };
const LOSS: Faults = Faults { cuts: 0, restarts: 0, losses: 1, takeovers: 0 };

fn quiet(kinds: &[Kind]) -> Scope {
    Scope::quiet("smallest", kinds)
}

fn joining(kinds: &[Kind]) -> Scope {
    Scope { has_learner: true, ..quiet(kinds) }
}

/// A member is lost, and another one copied to.
fn copied() -> Scope {
    Scope { epochs: 5, faults: CUT, reorders: true, ..quiet(&[Put]) }
}

/// Its chain changes once.
fn moving() -> Scope {
    Scope { epochs: 3, moves: true, ..quiet(&[Put]) }
}

fn scope_of(mutant: Mutant) -> Option<Scope> {
    Some(match mutant {
        Mutant::ForgetRequests | Mutant::AnswerAtHead => quiet(&[Put]),
        Mutant::RetryElsewhere => quiet(&[Put, Put]),
        Mutant::IgnoreBase => Scope { epochs: 3, faults: LOSS, ..quiet(&[Append, Append]) },
        Mutant::IgnoreEpoch => Scope { epochs: 5, faults: LOSS, ..joining(&[Put]) },
        Mutant::IgnoreLease => Scope { epochs: 3, faults: CUT, ..quiet(&[Put]) },
        Mutant::ReadPending => joining(&[Put, Put]),
        Mutant::DropPending | Mutant::StaleIsFinal => moving(),
        Mutant::DropSessions | Mutant::CaughtUpTooSoon => copied(),
        Mutant::CopyOverwrites => Scope { epochs: 3, ..joining(&[Put, Put]) },
        Mutant::CollectAtOnce => Scope { epochs: 3, ..joining(&[Put, Delete]) },
        Mutant::KeepLeftovers => Scope { epochs: 5, faults: CUT, ..quiet(&[Put, Delete]) },
        Mutant::OpenUnsettled => Scope { reorders: true, ..moving() },
        Mutant::ImpatientController => Scope { epochs: 3, ..quiet(&[Put]) },
        Mutant::TrustTheForgetful => Scope { faults: LOSS, ..quiet(&[Put]) },
        // The others break rules that the model does not have.
        _ => return None,
    })
}
