//! Commands about all keys.

use super::redis::Server;
use crate::setup::{Gateway, run};
use bytes::Bytes;
use gateway::Reply;
use machine::Rng;
use std::collections::BTreeSet;
use tokio::time::Instant;

/// Texts of letters that mean something in patterns, and of two that do not.
fn text(rng: &mut Rng, len_max: u64) -> Bytes {
    let len = 1 + rng.below(len_max);
    let letters = b"ab*?[]^-\\";
    (0..len).map(|_| letters[usize::try_from(rng.below(9)).unwrap()]).collect()
}

fn sorted(reply: Reply) -> BTreeSet<Bytes> {
    let Reply::Array(items) = reply else { panic!("no list: {reply:?}") };
    let count = items.len();
    let keys: BTreeSet<Bytes> = items
        .into_iter()
        .map(|item| match item {
            Reply::Bulk(key) => key,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(keys.len(), count, "each key once");
    keys
}

#[test]
fn patterns_find_the_keys_that_redis_finds() {
    let Some(server) = Server::start("patterns_find_the_keys_that_redis_finds") else { return };
    let mut redis = server.connect();
    let gateway = Gateway::start();
    let store = gateway.store();
    let ours = |args: &[Bytes]| gateway.runtime.block_on(run(&store, args));
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for _ in 0..300 {
        let set = ["set".into(), text(&mut rng, 4), "v".into()];
        assert_eq!(redis.run(&set), ours(&set));
    }
    assert_eq!(redis.say("dbsize"), ours(&["dbsize".into()]));
    for _ in 0..400 {
        let keys = ["keys".into(), text(&mut rng, 6)];
        assert_eq!(sorted(redis.run(&keys)), sorted(ours(&keys)), "{keys:?}");
    }
    for words in [
        "scan",
        "scan x",
        "scan 0 count 0",
        "scan 0 count x",
        "scan 0 count -1",
        "scan 0 match",
        "scan 0 fun 1",
        "flushall now",
        "flushdb async sync",
        "randomkey 1",
        "dbsize 1",
        "keys",
    ] {
        assert_eq!(redis.say(words), gateway.say(&store, words), "{words}");
    }
}

/// The page that a cursor names, and the next cursor.
fn page(
    gateway: &Gateway,
    store: &gateway::store::Store,
    cursor: &str,
    options: &str,
) -> (String, Vec<Bytes>) {
    let Reply::Array(page) = gateway.say(store, &format!("SCAN {cursor}{options}")) else {
        panic!("no page")
    };
    let [Reply::Bulk(next), Reply::Array(found)] = page.as_slice() else { panic!("{page:?}") };
    let keys = found.iter().map(|key| match key {
        Reply::Bulk(key) => key.clone(),
        other => panic!("{other:?}"),
    });
    (String::from_utf8(next.to_vec()).unwrap(), keys.collect())
}

/// Follows the cursor to the end.
fn scan(gateway: &Gateway, store: &gateway::store::Store, options: &str) -> Vec<Bytes> {
    let (mut keys, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let (next, found) = page(gateway, store, &cursor, options);
        keys.extend(found);
        cursor = next;
        if cursor == "0" {
            return keys;
        }
    }
}

#[test]
fn keys_of_one_tag_come_page_by_page_wherever_they_are_asked_for() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    let all: BTreeSet<Bytes> = (0..3_000).map(|number| format!("{{t}}:{number}").into()).collect();
    let names: Vec<&str> = all.iter().map(|key| std::str::from_utf8(key).unwrap()).collect();
    for some in names.chunks(500) {
        assert_eq!(say(&format!("MSET {}", some.join(" v ") + " v")), Reply::OK);
    }
    assert_eq!(say("SET other v"), Reply::OK);
    // Each page by another connection; then each by another gateway, which has never heard of the
    // number that it is given.
    for (stores, pages_min) in
        [(vec![store.clone(), store.clone()], 300), (vec![store.clone(), gateway.store()], 2)]
    {
        let (mut met, mut pages, mut cursor) = (Vec::new(), 0, "0".to_owned());
        loop {
            let store = &stores[pages % stores.len()];
            let (next, keys) = page(&gateway, store, &cursor, " COUNT 10");
            assert!(pages_min < 300 || keys.len() <= 10, "{} keys in a page", keys.len());
            (pages, cursor) = (pages + 1, next);
            met.extend(keys.into_iter().filter(|key| key.starts_with(b"{t}")));
            if cursor == "0" {
                break;
            }
        }
        assert!(pages >= pages_min, "{pages} pages");
        assert_eq!(met.iter().cloned().collect::<BTreeSet<_>>(), all);
        assert!(pages_min < 300 || met.len() == all.len(), "each once");
    }
    let Reply::Array(listed) = say("KEYS {t}*") else { panic!("no list") };
    assert_eq!(listed.len(), 3_000);
    assert_eq!(say("FLUSHDB"), Reply::OK);
    assert_eq!(say("DBSIZE"), Reply::Integer(0));
}

/// Prints what it takes to count, and to go through all keys: `KEYWAY_DBSIZE_KEYS` sets how many.
#[test]
fn nodes_count_the_keys_that_have_a_value() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    let keys = std::env::var("KEYWAY_DBSIZE_KEYS").map_or(20_000, |it| it.parse::<i64>().unwrap());
    let all: Vec<i64> = (0..keys).collect();
    for some in all.chunks(1_000) {
        let pairs: Vec<String> = some.iter().map(|it| format!("key:{it} v")).collect();
        assert_eq!(say(&format!("MSET {}", pairs.join(" "))), Reply::OK);
    }
    let began = Instant::now();
    assert_eq!(say("DBSIZE"), Reply::Integer(keys));
    let counted = began.elapsed();
    let met = scan(&gateway, &store, " COUNT 4096").len();
    assert_eq!(i64::try_from(met).unwrap(), keys);
    println!("{keys} keys: DBSIZE {counted:.1?}, SCAN of all {:.1?}", began.elapsed() - counted);

    let long = "x".repeat(100_000);
    assert_eq!(say(&format!("SET long {long}")), Reply::OK);
    assert_eq!(say("DBSIZE"), Reply::Integer(keys + 1), "and none of its parts");
    assert_eq!(say("DEL key:0 key:1 nosuch"), Reply::Integer(2));
    assert_eq!(say("SET key:2 v PX 1"), Reply::OK);
    while say("EXISTS key:2") != Reply::Integer(0) {}
    assert_eq!(say("DBSIZE"), Reply::Integer(keys - 2));
}

