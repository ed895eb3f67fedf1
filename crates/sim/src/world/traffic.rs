//! Datagrams: from the network to the machines, and from the machines to the network.

use super::hostile::Guard;
use super::process::{Parcel, ProcessState};
use super::{Unit, World};
use crate::clock::nanos;
use crate::net::Net;
use crate::queue::{Event, Queue};
use crate::role::{Role, role_of, service};
use crate::routes::content_routing;
use cluster::{CacheId, KeyspaceId, Match, Mutant, NodeId, Partition, PartitionId};
use machine::{Datagram, Instant};
use std::time::Duration;
use wire::{
    Body, CacheMessage, Code, ContentClass, DropReason, Endpoint, Fields as _, HEADER_LEN, Header,
    Op, Packet, hop_flag,
};

impl World {
    pub(super) fn datagram_arrives(&mut self, from: Endpoint, to: Endpoint, bytes: Vec<u8>) {
        let (role, _) = role_of(to);
        if self.cast.has(role) {
            self.arrive(role, Parcel::Datagram { from, to, bytes });
        } else {
            self.stranger_receives((from, to), &bytes);
        }
    }

    /// A process takes a datagram.
    pub(super) fn take_datagram(
        &mut self,
        role: Role,
        from: Endpoint,
        to: Endpoint,
        bytes: Vec<u8>,
    ) {
        let Some(mut bytes) = self.let_in(role, (from, to), bytes) else { return };
        let local = self.local(role);
        match role {
            Role::Switch(index) => {
                self.tell_routers(from, &bytes);
                if matches!(role_of(from), (Role::Node(_), _)) {
                    self.forge(to, &bytes);
                } else {
                    self.make_up(from, to, &bytes);
                }
                self.forward(index, local, from, &mut bytes);
            }
            Role::Client(index) => {
                self.check_source(from, &bytes);
                let index = usize::from(index);
                let Some(actor) = self.actors.get_mut(index) else { return };
                actor.machine.handle_packet(local, from, &bytes);
                self.pump(Unit::Actor(index));
            }
            Role::Node(node) => {
                let (_, offset) = role_of(to);
                let index = self.shards_of(node).start + usize::from(offset);
                let waiting = u16::try_from(self.process(role).waiting()).unwrap_or(u16::MAX);
                let is_old = self.process(role).is_old;
                let shard = self.shards.get_mut(index).filter(|shard| shard.endpoint == to);
                let Some(shard) = shard else {
                    self.history.violation(format!("something was sent to no shard: {to}"));
                    return;
                };
                let Some(machine) = &mut shard.machine else { return };
                if is_old && is_new_to_old_nodes(&bytes) {
                    machine.count_drop(DropReason::BadOp);
                    return;
                }
                machine.handle_packet(local, from, waiting, &bytes);
                self.forge_chain((from, to), &bytes);
                self.pump(Unit::Shard(index));
            }
            Role::Cache(index) => {
                let (_, shard) = role_of(to);
                self.cache_takes((index, shard), local, from, &bytes);
            }
            Role::Controller(_) | Role::Store => {}
        }
    }

    /// What a cache says to the switch, the routers hear as well.
    fn tell_routers(&mut self, from: Endpoint, bytes: &[u8]) {
        let (Role::Cache(cache), Some(routes)) = (role_of(from).0, self.net.routes()) else {
            return;
        };
        let packet = Packet::parse(bytes).ok();
        let body = packet.and_then(|packet| packet.body().ok());
        if let Some(Body::Cache(CacheMessage::Rules(rules))) = body {
            routes.learn_rules(self.now, CacheId(cache), &rules);
        }
    }

    /// Whoever was asked at a content address answers from one of that key, unless it knows nothing
    /// of the keyspace.
    fn check_source(&mut self, from: Endpoint, bytes: &[u8]) {
        let Some(header) = bytes.first_chunk().map(Header::read) else { return };
        let Some(op) = Op::from_wire(header.op) else { return };
        let decided = Code::says_decided(header.code);
        let class = ContentClass::of_header(op, &header).filter(|_| decided);
        let Some(class) = class else { return };
        let (keyspace, at) = (KeyspaceId(header.keyspace), Match(header.match_value));
        self.stats.by_address += 1;
        let asked = content_routing().endpoint(class, keyspace, at);
        // What was recorded may come from anywhere.
        if asked != Some(from) && self.guard.is_none() {
            self.history.violation(format!("a {} from {from}, not {asked:?}", op.name()));
        }
    }

