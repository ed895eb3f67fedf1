//! The head: takes writes, decides what they do, and starts them down the chain.

use crate::engine::{Engine, Record};
use crate::hot::delegation::records::{Arrival, span_left};
use crate::replica::Replica;
use crate::replica::serve::key_of;
use crate::replica::sessions::outcome::Outcome;
use crate::replica::sessions::table::Standing;
use crate::replica::write::Write;
use crate::shard::context::Context;
use crate::shard::reply::{answer_write, refuse, refuse_delegated};
use crate::shard::waits::Waits;
use cluster::{MaybeMutant, Mutant};
use machine::UnixMs;
use std::time::Duration;
use wire::big::{EXPIRY_BIG, is_big, time_of};
use wire::expiry::{fixed_at, is_span};
use wire::{
    Body, ChainResult, ChainWrite, ChainWriteBody, Code, DelegationId, DropReason, ENTRY_MAX,
    Effect, Expect, Header, New, Op, Room, Version, flag, hop_flag,
};

/// The newest state of a key that the head knows, committed or pending.
#[derive(Debug)]
pub(crate) struct KeyState {
    /// Version of the write that made it; 0 if nothing is known of the key.
    pub(crate) version: Version,
    pub(crate) expiry_ms: u64,
    /// `None` if the key has no value.
    pub(crate) value: Option<Vec<u8>>,
}

/// What a write will do.
struct Decision<'a> {
    effect: Effect,
    code: Code,
    expiry_ms: u64,
    /// Sum of an INCR; version found by a write without effect.
    result: ChainResult,
    value: std::borrow::Cow<'a, [u8]>,
}

