//! A switch and its nodes as `spec/protocol.md` describes them, in one place and in the plainest
//! way: a sorted map, split into partitions, that answers every request with as many replies as
//! the protocol allows, at the whim of a seed.

use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Match};
use machine::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use wire::{
    Body, Code, Entry, GetReplyBody, Header, KeyReply, Op, Packet, RangeCountBody, RangeEntryBody,
    RangeInterval, Version, flag, hop_flag,
};

/// What the fake cluster may do to make a client's life hard; each is a chance in 100.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whims {
    /// Stop a piece after a few records.
    pub(crate) stop: u64,
    /// Answer a piece, or a key, with an ask-again code.
    pub(crate) again: u64,
    /// Move the partitions' borders before a request is routed.
    pub(crate) resplit: u64,
}

/// The fake cluster.
pub(crate) struct Cluster {
    pub(crate) keyspace: Keyspace,
    /// Values; `None` is a deleted key that a scan may show as a hole.
    pub(crate) data: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What came of each write, by its number.
    pub(crate) written: BTreeMap<u64, (Code, Version)>,
    /// The last match value of every partition.
    pub(crate) borders: BTreeSet<Match>,
    whims: Whims,
    rng: Rng,
}

pub(crate) fn range_keyspace(prefix: &[u8]) -> Keyspace {
    let kind = KeyspaceKind::Range { prefix: prefix.to_vec() };
    Keyspace {
        id: KeyspaceId(1),
        name: "range".into(),
        kind,
        seed: 7,
        replicas: 1,
        hot: HotPolicy::default(),
        content: None,
    }
}

/// Whether the value of a key is counted among those that go by themselves.
pub(crate) fn goes_some_day(key: &[u8]) -> bool {
    key.last().is_some_and(|last| last % 2 == 1)
}

impl Cluster {
    pub(crate) fn new(keyspace: Keyspace, partitions: usize, whims: Whims, rng: Rng) -> Self {
        let data = BTreeMap::new();
        let (written, borders) = (BTreeMap::new(), BTreeSet::new());
        let mut cluster = Self { keyspace, data, written, borders, whims, rng };
        cluster.split(partitions);
        cluster
    }

    /// Splits anew, near keys that are there, or anywhere.
    pub(crate) fn split(&mut self, partitions: usize) {
        self.borders = BTreeSet::from([Match::MAX]);
        let keys: Vec<Match> = self.data.keys().map(|key| self.keyspace.match_value(key)).collect();
        while self.borders.len() < partitions {
            let random = u128::from(self.rng.next_u64()) << 64 | u128::from(self.rng.next_u64());
            let near = keys.get(self.rng.below(keys.len() as u64) as usize);
            let at = near.filter(|_| self.rng.chance(3, 4)).map_or(random, |key| key.0);
            self.borders.insert(Match(at.saturating_add(u128::from(self.rng.below(3)))));
        }
    }

    fn partition_last(&self, at: Match) -> Match {
        *self.borders.range(at..).next().expect("the last border is the last match value")
    }

    fn partition_first(&self, at: Match) -> Match {
        self.borders.range(..at).next_back().map_or(Match::MIN, |last| Match(last.0 + 1))
    }