#[test]
fn a_scan_meets_every_key_that_stays_while_others_come_and_go() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    let pairs: Vec<String> = (0..700).map(|number| format!("stay:{number} v")).collect();
    say(&format!("MSET {}", pairs.join(" ")));
    let expected: BTreeSet<Bytes> =
        (0..700).map(|number| format!("stay:{number}").into()).collect();
    for options in ["", " COUNT 1", " COUNT 100", " MATCH stay:* COUNT 1000000", " TYPE string"] {
        let other = gateway.store();
        let churn = gateway.runtime.spawn(async move {
            for number in 0..300 {
                for verb in ["set go:{} v", "del go:{}"] {
                    let words = verb.replace("{}", &(number % 17).to_string());
                    let args: Vec<Bytes> =
                        words.split(' ').map(|it| it.to_owned().into()).collect();
                    run(&other, &args).await;
                }
            }
        });
        let met = scan(&gateway, &store, options);
        gateway.runtime.block_on(churn).unwrap();
        let stayed: Vec<Bytes> = met.into_iter().filter(|key| key.starts_with(b"stay:")).collect();
        let set: BTreeSet<Bytes> = stayed.iter().cloned().collect();
        assert_eq!(set, expected, "SCAN 0{options}");
        assert_eq!(stayed.len(), expected.len(), "each once");
    }
    assert_eq!(scan(&gateway, &store, " TYPE hash"), Vec::<Bytes>::new());
    assert_eq!(scan(&gateway, &store, " MATCH *:69[0-4]").len(), 5);
    assert_eq!(say("DBSIZE"), Reply::Integer(700));
    let Reply::Bulk(any) = say("RANDOMKEY") else { panic!("no key") };
    assert!(expected.contains(&any));
    assert_eq!(say("FLUSHDB"), Reply::OK);
    assert_eq!(say("DBSIZE"), Reply::Integer(0));
    assert_eq!(say("RANDOMKEY"), Reply::Null);
    assert_eq!(say("KEYS *"), Reply::Array(Vec::new()));
    assert_eq!(say("FLUSHALL ASYNC"), Reply::OK);
}

#[test]
fn flushall_goes_on_to_the_end_though_nobody_waits_for_it() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let pairs = (0..20_000).flat_map(|key: u32| [key.to_string().into(), "v".into()]);
    let mset: Vec<Bytes> = [Bytes::from("mset")].into_iter().chain(pairs).collect();
    assert_eq!(gateway.runtime.block_on(run(&store, &mset)), Reply::OK);
    gateway.runtime.block_on(async {
        let flush = ["flushall".into()];
        // It is dropped before it can have come far.
        let begun = tokio::time::timeout(std::time::Duration::from_millis(1), run(&store, &flush));
        assert!(begun.await.is_err(), "it cannot be done so soon");
        let began = Instant::now();
        while run(&store, &["dbsize".into()]).await != Reply::Integer(0) {
            assert!(began.elapsed().as_secs() < 60, "keys are left");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
}
