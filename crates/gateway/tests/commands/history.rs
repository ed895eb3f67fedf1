//! What many clients of two gateways saw of a key, and whether one key can have done it: the
//! checker of the simulator decides.

use crate::setup::{Gateway, run};
use bytes::Bytes;
use gateway::Reply;
use gateway::store::Store;
use machine::{Instant, Rng};
use runtime::clock::Clock;
use sim::check::linear::{Verdict, check};
use sim::check::{Op, OpKind};
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use wire::Version;

/// Keys, each checked for itself.
const KEYS: u64 = 24;
/// Clients of each key at a time.
const CLIENTS: usize = 4;
/// Commands of each. Few: a history without versions leaves the search many choices.
const COMMANDS: usize = 12;

/// What a command was, and what its reply shows of the key.
fn seen(words: &[String], reply: &Reply) -> OpKind {
    let number = |text: &str| text.parse::<i64>().unwrap();
    let value = match reply {
        Reply::Bulk(bytes) => Some(number(std::str::from_utf8(bytes).unwrap())),
        Reply::Null => None,
        Reply::Status(_) | Reply::Integer(_) => None,
        other => panic!("{words:?}: {other:?}"),
    };
    let done = matches!(reply, Reply::Status(_) | Reply::Integer(1));
    let changed = |expect, value| {
        let written = Some(true);
        OpKind::Cas { expect, at: None, value, expiry_ms: 0, written }
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["GET", _] => OpKind::Read(value),
        ["SET", _, new] => OpKind::Put { value: number(new), expiry_ms: 0 },
        ["DEL", _] => OpKind::Del { existed: Some(done) },
        ["SET", _, new, "GET"] => changed(value, Some(number(new))),
        ["GETDEL", _] if value.is_none() => OpKind::Read(None),
        ["GETDEL", _] => changed(value, None),
        ["SET", _, new, "NX"] => {
            let new = Some(number(new));
            OpKind::Cas { expect: None, at: None, value: new, expiry_ms: 0, written: Some(done) }
        }
        ["SET", _, new, "IFEQ", old] => {
            let (expect, new) = (Some(number(old)), Some(number(new)));
            OpKind::Cas { expect, at: None, value: new, expiry_ms: 0, written: Some(done) }
        }
        ["DELIFEQ", _, old] => {
            let expect = Some(number(old));
            OpKind::Cas { expect, at: None, value: None, expiry_ms: 0, written: Some(done) }
        }
        ["EVAL", SET_IF, "1", _, new, old] => {
            let (expect, new) = (Some(number(old)), Some(number(new)));
            OpKind::Cas { expect, at: None, value: new, expiry_ms: 0, written: Some(done) }
        }
        ["INCRBYFLOAT", _, delta] | ["EVAL", ADD, "1", _, delta] => {
            OpKind::Incr { delta: number(delta), sum: value }
        }
        ["GETEX", _, "PERSIST"] => OpKind::Read(value),
        other => panic!("{other:?}"),
    }
}

/// Scripts that do what `SET IFEQ` and INCRBY do. They have no spaces, as words are split at those.
const SET_IF: &str = "if(redis.call('get',KEYS[1])==ARGV[2])then\tredis.call('set',KEYS[1],ARGV[1])\
                      return(1)end;return(0)";
const ADD: &str = "local\tn=tonumber(redis.call('get',KEYS[1])or'0')+ARGV[1];\
                   redis.call('set',KEYS[1],n);return(tostring(n))";

fn draw(rng: &mut Rng, key: u64, last: &mut u64) -> Vec<String> {
    *last += 1;
    let new = *last;
    // Often one that is there.
    let old = last.saturating_sub(rng.below(4) + 1);
    let words = match rng.below(15) {
        0 => format!("GET k{key}"),
        1 => format!("SET k{key} {new}"),
        2 => format!("DEL k{key}"),
        3 | 4 => format!("SET k{key} {new} GET"),
        5 => format!("GETDEL k{key}"),
        6 => format!("SET k{key} {new} NX"),
        7 => format!("SET k{key} {new} IFEQ {old}"),
        8 => format!("DELIFEQ k{key} {old}"),
        9 => format!("INCRBYFLOAT k{key} 3"),
        10 | 11 => format!("EVAL {SET_IF} 1 k{key} {new} {old}"),
        12 | 13 => format!("EVAL {ADD} 1 k{key} 3"),
        _ => format!("GETEX k{key} PERSIST"),
    };
    words.split(' ').map(str::to_owned).collect()
}

