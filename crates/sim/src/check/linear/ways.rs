//! Ways: sequences of unknown writes that lead from what a key holds to what an operation has
//! found.

use super::pool::{Ending, Expiring, PathStep, Pool};
use super::state::{HeldValue, Need};
use crate::check::OpKind;
use machine::Instant;
use wire::Version;

/// Looks for ways. Every write of a way matters to the next step: one that does not might as well
/// not have happened.
pub(super) struct Ways<'p, 'a, A: Fn(u32) -> u32> {
    pool: &'p Pool<'a>,
    /// What the key holds.
    present: Option<i64>,
    /// Values may have an end.
    expires: bool,
    /// The version that comes next: the class that took effect at it is at hand as well.
    next: Option<Version>,
    /// How many of a class have been called and have not taken effect.
    available: A,
    now: Instant,
    skew_ms: u64,
    /// Most classes to look at.
    visits_max: u64,
    found: Found,
    /// The way so far, its end first.
    way: Vec<PathStep>,
    /// What the key holds at the end of the way, and before each write of it that depends on that.
    passed: Vec<Option<i64>>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Ways, their beginning first; whether each fits is for the caller to see.
    pub(super) ways: Vec<Vec<PathStep>>,
    /// Classes looked at.
    pub(super) visited: u64,
    /// There may be longer ways.
    pub(super) goes_on: bool,
    /// There are more ways than are tried.
    pub(super) is_cut: bool,
    /// There are ways of a kind of which only some are tried.
    pub(super) is_short: bool,
}

/// Most unknown writes on one way. Only increments whose outcomes are unknown make long ways, and
/// more of them than this between two answers is more than any fault leaves.
const LENGTH_MAX: u32 = 64;

/// Most values whose swap for nothing is tried where the key holds another one: a way with two
/// unknown writes of which nobody saw anything is hardly ever what happened.
const ENDING_MAX: usize = 32;

/// Most ways of one round; there are more only among increments of many sizes.
const WAYS_MAX: usize = 2_000;

impl<'p, 'a, A: Fn(u32) -> u32> Ways<'p, 'a, A> {
    pub(super) fn new(
        pool: &'p Pool<'a>,
        held: Option<HeldValue>,
        next: Option<Version>,
        available: A,
        (now, skew_ms): (Instant, u64),
        visits_max: u64,
    ) -> Self {
        let (found, way, passed) = (Found::default(), Vec::new(), Vec::new());
        let present = held.map(|held| held.value);
        let ends = held.is_some_and(|held| held.expiry_ms != 0);
        let expires = ends || pool.may_expire();
        Self {
            pool,
            present,
            expires,
            next,
            available,
            now,
            skew_ms,
            visits_max,
            found,
            way,
            passed,
        }
    }

    /// Finds the ways to what is needed, the shortest in round 1 and longer ones in later rounds.
    pub(super) fn find(mut self, need: Need, round: u32) -> Found {
        match need {
            Need::Any | Need::Impossible => {}
            Need::Exactly(wanted) => self.reach_value(wanted, round),
            Need::Amount(amount) => {
                self.reach_value(Some(amount), round);
                if amount == 0 {
                    self.reach_value(None, round);
                }
            }
            Need::Something | Need::OtherValue(_) | Need::Other(_) => {
                self.reach_any(round, matches!(need, Need::Other(_)));
            }
        }
        if round >= LENGTH_MAX {
            self.found.is_cut |= self.found.goes_on;
            self.found.goes_on = false;
        }
        self.found
    }

    /// Almost anything will do. First the values that nobody else cares about; then one write; then
    /// one that makes what is of no use, and a swap or an increment or both that change that.
    fn reach_any(&mut self, round: u32, may_be_nothing: bool) {
        let pool = self.pool;
        let longest = 2 + u32::from(pool.has_swappers()) + u32::from(!pool.adders.is_empty());
        self.found.goes_on = round < longest;
        match round {
            0 => {}
            1 => {
                if let Some(class) = pool.nameless {
                    self.before(class, Self::found_one);
                }
            }
            _ if may_be_nothing => self.reach_other(round - 1),
            _ => self.reach_anything(round - 1),
        }
    }

