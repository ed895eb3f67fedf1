//! What nodes do: take, record, send on, tell, commit, offer, settle.

use super::scope::{Bug, Rules};
use super::state::{Chain, Life, Message, NODES_MAX, Node, Store, VERSIONS_MAX, World};
use crate::state::Bits;
use std::fmt;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A copy of a request reaches a head.
    Take(u8, u8),
    /// A message arrives.
    Deliver(Message),
    /// A disk has taken what its node holds.
    Sync(u8),
    /// Power goes at these nodes, which start anew.
    Cut(Bits),
    /// A node goes for good.
    Lose(u8),
    /// The controller hears of a node's new incarnation.
    Report(u8),
    /// The controller goes on without a member that does not run.
    Drop(u8),
    /// The controller closes the chain because it wants another.
    Close,
    /// It opens it, with this learner, in another order.
    Open(Option<u8>, bool),
    /// A node installs the present chain.
    Install(u8),
    /// The tail's records reach the learner.
    Copy(u8),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Rules {
    /// The head of an open chain takes a request that it does not know.
    pub(super) fn take(&self, world: &mut World, node: u8, write: u8) {
        let it = world.node_mut(node);
        let version = it.holds.newest() + 1;
        it.holds.record(version, write);
        self.send_on(world, node, version);
    }

    /// Sends a pending write to the next of the chain.
    fn send_on(&self, world: &mut World, node: u8, version: u8) {
        let it = world.node(node);
        let (epoch, write) = (it.chain.epoch, it.holds.write(version));
        let stable = it.holds.stable;
        if let Some(to) = it.chain.after(node) {
            world.network.insert(Message::Write { epoch, to, version, write, stable });
        }
    }

    /// To whom a message goes.
    pub(super) fn receiver(&self, world: &World, message: Message) -> Vec<u8> {
        match message {
            Message::Write { to, .. }
            | Message::Durable { to, .. }
            | Message::Commit { to, .. } => {
                vec![to]
            }
            Message::Offer { epoch, .. } | Message::Nothing { epoch, .. } => (0..)
                .zip(&world.nodes)
                .filter(|(node, it)| it.chain.epoch == epoch && it.chain.is_head(*node))
                .map(|(node, _)| node)
                .collect(),
            Message::Stable { epoch, .. } => (0..)
                .zip(&world.nodes)
                .filter(|(node, it)| it.chain.epoch == epoch && !it.chain.is_head(*node))
                .map(|(node, _)| node)
                .collect(),
        }
    }

    /// A message arrives at everybody whom it is for.
    pub(super) fn deliver(&self, world: &mut World, message: Message) {
        for node in self.receiver(world, message) {
            let it = world.node(node);
            let mine = it.chain.epoch == message.epoch()
                || self.has(Bug::KeepTold)
                    && matches!(message, Message::Durable { .. })
                    && it.chain.epoch > 0;
            if it.life == Life::Known && mine {
                self.arrive(world, node, message);
            }
        }
    }

    fn arrive(&self, world: &mut World, node: u8, message: Message) {
        let epoch = message.epoch();
        match message {
            Message::Write { version, write, stable, .. } => {
                let holds = &mut world.node_mut(node).holds;
                holds.stable = holds.stable.max(stable);
                self.take_write(world, node, version, write);
            }
            Message::Durable { place, version, .. } => {
                if let Some(told) = world.node_mut(node).told.get_mut(usize::from(place)) {
                    told.insert(version);
                }
            }
            Message::Commit { version, .. } => self.commit_line(world, node, version),
            Message::Offer { from, version, write, .. } => {
                let blind = self.has(Bug::OfferWithoutBase);
                let it = world.node_mut(node);
                if it.holds.is_committed(version) {
                    world.network.insert(Message::Commit { epoch, to: from, version });
                } else if it.holds.write(version) == 0
                    && (blind || self.knows_base(&it.holds, version))
                {
                    it.holds.record(version, write);
                    self.send_on(world, node, version);
                }
            }
            Message::Nothing { from, .. } => world.node_mut(node).offered.insert(from),
            Message::Stable { stable, .. } => {
                let it = world.node_mut(node);
                it.holds.stable = it.holds.stable.max(stable);
                it.heard_stable = true;
            }
        }
    }

    fn take_write(&self, world: &mut World, node: u8, version: u8, write: u8) {
        let it = world.node_mut(node);
        if it.holds.is_committed(version) {
            self.tell_committed(world, node, version);
            return;
        }
        if it.holds.write(version) == 0 {
            if !self.knows_base(&it.holds, version) {
                return;
            }
            it.holds.record(version, write);
            self.send_on(world, node, version);
        }
        world.node_mut(node).arrived.insert(version);
    }

    /// Whether what a version was computed from is known: the one below it.
    fn knows_base(&self, holds: &Store, version: u8) -> bool {
        let base = version - 1;
        !self.scope.ordered || base <= holds.stable || holds.write(base) > 0
    }

    fn tell_committed(&self, world: &mut World, node: u8, version: u8) {
        let chain = &world.node(node).chain;
        if let Some(to) = chain.before(node) {
            let epoch = chain.epoch;
            world.network.insert(Message::Commit { epoch, to, version });
        }
    }

    /// Commits a pending write, and before it whatever it was computed from.
    fn commit_line(&self, world: &mut World, node: u8, version: u8) {
        let lowest = if self.scope.ordered && !self.has(Bug::BaseLater) { 1 } else { version };
        for version in lowest..=version {
            let it = world.node_mut(node);
            if it.holds.write(version) > 0 && !it.holds.committed.has(version) {
                it.holds.committed.insert(version);
                self.tell_committed(world, node, version);
            }
        }
    }

    /// The last of a chain commits what is on everybody's disk.
    fn commit_durable(&self, world: &mut World, node: u8) {
        let it = world.node(node);
        if !it.chain.is_last(node) {
            return;
        }
        let others = it.chain.nodes.len() - 1;
        let told = it.told;
        let said = |told: &Bits, version: u8| {
            let watermark = self.has(Bug::Watermark) && told.iter().any(|it| it > version);
            told.has(version) || watermark
        };
        let alone = self.has(Bug::SoleUnsynced) && others == 0;
        let unsynced = self.has(Bug::LastUnsynced) || alone;
        let (holds, disk) = (it.holds, it.disk);
        for version in holds.pending().iter() {
            let own = disk.write(version) == holds.write(version) || unsynced;
            if own && told.iter().take(others).all(|told| said(told, version)) {
                self.commit_line(world, node, version);
            }
        }
    }

    /// A node takes its place in the present chain.
    pub(super) fn install(&self, world: &mut World, node: u8) {
        let chain = world.map.clone();
        let it = world.node_mut(node);
        let comes_back = it.chain.epoch == 0;
        if comes_back && it.holds.epoch < chain.opened {
            for version in it.holds.pending().iter() {
                it.holds.record(version, 0);
            }
        }
        if chain.members().contains(&node) {
            it.holds.caught_up = true;
        } else if comes_back || it.holds.epoch < chain.opened {
            // A learner begins with nothing.
            it.holds = Store::default();
        }
        it.holds.epoch = chain.epoch;
        let told = if self.has(Bug::KeepTold) { it.told } else { [Bits(0); NODES_MAX] };
        let (holds, disk, life) = (it.holds, it.disk, it.life);
        *it = Node { life, holds, disk, chain, told, ..Node::default() };
        for version in holds.pending().iter() {
            self.send_on(world, node, version);
        }
        if self.has(Bug::CommitForBeingLast) && world.node(node).chain.is_last(node) {
            for version in holds.pending().iter() {
                self.commit_line(world, node, version);
            }
        }
    }

    /// What every node says and does at once whenever it can: more of it at more moments is only
    /// harder, for what is said arrives when it likes.
    pub(super) fn follow_up(&self, world: &mut World) {
        for node in 0..self.scope.nodes {
            if world.node(node).life != Life::Known || world.node(node).chain.epoch == 0 {
                continue;
            }
            self.tell(world, node);
            self.commit_durable(world, node);
            self.raise_stable(world, node);
            self.offer(world, node);
            self.settle(world, node);
        }
        let map = world.map.epoch;
        let awaited: Vec<u8> = world.nodes.iter().map(|it| it.chain.epoch).collect();
        world
            .network
            .retain(|message| message.epoch() == map || awaited.contains(&message.epoch()));
        self.show(world);
    }

    /// Tells the last of the chain what is on this disk.
    fn tell(&self, world: &mut World, node: u8) {
        let it = world.node(node);
        let (epoch, holds, disk) = (it.chain.epoch, it.holds, it.disk);
        let Some(to) = it.chain.nodes.last().copied().filter(|last| *last != node) else { return };
        let Some(place) = it.chain.place(node).and_then(|place| u8::try_from(place).ok()) else {
            return;
        };
        for version in holds.pending().iter() {
            if disk.write(version) == holds.write(version) || self.has(Bug::TellRecorded) {
                world.network.insert(Message::Durable { epoch, to, place, version });
            }
        }
    }

    /// The head knows how far all is stable, in a closed chain when that is united.
    fn raise_stable(&self, world: &mut World, node: u8) {
        let it = world.node_mut(node);
        let united = it.chain.open || it.is_united(node) || self.has(Bug::StableAlone);
        if it.chain.is_head(node) && united {
            let oldest = it.holds.pending().iter().next();
            let stable = oldest.map_or(it.holds.newest(), |oldest| oldest - 1);
            it.holds.stable = it.holds.stable.max(stable);
        }
    }

    /// In a closed chain a member tells the head what that may not have.
    fn offer(&self, world: &mut World, node: u8) {
        let it = world.node(node);
        if it.chain.open || it.chain.is_head(node) {
            return;
        }
        let (epoch, holds, arrived) = (it.chain.epoch, it.holds, it.arrived);
        // Also what has come down: who has sent that may have been told that it is committed.
        for version in holds.pending().iter() {
            let write = holds.write(version);
            world.network.insert(Message::Offer { epoch, from: node, version, write });
        }
        if holds.pending().iter().all(|version| arrived.has(version)) {
            world.network.insert(Message::Nothing { epoch, from: node });
        }
    }

    /// A member of a closed chain that has nothing pending says so, first of all the head.
    fn settle(&self, world: &mut World, node: u8) {
        let it = world.node(node);
        let (alone, epoch) = (self.has(Bug::SettleAlone), it.chain.epoch);
        if it.chain.open || (it.holds.pending() != Bits(0) && !(alone && it.heard_stable)) {
            return;
        }
        let heard = if it.chain.is_head(node) {
            let all = it.is_united(node) || alone;
            if all {
                let stable = it.holds.newest();
                world.network.insert(Message::Stable { epoch, stable });
            }
            all
        } else {
            it.heard_stable
        };
        let it = world.node(node);
        let synced = it.disk == it.holds || self.has(Bug::SettledUnsynced);
        if heard && synced && epoch == world.map.epoch {
            world.settled.insert(node);
        }
    }

    /// Clients read at every tail that serves.
    fn show(&self, world: &mut World) {
        for node in 0..self.scope.nodes {
            let it = world.node(node);
            if !serves(it, node) {
                continue;
            }
            let holds = it.holds;
            for version in (1..=VERSIONS_MAX).filter(|version| holds.committed.has(*version)) {
                if let Some(place @ 0) = world.shown.get_mut(usize::from(version) - 1) {
                    *place = holds.write(version);
                }
            }
        }
    }
}

/// Whether a node answers reads.
pub(super) fn serves(it: &Node, node: u8) -> bool {
    let Chain { open, .. } = it.chain;
    it.life == Life::Known && open && it.chain.members().last() == Some(&node)
}
