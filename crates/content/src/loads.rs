//! How much partitions are asked for, from what a device counts of their prefixes.

use cluster::{PartitionCount, PartitionId, SwitchTables};
use std::collections::BTreeMap;
use wire::{AddressPrefix, ContentClass, ServicePrefix};

/// Sums over what a device has counted. Its own counts begin anew with each entry, and when it is
/// started.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    /// What the prefixes are of.
    owners: BTreeMap<AddressPrefix, (PartitionId, ContentClass)>,
    /// What the device had counted when it was asked last; where it begins nobody knows.
    counted: Option<BTreeMap<AddressPrefix, u64>>,
    sums: BTreeMap<PartitionId, PartitionCount>,
}

impl Loads {
    /// These are the partitions from now on. Those that stay keep their sums.
    pub(crate) fn follow(&mut self, service: ServicePrefix, tables: &SwitchTables) {
        self.owners.clear();
        let before = std::mem::take(&mut self.sums);
        for it in &tables.partitions {
            let none = PartitionCount { partition: it.id, reads: 0, writes: 0 };
            self.sums.insert(it.id, before.get(&it.id).copied().unwrap_or(none));
            let Some(addresses) = service.keyspace(it.keyspace.0) else { continue };
            for class in ContentClass::ALL {
                let prefix = addresses.of_interval(class, it.first.0, it.last.0);
                self.owners.extend(prefix.map(|prefix| (prefix, (it.id, class))));
            }
        }
    }

    /// The device has counted this.
    pub(crate) fn count(&mut self, counts: impl IntoIterator<Item = (AddressPrefix, u64)>) {
        let counts: BTreeMap<AddressPrefix, u64> = counts.into_iter().collect();
        let Some(before) = self.counted.replace(counts.clone()) else { return };
        for (prefix, packets) in counts {
            let Some((partition, class)) = self.owners.get(&prefix) else { continue };
            let Some(sum) = self.sums.get_mut(partition) else { continue };
            let known = before.get(&prefix).copied().unwrap_or(0);
            let more = packets.checked_sub(known).unwrap_or(packets);
            match class {
                ContentClass::Read | ContentClass::ReadAtHome => sum.reads += more,
                ContentClass::Write => sum.writes += more,
            }
        }
    }

    /// The sums, by partition.
    pub(crate) fn sums(&self) -> impl Iterator<Item = PartitionCount> + '_ {
        self.sums.values().copied()
    }
}