    fn found_one(&mut self) {
        if self.found.ways.len() >= WAYS_MAX {
            self.found.is_cut = true;
            return;
        }
        self.found.ways.push(self.way.iter().rev().copied().collect());
    }

    fn is_free(&self, class: u32) -> bool {
        let taken = self.way.iter().filter(|step| **step == PathStep::Take(class)).count();
        (self.available)(class) as usize > taken
    }

    /// Goes on backwards, with `class` as the step before those of the way.
    fn before(&mut self, class: u32, go_on: impl FnOnce(&mut Self)) {
        self.found.is_cut |= self.found.visited >= self.visits_max;
        if !self.found.is_cut && self.is_free(class) {
            self.found.visited += 1;
            self.way.push(PathStep::Take(class));
            go_on(self);
            self.way.pop();
        }
    }

    fn reach_value(&mut self, wanted: Option<i64>, length: u32) {
        let Some(rest) = length.checked_sub(1) else {
            let is_there = self.present == wanted;
            if is_there {
                self.found_one();
            }
            // The same value with another expiry may do where this one does not.
            self.found.goes_on |= (!is_there || self.expires) && self.pool.may_delegate(wanted);
            return;
        };
        if !self.is_round_trip(wanted) {
            self.passed.push(wanted);
            self.reach_value_by_writes(wanted, rest);
            self.passed.pop();
        }
    }

    /// Whether the way leads from what the key is to hold now back to the same: without the writes
    /// between it is as good. Values with an end may differ in that, but nothing is nothing.
    fn is_round_trip(&self, wanted: Option<i64>) -> bool {
        (wanted.is_none() || !self.expires) && self.passed.contains(&wanted)
    }

    fn reach_value_by_writes(&mut self, wanted: Option<i64>, rest: u32) {
        let Some(value) = wanted else {
            // A swap of just this value is of no use later.
            self.reach_end(rest);
            if rest == 0 {
                self.reach_nothing();
            }
            return;
        };
        let pool = self.pool;
        for class in pool.by_value.get(&value).into_iter().flatten() {
            match pool.member(*class, 0).map(|op| op.kind) {
                // What was there before does not matter.
                Some(OpKind::Put { .. }) if rest == 0 => self.before(*class, Self::found_one),
                Some(OpKind::Cas { expect, .. }) => {
                    self.before(*class, |ways| ways.reach_value(expect, rest));
                }
                _ => {}
            }
        }
        self.reach_sum(value, rest);
    }

    /// The way ends with an increment. Of two increments in a row the order does not matter: only
    /// ways on which they come in the order of their classes are tried.
    fn reach_sum(&mut self, value: i64, rest: u32) {
        let pool = self.pool;
        let last = match self.way.last() {
            Some(PathStep::Take(class)) => pool.adders.iter().position(|it| it == class),
            Some(PathStep::Expire) | None => None,
        };
        for class in pool.adders.iter().skip(last.unwrap_or(0)) {
            let delta = pool.delta(*class);
            if self.is_out_of_reach(value, delta, rest) {
                continue;
            }
            let Some(before) = value.checked_sub(delta) else { continue };
            self.before(*class, |ways| {
                ways.reach_value(Some(before), rest);
                if before == 0 {
                    ways.reach_value(None, rest);
                }
            });
        }
    }

