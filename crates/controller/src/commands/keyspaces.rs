//! What operators ask of keyspaces: that one is created, and that one is altered while it serves.

use super::CommandError;
use crate::chains::weights;
use crate::controller::Controller;
use crate::decisions::Level;
use crate::keyspace::{self, Alteration, CreateError, KeyspaceSpec};
use crate::members::{Peer, Standing};
use cluster::{KeyspaceId, KeyspaceKind, NoAddresses, NodeId};
use machine::Instant;
use std::cmp::Ordering;
use std::time::Duration;

/// How long after a controller has begun nodes that were never heard are waited for before a
/// keyspace is created without them: while a cluster starts, all of its nodes are to have their
/// part. One that comes later is given replicas of others.
const UNHEARD_WAIT: Duration = Duration::from_secs(10);

impl Controller {
    /// Does as [`create_keyspace`](Self::create_keyspace) for an operator, who is told where its
    /// keys could have no content addresses though others have: they would be asked for at the
    /// service address only.
    ///
    /// # Errors
    ///
    /// Like those.
    pub fn order_keyspace(
        &mut self,
        now: Instant,
        spec: KeyspaceSpec,
    ) -> Result<KeyspaceId, CreateError> {
        let ordered = matches!(spec.kind, KeyspaceKind::Range { .. });
        match NoAddresses::of(ordered, spec.partitions) {
            Some(why) if self.config.content.is_some() => Err(CreateError::NoAddresses(why)),
            Some(_) | None => self.create_keyspace(now, spec),
        }
    }

    /// Creates a keyspace and places its partitions on every node that can take some: all but
    /// the silent, the forgotten and the departing. It is there for good once
    /// [`Self::durable_revision`] has reached the revision that the map has after this call.
    ///
    /// # Errors
    ///
    /// If it cannot be had; nothing has changed then.
    pub fn create_keyspace(
        &mut self,
        now: Instant,
        spec: KeyspaceSpec,
    ) -> Result<KeyspaceId, CreateError> {
        self.awake(now);
        if let Some(member) = self.members.foreign().next() {
            return Err(CreateError::Foreign(member));
        }
        let ids = self.ledger.state.map.nodes.iter().map(|n| n.id);
        let unknown: Vec<NodeId> =
            ids.filter(|id| !self.ledger.state.stores.contains_key(id)).collect();
        if !unknown.is_empty() && now < self.began + UNHEARD_WAIT {
            return Err(CreateError::NodesUnknown(unknown));
        }
        let nodes = self.nodes_that_take(now);
        let turns = weights(&self.ledger.state.map, &self.members).turns(&nodes);
        let sends_early = nodes.iter().all(|id| self.members.sends_early(*id) == Some(true));
        let wanted = format!("wanted: keyspace {:?} of {} partitions", spec.name, spec.partitions);
        let id = keyspace::create(
            &mut self.ledger.state,
            spec,
            (nodes.len(), &turns),
            (sends_early, self.config.content),
            now,
        )?;
        self.ledger.advance(
            now,
            Level::Usual,
            wanted,
            format!("create keyspace {id} on {} nodes", nodes.len()),
        );
        Ok(id)
    }

    /// Alters a keyspace while it serves. It is decided for good once [`Self::durable_revision`]
    /// has reached the revision that the map has after this call; then its chains follow. Where
    /// there are to be more members, nodes are copied to as in the place of some that were lost.
    /// Where there are to be fewer, some go when all of the chain hold the same. What is so already
    /// stays as it is.
    ///
    /// # Errors
    ///
    /// If there is no such keyspace, or there cannot be so many replicas; nothing has changed then.
    pub fn alter_keyspace(
        &mut self,
        now: Instant,
        name: &str,
        alteration: Alteration,
    ) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        let before = self.keyspace(name)?;
        let (id, had, was) = (before.id, before.replicas, before.hot);
        let replicas = alteration.replicas.unwrap_or(had);
        let hot = alteration.hot.unwrap_or(was);
        if (replicas, hot) == (had, was) {
            return Ok(());
        }
        // Fewer can always be: who lacks nodes may say that fewer are enough.
        let most = self.nodes_that_take(now).len().min(wire::CHAIN_MAX);
        if replicas == 0 || replicas > had && usize::from(replicas) > most {
            let keyspace = name.to_owned();
            return Err(CommandError::Replicas { keyspace, replicas, most });
        }
        if hot != was && hot.caches() && self.ledger.state.map.caches.is_empty() {
            return Err(CommandError::NoCaches(name.to_owned()));
        }
        let mut keyspaces = self.ledger.state.map.keyspaces.iter_mut();
        if let Some(keyspace) = keyspaces.find(|it| it.id == id) {
            (keyspace.replicas, keyspace.hot) = (replicas, hot);
        }
        let did = match replicas.cmp(&had) {
            Ordering::Greater => format!("have others copied to, {replicas} in place of {had}"),
            Ordering::Less => format!("let others go, {replicas} in place of {had}"),
            Ordering::Equal => "leave its chains as they are".to_owned(),
        };
        let saw = format!("wanted: keyspace {name:?} with {replicas} replicas, hot keys: {hot:?}");
        self.ledger.advance(now, Level::Usual, saw, did);
        Ok(())
    }

    /// Nodes that can take partitions: all but the silent, the forgotten and the departing.
    fn nodes_that_take(&self, now: Instant) -> Vec<NodeId> {
        let lost = |p: &Peer| {
            let forgot = p.standing == Standing::Forgotten;
            p.is_missed(now) || p.is_gone(now) || p.is_leaving() || forgot
        };
        let takes = |id: &NodeId| {
            let is_there = self.members.node(*id).is_some_and(|it| !lost(it));
            let known = self.ledger.state.stores.contains_key(id);
            is_there && known && !self.ledger.state.departing.contains(id)
        };
        self.ledger.state.map.nodes.iter().map(|n| n.id).filter(takes).collect()
    }
}
