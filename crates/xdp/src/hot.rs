//! The coherence directory in the kernel: what is put in and taken out, and when.
//!
//! What packets change in an entry is the kernel's alone. The rules by which orders are taken and
//! forgotten are those of the switch in user space, [`OrderGate`].

use crate::counters::Places;
use crate::layout::{self, Delegation, Holders, HotChange, HotKey};
use crate::maps;
use crate::program::{Error, Program};
use cluster::{HotCount, HotEntry, HotOrder, Incarnation, KeyspaceId, Match, NodeId, Selection};
use libbpf_rs::MapHandle;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use switch::{HotLoad, OrderGate, SharedClock};
use wire::{DelegationId, DirectoryClock, Generation, Version};

/// What the kernel holds of hot keys.
#[derive(Debug)]
pub(crate) struct HotKeys {
    pub(crate) gate: OrderGate,
    maps: Maps,
    bits: Arc<Bits>,
    clock: Arc<SharedClock>,
    selection: Selection,
    places: Vec<Option<(NodeId, Incarnation)>>,
    keys: BTreeMap<Name, KernelEntry>,
    /// What the programs compare to know that rows and delegations have not changed: odd while they
    /// do.
    number: u64,
    counts: Places<(Name, Generation), layout::HotLoad>,
}

/// Keyspace and keyhash.
type Name = (KeyspaceId, u64);

/// What there is of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KernelEntry {
    generation: Generation,
    at: Match,
    first: u16,
    readers: u16,
    delegation: Option<cluster::Delegation>,
}

#[derive(Debug)]
struct Maps {
    keys: MapHandle,
    delegations: MapHandle,
    bits: MapHandle,
    holders: MapHandle,
    pauses: MapHandle,
}

/// Two bits for the keyhash of each hot key, as the programs see them. Who looks has received its
/// packet before.
#[derive(Debug)]
pub(crate) struct Bits(Vec<AtomicU64>);

const READERS: usize = wire::HOT_BANK_MAX;
/// In the place of a reader that was none before.
const NO_READER: u8 = u8::MAX;
/// What there are of words of bits.
const WORDS: usize = 1024;
/// In the place of a node or place where there is none.
const NOBODY: u16 = u16::MAX;

impl Bits {
    /// Whether a key with this hash may be hot.
    pub(crate) fn has(&self, keyhash: u64) -> bool {
        bits_of(keyhash).into_iter().all(|(word, bit)| {
            self.0.get(word).is_some_and(|word| word.load(Ordering::SeqCst) & bit != 0)
        })
    }

    fn set(&self, words: &[u64; WORDS]) {
        self.0.iter().zip(words).for_each(|(word, bits)| word.store(*bits, Ordering::SeqCst));
    }
}

/// The words and the bits for a keyhash.
#[expect(clippy::cast_possible_truncation, reason = "the last 16 bits, and those before")]
fn bits_of(keyhash: u64) -> [(usize, u64); 2] {
    [keyhash as u16, (keyhash >> 16) as u16].map(|part| (usize::from(part / 64), 1 << (part % 64)))
}

fn words<'a>(names: impl Iterator<Item = &'a Name>) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bit) in names.flat_map(|(_, keyhash)| bits_of(*keyhash)) {
        *words.get_mut(word).expect("16 bits are 1024 words") |= bit;
    }
    words
}

impl KernelEntry {
    fn of(key: &HotEntry) -> (Name, Self) {
        let HotEntry { generation, match_value: at, first, delegation, .. } = *key;
        // Of more the programs have no holders: those are not asked. On a delegation those of one
        // bank are, for whoever holds a version is in one.
        let bank = key.delegation.map(|_| cluster::bank(key.readers.into(), 0).end as u16);
        let readers = bank.unwrap_or(key.readers).min(READERS as u16);
        ((key.keyspace, key.keyhash), Self { generation, at, first, readers, delegation })
    }

    /// Number of the delegation that it is under.
    fn delegation(&self) -> Option<DelegationId> {
        self.delegation.map(|delegation| delegation.number)
    }

    /// Nodes in the chain of each write of its delegation; 0: it is on none.
    fn replicas(&self) -> u8 {
        self.delegation.map_or(0, |delegation| delegation.replicas)
    }

