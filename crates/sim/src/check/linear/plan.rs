//! What is worked out once before the search: the events in the order of time, the order of the
//! versions, and what there is of operations whose outcome is unknown.

use super::pool::Pool;
use super::state::Need;
use crate::check::{Op, OpKind};
use machine::Instant;
use std::collections::BTreeSet;
use wire::Version;

/// A history made ready for the search.
pub(super) struct Plan<'a> {
    pub(super) ops: &'a [Op],
    /// Calls and returns in the order of time, calls first where they coincide.
    pub(super) events: Vec<HistoryEvent>,
    /// Answered operations with a version, in its order: the write of a version before those that
    /// saw it.
    pub(super) order: Vec<usize>,
    pub(super) unknown: Pool<'a>,
    /// Of each operation: the event that is its call, or what it is if it has none.
    roles: Vec<Role>,
    pub(super) skew_ms: u64,
}

/// What happens at one point of time; the operation by its index.
#[derive(Clone, Copy, Debug)]
pub(super) enum HistoryEvent {
    Call(usize),
    /// An operation whose outcome will stay unknown; by its class.
    Maybe(u32),
    Return(usize),
}

#[derive(Clone, Copy, Debug)]
struct Role {
    called_at: usize,
    written_by_other: bool,
    need: Need,
}

impl<'a> Plan<'a> {
    pub(super) fn new(ops: &'a [Op], skew_ms: u64) -> Self {
        let unknown = Pool::new(ops);
        let mut timed: Vec<(Instant, bool, usize)> = Vec::with_capacity(2 * ops.len());
        for (index, op) in ops.iter().enumerate() {
            timed.push((op.called, false, index));
            timed.extend(op.returned.map(|returned| (returned, true, index)));
        }
        timed.sort_unstable();
        let written = ops.iter().filter(|op| op.is_acknowledged_write()).map(|op| op.version);
        let written: BTreeSet<Version> = written.chain(unknown.versions()).collect();
        let role = |op: &Op| Role {
            called_at: usize::MAX,
            written_by_other: !op.may_write() && written.contains(&op.version),
            need: match (Need::of(op), unknown.value_at(op.version)) {
                // What a comparison found at a version is what reads saw there.
                (Need::OtherValue(unwanted), Some(value)) if unwanted != Some(value) => {
                    Need::Exactly(Some(value))
                }
                (need, _) => need,
            },
        };
        let mut roles: Vec<Role> = ops.iter().map(role).collect();
        let mut events = Vec::with_capacity(timed.len());
        for (_, is_recall, index) in timed {
            let is_unknown = ops.get(index).is_some_and(Op::is_unknown);
            if is_unknown {
                events.extend(unknown.class_of(index).map(HistoryEvent::Maybe));
            } else if is_recall {
                events.push(HistoryEvent::Return(index));
            } else {
                if let Some(role) = roles.get_mut(index) {
                    role.called_at = events.len();
                }
                events.push(HistoryEvent::Call(index));
            }
        }
        let versioned = ops.iter().enumerate().filter(|(_, op)| !op.version.is_none());
        let mut order: Vec<usize> =
            versioned.filter(|(_, op)| !op.is_unknown()).map(|(index, _)| index).collect();
        order.sort_by_key(|index| ops.get(*index).map(|op| (op.version, rank(op), op.returned)));
        Self { ops, events, order, unknown, roles, skew_ms }
    }

    pub(super) fn op(&self, index: usize) -> &'a Op {
        self.ops.get(index).expect("events and orders name operations of the history")
    }

    /// Whether an answered operation has been called before this event.
    pub(super) fn is_called(&self, index: usize, event: usize) -> bool {
        self.roles.get(index).is_some_and(|role| role.called_at < event)
    }

    /// What an operation must have found.
    pub(super) fn need(&self, index: usize) -> Need {
        self.roles.get(index).map_or(Need::Impossible, |role| role.need)
    }

    /// Whether an operation saw the value of a write whose version is known: then nothing can come
    /// between the two.
    pub(super) fn is_seen_write(&self, index: usize) -> bool {
        self.is_written_by_other(index) && rank(self.op(index)) == 1
    }

    /// Whether the version that an operation saw is known to be that of some write.
    pub(super) fn is_written_by_other(&self, index: usize) -> bool {
        self.roles.get(index).is_some_and(|role| role.written_by_other)
    }
}

/// Of one version: the write, then those that saw its value, then those that saw that it had gone.
fn rank(op: &Op) -> u8 {
    match op.kind {
        _ if op.may_write() => 0,
        OpKind::Read(None) | OpKind::Del { .. } => 2,
        OpKind::Read(Some(_)) | OpKind::Put { .. } | OpKind::Cas { .. } | OpKind::Incr { .. } => 1,
    }
}
