//! Operations whose outcome is unknown, by what they would do: of those that would do the same, the
//! one that was called first can stand for any.

use crate::check::{Op, OpKind};
use std::collections::{BTreeMap, BTreeSet};
use wire::Version;

/// All unknown writes of a history.
#[derive(Default)]
pub(super) struct Pool<'a> {
    classes: Vec<Class<'a>>,
    /// Class of each operation that is unknown and would write.
    class_of: BTreeMap<usize, u32>,
    /// Those that leave a value, by it.
    pub(super) by_value: BTreeMap<i64, Vec<u32>>,
    /// Those that took effect at a known version.
    by_version: BTreeMap<Version, u32>,
    /// Those that add, the largest addend first.
    pub(super) adders: Vec<u32>,
    pub(super) putters: Vec<u32>,
    pub(super) deleters: Vec<u32>,
    /// Those that put a value with an end, the first to go first.
    pub(super) expiring: Vec<Expiring>,
    /// The one that puts values that nobody looks for.
    pub(super) nameless: Option<u32>,
    /// Those that compare and leave nothing, or a value with an end.
    ending: BTreeMap<Option<i64>, Vec<Ending>>,
    /// What those expect that an unknown write may leave.
    pub(super) reachable_ends: Vec<Option<i64>>,
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

/// Unknown swaps after which, at once or in time, there is nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) class: u32,
    /// When what it leaves goes; 0 if it leaves nothing.
    pub(super) expiry_ms: u64,
}

/// Unknown writes that would do the same.
struct Class<'a> {
    /// In the order of their calls.
    ops: Vec<&'a Op>,
    sight: Sight,
}

/// Who may have seen what an unknown write left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// Nobody.
    Nameless,
    /// Somebody.
    Named,
    /// Somebody at this version: no other operation leaves that value, so it took effect then.
    At(Version),
}

