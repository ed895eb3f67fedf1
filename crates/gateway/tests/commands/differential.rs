//! The same random commands to a Redis server and to a gateway, and the replies compared.

use super::draw::Draw;
use super::redis::{Connection, Server};
use super::transactions::{exec, queued};
use crate::setup::{Gateway, run};
use bytes::Bytes;
use gateway::Reply;
use gateway::command::{Keys, find};
use gateway::store::{Queued, Store, Watched};
use machine::Rng;
use std::fmt::Write as _;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// Sequences at a time, each about keys of its own.
const LANES: u64 = 8;

/// Commands of a usual run, over all lanes: twenty of them are a million.
const COMMANDS: u64 = 50_000;

/// Commands of a lane that are shown with a difference.
const SHOWN: usize = 12;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn replies_are_those_of_a_redis_server() {
    let Some(server) = Server::start("replies_are_those_of_a_redis_server") else { return };
    let gateway = Gateway::start();
    let store = gateway.store();
    let seed = from_environment("KEYWAY_REDIS_SEED", u64::from(std::process::id()));
    let commands = from_environment("KEYWAY_REDIS_COMMANDS", COMMANDS);
    println!("KEYWAY_REDIS_SEED={seed} KEYWAY_REDIS_COMMANDS={commands}");
    let lanes: Vec<Lane<'_>> = (0..LANES)
        .map(|lane| {
            let rng = Rng::new(seed).fork(&format!("lane {lane}"));
            // The keys of every other lane lie together.
            let tagged = lane % 2 == 0;
            let prefix = if tagged { format!("{{k{lane}}}:") } else { format!("k{lane}:") };
            let draw = Draw::new(rng, &prefix);
            let (redis, store) = (server.connect(), store.clone());
            let (last, refused) = (Vec::new(), 0);
            Lane { draw, redis, store, gateway: &gateway, tagged, last, refused }
        })
        .collect();
    let refused: u64 = thread::scope(|scope| {
        let lanes: Vec<_> = lanes
            .into_iter()
            .map(|mut lane| {
                scope.spawn(move || {
                    (0..commands / LANES).for_each(|_| lane.step());
                    lane.refused
                })
            })
            .collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane found a difference")).sum()
    });
    println!("{commands} commands, of which {refused} only Redis carries out");
    assert!(refused < commands / 4, "most commands must have been compared");
}

/// One sequence of commands.
struct Lane<'a> {
    draw: Draw,
    redis: Connection,
    store: Store,
    gateway: &'a Gateway,
    /// Whether all its keys have one tag.
    tagged: bool,
    last: Vec<String>,
    /// Commands that the gateway refuses and Redis does not.
    refused: u64,
}

