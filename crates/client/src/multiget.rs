//! Multigets: keys dealt to datagrams, answers put together on the union of the bitmaps.

use crate::{MULTIGET_KEYS_MAX, Outcome, Refusal, StartError, UnknownReason, Value, encode};
use cluster::Keyspace;
use machine::Instant;
use std::collections::VecDeque;
use wire::{Code, DATAGRAM_MAX, HEADER_LEN, Header, MGET_KEYS_MAX, MgetEntries, MgetKey, Op};

/// A multiget of any number of keys.
#[derive(Debug)]
pub(crate) struct Multiget {
    /// One for each key; unknown until it is answered.
    outcomes: Vec<Outcome<Option<Value>>>,
    /// Datagrams that have not been numbered yet.
    pub(crate) queue: VecDeque<(Part, Vec<u8>)>,
    /// Sequence numbers that wait for an answer.
    pub(crate) in_flight: Vec<u64>,
    /// Given up at this time unless there is progress.
    pub(crate) deadline: Instant,
}

/// The keys of one datagram: which they are, and which have no answer yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Index of its first key among all.
    first: usize,
    /// Bit i stands for key `first + i`.
    pub(crate) missing: u32,
}

/// What one reply changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answered {
    /// Keys that are decided now and were not before.
    pub(crate) decided: u32,
    /// Keys that are to be asked for again.
    pub(crate) again: u32,
    /// Those of them whose copy was no good, or that the switch does not know the newest of yet.
    pub(crate) not_here: u32,
    /// Whether a node said overloaded.
    pub(crate) overloaded: bool,
}

impl Multiget {
    /// Deals the keys to datagrams.
    pub(crate) fn new(
        keyspace: &Keyspace,
        client: u64,
        keys: &[&[u8]],
        deadline: Instant,
    ) -> Result<Self, StartError> {
        let count = keys.len();
        if count > MULTIGET_KEYS_MAX {
            return Err(StartError::TooManyKeys { count });
        }
        for key in keys {
            encode::check_key(key)?;
        }
        let mut queue = VecDeque::new();
        let mut rest = keys;
        while !rest.is_empty() {
            let (these, others) = rest.split_at(fitting(rest));
            let slots: Vec<MgetKey<'_>> = these
                .iter()
                .map(|key| MgetKey {
                    match_value: keyspace.match_value(key).0,
                    keyhash: keyspace.keyhash(key),
                    key,
                })
                .collect();
            let missing = u32::MAX >> (u32::BITS as usize - slots.len());
            let keyspace = keyspace.id.0;
            let header = Header {
                op: Op::Mget as u8,
                keyspace,
                client,
                bitmap: missing,
                ..Header::default()
            };
            let mut datagram = Vec::new();
            wire::emit_mget(&mut datagram, &header, slots.iter().copied());
            queue.push_back((Part { first: count - rest.len(), missing }, datagram));
            rest = others;
        }
        let outcomes = vec![Outcome::Unknown(UnknownReason::NoAnswer); count];
        Ok(Self { outcomes, queue, in_flight: Vec::new(), deadline })
    }

    /// Takes the entries of a reply. A key that has its answer keeps it.
    pub(crate) fn take(&mut self, part: &mut Part, entries: &MgetEntries<'_>) -> Answered {
        let mut answered = Answered::default();
        for (index, code, entry) in entries.iter() {
            let bit = 1u32.checked_shl(index.into()).unwrap_or_default() & part.missing;
            let slot = self.outcomes.get_mut(part.first + usize::from(index));
            let (true, Some(slot)) = (bit != 0, slot) else { continue };
            *slot = match Code::from_wire(code) {
                Some(Code::Ok) => Outcome::Done(Some(entry.into())),
                Some(Code::NotFound) => Outcome::Done(None),
                Some(code) if code.is_ask_again() => {
                    answered.again |= bit;
                    answered.not_here |= if code == Code::NotHere { bit } else { 0 };
                    answered.overloaded |= code == Code::Overloaded;
                    continue;
                }
                // A code that no read can have is as good as no answer.
                Some(code) => match Refusal::from_code(code) {
                    Some(refusal) => Outcome::Refused(refusal),
                    None => continue,
                },
                None => continue,
            };
            part.missing &= !bit;
            answered.decided |= bit;
        }
        answered
    }

    /// A node refused these keys altogether.
    pub(crate) fn refuse(&mut self, part: &mut Part, bitmap: u32, refusal: Refusal) -> Answered {
        let decided = part.missing & bitmap;
        part.missing &= !decided;
        let slots = self.outcomes.iter_mut().skip(part.first).take(MGET_KEYS_MAX);
        for (index, slot) in slots.enumerate() {
            if decided & (1 << index) != 0 {
                *slot = Outcome::Refused(refusal);
            }
        }
        Answered { decided, ..Answered::default() }
    }

    /// Whether every key has its answer.
    pub(crate) fn is_complete(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    pub(crate) fn finish(self) -> Vec<Outcome<Option<Value>>> {
        self.outcomes
    }
}

/// How many of these keys go into one datagram; at least one does.
fn fitting(keys: &[&[u8]]) -> usize {
    let mut len = HEADER_LEN;
    let fits = |key: &&&[u8]| {
        len += wire::mget_len(std::iter::once(key.len()));
        len <= DATAGRAM_MAX
    };
    keys.iter().take(MGET_KEYS_MAX).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{KeyspaceId, KeyspaceKind};

    #[test]
    fn keys_are_dealt_to_datagrams_that_hold_them() {
        let keyspace = Keyspace {
            id: KeyspaceId(1),
            name: "k".into(),
            kind: KeyspaceKind::Hash,
            seed: 1,
            replicas: 1,
            hot: cluster::HotPolicy::default(),
        };
        let long = [7; wire::KEY_MAX];
        let mut keys: Vec<&[u8]> = vec![b"k"; 40];
        keys.extend([&long[..]; 3]);
        let multiget = Multiget::new(&keyspace, 1, &keys, Instant::default()).unwrap();
        let counts: Vec<u32> =
            multiget.queue.iter().map(|(part, _)| part.missing.count_ones()).collect();
        assert_eq!(counts, [32, 9, 1, 1]);
        assert!(multiget.queue.iter().all(|(_, bytes)| bytes.len() <= DATAGRAM_MAX));
    }
}
