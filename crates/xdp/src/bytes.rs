//! Bytes in and out of records.

/// Overwrites the bytes at `at`.
///
/// # Panics
///
/// If they are not all inside: offsets are generated.
pub(crate) fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    out.get_mut(at..end).expect("the record has room for its fields").copy_from_slice(bytes);
}

/// The bytes at `at`; `None` if there are too few.
pub(crate) fn get<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
