//! What the map says about where requests go, and how they are stamped for it.

use cluster::{Epoch, KeyspaceId, Map, Match, NodeId, Partition, PartitionId, RangeTable, Span};
use machine::Outbox;
use std::collections::BTreeMap;
use wire::{
    CHAIN_MAX, Endpoint, Fields as _, HEADER_LEN, Op, RANGE_PIECES_MAX, RangeInterval, flag,
    hop_flag,
};

/// What one must know to send requests to the right nodes, or to say which those are.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Where answers go.
    reply_to: Endpoint,
    partitions: BTreeMap<KeyspaceId, RangeTable<PartitionRoute>>,
}

/// A node that answers reads of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tail {
    /// Of the shard that has the partition.
    pub(crate) endpoint: Endpoint,
    node: NodeId,
}

/// Who answers reads of a key, and in which partition it lies; `None` if nobody does.
pub(crate) type Home = Option<(Tail, PartitionId)>;

/// A partition as a switch knows it.
#[derive(Clone, Copy, Debug)]
struct PartitionRoute {
    partition: PartitionId,
    epoch: Epoch,
    head: Endpoint,
    tail: Tail,
    chain: [u8; 2 * CHAIN_MAX],
    chain_len: u8,
}

impl PartitionRoute {
    /// `None` if it has no chain of nodes that the map knows.
    fn of(partition: &Partition, map: &Map) -> Option<Self> {
        let endpoint = |id: NodeId| {
            let node = map.nodes.iter().find(|node| node.id == id)?;
            Some(node.endpoint_of(partition.id))
        };
        let tail = partition.tail()?;
        let (chain, chain_len) = wire::chain_bytes(partition.chain.iter().map(|id| id.0));
        Some(Self {
            partition: partition.id,
            epoch: partition.epoch,
            head: endpoint(partition.head()?)?,
            tail: Tail { endpoint: endpoint(tail)?, node: tail },
            chain,
            chain_len,
        })
    }

    fn stamp_partition(&self, header: &mut [u8; HEADER_LEN]) {
        header.set_partition(self.partition.0);
        header.set_epoch(self.epoch.0);
    }
}

impl Routes {
    /// What this map says, for one who receives at `reply_to`; where the switch is asked, answers
    /// come back that way, and this address is of no use.
    #[must_use]
    pub fn new(map: &Map, reply_to: Endpoint) -> Self {
        let mut rows: BTreeMap<KeyspaceId, Vec<(Match, Match, PartitionRoute)>> = BTreeMap::new();
        for partition in &map.partitions {
            let Some(place) = PartitionRoute::of(partition, map) else { continue };
            let of_keyspace = rows.entry(partition.keyspace).or_default();
            of_keyspace.push((partition.first, partition.last, place));
        }
        let partitions = rows.into_iter().map(|(id, rows)| (id, RangeTable::new(rows))).collect();
        Self { reply_to, partitions }
    }

    fn place(&self, keyspace: KeyspaceId, at: u128) -> Option<&PartitionRoute> {
        self.partitions.get(&keyspace)?.find(Match(at))
    }

    /// Who answers for this match value, if anybody does.
    pub(crate) fn tail(&self, keyspace: KeyspaceId, at: u128) -> Option<Tail> {
        self.place(keyspace, at).map(|place| place.tail)
    }

    /// The same, and for which partition.
    pub(crate) fn find(&self, keyspace: KeyspaceId, at: u128) -> Home {
        self.place(keyspace, at).map(|place| (place.tail, place.partition))
    }

    /// Whether a reply comes from a partition that these know, in the epoch in which they know it.
    pub(crate) fn agree_with(&self, reply: &[u8; HEADER_LEN]) -> bool {
        let place = self.place(KeyspaceId(reply.keyspace()), reply.match_value());
        place.is_some_and(|place| {
            (place.partition.0, place.epoch.0) == (reply.partition(), reply.epoch())
        })
    }

    /// Where answers go.
    pub(crate) fn reply_to(&self) -> Endpoint {
        self.reply_to
    }

