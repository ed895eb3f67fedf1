//! The rule step by step, and a model: others write keys, GETs read at any moment, and what is told
//! must be what a key that changes step by step could have told.

use super::*;
use crate::reply::Long;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wire::Version;

fn key(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn bulk(version: u64) -> Reply {
    Reply::bulk(version.to_string())
}

/// A reply that streams. Its length stands for the version.
fn long(version: u64) -> Reply {
    Reply::Long(Long::new(version, tokio::sync::mpsc::channel(1).1))
}

/// So many GETs of one key, which overlap.
fn gets(count: usize) -> UnderWay {
    let mut under_way = UnderWay::default();
    for _ in 0..count {
        assert!(!under_way.push(key("k"), Kind::Get).1);
    }
    under_way
}

/// What the first is answered with, or `None` if it is run again.
fn answer(under_way: &mut UnderWay, mut reply: Reply, seen: Seen) -> Option<Reply> {
    match under_way.finish(&mut reply, seen) {
        Verdict::Answer => Some(reply),
        Verdict::Again => None,
    }
}

#[test]
fn of_commands_about_one_key_only_gets_overlap() {
    let mut under_way = UnderWay::default();
    let mut come = |name, is_get| {
        let kind = if is_get { Kind::Get } else { Kind::Other };
        under_way.push(key(name), kind)
    };
    assert_eq!(come("k", true), (Overlap::Apart, false));
    assert_eq!(come("other", false), (Overlap::Apart, false));
    assert_eq!(come("k", true), (Overlap::Beside(0), false));
    assert_eq!(come("k", true), (Overlap::Beside(2), false), "beside the last");
    assert_eq!(come("k", false), (Overlap::After(3), true), "a write waits for GETs");
    assert_eq!(come("k", true), (Overlap::After(4), true), "a GET waits for a write");
    assert_eq!(come("k", true), (Overlap::Beside(5), true), "also beside one that waits");
    assert_eq!(come("other", true), (Overlap::After(1), true));
    assert_eq!(come("third", false), (Overlap::Apart, false));
}

#[test]
fn a_command_is_begun_when_the_last_that_it_waits_for_is_answered() {
    let mut under_way = gets(2);
    for kind in [Kind::Other, Kind::Get, Kind::Get] {
        assert!(under_way.push(key("k"), kind).1);
    }
    let mut begun = || {
        under_way.finish(&mut Reply::Null, Seen::Absent);
        std::iter::from_fn(|| under_way.next_turn()).map(|(number, _)| number).collect()
    };
    let steps: [Vec<u64>; 4] = std::array::from_fn(|_| begun());
    assert!(steps[0].is_empty(), "a GET before it is under way");
    assert_eq!(steps[1], [2]);
    assert_eq!(steps[2], [3, 4], "both, and the write no second time");
    assert!(steps[3].is_empty());
    let place = under_way.push(key("k"), Kind::Get);
    assert_eq!(place, (Overlap::Beside(4), false), "what it waited for is done");
}

#[test]
fn gets_that_wait_for_a_plain_set_tell_what_it_has_set() {
    let set_and_get = |kind, mut reply: Reply| {
        let mut under_way = UnderWay::default();
        assert!(!under_way.push(key("k"), kind).1);
        assert!(under_way.push(key("k"), Kind::Get).1);
        under_way.finish(&mut reply, Seen::Nothing);
        let (number, value) = under_way.next_turn().unwrap();
        assert_eq!(number, 1);
        value
    };
    assert_eq!(set_and_get(Kind::Set(key("new")), Reply::OK), Some(key("new")));
    let unknown = Reply::error("ERR nobody answered");
    assert_eq!(set_and_get(Kind::Set(key("new")), unknown), None, "it may not have taken effect");
    assert_eq!(set_and_get(Kind::Other, Reply::OK), None);
}

#[test]
fn of_sets_that_wait_for_each_other_only_the_last_is_begun() {
    let mut under_way = UnderWay::default();
    let mut come = |name: &str, kind| under_way.push(key(name), kind);
    let set = |value| Kind::Set(key(value));
    assert_eq!(come("k", set("0")), (Overlap::Apart, false));
    assert_eq!(come("other", set("1")), (Overlap::Apart, false));
    assert_eq!(come("k", set("2")), (Overlap::After(0), true), "one is on its way already");
    assert_eq!(come("k", set("3")), (Overlap::After(2), true));
    assert_eq!(come("k", set("4")), (Overlap::After(3), true));
    assert_eq!(come("k", Kind::Get), (Overlap::After(4), true));
    assert_eq!(come("k", set("6")), (Overlap::After(5), true), "a GET would see the one before");
    assert_eq!(come("k", Kind::Other), (Overlap::After(6), true));
    assert_eq!(come("k", set("8")), (Overlap::After(7), true), "its reply may say what was there");
    assert_eq!(come("k", set("9")), (Overlap::After(8), true));
    assert!(under_way.take_carried(2).is_empty());
    assert_eq!(under_way.take_carried(4), [2, 3]);
    assert!(under_way.take_carried(6).is_empty());
    assert_eq!(under_way.take_carried(9), [8]);
    let mut begun = || {
        let mut reply = Reply::OK;
        under_way.finish(&mut reply, Seen::Nothing);
        std::iter::from_fn(|| under_way.next_turn()).collect()
    };
    let steps: [Vec<Turn>; 9] = std::array::from_fn(|_| begun());
    assert_eq!(steps[0], [(4, Some(key("0")))]);
    assert!(steps[1].is_empty() && steps[2].is_empty() && steps[3].is_empty());
    assert_eq!(steps[4], [(5, Some(key("4")))], "what it tells is what the last of them has set");
    assert_eq!(steps[5], [(6, None)]);
    assert_eq!(steps[6], [(7, Some(key("6")))]);
    assert_eq!(steps[7], [(9, None)]);
    assert!(steps[8].is_empty());
}

#[test]
fn a_get_that_read_an_older_version_tells_what_was_told_before() {
    let mut under_way = gets(5);
    let mut told =
        |version| answer(&mut under_way, bulk(version), Seen::Version(Version::new(version)));
    assert_eq!([7, 5, 9, 8, 9].map(&mut told), [7, 7, 9, 9, 9].map(|it| Some(bulk(it))));
    // Whoever comes when they are done is told what it read.
    let mut under_way = gets(1);
    assert_eq!(answer(&mut under_way, bulk(3), Seen::Version(Version::new(3))), Some(bulk(3)));
}

#[test]
fn where_one_has_no_version_the_later_get_is_run_again_once() {
    let mut under_way = gets(5);
    assert_eq!(answer(&mut under_way, bulk(7), Seen::Version(Version::new(7))), Some(bulk(7)));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), None);
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), Some(Reply::Null));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), Some(Reply::Null));
    assert_eq!(answer(&mut under_way, bulk(7), Seen::Version(Version::new(7))), None);
    assert_eq!(answer(&mut under_way, bulk(8), Seen::Version(Version::new(8))), Some(bulk(8)));
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), Some(bulk(8)));
}

