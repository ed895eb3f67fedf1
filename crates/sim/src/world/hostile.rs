//! A network that is not to be trusted: packets are in envelopes, and somebody attacks.
//!
//! He does so to the very end, also in the healed world. Keys come with orders: members hear of
//! those of a new period one after the other, some of them late. Clients have their passes renewed
//! when they reach the controller at work.

mod attacker;
mod envelopes;
mod strangers;
mod thief;

pub use attacker::Attack;

use super::World;
use super::process::ProcessState;
use super::traffic::carry;
use crate::options::{Hostility, Options};
use crate::queue::Event;
use crate::role::{Cast, Role, role_of};
use crate::routes::content_routing;
use attacker::{Attacker, pick};
use cluster::{KeyspaceId, Match};
use envelope::{ENVELOPE_LEN, Pass};
use envelopes::{Envelopes, Opened};
use machine::{Instant, Rng};
use std::time::Duration;
use thief::Thief;
use wire::{ContentClass, Endpoint, EnvelopeRefusal, HEADER_LEN, Header, Op, hop_flag};

/// What a world has of envelopes, and who attacks it.
pub(super) struct Guard {
    envelopes: Envelopes,
    attacker: Attacker,
}

/// Something about envelopes that is due.
#[derive(Debug)]
pub(crate) enum GuardStep {
    /// The attacker acts.
    Attack,
    /// A client wants its pass renewed.
    Renew(u16),
    /// The controller has given it newer keys.
    Renewed(u16, Box<Pass>),
}

/// How much was attacked, and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attacks {
    /// Datagrams of each kind, in the order of [`Attack::ALL`].
    pub sent: [u64; Attack::ALL.len()],
    /// Datagrams that were refused for each reason, in the order of [`EnvelopeRefusal::ALL`].
    pub refused: [u64; EnvelopeRefusal::ALL.len()],
    /// Cookies for people who had asked for nothing.
    pub cookies: u64,
}

impl Attacks {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |(one, other): (u64, u64)| one + other;
        let sent = self.sent.into_iter().zip(other.sent).map(sum);
        let refused = self.refused.into_iter().zip(other.refused).map(sum);
        let mut both = Self { cookies: self.cookies + other.cookies, ..Self::default() };
        both.sent.iter_mut().zip(sent).for_each(|(place, sum)| *place = sum);
        both.refused.iter_mut().zip(refused).for_each(|(place, sum)| *place = sum);
        both
    }
}

impl Guard {
    pub(super) fn new(options: &Options, hostility: &Hostility, cast: Cast) -> Self {
        let rng = Rng::new(options.seed).fork("attacker");
        Self {
            envelopes: Envelopes::new(options, hostility, cast),
            attacker: Attacker::new(rng, cast, options.shards),
        }
    }

    /// A process starts.
    pub(super) fn begin(&mut self, role: Role) {
        self.envelopes.begin(role);
    }

    /// A member takes an order, which was given at this time.
    pub(super) fn tell(&mut self, role: Role, given: Instant) {
        self.envelopes.tell(role, given);
    }

    /// The datagrams that a packet is to go in.
    pub(super) fn seal(
        &mut self,
        role: Role,
        now: Instant,
        to: Endpoint,
        packet: &[u8],
    ) -> Vec<Vec<u8>> {
        self.envelopes.seal(role, now, to, packet)
    }

    /// What came of a datagram at a switch is sent.
    pub(super) fn end_turn(&mut self, role: Role) {
        self.envelopes.end_turn(role);
    }

    /// A datagram is on the wire.
    pub(super) fn see(&mut self, from: Endpoint, to: Endpoint, bytes: &[u8]) {
        self.attacker.see(from, to, bytes);
    }

    /// What was attacked so far.
    pub(super) fn attacks(&self) -> Attacks {
        let cookies = self.attacker.strangers.received();
        Attacks { sent: self.attacker.attacks, refused: self.envelopes.refused, cookies }
    }
}

impl World {
    /// The attacker begins, and clients begin to renew their passes.
    pub(super) fn begin_hostilities(&mut self) {
        let Some(hostility) = self.options.hostility else { return };
        self.queue.schedule(self.now + hostility.attack_every, Event::Guard(GuardStep::Attack));
        for client in 0..self.cast.clients {
            let first = self.now + self.up_to(hostility.period / 2);
            self.queue.schedule(first, Event::Guard(GuardStep::Renew(client)));
        }
    }

