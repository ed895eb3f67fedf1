//! What a member says of its own records when it is compared, and how it takes what is right.

use super::judge::{State, View};
use crate::engine::{Engine, Interval, KeyRef, Record};
use crate::replica::Replica;
use crate::replica::big::parts::{has, manifest_in};
use crate::shard::context::Context;
use cluster::{Keyspace, NodeId};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use wire::{
    ChainMendBody, ChainVerifiedBody, ChainVerifyBody, DropReason, Header, ManifestBody, Op,
    PartKey, RunPart, VerifyState, Version,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A member's answer to a question about its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The values after some key.
    Piece(Piece),
    /// One key.
    Key(View),
}

/// The values that follow on some key, so many of them at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) count: u16,
    /// Over keys, versions, expiries and values. Deleted keys are left out: marks of deletions are
    /// collected earlier here and later there. So are parts that belong to no value.
    pub(crate) digest: u64,
    /// The last key that was looked at, deleted or not.
    pub(crate) last: Box<[u8]>,
    /// Whether nothing follows.
    pub(crate) end: bool,
    /// Records with versions that this member has not seen given out. Not compared.
    pub(crate) absurd: u16,
}

impl Piece {
    /// Whether the values are the same, up to the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let ends = self.end && other.end || self.last == other.last && self.end == other.end;
        ends && (self.count, self.digest) == (other.count, other.digest)
    }
}

/// What clients, and other members, see of a record.
pub(crate) fn state_of(record: &Record<'_>) -> State {
    let Record { version, expiry_ms, tombstone, value } = *record;
    State { version, expiry_ms, tombstone, hash: xxh3_64(value) }
}

fn fold(digest: u64, key: &[u8], state: &State) -> u64 {
    let numbers = [state.version.get(), state.expiry_ms, state.hash, key.len() as u64];
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    xxh3_64_with_seed(key, xxh3_64_with_seed(&numbers, digest))
}

/// The big values that were met, whose parts come after them.
#[derive(Default)]
struct Owners(BTreeMap<Box<[u8]>, ManifestBody>);

impl Owners {
    fn see(&mut self, key: &[u8], record: &Record<'_>) {
        if let Some(manifest) = manifest_in(key, record) {
            self.0.insert(key.into(), manifest);
        }
    }

    /// Whether a key is that of no part, or of one that belongs to a value. Parts are dropped
    /// earlier here and later there when nobody can read them any more.
    fn have(&self, key: &[u8]) -> bool {
        let of = |part: PartKey<'_>| self.0.get(part.key).is_some_and(|it| has(it, &part));
        PartKey::parse(key).is_none_or(of)
    }
}

impl Replica {
    /// The values after a key, or from the beginning of the partition if that is empty.
    pub(crate) fn look_on<E: Engine>(
        &self,
        engine: &E,
        keyspace: &Keyspace,
        after: &[u8],
        count: u16,
    ) -> Piece {
        let (first, start) = if after.is_empty() {
            (self.member.partition.first, Bound::Unbounded)
        } else {
            (keyspace.match_value(after), Bound::Excluded(after))
        };
        let interval = Interval {
            keyspace,
            partition: self.member.id(),
            first,
            last: self.member.partition.last,
            start,
            end: Bound::Unbounded,
            reverse: false,
        };
        let mut owners = Owners::default();
        if let Some(part) = PartKey::parse(after) {
            self.read(engine, keyspace, part.key, |record| {
                record.into_iter().for_each(|record| owners.see(part.key, &record));
            });
        }
        let mut piece = Piece { end: true, last: after.into(), ..Piece::default() };
        let (mut looked_at, mut last) = (0_usize, after.to_vec());
        engine.scan(&interval, |key, record| {
            looked_at += 1;
            last.clear();
            last.extend_from_slice(key);
            piece.absurd = piece.absurd.saturating_add((record.version > self.last_version).into());
            owners.see(key, &record);
            if !record.tombstone && owners.have(key) {
                piece.digest = fold(piece.digest, key, &state_of(&record));
                piece.count += 1;
            }
            if piece.count < count && looked_at < LOOKED_AT_MAX {
                return ControlFlow::Continue(());
            }
            piece.end = false;
            ControlFlow::Break(())
        });
        piece.last = last.into();
        piece
    }

