//! What breaks, for how long, and how it gets whole again.

use super::process::ProcessState;
use super::{Unit, World};
use crate::actor::Actor;
use crate::clock::nanos;
use crate::options::Faults;
use crate::queue::Event;
use crate::role::Role;
use cluster::Term;
use machine::Instant;
use std::time::Duration;

/// Something breaks, or an operator acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash,
    PowerCut,
    ClientCrash,
    SwitchCrash,
    ControllerCrash,
    Pause,
    Slow,
    Cut,
    Clog,
    Operator,
    HotOrCold,
    Deaf,
    OldMap,
    Full,
    /// Not a fault: one client sends very much at once.
    Flood,
    /// The active switch and some nodes are out of the controllers' reach.
    Strand,
    /// Not a fault: a member is asked to end.
    Leave,
    /// The leader of several controllers is in trouble.
    Leader,
    /// The store that they share is.
    Store,
    /// Not a fault: an operator has a partition split, or two merged.
    Split,
    /// Not a fault: an operator has a keyspace altered.
    Alter,
    CacheCrash,
    /// Caches and nodes, or a lender and all others, do not reach each other.
    CacheCut,
}

/// Something has caught up again.
#[derive(Clone, Debug)]
pub(crate) enum Relief {
    /// A process is started again.
    Restart(Role),
    /// A process that was stopped or slow goes on, if it still is that one.
    GoOn(Role, u64),
    /// These can reach those again.
    Mend(Vec<(Role, Role)>),
    /// A controller that was deposed takes up its own store again, if it still is that one, above
    /// this term.
    TakeUp(u16, u64, Term),
    /// The controller has its newest map again, or one made anew.
    Map,
    /// A node has room again.
    Room(u16),
    /// A member that was asked to end does, if it still is that one.
    End(Role, u64),
    /// The store that controllers share has room again.
    StoreRoom,
}

/// What becomes of a node's disk when it crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    None,
    /// It is lost.
    Lost,
    /// An older copy is put back.
    Aged,
    /// Its last syncs are lost.
    Torn,
    /// It says that the last version that there can be was given out.
    Spent,
}

impl Fault {
    const ALL: [Self; 22] = [
        Self::Crash,
        Self::PowerCut,
        Self::ClientCrash,
        Self::SwitchCrash,
        Self::ControllerCrash,
        Self::Pause,
        Self::Slow,
        Self::Cut,
        Self::Clog,
        Self::Operator,
        Self::HotOrCold,
        Self::Deaf,
        Self::OldMap,
        Self::Full,
        Self::Strand,
        Self::Leave,
        Self::Leader,
        Self::Store,
        Self::Split,
        Self::Alter,
        Self::CacheCrash,
        Self::CacheCut,
    ];

    /// The mean time between two of these; zero: there are none.
    fn every(self, faults: &Faults) -> Duration {
        match self {
            Self::Crash => faults.crash_every,
            Self::PowerCut => faults.power_cut_every,
            Self::ClientCrash => faults.client_every,
            Self::SwitchCrash => faults.switch_every,
            Self::ControllerCrash => faults.controller_every,
            Self::Pause => faults.pause_every,
            Self::Slow => faults.slow_every,
            Self::Cut => faults.cut_every,
            Self::Clog => faults.clog_every,
            Self::Operator => faults.operator_every,
            Self::HotOrCold => faults.hot_every,
            Self::Deaf => faults.deaf_every,
            Self::OldMap => faults.old_map_every,
            Self::Full => faults.full_every,
            Self::Strand => faults.strand_every,
            Self::Leave => faults.leave_every,
            Self::Leader => faults.leader_every,
            Self::Store => faults.store_every,
            Self::Split => faults.split_every,
            Self::Alter => faults.alter_every,
            Self::CacheCrash => faults.cache_every,
            Self::CacheCut => faults.cache_cut_every,
            Self::Flood => Duration::ZERO,
        }
    }
}

impl World {
    /// Lets every kind of fault come for the first time.
    pub(super) fn begin_faults(&mut self) {
        let begin = self.now + self.options.lead;
        for fault in Fault::ALL {
            self.schedule_fault(fault, begin);
        }
        if self.options.load.flood > 0 {
            let at = begin + self.up_to(self.options.span);
            self.queue.schedule(at, Event::Fault(Fault::Flood));
        }
    }

