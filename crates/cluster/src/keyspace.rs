//! Keyspaces, and what a key looks like to a switch.

use crate::{Capabilities, ContentRouting, HotPolicy, KeyspaceId, Match};
use serde::{Deserialize, Serialize};
use wire::{ContentClass, Endpoint, PartKey};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// A named set of keys with one way of spreading them over partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyspace {
    /// The number that packets carry.
    pub id: KeyspaceId,
    /// The name that people use; 1 to `wire::NAME_MAX` bytes.
    pub name: String,
    /// How keys become match values.
    pub kind: KeyspaceKind,
    /// Seed of every hash over the keys, the same in the whole cluster.
    pub seed: u64,
    /// How many nodes are to hold each key.
    pub replicas: u8,
    /// What becomes of its hot keys.
    #[serde(default)]
    pub hot: HotPolicy,
    /// Where the addresses of its keys are, if they have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentRouting>,
}

/// How keys become match values (TurboKV section 4.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum KeyspaceKind {
    /// By XXH3-128 of the key, or of its [tag](tag_of) if it has one: even load, no order.
    Hash,
    /// By the 16 bytes of the key after a prefix that all keys share: order is kept, so there are
    /// range scans.
    Range {
        /// The common prefix; may be empty. Keys without it are allowed and sort to either end.
        prefix: Vec<u8>,
    },
}

impl Keyspace {
    /// The match value of a key. In a hash keyspace keys with the same tag have the same. In a
    /// range keyspace it never decreases from a key to a later one. The parts of a big value have
    /// that of its key: where it goes, they go.
    #[must_use]
    pub fn match_value(&self, key: &[u8]) -> Match {
        match &self.kind {
            KeyspaceKind::Hash => {
                let key = PartKey::parse(key).map_or(key, |part| part.key);
                Match(xxh3_128_with_seed(tag_of(key).unwrap_or(key), self.seed))
            }
            KeyspaceKind::Range { prefix } => ordered_match(key, prefix),
        }
    }

    /// The keyhash of a key: what the coherence directory and the caches match on. It takes the
    /// keyspace in, so that one key in two keyspaces has two.
    #[must_use]
    pub fn keyhash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed ^ u64::from(self.id.0).rotate_left(48))
    }

    /// What those can do for sure that requests about one of its keys come past.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        if self.content.is_some() { Capabilities::ADDRESSES } else { Capabilities::PROGRAM }
    }

    /// Whether nodes beside the tail may have copies of its hot keys: somebody must choose among
    /// them on the way.
    #[must_use]
    pub fn copies_hot_keys(&self) -> bool {
        self.hot.copies() && self.capabilities().directory
    }

    /// The content address for what is wanted of a key, if there is one.
    #[must_use]
    pub fn content_address(&self, class: ContentClass, at: Match) -> Option<Endpoint> {
        self.content?.endpoint(class, self.id, at)
    }

    /// Whether keys are kept in order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        matches!(self.kind, KeyspaceKind::Range { .. })
    }
}

/// The part of a key that says where it lies in a hash keyspace: what stands between its first `{`
/// and the next `}`, unless that is nothing. (Redis Cluster's *hash tags*.)
#[must_use]
pub fn tag_of(key: &[u8]) -> Option<&[u8]> {
    let (_, after) = key.split_at(key.iter().position(|byte| *byte == b'{')? + 1);
    let (tag, _) = after.split_at(after.iter().position(|byte| *byte == b'}')?);
    (!tag.is_empty()).then_some(tag)
}

fn ordered_match(key: &[u8], prefix: &[u8]) -> Match {
    match key.strip_prefix(prefix) {
        Some(rest) => {
            let mut bytes = [0; 16];
            for (to, from) in bytes.iter_mut().zip(rest) {
                *to = *from;
            }
            Match(u128::from_be_bytes(bytes))
        }
        None if key < prefix => Match::MIN,
        None => Match::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(prefix: &[u8]) -> Keyspace {
        let kind = KeyspaceKind::Range { prefix: prefix.to_vec() };
        Keyspace {
            id: KeyspaceId(1),
            name: "r".into(),
            kind,
            seed: 7,
            replicas: 1,
            hot: HotPolicy::Off,
            content: None,
        }
    }

    #[test]
    fn the_prefix_is_cut_off_and_short_keys_are_padded() {
        let ks = range(b"user");
        assert_eq!(ks.match_value(b"user"), Match::MIN);
        assert_eq!(ks.match_value(b"user\xff"), Match(0xff << 120));
        assert_eq!(
            ks.match_value(b"user0123456789abcdef"),
            ks.match_value(b"user0123456789abcdefg")
        );
        assert_eq!(ks.match_value(b"a"), Match::MIN);
        assert_eq!(ks.match_value(b"v"), Match::MAX);
    }

    #[test]
    fn a_tag_is_what_stands_between_the_first_braces() {
        let tags: [(&[u8], Option<&[u8]>); 9] = [
            (b"{user7}:name", Some(b"user7")),
            (b"cart:{user7}", Some(b"user7")),
            (b"a{b}{c}", Some(b"b")),
            (b"a{{b}}", Some(b"{b")),
            (b"a}{b}", Some(b"b")),
            (b"a{}{b}", None),
            (b"a{b", None),
            (b"a}b", None),
            (b"", None),
        ];
        for (key, tag) in tags {
            assert_eq!(tag_of(key), tag, "{}", String::from_utf8_lossy(key));
        }
        let hash = Keyspace { kind: KeyspaceKind::Hash, ..range(b"") };
        let place = |key: &[u8]| hash.match_value(key);
        assert_eq!(place(b"{user7}:name"), place(b"cart:{user7}"));
        assert_eq!(place(b"{user7}"), place(b"user7"), "the tag alone lies there, too");
        assert_ne!(place(b"a{}{b}"), place(b"b"));
        assert_ne!(hash.keyhash(b"{user7}:name"), hash.keyhash(b"cart:{user7}"));
        let of = |key: &[u8]| range(b"").match_value(key);
        assert_ne!(of(b"{u}a"), of(b"{u}b"), "a range keyspace keeps the order of whole keys");
    }

    #[test]
    fn places_of_keys_are_what_they_were() {
        let hash = Keyspace { kind: KeyspaceKind::Hash, ..range(b"") };
        for key in [&b"user7"[..], b"a{}b", b"{"] {
            assert_eq!(hash.match_value(key), Match(xxh3_128_with_seed(key, 7)));
        }
    }

    #[test]
    fn parts_are_where_their_big_value_is() {
        let upload = wire::UploadBody { client: 1, number: 2 };
        let hash = Keyspace { kind: KeyspaceKind::Hash, ..range(b"") };
        for keyspace in [range(b""), range(b"user"), hash] {
            for key in [&b"a"[..], b"u", b"user", b"user7", b"v", &[b'x'; 40]] {
                let part = PartKey { key, upload, index: 3 }.to_bytes();
                assert_eq!(keyspace.match_value(&part), keyspace.match_value(key), "{key:?}");
                assert_ne!(keyspace.keyhash(&part), keyspace.keyhash(key));
            }
        }
    }

    proptest! {
        #[test]
        fn order_is_kept(
            a in proptest::collection::vec(any::<u8>(), 0..20),
            b in proptest::collection::vec(any::<u8>(), 0..20),
            prefix in proptest::collection::vec(any::<u8>(), 0..3),
        ) {
            let ks = range(&prefix);
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            prop_assert!(ks.match_value(&a) <= ks.match_value(&b));
        }
    }
}
