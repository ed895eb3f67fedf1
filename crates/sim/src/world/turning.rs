//! Hot keys in a healed world: they go on turning hot and cold, and everybody has to keep up.

use super::World;
use crate::Options;
use crate::actor::{ReadBy, keys};
use crate::check::Key;
use cluster::{KeyName, NodeId};
use std::time::Duration;
use switch::{HotExplanation, explain_hot};

impl World {
    /// Keys turn hot and cold for a while, whatever is asked for meanwhile is answered, and then
    /// everybody has the same hot keys, and those that are pinned are served by copies.
    /// Not where there are big values: what faults have left of them would be swept up meanwhile.
    pub(super) fn keep_turning(&mut self) {
        let Options { faults, load, .. } = &self.options;
        if faults.hot_every.is_zero() || load.big_percent > 0 {
            return;
        }
        let now = self.now;
        for index in 0..self.actors.len() {
            self.actor_goes_on(index, |actor| actor.work_on(now, REQUESTS, THINK));
        }
        for _ in 0..TURNS {
            self.turn_hot_or_cold();
            self.run_until(self.now + TURN_EVERY, |_| false);
        }
        self.wait_for_actors();
        if !self.settles_within(AGREED_MAX, Self::agrees_on_hot_keys) {
            self.history.violation("not everybody has the newest hot keys".into());
        }
        self.read_until_served();
    }

    /// Whether the active switch and all nodes of the map have one order of hot keys, and the
    /// directory all that are pinned.
    fn agrees_on_hot_keys(&self) -> bool {
        let Some(controller) = self.controller() else { return false };
        let active = self.switches.get(usize::from(controller.map().active_switch));
        let Some(pipeline) = active.and_then(|it| it.pipeline.as_ref()) else { return false };
        let newest = pipeline.hot_revision();
        let mut nodes = controller.map().nodes.iter().flat_map(|it| self.shards_of(it.id.0));
        let has = |index: usize| {
            let machine = self.shards.get(index)?.machine.as_ref()?;
            Some(machine.report(self.now).hot_revision)
        };
        nodes.all(|index| has(index) == Some(newest))
            && self.pins().all(|(name, _)| self.explained(name).is_some())
    }

    /// Reads the pinned keys until the directory has a proof of each, and sends the next read of it
    /// to a copy. On a delegation nobody need have one but whoever wrote it last.
    fn read_until_served(&mut self) {
        let end = self.now + SERVED_MAX;
        // A key has to be proven by whatever reads there are of it.
        let by = if self.options.seed.is_multiple_of(2) { ReadBy::Get } else { ReadBy::Mget };
        loop {
            let is_served = |it: &HotExplanation| {
                it.proven
                    && (it.delegation.is_some() || it.readers.is_empty() || !it.asked().is_empty())
            };
            let unserved = self
                .pins()
                .filter(|(name, _)| self.explained(name).is_none_or(|it| !is_served(&it)));
            let unserved: Vec<Key> = unserved.map(|(_, key)| key).collect();
            if unserved.is_empty() {
                return;
            }
            if self.now >= end {
                let names = unserved.iter().map(|key| String::from_utf8_lossy(&key.key));
                let names: Vec<_> = names.collect();
                let what = format!("pinned, and not served by copies: {}", names.join(", "));
                return self.history.violation(what);
            }
            let now = self.now;
            self.actor_goes_on(0, |actor| actor.read(now, unserved, by));
            self.wait_for_actors();
            self.run_until(self.now + READ_EVERY, |_| false);
        }
    }

    /// What is pinned of the keys that clients ask for, if there are nodes enough for copies; but
    /// neither of two keys with one keyhash, of which one alone has a place in the directory.
    fn pins(&self) -> impl Iterator<Item = (&KeyName, Key)> {
        let saved = self.saved.iter().filter(|saved| {
            let departs = |id: NodeId| saved.departing.contains(&id);
            saved.map.nodes.iter().filter(|node| !departs(node.id)).count() >= 2
        });
        let twins = self.options.load.twins;
        let known = keys(&self.options.load);
        let pins = saved.flat_map(|saved| {
            // Those of a keyspace whose hot keys are off wait until they are not.
            let has_copies = |id| {
                let mut keyspaces = saved.map.keyspaces.iter();
                keyspaces.any(|it| it.id == id && it.copies_hot_keys())
            };
            saved.pins.iter().filter(move |pin| has_copies(pin.keyspace))
        });
        let pins = pins.filter(move |pin| !twins.iter().flatten().any(|twin| twin[..] == pin.key));
        pins.filter_map(move |pin| {
            let [_, ordered] = self.keyspaces.as_ref()?;
            let is_ordered = pin.keyspace == ordered.id;
            let is_it = |key: &&Key| key.key == pin.key && key.ordered == is_ordered;
            Some((pin, known.iter().find(is_it)?.clone()))
        })
    }

    /// What the directory of the active switch knows of a key.
    fn explained(&self, name: &KeyName) -> Option<HotExplanation> {
        let keyspace = self.keyspaces.iter().flatten().find(|it| it.id == name.keyspace)?;
        let active = self.saved.as_ref()?.map.active_switch;
        let switch = self.switches.get(usize::from(active))?;
        explain_hot(&switch.directory, keyspace.id, keyspace.keyhash(&name.key))
    }
}

/// Requests of each client meanwhile, and the mean time between two of them.
const REQUESTS: usize = 40;
const THINK: Duration = Duration::from_millis(30);
/// How often something turns hot or cold, and at what intervals: for as long as there are requests.
const TURNS: usize = 20;
const TURN_EVERY: Duration = Duration::from_millis(60);
/// Until all have one order: a poll of each member, twice, as a node hears what the switch has said
/// to have.
const AGREED_MAX: Duration = Duration::from_secs(2);
/// Until copies of what is pinned are there: a delegation that is not worth while ends first.
const SERVED_MAX: Duration = Duration::from_secs(15);
/// Between two reads.
const READ_EVERY: Duration = Duration::from_millis(50);
