//! Keyspaces whose hot keys caches hold or nodes copy: which of the two a key is.
//!
//! Caches come first, for they cost least: one copy, which one server answers from. A key is copied
//! only where caches are seen not to help it ([`WhyCopied`]), and goes back when they might again
//! and that has lasted ([`RETURN_AFTER`]), so that no key goes to and fro.

use super::fit::has_lasted;
use super::policy::{Policy, Rates, named};
use crate::members::{Members, Peer};
use cluster::{CacheReport, HotKey, KeyName, MemberReport};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// A key with fewer reads for each write is nothing for a cache. Each write is held back until the
/// cache has it, and costs tail and cache a message each way; a delegated one may go to any node.
const CACHED_READS_PER_WRITE: u64 = 8;

/// A key that was written too often goes back when it is read so many times as often per write as
/// would have kept it away.
const RARER: u64 = 2;

/// A key that was too hot for its cache goes back when it is read less than it was then, over this.
const COOLER: u64 = 2;

/// For how long nodes have to answer many reads of a key before caches are taken not to help it:
/// twice as long as it takes until they have been told of the keys that are read most.
const UNHELPED_AFTER: Duration = Duration::from_secs(2);

/// A key has to be one for caches for so long before it goes back.
const RETURN_AFTER: Duration = Duration::from_secs(10);

/// Why a key is copied though caches might hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyCopied {
    /// It is written too often for a cache: so many reads and writes per second.
    Written {
        /// Reads.
        reads: u64,
        /// Writes.
        writes: u64,
    },
    /// It is too hot for one cache, which cannot keep up with so many reads per second.
    Crowding {
        /// Reads.
        reads: u64,
    },
    /// Nodes had to answer so many reads per second of it for a while: caches have no room for it,
    /// or cannot borrow it.
    Unhelped {
        /// Reads.
        reads: u64,
    },
    /// No cache answered.
    NoCache,
}

impl fmt::Display for WhyCopied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written { reads, writes } => write!(
                f,
                "it is written too often for a cache: {reads} reads and {writes} writes per second"
            ),
            Self::Crowding { reads } => {
                write!(f, "it is too hot for one cache: {reads} reads per second")
            }
            Self::Unhelped { reads } => write!(
                f,
                "no cache took it: nodes had to answer {reads} reads per second of it for {} s",
                UNHELPED_AFTER.as_secs()
            ),
            Self::NoCache => f.write_str("no cache answers"),
        }
    }
}

/// What caches say of the keys that they hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    /// Whether any answers.
    pub(crate) serve: bool,
    /// Reads per second that they answer.
    reads: BTreeMap<KeyName, u64>,
    /// Keys that are too hot for them.
    crowding: BTreeSet<KeyName>,
}

impl Caches {
    pub(crate) fn new(members: &Members) -> Self {
        let mut caches = Self::default();
        for report in reports(members) {
            caches.serve = true;
            for it in &report.hot {
                let sum = caches.reads.entry(named(it)).or_default();
                *sum = sum.saturating_add(it.reads);
            }
            caches.crowding.extend(report.crowding.iter().cloned());
        }
        caches
    }

    fn reads_of(&self, name: &KeyName) -> u64 {
        self.reads.get(name).copied().unwrap_or(0)
    }
}

/// The reports of caches that answer.
fn reports(members: &Members) -> impl Iterator<Item = &CacheReport> {
    let answering = members.iter().filter(|(_, peer)| peer.is_serving());
    answering.filter_map(|(_, peer): (_, &Peer)| match &peer.report.as_ref()?.state {
        MemberReport::Cache(report) => Some(report),
        MemberReport::Switch(_) | MemberReport::Node(_) => None,
    })
}

/// What caches that answer say of their keys.
pub(crate) fn held(members: &Members) -> impl Iterator<Item = &HotKey> {
    reports(members).flat_map(|report| &report.hot)
}

/// Since when nodes have had to answer many reads of keys that caches might hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unhelped(BTreeMap<KeyName, Instant>);

impl Unhelped {
    /// Takes what nodes and caches say now of keys that caches might hold and nodes do not copy.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        policy: Policy,
        caches: &Caches,
        told: impl Iterator<Item = (KeyName, u64)>,
    ) {
        let is_much = |(name, reads): &(KeyName, u64)| {
            reads.saturating_sub(caches.reads_of(name)) >= policy.threshold()
        };
        let known = std::mem::take(&mut self.0);
        let since = |(name, _): (KeyName, u64)| {
            let at = known.get(&name).copied().unwrap_or(now);
            (name, at)
        };
        self.0 = told.filter(is_much).map(since).collect();
    }

    /// Why a key is to be copied of which so much is asked; `None`: caches can help it.
    pub(crate) fn why_copied(
        &self,
        now: Instant,
        caches: &Caches,
        name: &KeyName,
        rates: Rates,
    ) -> Option<WhyCopied> {
        let Rates { reads, writes } = rates;
        let unhelped = self.0.get(name).copied();
        if !caches.serve {
            Some(WhyCopied::NoCache)
        } else if reads < writes.saturating_mul(CACHED_READS_PER_WRITE) {
            Some(WhyCopied::Written { reads, writes })
        } else if caches.crowding.contains(name) {
            Some(WhyCopied::Crowding { reads })
        } else if has_lasted(unhelped, UNHELPED_AFTER, now) {
            Some(WhyCopied::Unhelped { reads: reads.saturating_sub(caches.reads_of(name)) })
        } else {
            None
        }
    }
}

/// Why a key is copied, and since when that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copied {
    /// Why it is though caches might hold it; `None`: they might not, or an operator wants it.
    pub(crate) why: Option<WhyCopied>,
    over_since: Option<Instant>,
}

impl Copied {
    pub(crate) fn new(why: Option<WhyCopied>) -> Self {
        Self { why, over_since: None }
    }

    /// Whether the key goes back to caches, of which so much is asked now, if they `may` hold it.
    pub(crate) fn is_over(
        &mut self,
        (now, may): (Instant, bool),
        caches: &Caches,
        rates: Rates,
    ) -> bool {
        let is_over = may && self.why.is_none_or(|it| it.is_over(caches, rates));
        self.over_since = self.over_since.or(Some(now)).filter(|_| is_over);
        has_lasted(self.over_since, RETURN_AFTER, now)
    }
}

impl WhyCopied {
    /// Whether caches might help the key again, of which so much is asked.
    fn is_over(self, caches: &Caches, now: Rates) -> bool {
        let rare = now.writes.saturating_mul(CACHED_READS_PER_WRITE * RARER) <= now.reads;
        caches.serve
            && rare
            && match self {
                Self::Written { .. } | Self::NoCache => true,
                Self::Crowding { reads } => now.reads < reads / COOLER,
                // They would not take it this time, either, while it is as hot.
                Self::Unhelped { .. } => false,
            }
    }
}
