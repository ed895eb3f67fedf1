//! What a replica keeps on record besides the values: its counters, its pending writes, the
//! outcomes of its clients, the registrations and delegations of hot keys. Names begin with a
//! letter each: `c`, `e` and a client that has said goodbye, `f` for how far outcomes were
//! forgotten, `p` and a pending version, `s` and a request id, `m` and a key, `t` and a key, `v`
//! and a committed version.

use crate::engine::Engine;
use crate::hot::delegation::records::Delegations;
use crate::hot::registrations::Registration;
use crate::replica::Replica;
use crate::replica::digest::Digest;
use crate::replica::sessions::table::Outcome;
use crate::replica::write::Write;
use crate::shard::timers::Timers;
use cluster::{is_plausible_revision, is_plausible_version};
use machine::Instant;
use wire::{Body, Header, Packet};

impl Replica {
    /// Takes in whatever the engine remembers of the partition.
    pub(crate) fn restore<E: Engine>(&mut self, now: Instant, engine: &E, timers: &mut Timers) {
        engine.notes(self.id(), |name, note| self.remember(now, name, note, timers));
    }

    fn remember(&mut self, now: Instant, name: &[u8], note: &[u8], timers: &mut Timers) {
        match name.split_first() {
            Some((b'c', [])) => {
                if let ([last, stable, sum, collected, digest], []) = note.as_chunks::<8>() {
                    let [last, stable, sum, collected, digest] =
                        [last, stable, sum, collected, digest].map(|it| u64::from_be_bytes(*it));
                    self.digest = Digest(digest);
                    self.restore_counters(last, (stable, sum), collected);
                }
            }
            Some((b'f', [])) => {
                if let ([forgotten], []) = note.as_chunks::<8>() {
                    self.sessions.lacks_up_to(u64::from_be_bytes(*forgotten));
                }
            }
            // Counters come before it and the next, by the order of the names.
            Some((b'e', client)) => {
                if let (Ok(client), ([newest], [])) = (client.try_into(), note.as_chunks::<8>()) {
                    let newest = u64::from_be_bytes(*newest).min(self.last_version);
                    self.sessions.ended.note(now, u64::from_be_bytes(client), newest);
                }
            }
            Some((b'v', version)) => {
                if let Ok(version) = version.try_into().map(u64::from_be_bytes) {
                    self.history.restore(version);
                }
            }
            Some((b'p', _)) => {
                let Ok(packet) = Packet::parse(note) else { return };
                let Ok(Body::ChainWrite { fixed, key, value }) = packet.body() else { return };
                let header = Header::read(packet.header());
                let write = Write { header, fixed, key, value };
                if self
                    .check_numbers(now, &header, &Body::ChainWrite { fixed, key, value })
                    .is_err()
                {
                    return;
                }
                self.insert_pending(now, &write, now, timers);
            }
            Some((b's', id)) => {
                let ([client, seq], []) = id.as_chunks::<8>() else { return };
                let Some((outcome, floor)) = Outcome::from_note(note) else { return };
                let (client, seq) = (u64::from_be_bytes(*client), u64::from_be_bytes(*seq));
                self.sessions.record(now, (client, seq), floor, self.last_version, outcome);
            }
            Some((b'm', key)) => {
                let can_be = |registration: &Registration| {
                    is_plausible_revision(now, registration.generation.order())
                        && is_plausible_version(registration.version)
                };
                if let Some(registration) = Registration::from_note(note).filter(can_be) {
                    self.registrations.change(key, registration);
                }
            }
            Some((b't', key)) => {
                if let Some(delegations) =
                    Delegations::from_note(note).filter(|it| it.are_plausible(now))
                {
                    self.delegations.restore(key, delegations);
                }
            }
            _ => {}
        }
    }

    /// Keeps the partition's counters as a note, with the change that they count: an engine may
    /// keep what was not synced yet, and a version must not be given out twice.
    pub(crate) fn note_counters<E: Engine>(&mut self, engine: &mut E) {
        let (stable, sum) = (self.history.stable(), self.history.sum());
        let mut note = [0; 40];
        let words = [self.last_version, stable, sum, self.collected, self.digest.0];
        for (to, word) in note.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        engine.note(self.id(), b"c", Some(&note));
        self.history.drop_summed(engine, self.partition.id);
    }
}

/// The name of the note that keeps the newest version of an outcome that was forgotten. It comes
/// before those of sessions, which are what is left.
pub(crate) const FORGOTTEN_NAME: &[u8] = b"f";

/// The name of the note that keeps a pending write.
pub(crate) fn pending_name(version: u64) -> [u8; 9] {
    let mut name = [b'p'; 9];
    if let Some((_, number)) = name.split_first_mut() {
        number.copy_from_slice(&version.to_be_bytes());
    }
    name
}

/// The name of the note that keeps a registration.
pub(crate) fn registration_name(key: &[u8]) -> Vec<u8> {
    [b"m", key].concat()
}

/// The name of the note that keeps the delegations of a key.
pub(crate) fn delegations_name(key: &[u8]) -> Vec<u8> {
    [b"t", key].concat()
}

/// The name of the note that keeps that a client has said goodbye.
pub(crate) fn ended_name(client: u64) -> [u8; 9] {
    let mut name = [b'e'; 9];
    if let Some((_, number)) = name.split_first_mut() {
        number.copy_from_slice(&client.to_be_bytes());
    }
    name
}

/// The name of the note that keeps one outcome.
pub(crate) fn session_name(client: u64, seq: u64) -> [u8; 17] {
    let mut name = [b's'; 17];
    if let Some((_, id)) = name.split_first_mut() {
        let (first, second) = id.split_at_mut(8);
        first.copy_from_slice(&client.to_be_bytes());
        second.copy_from_slice(&seq.to_be_bytes());
    }
    name
}
