//! A sync: all changes go to the backend, or stay here if it refuses them.

use super::{Backend, BackendEngine, Changes, Undo};
use machine::Instant;
use node::engine::{EngineError, KeyRef};
use wire::Room;

impl<B: Backend> BackendEngine<B> {
    /// What the backend has room for; asked before every batch.
    pub fn room(&mut self, now: Instant) -> Room {
        self.sight.get_mut().room(now)
    }

    /// What the backend said that refuses changes, and is well otherwise: those of the last sync
    /// are still here, and the next one sends them again.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Ends a turn in which nothing was changed, while what was changed before is refused.
    ///
    /// # Errors
    ///
    /// If the backend has failed for good.
    pub fn end_reads(&mut self) -> Result<(), EngineError> {
        let sight = self.sight.get_mut();
        sight.forget();
        sight.health()
    }

    /// What a change that is shown makes of the value under a name.
    pub(super) fn changed(&self, name: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.changes.values.get(name).filter(|_| self.refused.is_none())
    }

    pub(super) fn send(&mut self) -> Result<(), EngineError> {
        let (sight, changes) = (self.sight.get_mut(), &self.changes);
        // What was fetched may be what these changes replace.
        sight.forget();
        sight.health()?;
        if !changes.is_empty() {
            match sight.change(|backend| backend.apply(changes)) {
                Ok(Some(())) => {
                    self.changes = Changes::default();
                    if self.refused.take().is_some() {
                        self.undo.swap(&mut self.index);
                    }
                    self.undo = Undo::default();
                }
                Ok(None) => {}
                Err(words) => {
                    if self.refused.replace(words.clone()).is_none() {
                        self.undo.swap(&mut self.index);
                    }
                    return Err(EngineError(words));
                }
            }
        }
        self.sight.get_mut().health()
    }

    /// Before a record is changed.
    pub(super) fn remember(&mut self, key: &KeyRef<'_>) {
        assert!(self.refused.is_none(), "nothing is changed while earlier changes are refused");
        if B::KEEPS {
            self.undo.remember(&self.index, key);
        }
    }
}