    fn forward(&mut self, index: u16, local: Instant, from: Endpoint, bytes: &mut [u8]) {
        self.damage_hints(bytes);
        let switch = self.switches.get_mut(usize::from(index));
        let Some(pipeline) = switch.and_then(|switch| switch.pipeline.as_mut()) else { return };
        let doubted = pipeline.counters_ref().doubted();
        // What it drops it counts; the world looks at what the clients see.
        let _ = pipeline.process(local, from, bytes, &mut self.outbox);
        // Only who has the keyhash of a delegated key says what cannot be.
        let doubts = pipeline.counters_ref().doubted() > doubted;
        if doubts && self.options.mutant.is_none() && self.options.load.twins.is_none() {
            self.history.violation(format!("switch {index} doubts what {from} says"));
        }
        let mut out = std::mem::take(&mut self.outbox);
        while let Some(Datagram { mut to, payload, .. }) = out.pop() {
            self.stats.spread += u64::from(self.is_from_copy(payload));
            to = self.sent_astray_to_a_cache(to, payload);
            self.stats.delegated += u64::from(is_of_delegation(payload));
            if self.options.mutant == Some(Mutant::RetryElsewhere) {
                to = self.lead_astray(to, payload);
            }
            let datagram = Datagram { from: None, to, payload };
            let from = (Role::Switch(index), service(index));
            let wires = (&mut self.net, &mut self.queue, self.guard.as_deref_mut());
            post(wires, self.now, from, datagram);
        }
        self.outbox = out;
        self.guard.iter_mut().for_each(|guard| guard.end_turn(Role::Switch(index)));
    }

    /// Whether this is the answer to a read of a hot key, from a node other than its tail.
    fn is_from_copy(&self, datagram: &[u8]) -> bool {
        let Some(header) = datagram.first_chunk::<HEADER_LEN>() else { return false };
        let hot = Op::from_wire(header.op()) == Some(Op::GetReply)
            && header.hop_flags() & hop_flag::HOT != 0
            && Code::says_decided(header.code());
        let partitions = self.saved.iter().flat_map(|it| &it.map.partitions);
        let of = |it: &&Partition| it.id == PartitionId(header.partition());
        hot && partitions
            .into_iter()
            .find(of)
            .is_some_and(|it| it.tail() != Some(NodeId(header.node())))
    }

    /// Where a switch with a mutant sends a write: the first copy to the head, every other to
    /// the last of the chain.
    fn lead_astray(&mut self, to: Endpoint, payload: &[u8]) -> Endpoint {
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else { return to };
        let is_write = Op::from_wire(header.op()).is_some_and(|op| op.is_write());
        if !is_write || self.sent_on.insert((header.client(), header.seq())) {
            return to;
        }
        let chain = header.chain();
        let (chain, _) = chain.as_chunks::<2>();
        let last = usize::from(header.chain_len()).checked_sub(1).and_then(|at| chain.get(at));
        let Some(last) = last else { return to };
        let spec = crate::role::node_spec(u16::from_be_bytes(*last), self.options.shards);
        spec.endpoint_of(PartitionId(header.partition()))
    }

    pub(super) fn pump_actor(&mut self, index: usize) {
        let role = self.role_of_unit(Unit::Actor(index));
        let (now, local) = (self.now, self.local(role));
        let Some(actor) = self.actors.get_mut(index) else { return };
        let Some(keyspaces) = &self.keyspaces else { return };
        actor.advance(now, local, keyspaces, &mut self.history);
        let endpoint = actor.endpoint;
        while let Some(datagram) = actor.machine.poll_transmit() {
            let wires = (&mut self.net, &mut self.queue, self.guard.as_deref_mut());
            post(wires, now, (role, endpoint), datagram);
        }
    }

