//! What tails say: loans, leases, and what becomes of a key that is lent.

use crate::cache::Cache;
use crate::rules::Rule;
use crate::slots::{Name, State, Value};
use crate::volumes::Lender;
use cluster::{KeyspaceId, Mutant, NodeId, PartitionId};
use machine::Instant;
use std::time::Duration;
use wire::{
    CacheCopy, CacheGrantBody, CacheLoanBody, CacheMessage, Code, DropReason, Header, LoanNumber,
    Version,
};

impl Cache {
    /// Takes a message of a lender. The caller has checked that it is of the node that it names.
    pub(crate) fn handle_lender(
        &mut self,
        now: Instant,
        header: &Header,
        message: &CacheMessage<'_>,
    ) -> Result<(), DropReason> {
        if header.client != self.config.incarnation.0 {
            return Err(DropReason::StaleEpoch);
        }
        let CacheCopy { version } = CacheCopy::of(header);
        match *message {
            CacheMessage::Loan { fixed, key, value } => {
                let lender = lender_of(header, fixed.lender);
                let value = Value { expiry_ms: fixed.expiry_ms, bytes: value.into() };
                self.handle_loan(now, (header, lender), &fixed, key, (version, value));
            }
            CacheMessage::NoLoan { key } => self.handle_no_loan(now, header, key),
            CacheMessage::Grant(fixed) => self.handle_grant(now, header, &fixed),
            CacheMessage::Update { fixed, key, value } => {
                self.counters.updates += 1;
                let lender = lender_of(header, fixed.lender);
                let value = Value { expiry_ms: fixed.expiry_ms, bytes: value.into() };
                self.handle_update(now, (header, lender), fixed.loan, key, (version, value));
            }
            CacheMessage::Recall { fixed, key: [] } => {
                let lender = lender_of(header, fixed.lender);
                self.volumes.end(&lender);
                self.slots.give_up(now + RECALLED_FOR, |slot| slot.is_of(&lender));
                self.fetch_by(now + RECALLED_FOR);
                self.answer(&lender, fixed.loan, &name_of(header, &[]), Version::NONE, false);
            }
            CacheMessage::Recall { fixed, key } => {
                let lender = lender_of(header, fixed.lender);
                self.drop_loan(now, &lender, fixed.loan, &name_of(header, key));
                self.answer(&lender, fixed.loan, &name_of(header, key), Version::NONE, false);
            }
            _ => return Err(DropReason::BadOp),
        }
        Ok(())
    }

    /// A key is lent: it is held if it was asked for by that number and nothing was said of it
    /// since.
    fn handle_loan(
        &mut self,
        now: Instant,
        (header, lender): (&Header, Lender),
        fixed: &CacheLoanBody,
        key: &[u8],
        (version, value): (Version, Value),
    ) {
        let name = name_of(header, key);
        let late = self.mutant.is(Mutant::InstallLate);
        let Some(slot) = self.slots.get_mut(&name) else {
            return self.answer(&lender, fixed.loan, &name, version, false);
        };
        let sent = match slot.state {
            State::Fetching { nonce, sent, .. } if nonce == header.seq => sent,
            State::Fetching { sent, .. } if late => sent,
            State::Wanted(_) if late => now,
            State::Wanted(_) => return self.answer(&lender, fixed.loan, &name, version, false),
            // Who says that it does not hold a loan says so of all before it.
            State::Fetching { .. } | State::Held { .. } => return,
        };
        // Others may have been void since, and this one with them.
        let until = sent + Duration::from_millis(fixed.lasts_ms.into());
        if until <= now && !late {
            self.slots.set(&name, State::Wanted(now + ASK_AGAIN));
            return self.fetch_by(now + ASK_AGAIN);
        }
        if !std::mem::replace(&mut slot.has_rule, true) {
            self.switches.add(Rule::of(&slot.key, self.tables.as_ref()));
        }
        let held = State::Held { lender, loan: fixed.loan, version, value };
        self.slots.set(&name, held);
        let until = self.until(now, sent, fixed.lasts_ms);
        self.volumes.extend(lender, until, fixed.from);
        self.volumes.learn_time(&lender, (sent, fixed.now_ms));
        self.volumes.renew_by(&lender, sent);
    }

