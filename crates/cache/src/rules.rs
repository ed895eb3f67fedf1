//! What the switch is told: which keys lead to this cache (SwitchKV section 3.3).
//!
//! A switch takes few changes in a second. New rules come first, for each of them relieves a node;
//! rules of keys that are gone cost a cache a miss, and wait, but not for ever.

mod queue;

use crate::slots::Key;
use cluster::{CacheTables, KeyspaceId};
use machine::Instant;
use queue::Queue;
use std::collections::VecDeque;
use std::time::Duration;
use wire::{CACHE_RULES_FIT, CacheRule};

/// How many rules a switch may be told to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulePace {
    /// In a second.
    pub per_second: u32,
    /// How long one that is of no use may stay.
    pub remove_within: Duration,
}

impl RulePace {
    /// Rules of no use that a switch has at most.
    pub(crate) fn useless_max(self) -> usize {
        let all = self.remove_within.as_millis().saturating_mul(self.per_second.into()) / 1_000;
        usize::try_from(all).unwrap_or(usize::MAX)
    }
}

/// The rules of one cache, as they are to be and as the switch has them.
#[derive(Debug)]
pub(crate) struct Rules {
    pace: RulePace,
    /// Grows when all rules are told anew.
    stream: u64,
    /// The first change that the switch has not said to have, and those from there on that it was
    /// told.
    first: u64,
    told: VecDeque<CacheRule>,
    to_add: Queue<()>,
    /// With when each was found to be of no use.
    to_remove: Queue<Instant>,
    /// Changes that may be told now, in thousandths.
    allowed: u64,
    counted_at: Instant,
    /// When the switch answered last, and when it was told all anew.
    heard_at: Option<Instant>,
    began_at: Instant,
    told_at: Instant,
    next: Instant,
}

/// By what a switch finds that a read leads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    keyspace: KeyspaceId,
    keyhash: u64,
    /// What a router goes by, if the key has a content address.
    match_bits: Option<u64>,
}

impl Rule {
    /// That of a key.
    pub(crate) fn of(key: &Key, tables: Option<&CacheTables>) -> Self {
        let mut keyspaces = tables.into_iter().flat_map(|it| &it.keyspaces);
        let keyspace = keyspaces.find(|it| it.id == key.keyspace);
        let by_address = keyspace.is_some_and(|it| it.content.is_some());
        let match_bits = by_address.then(|| wire::match_bits(key.match_value));
        Self { keyspace: key.keyspace, keyhash: key.keyhash, match_bits }
    }
}

impl Rules {
    pub(crate) fn new(now: Instant, pace: RulePace) -> Self {
        Self {
            pace,
            stream: now.0,
            first: 0,
            told: VecDeque::new(),
            to_add: Queue::default(),
            to_remove: Queue::default(),
            allowed: 0,
            counted_at: now,
            heard_at: None,
            began_at: now,
            told_at: now,
            next: now,
        }
    }

    /// Changes come at another pace from now on.
    pub(crate) fn set_pace(&mut self, now: Instant, pace: RulePace) {
        self.count_allowed(now);
        self.pace = pace;
    }

    /// Reads of a key are to come here.
    pub(crate) fn add(&mut self, rule: Rule) {
        if !self.to_remove.take(&rule) {
            self.to_add.push(rule, ());
            self.next = self.next.min(self.told_at + TELL_EVERY);
        }
    }

    /// Reads of a key need not come here any more.
    pub(crate) fn remove(&mut self, now: Instant, rule: Rule) {
        if !self.to_add.take(&rule) {
            self.to_remove.push(rule, now);
        }
    }

    /// Tells a switch everything anew: it has lost what it was told, or is another one.
    pub(crate) fn start_over(&mut self, now: Instant, rules: impl Iterator<Item = Rule>) {
        (self.stream, self.first, self.began_at) = ((self.stream + 1).max(now.0), 0, now);
        self.told.clear();
        self.to_remove.clear();
        self.to_add.clear();
        rules.for_each(|rule| self.to_add.push(rule, ()));
        self.next = now;
    }

    /// The switch lacks the changes of a stream from this number on. Says whether all is to be told
    /// anew.
    pub(crate) fn heard(&mut self, now: Instant, stream: u64, next: u64) -> bool {
        self.heard_at = Some(now);
        if stream != self.stream {
            return false;
        }
        let Some(known) = next.checked_sub(self.first) else { return true };
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(self.told.len());
        self.told.drain(..known);
        self.first += known as u64;
        false
    }

    /// Whether the switch follows rules. Of one that does not, as of one that nobody reaches, this
    /// cache would be sent nothing, and writes of what it holds would wait for it all the same.
    pub(crate) fn are_followed(&self, now: Instant) -> bool {
        self.heard_at.is_some_and(|at| now < at + SILENT_FOR)
    }

