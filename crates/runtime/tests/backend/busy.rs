//! Stores of others that serve nobody for a while, and those that do not keep what they take.

use super::*;
use runtime::store::backend::inspect;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often to look whether a Redis is in the state that a test is about.
const STATE_TRIES: u32 = 1_000;

/// Waits until Redis answers everybody with this word.
fn wait_for(server: &Server, word: &str) {
    let says = |_| server.redis_cli(&["GET", "a"]).contains(word);
    assert!((0..STATE_TRIES).any(says), "it never says {word}");
}

#[test]
fn a_redis_that_is_busy_or_loads_is_waited_for_and_is_neither_gone_nor_unwilling() {
    // While it loads it looks for requests after each KiB.
    let options = [
        ["--enable-debug-command", "yes"],
        ["--loading-process-events-interval-bytes", "1024"],
        ["--rdbcompression", "no"],
    ];
    let Some(server) = redis("a Redis that is busy", options.as_flattened()) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.write(&key(b"c"), &value(2, b"other"));
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["CONFIG", "SET", "busy-reply-threshold", "10"]), "OK");
    assert_eq!(server.redis_cli(&["DEBUG", "POPULATE", "200", "filler", "2048"]), "OK");
    assert_eq!(server.redis_cli(&["CONFIG", "SET", "key-load-delay", "5000"]), "OK");
    let cases: [(&str, &[&str]); 2] =
        [("BUSY", &["EVAL", "while true do end", "0"]), ("LOADING", &["DEBUG", "RELOAD"])];
    for (version, (word, begin)) in (3..).zip(cases) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                server.redis_cli(begin);
                over.store(true, Ordering::SeqCst);
            });
            wait_for(&server, word);
            scope.spawn(|| {
                thread::park_timeout(Duration::from_millis(700));
                // Of loading there is an end by itself.
                server.redis_cli(&["SCRIPT", "KILL"]);
            });
            engine.write(&key(b"a"), &value(version, word.as_bytes()));
            engine.sync().unwrap();
            assert_eq!(read(&engine, b"c"), found(2, "other"), "{word}");
        });
        assert!(over.load(Ordering::SeqCst));
        assert_eq!(engine.refusal(), None, "{word}");
        assert_eq!(server.redis_cli(&["GET", "a"]), word);
        assert_eq!(read(&engine, b"a"), found(version, word));
    }
}

#[test]
fn who_looks_at_a_backend_is_told_whether_it_keeps_what_it_takes() {
    let servers = (Server::memcached(), Server::memcached_with(&["-M"]));
    let (Some(evicts), Some(keeps)) = servers else {
        skip::report("what a memcached evicts", "there is none: apt-get install memcached");
        return;
    };
    let told = inspect(&url(&evicts)).unwrap();
    assert!(told.found.contains("evictions"), "{told:?}");
    assert!(told.remedy.as_ref().is_some_and(|remedy| remedy.contains("-M")), "{told:?}");
    let told = inspect(&url(&keeps)).unwrap();
    assert_eq!(told.remedy, None, "{told:?}");
    let gone = url(&keeps);
    drop(keeps);
    inspect(&gone).unwrap_err();
    let options = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = redis("what a Redis evicts", &options) else { return };
    let error = inspect(&url(&server)).unwrap_err().to_string();
    assert!(error.contains("maxmemory-policy allkeys-lru"), "{error}");
    server.redis_cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_eq!(inspect(&url(&server)).unwrap().remedy, None);
    assert_eq!(server.redis_cli(&["KEYS", "*"]), "", "nothing was left there");
}
