//! The threads that run scripts, and the scripts that they know.

use super::cache::Cache;
use super::given::{Ended, Given};
use super::machine::Machine;
use super::source::Source;
use super::state::Stop;
use crate::Reply;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a script may run unless somebody says otherwise: what Redis calls slow.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Threads: a script that takes long leaves the others to the rest, and all of them together
/// no more memory than commands that change long values.
const THREADS: usize = 4;
/// Bytes of a thread's stack: functions of ours call themselves for each table inside another.
const STACK: usize = 8 << 20;

enum Job {
    Run(Given, Arc<Stop>, Duration, oneshot::Sender<Ended>),
    Compile(Arc<Source>, oneshot::Sender<Result<(), Reply>>),
}

/// All scripts of a gateway.
#[derive(Debug)]
pub(crate) struct Scripts {
    cache: Mutex<Cache>,
    /// To the threads, which are started when there is the first script.
    jobs: OnceLock<mpsc::Sender<Job>>,
    /// Those that run or wait for a thread, by number.
    under_way: Mutex<BTreeMap<u64, Arc<Stop>>>,
    begun: AtomicU64,
    time_max_ms: AtomicU64,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            cache: Mutex::default(),
            jobs: OnceLock::new(),
            under_way: Mutex::default(),
            begun: AtomicU64::new(0),
            time_max_ms: AtomicU64::new(u64::try_from(TIME_MAX.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// What is answered if there is no thread, or it has ended in the middle.
const NO_THREAD: Reply =
    Reply::error("ERR the gateway has no thread for the script; nothing was changed");

impl Scripts {
    /// The script of that name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<Source>> {
        lock(&self.cache).get(name)
    }

    /// Whether there is one of that name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        lock(&self.cache).has(name)
    }

    /// Remembers a script.
    pub(crate) fn remember(&self, source: &Arc<Source>) {
        lock(&self.cache).put(source);
    }

    /// Forgets all of them.
    pub(crate) fn flush(&self) {
        lock(&self.cache).clear();
    }

    /// Ends all that run or wait; whether there was one.
    pub(crate) fn kill(&self) -> bool {
        let under_way = lock(&self.under_way);
        under_way.values().for_each(|stop| stop.kill());
        !under_way.is_empty()
    }

    /// Scripts get so much time of the processor from now on.
    pub(crate) fn set_time_max(&self, time_max: Duration) {
        let ms = u64::try_from(time_max.as_millis()).unwrap_or(u64::MAX);
        self.time_max_ms.store(ms, Ordering::Relaxed);
    }

    /// How much they get.
    pub(crate) fn time_max(&self) -> Duration {
        Duration::from_millis(self.time_max_ms.load(Ordering::Relaxed))
    }

    /// Whether a script can be run.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) async fn compile(&self, source: &Arc<Source>) -> Result<(), Reply> {
        let (sender, ended) = oneshot::channel();
        self.send(Job::Compile(Arc::clone(source), sender));
        ended.await.unwrap_or(Err(NO_THREAD))
    }

    /// Runs a script. It is ended if the future is dropped.
    pub(crate) async fn run(&self, given: Given) -> Ended {
        let stop = Arc::new(Stop::default());
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        lock(&self.under_way).insert(number, Arc::clone(&stop));
        let _place = RunningScript { scripts: self, number };
        let (sender, ended) = oneshot::channel();
        self.send(Job::Run(given, stop, self.time_max(), sender));
        ended.await.unwrap_or(Ended::Over(NO_THREAD))
    }

    /// What cannot be sent is dropped, and its sender with it.
    fn send(&self, job: Job) {
        let jobs = self.jobs.get_or_init(|| {
            let (jobs, receiver) = mpsc::channel();
            let receiver = Arc::new(Mutex::new(receiver));
            for _ in 0..THREADS {
                let receiver = Arc::clone(&receiver);
                let thread = std::thread::Builder::new().name("script".into()).stack_size(STACK);
                if let Err(error) = thread.spawn(move || serve(&receiver)) {
                    tracing::warn!(%error, "cannot start a thread for scripts");
                }
            }
            jobs
        });
        drop(jobs.send(job));
    }
}

/// A script's place among those that are under way.
struct RunningScript<'a> {
    scripts: &'a Scripts,
    number: u64,
}

impl Drop for RunningScript<'_> {
    fn drop(&mut self) {
        if let Some(stop) = lock(&self.scripts.under_way).remove(&self.number) {
            stop.leave();
        }
    }
}

/// One thread: it ends when nobody can send a job any more.
fn serve(jobs: &Mutex<mpsc::Receiver<Job>>) {
    let mut machine = None;
    loop {
        let next = lock(jobs).recv();
        let Ok(job) = next else { return };
        // An interpreter in which something has panicked is not used again.
        if catch_unwind(AssertUnwindSafe(|| carry_out(&mut machine, job))).is_err() {
            machine = None;
        }
    }
}

fn carry_out(machine: &mut Option<Machine>, job: Job) {
    if machine.is_none() {
        match Machine::new() {
            Ok(new) => *machine = Some(new),
            Err(error) => tracing::warn!(%error, "no interpreter"),
        }
    }
    let Some(machine) = machine else { return };
    // Nobody is there any more whom a send fails for.
    match job {
        Job::Run(given, stop, time_max, sender) => {
            drop(sender.send(machine.run(given, stop, time_max)));
        }
        Job::Compile(source, sender) => drop(sender.send(machine.compile(&source).map(drop))),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