    fn schedule_fault(&mut self, fault: Fault, after: Instant) {
        let mean = fault.every(&self.options.faults);
        if !mean.is_zero() {
            let wait = mean / 2 + self.up_to(mean);
            self.queue.schedule(after + wait, Event::Fault(fault));
        }
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        if self.healed {
            return;
        }
        // With an old map nothing but that goes wrong: who is down then cannot tell of a newer one.
        if self.newest_map.is_some() {
            return self.schedule_fault(fault, self.now);
        }
        match fault {
            Fault::Crash => self.crash_a_node(),
            Fault::PowerCut if self.spends() => self.start_all_anew_with_one_spent(),
            Fault::PowerCut => {
                let all_up = self.all_nodes_are_up();
                for node in 0..self.cast.nodes {
                    let harm = match self.harm() {
                        Harm::Lost => Harm::None,
                        Harm::Torn if !all_up => Harm::None,
                        harm => harm,
                    };
                    self.crash_for_a_while(Role::Node(node), harm);
                }
            }
            Fault::OldMap => self.lose_map(),
            Fault::ClientCrash => {
                let index = self.below(self.cast.clients);
                let percent = self.options.load.goodbye_percent;
                if percent > 0 && self.rng.chance(percent, 100) {
                    self.actors.get_mut(usize::from(index)).into_iter().for_each(Actor::take_leave);
                } else {
                    self.crash_for_a_while(Role::Client(index), Harm::None);
                }
            }
            Fault::SwitchCrash => {
                let index = self.below(self.cast.switches);
                self.crash_for_a_while(Role::Switch(index), Harm::None);
            }
            Fault::ControllerCrash => self.crash_controller(),
            Fault::Pause => self.disturb_someone(|_| ProcessState::Paused),
            Fault::Slow => self.disturb_someone(|world| {
                let most = Duration::from_micros(SLOW_US_MAX);
                ProcessState::Slow(Duration::from_micros(100) + world.up_to(most))
            }),
            Fault::Cut => self.cut(),
            Fault::Clog => self.clog(),
            Fault::Operator => self.operate(),
            Fault::HotOrCold => self.turn_hot_or_cold(),
            Fault::Deaf => self.deafen(),
            Fault::Strand => self.strand(),
            Fault::Leave => self.ask_to_end(),
            Fault::Leader => self.trouble_leader(),
            Fault::Store => self.trouble_store(),
            Fault::Split => self.split_or_merge(),
            Fault::Alter => self.alter_keyspace(),
            Fault::CacheCut => self.part_caches(),
            Fault::CacheCrash => {
                let index = self.below(self.cast.caches);
                self.crash_for_a_while(Role::Cache(index), Harm::None);
            }
            Fault::Full => {
                let node = self.any_node();
                self.fill_up(node);
                let until = self.now + self.length();
                self.queue.schedule(until, Event::Relief(Relief::Room(node)));
            }
            Fault::Flood => self.flood(),
        }
        self.schedule_fault(fault, self.now);
    }

    fn crash_a_node(&mut self) {
        let node = self.any_node();
        let all_up = self.all_nodes_are_up();
        let harm = match self.harm() {
            Harm::Torn if !all_up => Harm::None,
            harm => harm,
        };
        self.crash_for_a_while(Role::Node(node), harm);
    }

    pub(super) fn relieve(&mut self, relief: Relief) {
        match relief {
            Relief::Restart(role) => self.start(role),
            Relief::GoOn(role, incarnation) => {
                let process = self.process(role);
                let disturbed =
                    matches!(process.state, ProcessState::Paused | ProcessState::Slow(_));
                if disturbed && process.incarnation.0 == incarnation {
                    self.go_on(role);
                }
            }
            Relief::TakeUp(controller, incarnation, heard) => {
                self.take_store_up(controller, incarnation, heard);
            }
            Relief::Map => self.mend_map(),
            Relief::End(role, incarnation) if !self.healed => self.end_leaving(role, incarnation),
            Relief::End(..) => {}
            Relief::Room(node) if !self.healed => self.make_room(node),
            Relief::Room(_) => {}
            Relief::StoreRoom => self.store.is_full = false,
            Relief::Mend(links) => {
                if let Some((one, other)) = links.first() {
                    self.note(format_args!("mended: {one}, {other} and {} links", links.len()));
                }
                for (from, to) in links {
                    self.net.mend(from, to);
                }
            }
        }
    }

