//! A model: others write keys, commands read and write them at any moment, and what is told must be
//! what a key that changes step by step could have told.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// What happens next in a world of some keys.
#[derive(Clone, Debug)]
enum Step {
    /// Others write the key, or delete it.
    Changes(usize, State),
    /// The client sends a command about these keys.
    Comes { keys: Vec<usize>, what: What },
    /// One that is under way takes effect on its next key, or its reply comes; or it fails.
    Reads { which: usize, fails: bool },
    /// The first is answered if it was carried out.
    Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Get,
    Set,
    /// Another write.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Short,
    Long,
}

const KEYS: usize = 2;

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![Just(State::Absent), Just(State::Short), Just(State::Long)];
    // Most changes are such that versions can be compared.
    let state = prop_oneof![2 => Just(State::Short), 1 => state];
    let what = prop_oneof![6 => Just(What::Get), 3 => Just(What::Set), 1 => Just(What::Other)];
    let one = (0..KEYS, what).prop_map(|(key, what)| Step::Comes { keys: vec![key], what });
    let what = prop_oneof![3 => Just(What::Get), 1 => Just(What::Other)];
    let several = (vec(0..KEYS, 2..4), what).prop_map(|(keys, what)| Step::Comes { keys, what });
    prop_oneof![
        4 => (0..KEYS, state).prop_map(|(key, state)| Step::Changes(key, state)),
        4 => one,
        2 => several,
        10 => (0..8_usize, prop::bool::weighted(0.05))
            .prop_map(|(which, fails)| Step::Reads { which, fails }),
        6 => Just(Step::Ends),
    ]
}

/// A command of the model that is under way.
#[derive(Debug)]
struct Running {
    keys: Vec<usize>,
    what: What,
    /// Whether its turn has not come.
    waits: bool,
    /// Whether a SET behind it carries it: its turn never comes, or that of a GET when that SET has
    /// ended.
    spared: bool,
    /// Whether it ended as another SET did, or tells what such a SET has set.
    carried: bool,
    /// The version that it left, or is told without being carried out, if that is so.
    version: Option<u64>,
    /// Whether it may read a value that streams.
    alone: bool,
    came: usize,
    began: usize,
    /// What became of its first keys.
    parts: Vec<(Reply, Seen)>,
    /// Whether it was carried out.
    done: bool,
}

impl Running {
    fn reads(&self) -> bool {
        self.what == What::Get
    }

    fn shares_a_key(&self, other: &Self) -> bool {
        self.keys.iter().any(|key| other.keys.contains(key))
    }

    /// The next key on which it takes effect. On one that it names twice it does once.
    fn next_key(&self) -> usize {
        self.keys[self.parts.len()]
    }

    /// What it tells, if it has taken effect on all keys.
    fn told(&mut self) -> Option<(Reply, Sights)> {
        if self.parts.len() < self.keys.len() {
            return None;
        }
        let several = self.keys.len() > 1;
        let (mut replies, sights): (Vec<_>, Sights) = self.parts.drain(..).unzip();
        let one = if several { None } else { replies.pop() };
        let reply = if self.what == What::Set { Some(Reply::OK) } else { one };
        Some((reply.unwrap_or(Reply::Array(replies)), sights))
    }

    /// It takes effect on its next key.
    fn go_on(&mut self, state: &mut (State, u64), version: u64) {
        if !self.reads() {
            *state = (State::Short, version);
        }
        if self.what == What::Set {
            self.version = Some(version);
        }
        let several = self.keys.len() > 1;
        let part = match *state {
            (_, version) if !self.reads() => (bulk(version), Seen::Nothing),
            (State::Absent, _) => (Reply::Null, Seen::Absent),
            // An MGET has no values that stream.
            (State::Long, version) if !several && self.alone => {
                (long(version), Seen::Version(Version::new(version)))
            }
            (State::Long, _) if !several => (Reply::Null, Seen::Unread),
            (_, version) => (bulk(version), Seen::Version(Version::new(version))),
        };
        self.parts.push(part);
        while let Some(key) = self.keys.get(self.parts.len())
            && let Some(before) = self.keys[..self.parts.len()].iter().position(|it| it == key)
        {
            self.parts.push(self.parts[before].clone());
        }
    }
}

