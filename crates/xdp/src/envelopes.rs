//! What the sealed program opens and seals packets with: keys, the addresses of members, and what
//! clients may do (`spec/protocol.md`, section 14).

use crate::compile::port_bits;
use crate::layout::{ClassKeyspace, PeriodKeys, Refusals, Source};
use crate::maps;
use crate::program::{Error, Program};
use crate::{Plane, bytes};
use envelope::{Allowed, Counts, EdgeKeys, KeySet, RightsTable, Ring};
use libbpf_rs::MapHandle;
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::EnvelopeRefusal;

/// The maps of a sealed program, and what is in them.
#[derive(Debug)]
pub(crate) struct Envelopes {
    keys: MapHandle,
    pauses: MapHandle,
    ring: MapHandle,
    ring_ports: MapHandle,
    classes: MapHandle,
    class_keyspaces: MapHandle,
    refusals: MapHandle,
    program: Arc<Program>,
    /// Keys that there have been so far.
    serial: u64,
    members: BTreeSet<[u8; Source::LEN]>,
    /// What classes may do in keyspaces in which they have rights of their own.
    spaces: BTreeMap<[u8; ClassKeyspace::LEN], u32>,
}

/// Periods whose keys there are.
const PERIODS: usize = 3;
/// Bytes of one of the two sets of keys in the map `.data.keys`. Behind them is which is active.
const SET_LEN: usize = PERIODS * PeriodKeys::LEN;
/// Classes that rights are known of: all that passes can have.
const CLASSES: usize = envelope::PassNumber::CLASSES as usize;

/// Bits of a class's rights, as `bpf/lib/envelope.h` has them.
const MAY_READ: u8 = 1;
const MAY_WRITE: u8 = 1 << 1;
const MAY_SCAN: u8 = 1 << 2;
const IS_CLASS: u8 = 1 << 3;
const HAS_SPACES: u8 = 1 << 4;

impl Envelopes {
    pub(crate) fn new(program: &Arc<Program>) -> Self {
        let map = |name| program.map(name);
        Self {
            keys: map(".data.keys"),
            pauses: map("pauses"),
            ring: map("ring"),
            ring_ports: map(".data.ring_ports"),
            classes: map(".data.classes"),
            class_keyspaces: map("class_keyspaces"),
            refusals: map("refusals"),
            program: Arc::clone(program),
            serial: 0,
            members: BTreeSet::new(),
            spaces: BTreeMap::new(),
        }
    }

    /// Each packet is opened with the keys before or with these: what is written is no set that a
    /// program looks at, and a set that was looked at is written only after all that did have
    /// ended.
    fn set_keys(&mut self, set: &KeySet) -> Result<(), Error> {
        let mut value = maps::one(&self.keys)?;
        let is_active = |value: &[u8], place| bytes::get(value, 2 * SET_LEN) == Some([place]);
        let (present, other) = if is_active(&value, 0) { (0, SET_LEN) } else { (SET_LEN, 0) };
        let present: Vec<PeriodKeys> = (0..PERIODS)
            .filter_map(|it| PeriodKeys::from_bytes(value.get(present + it * PeriodKeys::LEN..)?))
            .collect();
        // The present period is looked for first. Without its keys there are none.
        let others = || set.periods.iter().filter(|it| it.period != set.current);
        let ordered = set.current().into_iter().flat_map(|it| std::iter::once(it).chain(others()));
        bytes::put(&mut value, other, &[0; SET_LEN]);
        for (place, keys) in ordered.take(PERIODS).enumerate() {
            let next = self.numbered(&present, keys);
            bytes::put(&mut value, other + place * PeriodKeys::LEN, &next.to_bytes());
        }
        maps::put(&self.keys, &0_u32.to_ne_bytes(), &value)?;
        self.program.turn()?;
        maps::pause(&self.pauses)
    }

    /// A period's keys as the program uses them. What it knows of clients under the same keys it
    /// goes on to know.
    fn numbered(&mut self, present: &[PeriodKeys], keys: &envelope::PeriodKeys) -> PeriodKeys {
        let EdgeKeys { clients, members, cookies } = EdgeKeys::of(keys);
        let (clients, members, cookies) = (clients.0, members.0, cookies.0.0);
        let (byte, begun) = (keys.period.byte(), [0; 4]);
        let next = PeriodKeys { serial: 0, clients, members, cookies, begun, byte };
        let is_same = |it: &&PeriodKeys| PeriodKeys { serial: 0, begun, ..**it } == next;
        let known = present.iter().find(is_same).map(|it| it.serial).filter(|it| *it != 0);
        let serial = known.unwrap_or_else(|| {
            self.serial += 1;
            self.serial
        });
        PeriodKeys { serial, ..next }
    }

