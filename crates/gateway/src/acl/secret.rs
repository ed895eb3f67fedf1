//! What passwords are kept as.

use sha2::{Digest as _, Sha256};

/// What a password is kept as.
pub(super) type Hash = [u8; 32];

pub(super) fn hash(password: &[u8]) -> Hash {
    Sha256::digest(password).into()
}

pub(super) fn hex(hash: &Hash) -> String {
    data_encoding::HEXLOWER.encode(hash)
}
