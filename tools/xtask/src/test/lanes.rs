//! Jobs beside each other, so that a machine whose tests wait for time to pass is busy meanwhile.
//!
//! There are two kinds of lane. In one jobs that mostly wait run one after the other, before all
//! else: what they wait for is real time, and they say so when it comes late. In the others run all
//! the rest, as many at once as there are processors, and give way to them. When nothing is left of
//! the rest, those lanes take what still waits for its turn.

use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{PipeReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// How much the rest gives way: enough that a lane that wakes up is served at once.
const NICENESS: &str = "10";

/// How long the rest of what a job printed may take to be read once it has ended.
const AFTERWARDS: Duration = Duration::from_secs(10);

/// How often it is looked whether a job has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Something to be run, by itself.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
}

/// What became of a job.
pub(super) struct Ended {
    pub(super) name: String,
    /// All that it printed.
    pub(super) said: String,
    pub(super) succeeded: bool,
    /// Whether it was ended because it took too long.
    pub(super) hung: bool,
    pub(super) took: Duration,
}

impl Job {
    /// A program.
    pub(super) fn new(name: String, program: &OsStr) -> Self {
        Self { name, command: Command::new(program) }
    }

    /// A program that gives way to others.
    pub(super) fn behind(name: String, program: &OsStr) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", NICENESS]).arg(program);
        Self { name, command }
    }

    #[expect(clippy::disallowed_methods, reason = "a chore has a clock; its output is looked at")]
    pub(super) fn run(mut self, limit: Duration) -> Result<Ended> {
        let began = Instant::now();
        let (ours, theirs) = std::io::pipe()?;
        self.command.stdin(Stdio::null()).stdout(theirs.try_clone()?).stderr(theirs);
        let mut child = self.command.spawn().with_context(|| self.name.clone())?;
        // The ends that are written to go away with it.
        drop(self.command);
        let said = Arc::new(Mutex::new(Vec::new()));
        let (done, is_read) = mpsc::channel();
        let into = Arc::clone(&said);
        std::thread::spawn(move || {
            // Whoever listens may be gone by then; nobody misses the word.
            let _unheard = done.send(read(ours, &into));
        });
        let mut hung = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if !hung && began.elapsed() >= limit {
                hung = true;
                child.kill()?;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        // A process that a failed test left behind holds the pipe open.
        if let Ok(read) = is_read.recv_timeout(AFTERWARDS) {
            read.context("what a job prints")?;
        }
        let said = String::from_utf8_lossy(&lock(&said)).into_owned();
        let (name, took) = (self.name, began.elapsed());
        // In one piece: others print as well.
        let seconds = took.as_secs();
        let end = if hung { "Killed, for it had not ended" } else { "Ended" };
        let text = format!("     Running {name}\n{said}     {end} after {seconds} s: {name}\n");
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(Ended { name, said, succeeded: status.success() && !hung, hung, took })
    }
}

/// Runs all of them, also after one that failed, and gives what became of each. None runs for
/// longer than this.
pub(super) fn run(waiting: Vec<Job>, others: Vec<Job>, limit: Duration) -> Result<Vec<Ended>> {
    let processors = std::thread::available_parallelism()?.get();
    let (waiting, others) = (queue(waiting), queue(others));
    let ended = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let mut lanes = vec![scope.spawn(|| lane(&waiting, limit, &ended))];
        let both = || {
            lane(&others, limit, &ended)?;
            lane(&waiting, limit, &ended)
        };
        lanes.extend((0..processors).map(|_| scope.spawn(both)));
        lanes.into_iter().try_for_each(|lane| lane.join().expect("no lane panics"))
    })?;
    Ok(ended.into_inner().expect("no lane panicked"))
}

/// Takes job after job.
fn lane(jobs: &Mutex<VecDeque<Job>>, limit: Duration, ended: &Mutex<Vec<Ended>>) -> Result<()> {
    loop {
        let Some(job) = lock(jobs).pop_front() else { return Ok(()) };
        let end = job.run(limit)?;
        lock(ended).push(end);
    }
}

/// Reads to the end, and keeps what there is so far where others see it.
fn read(mut from: PipeReader, into: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            len => lock(into).extend_from_slice(buffer.get(..len).unwrap_or_default()),
        }
    }
}

fn queue(jobs: Vec<Job>) -> Mutex<VecDeque<Job>> {
    Mutex::new(jobs.into())
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().expect("no lane panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn job(script: &str) -> Job {
        let mut job = Job::behind(script.to_owned(), "sh".as_ref());
        job.command.args(["-c", script]);
        job
    }

    #[test]
    fn every_job_runs_also_after_one_that_failed_and_what_it_said_is_kept() {
        let waiting = ["echo a", "echo b >&2; exit 1", "echo c"].map(job).into();
        let others = ["echo d", "exit 2", "echo e", "kill -9 $$"].map(job).into();
        let mut ended = run(waiting, others, LONG).unwrap();
        ended.sort_by(|a, b| a.name.cmp(&b.name));
        let all: Vec<(&str, &str, bool)> =
            ended.iter().map(|it| (it.name.as_str(), it.said.as_str(), it.succeeded)).collect();
        let expected = [
            ("echo a", "a\n", true),
            ("echo b >&2; exit 1", "b\n", false),
            ("echo c", "c\n", true),
            ("echo d", "d\n", true),
            ("echo e", "e\n", true),
            ("exit 2", "", false),
            ("kill -9 $$", "", false),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time that passes")]
    fn a_process_that_was_left_behind_holds_nothing_up_for_long() {
        let began = Instant::now();
        let ended = run(vec![], vec![job("echo a; sleep 60 &")], LONG).unwrap();
        assert_eq!((ended[0].said.as_str(), ended[0].succeeded), ("a\n", true));
        assert!(began.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_job_that_does_not_end_is_ended_and_what_it_said_is_kept() {
        let limit = Duration::from_millis(300);
        let jobs = ["echo a; exec sleep 60", "echo b"].map(job).into();
        let mut ended = run(jobs, vec![], limit).unwrap();
        ended.sort_by(|a, b| a.name.cmp(&b.name));
        let all: Vec<_> =
            ended.iter().map(|it| (it.said.as_str(), it.succeeded, it.hung)).collect();
        assert_eq!(all, [("a\n", false, true), ("b\n", true, false)]);
    }

    #[test]
    fn who_waits_does_not_keep_the_others_from_running() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("done");
        let waits = format!("until [ -e '{0}' ]; do :; done", path.display());
        let ends = format!("touch '{}'", path.display());
        let ended = run(vec![job(&waits)], vec![job("true"), job(&ends)], LONG).unwrap();
        assert!(ended.iter().all(|it| it.succeeded));
        assert!(run(vec![job("sleep 0")], vec![], LONG).unwrap().len() == 1);
        let missing = Job { name: "x".to_owned(), command: Command::new("/does/not/exist") };
        assert!(run(vec![missing], vec![], LONG).is_err());
    }
}
