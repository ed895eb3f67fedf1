//! Which steps there are from a state, where each leads, and what is promised.

use super::bug::Bug;
use super::scope::{Change, Rules, Scope, Write};
use super::state::{Cache, Message, Phase, Table, Tail, World};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::fmt;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next write is ordered, and is on disk at every member.
    Write,
    /// A cache asks for a key, of a tail.
    Fetch(u8, u8, u8),
    /// A cache asks a tail for more time.
    Renew(u8, u8),
    /// A cache drops a key.
    Evict(u8, u8),
    /// A tail answers the last fetch of a cache for a key.
    Lend(u8, u8, u8),
    /// It answers an earlier one, to no use.
    LendAgain(u8, u8, u8),
    /// A tail answers the last renewal of a cache.
    Grant(u8, u8),
    /// A tail tells the holder of a key of a version.
    Tell(u8, u8, u8),
    /// A tail wants a key back.
    Recall(u8, u8),
    /// A tail commits the next write.
    Commit(u8),
    /// A tail gives up what it has lent to a cache, whose lease is over.
    Void(u8, u8),
    /// A message arrives at a cache.
    Receive(u8, Message),
    /// An answer arrives at its tail.
    Answered(Message),
    /// The controller gives the first tail a right to lend.
    Entitle,
    /// It goes on without it.
    Fence,
    /// The first tail ends.
    Crash,
    /// The chain of a tail is closed.
    Close(u8),
    /// It goes on with the same tail.
    Reopen(u8),
    /// It has settled, for another tail.
    Settle(u8),
    /// A tail begins to serve.
    Open(u8),
    /// A tail proves what the directory has of a key: copies answer its reads.
    Prove(u8, u8),
    /// The switch forgets a key, for its order names it no more.
    Unname(u8),
    /// Time goes on; some clocks are slow: bit 0 the first tail's, then the caches'.
    Tick(u8),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Model for Rules {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let scope = &self.scope;
        let takes_over = scope.change.takes_over();
        let right = if takes_over { 0 } else { scope.lease };
        let mut tails: arrayvec::ArrayVec<Tail, 2> = arrayvec::ArrayVec::new();
        tails.push(Tail::new(Phase::Open, 0, right));
        if scope.change != Change::None {
            tails.push(Tail::new(Phase::Waiting, 0, 0));
        }
        let Scope { fetches, renews, ends, .. } = *scope;
        let cache = |_| Cache { fetches, renews, time: ends, ..Cache::default() };
        vec![World {
            tails,
            caches: (0..scope.caches).map(cache).collect(),
            network: BTreeSet::new(),
            ordered: 0,
            right: 0,
            seen: Table::default(),
            floor: Table::default(),
            time: 0,
            is_stale: false,
            is_over: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.is_stale || world.is_over {
            return;
        }
        if self.may_write(world) {
            actions.push(Action::Write);
        }
        for number in 0..world.tails.len() as u8 {
            self.steps_of_tail(world, number, actions);
        }
        for number in 0..self.scope.caches {
            self.steps_of_cache(world, number, actions);
        }
        for message in world.network.iter().copied() {
            let at = (0..self.scope.caches).filter(|at| self.reaches(message, *at));
            actions.extend(at.map(|at| Action::Receive(at, message)));
            if matches!(message, Message::Answer(..)) {
                actions.push(Action::Answered(message));
            }
        }
        self.changes(world, actions);
        actions.extend(self.slow(world).map(Action::Tick));
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        self.step(&mut world, action);
        self.forget(&mut world);
        self.look(&mut world);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always("no read is stale", |_, world: &World| !world.is_stale),
            Property::always("nothing is shown after its end", |_, world: &World| !world.is_over),
            Property::always(
                "no write waits longer than a lease",
                |rules: &Self, world: &World| {
                    let looks = rules.bug.is_none_or(Bug::delays);
                    !looks || world.tails.iter().all(|it| !rules.is_overdue(it))
                },
            ),
            Property::sometimes("all is committed", |rules: &Self, world: &World| {
                let newest = world.tails.iter().map(|it| it.committed).max();
                newest.map(usize::from) == Some(rules.scope.writes.len())
            }),
            Property::sometimes("a write does without a cache's answer", |_, world: &World| {
                let voided = |it: &Tail| it.floor.0.iter().any(|floor| *floor > 0);
                world.tails.iter().any(|it| voided(it) && it.committed > 0)
            }),
        ];
        // What the bounds allow must happen, else the checker looks at too little.
        if self.scope.writes.first() != Some(&Write::Batch) {
            all.push(Property::sometimes("a cache shows what it was told first", told_first));
        }
        if self.scope.ends > 0 {
            all.push(Property::sometimes(
                "a cache shows a value that ends",
                |rules: &Self, world: &World| {
                    let shown = |it: &Cache| rules.shown_by_cache(it, 0) == Some(1);
                    world.caches.iter().any(shown)
                },
            ));
        }
        if self.scope.change != Change::None {
            all.push(Property::sometimes("the next tail lends", |rules: &Self, world: &World| {
                let by_next = |it: &&Cache| it.held.of(0).is_some_and(|held| held.tail == 1);
                let mut caches = world.caches.iter().filter(by_next);
                caches.any(|it| rules.shown_by_cache(it, 0).is_some())
            }));
        }
        all
    }
}

