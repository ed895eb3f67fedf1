//! Batches: whether anybody has seen a part of one and missed another.
//!
//! Each key's part of a batch is an operation in the history of that key, where it is checked like
//! any other. What is left is that all parts take effect at one instant. All keys of a batch have
//! their versions from one sequence, which tells who came before whom: a batch has certainly taken
//! place once somebody was told so, was shown what it left, or was shown what came after it. From
//! then on nobody may be shown less of any of its keys. And what a batch has found of several keys
//! at once must lie before or after each other batch as a whole.

use super::history::Key;
use super::op::{Op, OpKind};
use machine::Instant;
use std::collections::BTreeMap;
use wire::Version;

/// A batch that has taken place, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Which client asked.
    pub client: usize,
    /// When it was answered; `None` if never.
    pub returned: Option<Instant>,
    /// Its version; 0 if that is not known.
    pub version: Version,
    /// What it did with each of its keys.
    pub parts: Vec<Part>,
}

/// What a batch did with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The key.
    pub key: Key,
    /// The version that it expected there.
    pub expected: Option<Version>,
    /// What it left, if it changed anything; `Some(None)` for no value.
    pub left: Option<Option<i64>>,
}

/// Everything that was seen in parts.
#[must_use]
pub fn breaches(batches: &[Batch], keys: &BTreeMap<Key, Vec<Op>>) -> Vec<String> {
    let ops = |key: &Key| keys.get(key).map_or(&[][..], Vec::as_slice);
    let known: Vec<Batch> = batches
        .iter()
        .filter_map(|batch| {
            let version = version_of(batch, ops)?;
            Some(Batch { version, ..batch.clone() })
        })
        .collect();
    let mut found: Vec<String> = known.iter().filter_map(|it| missed(it, ops)).collect();
    let snapshots = known.iter().filter(|batch| batch.returned.is_some());
    found.extend(snapshots.filter_map(|batch| torn(batch, &known)));
    found
}

/// The version of a batch: of one that nobody answered, what a value of it was read with. Values
/// are written once.
fn version_of<'a>(batch: &Batch, ops: impl Fn(&Key) -> &'a [Op]) -> Option<Version> {
    if !batch.version.is_none() {
        return Some(batch.version);
    }
    batch.parts.iter().find_map(|part| {
        let value = part.left.flatten()?;
        let saw = |op: &&Op| op.kind == OpKind::Read(Some(value)) && !op.version.is_none();
        ops(&part.key).iter().find(saw).map(|op| op.version)
    })
}

/// A read that began after the batch had certainly taken place, and was shown less.
fn missed<'a>(batch: &Batch, ops: impl Fn(&Key) -> &'a [Op]) -> Option<String> {
    let version = batch.version;
    let shows = |part: &Part| {
        let least = if part.left.is_some() { version } else { version.next() };
        let told = ops(&part.key).iter().filter(move |op| op.version >= least);
        told.filter_map(|op| op.returned).min()
    };
    let shown = batch.parts.iter().filter_map(shows).min();
    let took_place = shown.into_iter().chain(batch.returned).min()?;
    batch.parts.iter().find_map(|part| {
        let least = if part.left.is_some() { Some(version) } else { part.expected };
        let put = part.left.flatten().is_some();
        let less = |op: &&Op| match op.kind {
            _ if op.called <= took_place || op.is_unknown() => false,
            OpKind::Read(Some(_)) => least.is_some_and(|least| op.version < least),
            OpKind::Read(None) => put && !may_be_gone(ops(&part.key), version),
            _ => false,
        };
        let op = ops(&part.key).iter().find(less)?;
        let key = String::from_utf8_lossy(&part.key.key);
        Some(format!(
            "batch in parts: client {}'s batch at version {version} had taken place when {op} was \
             asked of {key}",
            batch.client
        ))
    })
}

/// Whether the key may have been deleted after this version.
fn may_be_gone(ops: &[Op], version: Version) -> bool {
    ops.iter().any(|op| {
        let deletes = matches!(op.kind, OpKind::Del { .. } | OpKind::Cas { value: None, .. });
        deletes && op.may_write() && (op.is_unknown() || op.version > version)
    })
}

