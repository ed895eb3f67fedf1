//! What is asked for most, and what became of it.

use super::form::{DelegationStatus, GenerationStatus, HotStatus};
use super::view::{View, ms_between};
use crate::hot::{self, Rates};
use cluster::{HotKey, KeyName};
use std::collections::BTreeSet;

/// Keys that a status lists, beside those that are hot.
const LISTED_MAX: usize = 64;

/// The hottest keys of all nodes, and all that are hot or pinned, the hottest first.
pub(super) fn hot(view: &View<'_>) -> Vec<HotStatus> {
    let mut keys = hot::told(view.members);
    keys.truncate(LISTED_MAX);
    let told: BTreeSet<KeyName> = keys.iter().map(hot::named).collect();
    let known = view.hot.keys().map(|(name, _)| name).chain(&view.state.pins);
    let others: BTreeSet<&KeyName> = known.filter(|name| !told.contains(name)).collect();
    keys.extend(others.into_iter().map(|KeyName { keyspace, key }| {
        let (keyspace, key) = (*keyspace, key.clone());
        HotKey { keyspace, key, ..HotKey::default() }
    }));
    let mut list: Vec<HotStatus> = keys.into_iter().map(|key| status_of(view, key)).collect();
    list.sort_by(|one, other| one.key.hottest_first(&other.key));
    list
}

/// The switch's count of a hot key is exact; nodes tell of their hottest keys alone.
fn status_of(view: &View<'_>, mut key: HotKey) -> HotStatus {
    let name = hot::named(&key);
    let generation = view.hot.key(&name).map(|known| {
        let Rates { reads, writes } = known.rates;
        (key.reads, key.writes) = (reads, writes);
        GenerationStatus {
            readers: known.readers,
            age_ms: ms_between(known.since, view.now),
            reads_before: known.before.reads,
            spread: known.spread,
            home: reads.saturating_sub(known.spread),
            why: known.copied.why,
            delegation: known.delegated().map(|delegated| DelegationStatus {
                number: delegated.delegation.number,
                age_ms: ms_between(delegated.since, view.now),
                replicas: delegated.delegation.replicas,
                copies: delegated.delegation.copies,
            }),
        }
    });
    HotStatus { pinned: view.state.pins.contains(&name), key, generation }
}
