//! Is there one order of these operations that a single key could have done?
//!
//! Wing and Gong's search with Lowe's memo (remember which pairs of done-set and state failed), one
//! key at a time, since keys are independent. Operations whose outcome is unknown may take effect
//! at any time after their call, or never.

use machine::Instant;
use std::collections::BTreeSet;
use std::fmt;

/// One operation on one key, as a client saw it.
#[derive(Clone, Debug)]
pub struct Op {
    /// Which client asked, for the picture.
    pub client: usize,
    /// When it asked.
    pub called: Instant,
    /// When it was answered; `None` if never, and then `kind` says no outcome.
    pub returned: Option<Instant>,
    /// What it asked and saw.
    pub kind: OpKind,
    /// Version of the value read or of the write done; 0 if unknown or none. A key's writes take
    /// effect in the order of their versions, which spares the search most of its choices.
    pub version: u64,
}

/// What was asked and what was seen. `None` in an outcome means that it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Saw this value, or that there is none.
    Read(Option<i64>),
    /// Wrote this value, to expire at this Unix millisecond (0: never).
    Put {
        /// The value.
        value: i64,
        /// Its expiry.
        expiry_ms: u64,
    },
    /// Deleted.
    Del {
        /// Whether there was a value.
        existed: Option<bool>,
    },
    /// Wrote `value` if the present one was `expect`.
    Cas {
        /// What had to be there.
        expect: Option<i64>,
        /// What was to be written.
        value: i64,
        /// Whether it was.
        written: Option<bool>,
    },
    /// Added `delta`, counting a missing value as 0.
    Incr {
        /// What was added.
        delta: i64,
        /// The sum that was seen.
        sum: Option<i64>,
    },
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none.
    Violation,
    /// The search gave up after its bound of steps.
    Exhausted,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// The value and when it expires.
    value: Option<(i64, u64)>,
    /// No write below this version may follow.
    version: u64,
}

/// Looks for an order. `skew_ms` is how far the clocks of nodes may be ahead, so that values go
/// earlier by as much. Work is bounded by [`STEPS_MAX`].
#[must_use]
pub fn check(history: &[Op], skew_ms: u64) -> Verdict {
    let mut ops: Vec<&Op> = history.iter().collect();
    ops.sort_by_key(|op| op.called);
    Search { ops, skew_ms, failed: BTreeSet::new(), steps: 0 }.run()
}

struct Search<'a> {
    ops: Vec<&'a Op>,
    skew_ms: u64,
    failed: BTreeSet<(Vec<u64>, State)>,
    steps: usize,
}

/// A point of the search: what is done, the state it led to, and which candidates are left.
struct Frame {
    done: Vec<u64>,
    state: State,
    candidates: Vec<usize>,
}

