//! What was decided becomes durable, and whether this controller leads still.

use super::{Thread, WAITING_MAX};
use crate::store::{Leadership, SaveError};
use controller::election::SAVE_AGAIN;
use wire::Revision;

impl Thread {
    /// Saves what was decided. Where the store has no room that is tried again later: what was
    /// saved before is as it was, no order leaves that rests on more, and members have their leases
    /// by it.
    pub(super) fn save(&mut self) -> Result<(), String> {
        loop {
            if let Some(ended) = self.store.poll_saved() {
                let revision = self.saving.take().expect("a save ends once");
                self.note_saved(revision, ended)?;
            }
            self.unsaved = self.controller.poll_save().or(self.unsaved.take());
            let Some(saved) = &self.unsaved else { return Ok(()) };
            if self.saving.is_some() || self.clock.now() < self.save_at {
                return Ok(());
            }
            // It has ended already, or the store calls when it has.
            self.saving = Some(saved.map.revision);
            self.store.save(saved);
        }
    }

    fn note_saved(
        &mut self,
        revision: Revision,
        ended: Result<(), SaveError>,
    ) -> Result<(), String> {
        match ended {
            Ok(()) => {
                tracing::debug!(%revision, "saved the cluster map");
                self.trouble = None;
                // While it was saved more may have been decided.
                self.unsaved = self.unsaved.take().filter(|saved| saved.map.revision > revision);
                self.controller.handle_saved(self.clock.now(), revision);
                if self.unsaved.is_none() {
                    self.parked.drain(..).for_each(|answer| answer());
                }
                Ok(())
            }
            Err(SaveError::NotNow(error)) => {
                self.save_at = self.clock.now() + SAVE_AGAIN;
                if self.trouble.is_none() {
                    tracing::error!(
                        "cannot save the cluster map: {error}; nothing is decided until there is \
                         room, and the cluster goes on with what it has"
                    );
                }
                self.trouble = Some(format!("cannot save the cluster map: {error}"));
                if self.store.is_alone() {
                    self.controller.begin_unsaved();
                }
                Ok(())
            }
            // The loop sees that.
            Err(SaveError::Deposed) => Ok(()),
            Err(SaveError::Failed(error)) => Err(format!(
                "cannot save the cluster map: {error}; restart the controller to recover"
            )),
        }
    }

    /// Whether somebody else leads, or may do so from now on.
    pub(super) fn is_deposed(&self) -> bool {
        self.store.leadership() == Leadership::Lost || self.controller.deposed_by().is_some()
    }

    /// Answers now, or when what it is about is saved. Who waits may give up before.
    pub(super) fn answer_saved(&mut self, answer: impl FnOnce() + Send + 'static) {
        if self.unsaved.is_none() {
            answer();
        } else if self.parked.len() < WAITING_MAX {
            self.parked.push(Box::new(answer));
        }
    }
}
