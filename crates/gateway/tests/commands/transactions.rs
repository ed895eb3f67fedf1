//! Transactions under many clients, and what they refuse.

use crate::setup::Gateway;
use bytes::Bytes;
use gateway::Reply;
use gateway::command::{Run, resolve};
use gateway::store::{Queued, Store, Watched};
use std::thread;

/// A command of a transaction, from words.
pub(crate) fn queued(args: &[Bytes]) -> Option<Queued> {
    let Run::Keyed(command) = resolve(args).ok()?.spec.run else { return None };
    Some((command, args.to_vec()))
}

fn words(text: &str) -> Vec<Bytes> {
    text.split(' ').map(|it| it.to_owned().into()).collect()
}

/// What EXEC replies to these commands.
pub(crate) async fn exec(store: &Store, commands: &[Queued], watched: &Watched) -> Reply {
    match store.transact(commands, watched).await {
        Ok(Some(ran)) => Reply::Array(ran.into_iter().map(|it| it.reply).collect()),
        Ok(None) => Reply::NullArray,
        Err(error) => error,
    }
}

impl Gateway {
    fn exec(&self, store: &Store, commands: &[&str], watched: &Watched) -> Reply {
        let commands: Vec<Queued> =
            commands.iter().map(|text| queued(&words(text)).unwrap()).collect();
        self.runtime.block_on(exec(store, &commands, watched))
    }

    fn watch(&self, store: &Store, keys: &[&str]) -> Watched {
        let keys: Vec<Bytes> = keys.iter().map(|key| (*key).to_owned().into()).collect();
        self.runtime.block_on(store.watch(&keys)).unwrap()
    }
}