    /// Nodes that are chosen for each of them, with readers that it is copied to.
    fn chosen(&self) -> u8 {
        self.delegation.map_or(0, |delegation| delegation.chosen())
    }
}

impl HotKeys {
    pub(crate) fn new(program: &Program, incarnation: Incarnation) -> Self {
        let maps = Maps {
            keys: program.map("hot_keys"),
            delegations: program.map("delegations"),
            bits: program.map(".data.hot_bits"),
            holders: program.map(".data.holders"),
            pauses: program.map("pauses"),
        };
        Self {
            gate: OrderGate::new(incarnation),
            maps,
            bits: Arc::new(Bits((0..WORDS).map(|_| AtomicU64::new(0)).collect())),
            clock: Arc::default(),
            selection: Selection::default(),
            places: Vec::new(),
            keys: BTreeMap::new(),
            number: 0,
            counts: Places::new(program.map("hot_loads")),
        }
    }

    /// What the programs compare keyhashes with, now and later.
    pub(crate) fn bits(&self) -> Arc<Bits> {
        self.bits.clone()
    }

    /// The switch's clock, as the programs are told it, now and later.
    pub(crate) fn clock(&self) -> Arc<SharedClock> {
        self.clock.clone()
    }

    /// What the programs are to know of the directory as a whole: 0 if no key is hot, or how
    /// readers are chosen.
    pub(crate) fn rule(&self) -> u8 {
        match self.selection {
            _ if self.keys.is_empty() => 0,
            Selection::Random => 1,
            Selection::Reported => 2,
            Selection::Predicted => 3,
        }
    }

    /// The generation of a key in the directory.
    pub(crate) fn generation_of(&self, keyspace: KeyspaceId, keyhash: u64) -> Option<Generation> {
        self.keys.get(&(keyspace, keyhash)).map(|held| held.generation)
    }

    /// Whether keys are still there that were to be forgotten, because the kernel refused.
    pub(crate) fn is_half_forgotten(&self) -> bool {
        self.gate.installed().is_none() && !self.keys.is_empty()
    }

    /// Whether any key is delegated, or is to go on one.
    pub(crate) fn delegates(&self) -> bool {
        self.keys.values().any(|held| held.delegation.is_some())
    }

    /// The number of the present rows and delegations.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether a key is to be delegated that may have been here before: its versions would be given
    /// once more.
    pub(crate) fn revives_a_delegation(&self, order: &HotOrder) -> bool {
        let newest = self.gate.newest();
        let mut keys = order.keys.iter().map(KernelEntry::of);
        keys.any(|(name, next)| {
            let is_here =
                || self.keys.get(&name).is_some_and(|held| held.delegation() == next.delegation());
            next.delegation().is_some_and(|number| number.order() <= newest && !is_here())
        })
    }

    /// What an order makes of the keys. A delegation that goes on is what it was.
    fn next(&self, order: &HotOrder) -> BTreeMap<Name, KernelEntry> {
        let next = order.keys.iter().map(KernelEntry::of).map(|(name, next)| {
            let kept = self.keys.get(&name).filter(|held| held.generation == next.generation);
            let kept = kept.filter(|held| held.delegation() == next.delegation());
            // But for how often its writes are copied.
            let delegation = next.delegation.map(|delegation| cluster::Delegation {
                replicas: kept.and_then(|held| held.delegation).unwrap_or(delegation).replicas,
                ..delegation
            });
            (name, KernelEntry { delegation, ..next })
        });
        next.collect()
    }