#[test]
fn a_value_that_streams_is_read_by_one_get_at_a_time() {
    let mut under_way = gets(4);
    let first = long(7);
    assert_eq!(answer(&mut under_way, first.clone(), Seen::Version(Version::new(7))), Some(first));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Unread), None);
    let second = long(7);
    assert_eq!(
        answer(&mut under_way, second.clone(), Seen::Version(Version::new(7))),
        Some(second)
    );
    // It cannot be told twice.
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), None);
    assert_eq!(answer(&mut under_way, bulk(8), Seen::Version(Version::new(8))), Some(bulk(8)));
    assert_eq!(answer(&mut under_way, bulk(9), Seen::Version(Version::new(9))), Some(bulk(9)));
    // Also if none before it has told anything.
    let mut under_way = gets(2);
    let failed = Reply::error("ERR lost");
    assert_eq!(answer(&mut under_way, failed.clone(), Seen::Nothing), Some(failed));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Unread), None);
}

#[test]
fn a_get_that_fails_is_answered_and_what_was_told_before_still_counts() {
    let mut under_way = gets(5);
    let failed = Reply::error("ERR lost");
    assert_eq!(answer(&mut under_way, bulk(7), Seen::Version(Version::new(7))), Some(bulk(7)));
    assert_eq!(answer(&mut under_way, failed.clone(), Seen::Nothing), Some(failed.clone()));
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), Some(bulk(7)));
    // Also if it failed when it was run again.
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), None);
    assert_eq!(answer(&mut under_way, failed.clone(), Seen::Nothing), Some(failed));
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), Some(bulk(7)));
}

/// What happens next in a world of some keys.
#[derive(Clone, Debug)]
enum Step {
    /// Others write the key, or delete it.
    Changes(usize, State),
    /// The client sends a command.
    Comes { key: usize, what: What },
    /// One that is under way takes effect, or fails.
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
    prop_oneof![
        2 => (0..KEYS, state).prop_map(|(key, state)| Step::Changes(key, state)),
        3 => (0..KEYS, what).prop_map(|(key, what)| Step::Comes { key, what }),
        4 => (0..8_usize, prop::bool::weighted(0.05))
            .prop_map(|(which, fails)| Step::Reads { which, fails }),
        3 => Just(Step::Ends),
    ]
}

