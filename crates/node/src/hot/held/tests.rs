//! What is held, and what goes first.

use super::*;
use crate::engine::memory::MemoryEngine;
use cluster::StoreId;

const SPACE: KeyspaceId = KeyspaceId(1);

fn keep(copies: &mut HeldCopies, key: &[u8], version: u64, len: usize) -> u64 {
    let value = &vec![0; len];
    let record = Record { version: Version::new(version), expiry_ms: 0, tombstone: false, value };
    copies.keep(SPACE, key, &record).get()
}

#[test]
fn an_older_copy_is_not_kept() {
    let mut copies = HeldCopies::default();
    assert_eq!(keep(&mut copies, b"a", 5, 10), 5);
    assert_eq!(keep(&mut copies, b"a", 4, 1), 5);
    let now = UnixMs(1);
    let seen = |copies: &mut HeldCopies, key: &[u8], floor| {
        let versions = Version::new(floor)..=Version::new(9);
        copies.answer(now, (SPACE, key), versions).map(|(_, entry)| entry.version)
    };
    assert_eq!(seen(&mut copies, b"a", 0), Some(Version::new(5)));
    assert_eq!(seen(&mut copies, b"a", 6), None);
    assert_eq!(seen(&mut copies, b"b", 0), None);
    assert_eq!(keep(&mut copies, b"b", 2, 1), 2);
    assert_eq!(seen(&mut copies, b"a", 0), Some(Version::new(5)));
    assert_eq!((copies.copies(), copies.copy_bytes), (2, 2 * ENTRY_BYTES + 13));
}

#[test]
fn a_copy_that_goes_leaves_the_write_of_its_key() {
    let mut engine = MemoryEngine::new(StoreId(1));
    let (mut copies, now) = (HeldCopies::default(), UnixMs(1));
    assert!(
        copies
            .take_write(
                &mut engine,
                (SPACE, b"a"),
                (DelegationId::new(3), Version::new(7)),
                b"new",
                true
            )
            .news
    );
    keep(&mut copies, b"a", 7, BYTES_MAX / 2);
    copies.limit(false);
    assert_eq!((copies.copies(), copies.copy_bytes, copies.writes()), (0, 0, 1));
    let version = Version::new(7);
    let found =
        copies.answer(now, (SPACE, b"a"), version..=version).map(|(_, entry)| entry.value.to_vec());
    assert_eq!(found.as_deref(), Some(&b"new"[..]));
    copies.end(&mut engine, (SPACE, b"a"), DelegationId::new(3));
    assert_eq!((copies.writes(), copies.table[&SPACE].len()), (0, 0));
}

#[test]
fn what_nobody_reads_goes_first() {
    let mut copies = HeldCopies::default();
    let (most, now) = (COPIES_MAX as u64, UnixMs(1));
    let one = |copies: &mut HeldCopies, number: u64| {
        assert_eq!(keep(copies, &number.to_be_bytes(), 1, 100), 1);
    };
    for number in 0..most {
        one(&mut copies, number);
    }
    let read = |copies: &mut HeldCopies, number: u64| {
        copies.answer(now, (SPACE, &number.to_be_bytes()), Version::NONE..=Version::MAX).is_some()
    };
    assert!(read(&mut copies, 0) && read(&mut copies, 2));
    one(&mut copies, most);
    one(&mut copies, most + 1);
    assert_eq!(copies.copies(), COPIES_MAX);
    let kept: Vec<bool> = (0..5).map(|number| read(&mut copies, number)).collect();
    assert_eq!(kept, [true, false, true, false, true]);
}

#[test]
fn large_copies_are_held_in_fewer() {
    let mut copies = HeldCopies::default();
    for number in 0..100_u64 {
        keep(&mut copies, &number.to_be_bytes(), 1, BYTES_MAX / 10);
        assert!(copies.copy_bytes <= BYTES_MAX);
    }
    assert_eq!(copies.copies(), 9);
}
