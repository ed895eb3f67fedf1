//! A run that hangs says nothing, and whoever waits for it learns nothing when he gives up. So each
//! is watched: after much longer than any that is well takes, it says what everybody waits for, and
//! ends.

use std::fmt::Write as _;
use std::fs;
use std::io::{Write as _, stderr};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    _well: Sender<()>,
}

/// What a run takes besides its faults, ten times over.
pub(crate) const SETTLING_MAX: Duration = Duration::from_secs(600);

impl Watchdog {
    /// Ends the process, with exit code 101 as a panic does, if it is not dropped by then.
    pub(crate) fn start(limit: Duration) -> Self {
        let (well, ends) = channel();
        std::thread::spawn(move || {
            if ends.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let (limit, all) = (limit.as_secs(), everybody());
                // Not by a macro: what those print is kept for the end of the test.
                writeln!(stderr(), "a run hangs: it has not ended after {limit} s\n{all}").ok();
                std::process::exit(101);
            }
        });
        Self { _well: well }
    }
}

/// All threads of this process and of those that it has started: name, state, and where in the
/// kernel each waits.
fn everybody() -> String {
    let mut text = String::new();
    let me = std::process::id();
    for process in numbers(Path::new("/proc")) {
        let folder = Path::new("/proc").join(process.to_string());
        let parent = field(&folder, "PPid").and_then(|id| id.parse().ok());
        if process == me || parent == Some(me) {
            let words = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
            writeln!(text, "process {process}: {}", words.replace('\0', " ")).ok();
            for thread in numbers(&folder.join("task")) {
                let folder = folder.join("task").join(thread.to_string());
                let name = field(&folder, "Name").unwrap_or_default();
                let state = field(&folder, "State").unwrap_or_default();
                let waits_in = fs::read_to_string(folder.join("wchan")).unwrap_or_default();
                writeln!(text, "  {thread} {name}: {state}, in {waits_in}").ok();
            }
        }
    }
    text
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What the status of a process or thread says of this.
fn field(folder: &Path, name: &str) -> Option<String> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[test]
fn it_says_what_everybody_waits_for() {
    let ((begins, begun), (ends, ended)) = (channel(), channel::<()>());
    let waits = std::thread::Builder::new().name("waits-in-vain".into());
    let waits = waits.spawn(move || {
        begins.send(()).expect("who started it waits");
        ended.recv().ok()
    });
    begun.recv().expect("it begins");
    let text = everybody();
    drop(ends);
    waits.expect("a thread").join().expect("it does not panic");
    assert!(text.lines().any(|line| line.contains("waits-in-vain: ")), "{text}");
}
