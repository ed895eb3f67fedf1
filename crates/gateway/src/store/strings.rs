//! Whole values: GET, SET with all its options, and the commands that are SET by other names.

use super::access::Change;
use super::errors::{Answer, not_read};
use super::looked::WHOLE_MAX;
use super::terms::{Condition, Life, Seen, SetOptions, set_terms, value_or_null};
use super::times::When;
use super::{Store, limits};
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expiry, Value};

impl Store {
    /// GET.
    pub(super) async fn get_value(&self, key: &[u8]) -> Answer {
        self.find(key, true).await.map(|(reply, _)| reply)
    }

    /// GET, and what its reply tells of the key. Values that stream are read if `streams`.
    pub(crate) async fn get_and_tell(&self, key: &[u8], streams: bool) -> (Reply, Seen) {
        self.find(key, streams).await.unwrap_or_else(|error| (error, Seen::Nothing))
    }

    async fn find(&self, key: &[u8], streams: bool) -> Answer<(Reply, Seen)> {
        if self.view.is_some() {
            return Box::pin(self.find_long(key)).await;
        }
        limits::key(key)?;
        match self.space.peek(key).await.into_result().map_err(not_read)? {
            None => Ok((Reply::Null, Seen::Absent)),
            Some(found) => self.tell_found(key, found, streams).await,
        }
    }

    /// The same, given what one request has found.
    pub(crate) async fn tell(&self, key: &[u8], found: Value, streams: bool) -> (Reply, Seen) {
        let told = self.tell_found(key, found, streams).await;
        told.unwrap_or_else(|error| (error, Seen::Nothing))
    }

    async fn tell_found(&self, key: &[u8], found: Value, streams: bool) -> Answer<(Reply, Seen)> {
        if !found.big {
            return Ok((Reply::Bulk(found.value.into()), Seen::Version(found.version)));
        }
        if !streams && found.whole_len(key).is_some_and(|len| len > WHOLE_MAX) {
            return Ok((Reply::Null, Seen::Unread));
        }
        Box::pin(self.find_long(key)).await
    }

    async fn find_long(&self, key: &[u8]) -> Answer<(Reply, Seen)> {
        let found = self.bytes(key, |len| 0..len).await?;
        let absent = (Reply::Null, Seen::Absent);
        Ok(found.map_or(absent, |(reply, version)| (reply, Seen::Version(version))))
    }

    /// SET with its options.
    pub(super) async fn set(&self, key: &[u8], value: &[u8], arguments: &[Bytes]) -> Answer {
        let (condition, get, expiry) = set_terms(arguments)?;
        if !get {
            match condition {
                Condition::None => return self.put(key, value, expiry).await.map(|()| Reply::OK),
                Condition::Absent => {
                    let written = Box::pin(self.put_new(key, value, expiry)).await?;
                    return Ok(if written { Reply::OK } else { Reply::Null });
                }
                Condition::Present | Condition::Equal(_) => {}
            }
        }
        Box::pin(self.update(key, |found| {
            let (holds, reply) = condition.judge(get, found);
            let change = if holds { Change::Write(value.into(), expiry) } else { Change::None };
            Ok((change, reply))
        }))
        .await
    }

    /// SETNX.
    pub(super) async fn set_new(&self, key: &[u8], value: &[u8]) -> Answer {
        let written = self.put_new(key, value, Expiry::Never).await?;
        Ok(Reply::Integer(written.into()))
    }

    /// SETEX and PSETEX.
    pub(super) async fn set_for(
        &self,
        command: Keyed,
        when: When,
        key: &[u8],
        time: &[u8],
        value: &[u8],
    ) -> Answer {
        let expiry = when.of_value(command, time)?;
        self.put(key, value, expiry).await.map(|()| Reply::OK)
    }

    /// GETSET.
    pub(super) async fn get_and_set(&self, key: &[u8], value: &[u8]) -> Answer {
        self.update(key, |found| {
            Ok((Change::Write(value.into(), Expiry::Never), value_or_null(found)))
        })
        .await
    }

    /// GETEX.
    pub(super) async fn get_and_expire(&self, key: &[u8], arguments: &[Bytes]) -> Answer {
        let Some(life) = SetOptions::parse(Keyed::GetEx, arguments)?.life else {
            return self.get_value(key).await;
        };
        self.update(key, |found| {
            let until = match life {
                // Of a time that is wrong, Redis says nothing where there is no value.
                Life::Until(when, time) if found.is_some() => {
                    Some(when.of_value(Keyed::GetEx, time)?)
                }
                Life::Keep | Life::Persist | Life::Until(..) => None,
            };
            let now_ms = found.and_then(|found| self.now_ms(found));
            let now_ms = now_ms.and_then(|now| u64::try_from(now).ok()).unwrap_or(0);
            let change = match (found, until) {
                (None, _) | (Some(Value { expiry_ms: 0, .. }), None) => Change::None,
                (Some(_), None) => Change::Expire(Expiry::Never),
                (Some(_), Some(Expiry::AtMs(at_ms))) if at_ms <= now_ms => Change::Delete,
                (Some(_), Some(until)) => Change::Expire(until),
            };
            Ok((change, value_or_null(found)))
        })
        .await
    }

    /// GETDEL.
    pub(super) async fn get_and_delete(&self, key: &[u8]) -> Answer {
        self.update(key, |found| {
            let change = found.map_or(Change::None, |_| Change::Delete);
            Ok((change, value_or_null(found)))
        })
        .await
    }

    /// DELIFEQ.
    pub(super) async fn delete_if(&self, key: &[u8], expected: &[u8]) -> Answer {
        self.update(key, |found| {
            Ok(if found.is_some_and(|found| found.value == expected) {
                (Change::Delete, Reply::Integer(1))
            } else {
                (Change::None, Reply::Integer(0))
            })
        })
        .await
    }
}
