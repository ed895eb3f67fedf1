//! NetCache (Jin et al., SOSP 2017), which Pegasus is compared with: a cache of values in the
//! switch, before the pipeline that knows the way to every key.
//!
//! Reads of a cached key are answered by the switch, as long as its value is valid. A write makes
//! it invalid on its way to the key's home; the answer brings the new value, and so does that of
//! any read that the home has answered meanwhile. Which keys are cached is decided as there: reads
//! of all others are counted in a sketch, those that are hot are fetched from their homes, a
//! bounded number a second, and when there is no room less hot ones go.
//!
//! What NetCache leaves to a server that sends one update at a time is done by versions here: a
//! value is shown only if no answer with a newer version has passed ([`entry`]). An answer of
//! before the key was cached may have: so it is shown only once a fetch that was sent after that
//! is answered.
//!
//! It looks at requests for one key. What an MGET or a RANGE shows it does not see, and it knows of
//! no other switch: it is made for experiments that have neither.

mod entry;
mod heat;
#[cfg(test)]
mod tests;

use entry::Entry;
use heat::{Candidate, Heat};
use machine::{Instant, Outbox, Rng};
use std::collections::BTreeMap;
use std::time::Duration;
use switch::Pipeline;
use wire::{
    Body, Code, DropReason, Endpoint, Fields as _, GetReplyBody, HEADER_LEN, Header, KeyReply, Op,
    Packet,
};

/// Values in the cache, as many as Pegasus gives it for its comparison.
pub(crate) const ITEMS_MAX: usize = 10_000;

/// Between two looks at which keys are hot.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Fetches of one look: NetCache's controller makes 10,000 updates a second.
const FETCHES_MAX: usize = 100;

/// How long reads are counted.
const COUNT_FOR: Duration = Duration::from_secs(1);

/// Cached keys that are looked at for the one that goes: NetCache samples, too.
const SAMPLES: u32 = 16;

/// What the switch knows a key by: keyspace and keyhash.
type Name = (u16, u64);

/// The cache of one switch.
#[derive(Debug)]
pub(crate) struct NetCache {
    /// The switch's own address, to which it fetches.
    endpoint: Endpoint,
    /// By which it knows answers to its fetches.
    client: u64,
    /// Number of the last fetch.
    fetches: u64,
    items: Vec<(Name, Entry)>,
    places: BTreeMap<Name, usize>,
    heat: Heat,
    rng: Rng,
    next_look: Instant,
    count_until: Instant,
    /// Takes the answers to fetches, which go no further.
    fetched: Outbox,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The cache answered it.
    Answered,
    /// It went through the pipeline.
    Forwarded,
}

impl NetCache {
    /// An empty cache of the switch at this address.
    pub(crate) fn new(endpoint: Endpoint, mut rng: Rng) -> Self {
        Self {
            endpoint,
            client: rng.next_u64(),
            fetches: 0,
            items: Vec::new(),
            places: BTreeMap::new(),
            heat: Heat::new(),
            rng,
            next_look: Instant(0),
            count_until: Instant(0),
            fetched: Outbox::default(),
        }
    }

    /// Takes one datagram that came to the switch, in the manner of [`Pipeline::process`], which
    /// deals with whatever is not answered here.
    ///
    /// # Errors
    ///
    /// Those of the pipeline.
    pub(crate) fn process(
        &mut self,
        now: Instant,
        from: Endpoint,
        datagram: &mut [u8],
        pipeline: &mut Pipeline,
        out: &mut Outbox,
    ) -> Result<Way, DropReason> {
        self.look(now, pipeline, out);
        if let Ok(packet) = Packet::parse(datagram) {
            let (op, header) = (packet.op(), packet.header());
            if op == Op::Get && self.read(from, &packet, pipeline.is_leased(now), out) {
                return Ok(Way::Answered);
            }
            if op == Op::GetReply && header.client() == self.client {
                pipeline.process(now, from, datagram, &mut self.fetched)?;
                while self.fetched.pop().is_some() {}
                self.take_fetched(datagram);
                return Ok(Way::Forwarded);
            }
            if op.is_write()
                && let Some(entry) = self.entry(header)
            {
                entry.invalidate(header, packet.body().ok().as_ref());
            }
        }
        pipeline.process(now, from, datagram, out)?;
        // A reply passes unchanged; it is on its way only when `out` is emptied.
        self.learn(datagram);
        Ok(Way::Forwarded)
    }