    /// When something ends that lasts so long from when it was asked for.
    fn until(&self, now: Instant, sent: Instant, lasts_ms: u32) -> Instant {
        let from = if self.mutant.is(Mutant::CountFromGrant) { now } else { sent };
        from + Duration::from_millis(lasts_ms.into())
    }

    /// A key is not lent: never as it is, or not now.
    fn handle_no_loan(&mut self, now: Instant, header: &Header, key: &[u8]) {
        let name = name_of(header, key);
        let Some(slot) = self.slots.get_mut(&name) else { return };
        let asked = matches!(slot.state, State::Fetching { nonce, .. } if nonce == header.seq);
        if !asked {
            return;
        }
        if header.code != Code::NotFound as u8 {
            self.slots.set(&name, State::Wanted(now + ASK_AGAIN));
            self.fetch_by(now + ASK_AGAIN);
            return;
        }
        if let Some(slot) = self.slots.remove(&name).filter(|slot| slot.has_rule) {
            self.switches.remove(now, Rule::of(&slot.key, self.tables.as_ref()));
        }
    }

    /// A lender lends on.
    fn handle_grant(&mut self, now: Instant, header: &Header, fixed: &CacheGrantBody) {
        let lender = lender_of(header, fixed.lender);
        let Some(sent) = self.volumes.asked_at(&lender, header.seq) else { return };
        let until = self.until(now, sent, fixed.lasts_ms);
        self.volumes.extend(lender, until, fixed.from);
        self.volumes.learn_time(&lender, (sent, fixed.now_ms));
        self.want_void_again(now, &lender, fixed.from);
    }

    /// What was lent before this loan is void: it is asked for again.
    fn want_void_again(&mut self, now: Instant, lender: &Lender, from: LoanNumber) {
        let volumes = &self.volumes;
        let any = self.slots.give_up(now, |slot| {
            matches!(&slot.state, State::Held { lender: of, loan, .. }
                if of == lender && *loan < from && !volumes.holds(now, of, *loan))
        });
        if any {
            self.fetch_by(now);
        }
    }

    /// A key that is lent has a new value. What is not held under that loan is not there, nor will
    /// be: a loan that is still under way is not taken any more.
    fn handle_update(
        &mut self,
        now: Instant,
        (header, of): (&Header, Lender),
        number: LoanNumber,
        key: &[u8],
        (newer, new): (Version, Value),
    ) {
        let name = name_of(header, key);
        let late = self.mutant.is(Mutant::InstallLate);
        let mut held = false;
        if let Some(slot) = self.slots.get_mut(&name) {
            match &mut slot.state {
                State::Held { lender, loan, version, .. } if *lender == of && *loan <= number => {
                    held = true;
                    *loan = number;
                    if newer > *version {
                        let (version, value) = (newer, new);
                        let state = State::Held { lender: of, loan: number, version, value };
                        self.slots.set(&name, state);
                    }
                }
                State::Fetching { .. } if !late => self.slots.set(&name, State::Wanted(now)),
                _ => {}
            }
        }
        if !held {
            self.fetch_by(now);
        }
        self.answer(&of, number, &name, newer, held);
    }

    /// A key is held no more under a loan, and none that is under way is taken.
    fn drop_loan(&mut self, now: Instant, of: &Lender, number: LoanNumber, name: &Name<'_>) {
        let late = self.mutant.is(Mutant::InstallLate);
        let Some(slot) = self.slots.get_mut(name) else { return };
        let is_lost = match &slot.state {
            State::Held { lender, loan, .. } => lender == of && *loan <= number,
            State::Fetching { .. } => !late,
            State::Wanted(_) => false,
        };
        if is_lost {
            self.slots.set(name, State::Wanted(now + RECALLED_FOR));
        }
        self.fetch_by(now + RECALLED_FOR);
    }
}

fn lender_of(header: &Header, incarnation: u64) -> Lender {
    Lender {
        node: NodeId(header.node),
        incarnation,
        partition: PartitionId(header.partition),
        epoch: header.epoch,
    }
}

fn name_of<'a>(header: &Header, key: &'a [u8]) -> Name<'a> {
    let Header { keyspace, match_value, keyhash, .. } = *header;
    Name { keyspace: KeyspaceId(keyspace), match_value, keyhash, key }
}

/// What was called back is wanted again after so long: what it was called back for is over soon.
const RECALLED_FOR: Duration = Duration::from_millis(5);

/// A tail that does not lend now is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(20);
