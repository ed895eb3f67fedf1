//! The two tags of an envelope, and cookies.

use crate::keys::Key;
use siphasher::sip::{SipHasher13, SipHasher24};
use std::hash::Hasher as _;
use wire::{END_TO_END_AT, Endpoint, Fields as _, HEADER_LEN, MgetSlotBody, Op};

/// Bytes of an envelope before its tags.
pub(crate) const HEAD_LEN: usize = 8;

/// Where what no switch writes begins in a reply: at the field `match`, behind all that is about
/// the way.
const REPLY_END_AT: usize = 60;

/// The edge tag: says who sent a datagram. It covers the envelope's first bytes, the end tag, the
/// cookie (0 if there is none), and of the packet whatever switches look at: the header, and the
/// slots of an MGET. Of what is between a switch and a cache it covers all.
///
/// What is the same in many packets comes first, so that a program can keep how far it was with it:
/// the envelope's first bytes and the cookie under one key, and the slots in all parts of an MGET.
#[must_use]
pub fn edge_tag(key: Key, head: [u8; HEAD_LEN], end: u64, cookie: u64, packet: &[u8]) -> u64 {
    let covered = packet.get(..edge_len(packet)).unwrap_or(packet);
    let mut hasher = SipHasher13::new_with_key(&key.0);
    if let Ok(header) = covered.try_into() {
        return hasher.hash(&in_one_piece(head, cookie, end, header));
    }
    let (header, behind) = covered.split_at_checked(HEADER_LEN).unwrap_or((covered, &[]));
    hasher.write(&head);
    hasher.write(&cookie.to_be_bytes());
    hasher.write(behind);
    hasher.write(&end.to_be_bytes());
    hasher.write(header);
    hasher.finish()
}

/// The end tag: says who wrote a packet. It covers what no switch writes: in a request the
/// end-to-end part, in a reply what is from `match` on, in both the payload behind the slots of an
/// MGET.
#[must_use]
pub fn end_tag(key: Key, packet: &[u8]) -> u64 {
    let is_reply = op_of(packet).is_some_and(Op::is_reply);
    let from = if is_reply { REPLY_END_AT } else { END_TO_END_AT };
    let mut hasher = SipHasher24::new_with_key(&key.0);
    let slots = slots_len(packet);
    if slots == 0 {
        return hasher.hash(packet.get(from..).unwrap_or_default());
    }
    let (header, payload) = packet.split_at_checked(HEADER_LEN).unwrap_or((packet, &[]));
    hasher.write(header.get(from..).unwrap_or_default());
    hasher.write(payload.get(slots..).unwrap_or_default());
    hasher.finish()
}

/// Whether a packet of this operation has no end tag: switches write or read all of it, and have no
/// keys for that.
#[must_use]
pub const fn is_under_edge_alone(op: Op) -> bool {
    matches!(op, Op::CacheRules | Op::CacheRuled)
}

/// What the edge tag covers of a packet without slots. The hasher is faster with one piece than
/// with several.
fn in_one_piece(
    head: [u8; HEAD_LEN],
    cookie: u64,
    end: u64,
    header: &[u8; HEADER_LEN],
) -> [u8; HEAD_LEN + 2 * size_of::<u64>() + HEADER_LEN] {
    let mut piece = [0; _];
    let mut rest = &mut piece[..];
    for part in [&head[..], &cookie.to_be_bytes(), &end.to_be_bytes(), header] {
        let place = rest.split_off_mut(..part.len()).unwrap_or_default();
        place.copy_from_slice(part);
    }
    piece
}

fn edge_len(packet: &[u8]) -> usize {
    if op_of(packet).is_some_and(is_under_edge_alone) {
        packet.len()
    } else {
        HEADER_LEN + slots_len(packet)
    }
}

/// Bytes of the slots of an MGET; 0 in other packets.
fn slots_len(packet: &[u8]) -> usize {
    match packet.first_chunk::<HEADER_LEN>() {
        Some(header) if header.op() == Op::Mget as u8 => {
            usize::from(header.count()) * MgetSlotBody::LEN
        }
        _ => 0,
    }
}

pub(crate) fn op_of(packet: &[u8]) -> Option<Op> {
    packet.first_chunk::<HEADER_LEN>().and_then(|header| Op::from_wire(header.op()))
}

/// What makes cookies.
#[derive(Clone, Copy, Debug)]
pub struct CookieKey(pub Key);

impl CookieKey {
    /// What a client at this address is sent, to show that it receives. Never 0.
    #[must_use]
    pub fn cookie(&self, client: Endpoint) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0.0);
        let mut words = [0; 24];
        let (addr, port) = words.split_at_mut(16);
        addr.copy_from_slice(&client.addr);
        if let Some(place) = port.first_chunk_mut() {
            *place = client.port.to_be_bytes();
        }
        hasher.write(&words);
        hasher.finish().max(1)
    }
}
