//! Operators that have keyspaces altered in the middle of everything, and whether that lasts.

use super::{Unit, World};
use crate::role::Role;
use cluster::HotPolicy;
use controller::{Alteration, Saved};
use std::collections::BTreeMap;
use wire::Revision;

/// Replicas that are asked for at most.
const REPLICAS_MOST: u16 = 5;

/// What was saved last of how many replicas a keyspace is to have, and with which revision.
#[derive(Debug, Default)]
pub(super) struct Altered(BTreeMap<&'static str, (u8, Revision)>);

impl Altered {
    /// A map was made anew from records of up to this revision: what nobody had heard of is lost.
    pub(super) fn forget_after(&mut self, recorded: Revision) {
        self.0.retain(|_, (_, saved)| *saved <= recorded);
    }

    /// What the map says other than it was told.
    pub(super) fn wrong(&self, saved: &Saved) -> Vec<String> {
        let differs = |(name, (wanted, _)): (&&str, &(u8, Revision))| {
            let has = saved.map.keyspace(name).map_or(0, |it| it.replicas);
            (has != *wanted).then(|| {
                format!("keyspace {name} is to have {has} replicas, not {wanted} as asked")
            })
        };
        self.0.iter().filter_map(differs).collect()
    }
}

impl World {
    /// An operator wants a keyspace to have another number of replicas, or another policy of hot
    /// keys; whether that can be is the controller's business.
    pub(super) fn alter_keyspace(&mut self) {
        let role = Role::Controller(self.leader);
        if !self.process(role).is_free() || self.keyspaces.is_none() {
            return;
        }
        let most = self.options.nodes_all().min(REPLICAS_MOST);
        let replicas = u8::try_from(self.below(most) + 1).expect("REPLICAS_MOST at most");
        let name = if self.rng.chance(1, 2) { "hashed" } else { "ordered" };
        let hot = match self.rng.below(8) {
            0 => Some(HotPolicy::Off),
            1 => Some(HotPolicy::Reads),
            2..4 => Some(HotPolicy::Replicate),
            _ => None,
        };
        if self.lacks_too_many_for(replicas) {
            return;
        }
        let local = self.local(role);
        let master = self.controllers.get_mut(usize::from(self.leader));
        let Some(controller) = master.and_then(|it| it.machine.as_mut()) else { return };
        let alteration = Alteration { replicas: Some(replicas), hot };
        if controller.alter_keyspace(local, name, alteration).is_err() {
            return;
        }
        self.stats.alterations += 1;
        self.note(format_args!("operator: keyspace {name}: {alteration:?}"));
        self.pump(Unit::Master(self.leader.into()));
        let saved = self.saved.as_ref().map(|saved| &saved.map);
        if let Some(map) = saved
            && map.keyspace(name).is_some_and(|it| it.replicas == replicas)
        {
            self.altered.0.insert(name, (replicas, map.revision));
        }
    }

    /// Whether as many nodes have failed as must not once there are so few replicas: what was
    /// allowed until now would be more than the promise.
    fn lacks_too_many_for(&mut self, replicas: u8) -> bool {
        self.forget_the_healed();
        let failed = self.saved.as_ref().map(|saved| self.failed(saved).len());
        failed.is_none_or(|failed| failed >= replicas.into())
    }

    /// What was asked for last of each keyspace holds, whoever led since.
    pub(super) fn check_altered(&mut self) {
        let wrong = self.saved.as_ref().map(|saved| self.altered.wrong(saved));
        for text in wrong.unwrap_or_default() {
            self.history.violation(text);
        }
    }
}
