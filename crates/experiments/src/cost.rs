//! Processor time, by who spends it.
//!
//! The kernel delivers a packet on the time of whoever sends it: what a client spends includes the
//! switch's programs and the way into the node's socket. The sum is exact, its parts are not.

use crate::median::median;
use lab::process::Identity;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use runtime::clock::Clock;
use std::fs;
use std::time::Duration;

/// Processes of a rack, by what they do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payers {
    pub(crate) coordinator: Vec<Identity>,
    pub(crate) nodes: Vec<Identity>,
    /// What stands beside each node on its host: a store of others, or a coordinator.
    pub(crate) guests: Vec<Identity>,
    pub(crate) caches: Vec<Identity>,
    pub(crate) switch: Vec<Identity>,
}

/// Processor time in seconds. This process drives all clients, and does nothing else meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    pub(crate) clients: f64,
    pub(crate) coordinator: f64,
    /// Each node's.
    pub(crate) nodes: Vec<f64>,
    /// That of what stands beside each of them.
    pub(crate) guests: Vec<f64>,
    pub(crate) caches: f64,
    /// The switch's process, and the kernel's threads that deliver packets when nobody else has
    /// time for it.
    pub(crate) switch: f64,
}

impl Payers {
    /// What they have spent so far.
    pub(crate) fn cost(&self) -> Cost {
        let each = |processes: &[Identity]| processes.iter().map(|it| spent(it.pid)).collect();
        let all = |processes: &[Identity]| processes.iter().map(|it| spent(it.pid)).sum::<f64>();
        Cost {
            clients: own(),
            coordinator: all(&self.coordinator),
            nodes: each(&self.nodes),
            guests: each(&self.guests),
            caches: all(&self.caches),
            switch: all(&self.switch) + kernel_threads().map(spent).sum::<f64>(),
        }
    }
}

impl Cost {
    /// Everything together.
    pub(crate) fn sum(&self) -> f64 {
        let Self { clients, coordinator, caches, switch, .. } = self;
        clients + coordinator + caches + switch + self.of_nodes() + self.of_guests()
    }

    pub(crate) fn of_nodes(&self) -> f64 {
        total(&self.nodes)
    }

    pub(crate) fn of_guests(&self) -> f64 {
        total(&self.guests)
    }

    /// That of the host that has most to do, if each has a processor of its own: one of so many
    /// clients, the coordinator, or a node with what stands beside it.
    pub(crate) fn busiest_host(&self, clients: u16) -> f64 {
        let others = f64::max(self.clients / f64::from(clients), self.coordinator);
        others.max(self.busiest_node())
    }

    /// That of the node that has most to do, with what stands beside it.
    pub(crate) fn busiest_node(&self) -> f64 {
        let guests = self.guests.iter().copied().chain(std::iter::repeat(0.0));
        self.nodes.iter().zip(guests).map(|(node, guest)| node + guest).fold(0.0, f64::max)
    }

    /// What was spent since an earlier look.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let each = |now: &[f64], before: &[f64]| {
            now.iter().zip(before).map(|(now, before)| now - before).collect()
        };
        Self {
            clients: self.clients - before.clients,
            coordinator: self.coordinator - before.coordinator,
            nodes: each(&self.nodes, &before.nodes),
            guests: each(&self.guests, &before.guests),
            caches: self.caches - before.caches,
            switch: self.switch - before.switch,
        }
    }

    /// So many times as much.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let each = |all: &[f64]| all.iter().map(|it| it * factor).collect();
        Self {
            clients: self.clients * factor,
            coordinator: self.coordinator * factor,
            nodes: each(&self.nodes),
            guests: each(&self.guests),
            caches: self.caches * factor,
            switch: self.switch * factor,
        }
    }
}

/// What was spent while something went on.
#[derive(Clone, Debug)]
pub(crate) struct Bill {
    pub(crate) cost: Cost,
    /// How long it went on, in seconds.
    pub(crate) took: f64,
    /// Processors that did something else meanwhile.
    pub(crate) others: f64,
}

impl Bill {
    /// Does this, and says what they have spent for it.
    pub(crate) fn of<T, E>(
        payers: &Payers,
        job: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, Self), E> {
        let (before, machine, mut clock) = (payers.cost(), Machine::now(), Clock::new());
        let began = clock.now();
        let done = job()?;
        let took = clock.now().since(began).as_secs_f64();
        let cost = payers.cost().since(&before);
        let others = (Machine::now().busy_since(machine) - cost.sum() / took).max(0.0);
        Ok((done, Self { cost, took, others }))
    }
}

/// Processors at other work that leave a measurement what it is.
const QUIET_MAX: f64 = 0.15;

