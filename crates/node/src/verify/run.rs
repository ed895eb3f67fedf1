//! The comparison of one partition, as its tail leads it.
//!
//! ```text
//!   tail ── CHAIN_VERIFY: the 256 values after "m"? ──▶ every other member
//!   tail ◀──── CHAIN_VERIFIED: digest, last key ─────── each of them
//!      all alike:  on, behind the last key
//!      else:       an eighth as many, down to one; then that one key, until it is settled
//! ```
//!
//! Writes go on meanwhile. A piece in which something is written looks different until only that
//! key is left to look at, and of a key there are versions to go by.

use super::judge::{Broken, State, Verdict, View, absurd, judge};
use super::look::{Answer, KEY, PIECE, PIECE_MAX, Piece, put_wish};
use crate::engine::Engine;
use crate::replica::Replica;
use crate::shard::context::Context;
use cluster::{DIFFERENCES_MAX, Difference, Epoch, Keyspace, Match, Mutant, PartitionId};
use cluster::{Verification, VerifyOrder};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{ChainVerifyBody, Header, Op, RunPart, Version};

/// A comparison under way.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) sum: Verification,
    mend: bool,
    /// Tells its questions from those of an earlier run in the same epoch.
    run: u64,
    /// Number of the last question.
    number: u64,
    question: Question,
    /// What this node, and what the others have answered, by their places; `None` while no question
    /// is out.
    answers: Option<BTreeMap<usize, Answer>>,
    /// Up to which version everything was committed everywhere when the question was asked.
    stable: Version,
    /// The same, as members have said in answer to earlier questions.
    heard_stable: Version,
    /// When to ask next, or again.
    pub(crate) due: Instant,
}

#[derive(Clone, Debug)]
enum Question {
    /// So many values after this key; from the beginning if it is empty.
    Piece { after: Box<[u8]>, count: u16 },
    /// This key, which was looked at so often, and that often after somebody was given what is
    /// right.
    Key { key: Box<[u8]>, looks: u8, given: u8, listed: bool },
}

impl Run {
    pub(crate) fn new(now: Instant, order: &VerifyOrder, replica: &Replica) -> Self {
        let sum = Verification {
            partition: replica.member.id(),
            epoch: replica.member.epoch(),
            number: order.number,
            members: u8::try_from(replica.member.partition.members().len()).unwrap_or(u8::MAX),
            ..Verification::default()
        };
        let question = Question::Piece { after: Box::default(), count: PIECE_MAX };
        Self {
            sum,
            mend: order.mend,
            run: now.0,
            number: 0,
            question,
            answers: None,
            stable: Version::NONE,
            heard_stable: Version::NONE,
            due: now,
        }
    }

    pub(crate) fn partition(&self) -> PartitionId {
        self.sum.partition
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.sum.epoch
    }

    /// Asks, or asks again those who have not answered in time.
    pub(crate) fn go_on<E: Engine>(&mut self, ctx: &mut Context<'_, E>, replica: &Replica) {
        self.due = ctx.now + RESEND;
        let directory = ctx.directory;
        let keyspace = directory.keyspace(replica.member.partition.keyspace).filter(|_| ctx.leased);
        let Some(keyspace) = keyspace else { return };
        if self.answers.is_none() {
            self.number += 1;
            self.stable = replica.history.stable().max(self.heard_stable);
            let own = match &self.question {
                Question::Piece { after, count } => {
                    Answer::Piece(replica.look_on(ctx.engine, keyspace, after, *count))
                }
                Question::Key { key, .. } => {
                    Answer::Key(replica.look_at(ctx.engine, keyspace, key))
                }
            };
            self.answers = Some(BTreeMap::from([(replica.member.position(), own)]));
        }
        let answered =
            |place: &usize| self.answers.as_ref().is_some_and(|it| it.contains_key(place));
        let members = 0..replica.member.partition.members().len();
        let missing: Vec<usize> = members.filter(|place| !answered(place)).collect();
        let (fixed, key) = match &self.question {
            Question::Piece { after, count } => {
                (ChainVerifyBody { kind: PIECE, count: *count, ..Default::default() }, after)
            }
            Question::Key { key, .. } => (ChainVerifyBody { kind: KEY, ..Default::default() }, key),
        };
        for place in missing {
            send(ctx, replica, place, self.part(), &fixed, key);
        }
    }

