//! Fixed places in fixed arrays: offsets are checked when the crate is compiled.

#[inline]
pub(crate) fn get<const AT: usize, const N: usize, const LEN: usize>(from: &[u8; LEN]) -> [u8; N] {
    const { assert!(AT + N <= LEN) };
    let mut out = [0; N];
    out.copy_from_slice(&from[AT..AT + N]);
    out
}

#[inline]
pub(crate) fn put<const AT: usize, const N: usize, const LEN: usize>(
    to: &mut [u8; LEN],
    bytes: [u8; N],
) {
    const { assert!(AT + N <= LEN) };
    to[AT..AT + N].copy_from_slice(&bytes);
}
