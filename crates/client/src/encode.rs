//! Requests as datagrams. Sequence number and `lag` are filled in when a copy is sent.

use crate::interval::{Edge, Interval};
use crate::scan::Shows;
use crate::{Change, Condition, Expiry, Request, StartError, Step};
use cluster::Keyspace;
use std::borrow::Cow;
use std::time::Duration;
use wire::big::EXPIRY_BIG;
use wire::expiry::TIME_MAX;
use wire::{
    BATCH_BYTES_MAX, BATCH_STEPS_MAX, CasBody, ENTRY_MAX, Expect, FILL_MAX, HEADER_LEN, Header,
    IncrBody, KEY_MAX, NAME_MAX, New, Op, PartKey, PutBody, RANGE_PIECES_MAX, RangeBody,
    RangeInterval, SinceBody, Version, flag,
};

/// Appends the datagram of a request for one key.
pub(crate) fn single(
    out: &mut Vec<u8>,
    client: u64,
    keyspace: &Keyspace,
    request: &Request<'_>,
) -> Result<Op, StartError> {
    let header = |op: Op, key: &[u8], flags: u8| Header {
        op: op as u8,
        flags,
        keyspace: keyspace.id.0,
        key_len: short(key.len()),
        client,
        match_value: keyspace.match_value(key).0,
        keyhash: keyspace.keyhash(key),
        ..Header::default()
    };
    let op = match *request {
        Request::Get { key } => {
            check_key(key)?;
            wire::emit(out, &header(Op::Get, key, 0), &[key]);
            Op::Get
        }
        Request::Put { key, value, expiry } => {
            check_entry(key, value)?;
            let is_part = PartKey::parse(key).is_some();
            let (expiry_ms, flags) = if is_part { (EXPIRY_BIG, 0) } else { expiry_field(expiry) };
            let fixed = PutBody { expiry_ms }.to_bytes();
            wire::emit(out, &header(Op::Put, key, flags), &[&fixed, key, value]);
            Op::Put
        }
        Request::Del { key } => {
            check_key(key)?;
            wire::emit(out, &header(Op::Del, key, 0), &[key]);
            Op::Del
        }
        Request::Cas { key, expect, new, expiry } => {
            if expect == Expect::Version(Version::NONE) && !matches!(new, New::Value(_)) {
                return Err(StartError::NothingExpected);
            }
            let (what, value) = new_fields(new);
            check_entry(key, value)?;
            let (expiry_ms, keep) = expiry_field(expiry);
            let (by_value, fixed, expected) = cas_fields((key, expect, value), expiry_ms)?;
            let parts = [&fixed.to_bytes()[..], key, expected, value];
            wire::emit(out, &header(Op::Cas, key, keep | by_value | what), &parts);
            Op::Cas
        }
        Request::Incr { key, delta } => {
            check_key(key)?;
            let fixed = IncrBody { delta: delta.cast_unsigned() }.to_bytes();
            wire::emit(out, &header(Op::Incr, key, 0), &[&fixed, key]);
            Op::Incr
        }
        Request::Batch { steps } => {
            wire::emit(out, &header(Op::Batch, check_batch(steps)?, 0), &[&payload_of(steps)]);
            Op::Batch
        }
        Request::Seal { key, manifest, expect, expiry } => {
            check_key(key)?;
            let (expiry_ms, keep) = expiry_field(expiry);
            let seal = Seal { key, value: &manifest.to_bytes(), expiry_ms: expiry_ms | EXPIRY_BIG };
            seal.emit(out, expect, |op, flags| header(op, key, keep | flags))?
        }
        _ => unreachable!("aggregates are split first"),
    };
    Ok(op)
}

/// The write of a manifest.
struct Seal<'a> {
    key: &'a [u8],
    value: &'a [u8],
    expiry_ms: u64,
}

impl Seal<'_> {
    fn emit(
        &self,
        out: &mut Vec<u8>,
        expect: Option<Expect<'_>>,
        header: impl Fn(Op, u8) -> Header,
    ) -> Result<Op, StartError> {
        let Self { key, value, expiry_ms } = *self;
        let Some(expect) = expect else {
            let fixed = PutBody { expiry_ms }.to_bytes();
            wire::emit(out, &header(Op::Put, 0), &[&fixed, key, value]);
            return Ok(Op::Put);
        };
        let (flags, fixed, expected) = cas_fields((key, expect, value), expiry_ms)?;
        let parts = [&fixed.to_bytes()[..], key, expected, value];
        wire::emit(out, &header(Op::Cas, flags), &parts);
        Ok(Op::Cas)
    }
}

