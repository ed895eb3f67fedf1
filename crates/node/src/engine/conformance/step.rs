//! One thing to do to an engine, and the small world of keys it is done in.

use crate::engine::Area;
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Match, PartitionId};
use machine::Rng;
use std::ops::Bound;
use wire::Version;

/// Random numbers that make one [`Step`].
pub type Draw = [u16; 6];

/// One thing to do to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Change something, and see that it has changed.
    Change(Change),
    /// Read a key, which may not be there.
    Read(Key),
    /// Scan an interval.
    Scan(Scan),
    /// List what is due.
    Due {
        /// Until when.
        until_ms: u64,
        /// How many to visit before breaking off.
        visits: usize,
    },
    /// List the notes of a partition.
    Notes(PartitionId),
    /// Walk through a partition that changes meanwhile.
    Walk(Walk),
    /// Make everything so far durable.
    Sync,
}

/// What changes an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Write a record.
    Write {
        /// Where.
        key: Key,
        /// The record's version.
        version: Version,
        /// Its expiry; often 0.
        expiry_ms: u64,
        /// Whether it marks a deleted key.
        tombstone: bool,
        /// Its value.
        value: Vec<u8>,
    },
    /// Remove a key, which may not be there.
    Remove(Key),
    /// Keep or remove a note.
    Note {
        /// Whose.
        partition: PartitionId,
        /// Its name.
        name: Vec<u8>,
        /// Its content, or `None` to remove it.
        note: Option<Vec<u8>>,
    },
    /// Forget a partition.
    Clear(Area),
}

/// A key with all that an engine is told of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// Its match value.
    pub match_value: Match,
    /// The key.
    pub bytes: Vec<u8>,
    /// Its partition.
    pub partition: PartitionId,
    /// Whether its keyspace is scanned in order.
    pub ordered: bool,
    /// Its hash: one of few, so that different keys often have the same.
    pub keyhash: u64,
}

/// An interval to scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The keyspace.
    pub keyspace: Keyspace,
    /// The partition.
    pub partition: PartitionId,
    /// First match value.
    pub first: Match,
    /// Last match value; may be before the first.
    pub last: Match,
    /// Bound from below, with any relation to `first`.
    pub start: Bound<Vec<u8>>,
    /// Bound from above.
    pub end: Bound<Vec<u8>>,
    /// From the end to the start.
    pub reverse: bool,
    /// How many records to visit before breaking off.
    pub visits: usize,
}

/// A walk through a partition in pieces, and after the last of them to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The partition.
    pub area: Area,
    /// The pieces.
    pub pieces: Vec<WalkPiece>,
}

/// A piece of a walk, and what happens before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkPiece {
    /// How many records to take before breaking off at one more.
    pub takes: usize,
    /// What changes then, here or elsewhere.
    pub then: Vec<Change>,
}

/// A keyspace of the little world. Partitions are numbered from 1 over all of them.
struct Space {
    id: u16,
    /// The common prefix, if it is ordered.
    prefix: Option<&'static [u8]>,
    /// First match values of its partitions; keys drawn below lie close to them.
    firsts: &'static [u128],
}

const SPACES: [Space; 3] = [
    Space { id: 1, prefix: None, firsts: &[0, u128::MAX / 3, u128::MAX / 3 * 2] },
    Space { id: 2, prefix: Some(b"k"), firsts: &[0, 1 << 120, 0x6d << 120] },
    Space { id: 0x0102, prefix: Some(b""), firsts: &[0] },
];

/// How many the first two keyspaces have, and no keyspace more.
const PARTITIONS: u16 = 3;

/// Different keys of a hash keyspace share this many keyhashes.
const KEYHASHES: u64 = 16;