impl Search<'_> {
    fn run(&mut self) -> Verdict {
        let nothing = vec![0; self.ops.len().div_ceil(64)];
        let mut stack = vec![self.frame(nothing, State::default(), None)];
        while let Some(frame) = stack.last_mut() {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Verdict::Exhausted;
            }
            if self.is_complete(&frame.done) {
                return Verdict::Linearizable;
            }
            let Some(next) = frame.candidates.pop() else {
                stack.pop();
                continue;
            };
            let Some(op) = self.ops.get(next) else { continue };
            let (op, state) = (*op, frame.state);
            let reached = self.outcomes(op, state);
            let mut done = frame.done.clone();
            mark(&mut done, next);
            let before = op.returned.is_none().then_some(frame.state);
            for state in reached {
                if self.failed.insert((done.clone(), state)) {
                    stack.push(self.frame(done.clone(), state, before));
                }
            }
        }
        Verdict::Violation
    }

    /// The point after a step. `before` is the state that a write of unknown outcome has just
    /// changed: unless the next operation sees the difference, it might as well not have happened.
    fn frame(&self, done: Vec<u64>, state: State, before: Option<State>) -> Frame {
        let open = || self.ops.iter().enumerate().filter(|(i, _)| !is_marked(&done, *i));
        let first_return = open().filter_map(|(_, op)| op.returned).min();
        // Only what was called before the earliest open return can come next.
        let may_be_next = |op: &Op| first_return.is_none_or(|at| op.called <= at);
        let sees = |op: &Op| {
            before.is_none_or(|before| self.outcomes(op, before) != self.outcomes(op, state))
        };
        let next = || open().filter(|(_, op)| may_be_next(op) && sees(op));
        // What was answered, fits and changes nothing may as well come now: wherever a valid order
        // has it, that order stays valid with it moved here.
        let idle = |op: &Op| op.returned.is_some() && self.leaves_as_is(op, state);
        if let Some((index, _)) = next().find(|(_, op)| idle(op)) {
            return Frame { done, state, candidates: vec![index] };
        }
        // The last of the vector is tried first: the one to return first, which is most often
        // right; what never returned comes last.
        let mut candidates: Vec<(usize, &&Op)> = next().collect();
        candidates
            .sort_by_key(|(_, op)| std::cmp::Reverse(op.returned.map_or(u64::MAX, |at| at.0)));
        let candidates = candidates.into_iter().map(|(index, _)| index).collect();
        Frame { done, state, candidates }
    }

    /// The states that `op` may lead to from `state`, if what it saw fits.
    fn outcomes(&self, op: &Op, state: State) -> Vec<State> {
        let mut reached = Vec::new();
        // A value with an end may be there or not, as the operation overlaps that end.
        let expiry = state.value.map_or(0, |(_, expiry)| expiry);
        if expiry == 0 || op.called.unix_ms() < expiry {
            reached.extend(apply(op, state));
        }
        if expiry != 0 && !self.is_before_the_end(op, expiry) {
            reached.extend(apply(op, State { value: None, ..state }));
        }
        reached
    }

    /// Whether an operation is certain to see the value as it is, and to leave it so.
    fn leaves_as_is(&self, op: &Op, state: State) -> bool {
        let expiry = state.value.map_or(0, |(_, expiry)| expiry);
        let certain = expiry == 0 || self.is_before_the_end(op, expiry);
        certain && apply(op, state).is_some_and(|next| next.value == state.value)
    }

    fn is_before_the_end(&self, op: &Op, expiry_ms: u64) -> bool {
        let end = expiry_ms.saturating_sub(self.skew_ms);
        op.returned.is_some_and(|at| at.unix_ms() < end)
    }

    fn is_complete(&self, done: &[u64]) -> bool {
        let mut open = self.ops.iter().enumerate().filter(|(i, _)| !is_marked(done, *i));
        open.all(|(_, op)| op.returned.is_none())
    }
}

fn apply(op: &Op, state: State) -> Option<State> {
    let present = state.value.map(|(value, _)| value);
    let expiry = state.value.map_or(0, |(_, expiry)| expiry);
    let (value, writes) = match op.kind {
        OpKind::Read(seen) => (seen == present).then_some((state.value, false)),
        OpKind::Put { value, expiry_ms } => Some((Some((value, expiry_ms)), true)),
        OpKind::Del { existed } => {
            let fits = existed.is_none_or(|existed| existed == present.is_some());
            fits.then_some((None, present.is_some()))
        }
        OpKind::Cas { expect, value, written } => {
            let holds = expect == present;
            let next = if holds { Some((value, 0)) } else { state.value };
            written.is_none_or(|written| written == holds).then_some((next, holds))
        }
        OpKind::Incr { delta, sum } => {
            let next = present.unwrap_or(0) + delta;
            sum.is_none_or(|sum| sum == next).then_some((Some((next, expiry)), true))
        }
    }?;
    let known = op.version != 0;
    let in_order = !known || op.version > state.version || !writes && op.version == state.version;
    let version = if known { op.version } else { state.version };
    in_order.then_some(State { value, version })
}

fn mark(done: &mut [u64], index: usize) {
    if let Some(word) = done.get_mut(index / 64) {
        *word |= 1 << (index % 64);
    }
}

fn is_marked(done: &[u64], index: usize) -> bool {
    done.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |at: Instant| at.0 / 1_000;
        let returned = self.returned.map_or_else(|| "never".into(), |at| us(at).to_string());
        write!(f, "client {} [{} .. {returned}] us: ", self.client, us(self.called))?;
        if self.version != 0 {
            write!(f, "v{} ", self.version)?;
        }
        match self.kind {
            OpKind::Read(seen) => write!(f, "read {seen:?}"),
            OpKind::Put { value, expiry_ms: 0 } => write!(f, "put {value}"),
            OpKind::Put { value, expiry_ms } => write!(f, "put {value} until {expiry_ms} ms"),
            OpKind::Del { existed } => write!(f, "del, existed: {existed:?}"),
            OpKind::Cas { expect, value, written } => {
                write!(f, "cas {expect:?} -> {value}, written: {written:?}")
            }
            OpKind::Incr { delta, sum } => write!(f, "incr {delta}, sum: {sum:?}"),
        }
    }
}

