//! Takes in what an earlier incarnation has left on record of a replica.

use crate::engine::Engine;
use crate::hot::delegation::records::Delegations;
use crate::hot::registrations::Registration;
use crate::replica::Replica;
use crate::replica::digest::Digest;
use crate::replica::sessions::outcome::Outcome;
use crate::replica::write::Write;
use crate::shard::timers::Timers;
use cluster::is_plausible_revision;
use machine::Instant;
use wire::{Body, Header, Packet, PartKey, Version};

impl Replica {
    /// Takes in whatever the engine remembers of the partition.
    pub(crate) fn restore<E: Engine>(&mut self, now: Instant, engine: &E, timers: &mut Timers) {
        engine.notes(self.member.id(), |name, note| self.remember(now, name, note, timers));
    }

    fn remember(&mut self, now: Instant, name: &[u8], note: &[u8], timers: &mut Timers) {
        match name.split_first() {
            Some((b'c', [])) => {
                if let ([last, stable, sum, collected, digest], []) = note.as_chunks::<8>() {
                    let [last, stable, sum, collected, digest] =
                        [last, stable, sum, collected, digest].map(|it| u64::from_be_bytes(*it));
                    self.digest = Digest(digest);
                    let [last, stable, collected] = [last, stable, collected].map(Version::new);
                    self.restore_counters(last, (stable, sum), collected);
                }
            }
            Some((b'f', [])) => {
                if let ([forgotten], []) = note.as_chunks::<8>() {
                    self.sessions.lacks_up_to(Version::new(u64::from_be_bytes(*forgotten)));
                }
            }
            // Counters come before it and the next, by the order of the names.
            Some((b'e', client)) => {
                if let (Ok(client), ([newest], [])) = (client.try_into(), note.as_chunks::<8>()) {
                    let newest = Version::new(u64::from_be_bytes(*newest)).min(self.last_version);
                    self.sessions.ended.note(now, u64::from_be_bytes(client), newest);
                }
            }
            Some((b'g', upload)) if PartKey::parse(upload).is_some() => {
                self.uploads.go_on_dropping(upload);
            }
            Some((b'v', version)) => {
                if let Ok(version) = version.try_into().map(u64::from_be_bytes) {
                    self.history.restore(Version::new(version));
                }
            }
            Some((b'p', _)) => {
                self.remember_pending(now, note, timers);
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
                        && registration.version.is_plausible()
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

    fn remember_pending(&mut self, now: Instant, note: &[u8], timers: &mut Timers) {
        let Ok(packet) = Packet::parse(note) else { return };
        let Ok(Body::ChainWrite { fixed, key, value }) = packet.body() else { return };
        let header = Header::read(packet.header());
        let write = Write { header, fixed, key, value };
        if self.check_numbers(now, &header, &Body::ChainWrite { fixed, key, value }).is_ok() {
            self.insert_pending(now, &write, now, timers);
        }
    }

    /// Keeps the partition's counters as a note, with the change that they count: an engine may
    /// keep what was not synced yet, and a version must not be given out twice.
    pub(crate) fn note_counters<E: Engine>(&mut self, engine: &mut E) {
        let (stable, sum) = (self.history.stable(), self.history.sum());
        let mut note = [0; 40];
        let [last, stable, collected] =
            [self.last_version, stable, self.collected].map(Version::get);
        let words = [last, stable, sum, collected, self.digest.0];
        for (to, word) in note.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        engine.note(self.member.id(), b"c", Some(&note));
        self.history.drop_summed(engine, self.member.partition.id);
    }
}