impl Step {
    /// The step that these numbers stand for; small numbers make simple steps.
    #[must_use]
    pub fn from_draw(draw: Draw) -> Self {
        let [what, space, a, b, c, d] = draw;
        match what % 18 {
            0..=5 => Self::Change(Change::write(draw)),
            6 => Self::Change(Change::Remove(Key::from_draw(space, a))),
            7 => Self::Read(Key::from_draw(space, a)),
            8..=10 => Self::Scan(Scan::from_draw(draw)),
            11 => Self::Due { until_ms: u64::from(a % 24), visits: visits(b) },
            12 | 13 => Self::Change(Change::Note {
                partition: PartitionId(u32::from(space % 8)),
                name: note_name(a),
                note: (b % 4 != 3).then(|| value(c)),
            }),
            14 => Self::Notes(PartitionId(u32::from(space % 8))),
            15 => Self::Sync,
            // Seldom, so that partitions come to hold something.
            16 if d % 4 == 3 => Self::Change(Change::Clear(area(space, a).1)),
            _ => Self::Walk(Walk::from_draw(draw)),
        }
    }

    /// What it changes, in this order.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        let (change, walk) = match self {
            Self::Change(change) => (Some(change), None),
            Self::Walk(walk) => (None, Some(walk)),
            Self::Read(_) | Self::Scan(_) | Self::Due { .. } | Self::Notes(_) | Self::Sync => {
                (None, None)
            }
        };
        let in_walk = walk.into_iter().flat_map(|walk| &walk.pieces).flat_map(|piece| &piece.then);
        change.into_iter().chain(in_walk)
    }
}

impl Change {
    fn write([_, space, a, b, c, d]: Draw) -> Self {
        let (key, tombstone) = (Key::from_draw(space, a), d % 5 == 1);
        let mut value = if tombstone { Vec::new() } else { value(d / 5) };
        // Nodes write nothing larger.
        value.truncate(wire::ENTRY_MAX - key.bytes.len());
        let expiry_ms = u64::from((c % 32).saturating_sub(12));
        Self::Write { key, version: Version::new(b.into()), expiry_ms, tombstone, value }
    }
}

impl Walk {
    fn from_draw([_, space, a, b, c, d]: Draw) -> Self {
        let mut rng = Rng::new(u64::from(c) << 16 | u64::from(d));
        let mut number = || u16::try_from(rng.next_u64() >> 48).expect("16 bits");
        let mut change = || {
            let draw: Draw = std::array::from_fn(|_| number());
            let [what, elsewhere, at, ..] = draw;
            // Mostly in the same keyspace, of few partitions.
            let space = if what % 4 == 3 { elsewhere } else { space };
            match what / 4 % 32 {
                0..=15 => Change::write([what, space, at, number(), number(), number()]),
                16..=30 => Change::Remove(Key::from_draw(space, at)),
                _ => Change::Clear(area(space, at).1),
            }
        };
        let mut piece = |takes: u16| {
            let then = std::iter::repeat_with(&mut change).take(usize::from(b / 8 % 8)).collect();
            WalkPiece { takes: usize::from(takes), then }
        };
        Self { area: area(space, a).1, pieces: (0..b % 8).map(|n| piece((d >> n) % 4)).collect() }
    }
}

impl Key {
    /// A key of the little world.
    #[must_use]
    pub fn from_draw(space: u16, draw: u16) -> Self {
        let (keyspace, firsts, partition) = keyspace(space);
        let bytes = key_bytes(draw);
        let match_value = keyspace.match_value(&bytes);
        let keyhash = keyspace.keyhash(&bytes) % KEYHASHES;
        let index = firsts.partition_point(|first| *first <= match_value.0) - 1;
        let partition = PartitionId(partition + u32::try_from(index).expect("few partitions"));
        let ordered = keyspace.is_ordered();
        Self { keyspace: keyspace.id, match_value, bytes, partition, ordered, keyhash }
    }
}

impl Scan {
    /// A whole partition.
    pub(super) fn whole(area: &Area) -> Self {
        let space = SPACES.iter().position(|space| space.id == area.keyspace.0);
        let space = space.and_then(|space| u16::try_from(space).ok());
        Self {
            keyspace: keyspace(space.expect("every area is of one of them")).0,
            partition: area.partition,
            first: area.first,
            last: area.last,
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            reverse: false,
            visits: usize::MAX,
        }
    }