impl Replica {
    /// Takes a client's write at the head. The caller has checked epoch, chain and key, and says
    /// whether it `delegates`: is one that goes anywhere while its key is delegated.
    pub(crate) fn handle_write<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        op: Op,
        request: &Header,
        body: &Body<'_>,
        delegates: bool,
    ) -> Result<(), DropReason> {
        let Some(key) = key_of(body) else { return Err(DropReason::BadBody) };
        // Its answer would pass no switch, which must know of every version of a hot key, and of
        // every write that may have been applied under a delegation.
        let known_to_switch = self.is_hot(key) || self.delegations.get(key).is_some();
        if request.hop_flags & hop_flag::DIRECT != 0 && known_to_switch {
            refuse(ctx, request, op, Code::NotHere);
            return Ok(());
        }
        let extends = ctx.mutant.is(Mutant::ExtendSpans)
            && matches!(*body, Body::Put { expiry_ms, .. } if is_span(expiry_ms));
        if !extends && !self.is_news(ctx, request, key)? {
            return Ok(());
        }
        if !self.may_take(ctx, op, request, key, delegates)? {
            return Ok(());
        }
        // One place is kept for the tombstone that an expired value may need first.
        let full = !self.pending.has_room_for_client(request.client, 2) || !self.can_number();
        if full || !self.makes_room(ctx, request.client) {
            refuse(ctx, request, op, Code::Overloaded);
            return Ok(());
        }
        let sealed = self.may_take_big(ctx, op, request, key, body);
        if let Some(code) = sealed.err().filter(|code| !code.is_decided()) {
            refuse(ctx, request, op, code);
            return Ok(());
        }
        let keeps = request.flags & flag::KEEP_EXPIRY != 0 && matches!(op, Op::Put | Op::Cas);
        let ordered = op != Op::Put || keeps;
        let state = ordered.then(|| self.state_for_update(ctx, request, key));
        let decided = |()| decide(ctx.time, body, keeps, state.as_ref(), ctx.mutant);
        let decision = sealed.map_or_else(|code| Decision::none(code, Version::NONE), decided);
        let decision = self.in_room(ctx, request, key, state.as_ref(), decision);
        if key.len() + decision.value.len() > ENTRY_MAX {
            refuse(ctx, request, op, Code::TooLarge);
            return Ok(());
        }
        if decision.code == Code::Full && ctx.mutant.is(Mutant::FullUnrecorded) {
            let outcome = Outcome {
                origin: op,
                code: Code::Full,
                version: Version::NONE,
                result: ChainResult::NONE,
            };
            answer_write(ctx, request, &outcome);
            return Ok(());
        }
        let fixed = ChainWriteBody {
            base: state.as_ref().map_or(Version::NONE, |s| s.version),
            stable: self.history.stable(),
            expiry_ms: decision.expiry_ms,
            result: decision.result,
            origin: op as u8,
            effect: decision.effect as u8,
            ordered: u8::from(ordered),
        };
        let header = Header { code: decision.code as u8, ..*request };
        self.order(ctx, &header, fixed, key, &decision.value);
        Ok(())
    }

    /// What is decided, unless the chain has no room for it.
    fn in_room<'a, E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        at: &Header,
        key: &[u8],
        state: Option<&KeyState>,
        decision: Decision<'a>,
    ) -> Decision<'a> {
        let reserves = !ctx.mutant.is(Mutant::NoReserve);
        if decision.effect == Effect::Delete && !reserves && self.room(ctx) >= Room::Full {
            return Decision::none(Code::Full, Version::NONE);
        }
        let Decision { effect: Effect::Put, expiry_ms, ref value, .. } = decision else {
            return decision;
        };
        let lacks = |state: &KeyState| self.lacks_room(ctx, state, value.len(), expiry_ms);
        let lacks = match state {
            // Nothing is looked up while there is room.
            None if self.room(ctx) < Room::Full => false,
            None => lacks(&self.newest_state(ctx, at, key)),
            Some(state) => lacks(state),
        };
        if lacks { Decision::none(Code::Full, Version::NONE) } else { decision }
    }

    /// Whether neither sessions nor pending know a write. If they do, it is answered, unless that
    /// is for the tail to do.
    pub(crate) fn is_news<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
    ) -> Result<bool, DropReason> {
        if ctx.mutant.is(Mutant::ForgetRequests) {
            return Ok(true);
        }
        match self.sessions.standing(request.client, request.seq) {
            Standing::Known(outcome) => {
                ctx.counters.duplicates += 1;
                let absent = outcome.version.is_none() && outcome.origin != Op::Batch;
                let published = !absent || !self.is_hot(key);
                if published || self.may_tell_absence(ctx, request, key) {
                    answer_write(ctx, request, &outcome);
                }
                return Ok(false);
            }
            Standing::Ended => return Err(DropReason::StaleRequest),
            Standing::New => {}
        }
        let pending = self.pending.of_request(request.client, request.seq).is_some();
        // The tail will answer, or the session will once it is committed.
        ctx.counters.duplicates += u64::from(pending);
        Ok(!pending)
    }

    /// Whether a write that neither sessions nor pending know is to be taken here and now. If not,
    /// it is answered, as what became of it under a delegation says, or dropped.
    fn may_take<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        op: Op,
        request: &Header,
        key: &[u8],
        delegates: bool,
    ) -> Result<bool, DropReason> {
        let arrival =
            if delegates { self.delegations.arrival(ctx, request, key) } else { Arrival::New };
        let is_delegated = self.delegations.is_delegated(key, &self.pending);
        let serves_too_soon = ctx.mutant.is(Mutant::ServeBeforeRecall) && self.recalls.knows(key);
        match arrival {
            Arrival::New if !is_delegated || serves_too_soon => {
                return Ok(true);
            }
            // Home cannot take it, and the switch could not keep apart its copies.
            Arrival::New if delegates && request.hop_flags & hop_flag::CROWDED != 0 => {
                ctx.heat.see_home_only(self.member.partition.keyspace, key);
                refuse(ctx, request, op, Code::Overloaded);
            }
            Arrival::New => {
                let delegation = self.delegations.settled(key, &self.pending).filter(|_| delegates);
                refuse_delegated(
                    ctx,
                    request,
                    op,
                    delegation.map_or(Default::default(), |it| (it.number, it.delegated_at)),
                );
                if !delegates {
                    ctx.heat.see_home_only(self.member.partition.keyspace, key);
                }
            }
            Arrival::Applied(version) => {
                ctx.counters.duplicates += 1;
                let outcome =
                    Outcome { origin: op, code: Code::Ok, version, result: ChainResult::NONE };
                answer_write(ctx, request, &outcome);
            }
            Arrival::Refused(Code::Delegated) => {
                refuse_delegated(ctx, request, op, (DelegationId::NONE, Version::NONE))
            }
            Arrival::Refused(code) => refuse(ctx, request, op, code),
            Arrival::Forgotten => return Err(DropReason::StaleRequest),
        }
        Ok(false)
    }

    /// Gives a write the next version and starts it down the chain.
    pub(crate) fn order<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        fixed: ChainWriteBody,
        key: &[u8],
        value: &[u8],
    ) {
        let version = self.last_version.next();
        let leaves = fixed.effect == Effect::Delegate as u8;
        self.last_version = version.saturating_add(if leaves { span_left(ctx.mutant) } else { 0 });
        let leaves_tombstone = [Effect::Delete, Effect::Abandon].map(|it| it as u8);
        let fixed = if leaves_tombstone.contains(&fixed.effect) {
            let collect_at = ctx.time + TOMBSTONE_GRACE;
            ChainWriteBody { expiry_ms: collect_at.0, ..fixed }
        } else {
            fixed
        };
        let fixed = self.behind_batches(ctx, key, fixed);
        let mut header = Header {
            hop_flags: request.hop_flags & wire::CONTENT_HOP_FLAGS,
            partition: self.member.id().0,
            epoch: self.member.epoch().0,
            bitmap: 0,
            op: Op::ChainWrite as u8,
            flags: 0,
            count: 0,
            ..*request
        };
        ChainWrite { version, unsynced: 0, based: 0 }.put(&mut header);
        let write = Write { header, fixed, key, value };
        if self.member.is_last() && !self.must_wait(ctx, &write) {
            self.commit(ctx, &write, Waits::Turn);
        } else {
            self.pend(ctx, &write);
            self.send_on(ctx, write.version());
            if let Some(outcome) = write.outcome().filter(|_| header.client != 0)
                && ctx.mutant.is(Mutant::AnswerAtHead)
            {
                answer_write(ctx, &header, &outcome);
            }
        }
        self.note_counters(ctx.engine);
    }

    /// The newest state of a key, to compute from. A value whose time has come is turned into a
    /// tombstone first, so that its end has a place in the order of the key's writes.
    pub(crate) fn state_for_update<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
    ) -> KeyState {
        let state = self.newest_state(ctx, request, key);
        let now_ms = ctx.time.0;
        let gone = state.value.is_some() && (1..=now_ms).contains(&time_of(state.expiry_ms));
        if !gone {
            return state;
        }
        self.expire(ctx, request, key, state.version);
        KeyState { version: self.last_version, expiry_ms: 0, value: None }
    }

    fn newest_state<E: Engine>(&self, ctx: &Context<'_, E>, at: &Header, key: &[u8]) -> KeyState {
        let committed = ctx.engine.read(&self.member.key_ref(at, key), |record| match record {
            None => KeyState { version: Version::NONE, expiry_ms: 0, value: None },
            Some(Record { version, expiry_ms, tombstone, value }) => {
                KeyState { version, expiry_ms, value: (!tombstone).then(|| value.to_vec()) }
            }
        });
        let pending = self.pending.newest(key);
        match pending.filter(|_| !ctx.mutant.is(Mutant::CheckCommitted)) {
            Some(write) if write.version() > committed.version => KeyState {
                version: write.version(),
                expiry_ms: write.fixed.expiry_ms,
                value: (write.effect() == Some(Effect::Put)).then(|| write.value.to_vec()),
            },
            _ => committed,
        }
    }
}