    fn part(&self) -> RunPart {
        RunPart { run: self.run, number: self.number }
    }

    /// A member has answered.
    pub(crate) fn take<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        replica: &Replica,
        header: &Header,
        answer: Answer,
    ) {
        if RunPart::of(header) != self.part() {
            return;
        }
        let members = replica.member.partition.members();
        let place = members.iter().position(|id| id.0 == header.node);
        let (Some(place), Some(answers)) = (place, &mut self.answers) else { return };
        answers.insert(place, answer);
        if answers.len() < members.len() {
            return;
        }
        let Some(answers) = self.answers.take() else { return };
        let directory = ctx.directory;
        let Some(keyspace) = directory.keyspace(replica.member.partition.keyspace) else { return };
        let (mut pieces, mut views) = (Vec::new(), Vec::new());
        for answer in answers.into_values() {
            match answer {
                Answer::Piece(piece) => pieces.push(piece),
                Answer::Key(view) => views.push(view),
            }
        }
        self.due = ctx.now + PACE;
        match self.question.clone() {
            Question::Piece { count, .. } if pieces.len() == members.len() => {
                self.compare(replica, keyspace, &pieces, count);
            }
            Question::Key { key, looks, given, listed } if views.len() == members.len() => {
                let tries = Tries { looks: looks.saturating_add(1), given, listed };
                self.decide(ctx, replica, keyspace, key, &views, tries);
                let stable = views.iter().map(|view| view.stable).max().unwrap_or(Version::NONE);
                self.heard_stable = self.heard_stable.max(stable);
            }
            // Somebody answered another question; ask again.
            Question::Piece { .. } | Question::Key { .. } => {}
        }
    }

    fn compare(&mut self, replica: &Replica, keyspace: &Keyspace, pieces: &[Piece], count: u16) {
        let Some(own) = pieces.last() else { return };
        if pieces.iter().all(|piece| piece.is_same(own)) {
            self.sum.found.keys += u64::from(own.count);
            let absurd: u64 = pieces.iter().map(|piece| u64::from(piece.absurd)).sum();
            self.sum.found.absurd = self.sum.found.absurd.saturating_add(absurd);
            let (after, end) = (own.last.clone(), own.end);
            return self.advance(replica, keyspace, after, count.saturating_mul(2), end);
        }
        if count > 1 {
            let Question::Piece { count, .. } = &mut self.question else { return };
            *count = (*count / 8).max(1);
            return;
        }
        let order = |key: &[u8]| (keyspace.match_value(key), key.to_vec());
        let found = pieces.iter().filter(|piece| piece.count > 0);
        let first = found.map(|piece| order(&piece.last)).min();
        let cut = pieces.iter().filter(|piece| piece.count == 0 && !piece.end);
        let cut = cut.map(|piece| order(&piece.last)).min();
        match (first, cut) {
            // Somebody has not yet come to where others have a value.
            (first, Some(cut)) if first.as_ref().is_none_or(|first| cut < *first) => {
                self.advance(replica, keyspace, cut.1.into(), 1, false);
            }
            (Some((_, key)), _) => {
                let key = key.into();
                self.question = Question::Key { key, looks: 0, given: 0, listed: false };
            }
            (None, _) => self.advance(replica, keyspace, Box::default(), 1, true),
        }
    }

    /// All keys up to this one are dealt with.
    fn advance(
        &mut self,
        replica: &Replica,
        keyspace: &Keyspace,
        after: Box<[u8]>,
        count: u16,
        end: bool,
    ) {
        if end {
            (self.sum.done, self.sum.permille) = (true, 1_000);
            return;
        }
        let at: Match = keyspace.match_value(&after);
        self.sum.permille = replica.member.area().thousandths_before(at).min(999);
        self.question = Question::Piece { after, count: count.clamp(1, PIECE_MAX) };
    }

    fn decide<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        replica: &Replica,
        keyspace: &Keyspace,
        key: Box<[u8]>,
        views: &[View],
        tries: Tries,
    ) {
        let broken = Broken {
            ignores_deletes: ctx.mutant.is(Mutant::VerifyIgnoresDeletes),
            mends_minority: ctx.mutant.is(Mutant::VerifyMendsMinority),
        };
        let verdict = judge(views, self.stable, broken);
        let Tries { looks, mut given, mut listed } = tries;
        let again = match &verdict {
            Verdict::Same => {
                self.sum.found.keys += 1;
                if given > 0 {
                    self.sum.found.mended += 1;
                    let last = self.sum.found.first.iter_mut().find(|it| *it.key == *key);
                    last.into_iter().for_each(|it| it.mended = true);
                }
                false
            }
            Verdict::Moving => {
                let goes_on = looks < MOVING_LOOKS;
                self.sum.found.moving += u64::from(!goes_on);
                goes_on
            }
            Verdict::Certain { .. } | Verdict::Uncertain if looks < LOOKS => true,
            Verdict::Certain { right, wrong } => {
                self.list(&key, views, &mut listed);
                let tries_on = self.mend && given < GIVES;
                if tries_on {
                    let member = |place: usize| views.get(place).and_then(|view| view.state);
                    for wrong in wrong.iter().copied() {
                        let wish = (wrong, member(wrong));
                        self.order_gift(ctx, replica, keyspace, *right, &key, wish);
                    }
                    given += 1;
                }
                tries_on
            }
            Verdict::Uncertain => {
                self.list(&key, views, &mut listed);
                false
            }
        };
        if again {
            self.due = ctx.now + LOOK_AGAIN;
            self.question = Question::Key { key, looks, given, listed };
        } else {
            self.advance(replica, keyspace, key, AFTER_KEY, false);
        }
    }

    /// Counts a different key, once.
    fn list(&mut self, key: &[u8], views: &[View], listed: &mut bool) {
        if std::mem::replace(listed, true) {
            return;
        }
        self.sum.found.different += 1;
        self.sum.found.absurd += absurd(views);
        if self.sum.found.first.len() < DIFFERENCES_MAX {
            let version = |view: &View| view.state.map(|state| state.version);
            let versions = views.iter().map(version).collect();
            self.sum.found.first.push(Difference { key: key.to_vec(), versions, mended: false });
        }
    }

    /// Lets the member in one place give another one what that should hold.
    fn order_gift<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        replica: &Replica,
        keyspace: &Keyspace,
        right: usize,
        key: &[u8],
        (place, wrong): (usize, Option<State>),
    ) {
        if right == replica.member.position() {
            replica.give(ctx, keyspace, place, key, wrong);
        } else {
            send(ctx, replica, right, self.part(), &put_wish(place, wrong), key);
        }
    }
}

