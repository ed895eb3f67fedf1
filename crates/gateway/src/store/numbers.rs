//! Numbers: the INCR family, and what Redis takes for an integer.

use super::Store;
use super::access::Change;
use super::errors::{Answer, NOT_A_FLOAT, NOT_AN_INTEGER, not_written};
use super::extended::Extended;
use super::limits;
use crate::Reply;
use bytes::Bytes;
use client::{Expiry, IncrReply};

/// The decimal form of a signed 64-bit number, and no other: no plus, no space, no leading zeros.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl Store {
    /// INCR, DECR, INCRBY and DECRBY: the cluster has an operation for that, with the same rules.
    pub(super) async fn add(&self, key: &[u8], delta: i64) -> Answer {
        limits::key(key)?;
        let overflow = Reply::error("ERR increment or decrement would overflow");
        if self.view.is_some() {
            return self
                .update(key, |found| {
                    let before = match found {
                        Some(found) => integer(&found.value).ok_or(NOT_AN_INTEGER)?,
                        None => 0,
                    };
                    let sum = before.checked_add(delta).ok_or_else(|| overflow.clone())?;
                    let text = sum.to_string().into_bytes();
                    Ok((Change::Write(text.into(), Expiry::Keep), Reply::Integer(sum)))
                })
                .await;
        }
        match self.space.incr(key, delta).await.into_result().map_err(not_written)? {
            IncrReply::Sum { sum, .. } => Ok(Reply::Integer(sum)),
            IncrReply::NotANumber => Err(NOT_AN_INTEGER),
            IncrReply::Overflow => Err(overflow),
        }
    }

    /// INCRBY.
    pub(super) async fn add_given(&self, key: &[u8], delta: &[u8]) -> Answer {
        self.add(key, integer(delta).ok_or(NOT_AN_INTEGER)?).await
    }

    /// DECRBY.
    pub(super) async fn subtract_given(&self, key: &[u8], delta: &[u8]) -> Answer {
        let delta = integer(delta).ok_or(NOT_AN_INTEGER)?;
        let overflow = Reply::error("ERR decrement would overflow");
        self.add(key, delta.checked_neg().ok_or(overflow)?).await
    }

    /// INCRBYFLOAT.
    pub(super) async fn add_float(&self, key: &[u8], delta: &[u8]) -> Answer {
        self.update(key, |found| {
            let before = match found {
                Some(found) => Extended::parse(&found.value).ok_or(NOT_A_FLOAT)?,
                None => Extended::ZERO,
            };
            let delta = Extended::parse(delta).ok_or(NOT_A_FLOAT)?;
            let nowhere = Reply::error("ERR increment would produce NaN or Infinity");
            let sum = Bytes::from((before + delta).decimal().ok_or(nowhere)?);
            Ok((Change::Write(sum.to_vec().into(), Expiry::Keep), Reply::Bulk(sum)))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn only_one_form_of_an_integer_is_taken() {
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer(b"0"), Some(0));
        for text in ["", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "1.0", "\u{663}"] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