/// Whether a cache shows a version that its tail has not committed.
fn told_first(rules: &Rules, world: &World) -> bool {
    let first = |cache: &Cache| {
        let tail = cache.held.of(0).map(|it| world.tail(it.tail).committed);
        rules.shown_by_cache(cache, 0) > tail
    };
    world.caches.iter().any(|it| it.held.of(0).is_some() && first(it))
}

impl Rules {
    fn steps_of_tail(&self, world: &World, number: u8, actions: &mut Vec<Action>) {
        let tail = world.tail(number);
        for cache in 0..self.scope.caches {
            for key in self.keys() {
                let asked = world.cache(cache).asked.of(key).has(number);
                if !asked || !self.may_lend(tail, cache, key) {
                    continue;
                }
                let fetch = world.cache(cache).fetch.of(key);
                if fetch.is_some_and(|it| it.tail == number) {
                    actions.push(Action::Lend(number, cache, key));
                }
                actions.push(Action::LendAgain(number, cache, key));
            }
            let waits = world.cache(cache).renew.is_some_and(|it| it.tail == number);
            if waits && self.may_grant(tail, cache) {
                actions.push(Action::Grant(number, cache));
            }
            if Self::may_void(tail, cache) {
                actions.push(Action::Void(number, cache));
            }
        }
        let proven = self.keys().filter(|key| self.may_prove(world, number, *key));
        actions.extend(proven.map(|key| Action::Prove(number, key)));
        for key in self.keys() {
            let told = tail.under_way().filter(|it| self.may_tell(tail, key, *it));
            actions.extend(told.map(|version| Action::Tell(number, key, version)));
            if self.may_recall(tail, key) {
                actions.push(Action::Recall(number, key));
            }
        }
        if self.may_commit(tail) {
            actions.push(Action::Commit(number));
        }
    }

    fn steps_of_cache(&self, world: &World, number: u8, actions: &mut Vec<Action>) {
        let cache = world.cache(number);
        let tails = (0..).zip(&world.tails).filter(|(_, it)| it.phase != Phase::Waiting);
        for (tail, _) in tails {
            for key in self.keys() {
                let is_held = cache.held.of(key).is_some_and(|it| it.tail == tail);
                if cache.fetches > 0 && !is_held {
                    actions.push(Action::Fetch(number, key, tail));
                }
            }
            if cache.renews > 0 {
                actions.push(Action::Renew(number, tail));
            }
        }
        let held = self.keys().filter(|key| cache.held.of(*key).is_some());
        actions.extend(held.map(|key| Action::Evict(number, key)));
    }

