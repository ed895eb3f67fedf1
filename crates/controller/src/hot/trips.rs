//! The trips of one key: when its writes go anywhere, and when they stay at home (section 9 of
//! `spec/protocol.md`).
//!
//! Whether it is worth one, [`policy`](super::policy) says.

use super::fit::{Fit, has_lasted};
use super::keys::COLD_AFTER;
use super::log::HotAction;
use super::losses::Losses;
use super::places::Places;
use cluster::{NodeId, Trip};
use machine::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// For how long a key stays at home after its first trip that had to end because of requests that
/// only its home can answer. Each such end makes those wait for about a tenth of a second.
const HOME_MIN: Duration = Duration::from_secs(1);

/// For how long it stays there at most, if that happens again and again.
const HOME_MAX: Duration = Duration::from_mins(5);

/// What one key's trips have come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trips {
    /// The present one.
    away: Option<Away>,
    /// When it may go again, and for how long it has to stay at home until then.
    home: Option<(Instant, Duration)>,
}

/// A trip under way.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    pub(crate) trip: Trip,
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
pub(crate) struct Outlook<'a> {
    pub(crate) now: Instant,
    /// Revision of the order that begins what begins now.
    pub(crate) revision: u64,
    /// Nodes in the chain of a write; `None`: no key of this keyspace goes on trips.
    pub(crate) replicas: Option<u8>,
    pub(crate) places: &'a Places,
    /// Nodes that have an order of hot keys.
    pub(crate) informed: &'a BTreeSet<NodeId>,
    /// How many nodes are to hold each version on a trip.
    pub(crate) holders: u64,
    /// Whether that comes of rates that are all known.
    pub(crate) rates_known: bool,
    /// Whether it is worth one, and whether it is worth to go on with one.
    pub(crate) worth: [bool; 2],
    /// The measure of that, in requests per second.
    pub(crate) from: u64,
    /// Requests per second that only its home can answer.
    pub(crate) bound: u64,
    /// Reads per second that found nobody who holds it, and all reads.
    pub(crate) lost: u64,
    pub(crate) reads: u64,
    /// Whether trips go on whatever becomes of their nodes.
    pub(crate) keeps_trips: bool,
}

impl Trips {
    /// The present one.
    pub(crate) fn away(&self) -> Option<&Away> {
        self.away.as_ref()
    }

    /// How many nodes hold each version; 0: it is on none.
    pub(crate) fn holders(&self) -> u64 {
        self.away.as_ref().map_or(0, |away| 1 + u64::from(away.trip.copies))
    }

    /// Ends the present trip, if there is one, because all of them end.
    pub(crate) fn end(&mut self) -> bool {
        self.away.take().is_some()
    }

    /// Ends the present trip if it is to, and begins one; says what it did and why.
    pub(crate) fn look(&mut self, it: &Outlook<'_>) -> [Option<(HotAction, String)>; 2] {
        let ended = self.over(it).map(|why| (HotAction::TripEnded, why));
        if ended.is_some() {
            self.away = None;
        }
        let begun = self.begin(it).then(|| {
            let why = format!("its home has {} requests per second or more to do for it", it.from);
            (HotAction::TripBegun, why)
        });
        let has = self.holders();
        if let Some(away) = &mut self.away
            && (away.fit.is_over(it.now, has, it.holders, it.rates_known) || begun.is_some())
        {
            // The last of the chain holds what it has committed in any case.
            let copies = it.holders.saturating_sub(1);
            away.trip.copies = u16::try_from(copies).unwrap_or(u16::MAX);
        }
        [ended, begun]
    }

    /// Why the present trip is over, if it is.
    fn over(&mut self, it: &Outlook<'_>) -> Option<String> {
        let away = self.away.as_mut()?;
        let [_, goes_on] = it.worth;
        away.idle_since = away.idle_since.or(Some(it.now)).filter(|_| !goes_on);
        let lost = away.losses.are_too_many(it.now, it.reads, it.lost);
        if it.replicas.is_none() {
            return Some("its keyspace or the switch has none any more".to_owned());
        }
        if it.bound > 0 || lost {
            let lasted = it.now.since(away.since);
            let stays = self.home.map_or(HOME_MIN, |(_, last)| {
                if lasted >= last { HOME_MIN } else { (last * 2).min(HOME_MAX) }
            });
            self.home = Some((it.now + stays, stays));
            let asked = match it.bound {
                0 => format!("{} of {} reads per second found nobody with it", it.lost, it.reads),
                bound => format!("{bound} requests per second that only its home can answer"),
            };
            return Some(format!("{asked}; it stays there for {} s", stays.as_secs()));
        }
        if away.changes != it.places.changes() && !it.keeps_trips {
            return Some("other nodes are there than when it began".to_owned());
        }
        let idle = has_lasted(away.idle_since, COLD_AFTER, it.now);
        idle.then(|| "its home could do it by itself".to_owned())
    }

    fn begin(&mut self, it: &Outlook<'_>) -> bool {
        let [worth, _] = it.worth;
        let Some(replicas) = it.replicas.filter(|_| self.away.is_none() && worth) else {
            return false;
        };
        let kept = self.home.is_some_and(|(until, _)| it.now < until);
        let room = it.places.nodes() >= replicas.into();
        // A store that was never given an order may be given a later one than that which begins the
        // trip first. It would pass for one that has forgotten what it held of it, and too many
        // such would leave the key away for good.
        let mut nodes = it.places.list().iter().flatten();
        let informed = nodes.all(|(node, _)| it.informed.contains(node));
        if kept || !room || !informed || it.bound > 0 {
            return false;
        }
        let trip = Trip { number: it.revision, replicas, copies: 0 };
        let (fit, losses) = (Fit::default(), Losses::default());
        let changes = it.places.changes();
        self.away = Some(Away { trip, since: it.now, changes, fit, idle_since: None, losses });
        true
    }
}
