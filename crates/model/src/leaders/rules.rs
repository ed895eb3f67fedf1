//! What controllers do, and what is promised.

use super::scope::{Bug, Rules};
use super::state::{Ask, Call, Controller, LEAD_FOR, LEASE, Sign, Store, Taking, View, World};
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::fmt;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A leader sends a renewal, by which its lease is renewed, or which only seems so to it.
    Renew(u8, bool),
    /// The store does what it is asked.
    Serve(Call),
    /// A controller is answered.
    Hear(Call),
    /// A candidate looks, and is told what is there, or what it was told before.
    Look(u8, bool),
    /// A leader hears a report, makes sure that it leads, and gives orders.
    Order(u8),
    /// It makes sure before it hears anything: a broken rule.
    MakeSure(u8),
    /// The leader's lease ends.
    Lapse,
    /// That of an older leader ends, whose sign is there still.
    OldSignLapses,
    /// The store has no room, or has some again.
    Room(bool),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("a tick"),
            Self::Renew(who, true) => write!(f, "{who} renews its lease"),
            Self::Renew(who, false) => write!(f, "{who} renews its lease, which is lost"),
            Self::Serve(call) => write!(f, "the store is asked by {}: {:?}", call.who, call.ask),
            Self::Hear(call) => write!(f, "{} is answered: {:?}", call.who, call.ask),
            Self::Look(who, false) => write!(f, "{who} looks"),
            Self::Look(who, true) => write!(f, "{who} looks, and is told what it was told before"),
            Self::Order(who) => write!(f, "{who} hears a report, and gives orders"),
            Self::MakeSure(who) => write!(f, "{who} makes sure that it leads"),
            Self::Lapse => f.write_str("the lease ends"),
            Self::OldSignLapses => f.write_str("the lease of an older leader ends"),
            Self::Room(false) => f.write_str("the store has no room"),
            Self::Room(true) => f.write_str("the store has room"),
        }
    }
}

/// The promises.
const BESIDE: &str = "nobody leads beside one that has seen its signs stand still";
const LATE: &str = "no lease rests on what was heard too late";

impl Rules {
    fn is_mute(&self, who: u8) -> bool {
        self.scope.mute == Some(who)
    }

    /// Whether a leader counts on itself.
    fn counts_on_itself(&self, it: &Controller) -> bool {
        it.seat.is_some() && (it.age < LEAD_FOR || self.has(Bug::LeadOn))
    }

    fn renew(&self, world: &mut World, who: u8, is_kept: bool) {
        world.left.0 -= 1;
        let Some(seat) = world.controller(who).seat else { return };
        if is_kept && world.store.now.seat == seat {
            world.store.lease_age = 0;
        }
        let call = |ask| Call { who, seat, age: 0, ask };
        world.send(call(if self.is_mute(who) { Ask::Confirm } else { Ask::Give }));
        if is_kept && self.has(Bug::LeaseIsEnough) {
            world.send(call(Ask::Told(true)));
        }
    }

    fn hear(&self, world: &mut World, call: Call) {
        let it = world.controller_mut(call.who);
        let age = if self.has(Bug::CountFromAnswer) { 0 } else { call.age };
        match (it.seat, call.ask) {
            (Some(seat), Ask::Told(true)) if seat == call.seat => it.age = it.age.min(age),
            // It goes back to those who stand by.
            (Some(seat), Ask::Told(false)) if seat == call.seat => *it = Controller::standing_by(),
            (None, Ask::Told(true)) => {
                *it = Controller { seat: Some(call.seat), age, ..Controller::standing_by() };
            }
            _ => {}
        }
    }

    /// Whether a candidate has seen this sign, and no other, for long enough.
    fn stands_still(&self, it: &mut Controller, sign: Sign) -> bool {
        let patience = if self.has(Bug::ForgetRates) { LEAD_FOR / 2 } else { LEAD_FOR };
        match it.vigil {
            Some((last, age)) if last == sign => age >= patience,
            _ => {
                it.vigil = Some((sign, 0));
                self.has(Bug::TakeAtOnce)
            }
        }
    }

    /// A candidate looks, and takes the key if nobody leads any more for all that it knows.
    fn look(&self, world: &mut World, who: u8) {
        let view = world.store.now;
        let is_kept = world.store.lease_age < LEAD_FOR;
        let sign = if self.has(Bug::BelieveAnySign) { view.sign } else { view.sign_of_leader() };
        let sign = sign.filter(|_| !self.is_mute(who));
        // Nobody's key, or its own, is free.
        let by_sign = match sign {
            _ if view.seat == 0 || view.who == who => Some(false),
            Some(sign) => self.stands_still(world.controller_mut(who), sign).then_some(true),
            None => (!is_kept).then_some(false),
        };
        if let Some(by_sign) = by_sign {
            let ask = Ask::Take { found: view.seat, sign: view.last_sign(), by_sign };
            Self::take(world, who, ask);
        }
    }

