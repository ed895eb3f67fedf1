//! The leases of lenders: one for all that a tail has lent of a partition.

use cluster::{Lease, NodeId, PartitionId};
use machine::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::LoanNumber;

/// A tail in one incarnation of its node and one epoch of its partition. In another one it is
/// another lender: what it lent before, it knows nothing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lender {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
    pub(crate) partition: PartitionId,
    pub(crate) epoch: u32,
}

/// All leases.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    by_lender: BTreeMap<Lender, Volume>,
}

#[derive(Debug)]
struct Volume {
    /// What was lent is good until then, by this cache's clock.
    until: Instant,
    /// The first loan that is good.
    from: LoanNumber,
    /// What time it was after the instant at which that was asked, in Unix milliseconds by the
    /// clock of the cluster.
    told_time: Option<(Instant, u64)>,
    /// Questions for more time that were not answered, with when they were asked.
    asked: VecDeque<(u64, Instant)>,
    next: Instant,
}

impl Volumes {
    /// Whether a loan is good now.
    pub(crate) fn holds(&self, now: Instant, lender: &Lender, loan: LoanNumber) -> bool {
        self.by_lender.get(lender).is_some_and(|it| now < it.until && loan >= it.from)
    }

    /// A lender lends until then, and the loans before this one are void.
    pub(crate) fn extend(&mut self, lender: Lender, until: Instant, from: LoanNumber) {
        let (told_time, asked) = (None, VecDeque::new());
        let begins = || Volume { until, from, told_time, asked, next: until };
        let volume = self.by_lender.entry(lender).or_insert_with(begins);
        (volume.until, volume.from) = (volume.until.max(until), volume.from.max(from));
    }

    /// A lender has said what time it was, when it was asked at that instant.
    pub(crate) fn learn_time(&mut self, lender: &Lender, told: (Instant, u64)) {
        if let Some(volume) = self.by_lender.get_mut(lender)
            && volume.told_time.is_none_or(|(asked, _)| asked <= told.0)
        {
            volume.told_time = Some(told);
        }
    }

    /// What time it is at the latest, in Unix milliseconds by the clock of the cluster: the time
    /// that a lender has told is from after it was asked, and may have been cut off to the whole
    /// millisecond, and this cache's clock may be the slowest.
    pub(crate) fn latest_time(&self, now: Instant, lender: &Lender) -> Option<u64> {
        let (asked, told_ms) = self.by_lender.get(lender)?.told_time?;
        let passed = Lease::over_by(asked, now.since(asked)).since(asked);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        Some(told_ms.saturating_add(passed_ms).saturating_add(1))
    }

    /// A lender has answered a question: says when that was asked.
    pub(crate) fn asked_at(&mut self, lender: &Lender, nonce: u64) -> Option<Instant> {
        let volume = self.by_lender.get_mut(lender)?;
        let place = volume.asked.iter().position(|(number, _)| *number == nonce)?;
        volume.asked.remove(place).map(|(_, at)| at)
    }

    /// Nothing of this lender is good any more.
    pub(crate) fn end(&mut self, lender: &Lender) {
        self.by_lender.remove(lender);
    }

    /// Lenders that are to be asked for more time now. They count as asked by the numbers that they
    /// are given.
    pub(crate) fn ask_on(&mut self, now: Instant, nonce: &mut u64) -> Vec<(Lender, u64)> {
        let due = self.by_lender.iter_mut().filter(|(_, volume)| volume.next <= now);
        due.map(|(lender, volume)| {
            *nonce += 1;
            volume.next = now + RENEW_EVERY;
            volume.asked.push_back((*nonce, now));
            if volume.asked.len() > ASKED_MAX {
                volume.asked.pop_front();
            }
            (*lender, *nonce)
        })
        .collect()
    }

