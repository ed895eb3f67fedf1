//! What a connection has under way, and what may overlap with it: commands about other keys, and
//! reads of one key with each other. A command that may not overlap with one before is under way
//! too, but begun when that has been settled: when it is known what it is answered with, even if
//! others are to be answered before. So it holds up nothing but what is about its key.
//!
//! A GET that came before a plain SET for which it waits was sent needs not be carried out: what it
//! may tell at the moment at which that SET took effect is what was set. One that came later may
//! not be told that: others may have written the key after the SET, and been answered, before it
//! came. Nor may one behind an MGET of the key, which reads later.
//!
//! A plain SET that waits needs not be carried out either if another one of its key comes, and
//! nothing but GETs of that key lies between them: the later one carries it. What it has written
//! nobody else could have read: it takes effect just before the one that carries it, which was
//! begun later and is answered with the same reply. There the GETs between them take place, too:
//! they are told what it has set, or the same error. So of any number of SETs and GETs that come
//! while a SET of their key is under way only the last SET is sent.
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
//!
//! An MGET reads each of its keys for itself, as so many GETs would: it overlaps with what they
//! would overlap with, waits until the last of them could be begun, and each of its values is
//! chosen as theirs would be. If one of them had to be run again, all of it is.

use crate::Reply;
use crate::store::{Seen, Sights};
use bytes::Bytes;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::mem;
use wire::Version;

/// Commands that are under way, in their order.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    commands: VecDeque<Command>,
    /// How many were under way before the first of them.
    done: u64,
    /// Of each key the command that was started last.
    last: HashMap<Bytes, UsePlace>,
    /// Keys of them all, those of one command that are alike as often as it names them.
    keys: usize,
    /// Those whose turn has come and that were not begun yet.
    turns: VecDeque<Turn>,
}

/// A command that may be begun, by its number; and what it is answered with if it is a GET, where
/// that is known from the one before it.
pub(super) type Turn = (u64, Option<Reply>);

/// The keys of a command, in their order; none if it overlaps with nothing.
pub(super) type NamedKeys = SmallVec<[Bytes; 1]>;

#[derive(Debug)]
struct Command {
    uses: SmallVec<[Use; 1]>,
    kind: Kind,
    /// Of how many of its keys others have to be settled before it is begun.
    waits: usize,
    /// Those that have to be begun after this one, each for every key for which it waits.
    waiting: Vec<u64>,
    /// SETs before it that are never begun, and end as it does.
    carried: Vec<u64>,
    /// Whether it may have taken effect.
    sent: bool,
    /// Whether it was run again, after all before it.
    again: bool,
    /// What came of it, if it was carried out.
    ended: Option<(Reply, Sights)>,
    /// Whether that is what it is answered with: nothing need wait for it any more.
    settled: bool,
}

/// What a command has to do with one of its keys.
#[derive(Debug)]
struct Use {
    key: Bytes,
    /// The command that has to be settled before this one is begun, because of this key.
    after: Option<u64>,
    /// Whether it may take place where that one takes effect: it came before that was sent, and so
    /// may all reads between them.
    in_time: bool,
    /// Whether a read of the same key that this one overlaps with is to be settled first.
    behind: bool,
    /// Which read of the same key was started next, while this one was under way.
    next: Option<UsePlace>,
    /// What the client has been told of the key by reads that this one overlaps with.
    told: Option<Box<Shown>>,
}

/// One of the keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UsePlace {
    command: u64,
    index: usize,
}

/// What a command does with its keys.
#[derive(Debug)]
pub(super) enum Kind {
    /// Reads their values, as GET and MGET do.
    Get,
    /// Sets this value of its one key, without any condition or expiry: it is there if the reply is
    /// OK.
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

/// Where a command stands among those of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// None of them is under way.
    Apart,
    /// It is a read that overlaps with reads, of which this is the last.
    Beside(u64),
    /// It may not overlap with those under way, of which this is the last.
    After(u64),
}

/// Which command is spared by a later one with that number, if it is the last of its key before it.
type Spares = fn(&UnderWay, last: u64, number: u64) -> Option<u64>;

const UNDER_WAY: &str = "who names a command knows that it is under way";

/// What becomes of the first command, which was carried out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is answered with this, and under way no more.
    Answer(Reply),
    /// It is a read that has to be run again before anything behind it is answered.
    Again,
}

/// What a read is answered with of a key, given what the client has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// What it read.
    Own,
    /// What was told before.
    Shown,
    /// Nothing yet.
    Again,
}

impl UnderWay {
    /// A command is under way from now on. Returns its place among those of its last key, and
    /// whether it has to wait for its [turn](Self::next_turn) before it is begun.
    pub(super) fn push(&mut self, keys: NamedKeys, kind: Kind) -> (Overlap, bool) {
        self.push_by(keys, kind, Self::spared)
    }