/// What was told of a key by a read, or a write of it: the version, or 0 for none.
#[derive(Debug)]
struct Answered {
    key: usize,
    what: What,
    /// It is told the version that it left, or that a SET before it left: by that SET's moment.
    at_write: bool,
    carried: bool,
    began: usize,
    ended: usize,
    version: u64,
}

/// The rules that a world goes by.
#[derive(Clone, Copy)]
struct Rules {
    push: fn(&mut UnderWay, NamedKeys, Kind) -> (Overlap, bool),
    end: fn(&mut UnderWay, u64, Reply, Sights) -> Vec<u64>,
    send: fn(&mut UnderWay, u64),
    /// Whether commands wait for those that they should wait for, and no others.
    right_waits: bool,
}

/// As they are.
const RIGHT: Rules = Rules {
    push: UnderWay::push,
    end: UnderWay::end,
    send: UnderWay::note_sent,
    right_waits: true,
};

struct World {
    under_way: UnderWay,
    running: VecDeque<Running>,
    /// The state of each key at each moment, with its version.
    past: Vec<[(State, u64); KEYS]>,
    answered: Vec<Answered>,
    /// Of each SET that has ended what it left, and whether it was carried; by its number.
    sets: Vec<(u64, u64, bool)>,
    rules: Rules,
}

impl World {
    fn play(steps: &[Step], rules: Rules) -> Result<(), TestCaseError> {
        let (under_way, running) = (UnderWay::default(), VecDeque::new());
        let past = vec![[(State::Absent, 0); KEYS]];
        let mut world =
            Self { under_way, running, past, answered: Vec::new(), sets: Vec::new(), rules };
        for step in steps {
            world.take(step)?;
        }
        // All that is under way comes to its end. Each read is run again once at most.
        for _ in 0..16 * world.running.len() {
            for which in 0..world.running.len() {
                world.take(&Step::Reads { which, fails: false })?;
            }
            world.take(&Step::Ends)?;
        }
        prop_assert!(world.running.is_empty(), "some are never answered");
        prop_assert!(world.under_way.last.is_empty() && world.under_way.keys() == 0);
        (0..KEYS).try_for_each(|key| world.check(key))
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let mut now = *self.past.last().unwrap();
        match *step {
            Step::Changes(key, State::Absent) => now[key] = (State::Absent, 0),
            Step::Changes(key, state) => now[key] = (state, self.past.len() as u64),
            Step::Comes { ref keys, what } => self.come(keys, what),
            Step::Reads { which, fails } => self.read(which, fails, &mut now),
            Step::Ends => self.end()?,
        }
        self.past.push(now);
        self.begin()
    }

    /// Those that wait no more are begun: none that has something before it that it may not
    /// overlap with and that was not carried out, and all before which all that is answered.
    fn begin(&mut self) -> Result<(), TestCaseError> {
        while let Some((number, known)) = self.under_way.next_turn() {
            let it = &mut self.running[usize::try_from(number - self.under_way.first()).unwrap()];
            prop_assert!(it.waits, "it comes once");
            (it.waits, it.began) = (false, self.past.len());
            let (true, [_], Some(reply)) = (it.reads(), &it.keys[..], known) else { continue };
            it.done = true;
            if let Reply::Bulk(set) = &reply {
                let set: u64 = std::str::from_utf8(set).unwrap().parse().unwrap();
                let (_, version, carried) = self.sets.iter().find(|it| it.0 == set).unwrap();
                (it.version, it.carried, it.began) = (Some(*version), *carried, it.came);
            }
            (self.rules.end)(&mut self.under_way, number, reply, Sights::new());
        }
        for at in 0..self.running.len() {
            let (before, it) = (self.running.range(..at), &self.running[at]);
            let mut apart = before.filter(|other| {
                let carries = other.spared && it.what == What::Set;
                other.shares_a_key(it) && !(other.reads() && it.reads()) && !carries
            });
            let may_wait = apart.clone().next().is_some() || it.spared;
            let has_to = apart.any(|other| !other.done);
            prop_assert!(!self.rules.right_waits || (has_to..=may_wait).contains(&it.waits));
        }
        Ok(())
    }

