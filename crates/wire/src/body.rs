//! Payloads as their operations mean them. Only nodes and clients look this deep.

use crate::batch::Steps;
use crate::between::Found;
use crate::cache::CacheMessage;
use crate::chain::{chain_stable, parse_chain_write};
use crate::copy::CopyEntries;
use crate::durable::DurableVersions;
use crate::layout::{
    BatchReplyBody, CasBody, ChainMendBody, ChainVerifiedBody, ChainVerifyBody, ChainWriteBody,
    Code, DelegationFetchBody, DescribeReplyBody, ENTRY_MAX, Fields, GetReplyBody, HEADER_LEN,
    HotCopyBody, IncrBody, IncrReplyBody, KEY_MAX, MGET_KEYS_MAX, MgetEntryBody, MgetSlotBody, Op,
    PACKET_MAX, PutBody, RangeBody, RangeCountBody, RangeEntryBody, RecallBody, STORE_WORDS_MAX,
    flag,
};
use crate::messages::KeyReply;
use crate::number::{DelegationId, Version};

/// The payload of one packet. Everything in it has been checked against the payload's length;
/// keys are 1 to [`KEY_MAX`] bytes, key and value together at most [`ENTRY_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the bodies in `layout`")]
pub enum Body<'a> {
    Get {
        key: &'a [u8],
    },
    Put {
        expiry_ms: u64,
        key: &'a [u8],
        value: &'a [u8],
    },
    Del {
        key: &'a [u8],
    },
    Cas {
        expiry_ms: u64,
        key: &'a [u8],
        expect: Expect<'a>,
        new: New<'a>,
    },
    Incr {
        delta: i64,
        key: &'a [u8],
    },
    Mget(MgetKeys<'a>),
    Range {
        limit: u32,
        start: &'a [u8],
        end: &'a [u8],
    },
    Describe {
        name: &'a [u8],
    },
    Batch(Steps<'a>),
    Goodbye,
    /// Of a BATCH the key is that of its first step, and the value is all
    /// [`ChainSteps`](crate::ChainSteps).
    ChainWrite {
        fixed: ChainWriteBody,
        key: &'a [u8],
        value: &'a [u8],
    },
    ChainAck,
    ChainCommit,
    ChainStable {
        /// The sum over the versions committed up to that.
        history: u64,
    },
    ChainExpire {
        key: &'a [u8],
    },
    ChainCopy(CopyEntries<'a>),
    ChainCopied,
    ChainGoodbye,
    ChainDurable(DurableVersions<'a>),
    /// As for [`ChainWrite`](Self::ChainWrite).
    ChainOffer {
        fixed: ChainWriteBody,
        key: &'a [u8],
        value: &'a [u8],
    },
    ChainOffered,
    /// The key is empty only where a piece begins with the partition.
    ChainVerify {
        fixed: ChainVerifyBody,
        key: &'a [u8],
    },
    ChainVerified {
        fixed: ChainVerifiedBody,
        last: &'a [u8],
    },
    ChainMend {
        fixed: ChainMendBody,
        key: &'a [u8],
        value: &'a [u8],
    },
    HotCopy {
        /// Whether the key has no value; `value` is empty then.
        absent: bool,
        expiry_ms: u64,
        key: &'a [u8],
        value: &'a [u8],
    },
    DelegationFetch {
        fixed: DelegationFetchBody,
        key: &'a [u8],
    },
    DelegationFound {
        delegation: DelegationId,
        found: Found<'a>,
        key: &'a [u8],
    },
    DelegationEnd {
        delegation: DelegationId,
        key: &'a [u8],
    },
    DelegationCommit {
        delegation: DelegationId,
        key: &'a [u8],
    },
    DelegationWrite {
        /// Places of the chain, a bit for each, whose disks may not have it.
        unsynced: u8,
        key: &'a [u8],
        value: &'a [u8],
    },
    DelegationDurable {
        delegation: DelegationId,
        key: &'a [u8],
    },
    /// Between a cache and those who lend to it or send it reads.
    Cache(CacheMessage<'a>),
    HotCopied,
    HotPublish,
    GetReply(Entry<'a>),
    PutReply,
    DelReply,
    CasReply,
    IncrReply {
        result: i64,
    },
    MgetReply(MgetEntries<'a>),
    RangeReply(RangeEntries<'a>),
    DescribeReply {
        fixed: DescribeReplyBody,
        prefix: &'a [u8],
    },
    BatchReply {
        /// The first step whose condition did not hold; 0 if all did.
        step: u8,
    },
    /// A reply that decides nothing or refuses: its code is 16 or above, and it has no payload, but
    /// for the words of a store that refuses changes.
    Refusal(Code),
}

/// What a CAS must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect<'a> {
    /// This version; 0 means that there is no value.
    Version(Version),
    /// This value.
    Value(&'a [u8]),
}

/// What a CAS leaves where it finds what it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum New<'a> {
    /// This value.
    Value(&'a [u8]),
    /// The value that is there; only its expiry is new.
    Same,
    /// No value: the key is deleted.
    Nothing,
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for New<'a> {
    fn from(value: &'a T) -> Self {
        Self::Value(value.as_ref())
    }
}

/// A value and what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Version of the write that made it.
    pub version: Version,
    /// Absolute expiry in Unix milliseconds; 0 for never.
    pub expiry_ms: u64,
    /// What time it was in the cluster when a GET was answered; 0 where nobody says.
    pub now_ms: u64,
    /// The bytes.
    pub value: &'a [u8],
}

/// One key of an MGET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MgetKey<'a> {
    /// What the partition table matches on.
    pub match_value: u128,
    /// What the coherence directory matches on.
    pub keyhash: u64,
    /// The key.
    pub key: &'a [u8],
}

impl MgetKey<'_> {
    /// Of a slot that carries the directory's floor in place of the match value: that floor.
    #[must_use]
    pub fn floor(&self) -> Version {
        u64::try_from(self.match_value).map_or(Version::ABOVE_ALL, Version::new)
    }
}

impl<'a> Body<'a> {
    pub(crate) fn parse(op: Op, header: &[u8; HEADER_LEN], payload: &'a [u8]) -> Option<Self> {
        let key_len = usize::from(header.key_len());
        if op.is_reply() {
            let code = Code::from_wire(header.code())?;
            if !code.is_decided() {
                return refusal(code, payload);
            }
        }
        Some(match op {
            Op::Get => Self::Get { key: whole_key(payload, key_len)? },
            Op::Put => {
                let (fixed, rest) = PutBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::Put { expiry_ms: fixed.expiry_ms, key, value }
            }
            Op::Del => Self::Del { key: whole_key(payload, key_len)? },
            Op::Cas => Self::parse_cas(header, payload)?,
            Op::Incr => {
                let (fixed, rest) = IncrBody::split(payload)?;
                Self::Incr { delta: fixed.delta.cast_signed(), key: whole_key(rest, key_len)? }
            }
            Op::Mget => Self::Mget(MgetKeys::parse(usize::from(header.count()), payload)?),
            Op::Range => {
                let (fixed, rest) = RangeBody::split(payload)?;
                let (start, end) = rest.split_at_checked(key_len)?;
                if fixed.limit == 0 || end.len() > KEY_MAX {
                    return None;
                }
                Self::Range { limit: fixed.limit, start, end }
            }
            Op::Describe => Self::Describe { name: whole_key(payload, key_len)? },
            Op::Batch => Self::Batch(Steps::parse(key_len, payload)?),
            Op::ChainWrite => {
                let (fixed, key, value) = parse_chain_write(key_len, payload)?;
                Self::ChainWrite { fixed, key, value }
            }
            Op::ChainOffer => {
                let (fixed, key, value) = parse_chain_write(key_len, payload)?;
                Self::ChainOffer { fixed, key, value }
            }
            Op::ChainDurable => Self::ChainDurable(DurableVersions::parse(payload)?),
            Op::Goodbye
            | Op::ChainGoodbye
            | Op::ChainOffered
            | Op::ChainAck
            | Op::ChainCommit
            | Op::ChainCopied => payload.is_empty().then_some(bare(op)?)?,
            Op::ChainStable => Self::ChainStable { history: chain_stable(payload)? },
            Op::ChainExpire => Self::ChainExpire { key: whole_key(payload, key_len)? },
            Op::ChainCopy => Self::ChainCopy(CopyEntries::parse(payload)?),
            Op::ChainVerify | Op::ChainVerified | Op::ChainMend => {
                Self::parse_verify(op, key_len, payload)?
            }
            Op::HotCopy => {
                let (HotCopyBody { kind, expiry_ms }, rest) = HotCopyBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                let absent = kind == 1;
                if kind > 1 || (absent && !value.is_empty()) {
                    return None;
                }
                Self::HotCopy { absent, expiry_ms, key, value }
            }
            op if op.is_of_caches() => Self::Cache(CacheMessage::parse(op, header, payload)?),
            reply if reply.is_reply() => Self::parse_reply(reply, header, payload)?,
            other => Self::parse_delegation(other, key_len, payload)?,
        })
    }

    fn parse_reply(op: Op, header: &[u8; HEADER_LEN], payload: &'a [u8]) -> Option<Self> {
        Some(match op {
            Op::GetReply => {
                let (fixed, value) = GetReplyBody::split(payload)?;
                let KeyReply { version } = KeyReply::read(header);
                let GetReplyBody { expiry_ms, now_ms } = fixed;
                Self::GetReply(Entry { version, expiry_ms, now_ms, value })
            }
            Op::PutReply => payload.is_empty().then_some(Self::PutReply)?,
            Op::DelReply => payload.is_empty().then_some(Self::DelReply)?,
            Op::CasReply => payload.is_empty().then_some(Self::CasReply)?,
            Op::IncrReply => {
                let (fixed, rest) = IncrReplyBody::split(payload)?;
                let result = fixed.result.cast_signed();
                rest.is_empty().then_some(Self::IncrReply { result })?
            }
            Op::MgetReply => Self::MgetReply(MgetEntries::parse(header.bitmap(), payload)?),
            Op::RangeReply if header.flags() & flag::COUNT_ONLY != 0 => {
                let (counted, rest) = RangeCountBody::split(payload)?;
                let stop = RangeEntries::parse(header.count(), rest)?;
                let holes = stop.iter().all(|(_, entry)| entry.is_none());
                holes
                    .then_some(Self::RangeReply(RangeEntries { counted: Some(counted), ..stop }))?
            }
            Op::RangeReply => Self::RangeReply(RangeEntries::parse(header.count(), payload)?),
            Op::DescribeReply => {
                let (fixed, prefix) = DescribeReplyBody::split(payload)?;
                Self::DescribeReply { fixed, prefix }
            }
            Op::BatchReply => {
                let (BatchReplyBody { step }, rest) = BatchReplyBody::split(payload)?;
                rest.is_empty().then_some(Self::BatchReply { step })?
            }
            Op::HotCopied => payload.is_empty().then_some(Self::HotCopied)?,
            Op::HotPublish => payload.is_empty().then_some(Self::HotPublish)?,
            _ => return None,
        })
    }

    fn parse_cas(header: &[u8; HEADER_LEN], payload: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = CasBody::split(payload)?;
        let (key, rest) = rest.split_at_checked(usize::from(header.key_len()))?;
        let by_value = header.flags() & flag::CAS_VALUE != 0;
        let expect_len = if by_value { usize::from(fixed.expect_len) } else { 0 };
        let (expected, value) = rest.split_at_checked(expect_len)?;
        if key.is_empty() || key.len() + value.len() > ENTRY_MAX {
            return None;
        }
        let expect =
            if by_value { Expect::Value(expected) } else { Expect::Version(fixed.expect_version) };
        let new = match header.flags() & (flag::CAS_DELETE | flag::CAS_KEEP_VALUE) {
            0 => New::Value(value),
            // Only a value that is there can be deleted or kept.
            _ if !value.is_empty() || expect == Expect::Version(Version::NONE) => return None,
            flag::CAS_DELETE => New::Nothing,
            flag::CAS_KEEP_VALUE => New::Same,
            _ => return None,
        };
        Some(Self::Cas { expiry_ms: fixed.expiry_ms, key, expect, new })
    }
}

/// The body of an operation that has none.
fn bare<'a>(op: Op) -> Option<Body<'a>> {
    Some(match op {
        Op::Goodbye => Body::Goodbye,
        Op::ChainGoodbye => Body::ChainGoodbye,
        Op::ChainOffered => Body::ChainOffered,
        Op::ChainAck => Body::ChainAck,
        Op::ChainCommit => Body::ChainCommit,
        Op::ChainCopied => Body::ChainCopied,
        _ => return None,
    })
}

fn refusal<'a>(code: Code, words: &[u8]) -> Option<Body<'a>> {
    let words_max = if code == Code::StoreRefuses { STORE_WORDS_MAX } else { 0 };
    (words.len() <= words_max).then_some(Body::Refusal(code))
}

// A RECALL carries the largest value there may be, and its own words.
const _: () = {
    let largest = HEADER_LEN + ChainWriteBody::LEN + RecallBody::LEN + ENTRY_MAX;
    assert!(largest <= PACKET_MAX);
};

pub(crate) fn whole_key(payload: &[u8], key_len: usize) -> Option<&[u8]> {
    (key_len > 0 && payload.len() == key_len).then_some(payload)
}

pub(crate) fn key_and_value(rest: &[u8], key_len: usize) -> Option<(&[u8], &[u8])> {
    let (key, value) = rest.split_at_checked(key_len)?;
    (key_len > 0 && rest.len() <= ENTRY_MAX).then_some((key, value))
}

/// The keys of an MGET, in the order of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MgetKeys<'a> {
    slots: &'a [u8],
    lens: &'a [u8],
    keys: &'a [u8],
}

impl<'a> MgetKeys<'a> {
    fn parse(count: usize, payload: &'a [u8]) -> Option<Self> {
        if !(1..=MGET_KEYS_MAX).contains(&count) {
            return None;
        }
        let (slots, rest) = payload.split_at_checked(count * MgetSlotBody::LEN)?;
        let (lens, keys) = rest.split_at_checked(2 * count)?;
        let keys_of = Self { slots, lens, keys };
        let lens_hold = keys_of.lens().all(|len| (1..=KEY_MAX).contains(&len));
        (lens_hold && keys_of.lens().sum::<usize>() == keys.len()).then_some(keys_of)
    }

    fn lens(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.lens.as_chunks::<2>().0.iter().map(|len| usize::from(u16::from_be_bytes(*len)))
    }

    /// How many keys there are: 1 to [`MGET_KEYS_MAX`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len() / MgetSlotBody::LEN
    }

    /// The keys with what the switch matches on.
    pub fn iter(&self) -> impl Iterator<Item = MgetKey<'a>> + use<'a> {
        let mut keys = self.keys;
        let slots = self.slots.as_chunks::<{ MgetSlotBody::LEN }>().0.iter();
        slots.zip(self.lens()).map_while(move |(slot, len)| {
            let (key, rest) = keys.split_at_checked(len)?;
            keys = rest;
            let (slot, _) = MgetSlotBody::split(slot)?;
            Some(MgetKey { match_value: slot.match_value, keyhash: slot.keyhash, key })
        })
    }
}

/// The answered keys of an MGET reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MgetEntries<'a> {
    entries: &'a [u8],
}

impl<'a> MgetEntries<'a> {
    fn parse(bitmap: u32, payload: &'a [u8]) -> Option<Self> {
        let entries = Self { entries: payload };
        let mut seen = 0u32;
        let mut used = 0;
        for (index, _, entry) in entries.iter() {
            let bit = 1u32.checked_shl(index.into())?;
            if seen & bit != 0 {
                return None;
            }
            seen |= bit;
            used += MgetEntryBody::LEN + entry.value.len();
        }
        (seen == bitmap && used == payload.len()).then_some(entries)
    }

    /// Index in the request, outcome code byte, and the value found.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u8, Entry<'a>)> + use<'a> {
        let mut rest = self.entries;
        core::iter::from_fn(move || {
            let (fixed, after) = MgetEntryBody::split(rest)?;
            let (value, after) = after.split_at_checked(fixed.value_len.into())?;
            rest = after;
            let (version, expiry_ms) = (fixed.version, fixed.expiry_ms);
            let entry = Entry { version, expiry_ms, now_ms: 0, value };
            Some((fixed.index, fixed.code, entry))
        })
    }
}

