//! Numbers of stays and trips in orders that come one after the other.

use cluster::{HotOrder, KeyspaceId};
use std::collections::BTreeMap;

/// The numbers in the newest order.
#[derive(Default)]
pub(crate) struct Numbers {
    before: BTreeMap<(KeyspaceId, u64), (u64, Option<u64>)>,
}

impl Numbers {
    /// Gives an order its numbers, but for its revision. A key that was there keeps its stay, and
    /// its trip; others have new ones. But a number that was drawn, and not 0, stays as it was
    /// drawn. A trip whose chains are longer than the row of places is none.
    pub(crate) fn give(&mut self, order: &mut HotOrder) {
        let revision = order.revision;
        let mut numbers = BTreeMap::new();
        for key in &mut order.keys {
            let name = (key.keyspace, key.keyhash);
            let (stay, trip) = self.before.get(&name).copied().unwrap_or((revision, None));
            let drawn = |drawn: u64, usual: u64| {
                let number = if drawn == 0 { usual } else { drawn };
                number.min(revision)
            };
            key.stay = drawn(key.stay, stay);
            key.trip = key.trip.filter(|trip| u16::from(trip.replicas) <= key.readers);
            if let Some(on) = &mut key.trip {
                on.number = drawn(on.number, trip.unwrap_or(revision)).max(key.stay);
            }
            numbers.insert(name, (key.stay, key.trip.map(|trip| trip.number)));
        }
        self.before = numbers;
    }
}