impl Lane<'_> {
    fn step(&mut self) {
        if self.tagged && self.draw.rng.chance(1, 8) {
            self.transaction();
        } else {
            self.one();
        }
    }

    /// A transaction, perhaps with keys that are watched, and perhaps with something in between.
    fn transaction(&mut self) {
        let mut watched = Watched::new();
        if self.draw.rng.chance(1, 2) {
            let keys: Vec<Bytes> = (0..=self.draw.rng.below(2)).map(|_| self.draw.key()).collect();
            self.redis.run(&[vec!["watch".into()], keys.clone()].concat());
            watched = self.gateway.runtime.block_on(self.store.watch(&keys)).unwrap();
            if self.draw.rng.chance(1, 2) {
                let refused = self.refused;
                self.one();
                if self.refused > refused {
                    // Only Redis has written, and what it wrote may have been undone there.
                    self.redis.run(&["unwatch".into()]);
                    watched = Watched::new();
                }
            }
        }
        let count = 1 + self.draw.rng.below(5);
        let drawn = (0..count).map(|_| self.draw.command());
        // As a script, Redis would undo nothing of it either, but queue it under another name.
        let commands: Vec<Vec<Bytes>> =
            drawn.filter(|args| args[0] != "delifeq" && queued(args).is_some()).collect();
        self.redis.run(&["multi".into()]);
        for args in &commands {
            assert_eq!(self.redis.run(args), Reply::Status("QUEUED".into()));
        }
        let theirs = self.redis.run(&["exec".into()]);
        let all: Vec<Queued> = commands.iter().filter_map(|args| queued(args)).collect();
        let ours = self.gateway.runtime.block_on(exec(&self.store, &all, &watched));
        self.tell(format!("{watched:?} {commands:?}"), &theirs, &ours);
        let same = match (&theirs, &ours) {
            (Reply::Array(theirs), Reply::Array(ours)) => {
                let limited = |it: &Reply| matches!(it, Reply::Error(text) if is_ours_alone(text));
                if ours.iter().any(limited) {
                    return self.follow(&commands);
                }
                let pairs = theirs.iter().zip(ours);
                theirs.len() == ours.len()
                    && commands.iter().zip(pairs).all(|(args, (a, b))| alike(args, a, b))
            }
            (Reply::Array(_), Reply::Error(text)) if is_ours_alone(text) => {
                return self.follow(&commands);
            }
            _ => theirs == ours,
        };
        self.expect_same(same);
    }

    /// The gateway has done less than Redis, because of its limits.
    fn follow(&mut self, commands: &[Vec<Bytes>]) {
        self.refused += 1;
        commands.iter().for_each(|args| self.copy_from_redis(args));
    }

    fn tell(&mut self, what: String, theirs: &Reply, ours: &Reply) {
        self.last.push(format!("{what}\n    Redis:  {theirs:?}\n    Keyway: {ours:?}"));
        if self.last.len() > SHOWN {
            self.last.remove(0);
        }
    }

    fn expect_same(&self, same: bool) {
        if !same {
            let mut told = String::new();
            self.last.iter().for_each(|step| writeln!(told, "{step}").unwrap());
            panic!("a difference, at the end of\n{told}");
        }
    }

    fn one(&mut self) {
        let args = self.draw.command();
        let theirs = self.redis.run(&as_redis_has_it(&args));
        let ours = self.run(&args);
        self.tell(format!("{args:?}"), &theirs, &ours);
        if let Reply::Error(text) = &ours
            && is_ours_alone(text)
        {
            self.check_refusal(&args, &theirs, text);
            self.refused += 1;
            self.copy_from_redis(&args);
        } else {
            self.expect_same(alike(&args, &theirs, &ours));
        }
    }

    fn run(&self, args: &[Bytes]) -> Reply {
        self.gateway.runtime.block_on(run(&self.store, args))
    }

    /// A refusal must have its reason.
    fn check_refusal(&mut self, args: &[Bytes], theirs: &Reply, text: &str) {
        let due = match args[0].as_ref() {
            b"rename" | b"renamenx" => !matches!(theirs, Reply::Error(_)),
            b"copy" => matches!(theirs, Reply::Integer(_)),
            b"msetnx" => args[1..].chunks(2).any(|pair| pair[0] != args[1]),
            _ => {
                let Reply::Integer(len) = self.redis.run(&["strlen".into(), args[1].clone()])
                else {
                    panic!("no length")
                };
                usize::try_from(len).unwrap() + args[1].len() > wire::ENTRY_MAX
            }
        };
        assert!(due, "{args:?}: refused ({text}), but Redis: {theirs:?}");
    }

    /// Makes the keys of a command what they are in Redis. What is too long is deleted there.
    fn copy_from_redis(&mut self, args: &[Bytes]) {
        let Some(Keys::Range { first, last, step }) = find(&args[0]).map(|spec| spec.keys) else {
            return;
        };
        let end = if last < 0 { args.len() } else { usize::try_from(last).unwrap() + 1 };
        for key in args[first..end].iter().step_by(step) {
            let value = self.redis.run(&["get".into(), key.clone()]);
            let expiry = self.redis.run(&["pexpiretime".into(), key.clone()]);
            self.run(&["del".into(), key.clone()]);
            let Reply::Bulk(value) = value else { continue };
            if key.len() + value.len() > wire::ENTRY_MAX {
                self.redis.run(&["del".into(), key.clone()]);
                continue;
            }
            let mut set = vec!["set".into(), key.clone(), value];
            if let Reply::Integer(at @ 1..) = expiry {
                set.extend(["pxat".into(), at.to_string().into()]);
            }
            assert_eq!(self.run(&set), Reply::OK);
        }
    }
}

/// What the gateway refuses by rules of its own.
fn is_ours_alone(text: &str) -> bool {
    let own = ["CROSSSLOT", "ERR this would take", "ERR a transaction writes"];
    own.iter().any(|own| text.starts_with(own))
}

/// Redis 7 has no DELIFEQ, but scripts.
fn as_redis_has_it(args: &[Bytes]) -> Vec<Bytes> {
    if args[0] != "delifeq" || args.len() != 3 {
        return args.to_vec();
    }
    let script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) \
                  else return 0 end";
    vec!["eval".into(), script.into(), "1".into(), args[1].clone(), args[2].clone()]
}

#[expect(clippy::disallowed_methods, reason = "commands are given times of the wall clock")]
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// Whether replies are the same, but that times to live were read a moment apart, and that no time
/// of ours is later than [`wire::expiry::TIME_MAX`].
fn alike(args: &[Bytes], theirs: &Reply, ours: &Reply) -> bool {
    if args[0] == "delifeq" && args.len() != 3 {
        return matches!(ours, Reply::Error(_));
    }
    let latest = i64::try_from(wire::expiry::TIME_MAX).unwrap();
    let (apart_max, latest) = match args[0].as_ref() {
        b"pexpiretime" => (60_000, latest),
        // As long as that from now.
        b"pttl" => (60_000, latest - now_ms()),
        b"expiretime" => (60, latest / 1_000),
        b"ttl" => (60, (latest - now_ms()) / 1_000),
        _ => (0, i64::MAX),
    };
    match (theirs, ours) {
        (Reply::Integer(theirs), Reply::Integer(ours)) if *theirs > latest => {
            latest.abs_diff(*ours) <= apart_max
        }
        (Reply::Integer(theirs @ 1..), Reply::Integer(ours @ 1..)) => {
            theirs.abs_diff(*ours) <= apart_max
        }
        _ => theirs == ours,
    }
}