    /// What to tell the switch now, if it is time to: stream, number of the first change, changes.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(u64, u64, Vec<CacheRule>)> {
        if now < self.next {
            return None;
        }
        self.count_allowed(now);
        let room = CACHE_RULES_FIT.saturating_sub(self.told.len());
        for _ in 0..room {
            let Some(change) = self.next_change(now) else { break };
            self.told.push_back(change);
        }
        self.told_at = now;
        let busy = !self.told.is_empty() || !self.to_add.is_empty();
        // One that is not there is not told in vain all the time.
        let hopes = self.are_followed(now) || now < self.began_at + SILENT_FOR;
        self.next = now + if busy && hopes { TELL_EVERY } else { ALIVE_EVERY };
        let changes = self.told.iter().take(CACHE_RULES_FIT).copied().collect();
        Some((self.stream, self.first, changes))
    }

    fn count_allowed(&mut self, now: Instant) {
        let passed = now.since(self.counted_at).as_micros();
        let more = passed.saturating_mul(u128::from(self.pace.per_second)) / 1_000;
        let most = u64::from(self.pace.per_second).saturating_mul(1_000) / BURST_PART;
        let allowed =
            u128::from(self.allowed).saturating_add(more).min(u128::from(most.max(1_000)));
        (self.allowed, self.counted_at) = (u64::try_from(allowed).unwrap_or(u64::MAX), now);
    }

    /// The next change, if one is allowed: a rule that has to go, one that is new, or one that may
    /// go.
    fn next_change(&mut self, now: Instant) -> Option<CacheRule> {
        self.allowed.checked_sub(1_000)?;
        let late = |(_, since): &(Rule, Instant)| *since + self.pace.remove_within <= now;
        let removed = if self.to_remove.first().is_some_and(late) || self.to_add.is_empty() {
            self.to_remove.pop().map(|rule| (false, rule))
        } else {
            None
        };
        let (adds, Rule { keyspace, keyhash, match_bits }) =
            removed.or_else(|| self.to_add.pop().map(|rule| (true, rule)))?;
        self.allowed -= 1_000;
        Some(CacheRule { adds, keyspace: keyspace.0, keyhash, match_bits })
    }

    /// Changes that the switch has not said to have made.
    pub(crate) fn pending(&self) -> usize {
        self.told.len() + self.to_add.len() + self.to_remove.len()
    }

    pub(crate) fn due(&self) -> Instant {
        self.next
    }
}

/// How often the switch is told what it has not said to have.
const TELL_EVERY: Duration = Duration::from_millis(10);

/// How often it hears that the cache is there: rules of one that is silent count no more.
const ALIVE_EVERY: Duration = Duration::from_millis(100);

/// A switch that has not answered for so long does not follow rules.
const SILENT_FOR: Duration = Duration::from_secs(1);

/// This part of a second's changes may come at once.
const BURST_PART: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(keyhash: u64) -> Rule {
        Rule { keyspace: KeyspaceId(3), keyhash, match_bits: None }
    }

    fn rules(per_second: u32) -> (Rules, Instant) {
        let now = Instant::from_unix_ms(1_000);
        let pace = RulePace { per_second, remove_within: Duration::from_millis(500) };
        (Rules::new(now, pace), now)
    }

    fn hashes(changes: &[CacheRule]) -> Vec<(u8, u64)> {
        changes.iter().map(|it| (u8::from(it.adds), it.keyhash)).collect()
    }

    fn poll(rules: &mut Rules, now: Instant) -> (u64, Vec<(u8, u64)>) {
        let (_, first, changes) = rules.poll(now).expect("it is time");
        (first, hashes(&changes))
    }

    #[test]
    fn what_the_switch_has_not_said_to_have_is_told_again_from_there_on() {
        let (mut rules, start) = rules(1_000);
        let now = start + Duration::from_millis(100);
        (1..=3).for_each(|hash| rules.add(rule(hash)));
        assert_eq!(poll(&mut rules, now), (0, vec![(1, 1), (1, 2), (1, 3)]));
        assert!(rules.poll(now).is_none(), "it was told just now");
        assert!(!rules.heard(now, rules.stream, 2) && !rules.heard(now, rules.stream - 1, 9));
        assert_eq!(poll(&mut rules, now + TELL_EVERY), (2, vec![(1, 3)]));
        assert!(!rules.heard(now, rules.stream, 3));
        assert_eq!((poll(&mut rules, now + TELL_EVERY * 2), rules.pending()), ((3, vec![]), 0));
        assert!(rules.heard(now, rules.stream, 0), "the switch has begun anew");
        rules.start_over(now, [rule(1)].into_iter());
        assert_eq!(poll(&mut rules, now + Duration::from_secs(1)), (0, vec![(1, 1)]));
    }

    #[test]
    fn no_more_is_told_than_the_switch_can_take_and_new_rules_come_first() {
        let (mut rules, start) = rules(100);
        rules.remove(start, rule(99));
        (1..=20).for_each(|hash| rules.add(rule(hash)));
        let now = start + Duration::from_millis(50);
        assert_eq!(poll(&mut rules, now), (0, (1..=5).map(|hash| (1, hash)).collect()));
        rules.heard(now, rules.stream, 5);
        let late = start + Duration::from_millis(500);
        let (_, changes) = poll(&mut rules, late);
        assert_eq!(changes.first(), Some(&(0, 99)), "it has waited for long enough");
        assert_eq!(changes.len(), 10, "a tenth of a second's changes at once");
    }

    #[test]
    fn what_comes_and_goes_before_it_was_told_is_not_told() {
        let (mut rules, start) = rules(1_000);
        rules.add(rule(1));
        rules.remove(start, rule(1));
        assert_eq!(poll(&mut rules, start + TELL_EVERY), (0, vec![]));
        rules.remove(start, rule(2));
        rules.add(rule(2));
        assert_eq!(rules.pending(), 0);
    }
}
