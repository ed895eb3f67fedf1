//! What was decided about hot keys and why, for people, and what came of it.

use super::load::{Reading, per_second};
use super::policy::Rates;
use crate::ring::Ring;
use cluster::KeyName;
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Decisions about hot keys remembered. All are in the driver's log.
pub const HOT_DECISIONS_MAX: usize = 256;

/// What was decided about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HotAction {
    /// It is hot from now on: its reads are spread.
    Added,
    /// Other nodes, or more or fewer of them, are to hold copies.
    Readers,
    /// It is hot no longer.
    Removed,
    /// A delegation begins: its writes go anywhere.
    DelegationBegun,
    /// The delegation is over: its writes go through the chain of its partition.
    DelegationEnded,
    /// An operator wants it to be hot whatever is asked of it.
    Pinned,
    /// An operator wants that no longer.
    Unpinned,
}

/// One decision about one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotDecision {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// About which key.
    #[serde(flatten)]
    pub name: KeyName,
    /// What.
    pub did: HotAction,
    /// Why.
    pub why: String,
    /// Reads per second, before.
    pub reads: u64,
    /// Writes per second, before.
    pub writes: u64,
    /// How many nodes were to hold copies from then on; 0 for none.
    pub readers: u64,
    /// Which, by their ids, as `0-3 7`; under a delegation those that its writes may go to.
    pub nodes: String,
    /// What came of it until now, or until the next decision about the key.
    #[serde(flatten)]
    pub effect: HotEffect,
}

/// What came of a decision, as the switch has counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotEffect {
    /// For how many milliseconds it was counted; 0: not yet, or by no switch.
    #[serde(default)]
    pub counted_ms: u64,
    /// Reads that went to a copy.
    pub spread: u64,
    /// Reads that went to the tail of its chain.
    pub home: u64,
    /// Writes while the order had it under a delegation: all but the first few went anywhere.
    #[serde(default)]
    pub writes_spread: u64,
    /// Writes while it was on none, which went through its chain.
    #[serde(default)]
    pub writes_home: u64,
}

impl HotEffect {
    /// So many reads, those of them that went to copies, and the writes of that time.
    pub(crate) fn of(reads: Reading, spread: u64, writes: u64, delegated: bool) -> Self {
        let (writes_spread, writes_home) = if delegated { (writes, 0) } else { (0, writes) };
        let counted_ms = u64::try_from(reads.time.as_millis()).unwrap_or(u64::MAX);
        let home = reads.events.saturating_sub(spread);
        Self { counted_ms, spread, home, writes_spread, writes_home }
    }

    fn add(&mut self, more: Self) {
        for (sum, more) in [
            (&mut self.counted_ms, more.counted_ms),
            (&mut self.spread, more.spread),
            (&mut self.home, more.home),
            (&mut self.writes_spread, more.writes_spread),
            (&mut self.writes_home, more.writes_home),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Reads and writes per second in that time, if any was counted.
    #[must_use]
    pub fn rates(&self) -> Option<[u64; 2]> {
        let time = Some(Duration::from_millis(self.counted_ms)).filter(|it| !it.is_zero())?;
        let reads = self.spread.saturating_add(self.home);
        let writes = self.writes_spread.saturating_add(self.writes_home);
        Some([reads, writes].map(|count| per_second(count, time)))
    }
}

/// What a driver writes into its log about hot keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HotNews {
    /// This has been decided.
    Decided(HotDecision),
    /// This has come of a decision. Said once of each of which anything was counted: after two
    /// seconds of that, or before the next decision about the key.
    CameOf(HotDecision),
}

/// What has come of a decision is said when it was counted for so long.
const SAID_AFTER_MS: u64 = 2_000;

/// A decision, and whether it has been said what came of it.
#[derive(Clone, Debug)]
struct Noted {
    decision: HotDecision,
    said: bool,
}

/// The last [`HOT_DECISIONS_MAX`] decisions, oldest first, and what no driver has asked for yet.
#[derive(Clone, Debug)]
pub(crate) struct HotLog {
    decisions: Ring<Noted>,
    /// All since the driver's last question, however many one look brings.
    news: VecDeque<HotNews>,
}

impl Default for HotLog {
    fn default() -> Self {
        Self { decisions: Ring::new(HOT_DECISIONS_MAX), news: VecDeque::new() }
    }
}

impl HotLog {
    /// Notes a decision that follows the one of that number, if that was about this key; returns
    /// its number.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        name: &KeyName,
        (did, why): (HotAction, String),
        rates: Rates,
        (readers, nodes): (u64, String),
        before: Option<u64>,
    ) -> u64 {
        if let Some(before) = before {
            self.say(before);
        }
        let (name, Rates { reads, writes }) = (name.clone(), rates);
        let (at_ms, effect) = (now.unix_ms(), HotEffect::default());
        let decision = HotDecision { at_ms, name, did, why, reads, writes, readers, nodes, effect };
        self.news.push_back(HotNews::Decided(decision.clone()));
        self.decisions.note(Noted { decision, said: false })
    }