    /// What is held of one key.
    pub(crate) fn look_at<E: Engine>(&self, engine: &E, keyspace: &Keyspace, key: &[u8]) -> View {
        let mut state = self.read(engine, keyspace, key, |it| it.as_ref().map(state_of));
        let (collected, newest) = (self.collected, self.last_version);
        let mut owner = Version::NONE;
        if let Some(part) = PartKey::parse(key) {
            self.read(engine, keyspace, part.key, |record| {
                let manifest = record.as_ref().and_then(|it| manifest_in(part.key, it));
                if !manifest.is_some_and(|manifest| has(&manifest, &part)) {
                    state = None;
                }
                owner = record.map_or(Version::NONE, |record| record.version);
            });
        }
        View { state, collected, newest, stable: self.history.stable(), owner }
    }

    fn read<E: Engine, T>(
        &self,
        engine: &E,
        keyspace: &Keyspace,
        key: &[u8],
        take: impl FnOnce(Option<Record<'_>>) -> T,
    ) -> T {
        engine.read(&KeyRef::of(keyspace, self.member.id(), key), take)
    }

    /// The tail asks what this member holds, or lets it give another member what that should hold.
    pub(crate) fn handle_verify<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        fixed: &ChainVerifyBody,
        key: &[u8],
    ) -> Result<(), DropReason> {
        let directory = ctx.directory;
        let keyspace = directory.keyspace(self.member.partition.keyspace);
        let keyspace = keyspace.ok_or(DropReason::NoKeyspace)?;
        let answer = match fixed.kind {
            GIVE => {
                let wrong = wrong_of(fixed).ok_or(DropReason::BadBody)?;
                self.give(ctx, keyspace, usize::from(fixed.place), key, wrong);
                return Ok(());
            }
            PIECE => {
                if key.is_empty() {
                    // What is compared is counted, too: a store may have changed by itself.
                    self.begin_survey();
                }
                let count = fixed.count.clamp(1, PIECE_MAX);
                Answer::Piece(self.look_on(ctx.engine, keyspace, key, count))
            }
            KEY if !key.is_empty() => Answer::Key(self.look_at(ctx.engine, keyspace, key)),
            _ => return Err(DropReason::BadBody),
        };
        let tail = self.member.partition.tail().expect("every chain has a member");
        let place = self.member.partition.members().len() - 1;
        let Some(to) = directory.endpoint(tail, self.member.id()) else { return Ok(()) };
        let mut reply = self.member.message_header(ctx, place, Op::ChainVerified);
        RunPart::of(header).put(&mut reply);
        let (fixed, key) = put_answer(&answer);
        reply.key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
        ctx.out.push(to, |out| {
            wire::emit(out, &reply, &[&fixed.to_bytes(), key]);
        });
        Ok(())
    }

    /// Sends what is held of a key to a member that holds something wrong.
    pub(crate) fn give<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        keyspace: &Keyspace,
        place: usize,
        key: &[u8],
        wrong: Option<State>,
    ) {
        let member: Option<NodeId> = self.member.partition.members().get(place).copied();
        let to = member.and_then(|id| ctx.directory.endpoint(id, self.member.id()));
        let Some(to) = to.filter(|_| ctx.leased && place != self.member.position()) else { return };
        let mut header = self.member.message_header(ctx, place, Op::ChainMend);
        header.key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
        let at = KeyRef::of(keyspace, self.member.id(), key);
        let (engine, out) = (&*ctx.engine, &mut *ctx.out);
        engine.read(&at, |record| {
            let state = record.as_ref().map(state_of);
            let [right, was] = [state, wrong].map(numbers_of);
            let fixed = ChainMendBody {
                state: right.0,
                version: right.1,
                expiry_ms: right.2,
                wrong_state: was.0,
                wrong_version: was.1,
                wrong_expiry_ms: was.2,
                wrong_digest: was.3,
            };
            let value = record.map_or(&[][..], |record| record.value);
            out.push(to, |out| {
                wire::emit(out, &header, &[&fixed.to_bytes(), key, value]);
            });
        });
    }

    /// Takes what is right of a key, if it still holds what was found to be wrong.
    pub(crate) fn handle_mend<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        fixed: &ChainMendBody,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), DropReason> {
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        let keyspace = keyspace.ok_or(DropReason::NoKeyspace)?;
        let ChainMendBody { wrong_state, wrong_version, wrong_expiry_ms, wrong_digest, .. } =
            *fixed;
        let wrong = state_from(wrong_state, wrong_version, wrong_expiry_ms, wrong_digest);
        let wrong = wrong.ok_or(DropReason::BadBody)?;
        let at = KeyRef::of(keyspace, self.member.id(), key);
        let belongs = self.member.partition.holds(at.match_value);
        if !belongs || fixed.version > self.last_version {
            return Err(DropReason::BadBody);
        }
        if self.look_at(ctx.engine, keyspace, key).state != wrong {
            return Ok(());
        }
        // Nobody knows whether what is replaced was counted: all keys are counted anew.
        self.begin_survey();
        let tombstone = match VerifyState::from_wire(fixed.state) {
            Some(VerifyState::Nothing) => {
                ctx.engine.remove(&at);
                ctx.counters.mended += 1;
                let (propagations, tail) = self.as_tail();
                propagations.propagate_anew(ctx, &tail, key);
                return Ok(());
            }
            Some(VerifyState::Value) => false,
            Some(VerifyState::Deleted) => true,
            None => return Err(DropReason::BadBody),
        };
        let (version, expiry_ms) = (fixed.version, fixed.expiry_ms);
        self.write_state(ctx, &at, &Record { version, expiry_ms, tombstone, value });
        ctx.counters.mended += 1;
        // Copies of a hot key were made of what was wrong.
        let (propagations, tail) = self.as_tail();
        propagations.propagate_anew(ctx, &tail, key);
        Ok(())
    }
}

