//! What may happen next, what time does, and what clients see.

use super::bug::Bug;
use super::scope::{Change, Rules, Write};
use super::state::{Ask, Message, Of, Phase, Tail, World};

impl Rules {
    pub(super) fn touches(&self, version: u8, key: u8) -> bool {
        self.scope.write(version).is_some_and(|it| it.touches(key))
    }

    /// Whether keys are wanted back for a write instead of being updated.
    pub(super) fn recalls(&self, version: u8) -> bool {
        match self.scope.write(version) {
            Some(Write::Batch) => !self.has(Bug::BatchUpdates),
            Some(Write::Delete(_) | Write::Expire(_)) => true,
            Some(Write::Register(_)) => !self.has(Bug::RegistersTold),
            _ => false,
        }
    }

    /// Whether a version is one that ends, and has ended by this time.
    pub(super) fn is_over(&self, version: u8, time: u8) -> bool {
        let ends = matches!(self.scope.write(version), Some(Write::PutEnding(_)));
        ends && time >= self.scope.ends
    }

    /// Whether the next write may be ordered.
    pub(super) fn may_write(&self, world: &World) -> bool {
        match self.scope.write(world.ordered + 1) {
            Some(Write::Expire(_)) => world.time >= self.scope.ends,
            Some(Write::Unregister(key)) => world.floor.of(key).is_none(),
            next => next.is_some(),
        }
    }

    /// Whether a tail may begin to serve, for all that is known of the other.
    pub(super) fn may_open(&self, world: &World, number: u8) -> bool {
        let Some(other) = world.tails.get(usize::from(1 - number)) else { return false };
        let no_wait = match self.scope.change {
            Change::Restart => self.has(Bug::RestartServes),
            _ => self.has(Bug::OutlivesRight),
        };
        let is_over = match other.phase {
            Phase::Waiting | Phase::Settled => true,
            Phase::Fenced | Phase::Dead => world.right == 0 || no_wait,
            Phase::Open | Phase::Closed => false,
        };
        is_over && matches!(world.tail(number).phase, Phase::Waiting | Phase::Settled)
    }

    /// A tail has all that was ordered, commits it, and serves. It has lent nothing, and goes on
    /// to count if it has lent before.
    pub(super) fn open(&self, world: &mut World, number: u8) {
        let ordered = world.ordered;
        let tail = world.tail_mut(number);
        if self.has(Bug::CountsAnew) || tail.phase == Phase::Waiting {
            *tail = Tail::new(Phase::Open, ordered, self.scope.lease);
        }
        (tail.phase, tail.committed, tail.ready) = (Phase::Open, ordered, ordered);
        for key in self.keys() {
            world.pass(key, self.scope.version(key, ordered));
        }
    }

    /// Whether a tail may prove what the directory has of a key: its order names it, and the tail
    /// has it registered and shows it.
    pub(super) fn may_prove(&self, world: &World, number: u8, key: u8) -> bool {
        let tail = world.tail(number);
        let is_named = self.scope.is_registered(key, world.ordered);
        let vouches = self.scope.is_registered(key, tail.committed);
        let shows = self.shown_by_tail(tail, key, world.time).is_some();
        world.floor.of(key).is_none() && is_named && vouches && shows
    }

    /// Time goes on; some clocks are slow: bit 0 the first tail's, then the caches'.
    pub(super) fn tick(&self, world: &mut World, slow: u8) {
        let passed = |clock: u8| self.scope.bound() - (slow >> clock & 1);
        let takes_over = self.scope.change.takes_over();
        world.right = world.right.saturating_sub(self.scope.bound());
        world.time = self.scope.ends.min(world.time + self.scope.bound());
        for number in 0..world.tails.len() as u8 {
            let by = if number == 0 { passed(0) } else { self.scope.bound() };
            let waits = self.waits(world.tail(number));
            let tail = world.tail_mut(number);
            tail.until.each(|it| *it = it.saturating_sub(by));
            if takes_over && number == 0 {
                tail.right = tail.right.saturating_sub(by);
            }
            tail.waited = if waits { self.scope.longest().min(tail.waited + by) } else { 0 };
        }
        for (clock, cache) in (1..).zip(&mut world.caches) {
            let by = passed(clock);
            let older = |ask: Option<Ask>| {
                let ask = ask.map(|it| Ask { left: it.left.saturating_sub(by), ..it });
                ask.filter(|it| self.is_awaited(*it))
            };
            cache.lease.each(|it| *it = it.saturating_sub(by));
            cache.time = self.time_after(cache.time, by);
            if !self.scope.floors {
                let lease = cache.lease;
                cache.held.each(|held| *held = held.filter(|it| lease.of(it.tail) > 0));
            }
            cache.fetch.each(|it| *it = older(*it));
            cache.renew = older(cache.renew);
        }
    }

