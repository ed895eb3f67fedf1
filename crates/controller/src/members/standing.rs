//! What a member is to the controller.

use crate::decisions::Level;
use cluster::Member;
use wire::Revision;

/// What the controller thinks of a member that has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing has been heard of it.
    Unheard,
    /// It belongs to the cluster and is given full orders and leases.
    Accepted,
    /// A node to be taken in once that member no longer follows another controller.
    Waiting(Member),
    /// A node that was started anew, or is new, while nothing can be decided: a decision is being
    /// saved, or others have not been heard of yet.
    Returning,
    /// A node that was started anew, while its last incarnation may still be answering requests
    /// that pass no switch, or caches show what it has lent them: nobody else may commit anything
    /// newer.
    Lending,
    /// A node that came back with another memory than the one that held its partitions.
    Forgotten,
    /// It follows somebody else. The text says how that shows and what to do.
    Foreign(String),
    /// It speaks another version than this controller can. The text says which, and what to do.
    Unfit(String),
    /// It knows more than this controller, which therefore must not decide anything. The text says
    /// how that shows and what to do.
    Ahead(String),
}

impl Standing {
    /// Whether somebody has to look after it.
    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Unheard | Self::Accepted | Self::Returning | Self::Lending => Level::Usual,
            Self::Waiting(_)
            | Self::Forgotten
            | Self::Foreign(_)
            | Self::Unfit(_)
            | Self::Ahead(_) => Level::Trouble,
        }
    }

    /// What is seen in a member that says to have this revision, and what is done about it.
    pub(crate) fn explain(self, member: Member, revision: Revision) -> (String, String) {
        match self {
            Self::Unheard => (format!("{member} has not been heard of"), "ask again".into()),
            Self::Accepted => {
                (format!("{member} answers with revision {revision}"), "keep it up to date".into())
            }
            Self::Waiting(other) => (
                format!("{member} is new, but {other} follows another controller"),
                "do not take it in yet".into(),
            ),
            Self::Returning => (
                format!("{member} was started anew while nothing can be decided"),
                "see to it when all have been heard of and what was decided is saved".into(),
            ),
            Self::Lending => (
                format!("{member} was started anew, and what it has lent may still be shown"),
                "let its chains wait until that is over".into(),
            ),
            Self::Forgotten => (
                format!("{member} came back without the memory of its partitions"),
                "give it no assignment".into(),
            ),
            Self::Foreign(why) | Self::Unfit(why) => {
                (format!("{member}: {why}"), "give it no order".into())
            }
            Self::Ahead(why) => (format!("{member}: {why}"), "decide nothing more".into()),
        }
    }
}
