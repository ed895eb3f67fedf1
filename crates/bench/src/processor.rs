//! Processor time of a run by who spends it, where all of them are threads of this process.

use super::coordinator::COORDINATOR;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Processor time so far, by thread.
#[derive(Debug)]
pub(crate) struct Threads(BTreeMap<String, (String, Duration)>);

/// Microseconds of processor time for each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProcessorTime {
    /// Of the threads that put load on the cluster.
    pub clients_us: f64,
    /// Of the switch, if it is a program.
    pub switch_us: f64,
    /// Of all nodes.
    pub nodes_us: f64,
    /// Of all coordinators.
    pub coordinators_us: f64,
}

/// What a thread does, which its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Switch,
    Node,
    Coordinator,
    /// Those that put load on the cluster, the controller, and whatever else there is.
    Other,
}

impl Who {
    fn of(name: &str) -> Self {
        if name.starts_with("switch-") {
            Self::Switch
        } else if name.starts_with("node-") {
            Self::Node
        } else if name.starts_with(COORDINATOR) {
            Self::Coordinator
        } else {
            Self::Other
        }
    }
}

impl Threads {
    /// What those that there are have spent; nothing where the system does not say.
    pub(crate) fn now() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let of = |path: &Path| {
            let name = fs::read_to_string(path.join("comm")).ok()?;
            let text = fs::read_to_string(path.join("schedstat")).ok()?;
            let nanos = text.split_whitespace().next()?.parse().ok()?;
            Some((name.trim().to_owned(), Duration::from_nanos(nanos)))
        };
        let known = tasks.filter_map(|task| {
            let path = task.path();
            Some((path.display().to_string(), of(&path)?))
        });
        Self(known.collect())
    }

    /// What has been spent since an earlier look, shared out to so many operations. What threads of
    /// clients have spent they say themselves, for they end before that.
    pub(crate) fn since(&self, before: &Self, clients: Duration, ops: u64) -> ProcessorTime {
        let mut time =
            ProcessorTime { clients_us: micros(clients, ops), ..ProcessorTime::default() };
        for (path, (name, now)) in &self.0 {
            let before = before.0.get(path).map_or(Duration::ZERO, |(_, before)| *before);
            let spent = micros(now.saturating_sub(before), ops);
            match Who::of(name) {
                Who::Switch => time.switch_us += spent,
                Who::Node => time.nodes_us += spent,
                Who::Coordinator => time.coordinators_us += spent,
                Who::Other => {}
            }
        }
        time
    }
}

/// What this thread has spent.
pub(crate) fn of_this_thread() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanos.map_or(Duration::ZERO, Duration::from_nanos)
}

fn micros(spent: Duration, ops: u64) -> f64 {
    spent.as_secs_f64() * 1e6 / ops.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_out_by_the_names_of_threads() {
        let threads = |nanos: u64| {
            let names =
                ["switch-0", "node-1-0", "node-2-0", "node-2-0-disk", "coordinator-7", "main"];
            let of = |name: &str| (name.to_owned(), (name.to_owned(), Duration::from_nanos(nanos)));
            Threads(names.map(of).into())
        };
        let time = threads(3_000_000).since(&threads(1_000_000), Duration::from_millis(4), 1_000);
        assert_eq!(
            time,
            ProcessorTime { clients_us: 4.0, switch_us: 2.0, nodes_us: 6.0, coordinators_us: 2.0 }
        );
    }

    #[test]
    fn this_thread_spends_time() {
        let before = of_this_thread();
        let mut sum = 0_u64;
        while of_this_thread() <= before && sum < u64::MAX {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(!Threads::now().0.is_empty());
    }
}