/// A command of the model that is under way.
#[derive(Debug)]
struct Running {
    key: usize,
    what: What,
    /// Whether its turn has not come.
    waits: bool,
    /// Whether its turn never comes, for a SET behind it carries it.
    spared: bool,
    /// Whether it ended as another SET did.
    carried: bool,
    /// Whether it may read a value that streams.
    alone: bool,
    began: usize,
    done: Option<(Reply, Seen)>,
}

/// A GET that was answered with something about its key, or a write: the version, or 0 for none.
#[derive(Debug)]
struct Answered {
    key: usize,
    what: What,
    carried: bool,
    began: usize,
    ended: usize,
    version: u64,
}

/// The rules that a world goes by.
#[derive(Clone, Copy)]
struct Rules {
    push: fn(&mut UnderWay, Bytes, Kind) -> (Overlap, bool),
    finish: fn(&mut UnderWay, &mut Reply, Seen) -> Verdict,
    /// Whether commands wait for those that they should wait for, and no others.
    right_waits: bool,
}

/// As they are.
const RIGHT: Rules = Rules { push: UnderWay::push, finish: UnderWay::finish, right_waits: true };

struct World {
    under_way: UnderWay,
    running: VecDeque<Running>,
    /// The state of each key at each moment, with its version.
    past: Vec<[(State, u64); KEYS]>,
    answered: Vec<Answered>,
    rules: Rules,
}

impl World {
    fn play(steps: &[Step], rules: Rules) -> Result<(), TestCaseError> {
        let (under_way, running) = (UnderWay::default(), VecDeque::new());
        let past = vec![[(State::Absent, 0); KEYS]];
        let mut world = Self { under_way, running, past, answered: Vec::new(), rules };
        for step in steps {
            world.take(step)?;
        }
        // All that is under way comes to its end. Each GET is run again once at most.
        for _ in 0..2 * world.running.len() {
            for which in 0..world.running.len() {
                world.take(&Step::Reads { which, fails: false })?;
            }
            world.take(&Step::Ends)?;
        }
        prop_assert!(world.running.is_empty(), "some are never answered");
        (0..KEYS).try_for_each(|key| world.check(key))
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let mut now = *self.past.last().unwrap();
        match *step {
            Step::Changes(key, State::Absent) => now[key] = (State::Absent, 0),
            Step::Changes(key, state) => now[key] = (state, self.past.len() as u64),
            Step::Comes { key, what } => self.come(key, what),
            Step::Reads { which, fails } => self.read(which, fails, &mut now),
            Step::Ends => self.end()?,
        }
        self.past.push(now);
        self.begin()
    }

    /// Those that wait no more are begun: all that have nothing before them that they may not
    /// overlap with, and no others.
    fn begin(&mut self) -> Result<(), TestCaseError> {
        while let Some((number, _)) = self.under_way.next_turn() {
            let at = usize::try_from(number - self.under_way.first()).unwrap();
            prop_assert!(self.running[at].waits, "it comes once");
            (self.running[at].waits, self.running[at].began) = (false, self.past.len());
        }
        for at in 0..self.running.len() {
            let (before, it) = (self.running.range(..at), &self.running[at]);
            let waits = before.clone().any(|other| {
                let both_get = (other.what, it.what) == (What::Get, What::Get);
                other.key == it.key && !both_get && !other.spared
            });
            prop_assert!(!self.rules.right_waits || it.waits == (waits || it.spared));
        }
        Ok(())
    }

    fn come(&mut self, key: usize, what: What) {
        let name = key.to_string();
        let kind = match what {
            What::Get => Kind::Get,
            What::Set => Kind::Set(Bytes::new()),
            What::Other => Kind::Other,
        };
        if let Some(last) = self.running.iter_mut().rfind(|it| it.key == key) {
            last.spared |= last.waits && (last.what, what) == (What::Set, What::Set);
        }
        let (place, waits) = (self.rules.push)(&mut self.under_way, Bytes::from(name), kind);
        let (alone, began) = (!matches!(place, Overlap::Beside(_)), self.past.len());
        let (spared, carried) = (false, false);
        let it = Running { key, what, waits, spared, carried, alone, began, done: None };
        self.running.push_back(it);
    }

    fn read(&mut self, which: usize, fails: bool, now: &mut [(State, u64); KEYS]) {
        let may = |it: &&mut Running| it.done.is_none() && !it.waits;
        let Some(it) = self.running.get_mut(which).filter(may) else { return };
        let state = &mut now[it.key];
        if it.what != What::Get && !fails {
            *state = (State::Short, self.past.len() as u64);
        }
        let done = match *state {
            _ if fails => (Reply::error("ERR lost"), Seen::Nothing),
            (_, version) if it.what != What::Get => (bulk(version), Seen::Nothing),
            (State::Absent, _) => (Reply::Null, Seen::Absent),
            (State::Short, version) => (bulk(version), Seen::Version(Version::new(version))),
            (State::Long, version) if it.alone => {
                (long(version), Seen::Version(Version::new(version)))
            }
            (State::Long, _) => (Reply::Null, Seen::Unread),
        };
        it.done = Some(done.clone());
        let first = self.under_way.first();
        for number in self.under_way.take_carried(first + which as u64) {
            let it = &mut self.running[usize::try_from(number - first).unwrap()];
            it.carried = it.done.is_none();
            it.done.get_or_insert_with(|| done.clone());
        }
    }

