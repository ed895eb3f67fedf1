//! What caches ask a tail for, and what they answer it.

use crate::engine::{Engine, Record};
use crate::lending::gate::may_lend_for;
use crate::lending::loans::Borrower;
use crate::replica::Replica;
use crate::replica::judge::is_over;
use crate::replica::serve::matches_key;
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::{CacheId, MaybeMutant, Mutant};
use std::time::Duration;
use wire::big::is_big;
use wire::{
    CacheAnswerBody, CacheCopy, CacheGrantBody, CacheLoanBody, CacheMessage, Code, DropReason,
    Endpoint, Header, LoanNumber, Op, Version,
};

impl Replica {
    /// Takes a message of a cache about this partition.
    pub(crate) fn handle_cache<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        from: Endpoint,
        header: &Header,
        message: &CacheMessage<'_>,
    ) -> Result<(), DropReason> {
        let cache = ctx.directory.cache_at(from).ok_or(DropReason::NotFromMember)?;
        if cache.cache != CacheId(header.node) {
            return Err(DropReason::NotFromMember);
        }
        if header.epoch != self.member.epoch().0 {
            return Err(DropReason::StaleEpoch);
        }
        let borrower = Borrower { cache, incarnation: header.client };
        match *message {
            CacheMessage::Fetch { key } => self.handle_fetch(ctx, header, borrower, key),
            CacheMessage::Renew(fixed) if fixed.lender == ctx.lending.lender => {
                self.handle_renew(ctx, header, borrower);
                Ok(())
            }
            CacheMessage::Answer { fixed, key } if fixed.lender == ctx.lending.lender => {
                self.handle_answer(ctx, header, borrower, &fixed, key);
                Ok(())
            }
            CacheMessage::Renew(_) | CacheMessage::Answer { .. } => Err(DropReason::StaleEpoch),
            _ => Err(DropReason::BadOp),
        }
    }

    /// Whether this member lends: the tail of an open chain, behind which nobody learns.
    fn lends<E>(&self, ctx: &Context<'_, E>) -> bool {
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        let wanted = keyspace.is_some_and(|it| it.hot.caches());
        wanted && self.member.partition.open && self.member.is_tail() && self.member.is_last()
    }

    fn handle_fetch<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        borrower: Borrower,
        key: &[u8],
    ) -> Result<(), DropReason> {
        let Some(keyspace) = ctx.directory.keyspace(self.member.partition.keyspace) else {
            return Err(DropReason::NoKeyspace);
        };
        let right = header.keyspace == keyspace.id.0
            && matches_key(keyspace, header.match_value, header.keyhash, key)
            && self.member.partition.holds(cluster::Match(header.match_value));
        if !right {
            return Err(DropReason::NoPartition);
        }
        ctx.wants_to_lend();
        let lasts = may_lend_for(ctx);
        if lasts < LENT_MIN {
            self.refuse_loan(ctx, header, borrower, key, Code::NotServing);
            return Ok(());
        }
        let lent = self.lends(ctx).then(|| self.to_lend(ctx, header, key)).flatten();
        let Some(Lent { version, expiry_ms, value, waits }) = lent else {
            self.refuse_loan(ctx, header, borrower, key, Code::NotFound);
            return Ok(());
        };
        let of = (key, header.match_value, header.keyhash);
        let Some((loan, from)) = self.loans.lend(ctx.now, borrower, of, version, lasts) else {
            self.refuse_loan(ctx, header, borrower, key, Code::NotServing);
            return Ok(());
        };
        ctx.counters.loans += 1;
        let mut answer = self.cache_header(ctx, Op::CacheLoan, borrower, header, key);
        answer.seq = header.seq;
        CacheCopy { version }.put(&mut answer);
        let (lender, from, lasts_ms) = (ctx.lending.lender, first(ctx.mutant, from), ms(lasts));
        let now_ms = ctx.time.0;
        let fixed = CacheLoanBody { lender, loan, from, expiry_ms, now_ms, lasts_ms };
        self.send_to_cache(ctx, borrower, &answer, &[&fixed.to_bytes(), key, &value], waits);
        Ok(())
    }

    /// What is committed of a key, unless that is nothing or cannot be lent. One that is registered
    /// or about to be is not: a cache's answers raise no floor, so copies would show what is older.
    fn to_lend<E: Engine>(&self, ctx: &Context<'_, E>, at: &Header, key: &[u8]) -> Option<Lent> {
        let is_hot = self.is_hot(key) || self.delegations.get(key).is_some();
        if is_hot && !ctx.mutant.is(Mutant::LendRegistered) {
            return None;
        }
        let place = self.member.key_ref(at, key);
        let waits = Waits::unless(ctx.engine.is_durable(&place));
        let now = ctx.time;
        ctx.engine.read(&place, |record| {
            let whole = |it: &Record<'_>| !it.tombstone && !is_big(it.expiry_ms);
            let Record { version, expiry_ms, value, .. } =
                record.filter(|it| whole(it) && !is_over(it, now))?;
            Some(Lent { version, expiry_ms, value: value.to_vec(), waits })
        })
    }

    /// Says that a key is not lent: not for now, or as long as it is what it is.
    fn refuse_loan<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        borrower: Borrower,
        key: &[u8],
        code: Code,
    ) {
        let header = self.cache_header(ctx, Op::CacheLoan, borrower, request, key);
        let header = Header { seq: request.seq, code: code as u8, ..header };
        self.send_to_cache(ctx, borrower, &header, &[key], Waits::No);
    }

    fn handle_renew<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        borrower: Borrower,
    ) {
        if !self.lends(ctx) {
            return;
        }
        ctx.wants_to_lend();
        let lasts = may_lend_for(ctx);
        let Some(from) = self.loans.renew(ctx.now, borrower, lasts) else { return };
        let from = first(ctx.mutant, from);
        let mut answer = self.cache_header(ctx, Op::CacheGrant, borrower, header, &[]);
        answer.seq = header.seq;
        let (lender, now_ms) = (ctx.lending.lender, ctx.time.0);
        let fixed = CacheGrantBody { lender, from, now_ms, lasts_ms: ms(lasts) };
        self.send_to_cache(ctx, borrower, &answer, &[&fixed.to_bytes()], Waits::No);
    }

    fn handle_answer<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        borrower: Borrower,
        fixed: &CacheAnswerBody,
        key: &[u8],
    ) {
        if key.is_empty() {
            self.loans.volume_ended(borrower, fixed.loan);
        } else {
            let CacheCopy { version } = CacheCopy::of(header);
            let held = (fixed.held != 0).then_some(version);
            if !self.loans.answered(key, (borrower, fixed.loan), held) {
                return;
            }
        }
        self.commit_freed(ctx);
        ctx.lending.released.insert(self.member.id());
    }

    /// The header of a message to a cache about a key.
    pub(super) fn cache_header<E>(
        &self,
        ctx: &Context<'_, E>,
        op: Op,
        borrower: Borrower,
        at: &Header,
        key: &[u8],
    ) -> Header {
        let key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
        let client = borrower.incarnation;
        Header { op: op as u8, client, key_len, ..self.member.hot_header(ctx, at) }
    }

    /// Sends a message to a cache, if this member has a lease.
    pub(super) fn send_to_cache<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        borrower: Borrower,
        header: &Header,
        parts: &[&[u8]],
        waits: Waits,
    ) {
        let Some(to) = ctx.directory.cache(borrower.cache).filter(|_| ctx.leased) else { return };
        ctx.outbox(waits).push(to, |out| {
            wire::emit(out, header, parts);
        });
    }
}

/// What is lent of a key.
struct Lent {
    version: Version,
    /// When it ends; 0: never.
    expiry_ms: u64,
    value: Vec<u8>,
    /// For what it has to wait before it may be seen.
    waits: Waits,
}

/// A loan that lasts for less is of no use: it would end before it can be renewed.
const LENT_MIN: Duration = Duration::from_millis(50);

/// Whole milliseconds, rounded down: a lease must not last longer than it was granted for.
fn ms(lasts: Duration) -> u32 {
    u32::try_from(lasts.as_millis()).unwrap_or(u32::MAX)
}

/// What a tail says to be the first loan that counts.
fn first(mutant: MaybeMutant, from: LoanNumber) -> LoanNumber {
    if mutant.is(Mutant::RenewVoidLoans) { LoanNumber::NONE } else { from }
}