/// Two keys of which a batch found one as another batch left it or later, and one as it was before.
fn torn(snapshot: &Batch, batches: &[Batch]) -> Option<String> {
    let expected = |key: &Key| {
        let part = snapshot.parts.iter().find(|part| part.key == *key);
        part.and_then(|part| part.expected)
    };
    batches.iter().filter(|it| it.version != snapshot.version).find_map(|it| {
        let mut after = it.parts.iter().filter(|part| expected(&part.key) >= Some(it.version));
        let written = it.parts.iter().filter(|part| part.left.is_some());
        let mut before =
            written.filter(|part| expected(&part.key).is_some_and(|seen| seen < it.version));
        let (after, before) = (after.next()?, before.next()?);
        let [after, before] =
            [after, before].map(|part| String::from_utf8_lossy(&part.key.key).into_owned());
        Some(format!(
            "batch in parts: client {}'s batch at version {} found {after} as after version {}, \
             and {before} as before",
            snapshot.client, snapshot.version, it.version
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { ordered: false, key: name.into() }
    }

    fn part(name: &str, expected: Option<u64>, left: Option<i64>) -> Part {
        Part { key: key(name), expected: expected.map(Version::new), left: left.map(Some) }
    }

    fn read(called: u64, value: Option<i64>, version: u64) -> Op {
        let (called, returned) = (Instant(called), Some(Instant(called + 1)));
        Op {
            client: 1,
            called,
            returned,
            kind: OpKind::Read(value),
            version: Version::new(version),
        }
    }

    fn found(batches: &[Batch], a: Vec<Op>, b: Vec<Op>) -> usize {
        breaches(batches, &BTreeMap::from([(key("a"), a), (key("b"), b)])).len()
    }

    fn both(returned: Option<u64>, version: u64) -> Batch {
        let parts = vec![part("a", None, Some(7)), part("b", None, Some(7))];
        Batch { client: 0, returned: returned.map(Instant), version: Version::new(version), parts }
    }

    #[test]
    fn a_part_that_is_seen_and_one_that_is_missed_are_noticed() {
        let seen = || vec![read(10, Some(7), 5)];
        let old = |called| vec![read(called, Some(1), 2)];
        assert_eq!(found(&[both(None, 0)], seen(), old(12)), 1, "nobody answered, but it was seen");
        assert_eq!(found(&[both(None, 0)], seen(), old(10)), 0, "both were under way at once");
        assert_eq!(found(&[both(Some(9), 5)], vec![], old(10)), 1, "it was acknowledged");
        assert_eq!(found(&[both(Some(9), 5)], vec![], vec![read(10, None, 0)]), 1);
        let kind = OpKind::Del { existed: Some(true) };
        let deleted = Op { kind, version: Version::new(6), ..read(9, None, 0) };
        assert_eq!(found(&[both(Some(9), 5)], vec![], vec![deleted, read(11, None, 0)]), 0);
    }

    #[test]
    fn what_comes_after_a_key_that_was_only_checked_comes_after_all() {
        let parts = vec![part("a", Some(3), None), part("b", None, Some(7))];
        let batch = Batch { client: 0, returned: None, version: Version::NONE, parts };
        let written = vec![read(20, Some(7), 5)];
        let later = || vec![read(10, Some(9), 6)];
        let before = [vec![read(12, Some(1), 2)], written].concat();
        assert_eq!(found(&[batch], later(), before), 1);
    }

    #[test]
    fn a_snapshot_lies_before_or_after_a_batch_as_a_whole() {
        let snapshot = |a, b| Batch {
            parts: vec![part("a", Some(a), None), part("b", Some(b), None)],
            ..both(Some(30), 9)
        };
        for (a, b, breaches) in [(5, 5, 0), (4, 2, 0), (5, 4, 1), (2, 6, 1)] {
            assert_eq!(found(&[both(None, 5), snapshot(a, b)], vec![], vec![]), breaches);
        }
    }
}
