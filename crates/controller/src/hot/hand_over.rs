//! Since when nobody has had a delegation: what a switch that leaves is waited for, and what the
//! one that takes over is told (`spec/protocol.md`, E10 and O11).

use cluster::HotOrder;
use machine::Instant;
use std::time::Duration;
use wire::Revision;

/// How long a switch that leaves goes on when its delegations are home. Writes that waited for that
/// ask again within a third of it, and it alone knows that they were never granted a version.
const LINGER: Duration = Duration::from_millis(100);

/// What is known of that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandOver {
    /// The newest order with delegations that the directory was given.
    delegated: Revision,
    /// The first order after that one which it has said it has.
    since: Revision,
    /// The same of the directory before, if that was another switch's, which left in order.
    before: Revision,
    recall: RecallStage,
}

/// How far the recall of delegations is at a switch that leaves.
#[derive(Clone, Copy, Debug, Default)]
enum RecallStage {
    /// There were none.
    #[default]
    Needless,
    UnderWay,
    Over(Instant),
}

impl HandOver {
    /// The directory is given this order, and may have it from now on.
    pub(super) fn give(&mut self, order: &HotOrder) {
        if order.keys.iter().any(|key| key.delegation.is_some()) {
            (self.delegated, self.since) = (order.revision, Revision::NONE);
        }
    }

    /// The directory says that it has this order, or none that it was given.
    pub(super) fn hear(&mut self, order: Option<&HotOrder>) {
        match order {
            None => self.since = Revision::NONE,
            Some(order) if self.since.is_none() && order.revision > self.delegated => {
                self.since = order.revision;
            }
            Some(_) => {}
        }
    }

    /// The first quiet order that the directory has, if it has had none with delegations since.
    pub(super) fn since(&self) -> Revision {
        self.since
    }

    /// The directory is another one from here on, which is told this of the one before.
    pub(super) fn begin(&mut self, before: Revision) {
        *self = Self { before, ..Self::default() };
    }

    /// What the directory is told: from which order of the one before on nobody has had a
    /// delegation; none if that is not known.
    pub(super) fn before(&self) -> Revision {
        self.before
    }

    /// Whether a switch that leaves knows nothing any more that another one cannot. `at_home` says
    /// whether all delegations are.
    pub(super) fn may_be_succeeded(&mut self, now: Instant, at_home: bool) -> bool {
        self.recall = match (at_home, self.recall) {
            (false, _) => RecallStage::UnderWay,
            (true, RecallStage::UnderWay) => RecallStage::Over(now),
            (true, other) => other,
        };
        match self.recall {
            RecallStage::Needless => true,
            RecallStage::UnderWay => false,
            RecallStage::Over(since) => since + LINGER <= now,
        }
    }

    /// When that is to be asked again, if nothing is heard until then.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.recall {
            RecallStage::Over(since) => Some(since + LINGER),
            RecallStage::Needless | RecallStage::UnderWay => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Delegation, HotEntry, KeyspaceId, Match};
    use wire::{DelegationId, Generation};

    fn order(revision: u64, delegates: bool) -> HotOrder {
        let delegation = delegates.then(|| Delegation {
            number: DelegationId::new(revision),
            replicas: 1,
            copies: 0,
        });
        let entry = HotEntry {
            keyspace: KeyspaceId(1),
            key: b"k".to_vec(),
            keyhash: 1,
            match_value: Match(1),
            generation: Generation::new(1),
            first: 0,
            readers: 1,
            delegation,
        };
        HotOrder { revision: Revision::new(revision), keys: vec![entry], ..HotOrder::default() }
    }

    fn told(orders: &[(u64, bool)], heard: &[u64]) -> u64 {
        let mut hand_over = HandOver::default();
        for (revision, delegates) in orders {
            let order = order(*revision, *delegates);
            hand_over.give(&order);
            if heard.contains(revision) {
                hand_over.hear(Some(&order));
            }
        }
        hand_over.since().get()
    }

    #[test]
    fn the_next_switch_is_told_of_the_first_quiet_order_that_the_last_one_said_it_has() {
        assert_eq!(told(&[], &[]), 0);
        assert_eq!(told(&[(3, false), (4, false)], &[3, 4]), 3);
        assert_eq!(told(&[(3, false), (4, true), (5, false), (6, false)], &[3, 4, 5, 6]), 5);
        assert_eq!(told(&[(3, true), (4, false), (5, false)], &[3, 5]), 5, "4 was not heard of");
        assert_eq!(told(&[(3, false), (4, true)], &[3]), 0, "it may have 4");
        assert_eq!(told(&[(3, false), (4, true), (5, false)], &[3]), 0, "it may not have 5");
    }

    #[test]
    fn who_began_anew_is_told_nothing() {
        let mut hand_over = HandOver::default();
        hand_over.hear(Some(&order(3, false)));
        hand_over.hear(None);
        assert!(hand_over.since().is_none(), "it has forgotten, or has somebody else's");
        hand_over.hear(Some(&order(5, false)));
        hand_over.begin(hand_over.since());
        assert_eq!((hand_over.before().get(), hand_over.since().get()), (5, 0));
        hand_over.begin(Revision::NONE);
        assert!(hand_over.before().is_none());
    }

    #[test]
    fn a_switch_that_leaves_goes_on_for_a_moment_when_its_delegations_are_home() {
        let (mut hand_over, now) = (HandOver::default(), Instant::from_unix_ms(1_000));
        assert!(hand_over.may_be_succeeded(now, true), "there were none");
        assert!(!hand_over.may_be_succeeded(now, false));
        assert!(!hand_over.may_be_succeeded(now, true));
        assert_eq!(hand_over.due(), Some(now + LINGER));
        assert!(!hand_over.may_be_succeeded(now + LINGER / 2, true));
        assert!(hand_over.may_be_succeeded(now + LINGER, true));
    }
}
