//! A datagram that passed the checks of every target, and the way to make one.

use crate::body::{Body, Entry, MgetKey};
use crate::layout::{
    CHAIN_MAX, Code, DropReason, Fields, HEADER_LEN, Header, KEY_MAX, MAGIC, MgetEntryBody,
    MgetSlotBody, Op, PACKET_MAX, RangeEntryBody, VERSION,
};
use crate::number::Version;
use crate::since::without_since;
use alloc::vec::Vec;

/// A datagram whose header is sound: every length in it holds, every code is known.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    op: Op,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Makes the checks that a switch makes. Bounded work: it looks at the header only.
    ///
    /// # Errors
    ///
    /// The reason under which the receiver counts and drops the datagram.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DropReason> {
        let (header, payload) =
            datagram.split_first_chunk::<HEADER_LEN>().ok_or(DropReason::Truncated)?;
        if header.magic() != MAGIC {
            return Err(DropReason::NotOurs);
        }
        if header.version() != VERSION {
            return Err(DropReason::BadVersion);
        }
        let op = Op::from_wire(header.op()).ok_or(DropReason::BadOp)?;
        let payload_len = usize::from(header.payload_len());
        let key_len = usize::from(header.key_len());
        let lengths_hold = payload_len == payload.len()
            && datagram.len() <= PACKET_MAX
            && key_len <= payload_len.min(KEY_MAX);
        if !lengths_hold {
            return Err(DropReason::BadLength);
        }
        let chain_len = header.chain_len();
        if usize::from(chain_len) > CHAIN_MAX || header.chain_pos() >= chain_len.max(1) {
            return Err(DropReason::BadChain);
        }
        Ok(Self { header, op, payload })
    }

    /// What the packet asks for or answers.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The header, for its [`Fields`].
    #[must_use]
    pub fn header(&self) -> &'a [u8; HEADER_LEN] {
        self.header
    }

    /// Everything after the header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Ids of the stamped chain, head first.
    pub fn chain(&self) -> impl ExactSizeIterator<Item = u16> + use<> {
        chain_of(self.header.chain(), self.header.chain_len())
    }

    /// Of a PUT with the hop flag GRANTED: ids of the nodes beside the chain that it is copied
    /// to.
    pub fn readers(&self) -> impl Iterator<Item = u16> + use<> {
        readers_in(self.header.chain(), self.header.chain_len())
    }

    /// The payload as its operation means it, once the tag is right.
    ///
    /// # Errors
    ///
    /// [`DropReason::BadTag`] or [`DropReason::BadBody`].
    pub fn body(&self) -> Result<Body<'a>, DropReason> {
        if !crate::tag_is_right(self.header, self.payload) {
            return Err(DropReason::BadTag);
        }
        let payload = without_since(self.op, self.header, self.payload);
        payload.and_then(|it| Body::parse(self.op, self.header, it)).ok_or(DropReason::BadBody)
    }
}

impl Op {
    /// Whether this travels from a node through the switch to whoever it answers: mostly a client.
    #[must_use]
    pub const fn is_reply(self) -> bool {
        self as u8 & 0x80 != 0
    }

    /// Whether this travels from node to node.
    #[must_use]
    pub const fn is_chain(self) -> bool {
        self as u8 & 0xc0 == 0x40
    }

    /// Whether this travels between a cache and those who lend to it or send it reads.
    #[must_use]
    pub const fn is_of_caches(self) -> bool {
        self as u8 >= Self::CacheFetch as u8 && self as u8 <= Self::CacheRuled as u8
    }

