//! What the controller decides, and when it may.

use super::scope::{Bug, Rules};
use super::state::{End, Map, NODES_MAX, World};
use crate::returns::{Claim, Trust, compare};
use crate::state::Bits;
use arrayvec::ArrayVec;

/// The next revision of the map.
fn next(world: &mut World, change: impl FnOnce(&mut Map)) {
    world.map.revision += 1;
    change(&mut world.map);
}

/// A closed chain after the present one.
fn close(map: &mut Map) {
    (map.epoch, map.open) = (map.epoch + 1, false);
}

impl Rules {
    /// Whether somebody in the chain serves, and leaves it to nobody, beside this one.
    fn others_go_on(world: &World, node: u8) -> bool {
        world.map.chain.iter().any(|other| *other != node && world.goes_on(*other))
    }

    /// Whether an open chain is to be closed: a member leaves it to another, or one is back.
    pub(super) fn may_close(&self, world: &World) -> bool {
        let map = &world.map;
        let hands_on = |node: &u8| world.leaving.has(*node) && Self::others_go_on(world, *node);
        let back = map.away.iter().any(|node| self.is_back(world, node));
        let all_serve = map.chain.iter().all(|node| world.follows(*node));
        map.open && all_serve && (back || map.chain.iter().any(hands_on))
    }

    /// Whether a node that was away is there again.
    fn is_back(&self, world: &World, node: u8) -> bool {
        let leaves = world.is_known(node) && self.has(Bug::TakeBackLeaving);
        world.goes_on(node) || leaves
    }

    /// Whether the chain can go on without a node that does not run.
    pub(super) fn may_close_without(&self, world: &World, node: u8) -> bool {
        let map = &world.map;
        let is_given_up = world.given_up.has(node);
        let goes_on = |other: &u8| {
            let returned = map.has_returned(*other);
            let serves = world.is_known(*other) && world.node(*other).map.is_some();
            let is_believed = returned != Some(false) && (returned.is_none() || is_given_up);
            *other != node && serves && is_believed
        };
        map.chain.contains(&node) && !world.node(node).up && map.chain.iter().any(goes_on)
    }

    pub(super) fn may_take_back(&self, world: &World, node: u8) -> bool {
        let closed = !world.map.open && world.has_settled_but(Bits(0));
        closed && world.map.away.has(node) && self.is_back(world, node)
    }

    pub(super) fn may_open(&self, world: &World) -> bool {
        let excused = if self.has(Bug::HandOnUnsettled) { world.leaving } else { Bits(0) };
        let waits = world.map.away.iter().any(|node| self.may_take_back(world, node));
        !world.map.open && !waits && world.has_settled_but(excused)
    }

    /// Whether a node that has left its chains is to be fenced.
    pub(super) fn may_fence(world: &World, node: u8) -> bool {
        let map = &world.map;
        world.leaving.has(node) && !map.chain.contains(&node) && map.fence(node).is_none()
    }

    /// Whether a fenced node is to be let in again: it serves, and knows of the fence.
    pub(super) fn may_lift(&self, world: &World, node: u8) -> bool {
        let own = world.node(node).map.as_ref();
        let stays = !world.leaving.has(node) || self.has(Bug::LiftWhileLeaving);
        let knows = |since: u8| own.is_some_and(|own| own.revision >= since);
        world.is_known(node) && stays && world.map.fence(node).is_some_and(knows)
    }

    /// How a node may end, if it is to be told so now.
    pub(super) fn may_end(&self, world: &World, node: u8) -> Option<End> {
        let map = &world.map;
        if !world.leaving.has(node) || !world.is_known(node) {
            return None;
        }
        if map.chain.contains(&node) {
            if self.has(Bug::EndInChain) {
                return Some(End::InOrder);
            }
            let waits = !map.open || Self::others_go_on(world, node);
            return (!waits).then_some(End::Alone);
        }
        let fence = map.fence(node).or(self.has(Bug::EndUnfenced).then_some(0));
        let unasked = self.has(Bug::EndUnsevered);
        let severed = |since: u8| unasked || world.tables.revision >= since;
        fence.is_some_and(severed).then_some(End::InOrder)
    }

