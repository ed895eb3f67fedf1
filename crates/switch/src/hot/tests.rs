//! What a full table takes, and that each key has the holders that it needs.

use super::*;
use cluster::HotEntry;
use wire::{DelegationId, Generation, Revision, Version};

/// As many hot keys as there may be, with so many readers of 64 nodes.
fn full(readers: u16, delegation: Option<cluster::Delegation>) -> HotOrder {
    let key = |number: u64| HotEntry {
        keyspace: KeyspaceId(1),
        key: number.to_be_bytes().into(),
        keyhash: machine::mix(1 + number),
        match_value: Match(0),
        generation: Generation::new(1),
        first: 0,
        readers,
        delegation,
    };
    HotOrder {
        revision: Revision::new(1),
        switch: Incarnation(1),
        selection: Selection::Predicted,
        places: (0..64).map(|id| Some((NodeId(id), Incarnation(1)))).collect(),
        keys: (0..wire::HOT_KEYS_MAX as u64).map(key).collect(),
        ..HotOrder::default()
    }
}

/// What an `Arc` puts before what it shares.
const COUNTS: usize = 2 * size_of::<usize>();

/// Bytes that are asked for, for each key.
fn bytes_per_key(table: &HotTable) -> usize {
    let of_row = |row: &Row| {
        let more = row.entry.more.get().map_or(0, |more| size_of_val(&**more));
        let delegation =
            row.delegation.as_ref().map_or(0, |delegation| COUNTS + size_of_val(&**delegation));
        size_of::<Row>() + COUNTS + size_of::<Entry>() + more + delegation
    };
    let rows: usize = table.rows.iter().map(of_row).sum();
    (rows + table.index.allocation_size()).div_ceil(table.rows.len())
}

#[test]
fn a_key_of_a_full_table_takes_less_than_128_bytes() {
    let delegation = cluster::Delegation { number: DelegationId::new(1), replicas: 3, copies: 0 };
    for (readers, delegation, most) in
        [(8, None, 115), (13, None, 115), (64, None, 187), (8, Some(delegation), 171)]
    {
        let table = HotTable::compile(&full(readers, delegation), &HotTable::default()).unwrap();
        let bytes = bytes_per_key(&table);
        println!(
            "{readers} readers, under a delegation: {}: {bytes} bytes for each key",
            delegation.is_some()
        );
        assert_eq!(table.rows.len(), wire::HOT_KEYS_MAX);
        assert!(bytes <= most && (readers > 13 || delegation.is_some() || bytes < 128), "{bytes}");
    }
}

#[test]
fn every_key_is_found_and_no_other() {
    let table = HotTable::compile(&full(2, None), &HotTable::default()).unwrap();
    let mut names: Vec<_> = table.names().map(|(_, keyhash, _)| keyhash).collect();
    assert!(names.is_sorted());
    for (place, keyhash) in names.iter().enumerate() {
        let row = table.find(KeyspaceId(1), *keyhash).unwrap();
        assert_eq!((row.counter as usize, row.entry.keyhash), (place, *keyhash));
        assert!(table.find(KeyspaceId(2), *keyhash).is_none());
    }
    names.dedup();
    assert_eq!(names.len(), wire::HOT_KEYS_MAX);
    assert!((0..1_000).all(|other| table.find(KeyspaceId(1), other).is_none()));
}

#[test]
fn a_key_that_gets_more_readers_than_few_has_a_holder_for_each() {
    let mut order = full(2, None);
    order.keys.truncate(1);
    order.places = (0..512).map(|id| Some((NodeId(id), Incarnation(1)))).collect();
    let mut before = HotTable::compile(&order, &HotTable::default()).unwrap();
    let row = &before.rows[0];
    (0..2).for_each(|node| before.holder(row, NodeId(node), Some(Version::new(9))));
    for (revision, readers) in [(2, 64), (3, 14), (4, 512), (5, 100), (6, 300), (7, 2)] {
        (order.revision, order.keys[0].readers) = (Revision::new(revision), readers);
        let table = HotTable::compile(&order, &before).unwrap();
        let row = &table.rows[0];
        let held = || (0..512).filter(|reader| row.holds(*reader, Version::new(9))).count();
        let generation = before.rows[0].readers().min(readers.into());
        assert_eq!(held(), generation, "{readers}: those of before generation");
        (0..512).for_each(|node| table.holder(row, NodeId(node), Some(Version::new(9))));
        assert_eq!(held(), usize::from(readers));
        before = table;
    }
}
