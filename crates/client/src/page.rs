//! Pages of a keyspace: its keys in the order of their match values, a few at a time.

use crate::Value;
use cluster::{Keyspace, Match};

/// Some of the keys of a keyspace, in the order of their match values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Keys and values, about as many as were asked for.
    pub entries: Vec<(Vec<u8>, Value)>,
    /// Where the next page begins: the upper half of a match value; `None` after the last page.
    pub next: Option<u64>,
}

/// The first match value with this upper half.
pub(crate) fn first_of(half: u64) -> Match {
    Match(u128::from(half) << 64)
}

/// The last match value with this upper half.
pub(crate) fn last_of(half: u64) -> Match {
    Match(first_of(half).0 | u128::from(u64::MAX))
}

/// Makes a page of one entry more than it is to have, so that keys of one upper half stay together.
///
/// # Errors
///
/// With the upper half that all of them have: then those are to be asked for without a limit.
pub(crate) fn cut(
    keyspace: &Keyspace,
    mut entries: Vec<(Vec<u8>, Value)>,
    count: usize,
) -> Result<Page, u64> {
    let half = |key: &[u8]| {
        u64::try_from(keyspace.match_value(key).0 >> 64).expect("half of a match value")
    };
    let Some(next) = entries.get(count).map(|(key, _)| half(key)) else {
        return Ok(Page { entries, next: None });
    };
    let cut = entries.partition_point(|(key, _)| half(key) < next);
    if cut == 0 {
        return Err(next);
    }
    entries.truncate(cut);
    Ok(Page { entries, next: Some(next) })
}

/// The page of all keys of one upper half.
pub(crate) fn of_half(half: u64, entries: Vec<(Vec<u8>, Value)>) -> Page {
    Page { entries, next: half.checked_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotPolicy, KeyspaceId, KeyspaceKind};

    #[test]
    fn a_page_ends_between_upper_halves_of_match_values() {
        // Of a range keyspace, because its match values are easily made up.
        let kind = KeyspaceKind::Range { prefix: Vec::new() };
        let (id, name, hot) = (KeyspaceId(1), "r".into(), HotPolicy::Off);
        let keyspace = Keyspace { id, name, kind, seed: 0, replicas: 1, hot };
        let value = Value { value: Vec::new(), version: 1, ..Value::default() };
        let half = |n: u8| u64::from_be_bytes([0, 0, 0, 0, 0, 0, 0, n]);
        let entry = |n: u8, low: u8| {
            let key = [&half(n).to_be_bytes()[..], &[low; 8]].concat();
            (key, value.clone())
        };
        let entries = vec![entry(1, 1), entry(2, 1), entry(2, 2), entry(2, 3)];
        let whole = cut(&keyspace, entries.clone(), 4).unwrap();
        assert_eq!((whole.entries.len(), whole.next), (4, None));
        let first = cut(&keyspace, entries.clone(), 3).unwrap();
        assert_eq!((first.entries.len(), first.next), (1, Some(half(2))));
        assert_eq!(cut(&keyspace, entries[1..].to_vec(), 2), Err(half(2)), "one half, too full");
        let rest = of_half(half(2), entries[1..].to_vec());
        assert_eq!((rest.entries.len(), rest.next), (3, Some(half(3))));
        assert_eq!(of_half(u64::MAX, Vec::new()).next, None);
    }
}
