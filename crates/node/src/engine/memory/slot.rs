//! A slot of a hash table.

use super::block::Block;

/// The keyhash stands beside the pointer, so that neither a growing table nor a key that looks
/// alike in seven bits has to fetch the block.
pub(super) struct Slot {
    pub(super) keyhash: u64,
    pub(super) block: Block,
}

impl Slot {
    #[inline]
    pub(super) fn holds(&self, keyhash: u64, key: &[u8]) -> bool {
        self.keyhash == keyhash && self.block.key() == key
    }
}
