//! What is lent of one partition: to whom, under which number, until when, and what is held back.

use cluster::{CacheShard, Lease};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{LoanNumber, Version};

/// A shard of a cache in one incarnation. Another one of the same cache is somebody else: the
/// former may still run. So is another shard, which holds other keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Borrower {
    pub(crate) cache: CacheShard,
    pub(crate) incarnation: u64,
}

/// What is lent of a partition.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    /// The number of the last loan.
    last: LoanNumber,
    by_key: BTreeMap<Box<[u8]>, Loan>,
    /// Keys of the loans of which something is to come: few, however many are lent.
    active: BTreeSet<Box<[u8]>>,
    volumes: BTreeMap<Borrower, Volume>,
    /// Writes that need not wait for any loan, as far as is known.
    freed: Vec<Version>,
    /// Nothing is lent or renewed any more.
    closing: bool,
}

/// The lease that all loans to one borrower have in common.
#[derive(Debug)]
struct Volume {
    /// The first loan that counts: those before are void.
    from: LoanNumber,
    /// When the borrower has certainly stopped to answer by it.
    until: Instant,
    /// When it was told last that the volume ends.
    told: Option<Instant>,
}

/// A key that is lent.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(crate) number: LoanNumber,
    pub(crate) borrower: Borrower,
    pub(crate) match_value: u128,
    pub(crate) keyhash: u64,
    /// The version that the borrower has, or will have.
    version: Version,
    /// What the borrower was told and has not answered.
    owed: Option<Owed>,
    /// It has just answered: what was parked comes first.
    rests: bool,
    /// The lease is over. It may have shown what it was told, so its key stays held back until the
    /// writes that waited for it are committed.
    over: bool,
    /// A write waits for its end: no new value makes up for that.
    ends: bool,
    /// Writes of the key that all members have and that wait for this loan, each with what is to be
    /// committed with it.
    waiting: BTreeSet<(Version, Version)>,
}

/// What a borrower was told.
#[derive(Clone, Copy, Debug)]
struct Owed {
    /// The version that it is to hold; `None`: it is to hold none.
    version: Option<Version>,
    since: Instant,
    /// When it is told again.
    due: Instant,
}

/// How a loan stands to a write of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoanStanding {
    /// The write may be committed.
    Free,
    /// It waits, and the borrower is to be told.
    Tell,
    /// It waits.
    Wait,
}

impl Loans {
    /// Whether nobody can hold anything of the partition any more.
    pub(crate) fn are_over(&self, now: Instant) -> bool {
        self.volumes.values().all(|volume| volume.until <= now)
    }

    /// Lends nothing any more.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Begins anew, in another epoch.
    pub(crate) fn reset(&mut self) {
        let Self { last, .. } = *self;
        *self = Self { last, ..Self::default() };
    }

    /// Lends a key in this version for so long, unless somebody else holds it or owes an answer.
    /// Says the number of the loan, and of the first to that borrower that counts.
    pub(crate) fn lend(
        &mut self,
        now: Instant,
        borrower: Borrower,
        (key, match_value, keyhash): (&[u8], u128, u64),
        version: Version,
        lasts: Duration,
    ) -> Option<(LoanNumber, LoanNumber)> {
        self.end_if_over(now, key);
        let known = self.by_key.get(key);
        let taken = known.is_some_and(|it| it.borrower != borrower || it.owed.is_some() || it.over);
        let full = known.is_none() && self.by_key.len() >= LOANS_MAX;
        if self.closing || taken || full || !self.grant(now, borrower, lasts) {
            return None;
        }
        self.last = self.last.next();
        let waiting = self.by_key.remove(key).map(|it| it.waiting).unwrap_or_default();
        let number = self.last;
        let loan = Loan {
            number,
            borrower,
            match_value,
            keyhash,
            version,
            owed: None,
            rests: false,
            over: false,
            ends: false,
            waiting,
        };
        self.by_key.insert(key.into(), loan);
        Some((number, self.first_of(borrower)))
    }

    /// Goes on lending to a borrower for so long. Says the first loan that counts.
    pub(crate) fn renew(
        &mut self,
        now: Instant,
        borrower: Borrower,
        lasts: Duration,
    ) -> Option<LoanNumber> {
        let late = |owed: &Owed| owed.since + OVERDUE <= now;
        let overdue = |it: &Loan| it.borrower == borrower && it.owed.as_ref().is_some_and(late);
        if self.closing || self.active().any(|(_, it)| overdue(it)) {
            return None;
        }
        let granted = self.grant(now, borrower, lasts);
        granted.then(|| self.first_of(borrower))
    }

