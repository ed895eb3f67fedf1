//! How much nodes have to do: what a key's rate is measured against.

use super::policy::Asked;
use cluster::{Incarnation, NodeId, NodeReport};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// Rates are taken over this much time at least: as much as a segment of the nodes' own counts.
pub(crate) const WINDOW: Duration = Duration::from_millis(100);

/// Events per second.
pub(crate) fn per_second(events: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos().max(1);
    u64::try_from(u128::from(events) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

/// Something that is counted, and how often it happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    since: Instant,
    counted: u64,
}

/// Events that say something of a rate: the standard deviation of such a count is a quarter of it.
pub(crate) const ENOUGH: u64 = 16;

/// Events that say something of a ratio by which copies are made, and for seconds: an eighth.
const ENOUGH_FOR_RATIO: u64 = 64;

/// A rate is taken over so much time at most, however little has happened in it.
pub(crate) const WINDOW_MAX: Duration = Duration::from_secs(1);

/// So many events in so much time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) events: u64,
    pub(crate) time: Duration,
}

impl Reading {
    pub(crate) fn per_second(self) -> u64 {
        per_second(self.events, self.time)
    }
}

impl Gauge {
    pub(crate) fn new(now: Instant, counted: u64) -> Self {
        Self { since: now, counted }
    }

    /// What has happened since this was last said, once that says something of a rate: what is
    /// decided by the ratio of two rates would change all the time otherwise, if one of them is
    /// low. So many events are `enough`; it is said after `most` at the latest.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        counted: u64,
        (enough, most): (u64, Duration),
    ) -> Option<Reading> {
        let (events, time) = (counted.saturating_sub(self.counted), now.since(self.since));
        let wanted = if events < enough { most } else { WINDOW };
        if time < wanted {
            return None;
        }
        *self = Self::new(now, counted);
        Some(Reading { events, time })
    }
}

/// A count of what is told as a rate alone, as if it had been counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateCount {
    since: Option<Instant>,
    /// Per second.
    rate: u64,
    /// In thousand millionths, up to then.
    counted: u128,
}

impl RateCount {
    /// From now on it is this rate.
    pub(crate) fn tell(&mut self, now: Instant, rate: u64) {
        *self = Self { since: Some(now), rate, counted: self.nanos(now) };
    }

    /// What has come of that by now.
    pub(crate) fn counted(&self, now: Instant) -> u64 {
        u64::try_from(self.nanos(now) / 1_000_000_000).unwrap_or(u64::MAX)
    }

    fn nanos(&self, now: Instant) -> u128 {
        let time = self.since.map_or(Duration::ZERO, |since| now.since(since));
        self.counted.saturating_add(u128::from(self.rate).saturating_mul(time.as_nanos()))
    }
}

/// How many reads there are for each write of a key, counted in the same time: a pause of those who
/// ask does not change it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    writes: Gauge,
    /// Reads when counting began.
    reads: u64,
}

impl Ratio {
    pub(crate) fn new(now: Instant, reads: u64, writes: u64) -> Self {
        Self { writes: Gauge::new(now, writes), reads }
    }

    /// What there was since this was last said, once it says something, or after `most`. Of few
    /// writes there were as many as there may be: another was about to come. As long as there is
    /// none at all, counting goes on, and with each read a copy costs less.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        (reads, writes): (u64, u64),
        most: Duration,
    ) -> Option<Asked> {
        let before = *self;
        let Reading { events, time } = self.writes.read(now, writes, (ENOUGH_FOR_RATIO, most))?;
        let seen = reads.saturating_sub(before.reads);
        *self = if events == 0 { before } else { Self { reads, ..*self } };
        let per_write = seen / (events + u64::from(events < ENOUGH));
        Some(Asked { reads: per_second(seen, time), per_write })
    }
}

/// What each node takes per second, as its reports show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    nodes: BTreeMap<NodeId, Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    incarnation: Incarnation,
    at: Instant,
    requests: u64,
    rate: u64,
    /// What it says that it can serve per second; 0: it does not say.
    capacity: u32,
}

impl Load {
    /// Takes a report; returns what this node takes per second.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        node: NodeId,
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> u64 {
        let requests = report.requests;
        let fresh = Measured { incarnation, at: now, requests, rate: 0, capacity: report.rate };
        let known = self.nodes.entry(node).or_insert(fresh);
        let time = now.since(known.at);
        if known.incarnation != incarnation {
            *known = fresh;
        } else if time >= WINDOW {
            let taken = requests.saturating_sub(known.requests);
            *known = Measured { rate: per_second(taken, time), ..fresh };
        }
        known.rate
    }

    /// What a node of these takes per second on the average.
    pub(crate) fn mean(&self, nodes: &BTreeMap<NodeId, Incarnation>) -> u64 {
        let rates = nodes.keys().filter_map(|node| self.nodes.get(node)).map(|it| it.rate);
        let count = u64::try_from(nodes.len()).unwrap_or(u64::MAX).max(1);
        rates.fold(0_u64, u64::saturating_add) / count
    }

