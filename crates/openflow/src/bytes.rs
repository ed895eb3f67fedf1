//! Reading and writing numbers in network byte order.

/// What is left to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next bytes, if there are so many.
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_be_bytes)
    }
}

/// Appends zeros until the length is a multiple of this.
pub(crate) fn pad(out: &mut Vec<u8>, from: usize, multiple: usize) {
    let len = out.len() - from;
    out.resize(from + len.next_multiple_of(multiple), 0);
}

/// Writes a length of two bytes where it was left open.
pub(crate) fn set_len(out: &mut [u8], at: usize, len: usize) {
    let len = u16::try_from(len).expect("no message is that long");
    let place = out.get_mut(at..at + 2).expect("it was left open");
    place.copy_from_slice(&len.to_be_bytes());
}
