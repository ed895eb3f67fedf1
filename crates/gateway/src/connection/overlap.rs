//! What a connection has under way, and what may overlap with it: commands about other keys, and
//! GETs of one key with each other. A command that may not overlap with one before is under way
//! too, but begun when that has been answered; so it holds up nothing but what is about its key.
//!
//! A GET that waits for a plain SET needs not be carried out: what it may tell at the moment at
//! which that SET took effect is what was set.
//!
//! A plain SET that waits needs not be carried out either if another one of its key comes right
//! behind it: that one carries it. What it has written nobody could have read: it takes effect just
//! before the one that carries it, which was begun later and is answered with the same reply. So of
//! any number of SETs that come while one of their key is under way only the last is sent.
//!
//! A client takes replies in the order of its commands, and never may a later one show an older
//! state of a key than an earlier one. GETs that overlap can be carried out in any order. If the
//! later one read an older version, it read before the earlier one did; so that moment of the
//! earlier one lies after the later one was begun, and before either is answered. The later one may
//! take effect there too, and is answered with the same value.
//!
//! A reply without a value has no version. If one of two GETs found nothing and the other did, the
//! later one is run again when its turn to be answered has come: then all before it are done, and
//! it reads after them. So is a GET of a value that streams, of which there is one at a time.

use crate::Reply;
use crate::store::Seen;
use bytes::Bytes;
use std::collections::VecDeque;
use std::mem;
use wire::Version;

/// Commands that are under way, in their order.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    commands: VecDeque<Command>,
    /// How many were under way before the first of them.
    done: u64,
    /// The [`tag`]s of their keys, by which a key is looked for.
    tags: VecDeque<u64>,
    /// Those whose turn has come and that were not begun yet.
    turns: VecDeque<Turn>,
}

/// A command that may be begun, by its number; and the value that its key has by the one before it,
/// if that is known.
pub(super) type Turn = (u64, Option<Bytes>);

#[derive(Debug)]
struct Command {
    /// Its one key; empty if it overlaps with nothing.
    key: Bytes,
    kind: Kind,
    /// The command of the same key that has to be answered before this one is begun.
    after: Option<u64>,
    /// Those that have to be begun after this one.
    waiting: Vec<u64>,
    /// SETs before it that are never begun, and end as it does.
    carried: Vec<u64>,
    /// Which GET of the same key was started next, while this one was under way.
    next: Option<u64>,
    /// What the client has been told of the key by GETs that this one overlaps with.
    told: Option<Box<Shown>>,
    /// Whether it was run again, after all before it.
    again: bool,
}

/// What a command does with its key.
#[derive(Debug)]
pub(super) enum Kind {
    Get,
    /// Sets this value, without any condition or expiry: it is there if the reply is OK.
    Set(Bytes),
    Other,
}

/// The newest state of a key that a reply showed.
#[derive(Debug)]
enum Shown {
    Absent,
    /// The value, if it can be told again.
    Version(Version, Option<Bytes>),
}

/// Where a command stands among those of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// None of them is under way.
    Apart,
    /// It is a GET that overlaps with GETs, of which this is the last.
    Beside(u64),
    /// It may not overlap with those under way, of which this is the last.
    After(u64),
}

/// What becomes of a command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is answered with the reply, which may have become another one.
    Answer,
    /// It is a GET that has to be run again before anything behind it is answered.
    Again,
}

/// What a GET is answered with, given what the client has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// What it read.
    Own,
    /// What was told before.
    Shown,
    /// Nothing yet.
    Again,
}

/// The last eight bytes of a key, in which most keys differ.
fn tag(key: &[u8]) -> u64 {
    key.iter().rev().take(8).fold(0, |tag, &byte| tag << 8 | u64::from(byte))
}

impl UnderWay {
    /// Where a command about that key stands if it comes now.
    fn place(&self, key: &[u8], kind: &Kind) -> Overlap {
        let tag = tag(key);
        let tagged = self.tags.iter().enumerate().rev().filter(|(_, other)| **other == tag);
        let mut found = tagged.filter_map(|(at, _)| Some((at, self.commands.get(at)?)));
        let Some((last, command)) = found.find(|(_, it)| it.key == key) else {
            return Overlap::Apart;
        };
        let number = self.done + last as u64;
        match (kind, &command.kind) {
            (Kind::Get, Kind::Get) => Overlap::Beside(number),
            _ => Overlap::After(number),
        }
    }

    /// A command is under way from now on. Its key is empty if it overlaps with nothing. Returns
    /// its place, and whether it has to wait for its [turn](Self::next_turn) before it is begun.
    pub(super) fn push(&mut self, key: Bytes, kind: Kind) -> (Overlap, bool) {
        let place = self.place(&key, &kind);
        let spared = if let Overlap::After(last) = place { self.spared(last, &kind) } else { None };
        self.push_at(place, spared, key, kind)
    }

