//! Operations whose outcome is unknown, by what they would do: of those that would do the same, the
//! one that was called first can stand for any.

use crate::check::{Op, OpKind};
use std::collections::{BTreeMap, BTreeSet};

/// All unknown writes of a history.
#[derive(Default)]
pub(super) struct Pool<'a> {
    classes: Vec<Class<'a>>,
    /// Class of each operation that is unknown and would write.
    class_of: BTreeMap<usize, u32>,
    /// Those that leave a value, by it.
    pub(super) by_value: BTreeMap<i64, Vec<u32>>,
    /// Those that add, the largest addend first.
    pub(super) adders: Vec<u32>,
    pub(super) putters: Vec<u32>,
    pub(super) deleters: Vec<u32>,
    /// Those that put a value with an end, the first to go first.
    pub(super) expiring: Vec<Expiring>,
    /// The one that puts values that nobody looks for.
    pub(super) nameless: Option<u32>,
    /// Those that compare, with what they expect.
    swappers: BTreeSet<(Option<i64>, u32)>,
}

/// Unknown writes of a value with an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiring {
    pub(super) expiry_ms: u64,
    pub(super) class: u32,
    /// Nobody looks for the value.
    pub(super) nameless: bool,
}

/// Unknown writes that would do the same.
struct Class<'a> {
    /// In the order of their calls.
    ops: Vec<&'a Op>,
    /// Somebody may have seen what it left.
    named: bool,
}

/// One step on the way to what an operation has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The value's time came.
    Expire,
    /// An unknown write of this class took effect.
    Take(u32),
}

impl<'a> Pool<'a> {
    pub(super) fn new(ops: &'a [Op]) -> Self {
        let mut called: Vec<(usize, &Op)> =
            ops.iter().enumerate().filter(|(_, op)| op.is_unknown() && op.may_write()).collect();
        called.sort_by_key(|(_, op)| op.called);
        let looked_for = looked_for(ops);
        let mut kinds: BTreeMap<OpKind, u32> = BTreeMap::new();
        let mut pool = Self::default();
        for (index, op) in called {
            let named = match (&looked_for, op.kind) {
                (Some(values), OpKind::Put { value, .. } | OpKind::Cas { value, .. }) => {
                    values.contains(&value)
                }
                (Some(_), OpKind::Del { .. }) => false,
                _ => true,
            };
            let class = match op.kind {
                // A value that nobody could tell from another is as good as any of its like.
                OpKind::Put { expiry_ms: 0, .. } if !named => {
                    let class = pool.nameless.unwrap_or_else(|| pool.add(op.kind, named));
                    pool.nameless = Some(class);
                    class
                }
                _ => *kinds.entry(op.kind).or_insert_with(|| pool.add(op.kind, named)),
            };
            pool.class_of.insert(index, class);
            let members = pool.classes.get_mut(class as usize).map(|class| &mut class.ops);
            members.expect("every kind has been added").push(op);
        }
        let mut adders = std::mem::take(&mut pool.adders);
        adders.sort_by_key(|class| std::cmp::Reverse(pool.delta(*class)));
        pool.expiring.sort_by_key(|it| it.expiry_ms);
        Self { adders, ..pool }
    }

    fn add(&mut self, kind: OpKind, named: bool) -> u32 {
        let class = u32::try_from(self.classes.len()).expect("fewer classes than operations");
        self.classes.push(Class { ops: Vec::new(), named });
        match kind {
            OpKind::Put { value, expiry_ms } => {
                self.putters.push(class);
                self.by_value.entry(value).or_default().push(class);
                if expiry_ms != 0 {
                    self.expiring.push(Expiring { expiry_ms, class, nameless: !named });
                }
            }
            OpKind::Cas { expect, value, .. } => {
                self.by_value.entry(value).or_default().push(class);
                self.swappers.insert((expect, class));
            }
            OpKind::Incr { .. } => self.adders.push(class),
            OpKind::Del { .. } => self.deleters.push(class),
            OpKind::Read(_) => {}
        }
        class
    }

    pub(super) fn class_of(&self, op: usize) -> Option<u32> {
        self.class_of.get(&op).copied()
    }

    pub(super) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The member of a class that is the next to take effect after `used` others.
    pub(super) fn member(&self, class: u32, used: u32) -> Option<&'a Op> {
        self.classes.get(class as usize)?.ops.get(used as usize).copied()
    }

    /// Whether somebody may have seen what a class left.
    pub(super) fn is_named(&self, class: u32) -> bool {
        self.classes.get(class as usize).is_some_and(|class| class.named)
    }

    /// Whether any of them may leave this value, or nothing.
    pub(super) fn may_leave(&self, value: Option<i64>) -> bool {
        match value {
            Some(value) => self.by_value.contains_key(&value) || !self.adders.is_empty(),
            None => !self.deleters.is_empty() || !self.expiring.is_empty(),
        }
    }

    pub(super) fn has_swappers(&self) -> bool {
        !self.swappers.is_empty()
    }

    pub(super) fn swappers(&self) -> impl Iterator<Item = (Option<i64>, u32)> {
        self.swappers.iter().copied()
    }

    /// Those that compare with this.
    pub(super) fn swappers_of(&self, expect: Option<i64>) -> impl Iterator<Item = u32> {
        self.swappers.range((expect, 0)..=(expect, u32::MAX)).map(|(_, class)| *class)
    }

    pub(super) fn delta(&self, class: u32) -> i64 {
        match self.member(class, 0).map(|op| op.kind) {
            Some(OpKind::Incr { delta, .. }) => delta,
            _ => 0,
        }
    }
}

/// The values of a register that somebody looks for; `None` if it is counted with, so that any may
/// matter.
fn looked_for(ops: &[Op]) -> Option<BTreeSet<i64>> {
    let mut values = BTreeSet::new();
    for op in ops {
        match op.kind {
            OpKind::Read(seen) => values.extend(seen),
            OpKind::Cas { expect, .. } => values.extend(expect),
            OpKind::Incr { .. } => return None,
            OpKind::Put { .. } | OpKind::Del { .. } => {}
        }
    }
    Some(values)
}
