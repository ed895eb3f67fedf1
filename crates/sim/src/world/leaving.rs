//! Members that are asked to end, and are started again.

use super::World;
use super::faults::{Harm, Relief};
use super::process::ProcessState;
use crate::queue::Event;
use crate::role::Role;
use std::time::Duration;

/// How long one that is asked to end waits for others to take over. As in the driver it may be too
/// short; here it often is.
const LEAVE_MAX: Duration = Duration::from_secs(2);

impl World {
    /// Asks some node or switch to end.
    pub(super) fn ask_to_end(&mut self) {
        let switches = self.cast.switches;
        let role = match self.below(self.cast.nodes + switches) {
            index if index < switches => Role::Switch(index),
            index => Role::Node(index - switches),
        };
        let process = self.process_mut(role);
        if process.leaving || process.state != ProcessState::Up {
            return;
        }
        process.leaving = true;
        let incarnation = process.incarnation.0;
        self.stats.disturbances += 1;
        self.note(format_args!("{role} is asked to end"));
        self.queue.schedule(self.now + LEAVE_MAX, Event::Relief(Relief::End(role, incarnation)));
    }

    /// It ends, if it still is that one, and is started again after a while.
    pub(super) fn end_leaving(&mut self, role: Role, incarnation: u64) {
        let process = self.process(role);
        if process.leaving && process.incarnation.0 == incarnation {
            self.crash_for_a_while(role, Harm::None);
        }
    }

    /// An order says that it may end.
    pub(super) fn note_may_end(&mut self, role: Role, may_end: bool) {
        let process = self.process(role);
        if may_end && process.leaving && process.is_up() {
            let incarnation = process.incarnation.0;
            self.note(format_args!("{role} may end"));
            self.queue.schedule(self.now, Event::Relief(Relief::End(role, incarnation)));
        }
    }

    /// In a healed world nobody is about to end.
    pub(super) fn end_all_leaving(&mut self) {
        for role in self.cast.roles() {
            if self.process(role).leaving && self.process(role).is_up() {
                self.crash(role, Harm::None);
            }
        }
    }
}
