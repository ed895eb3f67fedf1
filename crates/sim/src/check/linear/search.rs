//! The search: goes through the events in the order of time and lets operations take effect as late
//! as it can, when one of them returns.

use super::plan::{HistoryEvent, Plan};
use super::pool::PathStep;
use super::state::{DeadEnd, KeyState, Need, fingerprint};
use super::ways::Ways;
use crate::check::OpKind;
use machine::Instant;
use std::collections::BTreeSet;
use wire::Version;

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Found,
    Impossible,
    OutOfSteps,
}

/// Which unknown writes take effect at most once. The others do so as often as anybody likes: a
/// history that has no order even then has none, and there are fewer points to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bookkeeping {
    Strict,
    /// Those that somebody may have seen.
    OfNamed,
    None,
}

/// One search through one history.
pub(super) struct Search<'p, 'a> {
    plan: &'p Plan<'a>,
    bookkeeping: Bookkeeping,
    state: KeyState,
    event: usize,
    /// Answered operations that have taken effect.
    done: Vec<bool>,
    /// Answered operations called and not returned.
    pending: Vec<usize>,
    /// The first of the plan's order that has not taken effect.
    next: usize,
    /// Of each class of unknown writes: how many were called, and how many took effect.
    called: Vec<u32>,
    used: Vec<u32>,
    used_print: u128,
    log: Vec<Undo>,
    choices: Vec<Choice>,
    /// Points from which there is no way on: the event, and a fingerprint of all else. With 128
    /// bits, two points of one search that look alike are the same.
    failed: BTreeSet<(usize, u128)>,
    /// A choice had more ways than were tried.
    is_cut: bool,
    pub(super) steps: u64,
    steps_max: u64,
    pub(super) farthest: DeadEnd,
}

/// What is taken back when the search turns around.
enum Undo {
    State(KeyState),
    Done(usize),
    Next(usize),
    Used(u32),
    Called,
    Maybe(u32),
    Returned { op: usize, place: usize },
}

/// A point with several ways on.
struct Choice {
    event: usize,
    op: usize,
    print: u128,
    log: usize,
    /// How many rounds of looking for moves there have been.
    round: u32,
    moves: Moves,
}

/// What may be done next, the best guess last.
#[derive(Default)]
struct Moves {
    moves: Vec<Move>,
    /// Another round may find more.
    goes_on: bool,
}

/// Unknown writes, and the answered operation that they make possible.
struct Move {
    way: Vec<PathStep>,
    op: usize,
}

impl<'p, 'a> Search<'p, 'a> {
    /// One that gives up after so many steps.
    pub(super) fn new(plan: &'p Plan<'a>, bookkeeping: Bookkeeping, steps_max: u64) -> Self {
        let classes = plan.unknown.classes();
        Self {
            plan,
            bookkeeping,
            state: KeyState::default(),
            event: 0,
            done: vec![false; plan.ops.len()],
            pending: Vec::new(),
            next: 0,
            called: vec![0; classes],
            used: vec![0; classes],
            used_print: 0,
            log: Vec::new(),
            choices: Vec::new(),
            failed: BTreeSet::new(),
            is_cut: false,
            steps: 0,
            steps_max,
            farthest: DeadEnd::default(),
        }
    }

    pub(super) fn run(&mut self) -> End {
        loop {
            self.steps += 1;
            if self.steps > self.steps_max {
                return End::OutOfSteps;
            }
            let Some(event) = self.plan.events.get(self.event).copied() else { return End::Found };
            match event {
                HistoryEvent::Call(op) => self.call(op),
                HistoryEvent::Maybe(class) => self.call_unknown(class),
                HistoryEvent::Return(op) if self.is_done(op) => self.leave(op),
                HistoryEvent::Return(op) => {
                    if !self.let_happen(op) && !self.turn_around() {
                        return if self.is_cut { End::OutOfSteps } else { End::Impossible };
                    }
                }
            }
        }
    }

    fn is_done(&self, op: usize) -> bool {
        self.done.get(op).copied().unwrap_or_default()
    }

    fn call(&mut self, op: usize) {
        self.pending.push(op);
        self.log.push(Undo::Called);
        self.event += 1;
        self.look(op);
        self.pass_done();
    }

    fn call_unknown(&mut self, class: u32) {
        if let Some(called) = self.called.get_mut(class as usize) {
            *called += 1;
        }
        self.log.push(Undo::Maybe(class));
        self.event += 1;
    }