    /// What comes back for a request, in the order of sending.
    pub(crate) fn answer(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        if self.rng.chance(self.whims.resplit, 100) {
            let partitions = 1 + self.rng.below(40) as usize;
            self.split(partitions);
        }
        let packet = Packet::parse(datagram).expect("clients send sound packets");
        let header = Header::read(packet.header());
        assert!(header.seq >= 1 && u64::from(header.lag) < header.seq, "lag {}", header.lag);
        match packet.body().expect("clients send sound bodies") {
            Body::Range { limit, start, end } => self.answer_range(&header, limit, start, end),
            Body::Mget(keys) => {
                let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.key.to_vec()).collect();
                self.answer_multiget(&header, &keys)
            }
            Body::Get { key } => vec![self.read(&header, key)],
            Body::Put { key, value, .. } => self.write(&header, key, Some(value)),
            Body::Del { key } => self.write(&header, key, None),
            other => panic!("the fake cluster does not know {other:?}"),
        }
    }

    /// Algorithm 1 of TurboKV, then a node for each piece.
    fn answer_range(
        &mut self,
        header: &Header,
        limit: u32,
        start: &[u8],
        end: &[u8],
    ) -> Vec<Vec<u8>> {
        let reverse = header.flags & flag::REVERSE != 0;
        let RangeInterval { first, last } = RangeInterval::of(header);
        let (mut first, mut last) = (Match(first), Match(last));
        assert!(first <= last && header.count >= 1);
        self.check_bounds(header, start, end);
        let mut replies = Vec::new();
        for left in (0..header.count.min(wire::RANGE_PIECES_MAX as u8)).rev() {
            let (from, to) = if reverse {
                (self.partition_first(last).max(first), last)
            } else {
                (first, self.partition_last(first).min(last))
            };
            let whole = if reverse { from == first } else { to == last };
            let cut = left == 0 && !whole;
            replies.push(self.answer_piece(header, (from, to), cut, (limit, start, end)));
            if whole {
                break;
            }
            if reverse {
                last = Match(from.0 - 1);
            } else {
                first = Match(to.0 + 1);
            }
        }
        replies
    }

    /// A node may expect that bounds and match values fit together.
    fn check_bounds(&self, header: &Header, start: &[u8], end: &[u8]) {
        if header.flags & flag::START_OPEN == 0 {
            assert!(self.keyspace.match_value(start).0 <= header.match_value);
        }
        if header.flags & flag::END_OPEN == 0 {
            assert!(self.keyspace.match_value(end).0 >= RangeInterval::of(header).last);
        }
    }

    fn answer_piece(
        &mut self,
        header: &Header,
        (from, to): (Match, Match),
        cut: bool,
        (limit, start, end): (u32, &[u8], &[u8]),
    ) -> Vec<u8> {
        let mut reply = Header {
            op: Op::RangeReply as u8,
            flags: 0,
            key_len: 0,
            hop_flags: header.hop_flags | if cut { hop_flag::CUT } else { 0 },
            ..*header
        };
        RangeInterval { first: from.0, last: to.0 }.put(&mut reply);
        let mut out = Vec::new();
        if self.rng.chance(self.whims.again, 100) {
            reply.code = self.ask_again() as u8;
            reply.count = 0;
            wire::emit(&mut out, &reply, &[]);
            return out;
        }
        let bound = |key, open, exclusive| match (header.flags & open, header.flags & exclusive) {
            (0, 0) => Bound::Included(key),
            (0, _) => Bound::Excluded(key),
            _ => Bound::Unbounded,
        };
        let bounds = (
            bound(start, flag::START_OPEN, flag::START_EXCLUSIVE),
            bound(end, flag::END_OPEN, flag::END_EXCLUSIVE),
        );
        let reverse = header.flags & flag::REVERSE != 0;
        let inside = |key: &Vec<u8>| {
            let at = self.keyspace.match_value(key);
            from <= at && at <= to
        };
        let found =
            in_order(&self.data, bounds, reverse).into_iter().filter(|(key, _)| inside(key));
        let stop = if self.rng.chance(self.whims.stop, 100) { 1 + self.rng.below(4) } else { 99 };
        let mut payload = Vec::new();
        let (mut count, mut values) = (0u8, 0u32);
        for (key, value) in found {
            let len = 21 + key.len() + value.as_ref().map_or(0, Vec::len);
            let full = wire::HEADER_LEN + payload.len() + len > wire::PACKET_MAX;
            if count > 0 && (full || u64::from(count) >= stop || values >= limit) {
                reply.flags |= flag::PARTIAL;
                break;
            }
            let entry = value.as_deref().map(|value| Entry {
                version: Version::new(3),
                expiry_ms: 0,
                now_ms: 0,
                value,
            });
            // A deleted key may be passed over, or be shown as a hole.
            if entry.is_none() && self.rng.chance(1, 2) {
                continue;
            }
            wire::push_range_entry(&mut payload, &key, entry.as_ref());
            values += u32::from(entry.is_some());
            count += 1;
        }
        if header.flags & flag::COUNT_ONLY != 0 {
            return self.count(&reply, &payload, count);
        }
        reply.count = count;
        wire::emit(&mut out, &reply, &[&payload]);
        out
    }

    /// How many of the entries have values, and a hole at the last if it went no further.
    fn count(&mut self, reply: &Header, entries: &[u8], count: u8) -> Vec<u8> {
        let (mut counted, mut rest, mut last) = (RangeCountBody::default(), entries, &[][..]);
        while let Some((fixed, after)) = RangeEntryBody::split(rest) {
            counted.keys += u64::from(fixed.kind == 0);
            let (key, after) = after.split_at(usize::from(fixed.key_len));
            counted.expiring += u64::from(fixed.kind == 0 && goes_some_day(key));
            (last, rest) = (key, after.split_at(usize::from(fixed.value_len)).1);
        }
        let mut payload = counted.to_bytes().to_vec();
        let partial = reply.flags & flag::PARTIAL != 0;
        assert!(!partial || count > 0, "a partial piece has an entry");
        if partial {
            wire::push_range_entry(&mut payload, last, None);
        }
        let flags = reply.flags | flag::COUNT_ONLY;
        let reply = Header { flags, count: u8::from(partial), ..*reply };
        let mut out = Vec::new();
        wire::emit(&mut out, &reply, &[&payload]);
        out
    }

    fn read(&self, header: &Header, key: &[u8]) -> Vec<u8> {
        let value = self.data.get(key).and_then(Option::as_deref);
        let code = if value.is_some() { Code::Ok } else { Code::NotFound };
        let (op, code) = (Op::GetReply as u8, code as u8);
        let mut reply = Header { op, code, flags: 0, key_len: 0, ..*header };
        KeyReply { version: Version::new(3) }.put(&mut reply);
        let fixed = GetReplyBody { expiry_ms: 0, now_ms: 0 }.to_bytes();
        let mut out = Vec::new();
        match value {
            Some(value) => wire::emit(&mut out, &reply, &[&fixed, value]),
            None => wire::emit(&mut out, &reply, &[]),
        };
        out
    }

    /// A write is carried out once, however often it comes, and answered the same each time.
    fn write(&mut self, header: &Header, key: &[u8], value: Option<&[u8]>) -> Vec<Vec<u8>> {
        let op = if value.is_some() { Op::PutReply } else { Op::DelReply };
        let mut reply = Header { op: op as u8, flags: 0, key_len: 0, ..*header };
        let known = self.written.get(&header.seq).copied();
        let (code, version) = match known {
            Some((code, version)) => (code as u8, version),
            None if self.rng.chance(self.whims.again, 100) => {
                (self.ask_again() as u8, Version::NONE)
            }
            None => {
                let before = self.data.insert(key.to_vec(), value.map(<[u8]>::to_vec)).flatten();
                let missing = before.is_none() && value.is_none();
                let code = if missing { Code::NotFound } else { Code::Ok };
                let version = Version::new(self.written.len() as u64 + 1);
                self.written.insert(header.seq, (code, version));
                (code as u8, version)
            }
        };
        reply.code = code;
        KeyReply { version }.put(&mut reply);
        let mut out = Vec::new();
        wire::emit(&mut out, &reply, &[]);
        vec![out]
    }

    fn answer_multiget(&mut self, header: &Header, keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut nodes: BTreeMap<Match, Vec<u8>> = BTreeMap::new();
        for (index, key) in keys.iter().enumerate() {
            if header.bitmap & (1 << index) != 0 {
                let node = self.partition_last(self.keyspace.match_value(key));
                nodes.entry(node).or_default().push(index as u8);
            }
        }
        nodes.values().flat_map(|indexes| self.answer_keys(header, keys, indexes)).collect()
    }

    /// One node: every key in exactly one reply, as many to a reply as fit or as it likes.
    fn answer_keys(&mut self, header: &Header, keys: &[Vec<u8>], mine: &[u8]) -> Vec<Vec<u8>> {
        let mut reply = Header { op: Op::MgetReply as u8, key_len: 0, bitmap: 0, ..*header };
        let mut replies = Vec::new();
        let mut payload = Vec::new();
        for index in mine {
            let value = keys.get(usize::from(*index)).and_then(|key| self.data.get(key)?.clone());
            let again = self.rng.chance(self.whims.again, 100);
            let (code, value) = match value {
                _ if again => (self.ask_again(), Vec::new()),
                Some(value) => (Code::Ok, value),
                None => (Code::NotFound, Vec::new()),
            };
            let full = wire::HEADER_LEN + payload.len() + 20 + value.len() > wire::PACKET_MAX;
            if full || self.rng.chance(self.whims.stop, 100) {
                let mut out = Vec::new();
                wire::emit(&mut out, &reply, &[&payload]);
                replies.push(out);
                reply.bitmap = 0;
                payload.clear();
            }
            let entry = Entry { version: Version::new(3), expiry_ms: 0, now_ms: 0, value: &value };
            wire::push_mget_entry(&mut payload, *index, code as u8, &entry);
            reply.bitmap |= 1 << index;
        }
        let mut out = Vec::new();
        wire::emit(&mut out, &reply, &[&payload]);
        replies.push(out);
        replies
    }

    fn ask_again(&mut self) -> Code {
        let codes = [Code::StaleEpoch, Code::NotOwner, Code::Overloaded, Code::NotServing];
        let pick = self.rng.below(codes.len() as u64) as usize;
        *codes.get(pick).expect("below their number")
    }
}

/// What a map holds between two bounds; nothing between bounds that have crossed.
pub(crate) fn in_order<V: Clone>(
    data: &BTreeMap<Vec<u8>, V>,
    (start, end): (Bound<&[u8]>, Bound<&[u8]>),
    reverse: bool,
) -> Vec<(Vec<u8>, V)> {
    let after_start = |key: &[u8]| match start {
        Bound::Included(start) => key >= start,
        Bound::Excluded(start) => key > start,
        Bound::Unbounded => true,
    };
    let before_end = |key: &[u8]| match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    };
    let inside = data.iter().filter(|(key, _)| after_start(key) && before_end(key));
    let mut found: Vec<(Vec<u8>, V)> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
    if reverse {
        found.reverse();
    }
    found
}
