//! What a connection has under way, and what may overlap with it: commands about other keys, and
//! GETs of one key with each other. A command that may not overlap with one before is under way
//! too, but begun when that has been answered; so it holds up nothing but what is about its key.
//!
//! A GET that waits for a plain SET needs not be carried out: what it may tell at the moment at
//! which that SET took effect is what was set.
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
    /// If it replies OK, this is its value from then on.
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
        let number = self.done + self.commands.len() as u64;
        let after = match place {
            Overlap::Apart => None,
            Overlap::After(last) => Some(last),
            Overlap::Beside(last) => {
                let last = self.command(last);
                last.next = Some(number);
                last.after
            }
        };
        let after = after.filter(|&it| it >= self.done);
        if let Some(before) = after {
            self.command(before).waiting.push(number);
        }
        self.tags.push_back(tag(&key));
        let (told, again, waiting) = (None, false, Vec::new());
        self.commands.push_back(Command { key, kind, after, waiting, next: None, told, again });
        (place, after.is_some())
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
