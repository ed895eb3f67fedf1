//! What processes take as time goes on, and whether that grows beyond the data.
//!
//! The rule: the first fifth of a soak is for getting warm. Of what comes after, the most that a
//! process takes in the second half may be at most a quarter above the most in the first half, and
//! as much more as the data has grown, and some slack. A process that is killed begins anew; of
//! each kind one is never killed, so that it grows old. What is on disk outlives them all, and is
//! held against the data itself: some times as much, and what stores take whatever they hold.

use crate::redundant::{Role, shards};
use nix::unistd::Pid;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a process takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Bytes of memory that are in RAM.
    pub memory: u64,
    /// Descriptors.
    pub files: u64,
    /// Bytes that its files take of the disk, without the reserve.
    pub disk: u64,
}

/// What all take at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Bytes of keys and values that the cluster holds, each once.
    pub(super) data: u64,
    pub(super) of: BTreeMap<Role, Figures>,
}

/// How a process has grown: the most in both halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    pub(super) early: Figures,
    pub(super) late: Figures,
}

/// Samples that each half has at least, or nothing is said.
const SAMPLES_MIN: usize = 4;

/// What may come on top: of memory what allocators keep, and what a busy minute has more on its way
/// than another.
const MEMORY_SLACK: u64 = 32 << 20;
const FILES_SLACK: u64 = 32;

/// What a shard's store takes whatever it holds: a journal of 64 MB, another until what is in it is
/// in tables, and tables of what was overwritten, until they are merged.
const DISK_PER_SHARD: u64 = 160 << 20;

/// What a controller's takes.
const DISK_OF_MAP: u64 = 16 << 20;

/// How many times the data a node may take on top: every node holds it once at most, and a merge
/// writes it anew before the old goes.
const DISK_PER_DATA: u64 = 3;

/// The file that a node puts aside for a full disk: it is bounded by itself.
const RESERVE: &str = "reserve";

impl Figures {
    /// Those of a process that runs; `None` if it does not.
    pub(super) fn of(pid: Pid, data: Option<&Path>) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
        Some(Self { memory: kib << 10, files, disk: data.map_or(0, below) })
    }

    fn most(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            files: self.files.max(other.files),
            disk: self.disk.max(other.disk),
        }
    }
}

/// What the system counts blocks of files in.
const BLOCK: u64 = 512;

