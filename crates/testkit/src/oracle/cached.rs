//! Which keys caches hold, as their rules say (`spec/protocol.md`, "Caches").

use super::model::Sent;
use cluster::{CacheShard, SwitchTables};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Body, CacheMessage, CacheRule, Endpoint, Header, Op, Packet};

/// The rules of all shards of caches, told a moment ago.
#[derive(Default)]
pub struct Cached {
    shards: BTreeMap<CacheShard, Told>,
}

/// What a shard has told in its present stream.
#[derive(Default)]
struct Told {
    stream: u64,
    /// Number of the first change that has not come.
    next: u64,
    /// Keys by keyspace and keyhash.
    keys: BTreeSet<(u16, u64)>,
}

impl Cached {
    /// A shard tells: what it is answered, or why not.
    pub fn change(
        &mut self,
        tables: &SwitchTables,
        from: Endpoint,
        datagram: &[u8],
    ) -> Result<Sent, &'static str> {
        let mut shards = tables
            .caches
            .iter()
            .filter_map(|cache| Some(CacheShard { cache: cache.id, shard: cache.shard_at(from)? }));
        let by = shards.next().ok_or("bad_op")?;
        let packet = Packet::parse(datagram).expect("parsed");
        let Ok(Body::Cache(CacheMessage::Rules(changes))) = packet.body() else {
            return Err("bad_body");
        };
        let Header { node, client: stream, seq, .. } = Header::read(packet.header());
        if node != by.cache.0 {
            return Err("not_from_member");
        }
        let told = self.shards.entry(by).or_default();
        if stream < told.stream {
            return Err("stale_request");
        }
        if stream > told.stream {
            *told = Told { stream, ..Told::default() };
        }
        for (number, CacheRule { adds, keyspace, keyhash, .. }) in (seq..).zip(changes.iter()) {
            if number == told.next {
                told.next += 1;
                let key = (keyspace, keyhash);
                let _ = if adds { told.keys.insert(key) } else { told.keys.remove(&key) };
            }
        }
        let answer = Header {
            op: Op::CacheRuled as u8,
            client: stream,
            seq: told.next,
            ..Header::default()
        };
        let mut bytes = Vec::new();
        wire::emit(&mut bytes, &answer, &[]);
        Ok((from, bytes))
    }

    /// Where the key of this read is cached.
    pub fn of(&self, tables: &SwitchTables, header: &Header) -> Option<Endpoint> {
        let key = (header.keyspace, header.keyhash);
        let (by, _) = self.shards.iter().find(|(_, told)| told.keys.contains(&key))?;
        tables.caches.iter().find(|cache| cache.id == by.cache)?.endpoint_of(by.shard)
    }
}