    fn changes(&self, world: &World, actions: &mut Vec<Action>) {
        let first = world.tail(0).phase == Phase::Open;
        match self.scope.change {
            Change::Fence if first => actions.extend([Action::Entitle, Action::Fence]),
            Change::Restart if first => actions.extend([Action::Entitle, Action::Crash]),
            _ => {}
        }
        let known = self.keys().filter(|key| world.floor.of(*key).is_some());
        actions.extend(known.map(Action::Unname));
        for (number, tail) in (0..).zip(&world.tails) {
            if self.scope.change == Change::Turn {
                if tail.phase == Phase::Open {
                    actions.push(Action::Close(number));
                }
                if tail.phase == Phase::Closed && tail.committed == tail.ready {
                    actions.push(Action::Reopen(number));
                }
                if self.may_settle(tail) {
                    actions.push(Action::Settle(number));
                }
            }
            if self.may_open(world, number) {
                actions.push(Action::Open(number));
            }
        }
    }

    fn step(&self, world: &mut World, action: Action) {
        match action {
            Action::Write => {
                world.ordered += 1;
                let open = world.tails.iter_mut().find(|it| it.phase == Phase::Open);
                if let Some(tail) = open {
                    tail.ready += 1;
                }
            }
            Action::Fetch(cache, key, tail) => self.fetch(world, cache, key, tail),
            Action::Renew(cache, tail) => self.renew(world, cache, tail),
            Action::Evict(cache, key) => Self::evict(world, cache, key),
            Action::Lend(tail, cache, key) => self.lend(world, (tail, cache, key), true),
            Action::LendAgain(tail, cache, key) => self.lend(world, (tail, cache, key), false),
            Action::Grant(tail, cache) => self.grant(world, tail, cache),
            Action::Tell(tail, key, version) => self.tell(world, tail, key, version),
            Action::Recall(tail, key) => Self::recall(world, tail, key),
            Action::Commit(tail) => self.commit(world, tail),
            Action::Void(tail, cache) => self.void(world.tail_mut(tail), cache),
            Action::Receive(at, message) => self.receive(world, at, message),
            Action::Answered(answer) => {
                let Message::Answer(of, held) = answer else { return };
                let loan = self.answered(world.tail(of.tail), of, held);
                world.tail_mut(of.tail).loans.set(of.key, loan);
            }
            Action::Entitle => {
                world.tail_mut(0).right = self.scope.right;
                world.right = self.scope.right * self.scope.bound();
            }
            Action::Close(tail) => world.tail_mut(tail).phase = Phase::Closed,
            Action::Reopen(tail) => world.tail_mut(tail).phase = Phase::Open,
            Action::Settle(tail) => world.tail_mut(tail).phase = Phase::Settled,
            Action::Fence => world.tail_mut(0).phase = Phase::Fenced,
            Action::Crash => *world.tail_mut(0) = Tail::new(Phase::Dead, 0, 0),
            Action::Open(tail) => self.open(world, tail),
            Action::Prove(tail, key) => {
                let version = self.shown_by_tail(world.tail(tail), key, world.time);
                world.floor.set(key, version);
            }
            Action::Unname(key) => world.floor.set(key, None),
            Action::Tick(slow) => self.tick(world, slow),
        }
    }

    /// Whether the next write waits for a cache that may still answer, for longer than a lease.
    fn is_overdue(&self, tail: &Tail) -> bool {
        let next = tail.committed + 1;
        let may_answer = |key: u8| {
            let loan = tail.loans.of(key).filter(|_| self.touches(next, key));
            loan.is_some_and(|it| self.blocks(Some(it), next) && tail.until.of(it.holder) > 0)
        };
        let is_late = tail.runs() && tail.waited >= self.scope.longest();
        is_late && self.keys().any(may_answer)
    }
}
