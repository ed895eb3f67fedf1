//! A role that is asked to end, and leaves nothing undone that others can do.

use super::Server;
use crate::driver::{Departure, LEAVE_MAX, NodeHandle, SwitchHandle};
use std::sync::atomic::Ordering;

impl Server {
    /// Waits until others have taken over what this role does, as far as there are any: for
    /// [`LEAVE_MAX`] at most. Then it is to be stopped. What nobody has taken over is logged.
    pub fn leave(&self) {
        self.roles.ending.store(true, Ordering::Relaxed);
        let seconds = LEAVE_MAX.as_secs();
        if let Some(switch) = &self.roles.switch {
            tracing::info!("asked to end: another switch is to take over, in {seconds} s at most");
            leave_switch(switch);
        }
        for node in &self.roles.nodes {
            let held = held(node);
            tracing::info!(
                "asked to end: others are to go on with {held} partitions, in {seconds} s at most"
            );
            leave_node(node);
        }
        for cache in &self.roles.caches {
            tracing::info!("asked to end: what was lent goes back");
            if let Err(why) = cache.leave() {
                tracing::warn!(%why, "the cache does not give back what it was lent");
            }
        }
        // A controller gives the lead away when it is stopped.
    }
}

fn leave_switch(switch: &SwitchHandle) {
    switch.leaving().begin();
    let left = "no other switch has taken over: requests are answered when this one is back";
    match switch.leaving().wait() {
        Departure::HandedOver => tracing::info!("nobody waits for this switch any more"),
        Departure::Overdue => tracing::warn!("{left}"),
        Departure::Unasked => tracing::warn!("no controller gives orders, and {left}"),
    }
}

fn leave_node(node: &NodeHandle) {
    node.leave();
    let departure = node.leaving().wait();
    match (departure, held(node)) {
        (Departure::HandedOver, 0) => tracing::info!("others have taken over all partitions"),
        (Departure::HandedOver, kept) => tracing::warn!(
            "{kept} partitions have no other member that goes on: they are out of reach until \
             this node is back"
        ),
        (Departure::Overdue, kept) => {
            tracing::warn!("others have not taken over {kept} partitions in time");
        }
        (Departure::Unasked, kept) => tracing::warn!(
            "no controller gives orders: others go on with {kept} partitions once one finds this \
             node gone"
        ),
    }
}

/// In how many partitions it has a replica that serves.
fn held(node: &NodeHandle) -> usize {
    node.snapshot().map_or(0, |it| it.shards.iter().map(|shard| shard.partitions).sum())
}
