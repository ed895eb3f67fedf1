//! The delegations of one key: when its writes go anywhere, and when they stay at home (section 9
//! of `spec/protocol.md`).
//!
//! Whether it is worth one, [`policy`](super::policy) says.

use super::fit::{Fit, has_lasted};
use super::log::HotAction;
use super::losses::Losses;
use super::places::Places;
use super::policy::COLD_AFTER;
use cluster::{Delegation, NodeId};
use machine::Instant;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::{DelegationId, Revision};

/// For how long a key stays at home after its first delegation that had to end because of requests
/// that only its home can answer. Each such end makes those wait for about a tenth of a second.
const HOME_MIN: Duration = Duration::from_secs(1);

/// For how long it stays there at most, if that happens again and again.
const HOME_MAX: Duration = Duration::from_mins(5);

/// What one key's delegations have come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delegations {
    /// The present one.
    delegated: Option<Delegated>,
    /// When it may go again, and for how long it has to stay at home until then.
    home: Option<(Instant, Duration)>,
}

/// A delegation under way.
#[derive(Clone, Debug)]
pub(crate) struct Delegated {
    pub(crate) delegation: Delegation,
    pub(crate) since: Instant,
    /// How often nodes had come and gone when it began.
    changes: u64,
    /// Whether as many hold each version as would pay.
    fit: Fit,
    /// Since when it has not been worth going on with.
    idle_since: Option<Instant>,
    losses: Losses,
}

/// What deciding goes by.
pub(crate) struct DelegationInputs<'a> {
    pub(crate) now: Instant,
    /// Revision of the order that begins what begins now.
    pub(crate) revision: Revision,
    /// Nodes in the chain of a write; `None`: no key of this keyspace is delegated.
    pub(crate) replicas: Option<u8>,
    pub(crate) places: &'a Places,
    /// Nodes that have an order of hot keys.
    pub(crate) informed: &'a BTreeSet<NodeId>,
    /// How many nodes are to hold each version under a delegation.
    pub(crate) holders: u64,
    /// Whether that comes of rates that are all known.
    pub(crate) rates_known: bool,
    /// Whether it is worth one, and whether it is worth to go on with one.
    pub(crate) worth: [bool; 2],
    /// The measure of that, in requests per second.
    pub(crate) from: u64,
    /// Requests per second that only its home can answer.
    pub(crate) home_only: u64,
    /// Reads per second that found nobody who holds it, and all reads.
    pub(crate) missed: u64,
    pub(crate) reads: u64,
    /// Whether delegations go on whatever becomes of their nodes.
    pub(crate) keeps_delegations: bool,
}

impl Delegations {
    /// The present one.
    pub(crate) fn delegated(&self) -> Option<&Delegated> {
        self.delegated.as_ref()
    }

    /// How many nodes hold each version; 0: it is on none.
    pub(crate) fn holders(&self) -> u64 {
        self.delegated.as_ref().map_or(0, |delegated| 1 + u64::from(delegated.delegation.copies))
    }

    /// Ends the present delegation, if there is one, because all of them end.
    pub(crate) fn end(&mut self) -> bool {
        self.delegated.take().is_some()
    }

    /// Ends the present delegation if it is to, and begins one; says what it did and why.
    pub(crate) fn look(&mut self, it: &DelegationInputs<'_>) -> [Option<(HotAction, String)>; 2] {
        let ended = self.over(it).map(|why| (HotAction::DelegationEnded, why));
        if ended.is_some() {
            self.delegated = None;
        }
        let begun = self.begin(it).then(|| {
            let why = format!("its home has {} requests per second or more to do for it", it.from);
            (HotAction::DelegationBegun, why)
        });
        let has = self.holders();
        if let Some(delegated) = &mut self.delegated
            && (delegated.fit.is_over(it.now, has, it.holders, it.rates_known) || begun.is_some())
        {
            // The last of the chain holds what it has committed in any case.
            let copies = it.holders.saturating_sub(1);
            delegated.delegation.copies = u16::try_from(copies).unwrap_or(u16::MAX);
        }
        [ended, begun]
    }

    /// Why the present delegation is over, if it is.
    fn over(&mut self, it: &DelegationInputs<'_>) -> Option<String> {
        let delegated = self.delegated.as_mut()?;
        let [_, goes_on] = it.worth;
        delegated.idle_since = delegated.idle_since.or(Some(it.now)).filter(|_| !goes_on);
        let missed = delegated.losses.are_too_many(it.now, it.reads, it.missed);
        let Some(replicas) = it.replicas else {
            return Some("its keyspace or the switch has none any more".to_owned());
        };
        // What was answered under it is with as many nodes as it says, which may be too few now.
        let had = delegated.delegation.replicas;
        if had != replicas {
            return Some(format!("its keyspace is to have {replicas} replicas, not {had}"));
        }
        if it.home_only > 0 || missed {
            let lasted = it.now.since(delegated.since);
            let stays = self.home.map_or(HOME_MIN, |(_, last)| {
                if lasted >= last { HOME_MIN } else { (last * 2).min(HOME_MAX) }
            });
            self.home = Some((it.now + stays, stays));
            let asked = match it.home_only {
                0 => format!("{} of {} reads per second found nobody with it", it.missed, it.reads),
                home_only => {
                    format!("{home_only} requests per second that only its home can answer")
                }
            };
            return Some(format!("{asked}; it stays there for {} s", stays.as_secs()));
        }
        if delegated.changes != it.places.changes() && !it.keeps_delegations {
            return Some("other nodes are there than when it began".to_owned());
        }
        let idle = has_lasted(delegated.idle_since, COLD_AFTER, it.now);
        idle.then(|| "its home could do it by itself".to_owned())
    }

    fn begin(&mut self, it: &DelegationInputs<'_>) -> bool {
        let [worth, _] = it.worth;
        let Some(replicas) = it.replicas.filter(|_| self.delegated.is_none() && worth) else {
            return false;
        };
        let kept = self.home.is_some_and(|(until, _)| it.now < until);
        let room = it.places.nodes() >= replicas.into();
        // A store that was never given an order may be given a later one than that which begins the
        // delegation first. It would pass for one that has forgotten what it held of it, and too
        // many such would leave the key delegated for good.
        let mut nodes = it.places.list().iter().flatten();
        let informed = nodes.all(|(node, _)| it.informed.contains(node));
        if kept || !room || !informed || it.home_only > 0 {
            return false;
        }
        let delegation =
            Delegation { number: DelegationId::begun_by(it.revision), replicas, copies: 0 };
        let (fit, losses) = (Fit::default(), Losses::default());
        let changes = it.places.changes();
        self.delegated =
            Some(Delegated { delegation, since: it.now, changes, fit, idle_since: None, losses });
        true
    }
}
