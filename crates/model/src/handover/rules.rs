//! What can happen, and what is promised.

use super::scope::Rules;
use super::state::{Clock, Home, Left, Nodes, Packet, SWITCHES, Switch, World};
use crate::state::Bits;
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::fmt;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The client sends the request for the first time, with this clock.
    First(Clock),
    /// A copy of the request passes a switch.
    Pass(u8),
    /// What a switch has sent arrives.
    Arrive(Packet),
    /// A switch sees home's answer to another request: the key is delegated.
    Begin(u8),
    /// A switch sees the same in answer to the request.
    Grant(u8),
    /// The named switch is given an order with this delegation, or with none (0).
    Order(u8),
    /// A switch installs an order.
    Install(u8, u8),
    /// The controller hears from the named switch.
    Hear,
    /// Home installs an order.
    InstallHome(u8),
    /// The nodes of delegations do.
    InstallNodes(u8),
    /// The key leaves home.
    Delegate(u8),
    /// The key comes home.
    Recall,
    /// The map names the other switch, as this one leaves and all delegations are home.
    Leave,
    /// It does so because this one is lost.
    Lose,
    /// Nodes take requests from that alone, and it is to serve.
    Activate,
    /// A switch is given the newest tables.
    Tables(u8),
    /// A switch has no lease for an instant.
    Lapse(u8),
    /// A switch crashes, and runs again.
    Crash(u8),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(clock) => {
                write!(f, "the client, whose clock is {}, sends the request", clock.0)
            }
            Self::Pass(switch) => write!(f, "the request passes switch {switch}"),
            Self::Arrive(Packet::Granted { from, delegation }) => {
                write!(f, "it comes from {from} to nodes, under delegation {delegation}")
            }
            Self::Arrive(Packet::Home { from, granted, clock, old }) => {
                let (old, clock) = (if *old { " OLD," } else { "" }, clock.0);
                write!(f, "it comes home from {from},{old} clock {clock}, granted {granted}")
            }
            Self::Begin(switch) => write!(f, "the delegation begins at switch {switch}"),
            Self::Grant(switch) => write!(f, "switch {switch} gives the request a version"),
            Self::Order(0) => f.write_str("an order without a delegation is given"),
            Self::Order(number) => write!(f, "an order with delegation {number} is given"),
            Self::Install(switch, order) => write!(f, "switch {switch} installs order {order}"),
            Self::Hear => f.write_str("the controller hears from the named switch"),
            Self::InstallHome(order) => write!(f, "home installs order {order}"),
            Self::InstallNodes(order) => write!(f, "the nodes install order {order}"),
            Self::Delegate(number) => write!(f, "the key leaves for delegation {number}"),
            Self::Recall => f.write_str("the key comes home"),
            Self::Leave => f.write_str("the switch leaves, and the map names the other one"),
            Self::Lose => f.write_str("the switch is lost, and the map names the other one"),
            Self::Activate => f.write_str("nodes take requests from that alone, and it serves"),
            Self::Tables(switch) => write!(f, "switch {switch} is given the newest tables"),
            Self::Lapse(switch) => write!(f, "switch {switch} has no lease for an instant"),
            Self::Crash(switch) => write!(f, "switch {switch} crashes, and runs again"),
        }
    }
}

impl Rules {
    fn request(world: &World, actions: &mut Vec<Action>) {
        if world.first.is_none() {
            let clocks = world.switches.iter().map(|it| it.clock);
            actions.extend(clocks.chain([Clock(0)]).map(Action::First));
        }
        for (switch, it) in (0..).zip(&world.switches) {
            if it.active && world.first.is_some() && world.may_reach(switch) {
                actions.push(Action::Pass(switch));
            }
            if let Some(delegation) = Self::is_said(world, switch) {
                actions.push(Action::Begin(switch));
                if world.answered.has(delegation) {
                    actions.push(Action::Grant(switch));
                }
            }
        }
        actions.extend(world.packets.iter().copied().map(Action::Arrive));
    }

    fn orders(&self, world: &World, actions: &mut Vec<Action>) {
        if self.may_order(world) {
            actions.push(Action::Order(0));
            let delegated = Self::delegated(world);
            let next = world.newest() + 1;
            actions.push(Action::Order(if delegated == 0 { next } else { delegated }));
        }
        for revision in 1..=world.newest() {
            for switch in 0..SWITCHES {
                if self.may_install(world, switch, revision) {
                    actions.push(Action::Install(switch, revision));
                }
            }
            if !world.order(revision).is_some_and(|order| order.confirmed) {
                continue;
            }
            if revision > world.home.installed {
                actions.push(Action::InstallHome(revision));
            }
            if revision > world.nodes.installed {
                actions.push(Action::InstallNodes(revision));
            }
        }
        actions.extend(Self::to_leave_for(world).map(Action::Delegate));
        if self.may_recall(world) {
            actions.push(Action::Recall);
        }
    }

