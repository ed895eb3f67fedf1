//! What the kernel says of this process, under the names that every program gives it.

use super::{Sample, Samples};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use wire::layout::metric;

impl Samples {
    /// Adds what is known of this process. What the kernel does not say is left out.
    pub(super) fn add_process(&mut self) {
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = seconds(usage.user_time()) + seconds(usage.system_time());
            self.add(&metric::PROCESS_CPU_SECONDS, [Sample::real([""; 0], seconds)]);
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // One of them is that of the directory.
            let open = entries.count().saturating_sub(1) as u64;
            self.add(&metric::PROCESS_OPEN_FDS, [Sample::plain(open)]);
        }
        if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
            self.add(&metric::PROCESS_MAX_FDS, [Sample::plain(soft)]);
        }
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let Some(stat) = Stat::parse(&stat) else { return };
        self.add(&metric::PROCESS_THREADS, [Sample::plain(stat.threads)]);
        self.add(&metric::PROCESS_VIRTUAL_MEMORY_BYTES, [Sample::plain(stat.virtual_bytes)]);
        if let Some(page) = system(SysconfVar::PAGE_SIZE) {
            let bytes = stat.resident_pages.saturating_mul(page);
            self.add(&metric::PROCESS_RESIDENT_MEMORY_BYTES, [Sample::plain(bytes)]);
        }
        let booted = fs::read_to_string("/proc/stat").unwrap_or_default();
        if let Some((booted, ticks)) = booted_at(&booted).zip(system(SysconfVar::CLK_TCK)) {
            let started = booted as f64 + stat.started_ticks as f64 / ticks.max(1) as f64;
            self.add(&metric::PROCESS_START_TIME_SECONDS, [Sample::real([""; 0], started)]);
        }
    }
}

/// Of `/proc/self/stat`, as proc(5) numbers its fields.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    threads: u64,
    started_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name may hold spaces and parentheses; after the last one comes field 3.
        let (_, rest) = text.rsplit_once(')')?;
        let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse().ok();
        Some(Self {
            threads: field(20)?,
            started_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// When the machine was started, in seconds since the epoch, as `/proc/stat` says.
fn booted_at(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn system(what: SysconfVar) -> Option<u64> {
    u64::try_from(sysconf(what).ok()??).ok()
}

fn seconds(time: TimeVal) -> f64 {
    time.num_microseconds() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_move_the_fields() {
        let numbers = (4..=24).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let parsed = Stat::parse(&format!("7 (a) b) R {numbers} 25")).unwrap();
        let [threads, started_ticks, virtual_bytes, resident_pages] = [20, 22, 23, 24];
        assert_eq!(parsed, Stat { threads, started_ticks, virtual_bytes, resident_pages });
        assert_eq!(Stat::parse("7 (a"), None);
        assert_eq!(booted_at("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000));
    }

    #[test]
    fn the_kernel_says_plausible_things_of_this_process() {
        let stat = Stat::parse(&fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        assert!(stat.threads >= 1 && stat.resident_pages > 100, "{stat:?}");
        assert!(booted_at(&fs::read_to_string("/proc/stat").unwrap()).unwrap() > 1_500_000_000);
    }
}