/// Steps of one key's search: a few seconds of work. Most histories take a few hundred.
pub const STEPS_MAX: usize = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use OpKind::{Cas, Del, Incr, Read};

    fn op(called: u64, returned: impl Into<Option<u64>>, kind: OpKind) -> Op {
        let ms = Instant::from_unix_ms;
        Op { client: 0, called: ms(called), returned: returned.into().map(ms), kind, version: 0 }
    }

    fn put(value: i64) -> OpKind {
        OpKind::Put { value, expiry_ms: 0 }
    }

    fn holds(history: &[Op]) -> bool {
        check(history, 0) == Verdict::Linearizable
    }

    #[test]
    fn textbook_histories() {
        let overlap = [op(0, 9, put(1)), op(1, 2, Read(None)), op(3, 4, Read(Some(1)))];
        let flicker = [op(0, 9, put(1)), op(1, 2, Read(Some(1))), op(3, 4, Read(None))];
        let lost = [op(0, 1, put(1)), op(2, 3, Read(None))];
        let late = [op(0, None, put(1)), op(5, 6, Read(None)), op(7, 8, Read(Some(1)))];
        assert!(holds(&overlap));
        assert!(!holds(&flicker));
        assert!(!holds(&lost));
        assert!(holds(&late));
    }

    #[test]
    fn a_write_applied_twice_is_seen() {
        let twice = [op(0, 1, put(1)), op(2, 3, put(2)), op(4, 5, Read(Some(1)))];
        assert!(!holds(&twice));
        let incr = |sum| Incr { delta: 5, sum };
        assert!(holds(&[
            op(0, 1, incr(Some(5))),
            op(2, None, incr(None)),
            op(3, 4, Read(Some(10)))
        ]));
        assert!(!holds(&[op(0, 1, incr(Some(5))), op(2, 3, Read(Some(10)))]));
    }

    #[test]
    fn writes_take_effect_in_the_order_of_their_versions() {
        let at = |version, op| Op { version, ..op };
        let first = at(1, op(0, 9, put(1)));
        let second = at(2, op(0, 9, put(2)));
        assert!(holds(&[first.clone(), second.clone(), at(2, op(10, 11, Read(Some(2))))]));
        assert!(!holds(&[first, second, op(10, 11, Read(Some(1)))]));
    }

    #[test]
    fn updates_see_what_they_say() {
        let cas = |expect, value, written| Cas { expect, value, written: Some(written) };
        assert!(holds(&[op(0, 1, cas(None, 1, true)), op(2, 3, cas(None, 2, false))]));
        assert!(!holds(&[op(0, 1, cas(None, 1, true)), op(2, 3, cas(None, 2, true))]));
        let del = |existed| Del { existed: Some(existed) };
        assert!(holds(&[op(0, 1, put(1)), op(2, 3, del(true)), op(4, 5, del(false))]));
        assert!(!holds(&[op(0, 1, put(1)), op(2, 3, del(true)), op(4, 5, del(true))]));
    }

    #[test]
    fn an_expired_value_does_not_come_back() {
        let until = |expiry_ms| OpKind::Put { value: 1, expiry_ms };
        assert!(holds(&[op(0, 1, until(50)), op(48, 49, Read(Some(1))), op(50, 51, Read(None))]));
        assert!(!holds(&[op(0, 1, until(50)), op(40, 44, Read(None))]));
        assert!(!holds(&[op(0, 1, until(50)), op(51, 52, Read(Some(1)))]));
        // Both overlap the end: the first to say that it is gone decides.
        let seen = op(47, 60, Read(Some(1)));
        assert!(holds(&[op(0, 1, until(50)), seen.clone(), op(55, 56, Read(None))]));
        let gone_then_seen =
            [op(0, 1, until(50)), op(45, 52, Read(None)), op(53, 54, Read(Some(1)))];
        assert!(!holds(&gone_then_seen));
        assert!(holds(&[op(0, 1, until(50)), op(51, 52, Incr { delta: 2, sum: Some(2) })]));
        assert!(!holds(&[op(0, 1, until(50)), op(46, 47, Incr { delta: 2, sum: Some(2) })]));
    }
}
