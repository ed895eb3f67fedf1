//! What switches, home, and the nodes of delegations do.

use super::scope::{Bug, Rules};
use super::state::{Clock, Over, Packet, Switch, World};

/// What the request is, when it comes home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// It was never applied and will not be, but here.
    New,
    /// It took effect under a delegation.
    Applied,
    /// It is not taken; who asks again may be told more.
    Refused,
    /// It cannot be told, now or ever.
    Uncertain,
}

impl Rules {
    /// Whether a switch may install this order (O2, O12).
    pub(super) fn may_install(&self, world: &World, switch: u8, revision: u8) -> bool {
        let Some(order) = world.order(revision) else { return false };
        let it = world.switch(switch);
        let revives = order.delegation != 0
            && order.delegation <= it.newest
            && world.delegation(it.installed) != order.delegation;
        let is_former = order.turn < it.stood_by && !self.has(Bug::TakeFormerOrders);
        order.to == world.process(switch)
            && it.active
            && !is_former
            && revision > it.newest
            && !revives
    }

    /// A switch installs an order. If its directory was empty it begins (O11).
    pub(super) fn install(world: &mut World, switch: u8, revision: u8) {
        let Some(order) = world.order(revision).copied() else { return };
        let before = world.delegation(world.switch(switch).installed);
        let it = world.switch_mut(switch);
        if it.installed == 0 {
            let (own, earlier) = (Clock::of_order(revision), Clock::of_order(order.since));
            it.beginning = if earlier > it.clock { earlier } else { own };
        }
        if before != order.delegation {
            it.begun = None;
        }
        (it.installed, it.newest) = (revision, revision);
        it.clock = it.clock.max(Clock::of_order(revision));
    }

    /// A switch forgets its directory: what it has granted it keeps, and its clock (D1, D2).
    pub(super) fn forget(&self, it: &mut Switch) {
        (it.installed, it.begun) = (0, None);
        if self.has(Bug::ForgetGrants) {
            it.grant = 0;
        }
    }

    /// A delegation begins at a switch, by home's word to any request.
    pub(super) fn begin(it: &mut Switch) {
        if it.begun.is_none() {
            it.clock = it.clock.next();
            it.begun = Some(it.clock);
        }
    }

    /// Whether home has said that the key is under the delegation of a switch's order.
    pub(super) fn is_said(world: &World, switch: u8) -> Option<u8> {
        let it = world.switch(switch);
        let delegation = world.delegation(it.installed);
        let said = delegation != 0 && it.active && world.told.has(delegation);
        said.then_some(delegation)
    }

    /// A copy of the request passes a switch.
    pub(super) fn pass(&self, world: &mut World, switch: u8) {
        let (Some(first), it) = (world.first, world.switch(switch)) else { return };
        let named = world.delegation(it.installed);
        let unborn = self.has(Bug::GrantUnborn);
        let fits = it.begun.is_some_and(|begun| first >= begun || unborn);
        let grant = if it.grant == 0 && fits { named } else { it.grant };
        let (clock, beginning) = (it.clock, it.beginning);
        world.switch_mut(switch).grant = grant;
        if grant != 0 && grant == named {
            world.send(Packet::Granted { from: switch, delegation: grant });
            return;
        }
        let old = first < beginning && !self.has(Bug::NeverOld);
        world.send(Packet::Home { from: switch, granted: grant, clock, old });
    }

    /// The switch is told that the key is under its delegation, in answer to the request (D11).
    pub(super) fn grant(world: &mut World, switch: u8) {
        let delegation = world.delegation(world.switch(switch).installed);
        let it = world.switch_mut(switch);
        Self::begin(it);
        it.grant = it.grant.max(delegation);
    }

    /// The nodes of a delegation are sent the request, or a newer write (D15).
    pub(super) fn record(world: &mut World, from: u8, delegation: u8) {
        let installed = world.nodes.installed;
        let takes = installed < delegation || world.delegation(installed) == delegation;
        if takes && world.taken_from == from {
            world.nodes.records.insert(delegation);
        }
    }

