//! The one source of true randomness: seeds and identities that nobody else may have.

use std::fs::File;
use std::io::{self, Read};

/// 64 bits from the kernel.
///
/// # Errors
///
/// If the kernel's source cannot be read.
pub fn draw() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_draws_differ() {
        assert_ne!(super::draw().unwrap(), super::draw().unwrap());
    }
}
