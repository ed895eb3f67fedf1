//! HOTKEYS GET, in the form of Redis 8.6. What is counted differs, and so do the names of the
//! lists: Redis samples processor time and bytes while somebody has told it to, here requests of
//! all clients of the cluster are counted all the time.

use super::{Answer, error};
use crate::Reply;
use crate::hot::HotKey;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;

pub(super) fn get(shared: &Arc<Shared>) -> Answer {
    let Some(hot) = shared.hot.clone() else {
        let text = "ERR the hot keys are known to controllers, and this gateway was told of none";
        return error(text.into()).into();
    };
    let shared = Arc::clone(shared);
    Answer::Later(Box::pin(async move {
        match hot.list().await {
            Ok(list) => describe(&shared, &list),
            Err(reply) => reply,
        }
    }))
}

fn describe(shared: &Shared, list: &[HotKey]) -> Reply {
    let (now, since) = (shared.time_of_day(), shared.now());
    let millis = |time: std::time::Duration| integer(u64::try_from(time.as_millis()).unwrap_or(0));
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    Reply::Map(vec![
        pair("tracking-active", Reply::Integer(1)),
        // Every request counts.
        pair("sample-ratio", Reply::Integer(1)),
        // All of them, which is what Redis means by none.
        pair("selected-slots", Reply::Array(Vec::new())),
        pair("collection-start-time-unix-ms", millis(now.saturating_sub(since))),
        pair("collection-duration-ms", millis(since)),
        pair("by-requests-per-second", ranking(list, HotKey::requests)),
        pair("by-reads-per-second", ranking(list, |it| it.reads)),
        pair("by-writes-per-second", ranking(list, |it| it.writes)),
        pair("copies", ranking(list, |it| it.copies)),
    ])
}

/// Keys and their figures in turn, the largest first; without those of which there is none.
fn ranking(list: &[HotKey], figure: impl Fn(&HotKey) -> u64) -> Reply {
    let mut ranked: Vec<(Bytes, u64)> =
        list.iter().map(|it| (it.key.clone(), figure(it))).filter(|(_, it)| *it > 0).collect();
    ranked.sort_by(|(_, one), (_, other)| other.cmp(one));
    let words = ranked.into_iter().flat_map(|(key, figure)| [Reply::Bulk(key), integer(figure)]);
    Reply::Array(words.collect())
}

fn integer(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
