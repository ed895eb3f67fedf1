//! LATENCY and SLOWLOG: how long commands took.

use super::words::{NOT_AN_INTEGER, integer, quoted};
use crate::Reply;
use crate::command::{Latency, Slowlog};
use crate::shared::Shared;
use crate::slowlog::Slow;
use crate::stats::within;
use bytes::Bytes;
use hdrhistogram::Histogram;

pub(super) fn run_latency(shared: &Shared, command: Latency, args: &[Bytes]) -> Reply {
    match command {
        Latency::Histogram => histograms(shared, args.get(2..).unwrap_or_default()),
        // Events are what Redis itself was slow at, such as saving; there is none of that here.
        Latency::Latest => Reply::Array(Vec::new()),
        Latency::Reset => Reply::Integer(0),
    }
}

fn histograms(shared: &Shared, names: &[Bytes]) -> Reply {
    let wanted = |name: &str| {
        let within = |asked: &Bytes| {
            let asked = quoted(asked).to_ascii_lowercase();
            name.strip_prefix(asked.as_str()).is_some_and(|it| it.is_empty() || it.starts_with('|'))
        };
        names.is_empty() || names.iter().any(within)
    };
    let figures = shared.stats.commands();
    let figures = figures.iter().filter(|figures| wanted(figures.name));
    let rows = figures.filter_map(|figures| {
        let latency = figures.latency.as_ref()?;
        let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
        let fields = vec![
            pair("calls", count(latency.len())),
            pair("histogram_usec", Reply::Map(doublings(latency))),
        ];
        Some((Reply::bulk(figures.name), Reply::Map(fields)))
    });
    Reply::Map(rows.collect())
}

/// How many calls took at most 1, 2, 4, ... microseconds, up to where all did.
fn doublings(latency: &Histogram<u64>) -> Vec<(Reply, Reply)> {
    let mut rows = Vec::new();
    let mut last = 0;
    for bound in (0..u64::BITS).map(|power| 1u64 << power) {
        let below = within(latency, bound);
        if below > last {
            rows.push((count(bound), count(below)));
            last = below;
        }
        if below == latency.len() {
            break;
        }
    }
    rows
}

fn count(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Slow commands that SLOWLOG GET tells of if it is not said how many: what Redis does.
const SLOW_COUNT: usize = 10;

pub(super) fn run_slowlog(shared: &Shared, command: Slowlog, args: &[Bytes]) -> Reply {
    match command {
        Slowlog::Get => {
            let wanted = match (args.get(2), integer(args, 2)) {
                (None, _) => Some(SLOW_COUNT),
                (Some(_), Some(-1)) => None,
                (Some(_), Some(number)) => match usize::try_from(number) {
                    Ok(number) => Some(number),
                    Err(_) => {
                        let text = "ERR count should be greater than or equal to -1";
                        return Reply::error(text);
                    }
                },
                (Some(_), None) => return NOT_AN_INTEGER,
            };
            Reply::Array(shared.slowlog.newest(wanted).into_iter().map(describe).collect())
        }
        Slowlog::Len => Reply::Integer(i64::try_from(shared.slowlog.len()).unwrap_or(i64::MAX)),
        Slowlog::Reset => {
            shared.slowlog.clear();
            Reply::OK
        }
    }
}

fn describe(slow: Slow) -> Reply {
    Reply::Array(vec![
        Reply::Integer(slow.id),
        count(slow.unix_seconds),
        count(u64::try_from(slow.took.as_micros()).unwrap_or(u64::MAX)),
        Reply::Array(slow.args.into_iter().map(Reply::Bulk).collect()),
        Reply::bulk(slow.peer.to_string()),
        Reply::Bulk(slow.name),
    ])
}
