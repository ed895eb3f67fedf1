//! Commands that are under way: how they are begun, and answered in their order.
//!
//! Most commands are one request and one reply. For those there is no future: what a turn has read
//! is handed to the client together, each request under the number of its command, and what comes
//! back together is taken together. The others have a future each.

use super::Connection;
use super::call::{Call, Completion, KeyedCall, Slot, Stage};
use super::overlap::{Kind, NamedKeys, Overlap, UnderWay, Verdict};
use crate::Reply;
use crate::command::{self, Keyed, Run};
use crate::store::{Incoming, Plan, Settled, Watched, can_be_set};
use bytes::Bytes;
use client::Outcome;
use futures_util::stream::StreamExt as _;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// Commands under way at once whose places are kept for the next.
const KEPT_COMMANDS_MAX: usize = 16;

impl Connection {
    /// A command about keys is under way from now on: about these, or alone if there are none.
    pub(super) fn start_keyed(&mut self, command: Keyed, keys: NamedKeys, call: Call) {
        self.alone = keys.is_empty();
        let kind = match (command, call.args.as_slice()) {
            (Keyed::Get | Keyed::MGet, _) => Kind::Get,
            (Keyed::Set, [_, key, value]) if self.incoming.is_none() && can_be_set(key, value) => {
                Kind::Set(value.clone())
            }
            _ => Kind::Other,
        };
        let incoming = self.incoming.take().map(Box::new);
        let (place, waits) = self.under_way.push(keys, kind);
        let work = KeyedCall { command, streams: !matches!(place, Overlap::Beside(_)) };
        let number = self.add(call, Stage::Waits(work, incoming));
        if !waits {
            self.begin(number, None);
        }
    }

    /// Something that overlaps with nothing is under way.
    pub(super) fn run_alone(
        &mut self,
        call: Call,
        run: impl Future<Output = Completion> + Send + 'static,
    ) {
        self.alone = true;
        self.under_way.push(NamedKeys::new(), Kind::Other);
        let number = self.add(call, Stage::Runs);
        self.running.push(Box::pin(async move { (number, None, run.await) }));
    }

    /// The same of something that has its reply, which comes behind those of what is under way.
    pub(super) fn end_behind(&mut self, call: Call, reply: Reply) {
        self.under_way.push(NamedKeys::new(), Kind::Other);
        let number = self.add(call, Stage::Runs);
        self.note_end(number, reply.into());
    }

    fn add(&mut self, call: Call, stage: Stage) -> u64 {
        self.slots.push_back(Slot { call, stage });
        self.under_way.first() + self.slots.len() as u64 - 1
    }

    /// The turn of a command has come. A GET whose reply is known need not be carried out.
    fn begin(&mut self, number: u64, known: Option<Reply>) {
        let now = self.now;
        let Some(slot) = self.slot(number) else { return };
        slot.call.began = now;
        let Stage::Waits(work, incoming) = mem::replace(&mut slot.stage, Stage::Runs) else {
            return;
        };
        if let Some(reply) = known.and_then(|it| as_read(work.command, &slot.call.args, it)) {
            self.note_end(number, reply.into());
        } else if incoming.is_some() {
            self.spawn(number, work, incoming);
        } else {
            match Plan::of(work.command, &slot.call.args) {
                Ok(Some(plan)) => {
                    slot.stage = Stage::Planned(work, plan);
                    self.planned.push(number);
                }
                Ok(None) => self.spawn(number, work, None),
                Err(reply) => self.note_end(number, reply.into()),
            }
        }
    }

    /// A command was carried out, and with it those that it carries.
    fn note_end(&mut self, number: u64, ended: Completion) {
        let Completion { reply, sights, watched } = ended;
        let Some(slot) = self.slot(number) else { return };
        let began = slot.call.began;
        slot.stage = Stage::Ended(watched);
        for carried in self.under_way.end(number, reply, sights) {
            if let Some(slot) = self.slot(carried) {
                slot.call.began = began;
                slot.stage = Stage::Ended(None);
            }
        }
    }

    /// Begins what has waited for others and need not any more.
    fn begin_turns(&mut self) {
        while let Some((number, known)) = self.under_way.next_turn() {
            self.begin(number, known);
        }
    }

    /// Has a future carry a command out.
    fn spawn(
        &mut self,
        number: u64,
        work: KeyedCall,
        incoming: Option<Box<Result<Incoming, Reply>>>,
    ) {
        let store = Arc::clone(&self.store);
        self.under_way.note_sent(number);
        let Some(slot) = self.slot(number) else { return };
        slot.stage = Stage::Runs;
        let args = mem::take(&mut slot.call.args);
        self.running.push(Box::pin(async move {
            let ended = match (work, incoming.map(|incoming| *incoming)) {
                (KeyedCall { command: Keyed::Get, streams }, _) => {
                    let key = args.get(1).expect("a GET has a key");
                    store.get_and_tell(key, streams).await.into()
                }
                (KeyedCall { command: Keyed::MGet, .. }, _) => {
                    let keys = args.get(1..).unwrap_or_default();
                    Box::pin(store.values_and_sights(keys)).await.into()
                }
                (_, None) => store.run(work.command, &args).await.into(),
                (_, Some(Ok(value))) => Box::pin(store.set_incoming(value, &args)).await.into(),
                (_, Some(Err(why))) => why.into(),
            };
            (number, Some(args), ended)
        }));
    }