    fn come(&mut self, keys: &[usize], what: What) {
        let kind = match what {
            What::Get => Kind::Get,
            // Its number, by which it is found.
            What::Set => {
                let number = self.under_way.first() + self.running.len() as u64;
                Kind::Set(key(&number.to_string()))
            }
            What::Other => Kind::Other,
        };
        let is_get = |it: &Running| it.reads() && it.keys.len() == 1;
        let mut before = self.running.iter().filter(|it| it.keys.contains(&keys[0]));
        let last = before.rfind(|it| !is_get(it));
        if last.is_some_and(|last| last.waits && (last.what, what) == (What::Set, What::Set)) {
            let mut before = self.running.iter_mut().rev().filter(|it| it.keys.contains(&keys[0]));
            while let Some(it) = before.next()
                && !it.spared
            {
                it.spared = true;
                if it.what == What::Set {
                    break;
                }
            }
        }
        let names = keys.iter().map(|it| key(&it.to_string())).collect();
        let (place, waits) = (self.rules.push)(&mut self.under_way, names, kind);
        self.running.push_back(Running {
            keys: keys.to_vec(),
            what,
            waits,
            spared: false,
            carried: false,
            version: None,
            alone: !matches!(place, Overlap::Beside(_)),
            came: self.past.len(),
            began: self.past.len(),
            parts: Vec::new(),
            done: false,
        });
    }

    fn read(&mut self, which: usize, fails: bool, now: &mut [(State, u64); KEYS]) {
        let may = |it: &&mut Running| !it.done && !it.waits;
        let Some(it) = self.running.get_mut(which).filter(may) else { return };
        let first = self.under_way.first();
        let number = first + which as u64;
        let (reply, sights) = if fails {
            it.parts.clear();
            (Reply::error("ERR lost"), Sights::new())
        } else if let Some(told) = it.told() {
            told
        } else {
            (self.rules.send)(&mut self.under_way, number);
            return it.go_on(&mut now[it.next_key()], self.past.len() as u64);
        };
        it.done = true;
        let version = it.version.unwrap_or_default();
        self.sets.push((number, version, false));
        for number in (self.rules.end)(&mut self.under_way, number, reply, sights) {
            let it = &mut self.running[usize::try_from(number - first).unwrap()];
            it.carried = !it.done;
            (it.done, it.version) = (true, Some(version));
            self.sets.push((number, version, true));
        }
    }

    fn end(&mut self) -> Result<(), TestCaseError> {
        let Some(first) = self.running.front_mut() else { return Ok(()) };
        if !first.done {
            return Ok(());
        }
        let Verdict::Answer(reply) = self.under_way.answer() else {
            (first.alone, first.done) = (true, false);
            return Ok(());
        };
        let it = self.running.pop_front().unwrap();
        let Running { keys, what, waits, carried, began, version: left, .. } = it;
        let was_sent = what == What::Set && !waits;
        prop_assert!(!carried || !was_sent, "it may take effect at any time");
        let at_write = left.is_some();
        let replies = if let Reply::Array(replies) = reply { replies } else { vec![reply] };
        let ended = self.past.len();
        for (key, reply) in keys.into_iter().zip(replies) {
            let version = match reply {
                // It is told by its number which SET that was.
                Reply::Status(_) | Reply::Bulk(_) if at_write => left.unwrap_or_default(),
                Reply::Bulk(text) => std::str::from_utf8(&text).unwrap().parse().unwrap(),
                Reply::Long(long) => long.len(),
                Reply::Null => 0,
                _ => return Ok(()),
            };
            self.answered.push(Answered { key, what, at_write, carried, began, ended, version });
        }
        Ok(())
    }

