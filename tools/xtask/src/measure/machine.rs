//! What a section was measured on, and when.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime};
use xshell::{Shell, cmd};

/// Machine, date and commit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Machine {
    date: String,
    commit: String,
    /// Whether files differed from the commit.
    changed: bool,
    cores: usize,
    processor: String,
    kernel: String,
    fdatasync_us: f64,
    /// Cores that were busy just before, in the run before which most were.
    pub(super) busy_cores: f64,
}

impl Machine {
    /// This one, now.
    pub(super) fn look(shell: &Shell, page: &str) -> Result<Self> {
        let except = format!(":!{page}");
        let changes = cmd!(shell, "git status --porcelain --untracked-files=no -- . {except}");
        Ok(Self {
            date: date(),
            commit: cmd!(shell, "git rev-parse --short HEAD").read()?,
            changed: !changes.read()?.is_empty(),
            cores: std::thread::available_parallelism()?.get(),
            processor: processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            kernel: cmd!(shell, "uname -sr").read()?,
            fdatasync_us: fdatasync()?.as_secs_f64() * 1e6,
            busy_cores: 0.0,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, commit, changed, cores, processor, kernel, fdatasync_us, busy_cores } =
            self;
        let changed = if *changed { ", with changes" } else { "" };
        write!(
            f,
            "{date}, commit {commit}{changed}; {cores} cores ({processor}), {kernel}, one \
             fdatasync {:.2} ms, {busy_cores:.2} cores busy before it",
            fdatasync_us / 1e3
        )
    }
}

/// Today, in UTC.
#[expect(clippy::disallowed_methods, reason = "a chore has a clock")]
pub(super) fn date() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

/// The model of the first processor.
fn processor(cpuinfo: &str) -> String {
    let named = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let model = named.map(|rest| rest.trim_start_matches([' ', '\t', ':']).trim());
    model.unwrap_or("unknown").to_owned()
}

/// Median of what it takes until a little that was appended to a file is on the disk of the folder
/// for temporary files, where benchmarks have their data.
#[expect(clippy::disallowed_methods, reason = "a chore has a clock")]
fn fdatasync() -> Result<Duration> {
    const TIMES: usize = 201;
    let folder = tempfile::tempdir().context("there is no folder for temporary files")?;
    let mut file = File::create(folder.path().join("sync")).context("cannot write to the disk")?;
    let mut took = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        file.write_all(&[0; 512])?;
        let began = Instant::now();
        file.sync_data().context("cannot sync the disk")?;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    Ok(took.get(TIMES / 2).copied().unwrap_or_default())
}

/// How many cores other work takes: of a second in which this program does nothing.
#[expect(clippy::disallowed_methods, reason = "a chore may wait")]
pub(super) fn busy_cores() -> Result<f64> {
    let read =
        || std::fs::read_to_string("/proc/stat").context("the kernel does not tell its time");
    let before = ticks(&read()?);
    std::thread::sleep(Duration::from_secs(1));
    let after = ticks(&read()?);
    let [idle, all] = [0, 1].map(|at| {
        let of = |ticks: [u64; 2]| ticks.get(at).copied().unwrap_or_default();
        of(after).saturating_sub(of(before)) as f64
    });
    let cores = std::thread::available_parallelism()?.get() as f64;
    Ok(if all > 0.0 { (1.0 - idle / all) * cores } else { 0.0 })
}

/// Ticks in which processors did nothing, and all of them.
fn ticks(stat: &str) -> [u64; 2] {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    // Guests' time, the last two, is in the user's already.
    let ticks: Vec<u64> =
        line.split_whitespace().take(8).filter_map(|it| it.parse().ok()).collect();
    let idle = ticks.iter().skip(3).take(2).sum();
    [idle, ticks.iter().sum()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_in_one_line() {
        let machine = Machine {
            date: "2026-11-27".to_owned(),
            commit: "0123abc".to_owned(),
            changed: true,
            cores: 2,
            processor: "AMD EPYC".to_owned(),
            kernel: "Linux 6.18.44".to_owned(),
            fdatasync_us: 183.0,
            busy_cores: 0.031,
        };
        let expected = "2026-11-27, commit 0123abc, with changes; 2 cores (AMD EPYC), Linux \
                        6.18.44, one fdatasync 0.18 ms, 0.03 cores busy before it";
        assert_eq!(machine.to_string(), expected);
    }

    #[test]
    fn processors_and_their_time_are_read() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: AMD EPYC 7\n"), "AMD EPYC 7");
        assert_eq!(processor(""), "unknown");
        let stat = "cpu  10 0 20 60 5 1 2 2 7 7\ncpu0 1 1\n";
        assert_eq!(ticks(stat), [65, 100]);
        assert!(fdatasync().unwrap() > Duration::ZERO);
    }
}