    /// Begins to install a sound order that the gate takes: what it does not name goes. The rule
    /// is to be told then, and the rest to be done with [`settle`](Self::settle).
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told: then all is to be forgotten.
    pub(crate) fn clear_for(&mut self, order: &HotOrder) -> Result<(), Error> {
        if self.gate.installed().is_none() {
            self.clock.begin(order);
        }
        // First: if only half of it is done its generations must not come again.
        self.gate.took(order.revision);
        let next = self.next(order);
        let stays = |name: &Name, generation| {
            next.get(name).is_some_and(|held| held.generation == generation)
        };
        let gone = self.keys.iter().filter(|(name, held)| !stays(name, held.generation));
        let gone: Vec<_> = gone.map(|(name, _)| *name).collect();
        let goes_on = |name: &Name, held: &KernelEntry| {
            stays(name, held.generation)
                && next.get(name).is_some_and(|it| it.delegation() == held.delegation())
        };
        let ended = self.keys.iter().filter(|(name, held)| !goes_on(name, held));
        let ended = ended.filter(|(_, held)| held.delegation.is_some());
        let ended: Vec<_> = ended.map(|(name, _)| *name).collect();
        self.take_out(&gone, &ended)?;
        self.keys.retain(|name, held| stays(name, held.generation));
        for name in ended {
            self.keys.get_mut(&name).into_iter().for_each(|held| held.delegation = None);
        }
        self.counts.retain(|(name, generation)| stays(&name, generation))?;
        self.counts.take(next.iter().map(|(name, held)| (*name, held.generation)));
        self.number += 1;
        Ok(())
    }

    /// Ends to install an order. The rule is to be told after that.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told: then all is to be forgotten.
    pub(crate) fn settle(&mut self, program: &Program, order: &HotOrder) -> Result<(), Error> {
        let next = self.next(order);
        // In this order: who works by a new entry finds its bit and its readers.
        self.put_bits(&words(self.keys.keys().chain(next.keys())))?;
        maps::put(&self.maps.holders, &0_u32.to_ne_bytes(), &holders(order).to_bytes())?;
        if self.places != order.places || next.iter().any(|(name, held)| self.differs(name, held)) {
            let before = Round::of(&self.places);
            for (name, held) in &next {
                if let Some(old) = self.keys.get(name) {
                    program.resettle(&change(
                        name,
                        held,
                        before.moves(old, held, &order.places),
                    ))?;
                }
            }
        }
        let departs = |(name, held): &(&Name, &KernelEntry)| {
            let before = self.keys.get(*name).and_then(KernelEntry::delegation);
            held.delegation().is_some_and(|number| before != Some(number))
        };
        let delegation = |(name, held): (&Name, &KernelEntry)| (key_of(name), unbegun(held));
        let delegations: Vec<_> = next.iter().filter(departs).map(delegation).collect();
        let fresh = next.iter().filter(|(name, _)| !self.keys.contains_key(*name));
        let fresh: Vec<_> =
            fresh.map(|(name, held)| (key_of(name), self.entry(name, held))).collect();
        // What is put in halfway must be known, too.
        self.keys = next;
        maps::put_new(&self.maps.delegations, &delegations)?;
        maps::put_new(&self.maps.keys, &fresh)?;
        self.put_bits(&words(self.keys.keys()))?;
        (self.selection, self.places) = (order.selection, order.places.clone());
        self.number += 1;
        self.clock.order(order.revision);
        Ok(())
    }

    /// Forgets all keys. When this returns no packet is any more dealt with by one of them. The
    /// rule is to be told then.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told: then nothing may pass.
    pub(crate) fn forget(&mut self) -> Result<(), Error> {
        self.gate.forgot();
        let names: Vec<Name> = self.keys.keys().copied().collect();
        self.take_out(&names, &names)?;
        self.keys.clear();
        self.places.clear();
        self.number = self.number.next_multiple_of(2);
        self.put_bits(&[0; WORDS])?;
        self.counts.retain(|_| false)
    }

    /// How often each key was asked for, by keyspace and keyhash.
    pub(crate) fn counts(&self) -> Result<Vec<HotLoad>, Error> {
        let load = |(((keyspace, keyhash), generation), load): (_, layout::HotLoad)| {
            let layout::HotLoad { reads, spread, writes } = load;
            HotLoad { generation, count: HotCount { keyspace, keyhash, reads, spread, writes } }
        };
        Ok(self.counts.read()?.into_iter().map(load).collect())
    }