    /// Asks a lender soon: it has just begun to lend.
    pub(crate) fn renew_by(&mut self, lender: &Lender, at: Instant) {
        if let Some(volume) = self.by_lender.get_mut(lender) {
            volume.next = volume.next.min(at + RENEW_EVERY);
        }
    }

    /// Forgets leases that were not renewed for long, and says whose.
    pub(crate) fn forget_lapsed(&mut self, now: Instant) -> Vec<Lender> {
        let lapsed = self.by_lender.extract_if(.., |_, it| it.until + LAPSED_FOR <= now);
        lapsed.map(|(lender, _)| lender).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_lender.len()
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.by_lender.values().map(|it| it.next).min()
    }
}

/// A third of how long loans last: two questions may be lost.
const RENEW_EVERY: Duration = Duration::from_millis(90);

/// Questions that may still be answered.
const ASKED_MAX: usize = 4;

/// A lender that is silent for so long is gone, or lends no more.
const LAPSED_FOR: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const LENDER: Lender =
        Lender { node: NodeId(1), incarnation: 7, partition: PartitionId(3), epoch: 2 };

    fn loan(number: u64) -> LoanNumber {
        LoanNumber::new(number)
    }

    #[test]
    fn a_loan_is_good_as_long_as_its_lease_and_no_longer() {
        let (mut volumes, now) = (Volumes::default(), Instant::from_unix_ms(1_000));
        assert!(!volumes.holds(now, &LENDER, loan(1)));
        let until = now + Duration::from_millis(300);
        volumes.extend(LENDER, until, loan(1));
        assert!(volumes.holds(now + Duration::from_millis(299), &LENDER, loan(1)));
        assert!(!volumes.holds(until, &LENDER, loan(1)));
        assert!(!volumes.holds(now, &Lender { incarnation: 8, ..LENDER }, loan(1)));
        volumes.extend(LENDER, now, loan(5));
        assert!(!volumes.holds(now, &LENDER, loan(4)), "it is void");
        assert!(volumes.holds(now, &LENDER, loan(5)), "an earlier end takes nothing away");
    }

    #[test]
    fn the_time_is_the_latest_that_it_may_be() {
        let (mut volumes, now) = (Volumes::default(), Instant::from_unix_ms(1_000));
        volumes.extend(LENDER, now + Duration::from_millis(300), loan(1));
        assert_eq!(volumes.latest_time(now, &LENDER), None, "it was told none");
        volumes.learn_time(&LENDER, (now, 70_000));
        let later = now + Duration::from_millis(100);
        assert_eq!(volumes.latest_time(later, &LENDER), Some(70_103), "102, and what is cut off");
        volumes.learn_time(&LENDER, (later, 70_090));
        assert_eq!(volumes.latest_time(later, &LENDER), Some(70_091), "it knows better now");
        volumes.learn_time(&LENDER, (now, 70_050));
        assert_eq!(volumes.latest_time(later, &LENDER), Some(70_091), "that came late");
    }

    #[test]
    fn an_answer_counts_from_when_its_question_was_asked_and_once() {
        let (mut volumes, now) = (Volumes::default(), Instant::from_unix_ms(1_000));
        volumes.extend(LENDER, now, loan(1));
        let mut nonce = 40;
        assert_eq!(volumes.ask_on(now, &mut nonce), [(LENDER, 41)]);
        assert_eq!(volumes.ask_on(now, &mut nonce), [], "it was asked just now");
        let later = now + RENEW_EVERY;
        assert_eq!(volumes.ask_on(later, &mut nonce), [(LENDER, 42)]);
        assert_eq!(volumes.asked_at(&LENDER, 41), Some(now), "the first may be answered, too");
        assert_eq!(volumes.asked_at(&LENDER, 41), None);
        assert_eq!(volumes.forget_lapsed(now), []);
        assert_eq!(volumes.forget_lapsed(now + LAPSED_FOR), [LENDER]);
        assert_eq!(volumes.len(), 0);
    }
}
