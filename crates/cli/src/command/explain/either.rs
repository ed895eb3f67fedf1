//! Of a keyspace whose hot keys caches hold or nodes copy: which of the two a key is, and why.

use cluster::{CacheId, KeyspaceId};
use console::answer::Answer;
use controller::HotStatus;

/// What becomes of one key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fate {
    what: What,
    why: String,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Copied,
    Cached(CacheId),
    Neither,
}

impl Fate {
    /// That of a key, by what the controller has decided of hot keys and the switch's rules.
    pub(super) fn of(
        hot: &[HotStatus],
        (keyspace, key): (KeyspaceId, &[u8]),
        cache: Option<CacheId>,
    ) -> Self {
        let known = hot.iter().find(|it| (it.key.keyspace, &it.key.key[..]) == (keyspace, key));
        let copied = known.and_then(|it| Some((it, it.generation?)));
        let (what, why) = match (copied, cache) {
            (Some((it, _)), _) if it.pinned => (What::Copied, "an operator wants it".to_owned()),
            (Some((_, generation)), _) => {
                let before = || "it was before caches might hold it".to_owned();
                (What::Copied, generation.why.map_or_else(before, |why| why.to_string()))
            }
            (None, Some(cache)) => (What::Cached(cache), "caches come first".to_owned()),
            (None, None) => (What::Neither, "too little is asked of it".to_owned()),
        };
        Self { what, why }
    }

    pub(super) fn add_to(&self, answer: Answer) -> Answer {
        let word = match self.what {
            What::Copied => "copied",
            What::Cached(_) => "cached",
            What::Neither => "neither",
        };
        answer.with("either", serde_json::json!({ "is": word, "why": self.why }))
    }

    pub(super) fn text(&self) -> String {
        let what = match self.what {
            What::Copied => "copied to nodes".to_owned(),
            What::Cached(cache) => format!("held by cache {cache}"),
            What::Neither => "neither held by a cache nor copied to nodes".to_owned(),
        };
        format!("{:<20} {what}: {}\n", "either", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::HotKey;
    use controller::{GenerationStatus, WhyCopied};

    const SPACE: KeyspaceId = KeyspaceId(1);

    fn copied(pinned: bool, why: Option<WhyCopied>) -> Vec<HotStatus> {
        let key = HotKey { keyspace: SPACE, key: b"k".to_vec(), ..HotKey::default() };
        let (readers, age_ms, reads_before, spread, home, delegation) = (2, 0, 0, 0, 0, None);
        let generation =
            GenerationStatus { readers, age_ms, reads_before, spread, home, why, delegation };
        vec![HotStatus { key, pinned, generation: Some(generation) }]
    }

    #[test]
    fn a_key_is_said_to_be_the_one_or_the_other_and_why() {
        let text = |hot: &[HotStatus], key: &[u8], cache| Fate::of(hot, (SPACE, key), cache).text();
        let written = copied(false, Some(WhyCopied::Written { reads: 30, writes: 40 }));
        let why = "it is written too often for a cache: 30 reads and 40 writes per second";
        // A rule may still lead to the cache that has given it back.
        for rule in [None, Some(CacheId(3))] {
            assert!(text(&written, b"k", rule).ends_with(&format!("copied to nodes: {why}\n")));
        }
        let pinned = text(&copied(true, None), b"k", None);
        assert!(pinned.ends_with("copied to nodes: an operator wants it\n"), "{pinned}");
        let cached = text(&written, b"other", Some(CacheId(3)));
        assert!(cached.ends_with("held by cache 3: caches come first\n"), "{cached}");
        assert!(text(&written, b"other", None).contains("neither"));
    }
}
