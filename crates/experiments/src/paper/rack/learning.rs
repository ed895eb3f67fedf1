//! How caches learn of keys where they do as caches do traditionally (SwitchKV section 4.4).

use super::caches::report_of;
use super::net::cache_endpoint;
use super::spec::Learning;
use super::{RackSpec, net::Net};
use cache::Admission;
use machine::{Datagram, Instant};
use node::TrackerConfig;
use std::time::Duration;
use wire::{Body, CacheReportBody, CacheReports, Endpoint, Header, Packet};
use workload::KeyNames;

impl Learning {
    /// What nodes tell their caches.
    pub(super) fn tracker(self) -> TrackerConfig {
        let both = TrackerConfig::default();
        match self {
            Self::Reports => both,
            Self::Periodic => TrackerConfig { instant: None, ..both },
            Self::Instant => TrackerConfig { periodic: None, ..both },
            Self::EveryRead => TrackerConfig { instant: None, periodic: None, ..both },
        }
    }

    /// What a cache does with what it is told of.
    pub(super) fn admission(self) -> Admission {
        match self {
            Self::Reports | Self::Periodic | Self::Instant => Admission::ByLoad,
            Self::EveryRead => Admission::All,
        }
    }
}

/// A node that tells its cache of whatever is read, and of a part of that if it is asked for so
/// much that switches could not follow.
#[derive(Debug)]
pub(super) struct EveryRead {
    cache: Endpoint,
    node: u16,
    names: KeyNames,
    /// Only what is stored can be lent.
    stored: u64,
    every: Duration,
    next: Instant,
}

impl EveryRead {
    /// That of a node, if its cache learns so.
    pub(super) fn of(node: u16, spec: &RackSpec) -> Option<Self> {
        let (count, caches) = (spec.cache_count(), spec.caches);
        if count == 0 || caches.learning != Learning::EveryRead {
            return None;
        }
        let rate = caches.rules_per_s * TOLD_TIMES / u32::from(spec.nodes.div_ceil(count));
        Some(Self {
            cache: cache_endpoint(node % count),
            node,
            names: spec.names(),
            stored: spec.stored,
            every: Duration::from_secs(1) / rate.max(1),
            next: Instant(0),
        })
    }

    /// The node has served this.
    pub(super) fn see(&mut self, now: Instant, at: Endpoint, served: &[u8], net: &mut Net) {
        let Ok(packet) = Packet::parse(served) else { return };
        let (header, Ok(Body::Get { key })) = (Header::read(packet.header()), packet.body()) else {
            return;
        };
        let is_stored = self.names.index(key).is_some_and(|number| number < self.stored);
        if now < self.next || !is_stored {
            return;
        }
        self.next = now + self.every;
        let report = CacheReportBody {
            keyspace: header.keyspace,
            partition: header.partition,
            epoch: header.epoch,
            match_value: header.match_value,
            keyhash: header.keyhash,
            rate: 1,
            key_len: 0,
        };
        let mut payload = Vec::new();
        CacheReports::push(&mut payload, &report, key);
        let payload = &report_of(self.node, &payload);
        net.post(now, at, Datagram { from: None, to: self.cache, payload });
    }
}

/// Caches hear of so many times as many keys as switches could follow changes of.
const TOLD_TIMES: u32 = 2;
