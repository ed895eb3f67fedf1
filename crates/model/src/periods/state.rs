//! Who has which keys, and what is under way.

use arrayvec::ArrayVec;

/// The number of the period in which the model begins: two are before it.
pub(super) const FIRST: u8 = 2;
/// Halves of a period for which what was recorded may be of use.
pub(super) const USE_MAX: u8 = 6;
/// Periods that the model knows of at most.
const PERIODS: usize = 8;

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hop {
    /// A request, from the client to the switch.
    Request {
        /// Whether it shows a cookie.
        has_cookie: bool,
        /// Whether there is no other packet with it, by which its sender gets a newer cookie.
        is_alone: bool,
    },
    /// The request, from the switch to the node, with the end tag that the client has made.
    Forwarded {
        /// The period of whose key that is.
        end: u8,
        /// As in the request.
        is_alone: bool,
    },
    /// The answer, from the node to the switch.
    Answer,
    /// The answer, from the switch to the client.
    Reply,
    /// A cookie, from the switch to the client.
    Cookie,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Datagram {
    /// Its way.
    pub hop: Hop,
    /// The period that its envelope names.
    pub period: u8,
    /// The half in which it was sealed first.
    pub since: u8,
}

/// The client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// The period in which its pass was renewed. It has the keys of that, of the one before and of
    /// the next.
    pub pass: u8,
    /// What it takes for the present period.
    pub current: u8,
    /// The periods of which it has cookies, as bits.
    pub cookies: u8,
}

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Harm {
    /// A packet was refused.
    Refused,
    /// A client that has a cookie was not let in.
    ShutOut,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// Halves of a period that have passed.
    pub half: u8,
    /// Periods by which the leader is behind: a broken rule.
    pub behind: u8,
    /// The period that the switch was told of last.
    pub switch: u8,
    /// The same of the node.
    pub node: u8,
    /// The client.
    pub client: Client,
    /// What is under way, in order. It may come at any time or never.
    pub sent: Vec<Datagram>,
    /// The half in which a request was first sealed with a cookie, by period.
    pub recorded: ArrayVec<(u8, u8), PERIODS>,
    /// How often the client may still ask.
    pub asks: u8,
    /// What has happened that must not be.
    pub harm: Option<Harm>,
}

impl Client {
    /// Whether it has the keys of a period.
    #[must_use]
    pub fn has_keys(&self, period: u8) -> bool {
        self.pass.abs_diff(period) <= 1
    }

    /// Whether it has a cookie of a period.
    #[must_use]
    pub fn has_cookie(&self, period: u8) -> bool {
        self.cookies & 1 << period != 0
    }

    /// Somebody whose word counts uses this period.
    pub(super) fn hear(&mut self, period: u8) {
        self.current = self.current.max(period);
    }
}

impl World {
    /// The present period.
    #[must_use]
    pub fn period(&self) -> u8 {
        FIRST + self.half / 2
    }

    /// What the leader says that it is.
    #[must_use]
    pub fn told(&self) -> u8 {
        self.period() - self.behind
    }

    /// Whether the present period has just begun.
    #[must_use]
    pub fn is_first_half(&self) -> bool {
        self.half.is_multiple_of(2)
    }

    pub(super) fn send(&mut self, datagram: Datagram) {
        if let Err(at) = self.sent.binary_search(&datagram) {
            self.sent.insert(at, datagram);
        }
    }

    pub(super) fn record(&mut self, period: u8) {
        if self.recorded.iter().all(|(of, _)| *of != period) {
            self.recorded.push((period, self.half));
        }
    }

    /// Half a period passes. What is still under way after the half that follows its own is lost.
    pub(super) fn tick(&mut self) {
        let half = self.half;
        self.sent.retain(|it| it.since == half);
        self.half += 1;
    }
}
