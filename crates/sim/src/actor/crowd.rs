//! Keys of one tag, and what is asked of them: in the middle of a match value, too, where scans
//! stop and go on, past the parts of values that are written again and again.

use super::{Actor, Ask, What};
use crate::check::{Key, OpKind, Scan, crowded};
use client::Request;

/// Keys of the crowd.
const CROWD: u64 = 24;

pub(super) fn crowded_keys() -> impl Iterator<Item = Key> {
    (0..CROWD).map(|n| Key { ordered: false, key: crowded(n) })
}

pub(super) fn is_crowded(key: &Key) -> bool {
    key.key.starts_with(b"{")
}

impl Actor {
    /// Something about them.
    pub(super) fn in_crowd(&mut self, ask: &Ask<'_>) {
        let key = Key { ordered: false, key: crowded(self.rng.below(CROWD)) };
        match self.rng.below(20) {
            0..5 => {
                let value = self.value();
                self.put(ask, key, value, OpKind::Put { value, expiry_ms: 0 });
            }
            5..8 => {
                let what = What::One(key.clone(), OpKind::Del { existed: None });
                self.submit(ask, Request::Del { key: &key.key }, what);
            }
            8..10 => self.get(ask, key),
            // Of few, so that they replace each other.
            10..14 => {
                let key = Key { ordered: false, key: crowded(self.rng.below(2) * 9) };
                self.put_big(ask, key);
            }
            14..18 => self.scan_crowd(ask),
            _ => self.submit(ask, Request::Count, What::Count),
        }
    }

    fn scan_crowd(&mut self, ask: &Ask<'_>) {
        let [hashed, _] = ask.keyspaces;
        let first = self.rng.below(CROWD);
        let limit = self.rng.chance(2, 3).then(|| self.rng.below(6) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        // All of them have one match value.
        let at = hashed.match_value(&crowded(0));
        let after = first.checked_sub(1).map(crowded);
        let request =
            Request::Scan { first: at, last: at, after: after.as_deref(), limit, keys_only: false };
        let scan = Scan { crowd: true, first, last: CROWD - 1, limit, reverse: false };
        self.submit(ask, request, What::Scan(scan));
    }
}
