//! Which keys a batch of packets is going to read, for an engine that has its values elsewhere: it
//! fetches all of them at once, where packets by themselves would make it fetch one by one.

use crate::engine::{Engine, KeyRef};
use crate::node::Node;
use crate::replica::Replica;
use crate::replica::lookup::Lookup;
use cluster::{KeyspaceId, Match, PartitionId};
use wire::{Body, Header, Packet, flag};

impl<E: Engine> Node<E> {
    /// Says what is about to be handed to [`handle_packet`](Self::handle_packet). Nothing rests on
    /// it: whatever is not announced is read all the same.
    pub fn announce<'a>(&mut self, datagrams: impl Iterator<Item = &'a [u8]>) {
        if !E::FETCHES {
            return;
        }
        let mut keys = Vec::new();
        let mut lookup = Lookup { replicas: &mut self.replicas, ranges: &self.ranges };
        for packet in datagrams.filter_map(|datagram| Packet::parse(datagram).ok()) {
            if let Ok(body) = packet.body() {
                find_keys(&mut lookup, &Header::read(packet.header()), body, &mut keys);
            }
        }
        if !keys.is_empty() {
            self.shard.engine.fetch_ahead(&keys);
        }
    }
}

/// The keys whose values a packet makes the node read.
fn find_keys<'a>(
    lookup: &mut Lookup<'_>,
    header: &Header,
    body: Body<'a>,
    keys: &mut Vec<KeyRef<'a>>,
) {
    let mut find = |replica: Option<&Replica>, header: &Header, key| {
        keys.extend(replica.map(|replica| replica.member.key_ref(header, key)));
    };
    match body {
        Body::Put { .. } if header.flags & flag::KEEP_EXPIRY == 0 => {}
        Body::Get { key }
        | Body::Put { key, .. }
        | Body::Del { key }
        | Body::Cas { key, .. }
        | Body::Incr { key, .. } => {
            find(lookup.replicas.get(&PartitionId(header.partition)), header, key);
        }
        Body::Mget(slots) => {
            let asked = (0u8..).zip(slots.iter());
            for (_, slot) in asked.filter(|(index, _)| header.bitmap & 1 << index != 0) {
                let (match_value, keyhash) = (slot.match_value, slot.keyhash);
                let tail = lookup.tail_of(KeyspaceId(header.keyspace), Match(match_value));
                find(tail.as_deref(), &Header { match_value, keyhash, ..*header }, slot.key);
            }
        }
        _ => {}
    }
}