    /// Members that are new come before those that are gone go.
    fn set_ring(&mut self, ring: &Ring) -> Result<(), Error> {
        let source = |at: wire::Endpoint| Source { addr: at.addr, port: at.port }.to_bytes();
        let next: BTreeSet<_> = ring.endpoints().map(source).collect();
        self.put_ports(next.union(&self.members))?;
        for member in next.difference(&self.members) {
            maps::put(&self.ring, member, &1_u32.to_ne_bytes())?;
        }
        for member in self.members.difference(&next) {
            maps::remove(&self.ring, member)?;
        }
        self.put_ports(next.iter())?;
        self.members = next;
        Ok(())
    }

    fn put_ports<'a>(
        &self,
        members: impl Iterator<Item = &'a [u8; Source::LEN]>,
    ) -> Result<(), Error> {
        maps::put_words(&self.ring_ports, &port_bits(members))
    }

    /// In this order each request meets the rights before or these: no class looks for rights of
    /// its own in a keyspace before they are there, or after they are gone.
    fn set_rights(&mut self, table: &RightsTable) -> Result<(), Error> {
        let mut classes = [0_u8; CLASSES];
        let mut spaces = BTreeMap::new();
        for ((class, place), rights) in (1_u16..).zip(classes.iter_mut().skip(1)).zip(&table.0) {
            *place = bits(rights.elsewhere);
            for (keyspace, allowed) in &rights.keyspaces {
                *place |= HAS_SPACES;
                let at = ClassKeyspace { class, keyspace: *keyspace };
                spaces.insert(at.to_bytes(), u32::from(bits(*allowed)));
            }
        }
        for (at, allowed) in &spaces {
            if self.spaces.get(at) != Some(allowed) {
                maps::put(&self.class_keyspaces, at, &allowed.to_ne_bytes())?;
            }
        }
        maps::put(&self.classes, &0_u32.to_ne_bytes(), &classes)?;
        for at in self.spaces.keys().filter(|at| !spaces.contains_key(*at)) {
            maps::remove(&self.class_keyspaces, at)?;
        }
        self.spaces = spaces;
        Ok(())
    }

    fn refusals(&self) -> Result<Counts, Error> {
        let all = maps::per_processor(&self.refusals, 0)?;
        let counted = all.iter().filter_map(|value| Refusals::from_bytes(value));
        let by_reason = |counted: Refusals| {
            EnvelopeRefusal::ALL.into_iter().zip(counted.of.into_iter().skip(1))
        };
        Ok(counted.flat_map(by_reason).collect())
    }
}

impl<C: FnMut() -> Instant> Plane<C> {
    /// Takes other keys. Each packet is opened with those before or with these, and sealed
    /// likewise. A plain switch has no use for them.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told.
    pub fn install_keys(&mut self, set: &KeySet) -> Result<(), Error> {
        self.envelopes.as_mut().map_or(Ok(()), |it| it.set_keys(set))
    }

    /// Takes the addresses of all members: the nodes and caches of the tables among them. To be
    /// done before the tables are installed that they come with.
    ///
    /// # Errors
    ///
    /// As [`install_keys`](Self::install_keys).
    pub fn install_ring(&mut self, ring: &Ring) -> Result<(), Error> {
        self.envelopes.as_mut().map_or(Ok(()), |it| it.set_ring(ring))
    }

    /// Takes the rights of each class.
    ///
    /// # Errors
    ///
    /// As [`install_keys`](Self::install_keys).
    pub fn install_rights(&mut self, table: &RightsTable) -> Result<(), Error> {
        self.envelopes.as_mut().map_or(Ok(()), |it| it.set_rights(table))
    }

    /// What was refused so far.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn read_envelope_refusals(&self) -> Result<Counts, Error> {
        self.envelopes.as_ref().map_or_else(|| Ok(Counts::default()), Envelopes::refusals)
    }
}

fn bits(of: Allowed) -> u8 {
    let bit = |is, bit| if is { bit } else { 0 };
    IS_CLASS | bit(of.read, MAY_READ) | bit(of.write, MAY_WRITE) | bit(of.scan, MAY_SCAN)
}