/// Says so if the machine did other work: so many processors in each of these trials.
pub(crate) fn not_quiet(others: Vec<f64>) -> Option<String> {
    let busy = median(others);
    (busy > QUIET_MAX)
        .then(|| format!("NOT QUIET: other work took {busy:.1} processors all the time"))
}

/// The sum; that of nothing is 0, where the library's is -0, which people would see.
fn total(parts: &[f64]) -> f64 {
    parts.iter().fold(0.0, |sum, part| sum + part)
}

/// Of all threads that this process has or had.
fn own() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("one's own usage is told");
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Of all threads that a process has; one that has ended has spent nothing more.
fn spent(pid: i32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = |text: String| text.split_whitespace().next()?.parse::<u64>().ok();
    let of =
        |thread: fs::DirEntry| nanos(fs::read_to_string(thread.path().join("schedstat")).ok()?);
    Duration::from_nanos(threads.filter_map(of).sum()).as_secs_f64()
}

/// The kernel's threads for packets.
fn kernel_threads() -> impl Iterator<Item = i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        name.starts_with("ksoftirqd/").then_some(pid)
    })
}

/// What all processors of the machine have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Machine {
    /// Ticks at work, of all ticks.
    busy: f64,
    all: f64,
    processors: f64,
}

impl Machine {
    /// The machine as it is now.
    pub(crate) fn now() -> Self {
        Self::of(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn of(stat: &str) -> Self {
        let mut lines = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
        let ticks = |line: &str| line.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        // User, nice, system, idle, waiting for disks, interrupts (two kinds), stolen; what follows
        // is counted as user already.
        let ticks: Vec<f64> = lines.next().map_or_else(Vec::new, ticks);
        let all: f64 = ticks.iter().take(8).sum();
        let idle: f64 = ticks.iter().skip(3).take(2).sum();
        Self { busy: all - idle, all, processors: lines.count() as f64 }
    }

    /// How many processors were at work since an earlier look.
    pub(crate) fn busy_since(self, before: Self) -> f64 {
        let ticks = (self.all - before.all).max(1.0);
        (self.busy - before.busy) / ticks * self.processors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::process::pause;
    use nix::unistd::Pid;
    use std::process::Command;

    #[test]
    fn what_processes_spend_is_seen() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let payers = Payers { nodes: vec![Identity::of(pid).unwrap()], ..Payers::default() };
        let before = payers.cost();
        let spent = || payers.cost().since(&before);
        let seen = (0..MOMENTS_MAX).any(|_| {
            pause(Duration::from_millis(10));
            spent().of_nodes() > 0.02
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen, "a loop without end takes processor time: {:?}", spent());
        assert!(before.clients > 0.0, "this process has taken some, too");
    }

    /// Many times what the child needs on a machine that is busy.
    const MOMENTS_MAX: u32 = 3_000;

    #[test]
    fn the_host_that_has_most_to_do_is_a_client_the_coordinator_or_a_node_with_its_guest() {
        let cost = |clients, coordinator, guests: &[f64]| Cost {
            clients,
            coordinator,
            nodes: vec![1.0, 3.0, 2.0],
            guests: guests.to_vec(),
            caches: 0.0,
            switch: 9.0,
        };
        let busiest = |it: Cost| it.busiest_host(2);
        assert!((busiest(cost(4.0, 0.0, &[])) - 3.0).abs() < 1e-9);
        assert!((busiest(cost(8.0, 0.0, &[])) - 4.0).abs() < 1e-9);
        assert!((busiest(cost(8.0, 5.0, &[])) - 5.0).abs() < 1e-9);
        assert!((busiest(cost(8.0, 5.0, &[0.0, 1.0, 4.0])) - 6.0).abs() < 1e-9);
        assert!((cost(8.0, 5.0, &[0.0, 1.0, 1.5]).busiest_node() - 4.0).abs() < 1e-9);
        let all = cost(8.0, 5.0, &[1.0]);
        assert!((all.sum() - 29.0).abs() < 1e-9);
        assert!((all.times(2.0).since(&all).sum() - 29.0).abs() < 1e-9);
    }

    #[test]
    fn a_busy_machine_is_told() {
        assert_eq!(not_quiet(vec![0.1, 0.9, 0.1]), None);
        let told = not_quiet(vec![0.3, 0.1, 0.5]).unwrap();
        assert!(told.contains("0.3 processors"), "{told}");
    }

    #[test]
    fn the_machine_tells_how_many_processors_were_at_work() {
        let stat = |user: u32, idle: u32| {
            format!("cpu  {user} 0 10 {idle} 5 0 0 0 7 0\ncpu0 1 0\ncpu1 1 0\nintr 3\n")
        };
        let before = Machine::of(&stat(100, 100));
        let after = Machine::of(&stat(150, 150));
        assert!((after.busy_since(before) - 1.0).abs() < 1e-9);
        assert!(after.busy_since(after).abs() < 1e-9);
    }
}
