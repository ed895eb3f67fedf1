//! What becomes of an engine when something fails: the first error counts, for ever.
//!
//! A panic inside fjall is such an error: it takes what its files say for true, and panics where
//! they are damaged in ways that no checksum shows.

use super::{FjallEngine, Need};
use node::engine::EngineError;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether what panics on this thread is caught, and said where it is caught.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Does something, and says why if it panics. What it has worked on is then of no use any more.
pub(super) fn caught<T>(what: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CAUGHT.get() {
                usual(info);
            }
        }));
    });
    let before = CAUGHT.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(what));
    CAUGHT.set(before);
    outcome.map_err(|why| format!("the store cannot be made sense of: {}", words(&*why)))
}

fn words(why: &(dyn Any + Send)) -> &str {
    let text = why.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}

/// What to do about an error that may come of damage.
const DAMAGED: &str = "if its disk is well again, move the directory away and start: what other \
                       nodes hold is copied from them, docs/operating/recovery.md";

impl FjallEngine {
    pub(super) fn health(&self) -> Result<(), EngineError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Does what may fail, unless something has failed already.
    pub(super) fn attempt(
        &mut self,
        what: impl FnOnce(&mut Self) -> fjall::Result<()>,
    ) -> Result<(), EngineError> {
        self.health()?;
        match caught(|| what(self)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail_with(&error),
            Err(why) => self.fail(why),
        }
        self.health()
    }

    pub(super) fn fail(&self, error: impl ToString) {
        let (dir, error) = (self.directory.path().display(), error.to_string());
        let free = self.disk.as_ref().and_then(Need::free);
        let free =
            free.map_or_else(String::new, |free| format!("; its disk has {free} bytes free"));
        // A second error changes nothing: the first is what went wrong.
        let _ = self.failed.set(EngineError(format!("{dir}: {error}{free}")));
    }

    /// What fjall says, in words that help.
    fn fail_with(&self, error: &fjall::Error) {
        match error {
            fjall::Error::Poisoned => self.fail(
                "it cannot be written to any more, because what it does by itself (flushing, \
                 compacting) has failed",
            ),
            // It does not say what it was about.
            other => self.fail(format!("{other} ({DAMAGED})")),
        }
    }

    /// The value of a fallible read, or `None` with the failure remembered.
    pub(super) fn ok<T>(&self, read: impl FnOnce() -> fjall::Result<T>) -> Option<T> {
        match caught(read) {
            Ok(result) => result.inspect_err(|error| self.fail_with(error)).ok(),
            Err(why) => {
                self.fail(format!("{why} ({DAMAGED})"));
                None
            }
        }
    }
}
