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
    /// Takes in whatever the engine remembers of the partition; tells how many of its notes make no
    /// sense, and were left out.
    pub(crate) fn restore<E: Engine>(
        &mut self,
        now: Instant,
        engine: &E,
        timers: &mut Timers,
    ) -> u64 {
        let mut left_out = 0;
        engine.notes(self.member.id(), |name, note| {
            left_out += u64::from(self.remember(now, name, note, timers).is_none());
        });
        left_out
    }

    /// Takes one note in. `None` if it makes no sense.
    fn remember(
        &mut self,
        now: Instant,
        name: &[u8],
        note: &[u8],
        timers: &mut Timers,
    ) -> Option<()> {
        match name.split_first()? {
            (b'c', []) => {
                let (counters, digest) = note.split_at_checked(COUNTERS_LEN)?;
                let [last, stable, sum, collected] = words(counters)?;
                self.digest = match words(digest) {
                    Some([digest]) => Some(Digest(digest)),
                    None => words::<0>(digest).map(|_| None)?,
                };
                let [last, stable, collected] = [last, stable, collected].map(Version::new);
                self.restore_counters(last, (stable, sum), collected);
            }
            (b'f', []) => {
                let [forgotten] = words(note)?;
                self.sessions.lacks_up_to(Version::new(forgotten));
            }
            // Counters come before it and the next, by the order of the names.
            (b'e', client) => {
                let ([client], [newest]) = (words(client)?, words(note)?);
                let newest = Version::new(newest).min(self.last_version);
                self.sessions.ended.note(now, client, newest);
            }
            (b'g', upload) => {
                PartKey::parse(upload)?;
                self.uploads.go_on_dropping(upload);
            }
            (b'v', version) => {
                let [version] = words(version)?;
                self.history.restore(Version::new(version));
            }
            (b'n', []) => self.remember_count(note)?,
            (b'p', _) => self.remember_pending(now, note, timers)?,
            (b'q', version) => {
                let [version] = words(version)?;
                self.aside.insert(Version::new(version), note.into());
            }
            (b's', id) => {
                let [client, seq] = words(id)?;
                let (outcome, floor) = Outcome::from_note(note)?;
                self.sessions.record(now, (client, seq), floor, self.last_version, outcome);
            }
            (b'm', key) => {
                let registration = Registration::from_note(note)?;
                let is_known = is_plausible_revision(now, registration.generation.order());
                if !is_known || !registration.version.is_plausible() {
                    return None;
                }
                self.registrations.change(key, registration);
            }
            (b't', key) => {
                let delegations = Delegations::from_note(note)?;
                let delegations = Some(delegations).filter(|it| it.are_plausible(now))?;
                self.delegations.restore(key, delegations);
            }
            _ => return None,
        }
        Some(())
    }

    /// Takes in a pending write.
    pub(crate) fn remember_pending(
        &mut self,
        now: Instant,
        note: &[u8],
        timers: &mut Timers,
    ) -> Option<()> {
        let packet = Packet::parse(note).ok()?;
        let Ok(Body::ChainWrite { fixed, key, value }) = packet.body() else { return None };
        let header = Header::read(packet.header());
        let write = Write { header, fixed, key, value };
        self.check_numbers(now, &header, &Body::ChainWrite { fixed, key, value }).ok()?;
        self.insert_pending(now, &write, now, timers);
        Some(())
    }

    /// Takes in how many writes the sum is made of, unless a build that does not count them has
    /// gone on with the store.
    fn remember_count(&mut self, note: &[u8]) -> Option<()> {
        let [writes, last, sum] = words(note)?;
        if (Version::new(last), sum) == (self.last_version, self.history.sum()) {
            self.history.restore_writes(writes);
        }
        Some(())
    }

    /// Keeps the partition's counters as a note, with the change that they count: an engine may
    /// keep what was not synced yet, and a version must not be given out twice.
    pub(crate) fn note_counters<E: Engine>(&mut self, engine: &mut E) {
        let (stable, sum) = (self.history.stable(), self.history.sum());
        let [last, stable, collected] =
            [self.last_version, stable, self.collected].map(Version::get);
        let (mut note, mut len) = ([0; COUNTERS_LEN + 8], 0);
        let counters = [last, stable, sum, collected].into_iter();
        let words = counters.chain(self.digest.map(|digest| digest.0));
        for (to, word) in note.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
            len += to.len();
        }
        let note = note.get(..len).expect("as many as were written");
        engine.note(self.member.id(), b"c", Some(note));
        if let Some(writes) = self.history.summed_writes() {
            let words = [writes, last, sum].map(u64::to_be_bytes);
            engine.note(self.member.id(), b"n", Some(words.as_flattened()));
        }
        self.history.drop_summed(engine, self.member.partition.id);
    }
}

/// Counters of a partition, without its digest, which may not be known.
const COUNTERS_LEN: usize = 32;

/// So many numbers, and nothing else.
fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (words, []) = bytes.as_chunks::<8>() else { return None };
    let words: &[[u8; 8]; N] = words.try_into().ok()?;
    Some(words.map(u64::from_be_bytes))
}
