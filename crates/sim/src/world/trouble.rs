//! What befalls controllers that share a store, and the store.

use super::World;
use super::faults::{Harm, Relief};
use super::process::ProcessState;
use crate::queue::Event;
use crate::role::Role;
use std::time::Duration;

impl World {
    /// Whoever leads ends, or stops with an order in its hands, or is cut off from the store, from
    /// members, or, with some members, from everybody else.
    pub(super) fn trouble_leader(&mut self) {
        let leader = self.leader;
        let index =
            if self.has_tenure(leader) { leader } else { self.below(self.cast.controllers) };
        let role = Role::Controller(index);
        match self.rng.below(6) {
            0 => self.crash_for_a_while(role, Harm::None),
            1 | 2 => {
                // With its next order.
                if let Some(master) = self.controllers.get_mut(usize::from(index)) {
                    master.stops = true;
                }
            }
            3 => {
                let answers_alone = self.rng.chance(1, 2);
                self.note(format_args!("{role} is cut off from the store"));
                let there = (!answers_alone).then_some((role, Role::Store));
                let links = there.into_iter().chain([(Role::Store, role)]).collect();
                let until = self.now + self.length();
                self.cut_until(until, links);
            }
            4 => {
                let (lost, _) = self.split_members();
                self.note(format_args!("{role} is cut off from {} members", lost.len()));
                let links = lost.iter().flat_map(|it| [(role, *it), (*it, role)]).collect();
                let until = self.now + self.length();
                self.cut_until(until, links);
            }
            _ => self.split_control(role),
        }
    }

    /// The leader keeps some members, and the store and the other controllers the others. Members
    /// and clients reach each other as ever.
    fn split_control(&mut self, leader: Role) {
        let (mine, others) = self.split_members();
        let names: Vec<String> = mine.iter().map(ToString::to_string).collect();
        self.note(format_args!("only {leader} reaches {}", names.join(", ")));
        let rivals = (0..self.cast.controllers).map(Role::Controller).filter(|it| *it != leader);
        let apart = rivals.flat_map(|rival| mine.iter().map(move |it| (rival, *it)));
        let from_others = others.iter().copied().chain([Role::Store]).map(|it| (leader, it));
        let pairs = apart.chain(from_others);
        let links = pairs.flat_map(|(one, other)| [(one, other), (other, one)]).collect();
        // Until the others have gone on without those members, and some time longer.
        let until = self.now + self.options.lease.min(SPLIT_LEASE_MAX) + SPLIT_MIN + self.length();
        self.cut_until(until, links);
    }

    /// Some switches and nodes, and the others.
    fn split_members(&mut self) -> (Vec<Role>, Vec<Role>) {
        let switches = (0..self.cast.switches).map(Role::Switch);
        let nodes = (0..self.cast.nodes).map(Role::Node);
        let members: Vec<Role> = switches.chain(nodes).collect();
        members.into_iter().partition(|_| self.rng.chance(1, 2))
    }

    /// The store stops, takes long, has no room, or its answers get lost.
    pub(super) fn trouble_store(&mut self) {
        let until = self.now + self.length();
        match self.rng.below(5) {
            0 | 1 => self.disturb_store(ProcessState::Paused),
            2 => {
                let takes = Duration::from_millis(20) + self.up_to(STORE_TAKES_MAX);
                self.disturb_store(ProcessState::Slow(takes));
            }
            3 => {
                self.note("the store is full");
                self.store.is_full = true;
                self.stats.disturbances += 1;
                self.queue.schedule(until, Event::Relief(Relief::StoreRoom));
            }
            _ => {
                self.note("answers of the store get lost");
                let controllers = (0..self.cast.controllers).map(Role::Controller);
                let links = controllers.map(|to| (Role::Store, to)).collect();
                self.cut_until(until, links);
            }
        }
    }

    fn disturb_store(&mut self, state: ProcessState) {
        if self.process(Role::Store).state != ProcessState::Up {
            return;
        }
        self.disturb(Role::Store, state);
        self.stats.disturbances += 1;
        let incarnation = self.process(Role::Store).incarnation.0;
        let until = self.now + self.length();
        self.queue.schedule(until, Event::Relief(Relief::GoOn(Role::Store, incarnation)));
    }
}

/// How long the control plane is split at least, beyond a lease.
const SPLIT_MIN: Duration = Duration::from_millis(3_000);

/// The longest lease that is waited for then.
const SPLIT_LEASE_MAX: Duration = Duration::from_secs(2);

/// The longest that a store that is late takes for a call, for which it has others wait.
const STORE_TAKES_MAX: Duration = Duration::from_millis(600);