    /// Whether each answer was true at a moment between a command and its reply, none of which is
    /// before that of the answer before. Always taking the first such moment finds them if any do.
    ///
    /// There are two to each state: that at which it comes up, by the write that is told it, and a
    /// later one at which it is read. A write that is carried comes before both.
    fn check(&self, key: usize) -> Result<(), TestCaseError> {
        let mut moment = 0;
        for it in self.answered.iter().filter(|it| it.key == key) {
            let is_told = |at: &usize| self.past[*at][key].1 == it.version;
            let version = usize::try_from(it.version).unwrap();
            let found = match it.what {
                What::Get if !it.at_write => (it.began - 1..it.ended)
                    .filter(is_told)
                    .map(|at| 2 * at + 1)
                    .find(|at| *at >= moment),
                What::Get | What::Set | What::Other => Some(2 * version - usize::from(it.carried))
                    .filter(|at| (2 * it.began - 1..2 * it.ended).contains(at) && *at >= moment),
            };
            let Some(found) = found else {
                return Err(TestCaseError::fail(format!("{it:?} after {moment}")));
            };
            moment = found;
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn what_is_told_of_a_key_never_goes_back(steps in vec(step(), 0..120)) {
        World::play(&steps, RIGHT)?;
    }
}

/// Whether worlds are found in which those rules tell something wrong.
fn is_found(rules: Rules) -> bool {
    let config = Config { failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&vec(step(), 0..120), |steps| World::play(&steps, rules)).is_err()
}

/// The same, but for that.
fn with(seen: &Sights, that: Seen, other: Seen) -> Sights {
    seen.iter().map(|it| if *it == that { other } else { *it }).collect()
}

#[test]
fn wrong_rules_are_found() {
    assert!(!is_found(RIGHT));
    let is_found = |end| is_found(Rules { end, ..RIGHT });
    let as_it_was_read = |under_way: &mut UnderWay, number, reply, seen: Sights| {
        let nothing = |seen| if seen == Seen::Unread { seen } else { Seen::Nothing };
        under_way.end(number, reply, seen.into_iter().map(nothing).collect())
    };
    assert!(is_found(as_it_was_read), "GETs that overlap are answered as each was read");
    let absent_is_oldest = |under_way: &mut UnderWay, number, reply, seen: Sights| {
        under_way.end(number, reply, with(&seen, Seen::Absent, Seen::Version(Version::NONE)))
    };
    assert!(is_found(absent_is_oldest), "no value is taken for older than any");
    let absent_is_newest = |under_way: &mut UnderWay, number, reply, seen: Sights| {
        under_way.end(number, reply, with(&seen, Seen::Absent, Seen::Version(Version::ABOVE_ALL)))
    };
    assert!(is_found(absent_is_newest), "no value is taken for newer than any");
    let unread_is_absent = |under_way: &mut UnderWay, number, reply, seen: Sights| {
        under_way.end(number, reply, with(&seen, Seen::Unread, Seen::Nothing))
    };
    assert!(is_found(unread_is_absent), "what was not read is answered");
    let only_the_first = |under_way: &mut UnderWay, number, reply, seen: Sights| {
        under_way.end(number, reply, seen.into_iter().take(1).collect())
    };
    assert!(is_found(only_the_first), "of an MGET's keys one is looked at");
    let at_once = |under_way: &mut UnderWay, number, reply, seen: Sights| {
        under_way.command(number).uses.iter_mut().for_each(|it| it.behind = false);
        under_way.end(number, reply, seen)
    };
    assert!(is_found(at_once), "a read is settled before one that it overlaps with");
}

/// The newest SET of a key of which that is true, if a SET comes.
fn newest_set(
    under_way: &UnderWay,
    number: u64,
    is_it: fn(&UnderWay, &Command) -> bool,
) -> Option<u64> {
    let is_set = |it: &Command| matches!(it.kind, Kind::Set(_));
    let coming = under_way.at(number);
    // It is the last of its keys already, but for this one's.
    let key = |it: &Command| it.uses.first().map(|it| it.key.clone());
    let named = under_way.last.iter().find(|(_, place)| place.command == number)?.0;
    let mut before = (under_way.done..number).rev();
    let found = before.find(|at| {
        let it = under_way.at(*at);
        is_set(it) && key(it).as_ref() == Some(named)
    });
    found.filter(|at| is_set(coming) && is_it(under_way, under_way.at(*at)))
}

#[test]
fn wrong_rules_of_what_a_set_carries_are_found() {
    let is_found = |push| is_found(Rules { push, right_waits: false, ..RIGHT });
    assert!(!is_found(UnderWay::push));
    let what_is_on_its_way = |under_way: &mut UnderWay, keys: NamedKeys, kind: Kind| {
        under_way.push_by(keys, kind, |under_way, _, number| {
            newest_set(under_way, number, |_, it| it.waiting.is_empty())
        })
    };
    assert!(is_found(what_is_on_its_way), "a SET carries one that was sent");
    let past_others = |under_way: &mut UnderWay, keys: NamedKeys, kind: Kind| {
        under_way.push_by(keys, kind, |under_way, _, number| {
            newest_set(under_way, number, |_, it| it.waits > 0)
        })
    };
    assert!(is_found(past_others), "a SET carries one that others in between have to see");
}

#[test]
fn gets_that_came_after_a_set_was_sent_must_not_be_told_what_it_has_set() {
    assert!(is_found(Rules { send: |_, _| (), ..RIGHT }));
}
