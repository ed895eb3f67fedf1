//! What of the cluster runs in this process, as the admin server and the metrics see it.

use crate::config::Classes;
use crate::driver::{CacheHandle, ControllerHandle, MemberHandle, NodeHandle, SwitchHandle};
use crate::identity::Security;
use crate::mailbox::MailError;
use crate::metrics::Sources;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Handles to the roles of this process.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// The switch.
    pub switch: Option<SwitchHandle>,
    /// Storage nodes, by id.
    pub nodes: Vec<NodeHandle>,
    /// Caches, by id.
    pub caches: Vec<CacheHandle>,
    /// The controller.
    pub controller: Option<ControllerHandle>,
    /// Which clients are of which class of rights, for a controller.
    pub classes: Classes,
    /// Who else counts things here.
    pub others: Sources,
    /// What protects the control plane here.
    pub security: Security,
    /// Whether this process has been asked to end: nothing new is to be sent here.
    pub ending: Arc<AtomicBool>,
}

impl Roles {
    /// The one member that takes orders here, if there is exactly one.
    #[must_use]
    pub fn member(&self) -> Option<MemberHandle> {
        match (&self.switch, self.nodes.as_slice(), self.caches.as_slice()) {
            (Some(switch), [], []) => Some(MemberHandle::Switch(switch.clone())),
            (None, [node], []) => Some(MemberHandle::Node(node.clone())),
            (None, [], [cache]) => Some(MemberHandle::Cache(cache.clone())),
            _ => None,
        }
    }

    /// Why clients are not served by all that is here, a sentence for each role; empty if they are.
    /// A switch or controller that stands by is as ready as it can be.
    ///
    /// # Errors
    ///
    /// If a role does not answer at all.
    pub fn unready(&self) -> Result<Vec<String>, MailError> {
        let mut unready = Vec::new();
        if self.ending.load(Ordering::Relaxed) {
            unready.push("it has been asked to end".to_owned());
        }
        if let Some(switch) = &self.switch
            && !switch.snapshot()?.leased
        {
            unready.push("the switch has no lease from a controller".to_owned());
        }
        for node in &self.nodes {
            if !node.snapshot()?.shards.iter().all(|shard| shard.leased) {
                let id = node.spec().id;
                unready.push(format!("node {id} has no lease from a controller"));
            }
        }
        for cache in &self.caches {
            if cache.snapshot()?.report.revision.is_none() {
                unready.push(format!("cache {} was not given tables yet", cache.spec().id));
            }
        }
        if let Some(controller) = self.controller.as_ref().filter(|it| it.is_active()) {
            controller.status()?;
        }
        Ok(unready)
    }

    /// Whether every thread answers.
    ///
    /// # Errors
    ///
    /// The first that does not.
    pub fn check_health(&self) -> Result<(), MailError> {
        if let Some(switch) = &self.switch {
            switch.snapshot()?;
        }
        for node in &self.nodes {
            node.snapshot()?;
        }
        for cache in &self.caches {
            cache.snapshot()?;
        }
        // One that stands by is well if its lock is not free, which its own thread sees to.
        if let Some(controller) = self.controller.as_ref().filter(|it| it.is_active()) {
            controller.status()?;
        }
        Ok(())
    }
}
