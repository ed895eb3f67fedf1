//! What operators ask for, beside keyspaces: nodes that come, go and stay, and when copies run.
//!
//! A command takes effect in the map at once and is carried out step by step; it is there for good
//! once [`Controller::durable_revision`] has reached the revision that the map has after the call.

use crate::config::check_endpoints;
use crate::controller::Controller;
use crate::hot::HotAction;
use crate::peer::Peer;
use crate::saved::Saved;
use cluster::{HotPolicy, KeyName, Keyspace, Map, MapError, Member, NodeId, NodeSpec, PartitionId};
use machine::Instant;
use std::fmt;
use std::net::SocketAddr;
use wire::Endpoint;

/// Keys that can be pinned: what a person pins, and a program that knows its hot keys.
pub const PINS_MAX: usize = 256;

/// Why a command was not taken. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is no node of this id.
    UnknownNode(NodeId),
    /// There is a node of this id.
    NodeExists(NodeId),
    /// Another member receives packets at this endpoint.
    SharedEndpoint(Endpoint),
    /// The node has a replica in this many chains.
    NodeInUse {
        /// Which.
        node: NodeId,
        /// How many.
        partitions: usize,
    },
    /// The node may hold the newest writes of hot keys that are under delegations.
    NodeInDelegations(NodeId),
    /// Without the node there would be too few for the chains of a keyspace.
    TooFewNodes {
        /// Name of the keyspace.
        keyspace: String,
        /// How many nodes each of its chains is to have.
        replicas: u8,
        /// How many would be left.
        left: usize,
    },
    /// There is no partition of this id.
    NoPartition(PartitionId),
    /// There is no keyspace of this name.
    UnknownKeyspace(String),
    /// Hot keys of this keyspace have no copies.
    HotIsOff(String),
    /// No key is as long as this one.
    KeyTooLong(usize),
    /// [`PINS_MAX`] keys are pinned.
    PinsFull,
    /// This pinned key has the same keyhash, and a switch knows but one key of a hash.
    PinnedTwin(Vec<u8>),
    /// This key is not pinned.
    NotPinned,
    /// No partition waits for what this node holds to be believed.
    NothingToAccept(NodeId),
    /// This member follows another controller, or an older incarnation of this one; what the
    /// controller knows may be out of date, so it changes nothing.
    Foreign(Member),
    /// The map would be unsound.
    Unsound(MapError),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode(node) => {
                write!(f, "there is no node {node}: the status names those that there are")
            }
            Self::NodeExists(node) => write!(
                f,
                "there is a node {node}: choose another id, or drain that one and remove it first"
            ),
            Self::SharedEndpoint(at) => write!(
                f,
                "another member receives packets at {at}: a node needs its own port per shard"
            ),
            Self::NodeInDelegations(node) => write!(
                f,
                "node {node} may hold the newest writes of hot keys; if it is drained they come \
                 home as soon as the other nodes answer: wait a moment and try again"
            ),
            Self::NodeInUse { node, partitions } => write!(
                f,
                "node {node} has a place in {partitions} partitions: drain it first, and remove it \
                 when it holds none"
            ),
            Self::TooFewNodes { keyspace, replicas, left } => write!(
                f,
                "keyspace {keyspace:?} wants {replicas} replicas and {left} nodes would be left: \
                 add a node first"
            ),
            Self::NoPartition(id) => {
                write!(f, "there is no partition {id}: the status names those that there are")
            }
            Self::UnknownKeyspace(name) => write!(f, "there is no keyspace {name:?}"),
            Self::HotIsOff(keyspace) => write!(
                f,
                "keyspace {keyspace:?} was created with its hot keys off: they have no copies"
            ),
            Self::NothingToAccept(node) => write!(
                f,
                "no partition waits for an older store of node {node} to be believed: the status \
                 names those that do"
            ),
            Self::KeyTooLong(length) => {
                write!(f, "the key has {length} bytes, and a key has {} at most", wire::KEY_MAX)
            }
            Self::PinsFull => write!(f, "{PINS_MAX} keys are pinned: unpin some first"),
            Self::PinnedTwin(twin) => write!(
                f,
                "the pinned key \"{}\" has the same keyhash, and a switch knows but one key of \
                 a hash: unpin that one first",
                twin.escape_ascii()
            ),
            Self::NotPinned => f.write_str("this key is not pinned"),
            Self::Foreign(member) => write!(
                f,
                "{member} follows a controller that is not this one, or was: see its status"
            ),
            Self::Unsound(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}

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
        if self.state.map.nodes.iter().any(|known| known.id == node.id) {
            return Err(CommandError::NodeExists(node.id));
        }
        let mut nodes = self.state.map.nodes.clone();
        nodes.push(node);
        nodes.sort_by_key(|n| n.id);
        let map = Map { nodes, ..self.state.map.clone() };
        map.check().map_err(CommandError::Unsound)?;
        check_endpoints(&map.nodes, &self.config.switches).map_err(CommandError::SharedEndpoint)?;
        self.state.map = map;
        self.state.controls.insert(node.id, control);
        let peer = Peer::new(now, self.config.poll_interval, self.config.lease);
        self.peers.insert(Member::Node(node.id), peer);
        let did = format!("ask node {} at {control} for its memory", node.id);
        self.advance(format!("wanted: a new node {}", node.id), did);
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
        let partitions = self.state.partitions_of(node);
        if partitions > 0 {
            return Err(CommandError::NodeInUse { node, partitions });
        }
        if !self.hot.is_rid_of(node, &self.peers, &self.state) {
            return Err(CommandError::NodeInDelegations(node));
        }
        let Saved { map, stores, departing, controls, .. } = &mut self.state;
        map.nodes.retain(|known| known.id != node);
        stores.remove(&node);
        departing.remove(&node);
        controls.remove(&node);
        self.peers.remove(&Member::Node(node));
        self.advance(format!("wanted: node {node} removed"), "forget it".to_owned());
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
        if self.state.departing.contains(&node) {
            return Ok(());
        }
        let Saved { map, departing, .. } = &mut self.state;
        let stays = |n: &&NodeSpec| n.id != node && !departing.contains(&n.id);
        let left = map.nodes.iter().filter(stays).count();
        if let Some(keyspace) = map.keyspaces.iter().find(|k| usize::from(k.replicas) > left) {
            let (keyspace, replicas) = (keyspace.name.clone(), keyspace.replicas);
            return Err(CommandError::TooFewNodes { keyspace, replicas, left });
        }
        departing.insert(node);
        let partitions = self.state.partitions_of(node);
        let did = format!("replace it in {partitions} partitions");
        self.advance(format!("wanted: node {node} drained"), did);
        Ok(())
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
        if self.state.departing.remove(&node) {
            let did = format!("leave it its {} partitions", self.state.partitions_of(node));
            self.advance(format!("wanted: node {node} kept"), did);
        }
        Ok(())
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
        if self.state.pins.contains(&name) {
            return Ok(());
        }
        let mut others = self.state.pins.iter().filter(|it| it.keyspace == known.id);
        if let Some(twin) = others.find(|it| known.keyhash(&it.key) == known.keyhash(key)) {
            return Err(CommandError::PinnedTwin(twin.key.clone()));
        }
        if self.state.pins.len() >= PINS_MAX {
            return Err(CommandError::PinsFull);
        }
        self.note_pin(HotAction::Pinned, &name);
        self.state.pins.insert(name);
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
        if !self.state.pins.remove(&name) {
            return Err(CommandError::NotPinned);
        }
        self.note_pin(HotAction::Unpinned, &name);
        Ok(())
    }

    fn keyspace(&self, name: &str) -> Result<&Keyspace, CommandError> {
        let known = self.state.map.keyspace(name);
        known.ok_or_else(|| CommandError::UnknownKeyspace(name.to_owned()))
    }

    fn note_pin(&mut self, did: HotAction, name: &KeyName) {
        self.hot.note_wish(self.now, did, name);
        let verb = if did == HotAction::Pinned { "pinned" } else { "no longer pinned" };
        let saw = format!("wanted: a key of keyspace {} {verb}", name.keyspace);
        self.advance(saw, "keep that on record".to_owned());
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
        if self.state.paused == paused {
            return;
        }
        self.state.paused = paused;
        let rate = if paused { 0 } else { self.config.copy_bytes_per_s };
        self.state.map.copy_bytes_per_s = rate;
        self.watches.clear();
        let saw = if paused { "wanted: copies paused" } else { "wanted: copies resumed" };
        let did = format!("let every shard send {rate} bytes per second to learners");
        self.advance(saw.to_owned(), did);
    }

    fn refuse_unknown(&self, node: NodeId) -> Result<(), CommandError> {
        let known = self.state.map.nodes.iter().any(|known| known.id == node);
        if known { Ok(()) } else { Err(CommandError::UnknownNode(node)) }
    }

    pub(crate) fn refuse_foreign(&self) -> Result<(), CommandError> {
        self.refuse_foreign_but(None)
    }

    /// A foreign node may be removed: that is one way to be rid of it.
    fn refuse_foreign_but(&self, node: Option<NodeId>) -> Result<(), CommandError> {
        let other = |member: &Member| node.is_none_or(|node| *member != Member::Node(node));
        match self.foreign().find(other) {
            Some(member) => Err(CommandError::Foreign(member)),
            None => Ok(()),
        }
    }
}