/// The entries of a RANGE reply, in the order of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeEntries<'a> {
    entries: &'a [u8],
    counted: Option<RangeCountBody>,
}

impl<'a> RangeEntries<'a> {
    fn parse(count: u8, payload: &'a [u8]) -> Option<Self> {
        let entries = Self { entries: payload, counted: None };
        let mut used = 0;
        let mut found = 0;
        for (key, entry) in entries.iter() {
            used += RangeEntryBody::LEN + key.len() + entry.map_or(0, |e| e.value.len());
            found += 1;
        }
        (found == usize::from(count) && used == payload.len()).then_some(entries)
    }

    /// How many keys there are, if only that was asked for: there are holes only then.
    #[must_use]
    pub fn counted(&self) -> Option<RangeCountBody> {
        self.counted
    }

    /// Each key with its value; `None` where the scan came by a key that has none.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<Entry<'a>>)> + use<'a> {
        let mut rest = self.entries;
        core::iter::from_fn(move || {
            let (fixed, after) = RangeEntryBody::split(rest)?;
            let (key, after) = after.split_at_checked(fixed.key_len.into())?;
            let (value, after) = after.split_at_checked(fixed.value_len.into())?;
            let hole = fixed.kind == 1;
            if key.is_empty() || fixed.kind > 1 || (hole && !value.is_empty()) {
                return None;
            }
            rest = after;
            let (version, expiry_ms) = (fixed.version, fixed.expiry_ms);
            let entry = Entry { version, expiry_ms, now_ms: 0, value };
            Some((key, (!hole).then_some(entry)))
        })
    }
}
