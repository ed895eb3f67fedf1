//! What the functions of an interpreter know of the script that runs.

use super::given::Commands;
use super::raised::Raised;
use super::random::Random;
use crate::Reply;
use bytes::Bytes;
use mlua::Table;
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Whether a script that runs is to go on: what others tell it.
#[derive(Debug, Default)]
pub(super) struct Stop(AtomicU8);

/// An operator has ended it.
const KILLED: u8 = 1;
/// Nobody waits for it any more.
const LEFT: u8 = 2;

impl Stop {
    pub(super) fn kill(&self) {
        self.0.store(KILLED, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.0.store(LEFT, Ordering::Relaxed);
    }

    fn why(&self) -> Option<Reply> {
        match self.0.load(Ordering::Relaxed) {
            KILLED => Some(Reply::error("ERR Script killed by user with SCRIPT KILL.")),
            LEFT => Some(Reply::error("ERR nobody waits for the script")),
            _ => None,
        }
    }
}

/// The script that runs.
struct Run {
    commands: Commands,
    stop: Arc<Stop>,
    time_max: Duration,
    /// When it has run long enough; later by what its commands have waited for.
    until: Instant,
}

/// What functions know of it.
pub(super) struct State {
    run: RefCell<Option<Run>>,
    /// Why nothing of it goes on.
    over: RefCell<Option<Reply>>,
    pub(super) random: Cell<Random>,
    /// Whether it has asked for the replies of RESP3.
    pub(super) resp3: Cell<bool>,
    /// Its globals.
    pub(super) globals: RefCell<Option<Table>>,
}

/// A number that other scripts do not draw too.
#[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
fn any_seed() -> i32 {
    RandomState::new().build_hasher().finish() as i32
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            run: RefCell::default(),
            over: RefCell::default(),
            random: Cell::new(Random::new(0)),
            resp3: Cell::new(false),
            globals: RefCell::default(),
        }
    }

    /// A script begins.
    pub(super) fn begin(&self, commands: Commands, stop: Arc<Stop>, time_max: Duration) {
        let until = Instant::now() + time_max;
        self.run.replace(Some(Run { commands, stop, time_max, until }));
        self.over.replace(None);
        self.random.set(Random::new(any_seed()));
        self.resp3.set(false);
    }

    /// It has ended; why, if that was not its own end.
    pub(super) fn end(&self) -> Option<Reply> {
        self.run.replace(None);
        self.globals.replace(None);
        self.over.take()
    }

    /// Nothing of it goes on.
    pub(super) fn end_with(&self, why: Reply) -> Raised {
        self.over.borrow_mut().get_or_insert(why);
        Raised::Over
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Whether it may go on.
    pub(super) fn check(&self) -> Result<(), Raised> {
        if self.is_over() {
            return Err(Raised::Over);
        }
        let why = match &*self.run.borrow() {
            None => None,
            Some(run) if Instant::now() > run.until => {
                let ms = run.time_max.as_millis();
                let text = format!(
                    "ERR the script took more than {ms} ms of the processor and was ended; nothing \
                     was changed"
                );
                Some(Reply::Error(text.into()))
            }
            Some(run) => run.stop.why(),
        };
        why.map_or(Ok(()), |why| Err(self.end_with(why)))
    }

    /// Carries out a command. The time that it waits is not the script's.
    pub(super) fn command(&self, args: &[Bytes]) -> Result<Reply, Raised> {
        self.check()?;
        let mut run = self.run.borrow_mut();
        let Some(run) = run.as_mut() else { return Err(Raised::Over) };
        let began = Instant::now();
        let reply = (run.commands)(args);
        run.until += began.elapsed();
        reply.map_err(|why| self.end_with(why))
    }
}