    /// Hands all requests that were planned to the client.
    pub(super) fn ask(&mut self) {
        if self.planned.is_empty() {
            return;
        }
        let mut planned = mem::take(&mut self.planned);
        planned.iter().for_each(|number| self.under_way.note_sent(*number));
        let mut opening = self.inbox.open();
        planned.retain(|&number| {
            let Some(slot) = slot_of(&mut self.slots, &self.under_way, number) else {
                return false;
            };
            let Stage::Planned(work, plan) = slot.stage else { return false };
            let begun = plan.lend(&slot.call.args, |request| opening.begin(number, request));
            if begun {
                slot.stage = Stage::Asked(work, plan);
            }
            !begun
        });
        drop(opening);
        // Too many wait already; futures wait until there is room.
        for number in planned.drain(..) {
            if let Some(Slot { stage: Stage::Planned(work, _), .. }) = self.slot(number) {
                let work = *work;
                self.spawn(number, work, None);
            }
        }
        self.planned = planned;
    }

    /// Takes all that is done, up to a reply whose bytes still come.
    pub(super) fn poll_running(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.streaming.is_some() || self.slots.is_empty() {
            return Poll::Pending;
        }
        let mut outcomes = mem::take(&mut self.outcomes);
        let came = self.inbox.poll_outcomes(context, &mut outcomes).is_ready();
        let mut any = came;
        if came {
            self.now = Instant::now();
        }
        for (number, outcome) in outcomes.drain(..) {
            self.settle(number, outcome);
        }
        self.outcomes = outcomes;
        while !self.running.is_empty()
            && let Poll::Ready(Some((number, args, ended))) = self.running.poll_next_unpin(context)
        {
            any = true;
            self.now = Instant::now();
            let Some(slot) = self.slot(number) else { continue };
            slot.call.args = args.unwrap_or_else(|| mem::take(&mut slot.call.args));
            self.note_end(number, ended);
        }
        self.begin_turns();
        any |= self.answer();
        if any { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The request of a command has ended.
    fn settle(&mut self, number: u64, outcome: Outcome<client::Reply>) {
        let Some(slot) = slot_of(&mut self.slots, &self.under_way, number) else { return };
        let Stage::Asked(work, plan) = slot.stage else { return };
        match self.store.take_outcome(plan, &slot.call.args, outcome) {
            Settled::Reply(reply, sights) => self.note_end(number, (reply, sights).into()),
            Settled::Again => self.spawn(number, work, None),
            Settled::Rest(args) => {
                slot.stage = Stage::Runs;
                let store = Arc::clone(&self.store);
                self.running.push(Box::pin(async move {
                    (number, None, store.run(work.command, &args).await.into())
                }));
            }
            Settled::Found(found) => {
                slot.stage = Stage::Runs;
                let (args, store) = (mem::take(&mut slot.call.args), Arc::clone(&self.store));
                self.running.push(Box::pin(async move {
                    let key = args.get(1).expect("a GET has a key");
                    let ended = store.tell(key, found, work.streams).await.into();
                    (number, Some(args), ended)
                }));
            }
        }
    }

    /// Answers those that are done, in their order, up to a reply whose bytes still come; whether
    /// there was one.
    fn answer(&mut self) -> bool {
        let mut any = false;
        while self.streaming.is_none()
            && let Some(Slot { stage: Stage::Ended(_), .. }) = self.slots.front()
            && let Some(Slot { call, stage: Stage::Ended(watched) }) = self.slots.pop_front()
        {
            any = true;
            match self.under_way.answer() {
                Verdict::Answer(reply) => self.finish(&call, &reply, watched),
                Verdict::Again => self.read_again(call),
            }
        }
        if any {
            self.count_calls();
            self.peer.entry.note_active(self.since_start());
        }
        any
    }

    /// The first command, a read, is carried out again.
    fn read_again(&mut self, call: Call) {
        let spec = command::numbered().get(call.number);
        let Some(Run::Keyed(command)) = spec.map(|it| it.run) else { return };
        self.slots.push_front(Slot { call, stage: Stage::Runs });
        self.spawn(self.under_way.first(), KeyedCall { command, streams: true }, None);
    }

    /// What was under way first is done.
    fn finish(&mut self, call: &Call, reply: &Reply, watched: Option<Watched>) {
        self.alone = false;
        if self.slots.is_empty() && self.slots.capacity() > KEPT_COMMANDS_MAX {
            // What they have grown to is not kept for a client that may never need it again.
            (self.slots, self.planned, self.outcomes) = Default::default();
            self.under_way = UnderWay::default();
        }
        if let Some(watched) = watched {
            self.watches(watched);
        }
        self.end_call(call, reply);
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        slot_of(&mut self.slots, &self.under_way, number)
    }
}

/// The place of a command that is under way, by its number.
fn slot_of<'a>(
    slots: &'a mut VecDeque<Slot>,
    under_way: &UnderWay,
    number: u64,
) -> Option<&'a mut Slot> {
    let index = number.checked_sub(under_way.first())?;
    slots.get_mut(usize::try_from(index).ok()?)
}

/// The reply to a command that reads one key, given that to a GET of it; `None` to all others.
fn as_read(command: Keyed, args: &[Bytes], reply: Reply) -> Option<Reply> {
    match (command, args, reply) {
        (Keyed::Get, _, reply) | (Keyed::MGet, [_, _], reply @ Reply::Error(_)) => Some(reply),
        (Keyed::MGet, [_, _], value) => Some(Reply::Array(vec![value])),
        _ => None,
    }
}