    /// What a node of these can serve per second on the average, if all of them say it.
    pub(crate) fn capacity(&self, nodes: &BTreeMap<NodeId, Incarnation>) -> Option<u64> {
        let said = |node| Some(u64::from(self.nodes.get(node)?.capacity)).filter(|it| *it > 0);
        let said: Vec<u64> = nodes.keys().map(said).collect::<Option<_>>()?;
        let count = u64::try_from(said.len()).unwrap_or(u64::MAX);
        said.iter().sum::<u64>().checked_div(count)
    }

    /// Forgets all others.
    pub(crate) fn keep(&mut self, nodes: &BTreeMap<NodeId, Incarnation>) {
        self.nodes.retain(|node, _| nodes.contains_key(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_said_when_enough_has_happened_or_after_a_second() {
        let at = Instant::from_unix_ms;
        let mut gauge = Gauge::new(at(0), 100);
        let mut read =
            |now, counted| Some(gauge.read(now, counted, (ENOUGH, WINDOW_MAX))?.per_second());
        assert_eq!(read(at(99), 1_000), None, "not even a segment");
        assert_eq!(read(at(100), 115), None, "too few");
        assert_eq!(read(at(150), 130), Some(200));
        assert_eq!(read(at(1_149), 145), None);
        assert_eq!(read(at(1_150), 145), Some(15), "however few");
        assert_eq!(read(at(2_150), 145), Some(0));
        assert_eq!(read(at(3_150), 0), Some(0), "a switch that counts anew");
    }

    #[test]
    fn of_few_writes_there_may_be_one_more_and_without_any_counting_goes_on() {
        let at = Instant::from_unix_ms;
        let mut ratio = Ratio::new(at(0), 0, 0);
        let mut read = |now, counted| {
            let Asked { reads, per_write } = ratio.read(at(now), counted, WINDOW_MAX)?;
            Some((reads, per_write))
        };
        assert_eq!(read(999, (999, 63)), None);
        assert_eq!(read(1_000, (1_000, 64)), Some((1_000, 15)));
        assert_eq!(read(2_000, (1_016, 79)), Some((16, 1)), "fifteen, and one that may be");
        assert_eq!(read(3_000, (1_026, 79)), Some((10, 10)), "none yet");
        assert_eq!(read(6_000, (1_056, 79)), Some((10, 40)), "of all that time");
        assert_eq!(read(7_000, (1_056, 79)), Some((8, 40)), "a pause");
        assert_eq!(read(8_000, (1_066, 80)), Some((8, 25)), "the first, and it begins anew");
        assert_eq!(read(9_000, (1_076, 80)), Some((10, 10)));
    }

    #[test]
    fn what_is_told_as_rates_is_counted_as_long_as_each_holds() {
        let at = Instant::from_unix_ms;
        let mut told = RateCount::default();
        assert_eq!(told.counted(at(5_000)), 0);
        told.tell(at(5_000), 30);
        assert_eq!((told.counted(at(5_000)), told.counted(at(5_150))), (0, 4));
        told.tell(at(5_050), 10);
        told.tell(at(5_100), 0);
        assert_eq!((told.counted(at(5_100)), told.counted(at(9_000))), (2, 2), "1.5 and 0.5");
    }

    #[test]
    fn the_mean_is_over_those_who_are_there_in_their_present_lives() {
        let mut load = Load::default();
        let mut note = |ms, node, incarnation, requests| {
            let report = NodeReport { requests, ..NodeReport::default() };
            load.note(Instant::from_unix_ms(ms), NodeId(node), Incarnation(incarnation), &report)
        };
        assert_eq!(note(0, 1, 1, 500), 0, "one report tells no rate");
        assert_eq!(note(50, 1, 1, 600), 0, "too soon");
        assert_eq!(note(100, 1, 1, 700), 2_000);
        assert_eq!(note(0, 2, 1, 0), 0);
        assert_eq!(note(1_000, 2, 1, 4_000), 4_000);
        let both = BTreeMap::from([(NodeId(1), Incarnation(1)), (NodeId(2), Incarnation(1))]);
        assert_eq!(load.mean(&both), 3_000);
        assert_eq!(load.mean(&BTreeMap::new()), 0);
        let report = NodeReport { requests: 9, ..NodeReport::default() };
        let reborn = load.note(Instant::from_unix_ms(2_000), NodeId(2), Incarnation(2), &report);
        assert_eq!(reborn, 0, "its counter began anew");
        assert_eq!(load.capacity(&both), None, "they do not say");
        for (node, incarnation, rate) in [(1, 1, 400), (2, 2, 200)] {
            let report = NodeReport { rate, ..NodeReport::default() };
            load.note(
                Instant::from_unix_ms(3_000),
                NodeId(node),
                Incarnation(incarnation),
                &report,
            );
        }
        assert_eq!(load.capacity(&both), Some(300));
        let third = BTreeMap::from([(NodeId(1), Incarnation(1)), (NodeId(3), Incarnation(1))]);
        assert_eq!(load.capacity(&third), None, "one that was not heard of");
        assert_eq!(load.capacity(&BTreeMap::new()), None);
        load.keep(&BTreeMap::from([(NodeId(2), Incarnation(2))]));
        assert_eq!(load.mean(&both), 0);
    }
}
