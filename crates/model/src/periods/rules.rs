//! What everybody does, and what is promised.

use super::scope::{Bug, Rules};
use super::state::{Client, Datagram, FIRST, Harm, Hop, USE_MAX, World};
use arrayvec::ArrayVec;
use stateright::{Model, Property};
use std::fmt;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Half a period passes.
    Tick,
    /// The switch is told which period it is.
    TellSwitch,
    /// The node is.
    TellNode,
    /// The client has its pass renewed.
    Renew,
    /// The client asks.
    Ask,
    /// It asks, and not once more for a cookie of the present period: a broken rule.
    AskOnce,
    /// Something arrives.
    Deliver(Datagram),
    /// Another controller leads, whose clock is two periods behind: a broken rule.
    TakeOver,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("half a period passes"),
            Self::TellSwitch => f.write_str("the switch is told which period it is"),
            Self::TellNode => f.write_str("the node is told which period it is"),
            Self::Renew => f.write_str("the client has its pass renewed"),
            Self::Ask => f.write_str("the client asks"),
            Self::AskOnce => f.write_str("the client asks, and for no cookie"),
            Self::Deliver(Datagram { hop, period, .. }) => {
                write!(f, "{hop:?} of period {period} arrives")
            }
            Self::TakeOver => f.write_str("another controller leads, with a clock of its own"),
        }
    }
}

/// The promises.
const REFUSED: &str = "nobody refuses what has just been sealed";
const SHUT_OUT: &str = "a cookie is good for a period more";
const REPLAYED: &str = "what was recorded is of no use after three periods";

impl Rules {
    /// Whether a member that was told of one period has the keys of another.
    fn has_keys(&self, told: u8, period: u8) -> bool {
        let before = match self.bug {
            Some(Bug::ForgetAtOnce) => 0,
            Some(Bug::ForgetLate) => 2,
            _ => 1,
        };
        let next = u8::from(!self.has(Bug::LearnLate));
        (told.saturating_sub(before)..=told + next).contains(&period)
    }

    /// What a member seals what it writes with.
    fn seals_with(&self, told: u8) -> u8 {
        told + u8::from(self.has(Bug::SealAhead))
    }

    fn ask(&self, world: &mut World, once: bool) {
        world.asks -= 1;
        let since = world.half;
        let Client { current, .. } = world.client;
        let before = current - 1;
        let good = |period: &u8| world.client.has_cookie(*period) && world.client.has_keys(*period);
        let shown = [current, before].into_iter().find(good);
        let usable = shown.filter(|period| *period == current || !self.has(Bug::CookieFirst));
        let asks_for_cookie = usable != Some(current) && (usable.is_none() || !once);
        if let Some(period) = usable {
            world.record(period);
            let hop = Hop::Request { has_cookie: true, is_alone: !asks_for_cookie };
            world.send(Datagram { hop, period, since });
        } else if shown.is_some() {
            world.harm = Some(Harm::ShutOut);
        }
        if asks_for_cookie && world.client.has_keys(current) {
            let hop = Hop::Request { has_cookie: false, is_alone: true };
            world.send(Datagram { hop, period: current, since });
        }
    }

    fn deliver(&self, world: &mut World, datagram: Datagram) {
        world.sent.retain(|it| *it != datagram);
        let Datagram { hop, period, since } = datagram;
        let told = match hop {
            Hop::Request { .. } | Hop::Answer => Some(world.switch),
            Hop::Forwarded { .. } => Some(world.node),
            Hop::Reply | Hop::Cookie => None,
        };
        let has_keys = match told {
            Some(told) => self.has_keys(told, period),
            None => world.client.has_keys(period),
        };
        if !has_keys {
            let is_alone = match hop {
                Hop::Request { is_alone, .. } | Hop::Forwarded { is_alone, .. } => is_alone,
                Hop::Answer | Hop::Reply | Hop::Cookie => true,
            };
            world.harm = is_alone.then_some(Harm::Refused);
            return;
        }
        match hop {
            Hop::Request { has_cookie: false, .. } => {
                world.send(Datagram { hop: Hop::Cookie, period, since });
            }
            Hop::Request { has_cookie: true, is_alone } => {
                let afresh = self.has(Bug::ForwardAfresh);
                let sealed = if afresh { self.seals_with(world.switch) } else { period };
                let hop = Hop::Forwarded { end: period, is_alone };
                world.send(Datagram { hop, period: sealed, since });
            }
            // The end tag is of the period that the envelope names.
            Hop::Forwarded { end, .. } if end != period => world.harm = Some(Harm::Refused),
            Hop::Forwarded { .. } => {
                let period = self.seals_with(world.node);
                world.send(Datagram { hop: Hop::Answer, period, since: world.half });
            }
            Hop::Answer => world.send(Datagram { hop: Hop::Reply, period, since }),
            Hop::Reply => world.client.hear(period),
            Hop::Cookie => {
                world.client.cookies |= 1 << period;
                world.client.hear(period);
            }
        }
    }

