//! Two keys with one keyhash: the switch takes each for the other.

use std::ops::BitXor;

/// Bytes 24 to 55 of the secret that XXH3 has by default, as words in little endian.
const SECRET: [u64; 4] =
    [0x1f67_b3b7_a4a4_4072, 0x78e5_c0cc_4ee6_79cb, 0x2172_ffcc_7dd0_5a82, 0x8e24_43f7_7446_08b8];

/// The keyspace whose keys they are, the first of a cluster.
const KEYSPACE: u64 = 1;

/// Keys of the first keyspace of a cluster with this seed that have the same 64-bit keyhash.
///
/// Of 16 bytes XXH3 hashes two words, each combined with the secret and the seed, as their sum, the
/// first with its bytes reversed, and their product: so it is all the same which of them is zero.
pub(crate) fn twins(seed: u64) -> [[u8; 16]; 2] {
    let seed = seed ^ KEYSPACE.rotate_left(48);
    let [a, b, c, d] = SECRET;
    let first = a.bitxor(b).wrapping_add(seed);
    let second = c.bitxor(d).wrapping_sub(seed);
    let any = 0x6b65_7977_6179_2121_u64;
    let key = |words: [u64; 2]| {
        let [low, high] = words.map(u64::to_le_bytes);
        std::array::from_fn(|at| *low.iter().chain(&high).nth(at).expect("16 bytes"))
    };
    [key([first, second ^ any]), key([first ^ any.swap_bytes(), second])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};

    #[test]
    fn they_have_one_keyhash_and_lie_in_different_places() {
        for seed in [0, 1, 77, u64::MAX] {
            let keyspace = Keyspace {
                id: KeyspaceId(1),
                name: "hashed".into(),
                kind: KeyspaceKind::Hash,
                seed,
                replicas: 1,
                hot: HotPolicy::Replicate,
                content: None,
            };
            let [one, other] = twins(seed);
            assert_eq!(keyspace.keyhash(&one), keyspace.keyhash(&other));
            assert_ne!(keyspace.match_value(&one), keyspace.match_value(&other));
        }
    }
}