    fn end(&mut self) -> Result<(), TestCaseError> {
        let Some(first) = self.running.front_mut() else { return Ok(()) };
        let Some((mut reply, seen)) = first.done.take() else { return Ok(()) };
        if (self.rules.finish)(&mut self.under_way, &mut reply, seen) == Verdict::Again {
            first.alone = true;
            return Ok(());
        }
        let Running { key, what, waits, carried, began, .. } = self.running.pop_front().unwrap();
        prop_assert!(waits || !carried, "it has been sent, and may take effect at any time");
        let version = match reply {
            Reply::Bulk(text) => std::str::from_utf8(&text).unwrap().parse().unwrap(),
            Reply::Long(long) => long.len(),
            Reply::Null => 0,
            _ => return Ok(()),
        };
        let ended = self.past.len();
        self.answered.push(Answered { key, what, carried, began, ended, version });
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
                What::Get => (it.began - 1..it.ended)
                    .filter(is_told)
                    .map(|at| 2 * at + 1)
                    .find(|at| *at >= moment),
                What::Set | What::Other => Some(2 * version - usize::from(it.carried))
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

#[test]
fn wrong_rules_are_found() {
    assert!(!is_found(RIGHT));
    let is_found = |finish| is_found(Rules { finish, ..RIGHT });
    let as_it_was_read = |under_way: &mut UnderWay, reply: &mut Reply, seen| {
        let seen = if seen == Seen::Unread { seen } else { Seen::Nothing };
        under_way.finish(reply, seen)
    };
    assert!(is_found(as_it_was_read), "GETs that overlap are answered as each was read");
    let absent_is_oldest = |under_way: &mut UnderWay, reply: &mut Reply, seen| {
        let seen = if seen == Seen::Absent { Seen::Version(Version::NONE) } else { seen };
        under_way.finish(reply, seen)
    };
    assert!(is_found(absent_is_oldest), "no value is taken for older than any");
    let absent_is_newest = |under_way: &mut UnderWay, reply: &mut Reply, seen| {
        let seen = if seen == Seen::Absent { Seen::Version(Version::ABOVE_ALL) } else { seen };
        under_way.finish(reply, seen)
    };
    assert!(is_found(absent_is_newest), "no value is taken for newer than any");
    let unread_is_absent = |under_way: &mut UnderWay, reply: &mut Reply, seen| {
        let seen = if seen == Seen::Unread { Seen::Nothing } else { seen };
        under_way.finish(reply, seen)
    };
    assert!(is_found(unread_is_absent), "what was not read is answered");
}

/// The newest SET of a key of which that is true, if a SET comes.
fn newest_set(
    under_way: &UnderWay,
    key: &Bytes,
    kind: &Kind,
    is_it: fn(&UnderWay, &Command) -> bool,
) -> Option<u64> {
    let is_set = |kind: &Kind| matches!(kind, Kind::Set(_));
    let at = under_way.commands.iter().rposition(|it| it.key == key && is_set(&it.kind));
    let spared = at.filter(|at| is_set(kind) && is_it(under_way, &under_way.commands[*at]))?;
    Some(under_way.done + spared as u64)
}

#[test]
fn wrong_rules_of_what_a_set_carries_are_found() {
    let is_found = |push| is_found(Rules { push, right_waits: false, ..RIGHT });
    assert!(!is_found(UnderWay::push));
    let what_is_on_its_way = |under_way: &mut UnderWay, key: Bytes, kind: Kind| {
        let place = under_way.place(&key, &kind);
        let is_last = |_: &UnderWay, it: &Command| it.waiting.is_empty();
        let spared = newest_set(under_way, &key, &kind, is_last);
        under_way.push_at(place, spared, key, kind)
    };
    assert!(is_found(what_is_on_its_way), "a SET carries one that was sent");
    let past_gets = |under_way: &mut UnderWay, key: Bytes, kind: Kind| {
        let place = under_way.place(&key, &kind);
        let waits =
            |under_way: &UnderWay, it: &Command| it.after.is_some_and(|it| it >= under_way.done);
        let spared = newest_set(under_way, &key, &kind, waits);
        under_way.push_at(place, spared, key, kind)
    };
    assert!(is_found(past_gets), "a SET carries one that a GET in between has to see");
}