    /// Whether this increment and `rest` more, each at most as large, cannot make up for what is
    /// missing; where only increments can have changed the key.
    fn is_out_of_reach(&mut self, value: i64, delta: i64, rest: u32) -> bool {
        let pool = self.pool;
        let smallest = pool.adders.last().map_or(0, |class| pool.delta(*class));
        let only_grows = pool.by_value.is_empty() && pool.deleters.is_empty() && !pool.has_ending();
        if !only_grows || smallest <= 0 {
            return false;
        }
        let missing = i128::from(value) - i128::from(self.present.unwrap_or(0));
        let (most, least) = (i128::from(delta), i128::from(smallest));
        let more_may_do = missing > most * i128::from(rest + 1);
        self.found.goes_on |= more_may_do;
        more_may_do || missing < most + least * i128::from(rest)
    }

    /// The way is a delete, or a value whose time came.
    fn reach_nothing(&mut self) {
        let pool = self.pool;
        if self.present.is_some() {
            for class in &pool.deleters {
                self.before(*class, Self::found_one);
            }
        }
        self.reach_expiry();
    }

    /// The way ends with a swap for nothing, or for a value whose time came.
    fn reach_end(&mut self, rest: u32) {
        let pool = self.pool;
        if rest == 0 {
            self.found.goes_on |= !pool.reachable_ends.is_empty();
            self.reach_end_from(self.present, rest, pool.ending_of(self.present));
            return;
        }
        for expect in pool.reachable_ends.iter().take(ENDING_MAX) {
            self.reach_end_from(*expect, rest, pool.ending_of(*expect));
        }
        self.found.is_short |= pool.reachable_ends.len() > ENDING_MAX;
    }

    fn reach_end_from(&mut self, expect: Option<i64>, rest: u32, ending: &[Ending]) {
        for Ending { class, expiry_ms } in ending {
            let later = *expiry_ms != 0;
            if later && self.now.unix_ms() < expiry_ms.saturating_sub(self.skew_ms) {
                continue;
            }
            self.way.extend(later.then_some(PathStep::Expire));
            self.before(*class, |ways| ways.reach_value(expect, rest));
            self.way.truncate(self.way.len() - usize::from(later));
        }
    }

    fn reach_expiry(&mut self) {
        let pool = self.pool;
        let mut has_nameless = false;
        for Expiring { expiry_ms, class, nameless } in &pool.expiring {
            if self.now.unix_ms() < expiry_ms.saturating_sub(self.skew_ms) {
                return;
            }
            // Of values that nobody looks for, the first to go is of the least use later.
            if (*nameless && has_nameless) || !self.is_free(*class) {
                continue;
            }
            has_nameless |= nameless;
            self.way.push(PathStep::Expire);
            self.before(*class, Self::found_one);
            self.way.pop();
        }
    }

    /// Any writes at all, or nothing where there was a value.
    fn reach_other(&mut self, length: u32) {
        self.reach_anything(length);
        if length == 1 {
            self.reach_expiry();
        }
        if let Some(rest) = length.checked_sub(1) {
            self.reach_end(rest);
        }
    }

    /// Any writes at all; after the first only such that depend on it.
    fn reach_anything(&mut self, length: u32) {
        let Some(rest) = length.checked_sub(1) else {
            self.found_one();
            return;
        };
        let pool = self.pool;
        if let Some(class) = self.next.and_then(|next| pool.class_at(next)) {
            match pool.member(class, 0).map(|op| op.kind) {
                Some(OpKind::Cas { expect, .. }) => {
                    self.before(class, |ways| ways.reach_value(expect, rest));
                }
                _ if rest == 0 => self.before(class, Self::found_one),
                _ => {}
            }
        }
        for class in &pool.adders {
            self.before(*class, |ways| ways.reach_other(rest));
        }
        if rest > 0 {
            for (expect, class) in pool.swappers() {
                self.before(class, |ways| ways.reach_value(expect, rest));
            }
            return;
        }
        for class in pool.swappers_of(self.present) {
            self.before(class, Self::found_one);
        }
        for class in pool.putters.iter().chain(&pool.deleters) {
            self.before(*class, Self::found_one);
        }
    }
}