    fn first_of(&self, borrower: Borrower) -> LoanNumber {
        self.volumes.get(&borrower).map_or(LoanNumber::NONE, |it| it.from)
    }

    fn grant(&mut self, now: Instant, borrower: Borrower, lasts: Duration) -> bool {
        if lasts.is_zero() {
            return false;
        }
        let begins = || Volume { from: self.last.next(), until: now, told: None };
        let volume = self.volumes.entry(borrower).or_insert_with(begins);
        volume.until = volume.until.max(Lease::over_by(now, lasts));
        true
    }

    /// How the loan of a key stands to a write of this version, with which that of another is
    /// committed, and which may have to end the loan. It waits if it has to. What is over by now is
    /// void.
    pub(crate) fn standing(
        &mut self,
        now: Instant,
        key: &[u8],
        of: (Version, Version),
        ends: bool,
    ) -> LoanStanding {
        self.end_if_over(now, key);
        let (version, _) = of;
        let blocks = |it: &&mut Loan| (ends || it.version < version) && !it.over;
        let Some(loan) = self.by_key.get_mut(key).filter(blocks) else {
            return LoanStanding::Free;
        };
        loan.ends |= ends;
        loan.waiting.insert(of);
        self.active.insert(key.into());
        if loan.owed.is_some() || loan.rests { LoanStanding::Wait } else { LoanStanding::Tell }
    }

    /// Ends what a borrower was lent whose lease is over, if it holds this key: from now on
    /// somebody may see what it does not hear of.
    fn end_if_over(&mut self, now: Instant, key: &[u8]) {
        let Some(borrower) = self.by_key.get(key).map(|it| it.borrower) else { return };
        if self.volumes.get(&borrower).is_none_or(|it| it.until <= now) {
            self.end_volume(borrower);
        }
    }

    /// Ends all loans to a borrower.
    fn end_volume(&mut self, borrower: Borrower) {
        self.volumes.remove(&borrower);
        for loan in self.by_key.values_mut().filter(|loan| loan.borrower == borrower) {
            loan.over = true;
            self.freed.extend(loan.waiting.iter().map(|(_, all)| *all));
            loan.waiting.clear();
        }
        self.by_key.retain(|_, loan| !loan.over || loan.owed.is_some());
    }

    /// Takes out the writes that need not wait any more. Who does commits them before anything is
    /// read, and then says so.
    pub(crate) fn take_freed(&mut self) -> Vec<Version> {
        std::mem::take(&mut self.freed)
    }

    /// They are committed.
    pub(crate) fn end_freed(&mut self) {
        let Self { by_key, active, .. } = self;
        for key in active.iter() {
            if by_key.get(key).is_some_and(|loan| loan.over) {
                by_key.remove(key);
            }
        }
        active.retain(|key| by_key.get(key).is_some_and(Loan::is_active));
    }

    /// The loans of which something is to come.
    fn active(&self) -> impl Iterator<Item = (&[u8], &Loan)> {
        self.active.iter().filter_map(|key| Some((&**key, self.by_key.get(key)?)))
    }