/// The flag, fixed fields and bytes that say what a compare-and-set expects.
fn cas_fields<'a>(
    (key, expect, value): (&[u8], Expect<'a>, &[u8]),
    expiry_ms: u64,
) -> Result<(u8, CasBody, &'a [u8]), StartError> {
    let (by_value, expect_version, expected) = match expect {
        Expect::Version(version) => (0, version, &[][..]),
        Expect::Value(expected) => (flag::CAS_VALUE, Version::NONE, expected),
    };
    // Every write needs room to say since when its client is known.
    let fields = HEADER_LEN + CasBody::LEN + SinceBody::LEN;
    let len = fields + key.len() + expected.len() + value.len();
    if len > FILL_MAX {
        return Err(StartError::CasTooLarge { len });
    }
    let fixed = CasBody { expiry_ms, expect_version, expect_len: short(expected.len()) };
    Ok((by_value, fixed, expected))
}

/// The flags and bytes that say what a compare-and-set leaves.
fn new_fields(new: New<'_>) -> (u8, &[u8]) {
    match new {
        New::Value(value) => (0, value),
        New::Same => (flag::CAS_KEEP_VALUE, &[]),
        New::Nothing => (flag::CAS_DELETE, &[]),
    }
}

/// Appends a DESCRIBE.
pub(crate) fn describe(out: &mut Vec<u8>, client: u64, name: &str) -> Result<(), StartError> {
    let len = name.len();
    if !(1..=NAME_MAX).contains(&len) {
        return Err(StartError::BadName { len });
    }
    let header =
        Header { op: Op::Describe as u8, key_len: short(len), client, ..Header::default() };
    wire::emit(out, &header, &[name.as_bytes()]);
    Ok(())
}

/// How the switch and the nodes are to take a RANGE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeTerms {
    pub(crate) reverse: bool,
    pub(crate) shows: Shows,
    /// Most entries wanted from a piece.
    pub(crate) limit: u32,
    /// Most pieces wanted.
    pub(crate) pieces: u8,
}

/// Every piece that a switch makes of one RANGE.
pub(crate) const PIECES_ALL: u8 = {
    assert!(RANGE_PIECES_MAX <= u8::MAX as usize);
    RANGE_PIECES_MAX as u8
};

/// Appends the RANGE that asks for an interval.
///
/// Two long bounds do not fit one datagram. The one that the scan advances from stays exact, or it
/// would answer what is known already; the far one is shortened so that the interval only grows,
/// and what lies outside is left out when the answer comes.
pub(crate) fn range(
    out: &mut Vec<u8>,
    client: u64,
    keyspace: &Keyspace,
    interval: &Interval,
    terms: RangeTerms,
) {
    let room = FILL_MAX - HEADER_LEN - RangeBody::LEN;
    let len = |edge: &Option<Edge>| edge.as_ref().map_or(0, |e| e.key.len());
    let (mut start_room, mut end_room) = (room, room);
    if terms.reverse {
        start_room = room - len(&interval.end);
    } else {
        end_room = room - len(&interval.start);
    }
    // What a beginning of a key says of its order holds only where keys are in order.
    let says = |edge: &&Edge, room| keyspace.is_ordered() || edge.key.len() <= room;
    let start = interval.start.as_ref().filter(|edge| says(edge, start_room));
    let end = interval.end.as_ref().filter(|edge| says(edge, end_room));
    let (start, start_flags) = start_bound(start, start_room);
    let (end, end_flags) = end_bound(end, end_room);
    let reverse = if terms.reverse { flag::REVERSE } else { 0 };
    let shows = match terms.shows {
        Shows::Entries => 0,
        Shows::Keys => flag::KEYS_ONLY,
        Shows::Count => flag::COUNT_ONLY,
    };
    let mut header = Header {
        op: Op::Range as u8,
        flags: reverse | shows | start_flags | end_flags,
        keyspace: keyspace.id.0,
        key_len: short(start.len()),
        client,
        count: terms.pieces,
        ..Header::default()
    };
    RangeInterval { first: interval.first.0, last: interval.last.0 }.put(&mut header);
    let fixed = RangeBody { limit: terms.limit }.to_bytes();
    wire::emit(out, &header, &[&fixed, start, &end]);
}

fn start_bound(edge: Option<&Edge>, room: usize) -> (&[u8], u8) {
    let Some(edge) = edge else { return (&[], flag::START_OPEN) };
    match edge.key.get(..room) {
        // Every key from here on is at or after what its beginning says.
        Some(beginning) if room < edge.key.len() => (beginning, 0),
        Some(_) | None if edge.inclusive => (&edge.key, 0),
        Some(_) | None => (&edge.key, flag::START_EXCLUSIVE),
    }
}