    /// Whether the first half of a period may end: everybody was told of it.
    fn all_know(&self, world: &World) -> bool {
        let told = world.told();
        let is_renewed = world.client.pass == told || self.has(Bug::RenewLate);
        world.switch == told && world.node == told && is_renewed
    }

    /// Whether something that was recorded is let through though it is old.
    fn is_replayed(&self, world: &World) -> bool {
        let mut old = world.recorded.iter().filter(|(_, half)| world.half - half >= USE_MAX);
        old.any(|(period, _)| self.has_keys(world.switch, *period))
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            half: 1,
            behind: 0,
            switch: FIRST,
            node: FIRST,
            client: Client { pass: FIRST, current: FIRST, cookies: 0 },
            sent: Vec::new(),
            recorded: ArrayVec::new(),
            asks: self.scope.asks,
            harm: None,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.harm.is_some() {
            return;
        }
        let told = world.told();
        if world.half < self.scope.halves && (!world.is_first_half() || self.all_know(world)) {
            actions.push(Action::Tick);
        }
        if world.switch != told {
            actions.push(Action::TellSwitch);
        }
        if world.node != told {
            actions.push(Action::TellNode);
        }
        if world.client.pass != told {
            actions.push(Action::Renew);
        }
        if world.asks > 0 {
            actions.push(Action::Ask);
            actions.extend(self.has(Bug::AskSeldom).then_some(Action::AskOnce));
        }
        actions.extend(world.sent.iter().map(|it| Action::Deliver(*it)));
        if self.has(Bug::OwnClock) && world.behind == 0 {
            actions.push(Action::TakeOver);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Tick => world.tick(),
            Action::TellSwitch => world.switch = world.told(),
            Action::TellNode => world.node = world.told(),
            Action::Renew => {
                world.client.pass = world.told();
                world.client.hear(world.told());
            }
            Action::Ask => self.ask(&mut world, false),
            Action::AskOnce => self.ask(&mut world, true),
            Action::Deliver(datagram) => self.deliver(&mut world, datagram),
            Action::TakeOver => world.behind = 2,
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(REFUSED, |_, world: &World| world.harm != Some(Harm::Refused)),
            Property::always(SHUT_OUT, |_, world: &World| world.harm != Some(Harm::ShutOut)),
            Property::always(REPLAYED, |rules, world: &World| !rules.is_replayed(world)),
            // What the bounds allow must happen, else the checker looks at too little.
            Property::sometimes(
                "a client hears of a period first from a member",
                |_, world: &World| world.client.current > world.client.pass,
            ),
            Property::sometimes(
                "a node gets what is of a period that is to come",
                |_, world: &World| {
                    let is_ahead = |it: &Datagram| {
                        matches!(it.hop, Hop::Forwarded { .. }) && it.period > world.node
                    };
                    world.sent.iter().any(is_ahead)
                },
            ),
            Property::sometimes("it gets what is of the period before", |_, world: &World| {
                let is_behind = |it: &Datagram| {
                    matches!(it.hop, Hop::Forwarded { .. }) && it.period < world.node
                };
                world.sent.iter().any(is_behind)
            }),
        ]
    }
}
