//! Back-pressure: why nothing is read from a client at the moment, counted.

use super::{Connection, OUTPUT_MAX};
use crate::stats::HeldBack;
use std::sync::atomic::Ordering;

impl Connection {
    /// Notes what is under way, and whether the client has to wait from now on.
    pub(super) fn note_pressure(&mut self) {
        let streaming = usize::from(self.streaming.is_some());
        self.peer.entry.running.store(self.slots.len() + streaming, Ordering::Relaxed);
        self.peer.entry.waiting.store(self.next.is_some(), Ordering::Relaxed);
        let why = self.held_back();
        if self.held != why {
            self.held = why;
            if let Some(why) = why {
                self.shared.stats.note_held_back(why);
            }
        }
    }

    fn held_back(&self) -> Option<HeldBack> {
        // What has been read is a command, or the beginning of one, that would be read on.
        let more = !self.input.is_empty();
        if self.closing.is_some() {
            None
        } else if self.paused.is_some() {
            Some(HeldBack::Pause)
        } else if self.output.len() >= OUTPUT_MAX {
            Some(HeldBack::Replies)
        } else if self.is_full() {
            Some(HeldBack::Overlap)
        } else if self.next.is_some() || self.alone && more {
            Some(HeldBack::Order)
        } else {
            None
        }
    }
}