    /// Whether this changes a key and therefore enters at the head of its chain.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Put | Self::Del | Self::Cas | Self::Incr | Self::Batch)
    }

    /// Whether this request enters at the head of a chain, and not at the tail.
    #[must_use]
    pub const fn is_for_head(self) -> bool {
        self.is_write() || matches!(self, Self::Goodbye)
    }

    /// Whether this is a request of a client that waits for an answer.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        !self.is_chain() && self as u8 != self.reply() as u8
    }

    /// The operation that answers this request; a reply or a chain message is its own.
    #[must_use]
    pub const fn reply(self) -> Self {
        match self {
            Self::Get => Self::GetReply,
            Self::Put => Self::PutReply,
            Self::Del => Self::DelReply,
            Self::Cas => Self::CasReply,
            Self::Incr => Self::IncrReply,
            Self::Mget => Self::MgetReply,
            Self::Range => Self::RangeReply,
            Self::Describe => Self::DescribeReply,
            Self::Batch => Self::BatchReply,
            Self::HotCopy => Self::HotCopied,
            other => other,
        }
    }
}

impl Code {
    /// Whether the request ended at a node that could decide it.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        Self::says_decided(self as u8)
    }

    /// Whether a byte in the place of a code says so, also if it is of a code that only newer nodes
    /// know.
    #[must_use]
    pub const fn says_decided(byte: u8) -> bool {
        byte < 16
    }

    /// Whether nothing was decided and the same request may be sent again.
    #[must_use]
    pub const fn is_ask_again(self) -> bool {
        matches!(self as u8, 16..32)
    }

    /// Whether the request is refused for good and had no effect: every node would say the same.
    #[must_use]
    pub const fn is_refused(self) -> bool {
        self as u8 >= 32
    }
}

impl Header {
    /// Stamps the ids of a chain, head first, and its length.
    ///
    /// # Panics
    ///
    /// If there are more than [`CHAIN_MAX`]: whoever makes chains keeps to it.
    pub fn set_chain(&mut self, ids: impl IntoIterator<Item = u16>) {
        (self.chain, self.chain_len) = chain_bytes(ids);
    }
}

/// Chain ids as the header holds them, and how many there are.
///
/// # Panics
///
/// If there are more than [`CHAIN_MAX`]: whoever makes chains keeps to it.
#[must_use]
pub fn chain_bytes(ids: impl IntoIterator<Item = u16>) -> ([u8; 2 * CHAIN_MAX], u8) {
    let mut bytes = [0; 2 * CHAIN_MAX];
    let mut places = bytes.chunks_exact_mut(2);
    let mut len = 0;
    for id in ids {
        let place = places.next().expect("a chain has at most CHAIN_MAX nodes");
        place.copy_from_slice(&id.to_be_bytes());
        len += 1;
    }
    (bytes, len)
}

/// Ids of the nodes beside the chain in the header of a write that goes by its grant.
pub fn readers_of(header: &Header) -> impl Iterator<Item = u16> + use<> {
    readers_in(header.chain, header.chain_len)
}

fn readers_in(ids: [u8; 2 * CHAIN_MAX], len: u8) -> impl Iterator<Item = u16> {
    let places =
        (len.into()..CHAIN_MAX).filter_map(move |i| ids.as_chunks::<2>().0.get(i).copied());
    places.map(u16::from_be_bytes).filter(|id| *id != NOBODY)
}

/// Node id that no node has: in the chain of a PUT with the hop flag GRANTED, a place for a
/// reader that there is none in.
pub const NOBODY: u16 = u16::MAX;

/// The ids that a header's `chain` names, of which so many are used: [`chain_bytes`] undone.
pub fn chain_of(ids: [u8; 2 * CHAIN_MAX], len: u8) -> impl ExactSizeIterator<Item = u16> {
    (0..usize::from(len)).map(move |i| {
        let at = |k: usize| ids.get(2 * i + k).copied().unwrap_or_default();
        u16::from_be_bytes([at(0), at(1)])
    })
}

/// The chain of a PUT with the hop flag GRANTED as the header holds it: its nodes, then those
/// that it is copied to, and [`NOBODY`] in the rest.
///
/// # Panics
///
/// If there are more than [`CHAIN_MAX`].
#[must_use]
pub fn delegated_chain(ids: impl IntoIterator<Item = u16>) -> [u8; 2 * CHAIN_MAX] {
    let nobody = core::iter::repeat(NOBODY);
    let (mut bytes, len) = chain_bytes(ids);
    let rest = bytes.as_chunks_mut::<2>().0.iter_mut().skip(len.into());
    rest.zip(nobody).for_each(|(place, id)| *place = id.to_be_bytes());
    bytes
}