    /// Stamps a request for one key, or an interval of keys, as a switch would, and sends it to the
    /// nodes that it is for; gives the number of datagrams. Without any, nobody has the keys.
    pub(crate) fn send(
        &self,
        op: Op,
        reply_to: Endpoint,
        datagram: &mut [u8],
        outbox: &mut Outbox,
    ) -> u64 {
        if op == Op::Range {
            return self.send_pieces(reply_to, datagram, outbox);
        }
        let Some(to) = self.stamp(op, reply_to, datagram) else { return 0 };
        wire::seal(datagram);
        outbox.push_copy(to, datagram);
        1
    }

    /// Stamps a request for one key as a switch would, which leaves its tag as it is; says where it
    /// goes. `None` if nobody has the key.
    pub fn stamp(&self, op: Op, reply_to: Endpoint, datagram: &mut [u8]) -> Option<Endpoint> {
        let header = header_of(datagram);
        let place = self.place(KeyspaceId(header.keyspace()), header.match_value())?;
        place.stamp_partition(header);
        if op.is_for_head() {
            header.set_chain(place.chain);
            header.set_chain_len(place.chain_len);
            stamp_direct(header, reply_to);
            return Some(place.head);
        }
        stamp_read(header, place.tail, reply_to);
        Some(place.tail.endpoint)
    }

    /// Sends each partition its piece of the interval, as many as are asked for.
    fn send_pieces(&self, reply_to: Endpoint, datagram: &mut [u8], outbox: &mut Outbox) -> u64 {
        let header = header_of(datagram);
        let whole = RangeInterval::read(header);
        let reverse = header.flags() & flag::REVERSE != 0;
        let pieces_max = u64::from(header.count()).min(RANGE_PIECES_MAX as u64);
        let Some(table) = self.partitions.get(&KeyspaceId(header.keyspace())) else { return 0 };
        let mut left = Some(Span { first: Match(whole.first), last: Match(whole.last) });
        let mut sent = 0;
        while let Some(span) = left.filter(|_| sent < pieces_max) {
            let Some((piece, rest, place)) = table.cut(span, reverse) else { break };
            (left, sent) = (rest, sent + 1);
            let header = header_of(datagram);
            RangeInterval { first: piece.first.0, last: piece.last.0 }.write(header);
            stamp_read(header, place.tail, reply_to);
            place.stamp_partition(header);
            if sent == pieces_max && left.is_some() {
                header.set_hop_flags(hop_flag::DIRECT | hop_flag::CUT);
            }
            wire::seal(datagram);
            outbox.push_copy(place.tail.endpoint, datagram);
        }
        whole.write(header_of(datagram));
        sent
    }
}

/// Stamps what the tail alone answers, but for the partition, which a multiget has none of.
pub(crate) fn stamp_read(header: &mut [u8; HEADER_LEN], tail: Tail, reply_to: Endpoint) {
    let (chain, chain_len) = wire::chain_bytes([tail.node.0]);
    header.set_chain(chain);
    header.set_chain_len(chain_len);
    stamp_direct(header, reply_to);
}

fn stamp_direct(header: &mut [u8; HEADER_LEN], reply_to: Endpoint) {
    header.set_hop_flags(hop_flag::DIRECT);
    header.set_reply_addr(reply_to.addr);
    header.set_reply_port(reply_to.port);
}

/// Says that nobody has stamped it: it goes to the content address of its key.
pub(crate) fn stamp_address(header: &mut [u8; HEADER_LEN]) {
    header.set_hop_flags(wire::CONTENT_HOP_FLAGS);
}

/// Takes off what was stamped: a switch stamps it anew.
pub(crate) fn unstamp(header: &mut [u8; HEADER_LEN]) {
    header.set_partition(0);
    header.set_epoch(0);
    header.set_chain([0; 2 * CHAIN_MAX]);
    header.set_chain_len(0);
    header.set_hop_flags(0);
    header.set_reply_addr([0; 16]);
    header.set_reply_port(0);
}

/// The header of a request.
pub(crate) fn header_of(datagram: &mut [u8]) -> &mut [u8; HEADER_LEN] {
    datagram.first_chunk_mut().expect("every request was emitted with a header")
}
