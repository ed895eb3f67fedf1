//! The switches that are told which keys lead to this cache: the one that serves, and those that
//! stand by for it, or keep a content table, whoever serves.

use crate::rules::{Rule, RulePace, Rules};
use machine::Instant;
use wire::{CacheRule, Endpoint};

/// What each of them was told.
#[derive(Debug)]
pub(crate) struct Switches {
    pace: RulePace,
    /// The active one first; none before the first tables.
    all: Vec<(Endpoint, Rules)>,
}

/// Changes for a switch: stream, number of the first, changes.
pub(crate) type RuleUpdate = (Endpoint, u64, u64, Vec<CacheRule>);

impl Switches {
    pub(crate) fn new(pace: RulePace) -> Self {
        Self { pace, all: Vec::new() }
    }

    /// These are the switches from now on, the active one first. Those that are new are told these
    /// rules.
    pub(crate) fn install(
        &mut self,
        now: Instant,
        endpoints: impl Iterator<Item = Endpoint>,
        rules: impl Iterator<Item = Rule> + Clone,
    ) {
        let mut known = std::mem::take(&mut self.all);
        for endpoint in endpoints {
            let place = known.iter().position(|(it, _)| *it == endpoint);
            let switch = place.map(|place| known.swap_remove(place)).unwrap_or_else(|| {
                let mut new = Rules::new(now, self.pace);
                new.start_over(now, rules.clone());
                (endpoint, new)
            });
            self.all.push(switch);
        }
    }

    /// They take changes at another pace from now on.
    pub(crate) fn set_pace(&mut self, now: Instant, pace: RulePace) {
        self.pace = pace;
        self.rules().for_each(|rules| rules.set_pace(now, pace));
    }

    fn rules(&mut self) -> impl Iterator<Item = &mut Rules> {
        self.all.iter_mut().map(|(_, rules)| rules)
    }

    /// The rules of the active one.
    fn active(&self) -> Option<&Rules> {
        self.all.first().map(|(_, rules)| rules)
    }

    /// Reads of a key are to come here.
    pub(crate) fn add(&mut self, rule: Rule) {
        self.rules().for_each(|rules| rules.add(rule));
    }

    /// Reads of a key need not come here any more.
    pub(crate) fn remove(&mut self, now: Instant, rule: Rule) {
        self.rules().for_each(|rules| rules.remove(now, rule));
    }

    /// No read is to come here.
    pub(crate) fn remove_all(&mut self, now: Instant) {
        self.rules().for_each(|rules| rules.start_over(now, std::iter::empty()));
    }

    /// A switch lacks the changes of a stream from this number on. If it has lost what it was told,
    /// it is told these rules anew. Says whether there is such a switch.
    pub(crate) fn heard(
        &mut self,
        (now, from): (Instant, Endpoint),
        (stream, next): (u64, u64),
        rules: impl Iterator<Item = Rule>,
    ) -> bool {
        let Some((_, told)) = self.all.iter_mut().find(|(it, _)| *it == from) else { return false };
        if told.heard(now, stream, next) {
            told.start_over(now, rules);
        }
        true
    }

    /// Whether the active one follows rules.
    pub(crate) fn are_followed(&self, now: Instant) -> bool {
        self.active().is_some_and(|rules| rules.are_followed(now))
    }

    /// What to tell a switch now, if it is time to.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<RuleUpdate> {
        self.all.iter_mut().find_map(|(to, rules)| {
            let (stream, first, changes) = rules.poll(now)?;
            Some((*to, stream, first, changes))
        })
    }

    /// Changes that the active one has not said to have made.
    pub(crate) fn pending(&self) -> usize {
        self.active().map_or(0, Rules::pending)
    }

    /// When one of them is to be told something.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.all.iter().map(|(_, rules)| rules.due()).min()
    }
}
