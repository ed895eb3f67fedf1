//! Payloads of the messages between caches and those who lend to them or send them reads.

use crate::body::{key_and_value, whole_key};
use crate::layout::{
    CacheAnswerBody, CacheGrantBody, CacheLoanBody, CacheRecallBody, CacheRenewBody,
    CacheReportBody, CacheRuleBody, CacheRulePlacedBody, CacheUpdateBody, Code, FILL_MAX, Fields,
    HEADER_LEN, KEY_MAX, Op, PACKET_MAX,
};
use alloc::vec::Vec;

/// The payload of a message from a cache or to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the bodies in `layout`")]
pub enum CacheMessage<'a> {
    Fetch {
        key: &'a [u8],
    },
    Loan {
        fixed: CacheLoanBody,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// A CACHE_LOAN that says that the key is not lent.
    NoLoan {
        key: &'a [u8],
    },
    Renew(CacheRenewBody),
    Grant(CacheGrantBody),
    Update {
        fixed: CacheUpdateBody,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Without a key it is about the whole partition, and so is the answer.
    Recall {
        fixed: CacheRecallBody,
        key: &'a [u8],
    },
    Answer {
        fixed: CacheAnswerBody,
        key: &'a [u8],
    },
    Report(CacheReports<'a>),
    Rules(CacheRules<'a>),
    Ruled,
}

impl<'a> CacheMessage<'a> {
    pub(crate) fn parse(op: Op, header: &[u8; HEADER_LEN], payload: &'a [u8]) -> Option<Self> {
        let (code, key_len) = (header.code(), usize::from(header.key_len()));
        let any_key = |key: &[u8]| key.len() == key_len && key_len <= KEY_MAX;
        Some(match op {
            Op::CacheFetch => Self::Fetch { key: whole_key(payload, key_len)? },
            Op::CacheLoan if code == Code::Ok as u8 => {
                let (fixed, rest) = CacheLoanBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::Loan { fixed, key, value }
            }
            Op::CacheLoan => Self::NoLoan { key: whole_key(payload, key_len)? },
            Op::CacheRenew => Self::Renew(whole(CacheRenewBody::split(payload)?)?),
            Op::CacheGrant => Self::Grant(whole(CacheGrantBody::split(payload)?)?),
            Op::CacheUpdate => {
                let (fixed, rest) = CacheUpdateBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::Update { fixed, key, value }
            }
            Op::CacheRecall => {
                let (fixed, key) = CacheRecallBody::split(payload)?;
                any_key(key).then_some(Self::Recall { fixed, key })?
            }
            Op::CacheAnswer => {
                let (fixed, key) = CacheAnswerBody::split(payload)?;
                let is_known = any_key(key) && fixed.held <= 1;
                is_known.then_some(Self::Answer { fixed, key })?
            }
            Op::CacheReport => Self::Report(CacheReports::parse(payload)?),
            Op::CacheRules => Self::Rules(CacheRules::parse(payload)?),
            Op::CacheRuled => payload.is_empty().then_some(Self::Ruled)?,
            _ => return None,
        })
    }
}

/// A body that nothing follows.
fn whole<T>((fixed, rest): (T, &[u8])) -> Option<T> {
    rest.is_empty().then_some(fixed)
}

/// The keys of a CACHE_REPORT; one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheReports<'a> {
    bytes: &'a [u8],
}

impl<'a> CacheReports<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            (_, _, rest) = Self::split(rest)?;
        }
        (!bytes.is_empty()).then_some(Self { bytes })
    }

    fn split(bytes: &'a [u8]) -> Option<(CacheReportBody, &'a [u8], &'a [u8])> {
        let (fixed, rest) = CacheReportBody::split(bytes)?;
        let key_len = usize::from(fixed.key_len);
        let (key, rest) = rest.split_at_checked(key_len)?;
        (1..=KEY_MAX).contains(&key_len).then_some((fixed, key, rest))
    }

    /// Where each key lies and how much it is read, and the key.
    pub fn iter(&self) -> impl Iterator<Item = (CacheReportBody, &'a [u8])> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (fixed, key, after) = Self::split(rest)?;
            rest = after;
            Some((fixed, key))
        })
    }

    /// Appends a key to the last of some payloads, or to a new one if that has no room for it.
    pub fn add(payloads: &mut Vec<Vec<u8>>, fixed: &CacheReportBody, key: &[u8]) {
        if !payloads.last_mut().is_some_and(|last| Self::push(last, fixed, key)) {
            let mut payload = Vec::new();
            Self::push(&mut payload, fixed, key);
            payloads.push(payload);
        }
    }

    /// Appends a key to a payload, if the datagram has room for it.
    pub fn push(out: &mut Vec<u8>, fixed: &CacheReportBody, key: &[u8]) -> bool {
        let len = CacheReportBody::LEN + key.len();
        let fits = HEADER_LEN + out.len() + len <= FILL_MAX;
        if fits {
            let key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
            out.extend_from_slice(&CacheReportBody { key_len, ..*fixed }.to_bytes());
            out.extend_from_slice(key);
        }
        fits
    }
}