    /// What becomes of the disk of a node that crashes.
    fn harm(&mut self) -> Harm {
        let Faults { amnesia_percent, aged_percent, torn_percent, .. } = self.options.faults;
        if self.rng.chance(amnesia_percent, 100) {
            Harm::Lost
        } else if aged_percent > 0 && self.rng.chance(aged_percent, 100) {
            Harm::Aged
        } else if torn_percent > 0 && self.rng.chance(torn_percent, 100) {
            Harm::Torn
        } else {
            Harm::None
        }
    }

    /// Whether the next power cut harms a store so that it has no version left to give.
    fn spends(&mut self) -> bool {
        let percent = self.options.faults.spent_percent;
        percent > 0 && self.all_nodes_are_up() && self.rng.chance(percent, 100)
    }

    fn all_nodes_are_up(&self) -> bool {
        (0..self.cast.nodes).all(|node| self.process(Role::Node(node)).is_up())
    }

    /// All nodes end at once and come back at once, so that nobody has been in a chain all the time
    /// and nobody goes on alone.
    fn start_all_anew_with_one_spent(&mut self) {
        let (spent, back) = (self.any_node(), self.now + self.length());
        for node in 0..self.cast.nodes {
            let harm = if node == spent { Harm::Spent } else { Harm::None };
            self.crash(Role::Node(node), harm);
            self.queue.schedule(back, Event::Relief(Relief::Restart(Role::Node(node))));
        }
    }

    /// Ends a process that is up, and schedules its return. A node whose disk is to be harmed comes
    /// back so if the promise still holds then.
    pub(super) fn crash_for_a_while(&mut self, role: Role, harm: Harm) {
        if !self.process(role).is_up() {
            return;
        }
        self.crash(role, harm);
        let back = self.now + self.length();
        self.queue.schedule(back, Event::Relief(Relief::Restart(role)));
    }

    fn crash_controller(&mut self) {
        if self.options.shared_store {
            let role = Role::Controller(self.below(self.cast.controllers));
            return self.crash_for_a_while(role, Harm::None);
        }
        let role = Role::Controller(self.leader);
        if self.process(role).is_up() {
            self.crash(role, Harm::None);
        }
    }

    fn disturb_someone(&mut self, how: impl FnOnce(&mut Self) -> ProcessState) {
        let role = self.any_role();
        if self.process(role).state != ProcessState::Up {
            return;
        }
        let state = how(self);
        self.disturb(role, state);
        self.stats.disturbances += 1;
        let incarnation = self.process(role).incarnation.0;
        let until = self.now + self.length();
        self.queue.schedule(until, Event::Relief(Relief::GoOn(role, incarnation)));
    }

    /// Cuts some links: around one role, between two groups, or between two roles; in both
    /// directions or in one.
    fn cut(&mut self) {
        let roles: Vec<Role> = self.cast.roles().collect();
        let controllers = |role: &Role| matches!(role, Role::Controller(_));
        let (ones, others): (Vec<Role>, Vec<Role>) = match self.rng.below(8) {
            0..3 => {
                let alone = self.any_role();
                roles.iter().partition(|role| **role == alone)
            }
            3..6 => roles.iter().partition(|_| self.rng.chance(1, 2)),
            6 => {
                // Only the control plane loses them.
                let (masters, members): (Vec<Role>, Vec<Role>) =
                    roles.iter().copied().partition(controllers);
                let members = members.into_iter().filter(|_| self.rng.chance(1, 2)).collect();
                (masters, members)
            }
            _ => {
                let (one, other) = (self.any_role(), self.any_role());
                (vec![one], vec![other])
            }
        };
        let (there, back) = match self.rng.below(4) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        let mut links = Vec::new();
        for one in &ones {
            for other in &others {
                links.extend(there.then_some((*one, *other)));
                links.extend(back.then_some((*other, *one)));
            }
        }
        let list =
            |roles: &[Role]| roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let arrow = if there && back {
            "<->"
        } else if there {
            "->"
        } else {
            "<-"
        };
        self.note(format_args!("cut: {} {arrow} {}", list(&ones), list(&others)));
        let until = self.now + self.length();
        self.cut_until(until, links);
    }