    /// Adds to what came of a decision, if it is remembered.
    pub(crate) fn count(&mut self, decision: Option<u64>, effect: HotEffect) {
        let known = decision.and_then(|it| Some((it, self.decisions.get_mut(it)?)));
        let Some((number, it)) = known else { return };
        it.decision.effect.add(effect);
        if it.decision.effect.counted_ms >= SAID_AFTER_MS {
            self.say(number);
        }
    }

    /// Says what came of a decision, if anything was counted and that was not said before.
    fn say(&mut self, decision: u64) {
        let Some(it) = self.decisions.get_mut(decision) else { return };
        if it.decision.effect.counted_ms > 0 && !std::mem::replace(&mut it.said, true) {
            self.news.push_back(HotNews::CameOf(it.decision.clone()));
        }
    }

    /// The oldest of what was not asked for yet.
    pub(crate) fn poll(&mut self) -> Option<HotNews> {
        self.news.pop_front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HotDecision> {
        self.decisions.iter().map(|it| &it.decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::KeyspaceId;

    const NAME: KeyName = KeyName { keyspace: KeyspaceId(1), key: Vec::new() };

    fn note(log: &mut HotLog, did: HotAction, before: Option<u64>) -> u64 {
        let did = (did, "because".to_owned());
        log.note(Instant(0), &NAME, did, Rates::default(), (1, "3".to_owned()), before)
    }

    fn news(log: &mut HotLog) -> Vec<HotNews> {
        std::iter::from_fn(|| log.poll()).collect()
    }

    #[test]
    fn however_much_one_look_decides_a_driver_hears_of_all_of_it() {
        let mut log = HotLog::default();
        let last = (0..1_000).map(|_| note(&mut log, HotAction::Added, None)).last();
        assert_eq!(last, Some(999));
        assert_eq!((news(&mut log).len(), log.iter().count()), (1_000, HOT_DECISIONS_MAX));
        assert_eq!(news(&mut log), []);
    }

    #[test]
    fn what_came_of_a_decision_is_said_once_after_a_while_or_before_the_next() {
        let effect = |ms| {
            let reads = Reading { events: 4 * ms, time: Duration::from_millis(ms) };
            HotEffect::of(reads, 3 * ms, ms, ms == 1_500)
        };
        let came = |log: &mut HotLog| -> Vec<_> {
            let came = news(log).into_iter().filter_map(|news| match news {
                HotNews::CameOf(it) => Some((it.did, it.effect)),
                HotNews::Decided(_) => None,
            });
            came.collect()
        };
        let mut log = HotLog::default();
        let added = Some(note(&mut log, HotAction::Added, None));
        log.count(None, effect(9_000));
        log.count(added, effect(1_500));
        assert_eq!(came(&mut log), []);
        log.count(added, effect(500));
        let sum = HotEffect {
            counted_ms: 2_000,
            spread: 6_000,
            home: 2_000,
            writes_spread: 1_500,
            writes_home: 500,
        };
        assert_eq!(sum.rates(), Some([4_000, 1_000]));
        assert_eq!(came(&mut log), [(HotAction::Added, sum)]);
        log.count(added, effect(500));
        let fewer = Some(note(&mut log, HotAction::Readers, added));
        assert_eq!(came(&mut log), [], "once");
        log.count(fewer, effect(100));
        note(&mut log, HotAction::Removed, fewer);
        assert_eq!(came(&mut log), [(HotAction::Readers, effect(100))]);
        assert_eq!(HotEffect::default().rates(), None);
    }
}