/// One step on the way to what an operation has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
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
        let sights = Sights::of(ops);
        let mut kinds: BTreeMap<OpKind, u32> = BTreeMap::new();
        let mut pool = Self::default();
        for (index, op) in called {
            let sight = sights.sight(op.kind);
            let class = match op.kind {
                // A value that nobody could tell from another is as good as any of its like.
                OpKind::Put { expiry_ms: 0, .. } if sight == Sight::Nameless => {
                    let class = pool.nameless.unwrap_or_else(|| pool.add(op.kind, sight));
                    pool.nameless = Some(class);
                    class
                }
                _ => *kinds.entry(op.kind).or_insert_with(|| pool.add(op.kind, sight)),
            };
            pool.class_of.insert(index, class);
            let members = pool.classes.get_mut(class as usize).map(|class| &mut class.ops);
            members.expect("every kind has been added").push(op);
        }
        let mut adders = std::mem::take(&mut pool.adders);
        adders.sort_by_key(|class| std::cmp::Reverse(pool.delta(*class)));
        pool.expiring.sort_by_key(|it| it.expiry_ms);
        let pool = Self { adders, ..pool };
        let expected = pool.ending.keys().copied();
        let reachable_ends = expected.filter(|expect| pool.may_delegate(*expect)).collect();
        Self { reachable_ends, ..pool }
    }

    fn add(&mut self, kind: OpKind, sight: Sight) -> u32 {
        let class = u32::try_from(self.classes.len()).expect("fewer classes than operations");
        self.classes.push(Class { ops: Vec::new(), sight });
        if let OpKind::Put { value, .. } | OpKind::Cas { value: Some(value), .. } = kind {
            self.by_value.entry(value).or_default().push(class);
            if let Sight::At(version) = sight {
                self.by_version.insert(version, class);
            }
        }
        match kind {
            // It is looked for by its value, where it was seen.
            _ if matches!(sight, Sight::At(_)) => {}
            OpKind::Put { expiry_ms, .. } => {
                self.putters.push(class);
                if expiry_ms != 0 {
                    let nameless = sight == Sight::Nameless;
                    self.expiring.push(Expiring { expiry_ms, class, nameless });
                }
            }
            OpKind::Cas { expect, value, expiry_ms, .. } => {
                self.swappers.insert((expect, class));
                if value.is_none() || expiry_ms != 0 {
                    self.ending.entry(expect).or_default().push(Ending { class, expiry_ms });
                }
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
        self.sight(class) != Sight::Nameless
    }

    /// The version at which a class took effect, if it did and that is known.
    pub(super) fn version(&self, class: u32) -> Option<Version> {
        match self.sight(class) {
            Sight::At(version) => Some(version),
            Sight::Nameless | Sight::Named => None,
        }
    }

    /// All versions at which unknown writes took effect, as far as they are known.
    pub(super) fn versions(&self) -> impl Iterator<Item = Version> {
        self.by_version.keys().copied()
    }

    /// The class that took effect at this version, if that is known.
    pub(super) fn class_at(&self, version: Version) -> Option<u32> {
        self.by_version.get(&version).copied()
    }

    /// What an unknown write left at this version, if that is known.
    pub(super) fn value_at(&self, version: Version) -> Option<i64> {
        match self.member(self.class_at(version)?, 0)?.kind {
            OpKind::Put { value, .. } => Some(value),
            OpKind::Cas { value, .. } => value,
            OpKind::Del { .. } | OpKind::Incr { .. } | OpKind::Read(_) => None,
        }
    }

    fn sight(&self, class: u32) -> Sight {
        self.classes.get(class as usize).map_or(Sight::Named, |class| class.sight)
    }

    /// Whether any of them may leave this value, or nothing.
    pub(super) fn may_delegate(&self, value: Option<i64>) -> bool {
        match value {
            Some(value) => self.by_value.contains_key(&value) || !self.adders.is_empty(),
            None => {
                !self.deleters.is_empty() || !self.expiring.is_empty() || !self.ending.is_empty()
            }
        }
    }

    /// Whether any of them may leave a value with an end.
    pub(super) fn may_expire(&self) -> bool {
        !self.expiring.is_empty() || self.ending.values().flatten().any(|it| it.expiry_ms != 0)
    }

    /// Those that compare with this and leave nothing, at once or in time.
    pub(super) fn ending_of(&self, expect: Option<i64>) -> &[Ending] {
        self.ending.get(&expect).map_or(&[], Vec::as_slice)
    }

    /// Whether there are any of them.
    pub(super) fn has_ending(&self) -> bool {
        !self.ending.is_empty()
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

/// Who saw and who left which values.
#[derive(Default)]
struct Sights {
    /// Any value may matter to a key that is counted with.
    counted: bool,
    /// Values that somebody saw or compared with, and the versions at which they were read.
    seen: BTreeMap<i64, BTreeSet<Version>>,
    /// How many operations may leave a value.
    left: BTreeMap<i64, usize>,
}

impl Sights {
    fn of(ops: &[Op]) -> Self {
        let mut sights = Self::default();
        for op in ops {
            match op.kind {
                OpKind::Read(Some(value)) => {
                    let versions = sights.seen.entry(value).or_default();
                    versions.extend(Some(op.version).filter(|version| !version.is_none()));
                }
                OpKind::Cas { expect: Some(value), .. } => {
                    sights.seen.entry(value).or_default();
                }
                OpKind::Incr { .. } => sights.counted = true,
                _ => {}
            }
            if let OpKind::Put { value, .. } | OpKind::Cas { value: Some(value), .. } = op.kind {
                *sights.left.entry(value).or_default() += 1;
            }
        }
        sights
    }

    fn sight(&self, kind: OpKind) -> Sight {
        let value = match kind {
            _ if self.counted => return Sight::Named,
            OpKind::Put { value, .. } | OpKind::Cas { value: Some(value), .. } => value,
            OpKind::Cas { value: None, .. }
            | OpKind::Del { .. }
            | OpKind::Incr { .. }
            | OpKind::Read(_) => return Sight::Nameless,
        };
        let Some(versions) = self.seen.get(&value) else { return Sight::Nameless };
        match versions.first() {
            Some(version) if versions.len() == 1 && self.left.get(&value) == Some(&1) => {
                Sight::At(*version)
            }
            _ => Sight::Named,
        }
    }
}
