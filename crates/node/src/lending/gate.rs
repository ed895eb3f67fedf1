//! The gate before a commit: a write of a key that is lent waits until its borrower has the new
//! value, or none.

use crate::engine::Engine;
use crate::lending::LENT_FOR;
use crate::lending::loans::{Borrower, LoanStanding};
use crate::replica::Replica;
use crate::replica::write::{Write, changes_registration};
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::Mutant;
use wire::big::is_big;
use wire::{CacheCopy, CacheRecallBody, CacheUpdateBody, Effect, Header, LoanNumber, Op, Version};

impl Replica {
    /// Whether a pending write that all members have is not to be committed yet, nor what it was
    /// computed from, because a cache may show what was before. Then it waits, and the cache is
    /// told. What registers a key waits until that is lent to nobody.
    pub(crate) fn is_held_back<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: Version,
    ) -> bool {
        if self.loans.is_empty() || ctx.mutant.is(Mutant::CommitBeforeCache) {
            return false;
        }
        let mut tell = Vec::new();
        let mut waits = false;
        for next in self.pending.line_of(version) {
            let Some(pending) = self.pending.get(next) else { continue };
            let write = pending.write();
            for key in write.keys() {
                let changes = write.on(key).is_some_and(|it| it.effect() != Some(Effect::None));
                if !changes {
                    continue;
                }
                let ends = write.effect().is_some_and(changes_registration);
                if ends && ctx.mutant.is(Mutant::RegisterLent) {
                    continue;
                }
                match self.loans.standing(ctx.now, key, (next, version), ends) {
                    LoanStanding::Free => {}
                    LoanStanding::Wait => waits = true,
                    LoanStanding::Tell => tell.push(Box::<[u8]>::from(key)),
                }
            }
        }
        for key in &tell {
            self.tell_borrower(ctx, key);
        }
        if self.loans.is_busy() {
            ctx.lending.see_busy(ctx.now, self.member.id());
        }
        waits || !tell.is_empty()
    }

    /// The same of a write that has just come, and is not pending.
    pub(crate) fn touches_loan<E: Engine>(&self, ctx: &Context<'_, E>, write: &Write<'_>) -> bool {
        !self.loans.is_empty()
            && !ctx.mutant.is(Mutant::CommitBeforeCache)
            && write.keys().any(|key| self.loans.get(key).is_some())
    }

    /// Tells the borrower of a key, or tells it again: of the newest write that waits, if that
    /// alone says what becomes of the key; else that it is to hold the key no more.
    pub(crate) fn tell_borrower<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let Some(loan) = self.loans.get(key) else { return };
        let (number, borrower) = (loan.number, loan.borrower);
        let (match_value, keyhash) = (loan.match_value, loan.keyhash);
        let newest = || loan.newest_waiting().filter(|version| self.updates(ctx, *version, key));
        // Told again is told the same.
        let told = loan.owed().unwrap_or_else(newest);
        let told = told.filter(|version| self.pending.contains(*version));
        self.loans.tell(ctx.now, key, told);
        let at = Header { match_value, keyhash, ..Header::default() };
        match told.and_then(|version| self.pending.get(version)) {
            Some(pending) => {
                let write = pending.write();
                let of = write.on(key).map(|it| (it.fixed.expiry_ms, it.value.to_vec()));
                let (ends, value) = of.unwrap_or_default();
                self.send_update(ctx, (borrower, number), &at, key, (told, ends, &value));
            }
            None => self.send_recall(ctx, (borrower, number), &at, key),
        }
    }

    /// Whether what a pending write does to a key can be told to its borrower: a cache may show
    /// that before anybody else does, so nothing else may come of the write, or of what it was
    /// computed from.
    fn updates<E>(&self, ctx: &Context<'_, E>, version: Version, key: &[u8]) -> bool {
        let alone = |next: &Version| {
            self.pending.get(*next).is_some_and(|pending| {
                let write = pending.write();
                !write.is_batch() && write.key == key
            })
        };
        let write = self.pending.get(version).and_then(|pending| pending.write().on(key));
        let Some(write) = write else { return false };
        let plain = write.effect() == Some(Effect::Put) && !is_big(write.fixed.expiry_ms);
        let batches = ctx.mutant.is(Mutant::UpdateBatches);
        plain && (self.pending.line_of(version).iter().all(alone) || batches)
    }

    fn send_update<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        (borrower, loan): (Borrower, LoanNumber),
        at: &Header,
        key: &[u8],
        (version, expiry_ms, value): (Option<Version>, u64, &[u8]),
    ) {
        let lender = ctx.lending.lender;
        let mut header = self.cache_header(ctx, Op::CacheUpdate, borrower, at, key);
        CacheCopy { version: version.unwrap_or_default() }.put(&mut header);
        let fixed = CacheUpdateBody { lender, loan, expiry_ms }.to_bytes();
        self.send_to_cache(ctx, borrower, &header, &[&fixed, key, value], Waits::Turn);
    }

    fn send_recall<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        (borrower, loan): (Borrower, LoanNumber),
        at: &Header,
        key: &[u8],
    ) {
        let header = self.cache_header(ctx, Op::CacheRecall, borrower, at, key);
        let fixed = CacheRecallBody { lender: ctx.lending.lender, loan }.to_bytes();
        self.send_to_cache(ctx, borrower, &header, &[&fixed, key], Waits::No);
    }

    /// Tells borrowers that all that they hold of the partition ends.
    pub(crate) fn recall_all<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for (borrower, last) in self.loans.volumes_to_end(ctx.now) {
            self.send_recall(ctx, (borrower, last), &Header::default(), &[]);
        }
    }

    /// Looks after loans: commits what need not wait any more, tells borrowers again that owe an
    /// answer, and ends what is over.
    pub(crate) fn look_after_loans<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        self.loans.end_overdue(ctx.now);
        self.commit_freed(ctx);
        self.recall_all(ctx);
        for key in self.loans.to_tell(ctx.now) {
            self.tell_borrower(ctx, &key);
        }
    }

    /// Commits what need not wait for loans any more.
    pub(crate) fn commit_freed<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for version in self.loans.take_freed() {
            if self.member.is_head() {
                self.commit_ready(ctx);
            } else {
                self.commit_if_durable(ctx, version);
            }
        }
        self.loans.end_freed();
    }
}

/// For how long this node may lend from now on.
pub(crate) fn may_lend_for<E>(ctx: &Context<'_, E>) -> std::time::Duration {
    if ctx.mutant.is(Mutant::LendUnleased) {
        return LENT_FOR;
    }
    ctx.lending.right_until.since(ctx.now).min(LENT_FOR)
}
