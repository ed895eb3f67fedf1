//! Numbers: the INCR family, and what Redis takes for an integer.

use super::Store;
use super::access::Change;
use super::errors::{Answer, NOT_A_FLOAT, NOT_AN_INTEGER, not_written};
use super::extended::Extended;
use super::integers::{integer, negated};
use super::limits;
use crate::Reply;
use bytes::Bytes;
use client::{Expiry, IncrReply};

/// A sum that is no 64-bit number.
const OVERFLOW: Reply = Reply::error("ERR increment or decrement would overflow");

/// What an addition replies.
pub(super) fn summed(added: IncrReply) -> Answer {
    match added {
        IncrReply::Sum { sum, .. } => Ok(Reply::Integer(sum)),
        IncrReply::NotANumber => Err(NOT_AN_INTEGER),
        IncrReply::Overflow => Err(OVERFLOW),
    }
}

impl Store {
    /// INCR, DECR, INCRBY and DECRBY: the cluster has an operation for that, with the same rules.
    pub(super) async fn add(&self, key: &[u8], delta: i64) -> Answer {
        limits::key(key)?;
        if self.view.is_some() {
            return self
                .update(key, |found| {
                    let before = match found {
                        Some(found) => integer(&found.value).ok_or(NOT_AN_INTEGER)?,
                        None => 0,
                    };
                    let sum = before.checked_add(delta).ok_or(OVERFLOW)?;
                    let text = sum.to_string().into_bytes();
                    Ok((Change::Write(text.into(), Expiry::Keep), Reply::Integer(sum)))
                })
                .await;
        }
        summed(self.space.incr(key, delta).await.into_result().map_err(not_written)?)
    }

    /// INCRBY.
    pub(super) async fn add_given(&self, key: &[u8], delta: &[u8]) -> Answer {
        self.add(key, integer(delta).ok_or(NOT_AN_INTEGER)?).await
    }

    /// DECRBY.
    pub(super) async fn subtract_given(&self, key: &[u8], delta: &[u8]) -> Answer {
        self.add(key, negated(delta)?).await
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
