//! Batches: several keys of one partition that are written, deleted or checked at once, under one
//! version (section 4 of `spec/protocol.md`).
//!
//! Nobody may see a part of a batch and then miss another. Two rules see to it. What is written of
//! a key after a batch of it goes down the chain on top of the batch. And the head sends a batch on
//! only when the switch lets no reader answer below what the batch makes, or has found, of its hot
//! keys: with the first answer from behind it, all of it is there.

use crate::engine::Engine;
use crate::hot::publish::publishes;
use crate::replica::Replica;
use crate::replica::head::{KeyState, TOMBSTONE_GRACE};
use crate::replica::write::Write;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, refuse_delegated};
use cluster::{Match, Mutant};
use wire::big::is_big;
use wire::expiry::fixed_at;
use wire::{
    BATCH_STEPS_MAX, ChainResult, ChainStep, ChainSteps, ChainWriteBody, Change, Code, Condition,
    DelegationId, DropReason, Effect, Header, Op, PartKey, Step, Steps, Version, hop_flag,
};

impl Replica {
    /// Takes a batch at the head. The caller has checked epoch, chain and first key.
    pub(crate) fn handle_batch<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        steps: &Steps<'_>,
    ) -> Result<(), DropReason> {
        let places: Vec<(Step<'_>, Header)> = steps
            .iter()
            .filter_map(|step| Some((step, self.member.place_of(ctx, step.key)?)))
            .collect();
        if !places.iter().all(|(_, at)| self.member.partition.holds(Match(at.match_value))) {
            refuse(ctx, request, Op::Batch, Code::NotTogether);
            return Ok(());
        }
        if steps.iter().any(|step| PartKey::parse(step.key).is_some()) {
            refuse(ctx, request, Op::Batch, Code::BadRequest);
            return Ok(());
        }
        let known_to_switch = |key: &[u8]| self.is_hot(key) || self.delegations.get(key).is_some();
        let direct = request.hop_flags & hop_flag::DIRECT != 0;
        if direct && steps.iter().any(|step| known_to_switch(step.key)) {
            refuse(ctx, request, Op::Batch, Code::NotHere);
            return Ok(());
        }
        if !self.is_news(ctx, request, steps.first_key())? {
            return Ok(());
        }
        let delegated =
            steps.iter().filter(|step| self.delegations.is_delegated(step.key, &self.pending));
        let strays = delegated
            .map(|step| ctx.heat.see_home_only(self.member.partition.keyspace, step.key))
            .count();
        if strays > 0 {
            refuse_delegated(ctx, request, Op::Batch, (DelegationId::NONE, Version::NONE));
            return Ok(());
        }
        // Each expired value may need a tombstone first.
        let most = BATCH_STEPS_MAX + 2;
        let room = self.pending.has_room_for_client(request.client, most) && self.can_number();
        if !room || !self.makes_room(ctx, request.client) {
            refuse(ctx, request, Op::Batch, Code::Overloaded);
            return Ok(());
        }
        let unsealed = self.why_unsealed(ctx, &places);
        if let Some((code, _)) = unsealed.filter(|(code, _)| !code.is_decided()) {
            refuse(ctx, request, Op::Batch, code);
            return Ok(());
        }
        let states: Vec<KeyState> =
            places.iter().map(|(step, at)| self.state_for_update(ctx, at, step.key)).collect();
        let found: Vec<(Step<'_>, &KeyState)> =
            places.iter().map(|(step, _)| *step).zip(&states).collect();
        let none = unsealed.or_else(|| self.why_not(ctx, &found));
        self.decide_batch(ctx, request, &found, none);
        Ok(())
    }

    /// Why the head may not make a value of parts, if a step does, and the number of that step.
    fn why_unsealed<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        places: &[(Step<'_>, Header)],
    ) -> Option<(Code, u8)> {
        if ctx.mutant.is(Mutant::SealBatchUnchecked) {
            return None;
        }
        places.iter().zip(0..).find_map(|((step, at), number)| match step.change {
            Change::Put { value, expiry_ms } if is_big(expiry_ms) => {
                let code = self.may_put_manifest(ctx, at, step.key, value).err()?;
                Some((code, number))
            }
            Change::Put { .. } | Change::Delete | Change::None => None,
        })
    }

    /// Why a batch does nothing, if so, and the number of the step that is in its way.
    fn why_not<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        found: &[(Step<'_>, &KeyState)],
    ) -> Option<(Code, u8)> {
        let lacks_room = |step: &Step<'_>, state: &KeyState| match step.change {
            Change::Put { value, expiry_ms } => self.lacks_room(ctx, state, value.len(), expiry_ms),
            Change::Delete | Change::None => false,
        };
        let mut steps = found.iter().zip(0..);
        let failed = steps.clone().find(|((step, state), _)| !holds(step, state));
        let failed = failed.map(|(_, number)| (Code::CasMismatch, number));
        failed.or_else(|| {
            let (_, number) = steps.find(|((step, state), _)| lacks_room(step, state))?;
            Some((Code::Full, number))
        })
    }

    /// Orders what a batch does, or that it does nothing: because of the step with that number.
    fn decide_batch<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        found: &[(Step<'_>, &KeyState)],
        none: Option<(Code, u8)>,
    ) {
        let fixed = ChainWriteBody {
            effect: Effect::Batch as u8,
            stable: self.history.stable(),
            origin: Op::Batch as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        let in_the_way =
            none.and_then(|(code, number)| Some((code, number, found.get(usize::from(number))?)));
        if let Some((code, number, (step, state))) = in_the_way {
            // Of the others nothing is said: it is a failed write of this key alone.
            let key_len = u16::try_from(step.key.len()).expect("keys are at most KEY_MAX long");
            let header = Header { code: code as u8, key_len, ..*request };
            let (base, result) = (state.version, ChainResult::of_step(number));
            let fixed = ChainWriteBody { effect: Effect::None as u8, base, result, ..fixed };
            self.order(ctx, &header, fixed, step.key, &[]);
            return;
        }
        let mut value = Vec::new();
        for (step, state) in found {
            ChainSteps::push(&mut value, &self.chain_step(ctx, step, state));
        }
        let key = found.first().map_or(&[][..], |(step, _)| step.key);
        let header = Header { code: Code::Ok as u8, ..*request };
        self.order(ctx, &header, fixed, key, &value);
    }

    fn chain_step<'a, E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        step: &Step<'a>,
        state: &KeyState,
    ) -> ChainStep<'a> {
        let key = step.key;
        let on_top = || self.pending.last_to_depend_on(key).unwrap_or(state.version);
        match step.change {
            Change::Put { value, expiry_ms } => {
                let expiry_ms = fixed_at(expiry_ms, ctx.time.0);
                ChainStep { key, effect: Effect::Put, base: on_top(), expiry_ms, value }
            }
            Change::Delete if state.value.is_some() => {
                let expiry_ms = (ctx.time + TOMBSTONE_GRACE).0;
                ChainStep { key, effect: Effect::Delete, base: on_top(), expiry_ms, value: &[] }
            }
            Change::Delete | Change::None => {
                let base = state.version;
                ChainStep { key, effect: Effect::None, base, expiry_ms: 0, value: &[] }
            }
        }
    }

    /// What changes a key after a batch of it that is pending may not overtake that, or somebody
    /// sees it, and of the batch's other keys what was there before.
    pub(crate) fn behind_batches<E>(
        &self,
        ctx: &Context<'_, E>,
        key: &[u8],
        fixed: ChainWriteBody,
    ) -> ChainWriteBody {
        let changes = fixed.effect != Effect::None as u8 && fixed.effect != Effect::Batch as u8;
        let overtakes = ctx.mutant.is(Mutant::OvertakeBatch);
        if !changes || overtakes || !self.pending.has_batch_of(key) {
            return fixed;
        }
        let base = self.pending.last_to_depend_on(key).unwrap_or(fixed.base);
        ChainWriteBody { base, ordered: 1, ..fixed }
    }

    /// Whether the switch lets no reader answer below what a batch makes, or has found, of its hot
    /// keys. If it may not be so, the switch is told.
    fn is_published<E: Engine>(&self, ctx: &mut Context<'_, E>, write: &Write<'_>) -> bool {
        let of_batch = write.is_batch() || write.fixed.origin == Op::Batch as u8;
        if !of_batch || ctx.mutant.is(Mutant::ShowBatchUnpublished) {
            return true;
        }
        let mut published = true;
        for key in write.keys().filter(|key| self.is_hot(key)) {
            let Some((at, it)) = self.member.place_of(ctx, key).zip(write.on(key)) else {
                continue;
            };
            let found =
                if it.fixed.base.is_none() { self.absent_version(key) } else { it.fixed.base };
            let changes = it.effect() != Some(Effect::None);
            let version = if changes { write.version() } else { found };
            published &= publishes(ctx, &self.member, &at, version);
        }
        published
    }

    /// Whether a pending write may go on down the chain, or be committed where there is none. The
    /// head keeps a batch back whose hot keys are not published.
    pub(crate) fn may_go_on<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: Version,
    ) -> bool {
        let Some(pending) = self.pending.get(version).filter(|_| self.member.is_head()) else {
            return true;
        };
        if self.is_published(ctx, &pending.write()) {
            if self.pending.let_go(version)
                && let Some(pending) = self.pending.get_mut(version)
            {
                pending.sent_at = ctx.now;
            }
            return true;
        }
        self.pending.keep_back(version);
        false
    }

    /// Whether a new write of a head that is alone has to wait for another, or for the switch.
    pub(crate) fn must_wait<E: Engine>(&self, ctx: &mut Context<'_, E>, write: &Write<'_>) -> bool {
        self.pending.has_base_of(write)
            || self.touches_loan(ctx, write)
            || !self.is_published(ctx, write)
    }

    /// A publish has come back: batches that waited for it go on.
    pub(crate) fn let_batches_go<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for version in self.pending.kept_back() {
            self.send_on(ctx, version);
        }
    }

    /// Commits, at a head that is alone, what waits for nothing.
    pub(crate) fn commit_ready<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for version in self.pending.versions() {
            let Some(pending) = self.pending.get(version) else { continue };
            let waits = self.pending.has_base_of(&pending.write());
            if !waits && self.may_go_on(ctx, version) && !self.is_held_back(ctx, version) {
                self.commit_pending(ctx, version);
            }
        }
        self.settle(ctx);
    }

    /// Makes what a batch leaves of its keys their committed states.
    pub(crate) fn commit_batch<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
        backed: bool,
    ) {
        let most = if ctx.mutant.is(Mutant::SplitBatch) { 1 } else { usize::MAX };
        for step in write.steps().filter(|step| step.effect != Effect::None).take(most) {
            let Some(Header { match_value, keyhash, .. }) = self.member.place_of(ctx, step.key)
            else {
                continue;
            };
            let it = write.narrowed(&step);
            let header = Header { match_value, keyhash, ..it.header };
            self.commit_state(ctx, &Write { header, ..it }, backed);
        }
    }
}

/// Whether a step's condition holds.
fn holds(step: &Step<'_>, state: &KeyState) -> bool {
    match step.condition {
        Condition::Any => true,
        Condition::Absent => state.value.is_none(),
        Condition::Present => state.value.is_some(),
        Condition::Version(version) => state.value.is_some() && state.version == version,
    }
}