/// Appends a whole datagram: header, then the parts of its payload. Fills in `payload_len`, the
/// interval of a RANGE is the caller's, and seals it. Gives the number of bytes appended.
///
/// # Panics
///
/// If the datagram would be longer than [`PACKET_MAX`]: whoever builds payloads keeps to it.
pub fn emit(out: &mut Vec<u8>, header: &Header, parts: &[&[u8]]) -> usize {
    let start = out.len();
    out.resize(start + HEADER_LEN, 0);
    for part in parts {
        out.extend_from_slice(part);
    }
    finish(out, start, header)
}

/// Appends a whole MGET datagram; `count` and `payload_len` are filled in.
///
/// # Panics
///
/// As [`emit`]; [`mget_len`] tells beforehand how long it will be.
pub fn emit_mget<'k>(
    out: &mut Vec<u8>,
    header: &Header,
    keys: impl Iterator<Item = MgetKey<'k>> + Clone,
) -> usize {
    let start = out.len();
    out.resize(start + HEADER_LEN, 0);
    let mut count = 0;
    for key in keys.clone() {
        let slot = MgetSlotBody { match_value: key.match_value, keyhash: key.keyhash };
        out.extend_from_slice(&slot.to_bytes());
        count += 1;
    }
    for key in keys.clone() {
        let len = u16::try_from(key.key.len()).expect("keys are at most KEY_MAX long");
        out.extend_from_slice(&len.to_be_bytes());
    }
    for key in keys {
        out.extend_from_slice(key.key);
    }
    finish(out, start, &Header { count, ..*header })
}

/// Bytes of payload that an MGET of keys with these lengths takes.
pub fn mget_len(key_lens: impl Iterator<Item = usize>) -> usize {
    key_lens.map(|len| MgetSlotBody::LEN + 2 + len).sum()
}

/// Appends one answered key to the payload of an MGET reply.
pub fn push_mget_entry(payload: &mut Vec<u8>, index: u8, code: u8, entry: &Entry<'_>) {
    let fixed = MgetEntryBody {
        index,
        code,
        version: entry.version,
        expiry_ms: entry.expiry_ms,
        value_len: short(entry.value),
    };
    payload.extend_from_slice(&fixed.to_bytes());
    payload.extend_from_slice(entry.value);
}

/// Appends one entry to the payload of a RANGE reply; without a value it is a hole.
pub fn push_range_entry(payload: &mut Vec<u8>, key: &[u8], entry: Option<&Entry<'_>>) {
    let value = entry.map_or(&[][..], |e| e.value);
    let fixed = RangeEntryBody {
        kind: u8::from(entry.is_none()),
        version: entry.map_or(Version::NONE, |e| e.version),
        expiry_ms: entry.map_or(0, |e| e.expiry_ms),
        key_len: short(key),
        value_len: short(value),
    };
    payload.extend_from_slice(&fixed.to_bytes());
    payload.extend_from_slice(key);
    payload.extend_from_slice(value);
}

fn short(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).expect("keys and values fit a datagram")
}

fn finish(out: &mut [u8], start: usize, header: &Header) -> usize {
    let (_, datagram) = out.split_at_mut(start);
    let len = datagram.len();
    assert!(len <= PACKET_MAX, "a datagram of {len} bytes is over PACKET_MAX");
    let payload_len = u16::try_from(len - HEADER_LEN).expect("PACKET_MAX fits 16 bits");
    let (bytes, _) = datagram.split_first_chunk_mut().expect("the header was resized in");
    Header { payload_len, ..*header }.write(bytes);
    crate::seal(datagram);
    len
}