/// What the write does to `state` at this time; only a plain PUT is decided without one.
fn decide<'a>(
    now: UnixMs,
    body: &Body<'a>,
    keeps_expiry: bool,
    state: Option<&KeyState>,
    mutant: MaybeMutant,
) -> Decision<'a> {
    let absent = KeyState { version: Version::NONE, expiry_ms: 0, value: None };
    let state = state.unwrap_or(&absent);
    let kept = |expiry_ms: u64| {
        let kept = time_of(state.expiry_of_value()) | expiry_ms & EXPIRY_BIG;
        if keeps_expiry { kept } else { fixed_at(expiry_ms, now.0) }
    };
    match *body {
        Body::Put { expiry_ms, value, .. } => Decision::put(value, kept(expiry_ms)),
        Body::Del { .. } if state.value.is_none() => Decision::none(Code::NotFound, Version::NONE),
        Body::Del { .. } => Decision::delete(),
        Body::Cas { expiry_ms, expect, new, .. } => {
            let found = if state.value.is_some() { state.version } else { Version::NONE };
            let holds = match expect {
                Expect::Version(version) => version == found,
                Expect::Value(_) if is_big(state.expiry_ms) => false,
                Expect::Value(expected) => state.value.as_deref() == Some(expected),
            };
            match (holds, new) {
                (true, New::Value(value)) => Decision::put(value, kept(expiry_ms)),
                (true, New::Same) => {
                    let value = state.value.clone().unwrap_or_default().into();
                    let big = state.expiry_of_value() & EXPIRY_BIG;
                    Decision { value, ..Decision::put(&[], kept(expiry_ms) | big) }
                }
                (true, New::Nothing) => Decision::delete(),
                (false, New::Nothing) if !found.is_none() && mutant.is(Mutant::DeleteAnyway) => {
                    Decision::delete()
                }
                (false, _) => Decision::none(Code::CasMismatch, found),
            }
        }
        Body::Incr { delta, .. } => decide_incr(delta, state),
        _ => Decision::none(Code::NotFound, Version::NONE),
    }
}