    pub(super) fn take_guard_step(&mut self, step: GuardStep) {
        let Some(hostility) = self.options.hostility else { return };
        match step {
            GuardStep::Attack => {
                self.attack();
                let wait = self.up_to(2 * hostility.attack_every) + Duration::from_micros(1);
                self.queue.schedule(self.now + wait, Event::Guard(GuardStep::Attack));
            }
            GuardStep::Renew(client) => {
                self.ask_for_renewal(client);
                let wait = hostility.period / 4 + self.up_to(hostility.period / 4);
                self.queue.schedule(self.now + wait, Event::Guard(GuardStep::Renew(client)));
            }
            GuardStep::Renewed(client, pass) => {
                if self.process(Role::Client(client)).state == ProcessState::Up
                    && let Some(guard) = &mut self.guard
                {
                    guard.envelopes.renew(client, *pass);
                }
            }
        }
    }

    /// A client asks the controller at work for newer keys, and is given them if that is up and
    /// both reach each other.
    fn ask_for_renewal(&mut self, client: u16) {
        let (role, master) = (Role::Client(client), Role::Controller(self.leader));
        let Some(guard) = &mut self.guard else { return };
        let Some(number) = guard.envelopes.number(client) else { return };
        if !self.process(role).is_free() || !self.process(master).is_free() {
            return;
        }
        let [Some(asked), _] = self.net.carry_stream(self.now, role, master) else { return };
        let [Some(at), _] = self.net.carry_stream(asked, master, role) else { return };
        let Some(guard) = &mut self.guard else { return };
        let pass = Box::new(guard.envelopes.pass(number, asked));
        self.queue.schedule(at, Event::Guard(GuardStep::Renewed(client, pass)));
    }

    fn attack(&mut self) {
        let Some(guard) = &mut self.guard else { return };
        let Guard { attacker, envelopes } = &mut **guard;
        let any = pick(&mut attacker.rng, &Attack::ALL).copied();
        let hurries = attacker.snatched.is_some();
        let Some(attack) = any.map(|any| if hurries { Attack::Mislead } else { any }) else {
            return;
        };
        attacker.thief.pass = Some(envelopes.pass(Thief::number(), self.now));
        let forged = attacker.forge(attack).or_else(|| {
            let keyspaces = self.keyspaces.as_ref()?;
            let mut draw =
                |writes| attacker.thief.draw(self.now, keyspaces, &self.options.load, writes);
            let (read, write) = (draw(false)?, draw(true)?);
            attacker.steal(attack, read, write)
        });
        // What he could as well send to strangers himself is nothing to the cluster.
        let is_one_of_us = |it: &attacker::Forged| self.cast.has(role_of(it.to).0);
        let Some(forged) = forged.filter(is_one_of_us) else { return };
        attacker.note(attack, &forged);
        let attacker::Forged { from, to, bytes, delay } = forged;
        self.queue.schedule(self.now + delay, Event::Datagram { from, to, bytes });
    }

    /// Something comes to an address where nobody of the world is.
    pub(super) fn stranger_receives(&mut self, (from, to): (Endpoint, Endpoint), bytes: &[u8]) {
        let received = match &mut self.guard {
            Some(guard) if guard.attacker.thief.endpoint() == to => {
                guard.attacker.receive(from, bytes);
                Ok(())
            }
            Some(guard) => guard.attacker.strangers.receive(to, bytes),
            None => Err(format!("something was sent to nobody: {to}")),
        };
        if let Err(why) = received {
            self.history.violation(why);
        }
    }

    /// The packet of a datagram that a process takes, if it lets it in.
    pub(super) fn let_in(
        &mut self,
        role: Role,
        (from, to): (Endpoint, Endpoint),
        bytes: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let Some(guard) = &mut self.guard else { return Some(bytes) };
        // Whoever was asked at a content address answers from there.
        let answers_from = content_address(&bytes).unwrap_or(to);
        let opened = guard.envelopes.open(role, from, bytes);
        let (answers, answers_from) = match opened {
            Opened::Packet(packet) => {
                if let Some(what) = guard.envelopes.violation.take() {
                    self.history.violation(what);
                }
                return Some(packet);
            }
            Opened::Ask(cookie) => (vec![(from, cookie.to_vec())], answers_from),
            Opened::Resend(again) => (again, to),
            Opened::Nothing => return None,
        };
        for (to, bytes) in answers {
            let Self { net, queue, guard, now, .. } = self;
            if let Some(to) = net.resolve(*now, to) {
                carry((net, queue, guard.as_deref_mut()), *now, (role, answers_from), to, &bytes);
            }
        }
        None
    }
}

/// The content address that a request was sent to, if it was.
fn content_address(datagram: &[u8]) -> Option<Endpoint> {
    let packet = datagram.get(ENVELOPE_LEN..)?;
    let header = Header::read(packet.first_chunk::<HEADER_LEN>()?);
    let by_address = hop_flag::DIRECT | hop_flag::BY_ADDRESS;
    let op = Op::from_wire(header.op).filter(|_| header.hop_flags & by_address == by_address)?;
    let class = ContentClass::of_header(op, &header)?;
    let (keyspace, at) = (KeyspaceId(header.keyspace), Match(header.match_value));
    content_routing().endpoint(class, keyspace, at)
}