    /// It is told by a member of the store that is behind what it was told before.
    fn look_again(&self, world: &mut World, who: u8) {
        let Some((sign, _)) = world.controller(who).vigil else { return };
        if self.stands_still(world.controller_mut(who), sign) {
            let ask = Ask::Take { found: sign.seat, sign: sign.number, by_sign: true };
            Self::take(world, who, ask);
        }
    }

    fn take(world: &mut World, who: u8, ask: Ask) {
        world.left.1 -= 1;
        world.send(Call { who, seat: 0, age: 0, ask });
    }

    /// A leader hears a report, makes sure that it leads, and gives orders, when it likes.
    fn order(&self, world: &mut World, who: u8) {
        let Some(seat) = world.controller(who).seat else { return };
        // From then on a new leader counts leases that this one gives.
        let counted = |taking: &Taking| {
            let at_once = self.has(Bug::CountAtOnce) && !taking.by_sign;
            if at_once { 0 } else { LEAD_FOR }
        };
        let late = world.taken_from(who, seat).any(|taking| taking.age >= counted(taking));
        let beside = world.taken_from(who, seat).any(|taking| taking.by_sign);
        world.lease_is_late |= late;
        // One that has made sure before is not beside the other: its order is only late.
        world.leads_beside |= beside && self.counts_on_itself(world.controller(who));
    }

    fn of_controllers(&self, world: &World, actions: &mut Vec<Action>) {
        let (renewals, takes, _) = world.left;
        for (who, it) in (0..).zip(&world.controllers) {
            if it.seat.is_none() {
                if takes > 0 {
                    actions.extend([Action::Look(who, false), Action::Look(who, true)]);
                }
                continue;
            }
            if renewals > 0 {
                actions.extend([Action::Renew(who, true), Action::Renew(who, false)]);
            }
            if self.counts_on_itself(it) || it.is_sure {
                actions.push(Action::Order(who));
            }
            if self.counts_on_itself(it) && self.has(Bug::HearLater) {
                actions.push(Action::MakeSure(who));
            }
        }
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let view = View { seat: 1, who: 0, sign: Some(Sign { number: 1, seat: 1 }) };
        let mut controllers: ArrayVec<Controller, 3> =
            (0..self.scope.controllers).map(|_| Controller::standing_by()).collect();
        if let Some(first) = controllers.first_mut() {
            (first.seat, first.age) = (Some(1), 0);
        }
        let store = Store { changes: 1, now: view, lease_age: 0, is_full: false };
        vec![World {
            store,
            controllers,
            calls: Vec::new(),
            takings: ArrayVec::new(),
            left: (self.scope.renewals, self.scope.takes, self.scope.fills),
            leads_beside: false,
            lease_is_late: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.leads_beside || world.lease_is_late {
            return;
        }
        self.of_controllers(world, actions);
        actions.extend(world.calls.iter().map(|call| match call.ask {
            Ask::Told(_) => Action::Hear(*call),
            Ask::Take { .. } | Ask::Give | Ask::Remove | Ask::Confirm => Action::Serve(*call),
        }));
        actions.push(Action::Tick);
        let View { seat, sign, .. } = world.store.now;
        if seat > 0 && world.store.lease_age >= LEASE {
            actions.push(Action::Lapse);
        }
        if sign.is_some_and(|sign| sign.seat != seat) {
            actions.push(Action::OldSignLapses);
        }
        if world.store.is_full {
            actions.push(Action::Room(true));
        } else if world.left.2 > 0 {
            actions.push(Action::Room(false));
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Tick => world.tick(),
            Action::Renew(who, is_kept) => self.renew(&mut world, who, is_kept),
            Action::Serve(call) => {
                world.calls.retain(|it| *it != call);
                self.serve(&mut world, call);
            }
            Action::Hear(call) => {
                world.calls.retain(|it| *it != call);
                self.hear(&mut world, call);
            }
            Action::Look(who, false) => self.look(&mut world, who),
            Action::Look(who, true) => self.look_again(&mut world, who),
            Action::Order(who) => self.order(&mut world, who),
            Action::MakeSure(who) => world.controller_mut(who).is_sure = true,
            Action::Lapse => world.lapse(),
            Action::OldSignLapses => world.old_sign_lapses(),
            Action::Room(has_room) => {
                world.store.is_full = !has_room;
                world.left.2 -= u8::from(!has_room);
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(BESIDE, |_, world: &World| !world.leads_beside),
            Property::always(LATE, |_, world: &World| !world.lease_is_late),
            // What the bounds allow must happen, else the checker looks at too little.
            Property::sometimes("another leads, and the one before is in doubt", |rules, world| {
                leads_after(rules, world, true)
            }),
        ];
        if self.scope.fills > 0 {
            all.push(Property::sometimes("two count on themselves at once", |rules, world| {
                leads_after(rules, world, false)
            }));
        }
        all
    }
}

/// Whether another leads after the first one, which still takes itself for the leader: in doubt, or
/// counting on itself.
fn leads_after(rules: &Rules, world: &World, in_doubt: bool) -> bool {
    let mut others = world.controllers.iter().skip(1);
    let first = world.controller(0);
    let leads = others.any(|it| rules.counts_on_itself(it));
    leads && first.seat == Some(1) && in_doubt != rules.counts_on_itself(first)
}