    /// The request comes home (D41 to D49).
    pub(super) fn come_home(&self, world: &mut World, packet: Packet) {
        let Packet::Home { from, .. } = packet else { return };
        if world.taken_from != from || world.home.applied.is_some() {
            return;
        }
        match self.arrival(world, packet) {
            Arrival::Applied | Arrival::Refused | Arrival::Uncertain => {}
            Arrival::New if world.home.present != 0 => {
                if world.tells_of_present() {
                    world.answered.insert(world.home.present);
                }
            }
            Arrival::New => world.home.applied = Some(from),
        }
    }

    /// What home takes the request for that comes by this packet.
    fn arrival(&self, world: &World, packet: Packet) -> Arrival {
        let Packet::Home { granted, clock, old, .. } = packet else { return Arrival::Refused };
        let home = &world.home;
        if granted != 0 {
            match home.over.iter().find(|over| over.number == granted) {
                Some(over) if over.has_it => return Arrival::Applied,
                Some(_) => {}
                // It is on its way, or nobody knows it.
                None => return Arrival::Refused,
            }
        }
        if clock.order() < home.ended() && !self.takes_late(granted) {
            return Arrival::Refused;
        }
        if old && clock.order() != home.installed && !self.has(Bug::TakeOtherOrders) {
            return Arrival::Refused;
        }
        let on = world.order(home.installed).map(|order| order.to);
        let of_another = |over: &Over| over.number > granted && Some(over.on) != on;
        if old && home.over.iter().any(of_another) && !self.has(Bug::TakeUncertain) {
            return Arrival::Uncertain;
        }
        Arrival::New
    }

    /// Whether home takes what has passed its switch before a delegation was over.
    fn takes_late(&self, granted: u8) -> bool {
        self.has(if granted == 0 { Bug::TakeLate } else { Bug::TakeLateGrants })
    }

    /// Whether a copy of the request is under way that home cannot tell what became of.
    pub(super) fn is_uncertain(&self, world: &World) -> bool {
        let taken = |packet: &&Packet| match packet {
            Packet::Home { from, .. } => *from == world.taken_from,
            Packet::Granted { .. } => false,
        };
        let mut taken = world.packets.iter().filter(taken);
        let is_open = world.home.applied.is_none();
        is_open && taken.any(|packet| self.arrival(world, *packet) == Arrival::Uncertain)
    }

    /// Whether nothing can come of a packet any more.
    pub(super) fn is_void(&self, world: &World, packet: Packet) -> bool {
        let (Packet::Home { from, .. } | Packet::Granted { from, .. }) = packet;
        if !world.may_reach(from) {
            return true;
        }
        let (granted, clock) = match packet {
            Packet::Home { granted, clock, .. } => (granted, clock),
            Packet::Granted { delegation, .. } => {
                let order = world.nodes.installed;
                let over = order >= delegation && world.delegation(order) != delegation;
                return over || world.nodes.records.has(delegation);
            }
        };
        let home = &world.home;
        let over = home.over.iter().find(|over| over.number == granted);
        let ended_without = granted == 0 || over.is_some_and(|over| !over.has_it);
        let late = clock.order() < home.ended() && !self.takes_late(granted);
        home.applied.is_some() || over.is_some_and(|over| over.has_it) || ended_without && late
    }

    /// The delegation that the home's order names, if the key may leave for it.
    pub(super) fn to_leave_for(world: &World) -> Option<u8> {
        let home = &world.home;
        let delegation = world.delegation(home.installed);
        let leaves = delegation != 0 && home.present == 0 && !home.knows(delegation);
        leaves.then_some(delegation)
    }

    /// Whether the key may come home: the nodes take nothing more (D33, D34).
    pub(super) fn may_recall(&self, world: &World) -> bool {
        let home = &world.home;
        let ended = home.installed;
        let dropped = ended > home.present && world.delegation(ended) != home.present;
        let asked = world.nodes.installed >= ended || self.has(Bug::FetchEarly);
        home.present != 0 && dropped && asked
    }

    /// The key comes home.
    pub(super) fn recall(world: &mut World) {
        let number = world.home.present;
        let Some(order) = world.order(number) else { return };
        let has_it = world.nodes.records.has(number);
        let over = Over { number, has_it, ended: world.home.installed, on: order.to };
        world.home.present = 0;
        world.home.over.push(over);
    }
}