    /// After a node has handled something: what it says waits for the sync that has it.
    pub(super) fn settle(&mut self, index: usize) {
        let Some(shard) = self.shards.get_mut(index) else { return };
        let Some(machine) = &mut shard.machine else { return };
        machine.flush().expect("simulated disks do not fail");
        if machine.is_syncing() && !std::mem::replace(&mut shard.syncing, true) {
            let most = nanos(self.options.sync_delay_max);
            let delay = Duration::from_nanos(self.rng.below(most));
            self.queue.schedule(self.now + delay, Event::Synced { shard: index });
        }
        self.transmit(index);
    }

    fn transmit(&mut self, index: usize) {
        let role = self.role_of_unit(Unit::Shard(index));
        let Some(shard) = self.shards.get_mut(index) else { return };
        let Some(machine) = &mut shard.machine else { return };
        let from = (role, shard.endpoint);
        while let Some(datagram) = machine.poll_transmit() {
            self.delegations.see(datagram.payload);
            let wires = (&mut self.net, &mut self.queue, self.guard.as_deref_mut());
            post(wires, self.now, from, datagram);
        }
        self.answer_orders(role);
        self.alert(index);
        self.check_capacity(index..index + 1);
    }

    pub(super) fn sync_ends(&mut self, index: usize) {
        let role = self.role_of_unit(Unit::Shard(index));
        // A stopped process hears of it when it goes on.
        if self.process(role).state != ProcessState::Paused {
            self.end_sync(index);
        }
    }

    /// The sync of a shard that has one is over.
    pub(super) fn end_sync(&mut self, index: usize) {
        let now = self.local(self.role_of_unit(Unit::Shard(index)));
        let Some(shard) = self.shards.get_mut(index) else { return };
        if !std::mem::take(&mut shard.syncing) {
            return;
        }
        if let Some(machine) = &mut shard.machine {
            machine.end_sync(now, Ok(())).expect("simulated disks do not fail");
        }
        self.settle(index);
        self.rearm(Unit::Shard(index));
    }
}

/// Whether this is the answer to a delegated write.
fn is_of_delegation(datagram: &[u8]) -> bool {
    datagram.first_chunk::<HEADER_LEN>().is_some_and(|header| {
        Op::from_wire(header.op()) == Some(Op::PutReply)
            && header.hop_flags() & hop_flag::GRANTED != 0
            && Code::says_decided(header.code())
    })
}

/// Whether nodes of older builds know nothing of such packets.
fn is_new_to_old_nodes(datagram: &[u8]) -> bool {
    datagram.first_chunk::<HEADER_LEN>().is_some_and(|header| {
        let op = Op::from_wire(header.op());
        matches!(op, Some(Op::DelegationWrite | Op::DelegationDurable))
    })
}

/// What datagrams go by.
pub(super) type Wires<'a> = (&'a mut Net, &'a mut Queue, Option<&'a mut Guard>);

/// Puts a packet on the wire: none, one or two copies of it will arrive.
pub(super) fn post(
    (net, queue, mut guard): Wires<'_>,
    now: Instant,
    (role, from): (Role, Endpoint),
    Datagram { from: other, to, payload }: Datagram<'_>,
) {
    let sealed = guard.as_mut().map(|guard| guard.seal(role, now, to, payload));
    let Some(to) = net.resolve(now, to) else { return };
    let from = (role, other.unwrap_or(from));
    let Some(sealed) = sealed else { return carry((net, queue, guard), now, from, to, payload) };
    for datagram in sealed {
        carry((&mut *net, &mut *queue, guard.as_deref_mut()), now, from, to, &datagram);
    }
}

/// Puts a datagram on the wire that goes to this place.
pub(super) fn carry(
    (net, queue, guard): Wires<'_>,
    now: Instant,
    (role, from): (Role, Endpoint),
    to: Endpoint,
    bytes: &[u8],
) {
    if let Some(guard) = guard {
        guard.see(from, to, bytes);
    }
    for at in net.carry(now, role, role_of(to).0).into_iter().flatten() {
        queue.schedule(at, Event::Datagram { from, to, bytes: bytes.to_vec() });
    }
}