    fn leave(&mut self, op: usize) {
        let place = self.pending.iter().position(|it| *it == op);
        let place = place.expect("what returns has been called");
        self.pending.swap_remove(place);
        self.log.push(Undo::Returned { op, place });
        self.event += 1;
    }

    /// What fits and changes nothing may as well take effect now: wherever a valid order has it,
    /// that order stays valid with it moved here.
    fn look(&mut self, op: usize) {
        if self.take(self.state, op) == Some(self.state)
            && let Some(done) = self.done.get_mut(op)
        {
            *done = true;
            self.log.push(Undo::Done(op));
        }
    }

    fn pass_done(&mut self) {
        let before = self.next;
        while self.plan.order.get(self.next).is_some_and(|op| self.is_done(*op)) {
            self.next += 1;
        }
        if self.next != before {
            self.log.push(Undo::Next(before));
        }
    }

    fn set_state(&mut self, state: KeyState) {
        self.log.push(Undo::State(self.state));
        self.state = state;
    }

    /// Makes one of the moves that may lead to `op`, which is about to return; false if there is
    /// none.
    fn let_happen(&mut self, op: usize) -> bool {
        let mut moves = self.moves(op, 0);
        if !moves.goes_on && moves.moves.len() <= 1 {
            let Some(only) = moves.moves.pop() else {
                self.note_dead_end(op);
                return false;
            };
            self.make(&only);
            return true;
        }
        let print = self.print();
        if self.failed.contains(&(self.event, print)) {
            return false;
        }
        self.go_on(Choice { event: self.event, op, print, log: self.log.len(), round: 0, moves })
    }

    /// Takes the next move of a choice; false if there is none left.
    fn go_on(&mut self, mut choice: Choice) -> bool {
        loop {
            if let Some(next) = choice.moves.moves.pop() {
                self.choices.push(choice);
                self.make(&next);
                return true;
            }
            if !choice.moves.goes_on {
                self.note_dead_end(choice.op);
                self.failed.insert((choice.event, choice.print));
                return false;
            }
            choice.round += 1;
            choice.moves = self.moves(choice.op, choice.round);
        }
    }

    /// Back to the last choice that has another way; false if there is none.
    fn turn_around(&mut self) -> bool {
        while let Some(choice) = self.choices.pop() {
            self.take_back(choice.log);
            self.event = choice.event;
            if self.go_on(choice) {
                return true;
            }
        }
        false
    }

    fn take_back(&mut self, log: usize) {
        while self.log.len() > log {
            match self.log.pop().expect("longer than a length") {
                Undo::State(state) => self.state = state,
                Undo::Next(next) => self.next = next,
                Undo::Done(op) => {
                    if let Some(done) = self.done.get_mut(op) {
                        *done = false;
                    }
                }
                Undo::Used(class) => self.use_class(class, |used| used - 1),
                Undo::Called => {
                    self.pending.pop();
                }
                Undo::Maybe(class) => {
                    if let Some(called) = self.called.get_mut(class as usize) {
                        *called -= 1;
                    }
                }
                Undo::Returned { op, place } => {
                    self.pending.push(op);
                    let last = self.pending.len() - 1;
                    self.pending.swap(place, last);
                }
            }
        }
    }

    fn use_class(&mut self, class: u32, change: impl FnOnce(u32) -> u32) {
        let Some(used) = self.used.get_mut(class as usize) else { return };
        let print = |used: u32| fingerprint([u64::from(class) << 32 | u64::from(used), 1]);
        self.used_print = self.used_print.wrapping_sub(print(*used));
        *used = change(*used);
        self.used_print = self.used_print.wrapping_add(print(*used));
    }

    fn make(&mut self, chosen: &Move) {
        let state = self.state_after(chosen).expect("only moves that fit are listed");
        for step in &chosen.way {
            if let PathStep::Take(class) = step
                && self.is_counted(*class)
            {
                self.use_class(*class, |used| used + 1);
                self.log.push(Undo::Used(*class));
            }
        }
        if let Some(done) = self.done.get_mut(chosen.op) {
            *done = true;
            self.log.push(Undo::Done(chosen.op));
        }
        self.set_state(state);
        for place in 0..self.pending.len() {
            let Some(op) = self.pending.get(place).copied() else { continue };
            if !self.is_done(op) {
                self.look(op);
            }
        }
        self.pass_done();
    }

