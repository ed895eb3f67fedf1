//! Parts of values: APPEND, GETRANGE, SETRANGE, STRLEN.

use super::Store;
use super::access::{Change, Step};
use super::errors::{Answer, NOT_AN_INTEGER};
use super::integers::integer;
use super::limits;
use crate::Reply;
use bytes::Bytes;
use client::Expiry;

impl Store {
    /// STRLEN.
    pub(super) async fn len(&self, key: &[u8]) -> Answer {
        let len = self.look(key).await?.map_or(0, |found| found.len());
        Ok(length(usize::try_from(len).unwrap_or(usize::MAX)))
    }

    /// APPEND.
    pub(super) async fn append(&self, key: &[u8], tail: &[u8]) -> Answer {
        self.update_with(key, tail.len(), |found| {
            let mut value = found.map_or_else(Vec::new, |found| found.value.clone());
            let len = limits::string(value.len().checked_add(tail.len()))?;
            limits::changed(key, len)?;
            value.extend_from_slice(tail);
            Ok(written(value))
        })
        .await
    }

    /// GETRANGE and SUBSTR: from one index to another, both inclusive, negative from the end.
    pub(super) async fn part(&self, key: &[u8], first: &[u8], last: &[u8]) -> Answer {
        let first = integer(first).ok_or(NOT_AN_INTEGER)?;
        let last = integer(last).ok_or(NOT_AN_INTEGER)?;
        let wanted = |len| {
            let (start, end) = bounds(first, last, usize::try_from(len).unwrap_or(usize::MAX));
            start.min(end) as u64..end as u64
        };
        let found = self.bytes(key, wanted).await?;
        Ok(found.map_or(Reply::Bulk(Bytes::new()), |(reply, _)| reply))
    }

    /// SETRANGE: what lies between the end and the offset becomes zeros.
    pub(super) async fn set_part(&self, key: &[u8], offset: &[u8], part: &[u8]) -> Answer {
        let offset = integer(offset).ok_or(NOT_AN_INTEGER)?;
        let out_of_range = Reply::error("ERR offset is out of range");
        let offset = usize::try_from(offset).map_err(|_| out_of_range)?;
        let mut end = 0;
        if !part.is_empty() {
            end = limits::string(offset.checked_add(part.len()))?;
            // Before room is made for it.
            limits::changed(key, end)?;
        }
        self.update_with(key, end, |found| {
            let before = found.map_or(&[][..], |found| &found.value);
            if part.is_empty() {
                return Ok((Change::None, length(before.len())));
            }
            limits::changed(key, end.max(before.len()))?;
            let mut value = before.to_vec();
            value.resize(end.max(before.len()), 0);
            let place = value.get_mut(offset..end).expect("the value was made as long");
            place.copy_from_slice(part);
            Ok(written(value))
        })
        .await
    }
}

/// Writes the value, keeps the expiry, and replies its length.
fn written(value: Vec<u8>) -> Step<'static> {
    let len = length(value.len());
    (Change::Write(value.into(), Expiry::Keep), len)
}

pub(super) fn length(len: usize) -> Reply {
    Reply::Integer(i64::try_from(len).unwrap_or(i64::MAX))
}

/// Where a part begins and ends (exclusive), in a value of that length.
fn bounds(first: i64, last: i64, len: usize) -> (usize, usize) {
    let from_end = |index: i64| {
        let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        if index < 0 { len.saturating_sub(back) } else { back }
    };
    // Both before the beginning are the first byte, unless they are the wrong way round.
    if first < 0 && last < 0 && first > last {
        return (0, 0);
    }
    (from_end(first), from_end(last).saturating_add(1).min(len))
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn parts_are_those_of_redis() {
        let part = |first, last| {
            let (start, end) = bounds(first, last, 5);
            "hello".get(start..end).unwrap_or("")
        };
        for (first, last, expected) in [
            (0, -1, "hello"),
            (1, 3, "ell"),
            (-3, -1, "llo"),
            (-3, -4, ""),
            (3, 1, ""),
            (5, 9, ""),
            (0, i64::MAX, "hello"),
            (i64::MIN, i64::MAX, "hello"),
            (-9, -7, "h"),
            (i64::MAX, i64::MAX, ""),
        ] {
            assert_eq!(part(first, last), expected, "{first} {last}");
        }
    }
}
