//! What a tail does.

use super::bug::Bug;
use super::scope::{Rules, Write};
use super::state::{KEYS, Lease, Loan, Message, Of, Phase, Tail, World};

impl Rules {
    /// Whether a loan stands in the way of a version's commit.
    pub(super) fn blocks(&self, loan: Option<Loan>, version: u8) -> bool {
        let recalls = self.recalls(version);
        loan.is_some_and(|it| recalls || it.has < version)
    }

    /// Whether a cache has not answered for something that is to be committed.
    pub(super) fn owes(&self, tail: &Tail, cache: u8) -> bool {
        let of = |key: u8| tail.loans.of(key).filter(|it| it.holder == cache);
        self.keys()
            .any(|key| tail.under_way().any(|it| self.touches(it, key) && self.blocks(of(key), it)))
    }

    /// Whether the next write waits for a cache.
    pub(super) fn waits(&self, tail: &Tail) -> bool {
        tail.committed < tail.ready && !self.may_commit(tail)
    }

    pub(super) fn may_commit(&self, tail: &Tail) -> bool {
        let next = tail.committed + 1;
        let registers = matches!(self.scope.write(next), Some(Write::Register(_)));
        let waits = !registers || !self.has(Bug::RegistersLent);
        let blocks = |key: u8| self.blocks(tail.loans.of(key), next);
        let blocked = |key: u8| waits && self.touches(next, key) && blocks(key);
        let is_free = !self.keys().any(blocked) || self.has(Bug::NoWait);
        tail.runs() && next <= tail.ready && is_free
    }

    /// The next write takes effect at the tail, and its client is told.
    pub(super) fn commit(&self, world: &mut World, number: u8) {
        let tail = world.tail_mut(number);
        tail.committed += 1;
        tail.waited = 0;
        let version = tail.committed;
        let written = self.keys().filter(|key| self.touches(version, *key));
        for key in written.clone() {
            if tail.told.of(key) <= version || self.has(Bug::ShowsBetween) {
                tail.told.set(key, 0);
            }
        }
        let set = |key: &u8| self.scope.write(version).is_some_and(|it| it.sets(*key));
        written.filter(set).for_each(|key| world.pass(key, version));
    }

    /// What an update of a key may be sent of.
    pub(super) fn may_tell(&self, tail: &Tail, key: u8, version: u8) -> bool {
        let before = tail.committed + 1..version;
        let past = before.into_iter().any(|it| self.recalls(it)) && !self.has(Bug::TellsPastBatch);
        let sets = self.scope.write(version).is_some_and(|it| it.sets(key));
        let fits = sets && !self.recalls(version) && !past;
        let is_lent = tail.loans.of(key).is_some_and(|it| it.has < version);
        tail.runs() && fits && is_lent && tail.told.of(key) < version
    }

    pub(super) fn tell(&self, world: &mut World, number: u8, key: u8, version: u8) {
        let tail = world.tail_mut(number);
        let Some(loan) = tail.loans.of(key) else { return };
        tail.told.set(key, version);
        if self.has(Bug::CommitsUpstream) {
            world.raise(key, version);
        }
        world.network.insert(Message::Update(loan.of(number, key), version));
    }

    /// Whether a key is wanted back.
    pub(super) fn may_recall(&self, tail: &Tail, key: u8) -> bool {
        let wanted = tail.under_way().any(|it| self.touches(it, key) && self.recalls(it));
        let closes = tail.phase == Phase::Closed;
        tail.runs() && tail.loans.of(key).is_some() && (wanted || closes)
    }

    pub(super) fn recall(world: &mut World, number: u8, key: u8) {
        let Some(loan) = world.tail(number).loans.of(key) else { return };
        world.network.insert(Message::Recall(loan.of(number, key)));
    }

    /// How long a lease may be that is given now; 0: none.
    pub(super) fn lease(&self, tail: &Tail) -> u8 {
        let whole = self.scope.lease;
        if self.has(Bug::BeyondRight) && tail.right > 0 { whole } else { whole.min(tail.right) }
    }

    /// Remembers that a cache may answer for so long.
    fn give(&self, tail: &mut Tail, cache: u8, lease: u8) {
        let bound = if self.has(Bug::NoBound) { 1 } else { self.scope.bound() };
        tail.until.set(cache, tail.until.of(cache).max(lease * bound));
    }

    /// What it says is the lowest loan that is still good.
    fn floor(&self, tail: &Tail, cache: u8) -> u8 {
        if self.scope.floors { tail.floor.of(cache) } else { 0 }
    }

