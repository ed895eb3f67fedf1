//! What the controller decides, hears and gives.

use super::scope::{Bug, Rules};
use super::state::{Controller, Order, Process, SWITCHES, World};

impl Rules {
    /// The controller is to begin: it has heard of the first switch.
    pub(super) fn at_first() -> Controller {
        Controller {
            named: 0,
            turn: 0,
            handing_over: false,
            directory: Some(Process { switch: 0, incarnation: 0 }),
            known_from: 0,
            said: 0,
            forgotten: false,
            delegated: 0,
            since: 0,
            before: 0,
        }
    }

    /// Whether the named switch may be given another order.
    pub(super) fn may_order(&self, world: &World) -> bool {
        let it = &world.controller;
        it.directory.is_some() && !it.handing_over && world.newest() < self.scope.orders
    }

    /// The delegation that the key is under by the newest order, if its directory knows of it.
    pub(super) fn delegated(world: &World) -> u8 {
        let it = &world.controller;
        let is_its = world.newest() > it.known_from && !it.forgotten;
        if is_its { world.delegation(world.newest()) } else { 0 }
    }

    /// The named switch is given another order: with a delegation, perhaps a new one.
    pub(super) fn order(&self, world: &mut World, delegation: u8) {
        let revision = world.newest() + 1;
        let it = &mut world.controller;
        let Some(to) = it.directory else { return };
        it.forgotten = false;
        if delegation != 0 && !self.has(Bug::KeepSince) {
            (it.delegated, it.since) = (revision, 0);
        }
        let (since, turn) = (it.before, it.turn);
        world.orders.push(Order { to, delegation, since, turn, confirmed: false });
    }

    /// The controller hears which order the named switch has.
    pub(super) fn hear(&self, world: &mut World) {
        let process = world.process(world.controller.named);
        let says = world.switch(process.switch).installed;
        let newest = world.newest();
        let it = &mut world.controller;
        if it.handing_over {
            return;
        }
        if it.directory != Some(process) {
            if it.directory.is_some() {
                (it.delegated, it.since, it.before) = (0, 0, 0);
            }
            (it.directory, it.known_from) = (Some(process), newest);
            (it.said, it.forgotten) = (says, true);
            return;
        }
        if it.said == says {
            return;
        }
        it.said = says;
        if says <= it.known_from {
            (it.since, it.forgotten) = (0, true);
            return;
        }
        if it.since == 0 && (says > it.delegated || self.has(Bug::HearOlder)) {
            it.since = says;
        }
        if let Some(order) = world.orders.get_mut(usize::from(says) - 1) {
            order.confirmed = true;
        }
    }

    /// Whether all delegations are home, as the controller has heard: home and nodes have the quiet
    /// order, and every recall is done.
    pub(super) fn are_delegations_home(world: &World) -> bool {
        let said = world.controller.said;
        let have_it = world.home.installed.min(world.nodes.installed) >= said;
        world.controller.since != 0 && have_it && world.home.present == 0
    }

    /// Whether the map may name the other switch: it has said that it stands by (F6).
    pub(super) fn may_switch_over(&self, world: &World) -> bool {
        let other = world.switch(other(world.controller.named));
        world.left.turns > 0 && (!other.active || self.has(Bug::NameUntold))
    }

    /// The map names the other switch: the one before leaves in order (E10), or is lost.
    pub(super) fn switch_over(&self, world: &mut World, in_order: bool) {
        world.left.turns -= 1;
        let newest = world.newest();
        let it = &mut world.controller;
        it.before = if self.has(Bug::NameNewest) {
            newest
        } else if in_order {
            it.since
        } else {
            0
        };
        (it.delegated, it.since, it.directory) = (0, 0, None);
        (it.named, it.turn, it.handing_over) = (other(it.named), it.turn + 1, true);
    }

    /// A switch is given the newest tables.
    pub(super) fn tables(&self, world: &mut World, switch: u8) {
        let it = &world.controller;
        let (active, turn) = (it.named == switch && !it.handing_over, it.turn);
        let it = world.switch_mut(switch);
        it.active = active;
        if !active {
            it.stood_by = turn;
            self.forget(it);
        }
    }
}

/// The switch that is not this one.
fn other(switch: u8) -> u8 {
    (switch + 1) % SWITCHES
}