    /// The state that a move leads to, if all of it fits.
    fn state_after(&self, chosen: &Move) -> Option<KeyState> {
        let mut state = self.state;
        let mut taken: Vec<u32> = Vec::new();
        for step in &chosen.way {
            state = match step {
                PathStep::Expire => state.expired(self.now(), self.plan.skew_ms)?,
                PathStep::Take(class) => {
                    let earlier = taken.iter().filter(|it| *it == class).count();
                    let counted = self.is_counted(*class);
                    let earlier = if counted { u32::try_from(earlier).ok()? } else { 0 };
                    let used = self.used.get(*class as usize).copied().unwrap_or_default();
                    let member = self.plan.unknown.member(*class, used + earlier)?;
                    taken.push(*class);
                    let version = self.plan.unknown.version(*class).unwrap_or(Version::NONE);
                    state.take(member, version, false).filter(|it| it.version != state.version)?
                }
            };
        }
        self.take(state, chosen.op)
    }

    fn take(&self, state: KeyState, op: usize) -> Option<KeyState> {
        let answered = self.plan.op(op);
        state.take(answered, answered.version, self.plan.is_written_by_other(op))
    }

    fn now(&self) -> Instant {
        match self.plan.events.get(self.event) {
            Some(HistoryEvent::Return(op)) => self.plan.op(*op).returned.unwrap_or_default(),
            Some(HistoryEvent::Call(_) | HistoryEvent::Maybe(_)) | None => Instant(u64::MAX),
        }
    }

    /// Operations that may be the next to take effect so that `op` can return, the best guess last.
    fn candidates(&self, op: usize) -> Vec<usize> {
        let in_order = self.plan.order.get(self.next).copied();
        let in_order = in_order.filter(|it| self.plan.is_called(*it, self.event));
        if !self.plan.op(op).version.is_none() && in_order.is_none() {
            return Vec::new();
        }
        let is_free = |it: &usize| !self.is_done(*it) && self.plan.op(*it).version.is_none();
        let mut free: Vec<usize> = self.pending.iter().copied().filter(is_free).collect();
        free.sort_by_key(|it| std::cmp::Reverse((self.plan.op(*it).returned, *it)));
        free.extend(in_order);
        free
    }

    /// Whether other states than the present one may matter even if it fits: a sum keeps the expiry
    /// of what was added to, and the version that was seen may be that of another write.
    fn may_differ(&self, op: usize) -> bool {
        let unknown = &self.plan.unknown;
        let settles_version = !self.state.exact && !self.plan.op(op).version.is_none();
        let expires = self.state.held.is_some_and(|held| held.expiry_ms != 0);
        match (self.plan.op(op).kind, self.state.present()) {
            (OpKind::Incr { .. }, _) => expires || unknown.may_expire(),
            (OpKind::Read(_), present) => settles_version && unknown.may_delegate(present),
            (OpKind::Cas { written: Some(false), .. }, Some(_)) => settles_version,
            _ => false,
        }
    }

    /// The moves towards `op`: in round 0 those without unknown writes, then those with ever more.
    fn moves(&mut self, op: usize, round: u32) -> Moves {
        let mut moves = Moves::default();
        let expires = self.state.expired(self.now(), self.plan.skew_ms).is_some();
        for candidate in self.candidates(op) {
            self.steps += 1;
            let direct = Move { way: Vec::new(), op: candidate };
            let fits = self.state_after(&direct).is_some();
            let may_differ = !fits || self.may_differ(candidate);
            if round == 0 {
                moves.goes_on |= may_differ && self.may_find(candidate);
                let expired = Move { way: vec![PathStep::Expire], op: candidate };
                let expired = self.fitting(expired).filter(|_| expires && may_differ);
                moves.moves.extend(expired);
                moves.moves.extend(self.fitting(direct));
            } else if may_differ {
                if expires {
                    self.add_moves(&mut moves, candidate, &[PathStep::Expire], round);
                }
                self.add_moves(&mut moves, candidate, &[], round);
            }
        }
        moves
    }

