//! Caches: members that hold the hottest keys of keyspaces on slow stores, which the controller
//! tells addresses.
//!
//! No answer of a cache rests on the controller: what it may show, the nodes that lend to it say.

use crate::map::owns;
use crate::{CacheId, ClusterId, HotKey, KeyName, Keyspace, NodeId, NodeSpec, Resources, text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wire::{Endpoint, Revision};

/// A cache and where to reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheSpec {
    /// Its id.
    pub id: CacheId,
    /// Address of its first shard.
    #[serde(with = "text::endpoint")]
    pub endpoint: Endpoint,
    /// How many shards (one core each) it has, on consecutive ports; at least 1.
    pub shards: u16,
}

impl CacheSpec {
    /// The shard whose datagrams come from `source`, if they come from this cache.
    #[must_use]
    pub fn shard_at(&self, source: Endpoint) -> Option<u16> {
        self.owns(source).then(|| source.port - self.endpoint.port)
    }

    /// The shard that nodes tell of this key, which has nothing to do with any other. The upper
    /// half of the hash decides: the switch goes by the lower.
    #[must_use]
    pub fn shard_of(&self, keyhash: u64) -> u16 {
        cache_shard_of(keyhash, self.shards)
    }

    /// Where a shard takes datagrams, if there is one of this number.
    #[must_use]
    pub fn endpoint_of(&self, shard: u16) -> Option<Endpoint> {
        self.endpoint.with_port_offset(shard).filter(|_| shard < self.shards)
    }

    /// Whether datagrams from `source` come from this cache.
    #[must_use]
    pub fn owns(&self, source: Endpoint) -> bool {
        owns(self.endpoint, self.shards, source)
    }
}

/// The shard of so many that nodes tell of a key.
#[must_use]
pub fn cache_shard_of(keyhash: u64, shards: u16) -> u16 {
    let part = (keyhash >> 32).checked_rem(shards.into()).unwrap_or(0);
    u16::try_from(part).expect("less than a number of shards")
}

/// A shard of a cache. To the switch, and to those who lend to it, it is a cache of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheShard {
    /// The cache.
    pub cache: CacheId,
    /// Which of its shards, from 0.
    pub shard: u16,
}

/// The cache that a node tells of its hottest keys: each node has one, and caches have about as
/// many nodes each. It follows from the map alone, so that both sides know.
#[must_use]
pub fn cache_of(caches: &[CacheSpec], node: NodeId) -> Option<&CacheSpec> {
    let place = usize::from(node.0).checked_rem(caches.len())?;
    caches.get(place)
}

/// Shards of a cache at most: more than the cores of any machine.
pub const CACHE_SHARDS_MAX: u16 = 256;

/// Whether no two caches, and no cache and node, are one member or have a port in common; why not
/// otherwise.
pub(crate) fn check_caches(nodes: &[NodeSpec], caches: &[CacheSpec]) -> Result<(), String> {
    let most = wire::CACHES_MAX;
    if caches.len() > most {
        return Err(format!("over {most} caches"));
    }
    let mut ids = BTreeSet::new();
    let mut taken: Vec<(Endpoint, u16)> = nodes.iter().map(|it| (it.endpoint, it.shards)).collect();
    for cache in caches {
        let CacheSpec { id, endpoint, shards } = *cache;
        if !ids.insert(id) {
            return Err(format!("cache {id} is there twice"));
        }
        if usize::from(id.0) >= most {
            return Err(format!("cache {id}: ids of caches are 0 to {}", most - 1));
        }
        if shards > CACHE_SHARDS_MAX {
            return Err(format!("cache {id}: over {CACHE_SHARDS_MAX} shards"));
        }
        if !endpoint.is_set() {
            return Err(format!("cache {id} has no port"));
        }
        if shards.checked_sub(1).and_then(|n| endpoint.with_port_offset(n)).is_none() {
            return Err(format!(
                "cache {id}: {shards} shards from {endpoint} do not fit the ports"
            ));
        }
        // Two intervals of ports overlap if and only if one holds the other's first.
        let is_shared =
            |(first, ports): &(Endpoint, u16)| owns(*first, *ports, endpoint) || cache.owns(*first);
        if taken.iter().any(is_shared) {
            return Err(format!(
                "cache {id} at {endpoint} has a port of a node or of another cache"
            ));
        }
        taken.push((endpoint, shards));
    }
    Ok(())
}