/// Bytes that all files below a directory take: journals are made longer than what is in them. One
/// that goes meanwhile counts nothing.
fn below(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => below(&entry.path()),
        Ok(_) if entry.file_name() == RESERVE => 0,
        Ok(about) => about.blocks() * BLOCK,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// How each process has grown, if there are samples enough.
pub(super) fn growth(samples: &[Sample]) -> BTreeMap<Role, Growth> {
    let (early, late) = halves(samples);
    if early.len() < SAMPLES_MIN {
        return BTreeMap::new();
    }
    let most = |of: &[Sample], role: Role| {
        of.iter().filter_map(|sample| sample.of.get(&role)).copied().reduce(Figures::most)
    };
    let roles = late.iter().flat_map(|sample| sample.of.keys().copied());
    let grown = roles.filter_map(|role| {
        Some((role, Growth { early: most(early, role)?, late: most(late, role)? }))
    });
    grown.collect()
}

/// Both halves of what comes after the first fifth.
fn halves(samples: &[Sample]) -> (&[Sample], &[Sample]) {
    let warm = samples.get(samples.len() / 5..).unwrap_or_default();
    warm.split_at(warm.len() / 2)
}

/// What has grown beyond the data, in words.
pub(super) fn complaints(samples: &[Sample]) -> Vec<String> {
    let (early, late) = halves(samples);
    let data = |of: &[Sample]| of.iter().map(|sample| sample.data).max().unwrap_or(0).max(1);
    let (before, after) = (data(early), data(late).max(data(early)));
    let allowed = |most: u64, slack: u64| {
        let with_data = u128::from(most) * u128::from(after) / u128::from(before) * 5 / 4;
        u64::try_from(with_data).unwrap_or(u64::MAX).saturating_add(slack)
    };
    let mut found = Vec::new();
    for (role, Growth { early, late }) in growth(samples) {
        let all = [
            ("bytes of memory", early.memory, late.memory, MEMORY_SLACK),
            ("descriptors", early.files, late.files, FILES_SLACK),
        ];
        for (what, early, late, slack) in all {
            if late > allowed(early, slack) {
                found.push(format!("{role} takes more and more {what}: {early}, then {late}"));
            }
        }
        let (most, allowed) = (early.disk.max(late.disk), allowed_disk(role, after));
        if most > allowed {
            let data = format!("{after} bytes of data");
            found
                .push(format!("{role} takes {most} bytes of disk for {data}: more than {allowed}"));
        }
    }
    found
}

/// What a process may take of the disk when the cluster holds so much data.
fn allowed_disk(role: Role, data: u64) -> u64 {
    match role {
        Role::Node(id) => {
            DISK_PER_SHARD * u64::from(shards(id)) + DISK_PER_DATA.saturating_mul(data)
        }
        Role::Controller(_) => DISK_OF_MAP,
        Role::BridgeDatabase
        | Role::Bridge
        | Role::Etcd(_)
        | Role::Switch(_)
        | Role::Gateway(_)
        | Role::Cache(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(memory: impl Fn(u64) -> u64, data: impl Fn(u64) -> u64) -> Vec<Sample> {
        let sample = |n: u64| {
            let figures = Figures { memory: memory(n) << 20, files: 40, disk: 7 };
            let of = BTreeMap::from([(Role::Node(5), figures)]);
            Sample { data: data(n), of }
        };
        (0..60).map(sample).collect()
    }

    #[test]
    fn who_takes_more_and_more_is_found() {
        let found = complaints(&samples(|n| 100 + 5 * n, |_| 1_000));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("node-5 takes more and more bytes of memory"), "{found:?}");
    }

    #[test]
    fn who_gets_warm_or_holds_more_is_not() {
        for sound in [
            samples(|n| 100 + 10 * n.min(12), |_| 1_000),
            samples(|n| 100 + 3 * n, |n| 1_000 + 30 * n),
            samples(|n| 100 + n % 20, |_| 1_000),
        ] {
            assert_eq!(complaints(&sound), Vec::<String>::new());
        }
    }

    #[test]
    fn who_takes_more_of_the_disk_than_his_data_explains_is_found() {
        let with = |disk: u64, data: u64| {
            let mut all = samples(|_| 100, |_| data);
            let of = all.iter_mut().flat_map(|sample| sample.of.values_mut());
            of.for_each(|figures| figures.disk = disk);
            complaints(&all)
        };
        // Of two shards.
        assert_eq!(with(300 << 20, 2 << 20), Vec::<String>::new());
        let found = with(400 << 20, 2 << 20);
        assert!(found[0].starts_with("node-5 takes 419430400 bytes of disk for"), "{found:?}");
        assert_eq!(with(400 << 20, 40 << 20), Vec::<String>::new());
    }

    #[test]
    fn of_a_few_samples_nothing_is_said() {
        let all = samples(|n| 100 + 300 * n, |_| 1_000);
        assert!(complaints(&all[..8]).is_empty() && growth(&all[..8]).is_empty());
        assert!(!complaints(&all[..12]).is_empty());
    }

    #[test]
    fn a_process_that_runs_has_figures() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("inner/file"), [0; 300]).unwrap();
        fs::write(dir.path().join(RESERVE), [0; 9_000]).unwrap();
        let sparse = fs::File::create(dir.path().join("sparse")).unwrap();
        sparse.set_len(1 << 30).unwrap();
        let me = Figures::of(Pid::this(), Some(dir.path())).unwrap();
        assert!(me.memory > 1 << 20 && me.files > 2);
        assert!((1..1 << 20).contains(&me.disk), "{me:?}");
        assert!(me.disk < 9_000, "the reserve is left out: {me:?}");
        assert_eq!(Figures::of(Pid::from_raw(i32::MAX), None), None);
    }
}
