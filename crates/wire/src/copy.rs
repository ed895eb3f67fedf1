//! What a tail sends to a learner: the records and sessions of a partition, as they stand.

use crate::layout::{
    CopyDelegationsBody, CopyEndBody, CopyEndedBody, CopyRecordBody, CopyRegistrationBody,
    CopySessionBody, ENTRY_MAX, FILL_MAX, HEADER_LEN, KEY_MAX,
};
use crate::number::{Generation, Version};
use alloc::vec::Vec;

/// One entry of a CHAIN_COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEntry<'a> {
    /// The committed state of a key.
    Record {
        /// The key.
        key: &'a [u8],
        /// Version of the write that made it.
        version: Version,
        /// Of a value: absolute expiry in Unix milliseconds, 0 for never. Of a tombstone: when it
        /// may be collected.
        expiry_ms: u64,
        /// Whether the key is deleted; `value` is empty then.
        tombstone: bool,
        /// The bytes.
        value: &'a [u8],
    },
    /// The outcome of one write.
    Session(CopySessionBody),
    /// A client that has said goodbye.
    Ended(CopyEndedBody),
    /// The registration of a hot key.
    Registration {
        /// The key.
        key: &'a [u8],
        /// Its generation in the coherence directory.
        generation: Generation,
    },
    /// The delegations of a key.
    Delegations {
        /// The key.
        key: &'a [u8],
        /// As nodes keep them on record.
        delegations: &'a [u8],
    },
    /// All has been copied.
    End(CopyEndBody),
}

/// The entries of a CHAIN_COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyEntries<'a> {
    entries: &'a [u8],
}

const VALUE: u8 = 0;
const TOMBSTONE: u8 = 1;
const SESSION: u8 = 2;
const END: u8 = 3;
const MARK: u8 = 4;
const DELEGATIONS: u8 = 5;
const ENDED: u8 = 6;

impl<'a> CopyEntries<'a> {
    pub(crate) fn parse(payload: &'a [u8]) -> Option<Self> {
        let mut rest = payload;
        while !rest.is_empty() {
            (_, rest) = CopyEntry::split(rest)?;
        }
        Some(Self { entries: payload })
    }

    /// The entries, in the order they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = CopyEntry<'a>> + use<'a> {
        let mut rest = self.entries;
        core::iter::from_fn(move || {
            let (entry, after) = CopyEntry::split(rest)?;
            rest = after;
            Some(entry)
        })
    }
}

impl<'a> CopyEntry<'a> {
    fn split(from: &'a [u8]) -> Option<(Self, &'a [u8])> {
        match *from.first()? {
            VALUE | TOMBSTONE => {
                let (fixed, rest) = CopyRecordBody::split(from)?;
                let (key, rest) = rest.split_at_checked(fixed.key_len.into())?;
                let (value, rest) = rest.split_at_checked(fixed.value_len.into())?;
                let tombstone = fixed.kind == TOMBSTONE;
                let whole =
                    (1..=KEY_MAX).contains(&key.len()) && key.len() + value.len() <= ENTRY_MAX;
                if !whole || (tombstone && !value.is_empty()) {
                    return None;
                }
                let CopyRecordBody { version, expiry_ms, .. } = fixed;
                Some((Self::Record { key, version, expiry_ms, tombstone, value }, rest))
            }
            SESSION => {
                let (fixed, rest) = CopySessionBody::split(from)?;
                Some((Self::Session(fixed), rest))
            }
            ENDED => {
                let (fixed, rest) = CopyEndedBody::split(from)?;
                Some((Self::Ended(fixed), rest))
            }
            MARK => {
                let (CopyRegistrationBody { generation, key_len, .. }, rest) =
                    CopyRegistrationBody::split(from)?;
                let (key, rest) = rest.split_at_checked(key_len.into())?;
                let whole = (1..=KEY_MAX).contains(&key.len());
                whole.then_some((Self::Registration { key, generation }, rest))
            }
            DELEGATIONS => {
                let (fixed, rest) = CopyDelegationsBody::split(from)?;
                let (key, rest) = rest.split_at_checked(fixed.key_len.into())?;
                let (delegations, rest) = rest.split_at_checked(fixed.delegations_len.into())?;
                let whole = (1..=KEY_MAX).contains(&key.len());
                whole.then_some((Self::Delegations { key, delegations }, rest))
            }
            END => {
                let (fixed, rest) = CopyEndBody::split(from)?;
                Some((Self::End(fixed), rest))
            }
            _ => None,
        }
    }

