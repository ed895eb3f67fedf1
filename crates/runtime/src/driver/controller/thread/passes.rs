//! Giving passes to those who ask for them.

use super::super::keys::{PassError, PassWish};
use super::{Thread, WAITING_MAX};
use envelope::Pass;
use std::sync::mpsc::SyncSender;

/// A pass that is asked for, and who waits for it.
pub(super) type Wish = (PassWish, SyncSender<Result<Option<Pass>, PassError>>);

impl Thread {
    /// Somebody asks for a pass. None is needed where packets are in no envelopes. With too many
    /// who wait the answer never comes, which who asks sees at once.
    pub(super) fn wish_for_pass(
        &mut self,
        wish: PassWish,
        sender: SyncSender<Result<Option<Pass>, PassError>>,
    ) {
        if self.keys.is_none() {
            drop(sender.try_send(Ok(None)));
        } else if self.wishes.len() < WAITING_MAX {
            self.wishes.push((wish, sender));
        }
    }

    /// Gives the passes that are asked for, once it is known what time it is in the cluster.
    pub(super) fn grant_passes(&mut self) -> Result<(), String> {
        if self.wishes.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let time = self.controller.cluster_time(now);
        let Some((keys, time)) = self.keys.as_mut().zip(time) else { return Ok(()) };
        let mut granted = Vec::new();
        for (wish, sender) in self.wishes.drain(..) {
            if keys.lacks_number(&wish) {
                keys.take_numbers(self.controller.reserve_passes(now));
            }
            let pass = keys.grant(&wish, self.controller.classes(), time).map(Some);
            granted.push((sender, pass));
        }
        self.save()?;
        for (sender, pass) in granted {
            self.answer_saved(move || drop(sender.try_send(pass)));
        }
        Ok(())
    }
}