    /// Answers a read if it may; else counts it.
    fn read(
        &mut self,
        from: Endpoint,
        packet: &Packet<'_>,
        leased: bool,
        out: &mut Outbox,
    ) -> bool {
        let Ok(Body::Get { key }) = packet.body() else { return false };
        let header = packet.header();
        let Some(entry) = self.entry(header) else {
            self.heat.count(name(header), header.match_value(), key);
            return false;
        };
        entry.reads = entry.reads.saturating_add(1);
        let Some(valid) = entry.valid().filter(|_| leased && entry.key == key) else {
            return false;
        };
        let mut reply = Header {
            match_value: header.match_value(),
            keyhash: header.keyhash(),
            op: Op::GetReply as u8,
            keyspace: header.keyspace(),
            client: header.client(),
            seq: header.seq(),
            code: Code::Ok as u8,
            ..Header::default()
        };
        KeyReply { version: valid.version }.put(&mut reply);
        let fixed = GetReplyBody { expiry_ms: 0, now_ms: 0 }.to_bytes();
        out.push(from, |bytes| {
            wire::emit(bytes, &reply, &[&fixed, &valid.value]);
        });
        true
    }

    /// Takes note of a reply that is let through.
    fn learn(&mut self, datagram: &[u8]) {
        let Ok(packet) = Packet::parse(datagram) else { return };
        let (op, header) = (packet.op(), packet.header());
        let answers =
            [Op::GetReply, Op::PutReply, Op::DelReply, Op::CasReply, Op::IncrReply].contains(&op);
        if answers && let Some(entry) = self.entry(header) {
            entry.learn(op, header, packet.body().ok().as_ref());
        }
    }

    /// Takes the answer to a fetch.
    fn take_fetched(&mut self, datagram: &[u8]) {
        let Ok(packet) = Packet::parse(datagram) else { return };
        let (Ok(body), header) = (packet.body(), packet.header()) else { return };
        if let Some(entry) = self.entry(header) {
            entry.fetched(header, &body);
        }
    }

    /// The entry of the key that a packet is about.
    fn entry(&mut self, header: &[u8; HEADER_LEN]) -> Option<&mut Entry> {
        let place = *self.places.get(&name(header))?;
        let (_, entry) = self.items.get_mut(place).expect("places are those of items");
        (entry.match_value == header.match_value()).then_some(entry)
    }

    /// Now and then: fetches what is awaited again, caches what is hot, counts anew. A packet
    /// makes it happen, for the switch has no other clock.
    fn look(&mut self, now: Instant, pipeline: &mut Pipeline, out: &mut Outbox) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK_EVERY;
        let room = FETCHES_MAX - self.awaited().len();
        for (name, candidate) in self.heat.take(room) {
            // Of two keys with one keyhash the first is cached.
            if !self.places.contains_key(&name) && self.make_room(&candidate) {
                self.insert(name, candidate);
            }
        }
        for name in self.awaited() {
            self.fetch(now, name, pipeline, out);
        }
        if now >= self.count_until {
            self.count_until = now + COUNT_FOR;
            self.heat.clear();
            self.items.iter_mut().for_each(|(_, entry)| entry.reads = 0);
        }
    }

    /// Keys that no fetch has been answered of, as many as may be fetched at a time.
    fn awaited(&self) -> Vec<Name> {
        let awaited = self.items.iter().filter(|(_, entry)| entry.is_awaited());
        awaited.map(|(name, _)| *name).take(FETCHES_MAX).collect()
    }

    /// Asks a key's home for its value, like any client.
    fn fetch(&mut self, now: Instant, name: Name, pipeline: &mut Pipeline, out: &mut Outbox) {
        self.fetches += 1;
        let place = self.places.get(&name).expect("only cached keys are fetched");
        let (_, entry) = self.items.get(*place).expect("places are those of items");
        let request = Header {
            match_value: entry.match_value,
            keyhash: name.1,
            op: Op::Get as u8,
            keyspace: name.0,
            client: self.client,
            seq: self.fetches,
            key_len: u16::try_from(entry.key.len()).expect("it came in a datagram"),
            ..Header::default()
        };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &request, &[&entry.key]);
        // What is dropped is counted there, and fetched again.
        let _ = pipeline.process(now, self.endpoint, &mut datagram, out);
    }

    fn insert(&mut self, name: Name, candidate: Candidate) {
        self.places.insert(name, self.items.len());
        self.items.push((name, Entry::new(candidate, self.fetches + 1)));
    }

    /// Whether there is room for this key, if need be that of one that is read less.
    fn make_room(&mut self, candidate: &Candidate) -> bool {
        if self.items.len() < ITEMS_MAX {
            return true;
        }
        let samples = (0..SAMPLES).filter_map(|_| {
            let place = self.rng.below(ITEMS_MAX as u64) as usize;
            self.items.get(place).map(|(name, entry)| (entry.reads, *name))
        });
        match samples.min() {
            Some((reads, name)) if reads < candidate.reads.into() => self.remove(name),
            _ => false,
        }
    }

    /// Forgets a key; returns whether it was there.
    fn remove(&mut self, name: Name) -> bool {
        let Some(place) = self.places.remove(&name) else { return false };
        self.items.swap_remove(place);
        if let Some((moved, _)) = self.items.get(place) {
            self.places.insert(*moved, place);
        }
        true
    }
}

fn name(header: &[u8; HEADER_LEN]) -> Name {
    (header.keyspace(), header.keyhash())
}