/// A change of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRule {
    /// Whether reads of the key go to the cache from here on; else they go to its tail.
    pub adds: bool,
    /// The key's keyspace.
    pub keyspace: u16,
    /// The key's hash.
    pub keyhash: u64,
    /// The bits of its match value that stand in its content addresses, if it has any.
    pub match_bits: Option<u64>,
}

/// What a changed rule of a key with a content address begins with, less 0 or 1.
const PLACED: u8 = 2;

impl CacheRule {
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        if *bytes.first()? < PLACED {
            let (body, rest) = CacheRuleBody::split(bytes)?;
            let CacheRuleBody { adds, keyspace, keyhash } = body;
            return Some((Self { adds: adds != 0, keyspace, keyhash, match_bits: None }, rest));
        }
        let (body, rest) = CacheRulePlacedBody::split(bytes)?;
        let CacheRulePlacedBody { adds, keyspace, keyhash, match_bits } = body;
        let adds = adds.checked_sub(PLACED).filter(|adds| *adds <= 1)? != 0;
        Some((Self { adds, keyspace, keyhash, match_bits: Some(match_bits) }, rest))
    }
}

/// The changes in a CACHE_RULES; there may be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules<'a> {
    bytes: &'a [u8],
}

/// Changes that one CACHE_RULES can name, if none of them says where the key lies.
pub const CACHE_RULES_MAX: usize = (PACKET_MAX - HEADER_LEN) / CacheRuleBody::LEN;

/// Changes that one CACHE_RULES has room for, whatever they say.
pub const CACHE_RULES_FIT: usize = (FILL_MAX - HEADER_LEN) / CacheRulePlacedBody::LEN;

impl<'a> CacheRules<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            (_, rest) = CacheRule::split(rest)?;
        }
        Some(Self { bytes })
    }

    /// The changes, in the order of the packet.
    pub fn iter(&self) -> impl Iterator<Item = CacheRule> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (rule, after) = CacheRule::split(rest)?;
            rest = after;
            Some(rule)
        })
    }

    /// Appends a change to a payload.
    pub fn push(out: &mut Vec<u8>, rule: &CacheRule) {
        let CacheRule { adds, keyspace, keyhash, match_bits } = *rule;
        let adds = u8::from(adds);
        match match_bits {
            None => out.extend_from_slice(&CacheRuleBody { adds, keyspace, keyhash }.to_bytes()),
            Some(match_bits) => {
                let adds = PLACED + adds;
                let body = CacheRulePlacedBody { adds, keyspace, keyhash, match_bits };
                out.extend_from_slice(&body.to_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_as_they_were_written_and_only_whole() {
        let mut payload = Vec::new();
        let fixed = CacheReportBody { rate: 7, ..CacheReportBody::default() };
        assert!(CacheReports::push(&mut payload, &fixed, b"one"));
        assert!(CacheReports::push(&mut payload, &fixed, b"other"));
        let parsed = CacheReports::parse(&payload).unwrap();
        let keys: Vec<(u32, &[u8])> = parsed.iter().map(|(it, key)| (it.rate, key)).collect();
        assert_eq!(keys, [(7, &b"one"[..]), (7, b"other")]);
        payload.pop();
        assert_eq!(CacheReports::parse(&payload), None);
        assert_eq!(CacheReports::parse(&[]), None);
        let full = &mut vec_of(FILL_MAX - HEADER_LEN - CacheReportBody::LEN);
        assert!(!CacheReports::push(full, &fixed, b"k"), "there is no room for a key");
        let mut payloads = [full.clone()].to_vec();
        CacheReports::add(&mut payloads, &fixed, b"one");
        CacheReports::add(&mut payloads, &fixed, b"other");
        let keys = CacheReports::parse(&payloads[1]).unwrap().iter().count();
        assert_eq!((payloads.len(), keys), (2, 2), "what has no room goes to another payload");
    }

    #[test]
    fn rules_are_read_as_they_were_written_and_only_known_ones() {
        let mut payload = Vec::new();
        let rule = CacheRule { adds: true, keyspace: 3, keyhash: 9, match_bits: None };
        let placed = CacheRule { match_bits: Some(5), ..rule };
        let gone = |rule: CacheRule| CacheRule { adds: false, ..rule };
        let rules = [rule, gone(placed), placed, gone(rule)];
        rules.iter().for_each(|rule| CacheRules::push(&mut payload, rule));
        assert!(CacheRules::parse(&payload).unwrap().iter().eq(rules));
        assert_eq!(CacheRules::parse(&payload[1..]), None);
        assert_eq!(CacheRules::parse(&payload[..payload.len() - 1]), None);
        payload[0] = 4;
        assert_eq!(CacheRules::parse(&payload), None);
    }

    fn vec_of(len: usize) -> Vec<u8> {
        core::iter::repeat_n(0, len).collect()
    }
}
