//! What operators ask for: keyspaces, nodes that come, go and stay, keys that are hot, replicas
//! that are compared or move, and when copies run.
//!
//! A command takes effect in the map at once and is carried out step by step; it is there for good
//! once [`Controller::durable_revision`] has reached the revision that the map has after the call.

mod error;
mod keyspaces;
mod passes;
mod placement;

pub use error::{CommandError, MoveError, PINS_MAX, RemakeError};

use crate::config::check_endpoints;
use crate::controller::Controller;
use crate::decisions::Level;
use crate::hot::HotAction;
use crate::members::{Peer, accept_loss};
use crate::saved::Saved;
use cluster::{HotPolicy, KeyName, Keyspace, Map, Member, NodeId, NodeSpec, PartitionId};
use machine::Instant;
use std::net::SocketAddr;

impl Controller {
    /// Makes a node known. It is given partitions once it answers.
    ///
    /// `control` is where orders reach it; it is kept for [`Self::controls`] and not used here.
    ///
    /// # Errors
    ///
    /// If it cannot be; nothing has changed then.
    pub fn add_node(
        &mut self,
        now: Instant,
        node: NodeSpec,
        control: SocketAddr,
    ) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        if self.ledger.state.map.nodes.iter().any(|known| known.id == node.id) {
            return Err(CommandError::NodeExists(node.id));
        }
        let mut nodes = self.ledger.state.map.nodes.clone();
        nodes.push(node);
        nodes.sort_by_key(|n| n.id);
        let map = Map { nodes, ..self.ledger.state.map.clone() };
        map.check().map_err(CommandError::Unsound)?;
        check_endpoints(&map, &self.config.switches).map_err(CommandError::SharedEndpoint)?;
        self.ledger.state.map = map;
        self.ledger.state.controls.insert(node.id, control);
        let peer = Peer::new(now, self.config.poll_interval, self.config.lease);
        self.members.insert(Member::Node(node.id), peer);
        let did = format!("ask node {} at {control} for its memory", node.id);
        self.ledger.advance(now, Level::Usual, format!("wanted: a new node {}", node.id), did);
        Ok(())
    }

    /// Forgets a node that has no replica in any chain. It is added again at the next start if the
    /// configuration still names it.
    ///
    /// # Errors
    ///
    /// If it holds something or is unknown; nothing has changed then.
    pub fn remove_node(&mut self, now: Instant, node: NodeId) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign_but(Some(node))?;
        self.refuse_unknown(node)?;
        let partitions = self.ledger.state.partitions_of(node);
        if partitions > 0 {
            return Err(CommandError::NodeInUse { node, partitions });
        }
        if !self.hot.is_rid_of(node, &self.members, &self.ledger.state) {
            return Err(CommandError::NodeInDelegations(node));
        }
        // Those that are leaving could not any more. (Without any, who is lost may be forgotten.)
        if self.ledger.state.departing.iter().any(|it| *it != node) {
            self.refuse_too_few_without(node)?;
        }
        let Saved { map, stores, departing, controls, .. } = &mut self.ledger.state;
        map.nodes.retain(|known| known.id != node);
        map.fences.retain(|fence| fence.node != node);
        stores.remove(&node);
        departing.remove(&node);
        for partition in &mut map.partitions {
            partition.away.retain(|it| it.node != node);
        }
        controls.remove(&node);
        self.members.remove(Member::Node(node));
        self.ledger.advance(
            now,
            Level::Usual,
            format!("wanted: node {node} removed"),
            "forget it".to_owned(),
        );
        Ok(())
    }

    /// Decommissions a node: partition by partition another one takes its place, until it holds
    /// nothing. Then it can be removed.
    ///
    /// # Errors
    ///
    /// If too few nodes would be left; nothing has changed then.
    pub fn drain_node(&mut self, now: Instant, node: NodeId) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        self.refuse_unknown(node)?;
        if self.ledger.state.departing.contains(&node) {
            return Ok(());
        }
        self.refuse_too_few_without(node)?;
        self.ledger.state.departing.insert(node);
        for (node, partition) in self.ledger.state.forget_away(|it| it.node == node) {
            let revision = self.ledger.state.next_revision(now);
            self.chains.note_lost(node, partition, revision);
        }
        let partitions = self.ledger.state.partitions_of(node);
        let did = format!("replace it in {partitions} partitions");
        self.ledger.advance(now, Level::Usual, format!("wanted: node {node} drained"), did);
        Ok(())
    }

    /// Whether enough nodes stay without this one, and without those that are leaving.
    fn refuse_too_few_without(&self, node: NodeId) -> Result<(), CommandError> {
        let Saved { map, departing, .. } = &self.ledger.state;
        if departing.contains(&node) {
            return Ok(());
        }
        let stays = |n: &&NodeSpec| n.id != node && !departing.contains(&n.id);
        let left = map.nodes.iter().filter(stays).count();
        match map.keyspaces.iter().find(|k| usize::from(k.replicas) > left) {
            None => Ok(()),
            Some(of) => {
                let (keyspace, replicas) = (of.name.clone(), of.replicas);
                Err(CommandError::TooFewNodes { keyspace, replicas, left })
            }
        }
    }

    /// Cancels [`Self::drain_node`]: the node keeps what it still holds, and copies that were to
    /// replace it are dropped.
    ///
    /// # Errors
    ///
    /// If there is no such node; nothing has changed then.
    pub fn keep_node(&mut self, now: Instant, node: NodeId) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        self.refuse_unknown(node)?;
        if self.ledger.state.departing.remove(&node) {
            let did = format!("leave it its {} partitions", self.ledger.state.partitions_of(node));
            self.ledger.advance(now, Level::Usual, format!("wanted: node {node} kept"), did);
        }
        Ok(())
    }

    /// Takes what this node holds for the newest, although its store is an older copy: what was
    /// acknowledged since is lost. For an operator, when nobody else holds it any more.
    ///
    /// # Errors
    ///
    /// If there is no such node, or none of its partitions waits for this.
    pub fn accept_loss(&mut self, now: Instant, node: NodeId) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        self.refuse_unknown(node)?;
        if accept_loss(&mut self.ledger, now, node) == 0 {
            return Err(CommandError::NothingToAccept(node));
        }
        self.chains.disturb();
        Ok(())
    }

    /// Has the members of one partition's chain compared, or those of all, while they serve; what
    /// is certainly wrong is made right if `mend` says so. Gives the number of the wish.
    ///
    /// # Errors
    ///
    /// If there is no such partition.
    pub fn verify(
        &mut self,
        now: Instant,
        partition: Option<PartitionId>,
        mend: bool,
    ) -> Result<u64, CommandError> {
        self.awake(now);
        let map = &self.ledger.state.map;
        if let Some(id) = partition.filter(|id| map.partitions.iter().all(|it| it.id != *id)) {
            return Err(CommandError::NoPartition(id));
        }
        let number = self.verifying.ask(now, map, &self.members, partition, mend);
        let what = partition.map_or("all replicas".to_owned(), |id| format!("partition {id}"));
        let mend = if mend { "compared and mended" } else { "compared" };
        let saw = format!("wanted: {what} {mend}");
        self.ledger.decisions.note(now, Level::Usual, saw, "tell the nodes", "");
        self.members.ask_nodes(now);
        Ok(number)
    }

    /// Makes a key hot whatever is asked of it, until it is unpinned.
    ///
    /// # Errors
    ///
    /// If it cannot be; nothing has changed then.
    pub fn pin(&mut self, now: Instant, keyspace: &str, key: &[u8]) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        let known = self.keyspace(keyspace)?;
        if known.hot == HotPolicy::Off {
            return Err(CommandError::HotIsOff(keyspace.to_owned()));
        }
        if key.len() > wire::KEY_MAX {
            return Err(CommandError::KeyTooLong(key.len()));
        }
        let name = KeyName { keyspace: known.id, key: key.to_vec() };
        if self.ledger.state.pins.contains(&name) {
            return Ok(());
        }
        let mut others = self.ledger.state.pins.iter().filter(|it| it.keyspace == known.id);
        if let Some(twin) = others.find(|it| known.keyhash(&it.key) == known.keyhash(key)) {
            return Err(CommandError::PinnedTwin(twin.key.clone()));
        }
        if self.ledger.state.pins.len() >= PINS_MAX {
            return Err(CommandError::PinsFull);
        }
        self.note_pin(now, HotAction::Pinned, &name);
        self.ledger.state.pins.insert(name);
        Ok(())
    }

    /// Cancels [`Self::pin`]: the key stays hot only as long as enough is asked of it.
    ///
    /// # Errors
    ///
    /// If it is not pinned.
    pub fn unpin(&mut self, now: Instant, keyspace: &str, key: &[u8]) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        let name = KeyName { keyspace: self.keyspace(keyspace)?.id, key: key.to_vec() };
        if !self.ledger.state.pins.remove(&name) {
            return Err(CommandError::NotPinned);
        }
        self.note_pin(now, HotAction::Unpinned, &name);
        Ok(())
    }

    fn keyspace(&self, name: &str) -> Result<&Keyspace, CommandError> {
        let known = self.ledger.state.map.keyspace(name);
        known.ok_or_else(|| CommandError::UnknownKeyspace(name.to_owned()))
    }

    fn note_pin(&mut self, now: Instant, did: HotAction, name: &KeyName) {
        self.hot.note_wish(now, did, name);
        let verb = if did == HotAction::Pinned { "pinned" } else { "no longer pinned" };
        let saw = format!("wanted: a key of keyspace {} {verb}", name.keyspace);
        self.ledger.advance(now, Level::Usual, saw, "keep that on record".to_owned());
    }

    /// Stops copying: running copies stand still and none is begun, until [`Self::resume_copies`].
    pub fn pause_copies(&mut self, now: Instant) {
        self.set_paused(now, true);
    }

    /// Goes on copying.
    pub fn resume_copies(&mut self, now: Instant) {
        self.set_paused(now, false);
    }

    fn set_paused(&mut self, now: Instant, paused: bool) {
        self.awake(now);
        if self.ledger.state.paused == paused {
            return;
        }
        self.ledger.state.paused = paused;
        let rate = if paused { 0 } else { self.config.copy_bytes_per_s };
        self.ledger.state.map.copy_bytes_per_s = rate;
        self.watches.clear();
        let saw = if paused { "wanted: copies paused" } else { "wanted: copies resumed" };
        let did = format!("let every shard send {rate} bytes per second to learners");
        self.ledger.advance(now, Level::Usual, saw.to_owned(), did);
    }

    fn refuse_unknown(&self, node: NodeId) -> Result<(), CommandError> {
        let known = self.ledger.state.map.nodes.iter().any(|known| known.id == node);
        if known { Ok(()) } else { Err(CommandError::UnknownNode(node)) }
    }

    fn refuse_foreign(&self) -> Result<(), CommandError> {
        self.refuse_foreign_but(None)
    }

    /// A foreign node may be removed: that is one way to be rid of it.
    fn refuse_foreign_but(&self, node: Option<NodeId>) -> Result<(), CommandError> {
        let other = |member: &Member| node.is_none_or(|node| *member != Member::Node(node));
        match self.members.foreign().find(other) {
            Some(member) => Err(CommandError::Foreign(member)),
            None => Ok(()),
        }
    }
}