/// Everything a cache has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheTables {
    /// Revision of the map this was made from.
    pub revision: Revision,
    /// Whose map that is. A cache that follows another cluster must not install this.
    pub cluster: ClusterId,
    /// Whom this is for.
    pub cache: CacheId,
    /// The active switch: where replies go, and whose rules lead here.
    #[serde(with = "text::endpoint")]
    pub switch: Endpoint,
    /// Those that stand by for it, which are told the same rules.
    #[serde(default, with = "text::endpoints", skip_serializing_if = "Vec::is_empty")]
    pub standbys: Vec<Endpoint>,
    /// All nodes, to borrow keys from.
    pub nodes: Vec<NodeSpec>,
    /// All keyspaces, to know what a key looks like to the switch.
    pub keyspaces: Vec<Keyspace>,
}

impl CacheTables {
    /// All switches, the active one first.
    pub fn switches(&self) -> impl Iterator<Item = Endpoint> {
        std::iter::once(self.switch).chain(self.standbys.iter().copied())
    }
}

/// Keys that each shard of a cache tells of in a report: as many as a report of a node is heard of.
pub const CACHE_TOLD_MAX: usize = 64;

/// A cache's state of health. All counts are since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheReport {
    /// Revision of the installed tables; 0 for none.
    pub revision: Revision,
    /// The cluster that it follows: that of the first tables it was given. It takes no orders of
    /// another one before it is started anew.
    pub cluster: Option<ClusterId>,
    /// Whether it has been asked to end.
    pub leaving: bool,
    /// Keys that it holds.
    pub entries: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
    /// Keys that it has room for.
    pub room_entries: u64,
    /// Requests that it has answered.
    pub hits: u64,
    /// Requests for keys that it did not hold, or could not answer for.
    pub misses: u64,
    /// Requests that it has passed on to nodes.
    pub forwarded: u64,
    /// Lenders whose lease it has: nodes, one for each of their shards.
    pub volumes: u64,
    /// Rules of the switch that lead here, as far as it knows.
    pub rules: u64,
    /// Rules that are to, when the switch has room and time for all changes.
    pub rules_wanted: u64,
    /// Keys that it has asked lenders for.
    pub fetches: u64,
    /// New values of keys that lenders have sent it.
    pub updates: u64,
    /// The keys that it is read most for, of keyspaces in which nodes may copy keys instead: reads
    /// per second alone, at most [`CACHE_TOLD_MAX`] of each shard.
    pub hot: Vec<HotKey>,
    /// Those of them that are too hot for it: their shards cannot keep up, and each makes up more
    /// than half of what its shard is read for.
    pub crowding: Vec<KeyName>,
    /// What it takes of its machine.
    pub resources: Resources,
}

