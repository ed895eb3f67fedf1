//! What operators do in the middle of everything.

use super::faults::Harm;
use super::{Unit, World};
use crate::actor::{focus, keys};
use crate::check::Key;
use crate::role::{Role, node_spec};
use cluster::{KeyName, NodeId};
use std::time::Duration;

/// What an operator asks of the controller.
#[derive(Clone, Copy, Debug)]
enum Command {
    Add(u16),
    Drain(u16),
    Keep(u16),
    Remove(u16),
    PauseCopies,
    ResumeCopies,
}

impl World {
    /// Some operator gives the controller a command; whether it is taken is the controller's
    /// business.
    pub(super) fn operate(&mut self) {
        let role = Role::Controller(self.leader);
        if !self.process(role).is_free() || self.keyspaces.is_none() {
            return;
        }
        let Some(command) = self.draw_command() else { return };
        if !self.command(command) {
            return;
        }
        self.stats.interventions += 1;
        self.note(format_args!("operator: {command:?}"));
        self.pump(Unit::Master(self.leader.into()));
        // A machine that is taken out of the cluster is made ready for another use.
        if let Command::Remove(node) = command {
            self.crash_for_a_while(Role::Node(node), Harm::Lost);
        }
    }

    fn draw_command(&mut self) -> Option<Command> {
        let node = self.any_node();
        let departing = self.any_departing();
        let known = self.saved.as_ref()?.map.nodes.iter().any(|it| it.id == NodeId(node));
        Some(match self.rng.below(10) {
            0..3 if !known => Command::Add(node),
            0..5 => Command::Drain(node),
            5 => Command::Keep(departing?),
            6..8 => Command::Remove(departing?),
            8 => Command::PauseCopies,
            _ => Command::ResumeCopies,
        })
    }

    /// One of the nodes that are to hold nothing in the end.
    fn any_departing(&mut self) -> Option<u16> {
        let departing = &self.saved.as_ref()?.departing;
        let place = self.rng.below(departing.len() as u64);
        let NodeId(node) = *departing.iter().nth(usize::try_from(place).ok()?)?;
        Some(node)
    }

    /// Says whether the controller takes it.
    fn command(&mut self, command: Command) -> bool {
        let local = self.local(Role::Controller(self.leader));
        let shards = self.options.shards;
        let master = self.controllers.get_mut(usize::from(self.leader));
        let Some(controller) = master.and_then(|it| it.machine.as_mut()) else { return false };
        match command {
            Command::Add(node) => {
                let spec = node_spec(node, shards);
                controller.add_node(local, spec, spec.endpoint.into()).is_ok()
            }
            Command::Drain(node) => controller.drain_node(local, NodeId(node)).is_ok(),
            Command::Keep(node) => controller.keep_node(local, NodeId(node)).is_ok(),
            Command::Remove(node) => controller.remove_node(local, NodeId(node)).is_ok(),
            Command::PauseCopies => {
                controller.pause_copies(local);
                true
            }
            Command::ResumeCopies => {
                controller.resume_copies(local);
                true
            }
        }
    }

    /// Somebody pins a key as hot, or lets it go. Now and then all of them: in worlds as slow as
    /// these, the controller would not find any by itself.
    pub(super) fn turn_hot_or_cold(&mut self) {
        let role = Role::Controller(self.leader);
        let Some(keyspaces) = self.keyspaces.clone().filter(|_| self.process(role).is_free())
        else {
            return;
        };
        let none = self.saved.as_ref().is_some_and(|saved| saved.pins.is_empty());
        let focused = self.rng.chance(self.options.load.focus_percent, 100);
        let load = &self.options.load;
        let keys = if focused { focus(load.twins) } else { keys(load) };
        let place = usize::try_from(self.rng.below(keys.len() as u64)).expect("below a length");
        let count = if none || self.rng.chance(1, 8) { keys.len() } else { 1 };
        let hot = match keys.get(place).filter(|_| focused) {
            // Hot keys turn cold, and cold ones hot: so they come back soon.
            Some(key) => none || !self.is_pinned(key),
            None => none || self.rng.chance(3, 5),
        };
        let local = self.local(role);
        let master = self.controllers.get_mut(usize::from(self.leader));
        let Some(controller) = master.and_then(|it| it.machine.as_mut()) else { return };
        for key in keys.iter().cycle().skip(place).take(count) {
            let [hashed, ordered] = &keyspaces;
            let keyspace = if key.ordered { ordered } else { hashed };
            // Whether it was so already is nothing to us.
            let _ = match hot {
                true => controller.pin(local, &keyspace.name, &key.key),
                false => controller.unpin(local, &keyspace.name, &key.key),
            };
        }
        let first = keys.get(place).map(|key| String::from_utf8_lossy(&key.key).into_owned());
        let what = if hot { "hot" } else { "cold" };
        self.note(format_args!("{count} keys turn {what}: {}", first.unwrap_or_default()));
        self.pump(Unit::Master(self.leader.into()));
    }

    fn is_pinned(&self, key: &Key) -> bool {
        let pins = self.saved.iter().flat_map(|saved| &saved.pins);
        let spaces = self
            .keyspaces
            .iter()
            .map(|[hashed, ordered]| if key.ordered { ordered.id } else { hashed.id });
        let names = spaces.map(|keyspace| KeyName { keyspace, key: key.key.clone() });
        names.into_iter().any(|name| pins.clone().any(|pin| *pin == name))
    }

    /// Ends a pause of copies that somebody left behind. Where nobody leads yet, that is asked for
    /// until it is saved.
    pub(super) fn resume_copies(&mut self) {
        let end = self.now + RESUMED_MAX;
        loop {
            self.command(Command::ResumeCopies);
            self.pump(Unit::Master(self.leader.into()));
            let is_so = self.saved.as_ref().is_some_and(|saved| !saved.paused);
            if !self.options.shared_store || is_so || self.now >= end {
                return;
            }
            self.run_until(self.now + ASK_AGAIN, |_| false);
        }
    }
}

/// How long it may take in a healed world until a controller leads and has saved what it is told.
const RESUMED_MAX: Duration = Duration::from_secs(5);

/// How often it is told.
const ASK_AGAIN: Duration = Duration::from_millis(200);
