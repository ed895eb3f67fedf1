//! What clients see, and whether there is an order of the requests that explains it.
//!
//! With three writes there are only 16 ways to have taken some of them in some order. The history
//! is kept as the set of those ways that agree with everything seen so far, each standing for
//! "these have taken effect by now, in this order". A read strikes out the ways that leave another
//! value, an answer those that do not contain the write or give it another result. When none is
//! left, the history is not linearizable. So reads cost nothing and need no limit: every node that
//! would serve one is read after every step.

use crate::state::{Bits, Effect, REQUESTS_MAX, Value};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sets the value.
    Put,
    /// Adds to the value and tells the new one: stands for INCR, and shows every order.
    Append,
    /// Sets the value if there is none: stands for CAS.
    Create,
    /// Removes the value.
    Delete,
}

impl Kind {
    /// What it does to a value, and what its client is told: 0 if it does nothing.
    pub(crate) fn apply(self, request: u8, value: Value) -> (Effect, u8) {
        let own = request + 1;
        match self {
            Self::Put => (Effect::Put(Value(own)), 1),
            Self::Append => {
                let sum = Value(value.0.wrapping_mul(4).wrapping_add(own));
                (Effect::Put(sum), sum.0)
            }
            Self::Create if value == Value::default() => (Effect::Put(Value(own)), 1),
            Self::Delete if value != Value::default() => (Effect::Delete, 1),
            Self::Create | Self::Delete => (Effect::None, 0),
        }
    }

    /// Whether what it does depends on what it finds.
    pub(crate) fn is_ordered(self) -> bool {
        self != Self::Put
    }
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What for.
    pub kind: Kind,
    /// Whose. The requests of one client are numbered in their order.
    pub client: u8,
}

/// A set of ways in which some of the requests may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Possible(u16);

impl Possible {
    /// Nothing has been taken yet.
    pub const START: Self = Self(1);

    /// Whether nothing explains what was seen.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// All ways in which some of the requests may have taken effect.
#[derive(Clone, Debug)]
pub(crate) struct Ways(Vec<Way>);

#[derive(Clone, Debug, Default)]
struct Way {
    taken: Bits,
    value: Value,
    results: [u8; REQUESTS_MAX],
    /// The way that comes of taking one more.
    next: [Option<u8>; REQUESTS_MAX],
}

impl Ways {
    /// All ways for these requests.
    pub(crate) fn new(requests: &[Request]) -> Self {
        let mut ways = vec![Way::default()];
        let mut at = 0;
        while let Some(way) = ways.get(at).cloned() {
            for (number, request) in (0..).zip(requests).filter(|(n, _)| !way.taken.has(*n)) {
                let (effect, result) = request.kind.apply(number, way.value);
                let mut longer = Way { next: Default::default(), ..way.clone() };
                longer.taken.insert(number);
                match effect {
                    Effect::None => {}
                    Effect::Put(value) => longer.value = value,
                    Effect::Delete => longer.value = Value::default(),
                }
                set(&mut longer.results, number, result);
                let position = u8::try_from(ways.len()).expect("three requests have 16 ways");
                if let Some(way) = ways.get_mut(at) {
                    set(&mut way.next, number, Some(position));
                }
                ways.push(longer);
            }
            at += 1;
        }
        assert!(ways.len() <= 16, "three requests have 16 ways");
        Self(ways)
    }

    /// A request may take effect from now on; `open` are all of which that is so.
    pub(crate) fn allow(&self, possible: Possible, open: Bits) -> Possible {
        let mut possible = possible.0;
        // Longer ways come later, so one pass is enough.
        for (position, way) in self.0.iter().enumerate() {
            if possible & 1 << position != 0 {
                let nexts = (0..).zip(&way.next).filter(|(request, _)| open.has(*request));
                possible |= nexts.filter_map(|(_, next)| *next).fold(0, |set, n| set | 1 << n);
            }
        }
        Possible(possible)
    }

    /// A read has returned this.
    pub(crate) fn read(&self, possible: Possible, value: Value) -> Possible {
        self.keep(possible, |way| way.value == value)
    }

    /// A write was answered.
    pub(crate) fn answered(&self, possible: Possible, request: u8, result: u8) -> Possible {
        self.keep(possible, |way| {
            way.taken.has(request) && way.results.get(usize::from(request)) == Some(&result)
        })
    }

    /// A write was given up as refused: it must not take effect.
    pub(crate) fn refused(&self, possible: Possible, request: u8) -> Possible {
        self.keep(possible, |way| !way.taken.has(request))
    }

    fn keep(&self, possible: Possible, holds: impl Fn(&Way) -> bool) -> Possible {
        let held = self.0.iter().enumerate().filter(|(_, way)| holds(way));
        Possible(possible.0 & held.fold(0, |set, (position, _)| set | 1 << position))
    }
}

fn set<T>(array: &mut [T; REQUESTS_MAX], request: u8, item: T) {
    if let Some(place) = array.get_mut(usize::from(request)) {
        *place = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(kinds: &[Kind]) -> Ways {
        let requests: Vec<Request> =
            kinds.iter().map(|kind| Request { kind: *kind, client: 0 }).collect();
        Ways::new(&requests)
    }

    #[test]
    fn three_requests_have_sixteen_ways() {
        assert_eq!(ways(&[Kind::Put, Kind::Append, Kind::Delete]).0.len(), 16);
    }

    #[test]
    fn a_read_before_the_answer_may_see_either_and_after_it_only_the_new() {
        let ways = ways(&[Kind::Put]);
        let open = ways.allow(Possible::START, Bits::of(0));
        assert!(!ways.read(open, Value(0)).is_empty());
        assert!(!ways.read(open, Value(1)).is_empty());
        let done = ways.answered(open, 0, 1);
        assert!(ways.read(done, Value(0)).is_empty());
    }

    #[test]
    fn a_value_that_was_read_does_not_vanish() {
        let ways = ways(&[Kind::Put]);
        let seen = ways.read(ways.allow(Possible::START, Bits::of(0)), Value(1));
        assert!(ways.read(seen, Value(0)).is_empty());
    }

    #[test]
    fn a_write_that_is_applied_twice_has_no_order() {
        let ways = ways(&[Kind::Append, Kind::Append]);
        let both = ways.allow(Possible::START, Bits(3));
        let first = ways.answered(both, 0, 1);
        let second = ways.answered(first, 1, 6);
        assert!(!ways.read(second, Value(6)).is_empty());
        assert!(ways.read(second, Value(25)).is_empty(), "w0+w1+w0");
    }

    #[test]
    fn a_refused_write_must_not_be_seen() {
        let ways = ways(&[Kind::Put]);
        let refused = ways.refused(Possible::START, 0);
        assert!(ways.read(refused, Value(1)).is_empty());
        let open = ways.allow(Possible::START, Bits::of(0));
        assert!(ways.refused(ways.read(open, Value(1)), 0).is_empty());
    }

    #[test]
    fn a_condition_that_fails_changes_nothing() {
        assert_eq!(Kind::Create.apply(1, Value(1)), (Effect::None, 0));
        assert_eq!(Kind::Delete.apply(1, Value(0)), (Effect::None, 0));
    }
}