    /// Appends this entry to the payload of a CHAIN_COPY, if a datagram has room for it; says
    /// whether it did. An empty payload has room for any entry.
    pub fn push(&self, payload: &mut Vec<u8>) -> bool {
        let before = payload.len();
        match *self {
            Self::Record { key, version, expiry_ms, tombstone, value } => {
                let kind = if tombstone { TOMBSTONE } else { VALUE };
                let (Ok(key_len), Ok(value_len)) = (key.len().try_into(), value.len().try_into())
                else {
                    return false;
                };
                let fixed = CopyRecordBody { kind, version, expiry_ms, key_len, value_len };
                payload.extend_from_slice(&fixed.to_bytes());
                payload.extend_from_slice(key);
                payload.extend_from_slice(value);
            }
            Self::Session(fixed) => {
                payload.extend_from_slice(&CopySessionBody { kind: SESSION, ..fixed }.to_bytes());
            }
            Self::Ended(fixed) => {
                payload.extend_from_slice(&CopyEndedBody { kind: ENDED, ..fixed }.to_bytes());
            }
            Self::Registration { key, generation } => {
                let Ok(key_len) = key.len().try_into() else { return false };
                let fixed = CopyRegistrationBody { kind: MARK, generation, key_len };
                payload.extend_from_slice(&fixed.to_bytes());
                payload.extend_from_slice(key);
            }
            Self::Delegations { key, delegations } => {
                let (Ok(key_len), Ok(delegations_len)) =
                    (key.len().try_into(), delegations.len().try_into())
                else {
                    return false;
                };
                let fixed = CopyDelegationsBody { kind: DELEGATIONS, key_len, delegations_len };
                payload.extend_from_slice(&fixed.to_bytes());
                payload.extend_from_slice(key);
                payload.extend_from_slice(delegations);
            }
            Self::End(fixed) => {
                payload.extend_from_slice(&CopyEndBody { kind: END, ..fixed }.to_bytes());
            }
        }
        let fits = payload.len() <= FILL_MAX - HEADER_LEN;
        if !fits {
            payload.truncate(before);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were_pushed() {
        let record = |tombstone, value| CopyEntry::Record {
            key: b"key",
            version: Version::new(7),
            expiry_ms: 9,
            tombstone,
            value,
        };
        let session = CopySessionBody {
            kind: SESSION,
            origin: 2,
            code: 0,
            client: 11,
            seq: 12,
            floor: 10,
            version: Version::new(7),
            result: crate::ChainResult::new(5),
        };
        let end = CopyEndBody {
            kind: END,
            last_version: Version::new(9),
            stable: Version::new(8),
            collected: Version::new(3),
            forgotten: Version::new(2),
        };
        let entries = [
            record(false, b"value"),
            record(true, b""),
            CopyEntry::Session(session),
            CopyEntry::Ended(CopyEndedBody { kind: ENDED, client: 13, newest: Version::new(6) }),
            CopyEntry::Registration { key: b"hot", generation: Generation::new(6) },
            CopyEntry::Delegations { key: b"hot", delegations: b"one and two" },
            CopyEntry::End(end),
        ];
        let mut payload = Vec::new();
        assert!(entries.iter().all(|entry| entry.push(&mut payload)));
        let parsed = CopyEntries::parse(&payload).expect("well formed");
        assert_eq!(parsed.iter().collect::<Vec<_>>(), entries);
        for cut in 1..payload.len() {
            if let Some(parsed) = CopyEntries::parse(&payload[..cut]) {
                assert!(parsed.iter().count() < entries.len());
            }
        }
    }

    #[test]
    fn a_datagram_has_room_for_the_largest_entry_and_an_end() {
        let value = [0; ENTRY_MAX - 1];
        let largest = CopyEntry::Record {
            key: b"k",
            version: Version::new(1),
            expiry_ms: 0,
            tombstone: false,
            value: &value,
        };
        let mut payload = Vec::new();
        assert!(largest.push(&mut payload));
        let before = payload.len();
        assert!(!largest.push(&mut payload));
        assert_eq!(payload.len(), before);
    }
}