    /// What can change nothing any more is forgotten, so that states without it are the same.
    fn forget_what_is_over(&self, world: &mut World) {
        for switch in 0..SWITCHES {
            if !world.may_reach(switch) {
                let it = world.switch_mut(switch);
                *it = Switch { incarnation: it.incarnation, ..Switch::default() };
            }
        }
        if world.left.turns == 0 {
            (world.controller.delegated, world.controller.since) = (0, 0);
        }
        if world.newest() == self.scope.orders {
            (world.controller.before, world.controller.forgotten) = (0, false);
        }
    }

    fn switches(&self, world: &World, actions: &mut Vec<Action>) {
        let Left { crashes, lapses, .. } = world.left;
        if self.may_switch_over(world) {
            actions.push(Action::Lose);
            if Self::are_delegations_home(world) {
                actions.push(Action::Leave);
            }
        }
        if world.controller.handing_over {
            actions.push(Action::Activate);
        }
        for switch in (0..SWITCHES).filter(|switch| world.may_reach(*switch)) {
            actions.push(Action::Tables(switch));
            if crashes > 0 {
                actions.push(Action::Crash(switch));
            }
            if lapses > 0 && world.switch(switch).installed > 0 {
                actions.push(Action::Lapse(switch));
            }
        }
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let first = Switch { active: true, ..Switch::default() };
        vec![World {
            orders: ArrayVec::new(),
            switches: [first, Switch::default()],
            home: Home::default(),
            nodes: Nodes::default(),
            taken_from: 0,
            controller: Self::at_first(),
            first: None,
            packets: Vec::new(),
            told: Bits(0),
            answered: Bits(0),
            left: Left {
                turns: self.scope.turns,
                crashes: self.scope.crashes,
                lapses: self.scope.lapses,
            },
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Hear);
        Self::request(world, actions);
        self.orders(world, actions);
        self.switches(world, actions);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::First(clock) => world.first = Some(clock),
            Action::Pass(switch) => self.pass(&mut world, switch),
            Action::Arrive(Packet::Granted { from, delegation }) => {
                Self::record(&mut world, from, delegation);
            }
            Action::Arrive(packet) => self.come_home(&mut world, packet),
            Action::Begin(switch) => Self::begin(world.switch_mut(switch)),
            Action::Grant(switch) => Self::grant(&mut world, switch),
            Action::Order(delegation) => self.order(&mut world, delegation),
            Action::Install(switch, revision) => Self::install(&mut world, switch, revision),
            Action::Hear => self.hear(&mut world),
            Action::InstallHome(revision) => world.home.installed = revision,
            Action::InstallNodes(revision) => world.nodes.installed = revision,
            Action::Delegate(number) => world.home.present = number,
            Action::Recall => Self::recall(&mut world),
            Action::Leave => self.switch_over(&mut world, true),
            Action::Lose => self.switch_over(&mut world, false),
            Action::Activate => {
                world.taken_from = world.controller.named;
                world.controller.handing_over = false;
            }
            Action::Tables(switch) => self.tables(&mut world, switch),
            Action::Lapse(switch) => {
                world.left.lapses -= 1;
                self.forget(world.switch_mut(switch));
            }
            Action::Crash(switch) => {
                world.left.crashes -= 1;
                let it = world.switch_mut(switch);
                *it = Switch { incarnation: it.incarnation + 1, ..Switch::default() };
            }
        }
        if world.tells_of_present() {
            // Others ask for the key all the time.
            world.told.insert(world.home.present);
        }
        let packets = std::mem::take(&mut world.packets);
        let kept = packets.into_iter().filter(|packet| !self.is_void(&world, *packet)).collect();
        world.packets = kept;
        self.forget_what_is_over(&mut world);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("the request takes effect at most once", |_, world: &World| {
                world.effects() <= 1
            }),
            Property::sometimes("it takes effect under a delegation", |_, world: &World| {
                world.nodes.records != Bits(0)
            }),
        ];
        if self.scope.turns > 0 {
            properties.push(Property::sometimes("nobody knows", Self::is_uncertain));
        }
        if self.scope.turns > 0 && self.scope.orders > 2 {
            let name = "what was first sent at one comes home by the other";
            properties.push(Property::sometimes(name, taken_by_other));
        }
        properties
    }
}

/// Whether home has taken by one switch what was first sent at the other, after a delegation there.
fn taken_by_other(_: &Rules, world: &World) -> bool {
    let (Some(by), Some(first)) = (world.home.applied, world.first) else { return false };
    let (it, over) = (world.switch(by), &world.home.over);
    it.beginning <= first
        && first < Clock::of_order(it.newest)
        && world.order(first.order()).is_some_and(|order| order.to.switch != by)
        && over.iter().any(|over| over.on.switch != by)
}