fn end_bound(edge: Option<&Edge>, room: usize) -> (Cow<'_, [u8]>, u8) {
    let Some(edge) = edge else { return (Cow::Borrowed(&[]), flag::END_OPEN) };
    match edge.key.get(..room) {
        Some(beginning) if room < edge.key.len() => match successor(beginning) {
            Some(after) => (Cow::Owned(after), flag::END_EXCLUSIVE),
            None => (Cow::Borrowed(&[]), flag::END_OPEN),
        },
        Some(_) | None if edge.inclusive => (Cow::Borrowed(&edge.key), 0),
        Some(_) | None => (Cow::Borrowed(&edge.key), flag::END_EXCLUSIVE),
    }
}

/// The least key after all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let (head, tail) = prefix.split_at(last);
    let mut after = head.to_vec();
    after.push(tail.first()? + 1);
    Some(after)
}

pub(crate) fn check_key(key: &[u8]) -> Result<(), StartError> {
    match key.len() {
        0 => Err(StartError::EmptyKey),
        1..=KEY_MAX => Ok(()),
        len => Err(StartError::KeyTooLong { len }),
    }
}

pub(crate) fn check_entry(key: &[u8], value: &[u8]) -> Result<(), StartError> {
    check_key(key)?;
    let (key_len, value_len) = (key.len(), value.len());
    if key_len + value_len > ENTRY_MAX {
        return Err(StartError::EntryTooLarge { key_len, value_len });
    }
    Ok(())
}

fn payload_of(steps: &[Step<'_>]) -> Vec<u8> {
    let mut payload = Vec::new();
    steps.iter().for_each(|step| wire::push_step(&mut payload, step));
    payload
}

/// The key that the header of a batch is about.
fn check_batch<'a>(steps: &[Step<'a>]) -> Result<&'a [u8], StartError> {
    for step in steps {
        match step.change {
            Change::Put { value, .. } => check_entry(step.key, value)?,
            Change::None | Change::Delete => check_key(step.key)?,
        }
    }
    let len = steps.iter().map(Step::encoded_len).sum();
    if steps.len() > BATCH_STEPS_MAX || len > BATCH_BYTES_MAX {
        return Err(StartError::BatchTooLarge { steps: steps.len(), len });
    }
    let mut rest = steps.iter();
    while let Some(step) = rest.next() {
        // No value has version 0: a node could not read it.
        let sound = step.condition != Condition::Version(Version::NONE);
        if !sound || rest.as_slice().iter().any(|other| other.key == step.key) {
            return Err(StartError::BadBatch);
        }
    }
    steps.first().map(|step| step.key).ok_or(StartError::BadBatch)
}

fn expiry_field(expiry: Expiry) -> (u64, u8) {
    match expiry {
        Expiry::Never => (0, 0),
        // 0 would mean never; the first millisecond of 1970 is past either way.
        Expiry::AtMs(at) => (at.clamp(1, TIME_MAX), 0),
        // Only the cluster knows what time it is.
        Expiry::In(after) => (span_of(after), 0),
        Expiry::Keep => (0, flag::KEEP_EXPIRY),
    }
}

/// The expiry of a step of a batch whose value is to live so long: see [`Change::Put`].
#[must_use]
pub fn span_of(after: Duration) -> u64 {
    wire::expiry::span(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
}

fn short(len: usize) -> u16 {
    u16::try_from(len).expect("checked against the limits of keys and datagrams")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_successor_comes_after_all_keys_with_the_prefix() {
        assert_eq!(successor(b"ab").unwrap(), b"ac");
        assert_eq!(successor(b"a\xff\xff").unwrap(), b"b");
        assert_eq!(successor(b"\xff\xff"), None);
    }

    proptest! {
        #[test]
        fn a_shortened_bound_lets_everything_through_that_the_bound_does(
            bound in proptest::collection::vec(250u8.., 1..12),
            key in proptest::collection::vec(250u8.., 1..12),
            inclusive in any::<bool>(),
            room in 1usize..12,
        ) {
            let edge = Edge::new(&bound, cluster::Match::MIN, inclusive);
            let (start, flags) = start_bound(Some(&edge), room);
            prop_assert!(start.len() <= room);
            if key > bound || (inclusive && key == bound) {
                let inside = if flags & flag::START_EXCLUSIVE != 0 {
                    key.as_slice() > start
                } else {
                    key.as_slice() >= start
                };
                prop_assert!(inside);
            }
            let (end, flags) = end_bound(Some(&edge), room);
            prop_assert!(end.len() <= room);
            if key < bound || (inclusive && key == bound) {
                let inside = flags & flag::END_OPEN != 0
                    || if flags & flag::END_EXCLUSIVE != 0 {
                        key.as_slice() < &*end
                    } else {
                        key.as_slice() <= &*end
                    };
                prop_assert!(inside);
            }
        }
    }
}