fn numbers_of(state: Option<State>) -> (u8, Version, u64, u64) {
    match state {
        None => (VerifyState::Nothing as u8, Version::NONE, 0, 0),
        Some(State { version, expiry_ms, tombstone, hash }) => {
            let kind = if tombstone { VerifyState::Deleted } else { VerifyState::Value };
            (kind as u8, version, expiry_ms, hash)
        }
    }
}

/// The outer `None`: that makes no sense.
fn state_from(kind: u8, version: Version, expiry_ms: u64, hash: u64) -> Option<Option<State>> {
    let state = |tombstone| Some(State { version, expiry_ms, tombstone, hash });
    Some(match VerifyState::from_wire(kind)? {
        VerifyState::Nothing => None,
        VerifyState::Value => state(false),
        VerifyState::Deleted => state(true),
    })
}

fn wrong_of(fixed: &ChainVerifyBody) -> Option<Option<State>> {
    state_from(fixed.state, fixed.version, fixed.expiry_ms, fixed.digest)
}

/// A question, or a wish to give.
pub(crate) fn put_wish(place: usize, wrong: Option<State>) -> ChainVerifyBody {
    let (state, version, expiry_ms, digest) = numbers_of(wrong);
    let place = u8::try_from(place).expect("chains are at most CHAIN_MAX long");
    ChainVerifyBody { kind: GIVE, count: 0, place, state, version, expiry_ms, digest }
}

fn put_answer(answer: &Answer) -> (ChainVerifiedBody, &[u8]) {
    match answer {
        Answer::Piece(piece) => {
            let Piece { count, digest, ref last, end, absurd } = *piece;
            let (kind, end) = (PIECE, end.into());
            let fixed = ChainVerifiedBody {
                kind,
                count,
                end,
                absurd,
                digest,
                ..ChainVerifiedBody::default()
            };
            (fixed, last)
        }
        Answer::Key(View { state, collected, newest, stable, owner }) => {
            let (state, version, expiry_ms, digest) = numbers_of(*state);
            let (collected, newest, stable, owner) = (*collected, *newest, *stable, *owner);
            let fixed = ChainVerifiedBody {
                kind: KEY,
                state,
                version,
                expiry_ms,
                digest,
                collected,
                newest,
                stable,
                owner,
                ..ChainVerifiedBody::default()
            };
            (fixed, &[])
        }
    }
}

/// What a member has answered, if it makes sense.
pub(crate) fn take_answer(fixed: &ChainVerifiedBody, last: &[u8]) -> Option<Answer> {
    let ChainVerifiedBody { count, end, absurd, version, expiry_ms, digest, .. } = *fixed;
    match fixed.kind {
        PIECE => {
            let end = end != 0;
            Some(Answer::Piece(Piece { count, digest, last: last.into(), end, absurd }))
        }
        KEY => {
            let state = state_from(fixed.state, version, expiry_ms, digest)?;
            let ChainVerifiedBody { collected, newest, stable, owner, .. } = *fixed;
            Some(Answer::Key(View { state, collected, newest, stable, owner }))
        }
        _ => None,
    }
}

/// Kinds of CHAIN_VERIFY and CHAIN_VERIFIED.
pub(crate) const PIECE: u8 = 0;
pub(crate) const KEY: u8 = 1;
pub(crate) const GIVE: u8 = 2;

/// Values in one piece: their digest takes a shard a fraction of a millisecond.
pub(crate) const PIECE_MAX: u16 = 256;

/// Records that one question makes a shard look at, deleted ones with them.
const LOOKED_AT_MAX: usize = 1_024;
