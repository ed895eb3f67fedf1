//! Gateways as processes that are killed and started again, each beside the users that use it.

use crate::watch::{Watch, pause};
use lab::process::Running;
use machine::Rng;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How far a run has come; all that work in it look here.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    /// Nothing goes wrong any more.
    pub(crate) mended: AtomicBool,
    /// The cluster is whole again: every request has to be answered.
    pub(crate) calm: AtomicBool,
    /// All is over.
    pub(crate) over: AtomicBool,
}

/// Raises all flags when it is dropped, so that everybody ends also if the test panics.
#[derive(Debug)]
pub(crate) struct EndOnDrop(pub(crate) Arc<Phase>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        for flag in [&self.0.mended, &self.0.calm, &self.0.over] {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

/// A gateway, life after life.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) index: usize,
    pub(crate) seed: u64,
    /// What starts it.
    pub(crate) command: Command,
    pub(crate) logs: PathBuf,
    pub(crate) watch: Arc<Watch>,
    pub(crate) phase: Arc<Phase>,
    /// Whether it is killed now and then.
    pub(crate) frail: bool,
}

/// How long a gateway lives until it is killed, and how long it is gone then.
const LIVES_MS: std::ops::Range<u64> = 800..4_000;
const GONE_MS: std::ops::Range<u64> = 1..600;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Front {
    /// Runs it to the end; how often it was killed. To be called on its host.
    ///
    /// # Errors
    ///
    /// If it ends by itself once it is ready.
    pub(crate) fn run(mut self) -> Result<usize, String> {
        let mut rng = Rng::new(self.seed).fork(&format!("gateway {}", self.index));
        let draw = |rng: &mut Rng, of: &std::ops::Range<u64>| {
            Duration::from_millis(of.start + rng.below(of.end - of.start))
        };
        let mut kills = 0;
        for life in 0.. {
            let mut process = self.start(life);
            let dies_at = self.watch.now() + draw(&mut rng, &LIVES_MS);
            loop {
                if self.phase.over.load(Ordering::Relaxed) {
                    return Ok(kills);
                }
                if let Some(end) = ended(&mut process)? {
                    // A cluster that does not answer is no place to start: it tries again.
                    eprintln!("gateway {}, life {life}: {end}", self.index);
                    break;
                }
                let safe = !self.frail || self.phase.mended.load(Ordering::Relaxed);
                if !safe && self.watch.now() >= dies_at && process.is_ready() {
                    kills += 1;
                    break;
                }
                pause(LOOK_AGAIN);
            }
            drop(process);
            pause(draw(&mut rng, &GONE_MS));
        }
        Ok(kills)
    }

    fn start(&mut self, life: usize) -> Running {
        let log = self.logs.join(format!("gateway-{}-{life:02}", self.index));
        Running::start(&mut self.command, log).expect("setpriv and the binary are there")
    }
}

/// What a gateway said if it did not come up; an error if it did, and has ended since.
fn ended(life: &mut Running) -> Result<Option<String>, String> {
    let Some(status) = life.end() else { return Ok(None) };
    let said = life.printed();
    if life.is_ready() {
        return Err(format!("a gateway ended by itself: {status}: {said}"));
    }
    Ok(Some(said))
}
