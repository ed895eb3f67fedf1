//! What the store does with what it is asked.

use super::scope::{Bug, Rules};
use super::state::{Ask, Call, LEASE, Sign, Taking, View, World};

impl World {
    /// Another state of the leader's key and its sign.
    fn change(&mut self, now: View) {
        self.store.now = now;
    }

    /// The number of a new change.
    fn next(&mut self) -> u8 {
        self.store.changes += 1;
        self.store.changes
    }

    /// The leader's lease ends, and what is bound to it goes.
    pub(super) fn lapse(&mut self) {
        let View { seat, sign, .. } = self.store.now;
        let sign = sign.filter(|sign| sign.seat != seat);
        self.change(View { seat: 0, who: 0, sign });
    }

    /// The lease of an older leader ends, and with it its sign.
    pub(super) fn old_sign_lapses(&mut self) {
        let now = self.store.now;
        self.change(View { sign: None, ..now });
    }
}

impl Rules {
    /// The store does what it is asked, and answers or is asked something else.
    pub(super) fn serve(&self, world: &mut World, call: Call) {
        let mine = world.store.now.seat == call.seat;
        let then = |ask: Ask| Call { ask, ..call };
        match call.ask {
            Ask::Take { .. } => self.serve_take(world, call),
            // Nothing that needs room is done, and its conditions are not looked at.
            Ask::Give if world.store.is_full => {
                let leaves = self.has(Bug::LeaveSign);
                world.send(then(if leaves { Ask::Confirm } else { Ask::Remove }));
            }
            Ask::Give => {
                if mine {
                    let sign = Sign { number: world.next(), seat: call.seat };
                    let now = world.store.now;
                    world.change(View { sign: Some(sign), ..now });
                }
                world.send(then(Ask::Told(mine)));
            }
            Ask::Remove => {
                // Whoever's it is.
                let now = world.store.now;
                if now.sign.is_some() {
                    world.change(View { sign: None, ..now });
                }
                let enough = self.has(Bug::RemoveIsEnough);
                world.send(then(if enough { Ask::Told(true) } else { Ask::Confirm }));
            }
            Ask::Confirm => world.send(then(Ask::Told(mine))),
            Ask::Told(_) => {}
        }
    }

    fn serve_take(&self, world: &mut World, call: Call) {
        let Call { who, age, .. } = call;
        let Ask::Take { found, sign, by_sign } = call.ask else { return };
        let now = world.store.now;
        let is_mute = self.scope.mute == Some(who);
        let same = now.last_sign() == sign || self.has(Bug::TakeAnyway) || is_mute;
        // The lease that it was to be bound to may be over.
        if world.store.is_full || now.seat != found || !same || age >= LEASE {
            return;
        }
        let seat = world.next();
        let sign = if is_mute { now.sign } else { Some(Sign { number: seat, seat }) };
        world.change(View { seat, who, sign });
        world.store.lease_age = age;
        world.takings.push(Taking { seat, who, age: 0, by_sign });
        world.send(Call { seat, ask: Ask::Told(true), ..call });
    }
}
