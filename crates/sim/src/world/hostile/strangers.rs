//! Addresses that are nobody's of the world: the attacker's own, and those of people who never
//! asked for anything.

use crate::role::{Cast, client_endpoint};
use envelope::ENVELOPE_LEN;
use wire::{Endpoint, EnvelopeBody, EnvelopeKind};

/// People in whose name he asks.
pub(super) struct Strangers {
    victims: Vec<Endpoint>,
    /// Of each, what was sent in his name and could be answered by a cookie: how often, and how
    /// many bytes.
    asked: Vec<Exchanged>,
    received: Vec<Exchanged>,
}

#[derive(Clone, Copy, Default)]
struct Exchanged {
    datagrams: u64,
    bytes: u64,
}

impl Exchanged {
    fn add(&mut self, datagram: &[u8]) {
        self.datagrams += 1;
        self.bytes += datagram.len() as u64;
    }
}

impl Strangers {
    pub(super) fn new(cast: Cast) -> Self {
        let victims: Vec<Endpoint> =
            (1..=VICTIMS).map(|number| client_endpoint(cast.clients + number)).collect();
        let none = vec![Exchanged::default(); victims.len()];
        Self { victims, asked: none.clone(), received: none }
    }

    pub(super) fn victims(&self) -> &[Endpoint] {
        &self.victims
    }

    /// Datagrams that came to them.
    pub(super) fn received(&self) -> u64 {
        self.received.iter().map(|it| it.datagrams).sum()
    }

    /// Something is sent in the name of one of them, perhaps.
    pub(super) fn note(&mut self, from: Endpoint, datagram: &[u8]) {
        // What is not longer than a cookie has no right to one.
        if datagram.len() <= ENVELOPE_LEN {
            return;
        }
        let place = self.victims.iter().position(|it| *it == from);
        let asked = place.and_then(|place| self.asked.get_mut(place));
        asked.into_iter().for_each(|asked| asked.add(datagram));
    }

    /// Something is sent to one of them. Says what is wrong with that: there may be a cookie for
    /// each datagram in his name, which is shorter than that, and nothing else.
    pub(super) fn receive(&mut self, to: Endpoint, datagram: &[u8]) -> Result<(), String> {
        let place = self.victims.iter().position(|it| *it == to);
        let both = place.and_then(|at| Some((self.asked.get(at)?, self.received.get_mut(at)?)));
        let Some((asked, received)) = both else {
            return Err(format!("something was sent to nobody: {to}"));
        };
        received.add(datagram);
        let kind = EnvelopeBody::split(datagram).map(|(envelope, _)| envelope.kind);
        let is_cookie = kind == Some(EnvelopeKind::Cookie as u8) && datagram.len() == ENVELOPE_LEN;
        if !is_cookie {
            return Err(format!("{to} was sent {} bytes and no cookie", datagram.len()));
        }
        if received.datagrams > asked.datagrams || received.bytes >= asked.bytes {
            return Err(format!("{to} was sent more than was sent in its name"));
        }
        Ok(())
    }
}

/// How many there are.
const VICTIMS: u16 = 3;
