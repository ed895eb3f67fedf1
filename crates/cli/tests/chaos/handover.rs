//! What clients see while the active switch hands over to the other one, because it is asked to
//! end: nothing but a little delay.

use crate::cluster::{Cluster, Size};
use crate::folder::Folder;
use crate::probes::{Asked, NODES, SMALL, Setting, percentile, while_asked};
use client::Options;
use lab::plane::Plane;
use std::fmt;
use std::time::Duration;

/// How long requests are looked at before a switch is asked to end, and after it has.
const AROUND: Duration = Duration::from_secs(1);

/// How long keys may take to become hot and be delegated.
const DELEGATED_WAIT_MAX: Duration = Duration::from_secs(30);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Keys that stay at home.
    Home,
    /// Hot ones, whose writes go anywhere.
    Delegated,
}

impl Keys {
    fn keyspace(self) -> &'static str {
        match self {
            Self::Home => {
                "[[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 6\nreplicas = 3\n\
                 hot = \"off\"\n"
            }
            Self::Delegated => {
                "[[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 6\nreplicas = 1\n"
            }
        }
    }

    /// Waits until most keys are as they are to be.
    fn wait(self, cluster: &Cluster, keys: u8) {
        if self == Self::Home {
            return;
        }
        let wanted = usize::from(keys).div_ceil(2);
        let waited = cluster.watch.wait_for(DELEGATED_WAIT_MAX, || {
            let hot = cluster.status()?.hot;
            let generations = hot.iter().filter_map(|it| it.generation);
            let delegated = generations.filter(|it| it.delegation.is_some()).count();
            let enough = delegated >= wanted;
            enough.then_some(()).ok_or_else(|| format!("{delegated} of {keys} keys are delegated"))
        });
        waited.unwrap_or_else(|why| panic!("{why}"));
    }
}

/// What a switch says when the other one has taken over.
const HANDED_OVER: &str = "nobody waits for this switch any more";

/// What became of requests around hand-overs.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// From the signal to the end of the process, each time.
    pub(crate) times: Vec<Duration>,
    /// How long requests took.
    took: Vec<Duration>,
    /// Why requests failed.
    pub(crate) failed: Vec<String>,
    /// Datagrams that switches dealt with in the kernel, if they are there.
    pub(crate) in_kernel: u64,
}

/// Asks the active switch to end, again and again, and starts it anew each time.
pub(crate) fn measure(plane: Plane, keys: Keys, times: u8, folder: Folder) -> Handed {
    let setting =
        Setting { size: Size { plane, ..Size::new(NODES, 2) }, keyspace: keys.keyspace(), ..SMALL };
    let deadline = Options::default().deadline;
    while_asked(&setting, folder, deadline, |cluster, requests| {
        let mut handed = Handed::default();
        let watch = cluster.watch.clone();
        for time in 0..times {
            cluster.become_complete(format_args!("before time {time}"));
            if plane == Plane::Xdp {
                handed.in_kernel += cluster.in_kernel();
            }
            keys.wait(cluster, setting.keys);
            let active = cluster.active_switch();
            let begun = watch.now();
            watch.wait_until(begun + AROUND);
            let asked = watch.now();
            let printed = cluster.terminate(active);
            handed.times.push(watch.now().since(asked));
            assert!(printed.contains(HANDED_OVER), "{active}: {printed}");
            let end = watch.now() + AROUND;
            // Whoever asked before that has its answer, or none, by then.
            watch.wait_until(end + deadline);
            let requests = requests.try_iter().filter(|it| (begun..end).contains(&it.called));
            for Asked { prober, called, returned, failure } in requests {
                handed.took.push(returned.since(called));
                handed.failed.extend(failure.map(|why| format!("prober {prober}: {why}")));
            }
            cluster.revive(active);
        }
        handed
    })
}

impl Handed {
    /// Requests that were looked at.
    pub(crate) fn requests(&self) -> usize {
        self.took.len()
    }
}

impl fmt::Display for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |times: &[Duration], percent| percentile(times, percent).as_millis();
        write!(
            f,
            "{} hand-overs, p50 {} ms, longest {} ms; {} requests, {} failed, p99 {} ms, longest \
             {} ms",
            self.times.len(),
            ms(&self.times, 50),
            ms(&self.times, 100),
            self.requests(),
            self.failed.len(),
            ms(&self.took, 99),
            ms(&self.took, 100)
        )?;
        self.failed.first().map_or(Ok(()), |why| write!(f, "; {why}"))
    }
}
