//! Pictures of a history: who asked when, who was answered when, and what.

mod html;
mod text;

use super::op::Op;
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use wire::Version;

pub use html::draw_html;
pub use text::draw_text;

/// A history of one key that breaks a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The key, as people read it.
    pub key: String,
    /// What is wrong, as a sentence.
    pub what: String,
    /// The operations, shrunk to what shows it.
    pub ops: Vec<Op>,
    /// Those that show it best, by index.
    pub culprits: Vec<usize>,
}

/// Where the operations of a history stand in a picture: a lane for each client, and columns that
/// only keep the order of calls and returns, for real time leaves most of a picture empty.
struct Layout {
    lanes: Vec<usize>,
    columns: BTreeMap<Instant, usize>,
}

impl Layout {
    fn of(ops: &[Op]) -> Self {
        let lanes: BTreeSet<usize> = ops.iter().map(|op| op.client).collect();
        let instants: BTreeSet<Instant> =
            ops.iter().flat_map(|op| [Some(op.called), op.returned]).flatten().collect();
        let columns = instants.into_iter().zip(0..).collect();
        Self { lanes: lanes.into_iter().collect(), columns }
    }

    fn column(&self, at: Instant) -> usize {
        self.columns.get(&at).copied().unwrap_or(0)
    }

    /// From its call to its return; an unknown one goes on beyond the last column.
    fn span(&self, op: &Op) -> (usize, usize) {
        let end = op.returned.map_or(self.columns.len(), |at| self.column(at));
        (self.column(op.called), end)
    }
}

/// What stands on an operation's bar.
fn label(op: &Op) -> String {
    match op.version {
        Version::NONE => op.kind.to_string(),
        version => format!("{} v{version}", op.kind),
    }
}