    /// Whether it lends a key to a cache.
    pub(super) fn may_lend(&self, tail: &Tail, cache: u8, key: u8) -> bool {
        let other = tail.loans.of(key).is_some_and(|it| it.holder != cache);
        let newest = self.scope.version(key, tail.committed);
        let is_there = !self.is_removed(newest);
        let under_way = tail.under_way().any(|it| self.touches(it, key));
        let held_back = tail.told.of(key) > tail.committed;
        let wrong = self.has(Bug::LendsUnderWay) || held_back && self.has(Bug::LendsHeldBack);
        let copied = self.scope.is_registered(key, tail.committed);
        let is_free = !other || self.has(Bug::TwoHolders);
        let is_free = is_free && (!copied || self.has(Bug::LendsRegistered));
        let renews = !self.owes(tail, cache) || self.has(Bug::RenewsOwed);
        let may = self.lends(tail) && self.lease(tail) > 0 && tail.next <= self.scope.loans;
        may && is_there && is_free && renews && (!under_way || wrong)
    }

    fn is_removed(&self, version: u8) -> bool {
        matches!(self.scope.write(version), Some(Write::Delete(_) | Write::Expire(_)))
    }

    /// Whether it lends and renews at all.
    fn lends(&self, tail: &Tail) -> bool {
        match tail.phase {
            Phase::Open | Phase::Fenced => true,
            Phase::Settled => self.has(Bug::LendsSettled),
            Phase::Waiting | Phase::Closed | Phase::Dead => false,
        }
    }

    /// Answers a fetch: the one that the cache waits for, or an earlier one.
    pub(super) fn lend(&self, world: &mut World, which: (u8, u8, u8), last: bool) {
        let (number, cache, key) = which;
        let time = world.time;
        let tail = world.tail_mut(number);
        let left = self.lease(tail);
        let version = self.scope.version(key, tail.committed);
        let again = tail.loans.of(key).filter(|_| self.has(Bug::SameNumber));
        let count = again.map_or(tail.next, |it| it.number);
        let loan = Loan { holder: cache, number: count, has: version };
        tail.next = tail.next.max(count + 1);
        tail.loans.set(key, Some(loan));
        self.give(tail, cache, left);
        let floor = if self.has(Bug::LoanWithoutFloor) { 0 } else { self.floor(tail, cache) };
        if last {
            let lease = Lease { left, floor, time };
            world.network.insert(Message::Loan(loan.of(number, key), version, lease));
        }
    }

    pub(super) fn may_grant(&self, tail: &Tail, cache: u8) -> bool {
        let renews = !self.owes(tail, cache) || self.has(Bug::RenewsOwed);
        self.lends(tail) && self.lease(tail) > 0 && renews
    }

    /// Answers the renewal that a cache waits for.
    pub(super) fn grant(&self, world: &mut World, number: u8, cache: u8) {
        let time = world.time;
        let tail = world.tail_mut(number);
        let left = self.lease(tail);
        self.give(tail, cache, left);
        let lease = Lease { left, floor: self.floor(tail, cache), time };
        world.network.insert(Message::Grant(number, cache, lease));
    }

    /// Whether a lease is over that something is lent under.
    pub(super) fn may_void(tail: &Tail, cache: u8) -> bool {
        let lent = tail.loans.0.iter().flatten().any(|it| it.holder == cache);
        tail.runs() && lent && tail.until.of(cache) == 0
    }

    pub(super) fn void(&self, tail: &mut Tail, cache: u8) {
        tail.loans.each(|loan| *loan = loan.filter(|it| it.holder != cache));
        if !self.has(Bug::NoFloor) {
            tail.floor.set(cache, tail.next);
        }
    }

    /// What a loan is after an answer.
    pub(super) fn answered(&self, tail: &Tail, of: Of, held: Option<u8>) -> Option<Loan> {
        let Of { cache, key, number, .. } = of;
        let loan = tail.loans.of(key)?;
        let any = self.has(Bug::AnyIncarnation) && self.scope.one_address;
        if loan.holder != cache && !any {
            return Some(loan);
        }
        match held {
            Some(_) if number != loan.number => Some(loan),
            Some(_) if self.has(Bug::OldAnswer) => {
                Some(Loan { has: tail.told.of(key).max(loan.has), ..loan })
            }
            Some(version) => Some(Loan { has: loan.has.max(version), ..loan }),
            None if loan.number <= number || self.has(Bug::LateEvict) => None,
            None => Some(loan),
        }
    }

    /// Whether it has ended all that it has lent, and committed all.
    pub(super) fn may_settle(&self, tail: &Tail) -> bool {
        let lent = tail.loans.0.iter().any(Option::is_some) && !self.has(Bug::SettlesLent);
        tail.phase == Phase::Closed && tail.committed == tail.ready && !lent
    }

    /// What it would show of a key at this time.
    pub(super) fn shown_by_tail(&self, tail: &Tail, key: u8, time: u8) -> Option<u8> {
        let held_back = tail.told.of(key) > tail.committed && !self.has(Bug::ShowsOld);
        let shows = tail.phase == Phase::Open && !held_back;
        let version = self.scope.version(key, tail.committed);
        (shows && !self.is_over(version, time)).then_some(version)
    }

    pub(super) fn keys(&self) -> std::ops::Range<u8> {
        0..self.scope.keys
    }
}

const _: () = assert!(KEYS == 2, "a batch writes both");