    /// Lets no orders reach the active switch, or all nodes, or one. For less than a lease they
    /// go on with what they know.
    fn deafen(&mut self) {
        let active = self.saved.as_ref().map_or(0, |saved| saved.map.active_switch);
        let members: Vec<Role> = match self.rng.below(8) {
            0..4 => vec![Role::Switch(active)],
            4..7 => (0..self.cast.nodes).map(Role::Node).collect(),
            _ => vec![Role::Node(self.any_node())],
        };
        let masters = (0..self.cast.controllers).map(Role::Controller);
        let links = masters.flat_map(|from| members.iter().map(move |to| (from, *to))).collect();
        let length = self.up_to(self.options.faults.length_max);
        let names: Vec<String> = members.iter().map(ToString::to_string).collect();
        self.note(format_args!("deaf to orders for {length:?}: {}", names.join(", ")));
        self.cut_until(self.now + length, links);
    }

    /// The control plane loses the active switch and some of the nodes, which serve on together.
    fn strand(&mut self) {
        let active = self.saved.as_ref().map_or(0, |saved| saved.map.active_switch);
        let mut lost: Vec<Role> = (0..self.cast.nodes).map(Role::Node).collect();
        lost.retain(|_| self.rng.chance(1, 3));
        lost.push(Role::Switch(active));
        let masters = (0..self.cast.controllers).map(Role::Controller);
        let pairs = masters.flat_map(|master| lost.iter().map(move |it| (master, *it)));
        let links = pairs.flat_map(|(master, it)| [(master, it), (it, master)]).collect();
        let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
        self.note(format_args!("out of the controllers' reach: {}", names.join(", ")));
        let until = self.now + self.length();
        self.cut_until(until, links);
    }

    pub(super) fn cut_until(&mut self, until: Instant, links: Vec<(Role, Role)>) {
        for (from, to) in &links {
            self.net.cut(*from, *to);
        }
        self.stats.disturbances += 1;
        self.queue.schedule(until, Event::Relief(Relief::Mend(links)));
    }

    /// Clogs a link, all links to or from a role, or all between nodes.
    fn clog(&mut self) {
        let (one, other) = (self.any_role(), self.any_role());
        let roles = self.cast.roles();
        let nodes = roles.clone().filter(|role| matches!(role, Role::Node(_)));
        let links: Vec<(Role, Role)> = match self.rng.below(4) {
            0 => vec![(one, other)],
            1 => roles.map(|from| (from, one)).collect(),
            2 => roles.map(|to| (one, to)).collect(),
            _ => nodes.clone().flat_map(|from| nodes.clone().map(move |to| (from, to))).collect(),
        };
        let until = self.now + self.length();
        if let (Some((from, _)), Some((_, to))) = (links.first(), links.last()) {
            self.note(format_args!("clogged: {} links, {from} ... -> ... {to}", links.len()));
        }
        for (from, to) in links {
            self.net.clog(from, to, until);
        }
        self.stats.disturbances += 1;
    }

    fn flood(&mut self) {
        let role = Role::Client(0);
        let (now, local, writes) = (self.now, self.local(role), self.options.load.flood);
        let Some(keyspaces) = &self.keyspaces else { return };
        let actor = self.actors.first_mut().filter(|actor| actor.waiting() < writes);
        if let Some(actor) = actor {
            actor.flood(now, local, keyspaces, writes);
        }
        self.pump(Unit::Actor(0));
    }

    pub(super) fn any_node(&mut self) -> u16 {
        self.below(self.cast.nodes)
    }

    fn any_role(&mut self) -> Role {
        let index = self.rng.below(self.cast.len() as u64);
        let index = usize::try_from(index).expect("below a length");
        self.cast.roles().nth(index).expect("below the number of roles")
    }

    pub(super) fn below(&mut self, bound: u16) -> u16 {
        u16::try_from(self.rng.below(bound.into())).expect("below a 16-bit number")
    }

    pub(super) fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.rng.below(nanos(most) + 1))
    }

    /// How long a fault lasts: often short, sometimes long.
    pub(super) fn length(&mut self) -> Duration {
        let most = self.options.faults.length_max;
        let most = if self.rng.chance(1, 3) { most } else { most / 5 };
        Duration::from_micros(100) + self.up_to(most)
    }

    pub(super) fn schedule_restart(&mut self, role: Role, at: Instant) {
        self.queue.schedule(at, Event::Relief(Relief::Restart(role)));
    }
}

/// The longest that a slow process takes for a datagram: a few hundred a second.
const SLOW_US_MAX: u64 = 5_000;