    /// The same; which SET it spares that comes right before it, the rule says.
    fn push_by(&mut self, keys: NamedKeys, kind: Kind, spared: Spares) -> (Overlap, bool) {
        let number = self.done + self.commands.len() as u64;
        self.keys += keys.len();
        self.commands.push_back(Command {
            uses: SmallVec::new(),
            kind,
            waits: 0,
            waiting: Vec::new(),
            carried: Vec::new(),
            sent: false,
            again: false,
            ended: None,
            settled: false,
        });
        let (mut overlap, alone) = (Overlap::Apart, keys.len() == 1);
        for key in keys {
            overlap = self.use_key(number, key, alone, spared);
        }
        (overlap, self.at(number).waits > 0)
    }

    /// The last command has to do with that key, alone or with others.
    fn use_key(&mut self, number: u64, key: Bytes, alone: bool, spared: Spares) -> Overlap {
        let place = UsePlace { command: number, index: self.at(number).uses.len() };
        let last = self.last.insert(key.clone(), place);
        let overlap = last.map_or(Overlap::Apart, |last| self.overlap(number, last.command));
        let spared = match overlap {
            Overlap::After(last) => spared(self, last, number),
            Overlap::Apart | Overlap::Beside(_) => None,
        };
        let after = match (overlap, spared) {
            (_, Some(spared)) => {
                let it = self.command(spared);
                let (after, mut carried) = (it.after(), mem::take(&mut it.carried));
                carried.push(spared);
                self.command(number).carried = carried;
                after
            }
            (Overlap::Apart, None) => None,
            (Overlap::After(last), None) => Some(last),
            (Overlap::Beside(_), None) => last.and_then(|last| {
                let before = self.used(last);
                before.next = Some(place);
                before.after
            }),
        };
        // What a command does with a key that it names twice it does at once.
        let holds_up = |it: u64| it >= self.done && it != number && !self.at(it).settled;
        let after = after.filter(|it| holds_up(*it));
        let behind = matches!(overlap, Overlap::Beside(last) if holds_up(last));
        if let Some(before) = after {
            let waiting = &mut self.command(before).waiting;
            waiting.retain(|it| Some(*it) != spared);
            waiting.push(number);
            self.command(number).waits += 1;
        }
        let in_time = alone
            && after.is_some_and(|it| !self.at(it).sent)
            && match (overlap, last) {
                (Overlap::Beside(_), Some(last)) => self.used(last).in_time,
                _ => true,
            };
        let it = Use { key, after, in_time, behind, next: None, told: None };
        self.command(number).uses.push(it);
        overlap
    }

    /// How a command stands to one before it that has a key of it.
    fn overlap(&self, number: u64, last: u64) -> Overlap {
        match (&self.at(number).kind, &self.at(last).kind) {
            (Kind::Get, Kind::Get) => Overlap::Beside(last),
            _ => Overlap::After(last),
        }
    }

    /// The SET before one of its key, if that need not be carried out because of it: it waits, and
    /// what waits for it are GETs of its key alone.
    fn spared(&self, last: u64, number: u64) -> Option<u64> {
        let is_set = |it: &Command| matches!(it.kind, Kind::Set(_));
        let is_get = |it: &Command| matches!(it.kind, Kind::Get) && it.uses.len() == 1;
        let before = self.at(last);
        let set = if is_get(before) { before.after().filter(|_| before.waits > 0)? } else { last };
        let waits = set >= self.done && is_set(self.at(set)) && self.at(set).waits > 0;
        let only_gets = || self.at(set).waiting.iter().all(|it| is_get(self.at(*it)));
        (is_set(self.at(number)) && waits && only_gets()).then_some(set)
    }

    /// A command may have taken effect, from now on.
    pub(super) fn note_sent(&mut self, number: u64) {
        self.command(number).sent = true;
    }

    /// A command was carried out, with that reply, which tells this of its keys. The SETs that it
    /// carries end as it does; those are named.
    pub(super) fn end(&mut self, number: u64, reply: Reply, sights: Sights) -> Vec<u64> {
        let carried = mem::take(&mut self.command(number).carried);
        for number in &carried {
            let it = self.command(*number);
            (it.ended, it.settled) = (Some((reply.clone(), Sights::new())), true);
            self.let_go(*number, true);
        }
        self.command(number).ended = Some((reply, sights));
        self.settle(number);
        carried
    }

    /// Settles a command, and the reads behind it that were carried out before, as far as can be.
    fn settle(&mut self, number: u64) {
        let mut rest: SmallVec<[u64; 4]> = SmallVec::from_slice(&[number]);
        while let Some(number) = rest.pop() {
            if !self.settles(number) {
                continue;
            }
            for index in 0..self.at(number).uses.len() {
                if let Some(next) = self.used(UsePlace { command: number, index }).next {
                    self.used(next).behind = false;
                    rest.push(next.command);
                }
            }
            self.let_go(number, false);
        }
    }