    /// Whether nothing is lent.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Loan> {
        self.by_key.get(key)
    }

    /// The borrower of a key is told, and owes an answer.
    pub(crate) fn tell(&mut self, now: Instant, key: &[u8], version: Option<Version>) {
        if let Some(loan) = self.by_key.get_mut(key) {
            let since = loan.owed.map_or(now, |it| it.since);
            loan.owed = Some(Owed { version, since, due: now + super::TELL_EVERY });
            loan.rests = false;
            self.active.insert(key.into());
        }
    }

    /// A borrower has said whether it holds a key under this loan, and which version. Says whether
    /// that ends what it owes.
    pub(crate) fn answered(
        &mut self,
        key: &[u8],
        (borrower, number): (Borrower, LoanNumber),
        held: Option<Version>,
    ) -> bool {
        let of = |it: &&mut Loan| it.borrower == borrower && !it.over;
        let Some(loan) = self.by_key.get_mut(key).filter(of) else { return false };
        match held {
            None if loan.number <= number => {
                self.freed.extend(loan.waiting.iter().map(|(_, all)| *all));
                loan.waiting.clear();
                // Its lease may be long; the borrower said itself that it is over.
                loan.over = true;
                self.active.insert(key.into());
                true
            }
            Some(version) if loan.number == number => {
                if loan.owed.is_none_or(|owed| owed.version != Some(version)) {
                    return false;
                }
                (loan.owed, loan.rests, loan.version) = (None, true, version);
                let later = loan.waiting.split_off(&(version.next(), Version::NONE));
                let ready = std::mem::replace(&mut loan.waiting, later);
                self.freed.extend(ready.iter().map(|(_, all)| *all));
                true
            }
            _ => false,
        }
    }

    /// A borrower has said that it holds nothing of the partition up to this loan.
    pub(crate) fn volume_ended(&mut self, borrower: Borrower, number: LoanNumber) {
        if self.closing && number >= self.last {
            self.end_volume(borrower);
        }
    }

    /// Ends what is over and owed.
    pub(crate) fn end_overdue(&mut self, now: Instant) {
        let over = self.volumes.iter().filter(|(_, it)| it.until <= now);
        let owes = |borrower: &Borrower| {
            self.active().any(|(_, it)| it.borrower == *borrower && it.owed.is_some())
        };
        // Loans that nothing waits for may go on if they are renewed late.
        let over: Vec<Borrower> = over.map(|(it, _)| *it).filter(owes).collect();
        over.into_iter().for_each(|borrower| self.end_volume(borrower));
    }

    /// Whether nothing may show this key for now.
    pub(crate) fn is_held_back(&self, key: &[u8]) -> bool {
        self.by_key.get(key).is_some_and(|loan| loan.owed.is_some())
    }

    /// The same of any key in an interval of match values.
    pub(crate) fn holds_back_between(&self, first: u128, last: u128) -> bool {
        let inside = |it: &Loan| (first..=last).contains(&it.match_value);
        self.active().any(|(_, it)| it.owed.is_some() && inside(it))
    }

    /// Whether there is anything to look after.
    pub(crate) fn is_busy(&self) -> bool {
        let ends = self.closing && !self.volumes.is_empty();
        ends || !self.freed.is_empty() || !self.active.is_empty()
    }

    /// Keys whose borrowers are to be told again, and those whose borrowers have answered what they
    /// were told and are to be told more.
    pub(crate) fn to_tell(&self, now: Instant) -> Vec<Box<[u8]>> {
        let due = |loan: &Loan| match loan.owed {
            Some(owed) => owed.due <= now && !loan.over,
            None => !loan.waiting.is_empty(),
        };
        self.active().filter(|(_, it)| due(it)).map(|(key, _)| key.into()).collect()
    }

    /// What was parked has been looked at.
    pub(crate) fn end_rest(&mut self) {
        let Self { by_key, active, .. } = self;
        active.retain(|key| {
            by_key.get_mut(key).is_some_and(|loan| {
                loan.rests = false;
                loan.is_active()
            })
        });
    }

    /// Borrowers who are to be told that all that they hold of the partition ends, and the last
    /// loan; none while the partition lends on.
    pub(crate) fn volumes_to_end(&mut self, now: Instant) -> Vec<(Borrower, LoanNumber)> {
        let (last, closing) = (self.last, self.closing);
        let due = |volume: &Volume| {
            closing
                && volume.until > now
                && volume.told.is_none_or(|at| at + super::TELL_EVERY <= now)
        };
        let told = self.volumes.iter_mut().filter(|(_, volume)| due(volume));
        told.map(|(borrower, volume)| {
            volume.told = Some(now);
            (*borrower, last)
        })
        .collect()
    }
}

impl Loan {
    /// Whether something is to come of it.
    fn is_active(&self) -> bool {
        self.owed.is_some() || self.rests || self.over || !self.waiting.is_empty()
    }

    /// The newest write that waits for it, unless one waits for its end.
    pub(crate) fn newest_waiting(&self) -> Option<Version> {
        self.waiting.last().map(|(version, _)| *version).filter(|_| !self.ends)
    }

    /// What its borrower was told and has not answered: a version to hold, or none.
    pub(crate) fn owed(&self) -> Option<Option<Version>> {
        self.owed.map(|owed| owed.version)
    }
}

/// Loans of a partition at most.
const LOANS_MAX: usize = 65_536;

/// A borrower that has not answered for so long is granted nothing until it has: it may hear
/// renewals and no updates, and then nobody could write the key.
const OVERDUE: Duration = Duration::from_millis(40);