/// How often a key was looked at, and what was done about it.
struct Tries {
    looks: u8,
    given: u8,
    listed: bool,
}

fn send<E: Engine>(
    ctx: &mut Context<'_, E>,
    replica: &Replica,
    place: usize,
    part: RunPart,
    fixed: &ChainVerifyBody,
    key: &[u8],
) {
    let member = replica.member.partition.members().get(place);
    let to = member.and_then(|id| ctx.directory.endpoint(*id, replica.member.id()));
    let Some(to) = to else { return };
    let mut header = replica.member.message_header(ctx, place, Op::ChainVerify);
    part.put(&mut header);
    header.key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
    ctx.out.push(to, |out| {
        wire::emit(out, &header, &[&fixed.to_bytes(), key]);
    });
}

/// From one question to the next: a shard is busy with comparing for a tenth of the time at most,
/// and gets through 50,000 values a second.
const PACE: Duration = Duration::from_millis(5);
/// A member that has not answered is asked again.
const RESEND: Duration = Duration::from_millis(50);
/// A key that differs is looked at so often before that is believed, and as much later each time.
const LOOKS: u8 = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// A key that is written all the time is given up after so many looks, two seconds.
const MOVING_LOOKS: u8 = 20;
/// What is right is sent so often: datagrams are lost.
const GIVES: u8 = 5;
/// Values in the first piece after a key that was looked at alone.
const AFTER_KEY: u16 = 32;
