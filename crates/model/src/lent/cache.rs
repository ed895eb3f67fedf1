//! What a cache does.

use super::bug::Bug;
use super::scope::Rules;
use super::state::{Ask, Cache, Entry, Lease, Message, Of, World};
use crate::state::Bits;

impl Rules {
    /// What it would show of a key.
    pub(super) fn shown_by_cache(&self, cache: &Cache, key: u8) -> Option<u8> {
        let entry = cache.held.of(key)?;
        let may = cache.lease.of(entry.tail) > 0 || self.has(Bug::AnswersAfterLease);
        let over = self.is_over(entry.version, cache.time) && !self.has(Bug::IgnoresEnd);
        (may && !over).then_some(entry.version)
    }

    /// It asks for a key, with a new nonce.
    pub(super) fn fetch(&self, world: &mut World, number: u8, key: u8, tail: u8) {
        let cache = world.cache_mut(number);
        cache.fetches -= 1;
        cache.fetch.set(key, Some(Ask { tail, left: self.scope.lease }));
        cache.asked.set(key, cache.asked.of(key).or(Bits::of(tail)));
        let earlier = |it: &Message| match it {
            Message::Loan(of, ..) => (of.cache, of.key) == (number, key),
            _ => false,
        };
        world.network.retain(|it| !earlier(it) || self.has(Bug::AnyNonce));
    }

    /// It asks for more time, with a new nonce.
    pub(super) fn renew(&self, world: &mut World, number: u8, tail: u8) {
        let cache = world.cache_mut(number);
        cache.renews -= 1;
        cache.renew = Some(Ask { tail, left: self.scope.lease });
        let earlier = |it: &Message| matches!(it, Message::Grant(_, to, _) if *to == number);
        world.network.retain(|it| !earlier(it) || self.has(Bug::AnyNonce));
    }

    /// It makes room, and says so.
    pub(super) fn evict(world: &mut World, number: u8, key: u8) {
        let cache = world.cache_mut(number);
        let Some(Entry { tail, number: loan, .. }) = cache.held.of(key) else { return };
        cache.held.set(key, None);
        let of = Of { tail, cache: number, key, number: loan };
        world.network.insert(Message::Answer(of, None));
    }

    /// What time it may be when so much has passed by a cache's clock.
    pub(super) fn time_after(&self, time: u8, by: u8) -> u8 {
        let bound = if self.has(Bug::TimeWithoutBound) { 1 } else { self.scope.bound() };
        self.scope.ends.min(time + by * bound)
    }

    /// It is told what time it was after it had asked.
    fn learn_time(&self, cache: &mut Cache, ask: Ask, time: u8) {
        let gone = self.scope.lease - ask.left;
        let gone = if self.has(Bug::TimeFromReceipt) { 0 } else { gone };
        cache.time = cache.time.min(self.time_after(time, gone));
    }

    /// What is left of a lease that answers a request.
    pub(super) fn rest(&self, ask: Ask, lease: u8) -> u8 {
        let gone = self.scope.lease - ask.left;
        if self.has(Bug::FromReceipt) { lease } else { lease.saturating_sub(gone) }
    }

    /// Whether a request that was sent so long ago may still be answered.
    pub(super) fn is_awaited(&self, ask: Ask) -> bool {
        ask.left > 0 || self.has(Bug::FromReceipt) || self.has(Bug::LateLoan)
    }

    /// Whether a message may arrive at a cache, which then looks at it.
    pub(super) fn reaches(&self, message: Message, at: u8) -> bool {
        match message {
            Message::Loan(Of { cache, .. }, ..) | Message::Grant(_, cache, _) => {
                cache == at || self.scope.one_address && self.has(Bug::AnyReceiver)
            }
            Message::Update(Of { cache, .. }, _) | Message::Recall(Of { cache, .. }) => {
                cache == at || self.scope.one_address
            }
            Message::Answer(..) => false,
        }
    }

    /// A message arrives at a cache.
    pub(super) fn receive(&self, world: &mut World, at: u8, message: Message) {
        let cache = world.cache_mut(at);
        match message {
            Message::Loan(of, version, lease) => self.borrow(cache, of, version, lease),
            Message::Grant(tail, _, lease) => {
                let Some(ask) = cache.renew.filter(|it| it.tail == tail) else { return };
                let rest = self.rest(ask, lease.left);
                if rest > 0 {
                    Self::extend(cache, tail, rest, lease.floor);
                    self.learn_time(cache, ask, lease.time);
                    cache.renew = None;
                }
            }
            Message::Update(of, version) => {
                let held = if of.cache == at { self.update(cache, of, version) } else { None };
                world.network.insert(Message::Answer(Of { cache: at, ..of }, held));
            }
            Message::Recall(of) => {
                if of.cache == at {
                    self.drop_up_to(cache, of);
                }
                world.network.insert(Message::Answer(Of { cache: at, ..of }, None));
            }
            Message::Answer(..) => {}
        }
    }

    /// Takes a loan that it waits for.
    fn borrow(&self, cache: &mut Cache, of: Of, version: u8, lease: Lease) {
        let Of { tail, key, number, .. } = of;
        let Some(ask) = cache.fetch.of(key).filter(|it| it.tail == tail) else { return };
        let rest = self.rest(ask, lease.left);
        if rest == 0 && !self.has(Bug::LateLoan) {
            return;
        }
        Self::extend(cache, tail, rest, lease.floor);
        self.learn_time(cache, ask, lease.time);
        cache.fetch.set(key, None);
        cache.held.set(key, Some(Entry { tail, number, version }));
    }

    /// A lease is longer, and what the tail has voided goes.
    fn extend(cache: &mut Cache, tail: u8, rest: u8, floor: u8) {
        let before = cache.lease.of(tail);
        cache.lease.set(tail, before.max(rest));
        cache.held.each(|held| *held = held.filter(|it| it.tail != tail || it.number >= floor));
    }

    /// Takes a new value of a loan, and tells the version that is held of it then.
    fn update(&self, cache: &mut Cache, of: Of, version: u8) -> Option<u8> {
        let Of { tail, key, number, .. } = of;
        let held = cache.held.of(key).filter(|it| (it.tail, it.number) == (tail, number));
        let Some(entry) = held else {
            self.drop_up_to(cache, of);
            return None;
        };
        let newest = if self.has(Bug::OldUpdate) { version } else { version.max(entry.version) };
        cache.held.set(key, Some(Entry { version: newest, ..entry }));
        Some(newest)
    }

    /// Drops whatever is or may come to be held of a key under this loan and lower ones.
    fn drop_up_to(&self, cache: &mut Cache, of: Of) {
        let Of { tail, key, number, .. } = of;
        let fetch = cache.fetch.of(key).filter(|it| it.tail != tail || self.has(Bug::KeepsFetch));
        cache.fetch.set(key, fetch);
        let stays = |it: &Entry| {
            let lower = it.number < number && self.has(Bug::KeepsLower);
            it.tail != tail || it.number > number || lower
        };
        cache.held.set(key, cache.held.of(key).filter(stays));
    }
}
