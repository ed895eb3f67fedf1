//! Numbers of generations and delegations in orders that come one after the other.

use cluster::{HotOrder, KeyspaceId};
use std::collections::BTreeMap;
use wire::{DelegationId, Generation};

/// The numbers in the newest order.
#[derive(Default)]
pub struct Numbers {
    before: BTreeMap<(KeyspaceId, u64), (u64, Option<u64>)>,
}

impl Numbers {
    /// Gives an order its numbers, but for its revision. A key that was there keeps its generation,
    /// and its delegation; others have new ones. But a number that was drawn, and not 0, stays as
    /// it was drawn. A delegation whose chains are longer than the candidates is none.
    pub fn give(&mut self, order: &mut HotOrder) {
        let revision = order.revision;
        let mut numbers = BTreeMap::new();
        for key in &mut order.keys {
            let name = (key.keyspace, key.keyhash);
            let (generation, delegation) =
                self.before.get(&name).copied().unwrap_or((revision.get(), None));
            let drawn = |drawn: u64, usual: u64| {
                let number = if drawn == 0 { usual } else { drawn };
                number.min(revision.get())
            };
            key.generation = Generation::new(drawn(key.generation.get(), generation));
            key.delegation =
                key.delegation.filter(|delegation| u16::from(delegation.replicas) <= key.readers);
            if let Some(on) = &mut key.delegation {
                on.number = DelegationId::new(
                    drawn(on.number.get(), delegation.unwrap_or(revision.get()))
                        .max(key.generation.get()),
                );
            }
            numbers.insert(name, (key.generation.get(), key.delegation.map(|it| it.number.get())));
        }
        self.before = numbers;
    }
}