    /// Whether unknown writes may bring about what an operation has found.
    fn may_find(&self, op: usize) -> bool {
        let unknown = &self.plan.unknown;
        match self.plan.need(op) {
            Need::Any | Need::Impossible => false,
            Need::Exactly(wanted) => unknown.may_delegate(wanted),
            Need::Amount(0) => unknown.may_delegate(Some(0)) || unknown.may_delegate(None),
            Need::Amount(amount) => unknown.may_delegate(Some(amount)),
            Need::Something | Need::Other(_) | Need::OtherValue(_) => unknown.classes() > 0,
        }
    }

    /// Adds the moves that go a way after these first steps.
    fn add_moves(&mut self, moves: &mut Moves, op: usize, first: &[PathStep], round: u32) {
        let plan = self.plan;
        let next = plan.order.get(self.next).map(|next| plan.op(*next).version);
        let available = |class: u32| {
            // One whose version is known has its place in the order of versions.
            if plan.unknown.version(class).is_some_and(|version| next != Some(version)) {
                return 0;
            }
            let of = |counts: &[u32]| counts.get(class as usize).copied().unwrap_or_default();
            match (self.is_counted(class), of(&self.called)) {
                (true, called) => called - of(&self.used),
                (false, 0) => 0,
                (false, _) => u32::MAX,
            }
        };
        let held = self.state.held.filter(|_| first.is_empty());
        let when = (self.now(), plan.skew_ms);
        let steps_left = self.steps_max.saturating_sub(self.steps);
        let ways = Ways::new(&plan.unknown, held, next, available, when, steps_left);
        let need = plan.need(op);
        let found = ways.find(need, round);
        self.steps += found.visited;
        self.is_cut |= found.is_cut || found.is_short;
        // If they are not used up, the first will always do to have something to delete.
        let enough = need == Need::Something && !found.ways.is_empty();
        moves.goes_on |= found.goes_on && !(enough && self.bookkeeping != Bookkeeping::Strict);
        let mut known = BTreeSet::new();
        let mut fitting = Vec::new();
        for way in found.ways {
            let it = Move { way: first.iter().copied().chain(way).collect(), op };
            let same = self.outcome_print(&it);
            if self.bookkeeping == Bookkeeping::Strict || known.insert(same) {
                fitting.extend(self.fitting(it));
            }
        }
        moves.moves.extend(fitting.into_iter().rev());
    }

    /// Alike for moves after which there is no telling which of them was made.
    fn outcome_print(&self, it: &Move) -> Option<u128> {
        let counted = it.way.iter().filter_map(|step| match step {
            PathStep::Take(class) => Some(*class).filter(|class| self.is_counted(*class)),
            PathStep::Expire => None,
        });
        let counted = counted.map(|class| fingerprint([u64::from(class), 3]));
        Some(counted.fold(self.state_after(it)?.print(), u128::wrapping_add))
    }

    fn is_counted(&self, class: u32) -> bool {
        match self.bookkeeping {
            Bookkeeping::Strict => true,
            Bookkeeping::OfNamed => self.plan.unknown.is_named(class),
            Bookkeeping::None => false,
        }
    }

    /// The move, if all of it fits and what comes next in the order of versions still can.
    fn fitting(&self, it: Move) -> Option<Move> {
        let KeyState { version, exact, .. } = self.state_after(&it)?;
        let rest = self.plan.order.get(self.next..).unwrap_or_default();
        let Some(next) = rest.iter().copied().find(|op| *op != it.op && !self.is_done(*op)) else {
            return Some(it);
        };
        let at = self.plan.op(next).version;
        let is_ahead = version < at;
        let is_there = match self.plan.op(next).may_write() {
            true => false,
            // Nothing can come between a write and those that saw it.
            false if self.plan.is_seen_write(next) => version == at && exact,
            false => version == at,
        };
        (is_ahead || is_there).then_some(it)
    }

    /// All that matters for what comes, but for the event.
    fn print(&self) -> u128 {
        let done = self.pending.iter().filter(|op| self.is_done(**op));
        let done = done.map(|op| fingerprint([*op as u64, 2]));
        done.fold(self.state.print().wrapping_add(self.used_print), u128::wrapping_add)
    }

    fn note_dead_end(&mut self, op: usize) {
        if self.event < self.farthest.event {
            return;
        }
        let in_order = self.plan.order.get(self.next).copied();
        let missing = in_order.filter(|it| !self.plan.is_called(*it, self.event));
        let missing = missing.filter(|_| !self.plan.op(op).version.is_none());
        self.farthest = DeadEnd { event: self.event, op, state: self.state, missing };
    }
}