    /// Which clocks may be slow.
    pub(super) fn slow(&self, world: &World) -> impl Iterator<Item = u8> {
        let caches = (1..=world.caches.len()).fold(0, |all, clock| all | 1 << clock);
        let all =
            if self.scope.drift { caches | u8::from(self.scope.change.takes_over()) } else { 0 };
        (0..=all).filter(move |slow| slow & !all == 0)
    }

    /// Whatever may be read is read.
    pub(super) fn look(&self, world: &mut World) {
        let mut shown = Vec::new();
        for key in self.keys() {
            let tails = world.tails.iter();
            let tails = tails.filter_map(|it| self.shown_by_tail(it, key, world.time));
            let tails: Vec<u8> = tails.collect();
            let caches = world.caches.iter().filter_map(|it| self.shown_by_cache(it, key));
            // The oldest copy that may answer; the tail sends one of each version that it commits.
            let copies = world.floor.of(key);
            shown.extend(tails.iter().copied().chain(caches).chain(copies).map(|it| (key, it)));
            tails.into_iter().for_each(|version| world.pass(key, version));
        }
        world.is_over |= shown.iter().any(|(_, version)| self.is_over(*version, world.time));
        for (key, version) in &shown {
            world.raise(*key, *version);
        }
        // Who has seen one key of a batch has seen all.
        for key in self.keys() {
            let together = |it: &u8| self.scope.write(*it) == Some(Write::Batch);
            let Some(batch) = (1..=world.seen.of(key)).rev().find(together) else { continue };
            self.keys().for_each(|other| world.raise(other, batch));
        }
        world.is_stale |= shown.iter().any(|(key, version)| *version < world.seen.of(*key));
    }

    /// Whether a message may still do anything at its receiver.
    pub(super) fn matters(&self, world: &World, message: Message) -> bool {
        match message {
            Message::Loan(Of { tail, cache, key, .. }, _, lease) => {
                let ask = world.cache(cache).fetch.of(key).filter(|it| it.tail == tail);
                ask.is_some_and(|it| self.rest(it, lease.left) > 0 || self.has(Bug::LateLoan))
            }
            Message::Grant(tail, cache, lease) => {
                let ask = world.cache(cache).renew.filter(|it| it.tail == tail);
                ask.is_some_and(|it| self.rest(it, lease.left) > 0)
            }
            Message::Update(of, _) | Message::Recall(of) => {
                let Of { tail, cache, key, number } = of;
                let held = world.cache(cache).held.of(key);
                let lent = world.tail(tail).loans.of(key);
                let waits = lent.is_some_and(|it| it.holder == cache && it.number <= number);
                let is_held = held.is_some_and(|it| it.tail == tail && it.number <= number);
                let is_lower = |it: &Message| {
                    matches!(it, Message::Loan(loan, ..)
                        if loan.number <= number && Of { number, ..*loan } == of)
                };
                waits || is_held || world.network.iter().any(is_lower)
            }
            Message::Answer(of, held) => {
                let tail = world.tail(of.tail);
                let late = self.has(Bug::LateEvict) || self.has(Bug::OldAnswer);
                tail.runs() && (late || self.answered(tail, of, held) != tail.loans.of(of.key))
            }
        }
    }

    /// Forgets what does not matter.
    pub(super) fn forget(&self, world: &mut World) {
        let stays = |message: &Message| self.matters(world, *message);
        let network = world.network.iter().copied().filter(stays).collect();
        world.network = network;
    }
}
