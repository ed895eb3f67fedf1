//! Pages of a keyspace: its keys in the order of (match value, key), a few at a time.

use crate::Value;
use crate::owned::OwnedRequest;
use cluster::{Keyspace, Match};

/// Some of the keys of a keyspace, in the order of (match value, key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Keys and values, as many as were asked for or a few less; fewer only at the end.
    pub entries: Vec<(Vec<u8>, Value)>,
    /// Where the next page begins; `None` after the last page.
    pub next: Option<PageStart>,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// At the first match value with these upper 63 bits, of which the 64th is 0: a number that
    /// says all there is to know. A page ends so if it can.
    Half(u64),
    /// Behind this key: more keys than a page has room for share a match value.
    After(Vec<u8>),
}

impl PageStart {
    /// The beginning of the keyspace.
    pub const FIRST: Self = Self::Half(0);
}

/// The upper half of a match value, without its last bit.
fn half(at: Match) -> u64 {
    u64::try_from(at.0 >> 64).expect("half of a match value") & !1
}

/// What asks for a page: for one entry more than it is to have, to know where the next begins.
pub(crate) fn request(
    keyspace: &Keyspace,
    from: &PageStart,
    count: usize,
    keys_only: bool,
) -> OwnedRequest {
    let (first, after) = match from {
        PageStart::Half(half) => (Match(u128::from(*half) << 64), None),
        PageStart::After(key) => (keyspace.match_value(key), Some(key.clone())),
    };
    let limit = count.max(1).checked_add(1);
    OwnedRequest::Scan { first, last: Match::MAX, after, limit, keys_only }
}

/// What asks for all keys with these upper 32 bits of their match value, however many they are.
pub(crate) fn request_all(bits: u32, keys_only: bool) -> OwnedRequest {
    let first = Match(u128::from(bits) << 96);
    let last = Match(first.0 | u128::MAX >> 32);
    OwnedRequest::Scan { first, last, after: None, limit: None, keys_only }
}

/// Makes a page of one entry more than it is to have.
pub(crate) fn cut(keyspace: &Keyspace, mut entries: Vec<(Vec<u8>, Value)>, count: usize) -> Page {
    let count = count.max(1);
    let half_of = |key: &[u8]| half(keyspace.match_value(key));
    let Some(next) = entries.get(count).map(|(key, _)| half_of(key)) else {
        return Page { entries, next: None };
    };
    let between = entries.partition_point(|(key, _)| half_of(key) < next);
    entries.truncate(if between == 0 { count } else { between });
    let last = entries.last().filter(|_| between == 0).map(|(key, _)| key.clone());
    Page { entries, next: Some(last.map_or(PageStart::Half(next), PageStart::After)) }
}

/// The page of all keys with these upper 32 bits.
pub(crate) fn of_all(bits: u32, entries: Vec<(Vec<u8>, Value)>) -> Page {
    let next = bits.checked_add(1).map(|bits| PageStart::Half(u64::from(bits) << 32));
    Page { entries, next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotPolicy, KeyspaceId, KeyspaceKind};

    #[test]
    fn a_page_ends_between_match_values_if_it_can() {
        // Of a range keyspace, because its match values are easily made up.
        let kind = KeyspaceKind::Range { prefix: Vec::new() };
        let (id, name, hot) = (KeyspaceId(1), "r".into(), HotPolicy::Off);
        let keyspace = Keyspace { id, name, kind, seed: 0, replicas: 1, hot, content: None };
        let value = Value { value: Vec::new(), version: wire::Version::new(1), ..Value::default() };
        let half = |n: u8| u64::from_be_bytes([0, 0, 0, 0, 0, 0, 0, n]);
        let entry = |n: u8, low: u8| {
            let key = [&half(n).to_be_bytes()[..], &[low; 8]].concat();
            (key, value.clone())
        };
        let entries = vec![entry(1, 1), entry(4, 1), entry(4, 2), entry(5, 3)];
        let whole = cut(&keyspace, entries.clone(), 4);
        assert_eq!((whole.entries.len(), whole.next), (4, None));
        let first = cut(&keyspace, entries.clone(), 3);
        assert_eq!((first.entries.len(), first.next), (1, Some(PageStart::Half(half(4)))));
        let crowd = cut(&keyspace, entries[1..].to_vec(), 2);
        let last = entry(4, 2).0;
        assert_eq!((crowd.entries.len(), crowd.next), (2, Some(PageStart::After(last.clone()))));
        let OwnedRequest::Scan { first, after, .. } =
            request(&keyspace, &PageStart::After(last.clone()), 2, true)
        else {
            panic!("a page is a scan")
        };
        assert_eq!((first, after), (keyspace.match_value(&last), Some(last)));
        assert_eq!(of_all(u32::MAX, Vec::new()).next, None);
        assert_eq!(of_all(1, Vec::new()).next, Some(PageStart::Half(2 << 32)));
    }
}