async fn use_key(store: Store, clock: Arc<Mutex<Clock>>, client: usize, key: u64) -> Vec<Op> {
    let now = || -> Instant { clock.lock().unwrap().now() };
    let mut rng = Rng::new(key * 100 + client as u64);
    // Clients of a key write values from one range, so that they find each other's.
    let mut last = rng.below(8);
    let mut ops = Vec::new();
    for _ in 0..COMMANDS {
        let words = draw(&mut rng, key, &mut last);
        let args: Vec<Bytes> = words.iter().map(|word| word.clone().into()).collect();
        let called = now();
        let reply = run(&store, &args).await;
        let (returned, kind) = (Some(now()), seen(&words, &reply));
        ops.push(Op { client, called, returned, kind, version: Version::NONE });
    }
    ops
}

fn histories() -> Vec<Vec<Op>> {
    let gateway = Gateway::start();
    let stores = [gateway.store(), gateway.store()];
    let clock = Arc::new(Mutex::new(Clock::new()));
    gateway.runtime.block_on(async {
        let mut all = Vec::new();
        for key in 0..KEYS {
            let mut tasks = JoinSet::new();
            for client in 0..CLIENTS {
                let store = stores[client % 2].clone();
                drop(tasks.spawn(use_key(store, Arc::clone(&clock), client, key)));
            }
            all.push(tasks.join_all().await.into_iter().flatten().collect());
        }
        all
    })
}

#[test]
fn the_history_of_every_key_is_one_that_a_single_key_could_have() {
    let mut checked = 0;
    for history in histories() {
        let finding = check(&history, 0);
        match finding.verdict {
            Verdict::Linearizable => checked += 1,
            Verdict::Exhausted => {}
            Verdict::Violation => panic!("{}: {history:#?}", finding.why),
        }
    }
    assert!(checked > KEYS / 2, "of {KEYS} histories, {checked} could be decided");
}

#[test]
fn a_command_that_saw_what_was_not_there_is_found() {
    let mut found = 0;
    for mut history in histories() {
        // Somebody saw another value than there was.
        let wrong = history.iter_mut().rev().find_map(|op| match &mut op.kind {
            OpKind::Cas { expect: Some(expect), written: Some(true), .. } => Some(expect),
            _ => None,
        });
        *wrong.expect("somebody replaced a value") += 1_000_000;
        found += u64::from(check(&history, 0).verdict == Verdict::Violation);
    }
    assert!(found > KEYS / 2, "of {KEYS} mutant violations, {found} were found");
}

/// What a script would be that is not checked by the versions that it has read.
async fn add_without_versions(store: &Store) -> Reply {
    let words = |text: String| -> Vec<Bytes> {
        text.split(' ').map(|word| word.to_owned().into()).collect()
    };
    let before = match run(store, &words("GET torn".into())).await {
        Reply::Bulk(text) => std::str::from_utf8(&text).unwrap().parse::<i64>().unwrap(),
        _ => 0,
    };
    run(store, &words(format!("SET torn {}", before + 3))).await;
    Reply::bulk((before + 3).to_string())
}

#[test]
fn a_script_that_takes_effect_whatever_was_changed_is_found() {
    let gateway = Gateway::start();
    let stores = [gateway.store(), gateway.store()];
    let clock = Arc::new(Mutex::new(Clock::new()));
    let history: Vec<Op> = gateway.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for client in 0..CLIENTS {
            let (store, clock) = (stores[client % 2].clone(), Arc::clone(&clock));
            let _abort = tasks.spawn(async move {
                let now = || -> Instant { clock.lock().unwrap().now() };
                let words = ["EVAL", ADD, "1", "torn", "3"].map(str::to_owned);
                let mut ops = Vec::new();
                for _ in 0..2 * COMMANDS {
                    let called = now();
                    let reply = add_without_versions(&store).await;
                    let (returned, kind) = (Some(now()), seen(&words, &reply));
                    ops.push(Op { client, called, returned, kind, version: Version::NONE });
                }
                ops
            });
        }
        tasks.join_all().await.into_iter().flatten().collect()
    });
    assert_eq!(check(&history, 0).verdict, Verdict::Violation, "{history:#?}");
}