    /// The same at that place; it carries the SET that it spares, if there is one.
    fn push_at(
        &mut self,
        place: Overlap,
        spared: Option<u64>,
        key: Bytes,
        kind: Kind,
    ) -> (Overlap, bool) {
        let number = self.done + self.commands.len() as u64;
        let mut carried = Vec::new();
        let after = match (place, spared) {
            (_, Some(spared)) => {
                let it = self.command(spared);
                carried = mem::take(&mut it.carried);
                carried.push(spared);
                it.after
            }
            (Overlap::Apart, None) => None,
            (Overlap::After(last), None) => Some(last),
            (Overlap::Beside(last), None) => {
                let last = self.command(last);
                last.next = Some(number);
                last.after
            }
        };
        let after = after.filter(|&it| it >= self.done);
        if let Some(before) = after {
            let waiting = &mut self.command(before).waiting;
            waiting.retain(|it| Some(*it) != spared);
            waiting.push(number);
        }
        self.tags.push_back(tag(&key));
        let (next, told, again, waiting) = (None, None, false, Vec::new());
        self.commands.push_back(Command { key, kind, after, waiting, carried, next, told, again });
        (place, after.is_some())
    }

    /// The command before one of its key, if that need not be carried out because of it: a SET that
    /// waits.
    fn spared(&mut self, last: u64, kind: &Kind) -> Option<u64> {
        let done = self.done;
        let before = self.command(last);
        let waits = before.after.is_some_and(|it| it >= done);
        let both_set = matches!((&before.kind, kind), (Kind::Set(_), Kind::Set(_)));
        (waits && both_set).then_some(last)
    }

    /// A command was carried out: the SETs that it carries end as it does.
    pub(super) fn take_carried(&mut self, number: u64) -> Vec<u64> {
        mem::take(&mut self.command(number).carried)
    }

    /// The first command was carried out, with that reply. If it is not to be run again, it is
    /// under way no more.
    pub(super) fn finish(&mut self, reply: &mut Reply, seen: Seen) -> Verdict {
        let first = self.commands.front_mut().expect("a command was carried out");
        let choice = match &first.told {
            Some(told) if !first.again => told.choose(seen),
            _ if seen == Seen::Unread => Choice::Again,
            _ => Choice::Own,
        };
        if choice == Choice::Again {
            first.again = true;
            return Verdict::Again;
        }
        let mut told = first.told.take();
        if let (Choice::Shown, Some(Shown::Version(_, Some(value)))) = (choice, told.as_deref()) {
            *reply = Reply::Bulk(value.clone());
        }
        let next = first.next;
        let value = match &first.kind {
            Kind::Set(value) if *reply == Reply::OK => Some(value),
            _ => None,
        };
        self.turns.extend(first.waiting.drain(..).map(|number| (number, value.cloned())));
        self.commands.pop_front();
        self.tags.pop_front();
        self.done += 1;
        if let Some(next) = next {
            if choice == Choice::Own {
                Shown::note(&mut told, seen, reply);
            }
            self.command(next).told = told;
        }
        Verdict::Answer
    }

    /// The next command that had to wait and may be begun.
    pub(super) fn next_turn(&mut self) -> Option<Turn> {
        self.turns.pop_front()
    }

    /// The number of the command that is to be answered next.
    pub(super) fn first(&self) -> u64 {
        self.done
    }

    fn command(&mut self, number: u64) -> &mut Command {
        let index = usize::try_from(number - self.done).ok();
        let command = index.and_then(|index| self.commands.get_mut(index));
        command.expect("who names a command knows that it is under way")
    }
}

impl Shown {
    /// What a GET that overlaps with those that told this is answered with.
    fn choose(&self, seen: Seen) -> Choice {
        match (self, seen) {
            // What says nothing of the key contradicts nobody.
            (_, Seen::Nothing) | (Self::Absent, Seen::Absent) => Choice::Own,
            (Self::Version(told, _), Seen::Version(read)) if read >= *told => Choice::Own,
            (Self::Version(_, Some(_)), Seen::Version(_)) => Choice::Shown,
            (Self::Version(_, None), Seen::Version(_))
            | (Self::Version(..), Seen::Absent)
            | (Self::Absent, Seen::Version(_))
            | (_, Seen::Unread) => Choice::Again,
        }
    }

    /// Notes what a GET is answered with.
    fn note(told: &mut Option<Box<Self>>, seen: Seen, reply: &Reply) {
        let new = match (told.as_deref(), seen) {
            (_, Seen::Nothing | Seen::Unread) | (Some(Self::Absent), Seen::Absent) => return,
            // The value that is kept already.
            (Some(Self::Version(told, _)), Seen::Version(read)) if *told == read => return,
            (_, Seen::Absent) => Self::Absent,
            (_, Seen::Version(version)) => {
                let value = if let Reply::Bulk(value) = reply { Some(value.clone()) } else { None };
                Self::Version(version, value)
            }
        };
        match told {
            Some(told) => **told = new,
            None => *told = Some(Box::new(new)),
        }
    }
}

#[cfg(test)]
mod tests;
