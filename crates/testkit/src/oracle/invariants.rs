//! What holds of everything that a switch sends, whatever came in.

use super::model::Sent;
use cluster::SwitchTables;
use wire::{Endpoint, Fields, HEADER_LEN, HotMget, Op, Packet, RangeInterval, flag, hop_flag};

/// Checks all that leaves for one datagram; `drops` is how many drops were counted for it.
pub fn check(tables: &SwitchTables, from: Endpoint, came: &[u8], sent: &[Sent], drops: u64) {
    let Ok(request) = Packet::parse(came) else {
        assert!(sent.is_empty() && drops == 1, "what does not parse is dropped");
        return;
    };
    if request.op() == Op::CacheRules {
        let from_cache = tables.caches.iter().any(|cache| cache.owns(from));
        assert!(sent.iter().all(|(to, _)| from_cache && *to == from), "the cache itself is told");
        assert_eq!(sent.len() as u64 + drops, 1, "it is answered once, or dropped");
        return;
    }
    let from_node = tables.nodes.iter().any(|node| node.owns(from));
    for (to, bytes) in sent {
        let packet = Packet::parse(bytes).expect("what leaves parses");
        assert!(ends(bytes) == ends(came) && bytes[..3] == came[..3] && bytes[4..8] == came[4..8]);
        let tag_before = wire::tag_is_right(request.header(), request.payload());
        assert_eq!(wire::tag_is_right(packet.header(), packet.payload()), tag_before);
        if request.op().is_reply() {
            // But for what is told to clients.
            let to_client = !matches!(request.op(), Op::HotCopied | Op::HotPublish);
            let told = 52..if to_client { 60 } else { 52 };
            let mut before = came.to_vec();
            before[told.clone()].copy_from_slice(&bytes[told]);
            assert!(from_node && *bytes == before, "replies come from nodes and stay as they are");
        } else {
            assert!(!from_node && !request.op().is_chain());
            let mut nodes = tables.reachable();
            let mut caches = tables.caches.iter().filter(|_| request.op() == Op::Get);
            let known = nodes.any(|node| node.owns(*to)) || caches.any(|cache| cache.owns(*to));
            assert!(known, "requests go to nodes, and reads to caches as well");
            let client =
                Endpoint { addr: packet.header().reply_addr(), port: packet.header().reply_port() };
            assert_eq!(client, from);
        }
    }
    let pieces: Vec<&[u8; HEADER_LEN]> =
        sent.iter().map(|(_, bytes)| bytes.first_chunk().unwrap()).collect();
    match request.op() {
        Op::Mget => bitmaps_partition(request.header(), &pieces, drops),
        Op::Range => pieces_tile(request.header(), &pieces, drops),
        _ => assert_eq!(sent.len() as u64 + drops, 1, "one in, one out or dropped"),
    }
}

/// What no switch may change: all from the end-to-end part on, but match values of an MGET whose
/// keys are in its `hot_bitmap`.
fn ends(datagram: &[u8]) -> [Vec<u8>; 2] {
    let (header, payload) = datagram.split_at(HEADER_LEN);
    let mut payload = payload.to_vec();
    if header[wire::END_TO_END_AT] == Op::Mget as u8 {
        let keys = usize::from(header[HEADER_LEN - 1].min(32));
        payload.chunks_mut(24).take(keys).for_each(|slot| {
            let len = slot.len().min(16);
            slot[..len].fill(0);
        });
    }
    [header[wire::END_TO_END_AT..].to_vec(), payload]
}

fn bitmaps_partition(request: &[u8; HEADER_LEN], pieces: &[&[u8; HEADER_LEN]], drops: u64) {
    let mut seen = 0;
    for piece in pieces {
        assert!(piece.bitmap() != 0 && seen & piece.bitmap() == 0, "each key in one copy");
        seen |= piece.bitmap();
        assert_eq!(HotMget::read(piece).hot & !piece.bitmap(), 0, "hot are some of its keys");
    }
    assert_eq!(seen & !request.bitmap(), 0, "no key that was not asked for");
    if !pieces.is_empty() {
        let keys = request.bitmap() & (u32::MAX >> (32 - u32::from(request.count())));
        assert_eq!(u64::from((keys & !seen).count_ones()), drops, "every key sent or counted");
    }
    assert!(!pieces.is_empty() || drops > 0, "nothing vanishes");
}

fn pieces_tile(request: &[u8; HEADER_LEN], pieces: &[&[u8; HEADER_LEN]], drops: u64) {
    let RangeInterval { first, last } = RangeInterval::read(request);
    let reverse = request.flags() & flag::REVERSE != 0;
    let (mut low, mut high) = (Some(first), Some(last));
    for (number, piece) in pieces.iter().enumerate() {
        let RangeInterval { first: a, last: b } = RangeInterval::read(piece);
        assert!(first <= a && a <= b && b <= last, "pieces lie inside");
        if reverse {
            let at = high.expect("interval left");
            assert!(if drops == 0 { b == at } else { b <= at }, "in order, without overlap");
            high = a.checked_sub(1).filter(|high| *high >= first);
        } else {
            let at = low.expect("interval left");
            assert!(if drops == 0 { a == at } else { a >= at }, "in order, without overlap");
            low = b.checked_add(1).filter(|low| *low <= last);
        }
        let left = if reverse { high } else { low }.is_some();
        let final_piece = number + 1 == pieces.len();
        let cut = piece.hop_flags() & hop_flag::CUT != 0;
        assert!(!cut || (final_piece && left), "CUT only where the interval goes on");
        assert!(!final_piece || drops > 0 || left == cut, "published, or said not to be");
    }
    assert!(pieces.len() <= usize::from(request.count().min(32)));
    assert!(!pieces.is_empty() || drops > 0, "nothing vanishes");
}