    /// Takes keys out, and delegations, and waits until no program works on what is left of them:
    /// that memory may then become another's.
    fn take_out(&self, names: &[Name], delegations: &[Name]) -> Result<(), Error> {
        if names.is_empty() && delegations.is_empty() {
            return Ok(());
        }
        for name in names {
            maps::remove(&self.maps.keys, &key_of(name))?;
        }
        for name in delegations {
            maps::remove(&self.maps.delegations, &key_of(name))?;
        }
        maps::pause(&self.maps.pauses)
    }

    fn put_bits(&self, words: &[u64; WORDS]) -> Result<(), Error> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        maps::put(&self.maps.bits, &0_u32.to_ne_bytes(), &bytes)?;
        self.bits.set(words);
        Ok(())
    }

    /// Whether a key that stays has other readers than before.
    fn differs(&self, name: &Name, next: &KernelEntry) -> bool {
        self.keys.get(name).is_some_and(|held| held != next)
    }

    fn entry(&self, name: &Name, held: &KernelEntry) -> [u8; layout::Hot::LEN] {
        let KernelEntry { generation, at, first, readers, .. } = *held;
        let match_low = at.0 as u64;
        let counter = self.counts.of((*name, generation)).into();
        let (replicas, chosen) = (held.replicas(), held.chosen());
        let (floor, proven, holders) = (Version::NONE, 0, [0; READERS]);
        layout::Hot {
            generation,
            match_low,
            floor,
            proven,
            counter,
            first,
            readers,
            replicas,
            chosen,
            holders,
        }
        .to_bytes()
    }
}

fn key_of(&(keyspace, keyhash): &Name) -> [u8; HotKey::LEN] {
    HotKey { keyhash, keyspace: keyspace.0 }.to_bytes()
}

fn change(&(keyspace, keyhash): &Name, held: &KernelEntry, from: [u8; READERS]) -> HotChange {
    let (keyspace, KernelEntry { first, readers, .. }) = (keyspace.0, *held);
    let (replicas, chosen) = (held.replicas(), held.chosen());
    HotChange { keyhash, keyspace, first, readers, replicas, chosen, from }
}

/// A delegation that has not begun.
fn unbegun(held: &KernelEntry) -> [u8; Delegation::LEN] {
    let number = held.delegation().expect("the key is delegated");
    Delegation { number, begun: DirectoryClock::NONE, next: Version::NONE, last: Version::NONE }
        .to_bytes()
}

/// The places of an order, and where each node is among them.
struct Round<'p> {
    places: &'p [Option<(NodeId, Incarnation)>],
    place_of: BTreeMap<(NodeId, Incarnation), usize>,
}

impl<'p> Round<'p> {
    fn of(places: &'p [Option<(NodeId, Incarnation)>]) -> Self {
        let nodes = places.iter().enumerate().filter_map(|(place, of)| Some(((*of)?, place)));
        Self { places, place_of: nodes.collect() }
    }

    /// Which reader each of the readers after a change was before it, in the same incarnation:
    /// those take their holders along.
    fn moves(
        &self,
        before: &KernelEntry,
        next: &KernelEntry,
        after: &[Option<(NodeId, Incarnation)>],
    ) -> [u8; READERS] {
        std::array::from_fn(|reader| {
            let was = || {
                let place = (usize::from(next.first) + reader).checked_rem(after.len())?;
                let place = *self.place_of.get(&(*after.get(place)?)?)?;
                let first = usize::from(before.first);
                let round = if place < first { self.places.len() } else { 0 };
                u8::try_from(place + round - first).ok()
            };
            let is_one = reader < usize::from(next.readers);
            let was = is_one.then(was).flatten();
            was.filter(|was| u16::from(*was) < before.readers).unwrap_or(NO_READER)
        })
    }
}

fn holders(order: &HotOrder) -> Holders {
    let count = u32::try_from(order.places.len()).expect("NODES_MAX at most");
    let mut holders =
        Holders { nodes: [NOBODY; wire::NODES_MAX], places: [NOBODY; wire::NODES_MAX], count };
    for (place, of) in (0_u16..).zip(&order.places) {
        let Some((node, _)) = of else { continue };
        let sound = "the order was checked";
        *holders.nodes.get_mut(usize::from(place)).expect(sound) = node.0;
        *holders.places.get_mut(usize::from(node.0)).expect(sound) = place;
    }
    holders
}