fn decide_incr<'a>(delta: i64, state: &KeyState) -> Decision<'a> {
    let value = state.value.as_deref();
    let is_big = value.is_some() && is_big(state.expiry_ms);
    let Some(number) = value.map_or(Some(0), parse_number).filter(|_| !is_big) else {
        return Decision::none(Code::NotANumber, state.version);
    };
    let Some(sum) = number.checked_add(delta) else {
        return Decision::none(Code::Overflow, state.version);
    };
    Decision {
        effect: Effect::Put,
        code: Code::Ok,
        expiry_ms: state.expiry_of_value(),
        result: ChainResult::of_sum(sum),
        value: sum.to_string().into_bytes().into(),
    }
}

impl<'a> Decision<'a> {
    fn put(value: &'a [u8], expiry_ms: u64) -> Self {
        let value = value.into();
        Self { effect: Effect::Put, code: Code::Ok, expiry_ms, result: ChainResult::NONE, value }
    }

    fn delete() -> Self {
        Self { effect: Effect::Delete, ..Self::put(&[], 0) }
    }

    fn none(code: Code, found: Version) -> Self {
        let value = (&[]).into();
        Self {
            effect: Effect::None,
            code,
            expiry_ms: 0,
            result: ChainResult::of_found(found),
            value,
        }
    }
}

impl KeyState {
    /// The expiry of the value, if there is one; a tombstone's means something else.
    fn expiry_of_value(&self) -> u64 {
        if self.value.is_some() { self.expiry_ms } else { 0 }
    }
}

/// A decimal signed 64-bit integer in its one canonical form, as INCR writes it.
fn parse_number(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    // `parse` also takes "+1", "007" and "-0": a round trip tells them apart.
    (number.to_string() == text).then_some(number)
}

/// How long a tombstone stays after its delete. Safety does not need it (versions at or below
/// `stable` are never taken again); it gives a copy of the partition that is being made time to see
/// the delete rather than find nothing.
pub(crate) const TOMBSTONE_GRACE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::parse_number;

    #[test]
    fn only_the_canonical_form_is_a_number() {
        assert_eq!(parse_number(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_number(b"0"), Some(0));
        for text in ["", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "1.0", "\u{663}"] {
            assert_eq!(parse_number(text.as_bytes()), None, "{text:?}");
        }
    }
}