impl CacheReport {
    /// That of two shards together.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            revision: self.revision.min(other.revision),
            cluster: self.cluster.filter(|it| other.cluster == Some(*it)),
            leaving: self.leaving && other.leaving,
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
            room_entries: self.room_entries + other.room_entries,
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            forwarded: self.forwarded + other.forwarded,
            volumes: self.volumes + other.volumes,
            rules: self.rules + other.rules,
            rules_wanted: self.rules_wanted + other.rules_wanted,
            fetches: self.fetches + other.fetches,
            updates: self.updates + other.updates,
            hot: [&self.hot[..], &other.hot].concat(),
            crowding: [&self.crowding[..], &other.crowding].concat(),
            resources: self.resources,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Install, Map, Member};
    use std::net::SocketAddr;

    fn at(port: u16) -> Endpoint {
        SocketAddr::from(([10, 0, 0, 1], port)).into()
    }

    fn cache(id: u16, port: u16) -> CacheSpec {
        CacheSpec { id: CacheId(id), endpoint: at(port), shards: 1 }
    }

    fn map(caches: Vec<CacheSpec>) -> Map {
        let node = |id, port| NodeSpec { id: NodeId(id), endpoint: at(port), shards: 2 };
        Map { nodes: vec![node(0, 8_000), node(1, 8_010)], caches, ..Map::default() }
    }

    #[test]
    fn caches_have_ids_and_ports_of_their_own() {
        map(vec![cache(0, 9_000), cache(7, 9_001)]).check().unwrap();
        for (caches, why) in [
            (vec![cache(3, 9_000), cache(3, 9_001)], "cache 3 is there twice"),
            (vec![cache(16, 9_000)], "cache 16: ids of caches are 0 to 15"),
            (vec![cache(3, 0)], "cache 3 has no port"),
            (vec![CacheSpec { shards: 257, ..cache(3, 9_000) }], "over 256 shards"),
            (vec![CacheSpec { shards: 0, ..cache(3, 9_000) }], "do not fit the ports"),
            (vec![CacheSpec { shards: 2, ..cache(3, u16::MAX) }], "do not fit the ports"),
            (vec![cache(3, 8_001)], "has a port of a node or of another cache"),
            (vec![CacheSpec { shards: 2, ..cache(3, 7_999) }], "has a port of a node"),
            (vec![cache(3, 9_000), cache(4, 9_000)], "cache 4 at 10.0.0.1:9000 has a port"),
            ((0..17).map(|id| cache(id, 9_000 + id)).collect(), "over 16 caches"),
        ] {
            let wrong = map(caches).check().unwrap_err().to_string();
            assert!(wrong.contains(why), "{wrong}");
        }
    }

    #[test]
    fn each_key_has_one_shard_of_a_cache_and_each_shard_a_port() {
        let two = CacheSpec { shards: 2, ..cache(3, 9_000) };
        assert_eq!([0, 1, 2, u64::MAX].map(|hash| two.shard_of(hash << 32)), [0, 1, 0, 1]);
        assert_eq!(two.endpoint_of(1), Some(at(9_001)));
        assert_eq!(two.endpoint_of(2), None);
        assert_eq!(
            [8_999, 9_000, 9_001, 9_002].map(|port| two.shard_at(at(port))),
            [None, Some(0), Some(1), None]
        );
    }

    #[test]
    fn each_node_has_one_cache() {
        assert_eq!(map(vec![]).cache_of(NodeId(3)), None);
        let caches = vec![cache(2, 9_000), cache(5, 9_001)];
        let of = |node| cache_of(&caches, NodeId(node)).map(|it| it.id.0);
        assert_eq!([0, 1, 2, 3].map(of), [Some(2), Some(5), Some(2), Some(5)]);
    }

    #[test]
    fn a_map_without_caches_is_written_as_before_there_were_any() {
        let text = serde_json::to_string(&map(vec![])).unwrap();
        assert!(!text.contains("caches"), "{text}");
        assert_eq!(serde_json::from_str::<Map>(&text).unwrap(), map(vec![]));
        let with = map(vec![cache(2, 9_000)]);
        let text = serde_json::to_string(&with).unwrap();
        assert_eq!(serde_json::from_str::<Map>(&text).unwrap(), with);
    }

    #[test]
    fn a_cache_is_told_who_the_others_are() {
        let switches = [at(7_700), at(7_701)];
        let map = Map { active_switch: 1, ..map(vec![cache(2, 9_000)]) };
        let tables = map.cache_tables(CacheId(2), &switches);
        assert_eq!((tables.cache, tables.nodes.len()), (CacheId(2), 2));
        assert!(tables.switches().eq([at(7_701), at(7_700)]), "the active one comes first");
        let text = serde_json::to_string(&tables).unwrap();
        assert_eq!(serde_json::from_str::<CacheTables>(&text).unwrap(), tables);
        assert_eq!(Install::Cache(tables).revision(), Revision::NONE);
        assert_eq!(Member::Cache(CacheId(3)).to_string(), "cache 3");
        let text = serde_json::to_string(&Member::Cache(CacheId(3))).unwrap();
        assert_eq!(text, "{\"cache\":3}");
    }

    #[test]
    fn a_report_may_lack_what_its_cache_does_not_know_of() {
        let report: CacheReport = serde_json::from_str("{\"hits\":4}").unwrap();
        assert_eq!(report, CacheReport { hits: 4, ..CacheReport::default() });
    }
}