    /// Settles a command if that can be, and was not before: it was carried out, the reads before
    /// it that it overlaps with are settled, and it need not be run again.
    fn settles(&mut self, number: u64) -> bool {
        let it = self.command(number);
        if it.settled || it.uses.iter().any(|it| it.behind) {
            return false;
        }
        let Some((mut reply, sights)) = it.ended.take() else { return false };
        let again = it.again;
        let seen = |index: usize| sights.get(index).copied().unwrap_or(Seen::Nothing);
        let mut chosen = it.uses.iter().enumerate().map(|(at, it)| it.choose(again, seen(at)));
        let settled = chosen.all(|choice| choice != Choice::Again);
        if settled {
            for index in 0..self.at(number).uses.len() {
                if let Some(reply) = shown_at(&mut reply, index) {
                    self.tell(UsePlace { command: number, index }, again, reply, seen(index));
                }
            }
        }
        let it = self.command(number);
        (it.ended, it.settled) = (Some((reply, sights)), settled);
        settled
    }

    /// What waits for a command that is settled does so no longer. What waits for one that another
    /// carried comes before that one: it is not carried out after it, whatever became of it.
    fn let_go(&mut self, number: u64, carried: bool) {
        let it = self.command(number);
        let waiting = mem::take(&mut it.waiting);
        let known = match (&it.kind, &it.ended) {
            (Kind::Set(value), Some((reply, _))) if *reply == Reply::OK => {
                Some(Reply::Bulk(value.clone()))
            }
            (_, Some((reply, _))) if carried => Some(reply.clone()),
            _ => None,
        };
        for number in waiting {
            let it = self.command(number);
            it.waits -= 1;
            if it.waits == 0 {
                let in_time = it.uses.iter().all(|it| it.in_time);
                self.turns.push_back((number, known.clone().filter(|_| in_time)));
            }
        }
    }

    /// The first command, which was carried out, is answered if that may be.
    pub(super) fn answer(&mut self) -> Verdict {
        let first = self.commands.front_mut().expect("a command was carried out");
        if !first.settled {
            // All before it are answered.
            (first.again, first.ended) = (true, None);
            return Verdict::Again;
        }
        let ended = first.ended.take();
        self.forget_first();
        Verdict::Answer(ended.map_or(Reply::Null, |(reply, _)| reply))
    }

    /// The client is told of a key of a command what that has read, or what was told before.
    fn tell(&mut self, place: UsePlace, again: bool, reply: &mut Reply, seen: Seen) {
        let it = self.used(place);
        let choice = it.choose(again, seen);
        let (mut told, next) = (it.told.take(), it.next);
        if let (Choice::Shown, Some(Shown::Version(_, Some(value)))) = (choice, told.as_deref()) {
            *reply = Reply::Bulk(value.clone());
        }
        if let Some(next) = next {
            if choice == Choice::Own {
                Shown::note(&mut told, seen, reply);
            }
            self.used(next).told = told;
        }
    }

    /// The first command is answered.
    fn forget_first(&mut self) {
        let number = self.done;
        let Some(Command { uses, .. }) = self.commands.pop_front() else { return };
        self.done += 1;
        self.keys -= uses.len();
        for (index, it) in uses.iter().enumerate() {
            if self.last.get(&it.key) == Some(&UsePlace { command: number, index }) {
                self.last.remove(&it.key);
            }
        }
    }

    /// The next command that had to wait and may be begun.
    pub(super) fn next_turn(&mut self) -> Option<Turn> {
        self.turns.pop_front()
    }

    /// The number of the command that is to be answered next.
    pub(super) fn first(&self) -> u64 {
        self.done
    }

    /// How many keys the commands under way name.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    fn at(&self, number: u64) -> &Command {
        self.commands.get(self.index(number)).expect(UNDER_WAY)
    }

    fn command(&mut self, number: u64) -> &mut Command {
        let index = self.index(number);
        self.commands.get_mut(index).expect(UNDER_WAY)
    }

    fn index(&self, number: u64) -> usize {
        let index = number.checked_sub(self.done).and_then(|index| usize::try_from(index).ok());
        index.expect(UNDER_WAY)
    }

    fn used(&mut self, UsePlace { command, index }: UsePlace) -> &mut Use {
        self.command(command).uses.get_mut(index).expect("it has as many keys")
    }
}

impl Command {
    /// What has to be settled before it is begun; of one about one key.
    fn after(&self) -> Option<u64> {
        self.uses.first().and_then(|it| it.after)
    }
}

impl Use {
    /// What the client is told of the key by a command that has seen this, and was run `again` or
    /// not.
    fn choose(&self, again: bool, seen: Seen) -> Choice {
        match &self.told {
            Some(told) if !again => told.choose(seen),
            _ if seen == Seen::Unread => Choice::Again,
            _ => Choice::Own,
        }
    }
}

/// Where a reply shows that key of its command.
fn shown_at(reply: &mut Reply, index: usize) -> Option<&mut Reply> {
    match reply {
        Reply::Array(values) => values.get_mut(index),
        one => Some(one),
    }
}

impl Shown {
    /// What a read that overlaps with those that told this is answered with.
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

    /// Notes what a read is answered with.
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