    fn from_draw([what, space, a, b, c, d]: Draw) -> Self {
        let (keyspace, area) = area(space, space / 8);
        let whole = Self::whole(&area);
        let piece = |draw| keyspace.match_value(&key_bytes(draw)).clamp(whole.first, whole.last);
        let (first, last) =
            if a % 2 == 0 { (whole.first, whole.last) } else { (piece(b), piece(c)) };
        let bound = |kind: u16, draw: u16| match kind % 3 {
            0 => Bound::Unbounded,
            1 => Bound::Included(key_bytes(draw)),
            _ => Bound::Excluded(key_bytes(draw)),
        };
        Self {
            first,
            last,
            start: bound(a / 2, b),
            end: bound(a / 6, c),
            reverse: (what / 16) % 2 == 1,
            visits: visits(d),
            ..whole
        }
    }
}

/// All keyspaces of the little world.
pub fn keyspaces() -> impl Iterator<Item = Keyspace> {
    (0..).take(SPACES.len()).map(|space| keyspace(space).0)
}

/// All partitions of the little world.
pub(super) fn areas() -> impl Iterator<Item = Area> {
    (0..).zip(&SPACES).flat_map(|(space, Space { firsts, .. })| {
        (0..PARTITIONS).take(firsts.len()).map(move |index| area(space, index).1)
    })
}

/// A partition of this keyspace.
fn area(space: u16, index: u16) -> (Keyspace, Area) {
    let (keyspace, firsts, partition) = keyspace(space);
    let index = usize::from(index) % firsts.len();
    let area = Area {
        keyspace: keyspace.id,
        partition: PartitionId(partition + u32::try_from(index).expect("few partitions")),
        ordered: keyspace.is_ordered(),
        first: Match(firsts.get(index).copied().expect("an index below the length")),
        last: Match(firsts.get(index + 1).map_or(u128::MAX, |next| next - 1)),
    };
    (keyspace, area)
}

fn keyspace(space: u16) -> (Keyspace, &'static [u128], u32) {
    let index = usize::from(space) % SPACES.len();
    let Space { id, prefix, firsts } = SPACES.get(index).expect("an index below the length");
    let before: usize = SPACES.iter().take(index).map(|space| space.firsts.len()).sum();
    let kind = match prefix {
        Some(prefix) => KeyspaceKind::Range { prefix: prefix.to_vec() },
        None => KeyspaceKind::Hash,
    };
    let (id, name) = (KeyspaceId(*id), format!("k{id}"));
    let keyspace =
        Keyspace { id, name, kind, seed: 7, replicas: 1, hot: HotPolicy::default(), content: None };
    (keyspace, firsts, 1 + u32::try_from(before).expect("few partitions"))
}

/// Short keys over an alphabet of extremes, with and without a prefix, half of them with one tag,
/// some of them alike in the first sixteen bytes, and one as long as keys get.
fn key_bytes(draw: u16) -> Vec<u8> {
    let mut rest = draw;
    let mut next = |choices: u16| {
        let choice = rest % choices;
        rest /= choices;
        choice
    };
    let mut key = Vec::new();
    let letters = next(4);
    if next(3) != 2 {
        key.push(b'k');
    }
    if next(2) == 1 {
        key.extend(b"{t}");
    }
    if next(4) == 3 {
        key.extend([b'm'; 16]);
    }
    key.extend((0..letters).map(|_| if next(2) == 0 { 0 } else { 0xff }));
    if next(16) == 15 {
        key.resize(wire::KEY_MAX, b'z');
    }
    key
}

fn value(draw: u16) -> Vec<u8> {
    let sizes = [0, 1, 8, 9, 100, wire::ENTRY_MAX];
    let size = sizes.get(usize::from(draw) % sizes.len()).copied().unwrap_or(0);
    vec![draw.to_le_bytes()[0]; size]
}

fn note_name(draw: u16) -> Vec<u8> {
    let letters = [0, b'n', 0xff];
    (0..draw % 3).filter_map(|i| letters.get(usize::from(draw / 3 + i) % 3).copied()).collect()
}

fn visits(draw: u16) -> usize {
    if draw % 3 == 2 { usize::from(draw % 7) + 1 } else { usize::MAX }
}
