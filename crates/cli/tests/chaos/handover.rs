//! What clients see while the active switch hands over to the other one, because it is asked to
//! end: nothing but a little delay.

use crate::cluster::Size;
use crate::folder::Folder;
use crate::probes::{Asked, NODES, SMALL, Setting, percentile, while_asked};
use client::Options;
use lab::plane::Plane;
use std::fmt;
use std::time::Duration;

/// How long requests are looked at before a switch is asked to end, and after it has.
const AROUND: Duration = Duration::from_secs(1);

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
pub(crate) fn measure(plane: Plane, times: u8, folder: Folder) -> Handed {
    let setting = Setting {
        size: Size { plane, ..Size::new(NODES, 2) },
        // Who writes a hot key may not learn how that ended when a switch hands over (D47).
        keyspace: "[[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 6\n\
                   replicas = 3\nhot = \"off\"\n",
        ..SMALL
    };
    let deadline = Options::default().deadline;
    while_asked(&setting, folder, deadline, |cluster, requests| {
        let mut handed = Handed::default();
        let watch = cluster.watch.clone();
        for time in 0..times {
            cluster.become_complete(format_args!("before time {time}"));
            if plane == Plane::Xdp {
                handed.in_kernel += cluster.in_kernel();
            }
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
