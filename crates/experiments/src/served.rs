//! What each node of a rack has served, by its own counters.

use anyhow::anyhow;
use console::exit::Failure;
use machine::Work;
use wire::layout::metric;
use wire::{DropReason, Op};

/// Counts of one node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Requests, and what else takes a server's time, of which the service has ended.
    pub(crate) work: u64,
    /// Datagrams that found the queue full.
    pub(crate) dropped: u64,
}

impl Served {
    /// Reads the counts from a node's metrics.
    pub(crate) fn of(metrics: &str) -> Self {
        let work = Op::ALL.into_iter().filter(|op| Work::of_op(*op).is_some());
        let sum = |family: &str, label: &str, values: &mut dyn Iterator<Item = &str>| {
            values.map(|value| count(metrics, family, &format!("{label}=\"{value}\""))).sum()
        };
        let full = DropReason::QueueFull.name();
        Self {
            work: sum(metric::NODE_REQUESTS.name, "op", &mut work.map(Op::name)),
            dropped: sum(metric::NODE_DROPPED.name, "reason", &mut std::iter::once(full)),
        }
    }

    /// What was served since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            work: self.work.saturating_sub(before.work),
            dropped: self.dropped.saturating_sub(before.dropped),
        }
    }
}

/// Waits until requests are answered in a way of this name: coordinators, for one, learn of a
/// keyspace later. Looks as often as it takes, each time for as long as an answer is waited for.
pub(crate) fn wait_served(
    way: &str,
    is_served: impl Fn() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    for _ in 0..SERVED_TRIES {
        if is_served()? {
            return Ok(());
        }
    }
    Err(Failure::Other(anyhow!("requests by {way} are not answered")))
}

/// How often that is looked at.
const SERVED_TRIES: u32 = 20;

/// Reads that a cache has answered, by its metrics.
pub(crate) fn cache_hits(metrics: &str) -> u64 {
    count(metrics, metric::CACHE_READS.name, "how=\"hit\"")
}

/// The sum of all counters of a family with this label.
fn count(metrics: &str, family: &str, label: &str) -> u64 {
    let counter = |line: &str| {
        let (labels, value) =
            line.strip_prefix(family)?.strip_prefix("_total{")?.split_once("} ")?;
        labels.split(',').any(|it| it == label).then(|| value.trim().parse::<u64>().ok())?
    };
    metrics.lines().filter_map(counter).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "\
# TYPE keyway_node_requests counter
keyway_node_requests_total{node=\"3\",op=\"get\"} 20
keyway_node_requests_total{node=\"3\",op=\"chain_write\"} 4
keyway_node_requests_total{node=\"3\",op=\"chain_ack\"} 100
keyway_node_dropped_total{node=\"3\",reason=\"queue_full\"} 7
keyway_node_dropped_total{node=\"3\",reason=\"bad_op\"} 9
";

    #[test]
    fn what_is_never_served_is_given_up() {
        let tries = std::cell::Cell::new(0);
        let served_at = |at| {
            tries.set(0);
            wait_served("switch", || Ok(tries.replace(tries.get() + 1) == at))
        };
        assert!(served_at(3).is_ok() && tries.get() == 4);
        assert!(served_at(SERVED_TRIES).is_err() && tries.get() == SERVED_TRIES);
    }

    #[test]
    fn work_is_counted_and_talk_between_nodes_is_not() {
        let before = Served { work: 10, dropped: 7 };
        let served = Served::of(METRICS);
        assert_eq!(served, Served { work: 24, dropped: 7 });
        assert_eq!(served.since(before), Served { work: 14, dropped: 0 });
    }
}