fn number(reply: &Reply) -> i64 {
    let Reply::Bulk(text) = reply else { panic!("{reply:?}") };
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

/// Clients of two gateways move amounts between accounts; others read them all.
#[test]
fn nobody_sees_a_transfer_in_parts() {
    const ACCOUNTS: [&str; 3] = ["{bank}a", "{bank}b", "{bank}c"];
    let gateway = Gateway::start();
    let stores = [gateway.store(), gateway.store()];
    for account in ACCOUNTS {
        gateway.say(&stores[0], &format!("SET {account} 100"));
    }
    let all = ACCOUNTS.map(|account| format!("GET {account}"));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let sum = |store: &Store| {
        let Reply::Array(values) = gateway.exec(store, &all, &Watched::new()) else {
            panic!("no values")
        };
        values.iter().map(number).sum::<i64>()
    };
    let (gateway, stores, sum) = (&gateway, &stores, &sum);
    thread::scope(|scope| {
        for (client, store) in (0..6).zip(stores.iter().cycle()) {
            scope.spawn(move || {
                for round in 0..40 {
                    let from = ACCOUNTS[(client + round) % 3];
                    let to = ACCOUNTS[(client + round + 1) % 3];
                    if client < 4 {
                        let debit = format!("DECRBY {from} {round}");
                        let credit = format!("INCRBY {to} {round}");
                        let reply = gateway.exec(store, &[&debit, &credit], &Watched::new());
                        assert!(matches!(reply, Reply::Array(_)), "{reply:?}");
                    } else {
                        assert_eq!(sum(store), 300);
                    }
                }
            });
        }
    });
    assert_eq!(sum(&stores[0]), 300);
}

/// The usual use of WATCH: of those who have read the same, one writes.
#[test]
fn no_increment_is_lost_between_watch_and_exec() {
    let gateway = Gateway::start();
    let stores = [gateway.store(), gateway.store()];
    let (gateway, stores) = (&gateway, &stores);
    let done: i64 = thread::scope(|scope| {
        let clients: Vec<_> = stores
            .iter()
            .cycle()
            .take(4)
            .map(|store| {
                scope.spawn(move || {
                    let mut done = 0;
                    for _ in 0..60 {
                        let watched = gateway.watch(store, &["counter"]);
                        let before = match gateway.say(store, "GET counter") {
                            Reply::Null => 0,
                            reply => number(&reply),
                        };
                        let set = format!("SET counter {}", before + 1);
                        match gateway.exec(store, &[&set], &watched) {
                            Reply::Array(_) => done += 1,
                            reply => assert_eq!(reply, Reply::NullArray),
                        }
                    }
                    done
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert!(done > 0);
    assert_eq!(number(&gateway.say(&stores[0], "GET counter")), done);
}

#[test]
fn what_cannot_take_effect_together_is_refused_and_changes_nothing() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    say("MSET a 1 b 2 c 3");
    let apart = |reply: Reply| {
        let Reply::Error(text) = reply else { panic!("{reply:?}") };
        assert!(text.starts_with("CROSSSLOT ") && text.contains("{hash tag}"), "{text}");
    };
    let none = Watched::new();
    // Of three keys, two lie apart: with 16 partitions that is all but certain for more.
    let many = ["SET a 9", "SET b 9", "SET c 9", "SET d 9", "SET e 9", "SET f 9"];
    apart(gateway.exec(&store, &many, &none));
    let names: String = (0..10).map(|n| format!(" n{n} 1")).collect();
    apart(say(&format!("MSETNX{names}")));
    assert_eq!(say("MGET a b c"), Reply::Array(["1", "2", "3"].map(Reply::bulk).to_vec()));
    assert_eq!(say("EXISTS n0 n1 n2 d e f"), Reply::Integer(0));
    // Keys that are too long for one datagram, and too many keys.
    let long = "x".repeat(400);
    for sets in [
        (0..4).map(|n| format!("SET {{t}}{long}{n} 1")).collect::<Vec<String>>(),
        (0..49).map(|n| format!("SET {{t}}{n} 1")).collect(),
    ] {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let Reply::Error(text) = gateway.exec(&store, &sets, &none) else { panic!("done") };
        assert!(text.contains("take effect together"), "{text}");
    }
    assert_eq!(say(&format!("EXISTS {{t}}0 {{t}}{long}0")), Reply::Integer(0));
}

#[test]
fn many_keys_and_long_values_take_effect_together() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    let none = Watched::new();
    let done = |commands: &[String]| {
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let replies = vec![Reply::OK; commands.len()];
        assert_eq!(gateway.exec(&store, &commands, &none), Reply::Array(replies));
    };
    done(&(0..40).map(|n| format!("SET {{t}}{n} {n}")).collect::<Vec<_>>());
    assert_eq!(say("GET {t}39"), Reply::bulk("39"));
    // Each would fit by itself, and all of them do not.
    let value = |n: usize, len: usize| n.to_string().repeat(len);
    done(&(0..20).map(|n| format!("SET {{t}}{n} {}", value(n, 150))).collect::<Vec<_>>());
    for n in 0..20 {
        assert_eq!(say(&format!("GET {{t}}{n}")), Reply::Bulk(value(n, 150).into()));
    }
    // Long ones, short ones and one that goes, while some are read.
    let (long, longer) = (value(1, 5_000), value(2, 300_000));
    let commands = [
        format!("SET {{t}}0 {long}"),
        "GET {t}0".into(),
        "DEL {t}1".into(),
        format!("SET {{t}}2 {longer} PX 100000"),
        "STRLEN {t}2".into(),
        "APPEND {t}3 x".into(),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let replies = [
        Reply::OK,
        Reply::Bulk(long.clone().into()),
        Reply::Integer(1),
        Reply::OK,
        Reply::Integer(300_000),
        Reply::Integer(151),
    ];
    assert_eq!(gateway.exec(&store, &commands, &none), Reply::Array(replies.to_vec()));
    assert_eq!(say("GET {t}0"), Reply::Bulk(long.into()));
    assert_eq!(say("EXISTS {t}1"), Reply::Integer(0));
    assert_eq!(say("STRLEN {t}2"), Reply::Integer(300_000));
    assert!(matches!(say("PTTL {t}2"), Reply::Integer(90_000..=100_000)));
    // If a watched key has changed, nothing of a long value is there.
    let watched = gateway.watch(&store, &["{t}0"]);
    say("SET {t}0 other");
    let sets = [format!("SET {{t}}0 {longer}"), format!("SET {{t}}9 {longer}")];
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    assert_eq!(gateway.exec(&store, &sets, &watched), Reply::NullArray);
    assert_eq!(say("STRLEN {t}9"), Reply::Integer(150));
    // Others that are made of one batch.
    assert_eq!(say(&format!("MSETNX {{t}}a {longer} {{t}}b {longer}")), Reply::Integer(1));
    assert_eq!(say("RENAME {t}a {t}c"), Reply::OK);
    assert_eq!(say("COPY {t}c {t}d"), Reply::Integer(1));
    assert_eq!(say("STRLEN {t}d"), Reply::Integer(300_000));
    assert_eq!(say("EXISTS {t}a {t}b {t}c {t}d"), Reply::Integer(3));
}

#[test]
fn a_key_keeps_its_expiry_where_it_goes() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    say("SET {t}a 1 PXAT 4000000000000");
    assert_eq!(say("RENAME {t}a {t}b"), Reply::OK);
    assert_eq!(say("PEXPIRETIME {t}b"), Reply::Integer(4_000_000_000_000));
    assert_eq!(say("EXISTS {t}a"), Reply::Integer(0));
    assert_eq!(say("COPY {t}b {t}c"), Reply::Integer(1));
    assert_eq!(say("PEXPIRETIME {t}c"), Reply::Integer(4_000_000_000_000));
    say("SET {t}d 1");
    assert_eq!(say("RENAMENX {t}d {t}c"), Reply::Integer(0));
    assert_eq!(say("COPY {t}d {t}c REPLACE"), Reply::Integer(1));
    assert_eq!(say("PEXPIRETIME {t}c"), Reply::Integer(-1));
    assert_eq!(say("MSETNX {t}e 1 {t}c 1"), Reply::Integer(0));
    assert_eq!(say("EXISTS {t}e"), Reply::Integer(0));
    assert_eq!(say("MSETNX {t}e 1 {t}f 2"), Reply::Integer(1));
}
