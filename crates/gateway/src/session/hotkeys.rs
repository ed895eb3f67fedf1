//! HOTKEYS, in the form of Redis 8.6. What is counted differs, and so do the names of the lists:
//! Redis samples processor time and bytes while somebody has told it to, here requests of all
//! clients of the cluster are counted all the time. So START and STOP say only what GET is about.

use super::words::{Response, SYNTAX, error, integer};
use crate::Reply;
use crate::command::HotKeysCommand;
use crate::hot::HotKey;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Slots of a Redis Cluster, all of which are meant.
const LAST_SLOT: u64 = 16_383;

pub(super) fn run(
    shared: &Arc<Shared>,
    database: u8,
    command: HotKeysCommand,
    args: &[Bytes],
) -> Response {
    let now = shared.now();
    match command {
        HotKeysCommand::Get => return get(shared, database),
        HotKeysCommand::Start => start(shared, args).unwrap_or_else(|reply| reply),
        HotKeysCommand::Stop if shared.tracking.stop(now, &shared.stats) => Reply::OK,
        HotKeysCommand::Stop => Reply::Null,
        HotKeysCommand::Reset if shared.tracking.reset(now) => Reply::OK,
        HotKeysCommand::Reset => {
            Reply::error("ERR hotkey tracking session in progress, stop tracking first")
        }
    }
    .into()
}

/// START METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio] [SLOTS ...].
fn start(shared: &Shared, args: &[Bytes]) -> Result<Reply, Reply> {
    let in_range = |at: usize, most: i64, text: &'static str| match integer(args, at) {
        Some(number) if (1..=most).contains(&number) => Ok(number.unsigned_abs()),
        _ => Err(Reply::error(text)),
    };
    if !args.get(2).is_some_and(|word| word.eq_ignore_ascii_case(b"metrics")) {
        return Err(Reply::error("ERR METRICS parameter is required"));
    }
    let metrics = in_range(3, 2, "ERR METRICS count must be > 0 and <= 2")?;
    let options = 4 + usize::try_from(metrics).unwrap_or(usize::MAX);
    let Some(names) = args.get(4..options) else {
        let text = "ERR METRICS count does not match number of metric types provided";
        return Err(Reply::error(text));
    };
    let times =
        |name: &str| names.iter().filter(|it| it.eq_ignore_ascii_case(name.as_bytes())).count();
    for name in ["CPU", "NET"] {
        if times(name) > 1 {
            return Err(error(format!("ERR METRICS {name} defined more than once!")));
        }
    }
    if times("CPU") + times("NET") == 0 {
        return Err(Reply::error("ERR METRICS no valid metrics passed. Supported: CPU|NET"));
    }
    let (mut count, mut lasts) = (10, None);
    for at in (options..args.len()).step_by(2) {
        match args.get(at).map(|word| word.to_ascii_lowercase()).as_deref() {
            Some(b"count") => count = in_range(at + 1, 64, "ERR COUNT must be between 1 and 64")?,
            Some(b"duration") => {
                let text = "ERR DURATION must be between 1 and 1000000";
                lasts = Some(Duration::from_secs(in_range(at + 1, 1_000_000, text)?));
            }
            // All requests are counted, whatever is asked for.
            Some(b"sample") => {
                in_range(at + 1, i32::MAX.into(), "ERR SAMPLE ratio must be positive")?;
            }
            Some(b"slots") => {
                let text = "ERR SLOTS parameter cannot be used in non-cluster mode";
                return Err(Reply::error(text));
            }
            _ => return Err(SYNTAX),
        }
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if shared.tracking.start(shared.now(), &shared.stats, count, lasts) {
        Ok(Reply::OK)
    } else {
        Err(Reply::error("ERR hotkey tracking session already in progress"))
    }
}

fn get(shared: &Arc<Shared>, database: u8) -> Response {
    let Some(hot) = shared.database(database).database.hot.clone() else {
        let text = "ERR the hot keys are known to controllers, and this gateway was told of none";
        return error(text.into()).into();
    };
    let shared = Arc::clone(shared);
    Response::Later(Box::pin(async move {
        match hot.list().await {
            // Redis answers so that replies of several servers can be put together.
            Ok(list) => Reply::Array(vec![describe(&shared, &list)]),
            Err(reply) => reply,
        }
    }))
}

fn describe(shared: &Shared, list: &[HotKey]) -> Reply {
    let (now, day) = (shared.now(), shared.time_of_day());
    let (watch, work) = shared.tracking.look(now, &shared.stats);
    let millis = |time: Duration| number(u64::try_from(time.as_millis()).unwrap_or(0));
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    let ranking = |figure: fn(&HotKey) -> u64| ranking(list, watch.count, figure);
    let slots = Reply::Array(vec![number(0), number(LAST_SLOT)]);
    Reply::Map(vec![
        pair("tracking-active", Reply::Integer(watch.is_active(now).into())),
        // Every request counts.
        pair("sample-ratio", Reply::Integer(1)),
        pair("selected-slots", Reply::Array(vec![slots])),
        pair("all-commands-all-slots-us", number(work.micros)),
        pair("net-bytes-all-commands-all-slots", number(work.bytes)),
        pair("collection-start-time-unix-ms", millis((day + watch.began).saturating_sub(now))),
        pair("collection-duration-ms", millis(watch.lasted(now))),
        pair("by-requests-per-second", ranking(HotKey::requests)),
        pair("by-reads-per-second", ranking(|it| it.reads)),
        pair("by-writes-per-second", ranking(|it| it.writes)),
        pair("copies", ranking(|it| it.copies)),
    ])
}

/// Keys and their figures in turn, the largest first; without those of which there is none.
fn ranking(list: &[HotKey], count: usize, figure: fn(&HotKey) -> u64) -> Reply {
    let mut ranked: Vec<(Bytes, u64)> =
        list.iter().map(|it| (it.key.clone(), figure(it))).filter(|(_, it)| *it > 0).collect();
    ranked.sort_by(|(_, one), (_, other)| other.cmp(one));
    ranked.truncate(count);
    let words = ranked.into_iter().flat_map(|(key, figure)| [Reply::Bulk(key), number(figure)]);
    Reply::Array(words.collect())
}

fn number(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