    /// A new incarnation of a node is put on record, and its chain closed.
    pub(super) fn register(world: &mut World, node: u8) {
        let incarnation = world.node(node).incarnation;
        world.leaving.0 &= !Bits::of(node).0;
        world.given_up.0 &= !Bits::of(node).0;
        next(world, |map| {
            if let Some(known) = map.incarnations.get_mut(usize::from(node)) {
                *known = incarnation;
            }
            if map.chain.contains(&node) {
                close(map);
                let before = map.has_returned(node).unwrap_or(true);
                map.set_returned(node, Some(before));
            }
        });
    }

    pub(super) fn close_chain(world: &mut World) {
        next(world, close);
    }

    /// One that leaves, and ended or crashed before it had settled, is away as well.
    pub(super) fn close_without(world: &mut World, node: u8) {
        let leaves = world.leaving.has(node);
        next(world, |map| {
            close(map);
            map.chain.retain(|member| *member != node);
            map.set_returned(node, None);
            if leaves {
                map.away.insert(node);
            }
        });
    }

    pub(super) fn take_back(&self, world: &mut World, node: u8) {
        let is_believed = if self.has(Bug::TakeForStayed) {
            None
        } else {
            Some(self.has(Bug::TakeForRemembering))
        };
        next(world, |map| {
            close(map);
            map.away.0 &= !Bits::of(node).0;
            map.chain.push(node);
            map.set_returned(node, is_believed);
        });
    }

    pub(super) fn fence(world: &mut World, node: u8) {
        next(world, |map| map.set_fence(node, map.revision));
    }

    pub(super) fn lift(world: &mut World, node: u8) {
        next(world, |map| map.set_fence(node, 0));
    }

    /// Compares the members of a settled chain, sends those that are behind what they lack, and
    /// opens it without those who leave, in this order or the other way round.
    pub(super) fn open(&self, world: &mut World, is_turned: bool) {
        let chain = world.map.chain.clone();
        let Some((right, behind)) = self.compare(world, &chain) else { return };
        for node in &chain {
            // Nobody counts as stable what is newer than all that it has recorded.
            let store = &mut world.node_mut(*node).store;
            store.stable = store.newest();
        }
        let source = world.node(right).store;
        let can_resume = |world: &World, node: u8| world.node(node).base.is_some();
        let mut members: ArrayVec<u8, NODES_MAX> = ArrayVec::new();
        for node in &chain {
            if behind.contains(node) {
                if !can_resume(world, *node) {
                    continue;
                }
                let it = world.node_mut(*node);
                it.store.resume(&source, it.base.unwrap_or(0));
                it.store.stable = source.stable;
            }
            if world.map.has_returned(*node) == Some(false) {
                let (same, sent) = &mut world.back;
                if behind.contains(node) { sent.insert(*node) } else { same.insert(*node) }
            }
            world.node_mut(*node).base = None;
            members.push(*node);
        }
        let hands_on = members.iter().any(|node| world.goes_on(*node));
        let leaves = |node: &u8| hands_on && world.leaving.has(*node);
        let away: Bits = members.iter().copied().filter(leaves).collect();
        members.retain(|node| !away.has(*node));
        if is_turned {
            members.reverse();
        }
        let replicas = usize::from(self.scope.nodes);
        next(world, |map| {
            map.epoch += 1;
            (map.opened, map.open) = (map.epoch, true);
            // Nobody is waited for where there are enough.
            map.away = if members.len() < replicas { map.away.or(away) } else { Bits(0) };
            map.chain = members;
            map.returned = [None; NODES_MAX];
        });
    }

    fn compare(&self, world: &World, chain: &[u8]) -> Option<(u8, Vec<u8>)> {
        let claim = |node: &u8| {
            let it = world.node(*node);
            let held = (it.store.newest(), it.store.committed);
            let trust = Trust::of(world.map.has_returned(*node));
            Claim { node: *node, held, trust, writes: None, base: it.base }
        };
        let claims: Vec<Claim> = chain.iter().map(claim).collect();
        let compared = compare(&claims, false);
        if self.has(Bug::BelieveTheAbsent) {
            return compared.map(|(right, _)| (right, Vec::new()));
        }
        compared
    }
}
