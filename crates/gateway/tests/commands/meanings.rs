//! What a Redis 7 server cannot be asked: commands that it lacks, and what Keyway does otherwise.

use crate::setup::{Gateway, run};
use bytes::Bytes;
use gateway::Reply;
use std::time::Duration;

fn error(text: &str) -> Reply {
    Reply::Error(text.to_owned().into())
}

#[test]
fn a_value_is_replaced_or_deleted_only_if_it_is_the_expected_one() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    assert_eq!(say("SET k new IFEQ old"), Reply::Null);
    assert_eq!(say("GET k"), Reply::Null);
    assert_eq!(say("SET k old PX 1000000"), Reply::OK);
    assert_eq!(say("SET k new IFEQ other"), Reply::Null);
    assert_eq!(say("SET k new IFEQ other GET"), Reply::bulk("old"));
    assert_eq!(say("SET k new IFEQ old KEEPTTL"), Reply::OK);
    assert_eq!(say("TTL k"), Reply::Integer(1000));
    assert_eq!(say("SET k newer GET IFEQ new"), Reply::bulk("new"));
    assert_eq!(say("TTL k"), Reply::Integer(-1));
    for options in ["NX IFEQ newer", "IFEQ newer XX", "IFEQ newer IFEQ newer", "IFEQ"] {
        assert_eq!(say(&format!("SET k v {options}")), error("ERR syntax error"), "{options}");
    }
    assert_eq!(say("DELIFEQ k new"), Reply::Integer(0));
    assert_eq!(say("DELIFEQ k newer"), Reply::Integer(1));
    assert_eq!(say("DELIFEQ k newer"), Reply::Integer(0));
    assert_eq!(say("EXISTS k"), Reply::Integer(0));
}

#[test]
fn of_one_key_nothing_has_to_lie_together() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    assert_eq!(say("MSETNX c 3 c 4"), Reply::Integer(1));
    assert_eq!(say("GET c"), Reply::bulk("4"));
    assert_eq!(say("COPY x b REPLACE"), Reply::Integer(0));
    assert_eq!(say("RENAME x y"), error("ERR no such key"));
    assert_eq!(say("RENAMENX c c"), Reply::Integer(0));
}

#[test]
fn keys_and_values_over_the_limit_are_refused_with_the_limit() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    let long_key = "k".repeat(1025);
    let text = "ERR keys have 1 to 1024 bytes here, and this one has 1025";
    for command in ["GET", "DEL", "EXISTS", "MGET a", "INCR", "GETDEL", "PTTL"] {
        assert_eq!(say(&format!("{command} {long_key}")), error(text), "{command}");
    }
    assert_eq!(say("GET "), error("ERR keys have 1 to 1024 bytes here, and this one has 0"));
    let key = "k".repeat(981);
    let text = "ERR values have at most 536870912 bytes here, and keys of values that are long \
                980; these have 1280 and 981";
    let value = "v".repeat(1280);
    assert_eq!(say(&format!("SET {key} {value}")), error(text));
    assert_eq!(say(&format!("MSET a 1 {key} {value}")), error(text));
    assert_eq!(say(&format!("EXISTS a {key}")), Reply::Integer(0));
    assert_eq!(say(&format!("SET {} {value}", &key[1..])), Reply::OK);
    assert_eq!(say(&format!("APPEND {} v", &key[1..])), Reply::Integer(1281));
    let text = "ERR commands that change a part of a value take values of at most 67108864 bytes \
                here; GET it and SET it anew";
    assert_eq!(say("SETRANGE k 67108864 v"), error(text));
    assert_eq!(say("STRLEN k"), Reply::Integer(0));
}

#[test]
fn a_thousand_keys_are_written_read_and_deleted_in_one_command() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let names: Vec<String> = (0..5000).map(|index| format!("key:{index}")).collect();
    let pairs: Vec<String> = names.iter().map(|name| format!("{name} {name}")).collect();
    let (names, pairs) = (names.join(" "), pairs.join(" "));
    let say = |words: &str| gateway.say(&store, words);
    assert_eq!(say(&format!("MSET {pairs} key:7 seven")), Reply::OK);
    let Reply::Array(values) = say(&format!("MGET {names} none key:3")) else { panic!("no list") };
    assert_eq!(values.len(), 5002);
    assert_eq!(values[7], Reply::bulk("seven"));
    assert_eq!(values[4999], Reply::bulk("key:4999"));
    assert_eq!(values[5000..], [Reply::Null, Reply::bulk("key:3")]);
    assert_eq!(say(&format!("EXISTS {names} key:3 none")), Reply::Integer(5001));
    assert_eq!(say(&format!("DEL {names} key:3 none")), Reply::Integer(5000));
    assert_eq!(say(&format!("EXISTS {names}")), Reply::Integer(0));
}

#[test]
fn what_is_told_of_values_is_true() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let say = |words: &str| gateway.say(&store, words);
    say("SET key 12345");
    assert_eq!(say("OBJECT ENCODING key"), Reply::bulk("raw"));
    assert_eq!(say("OBJECT refcount key"), Reply::Integer(1));
    assert_eq!(say("OBJECT ENCODING none"), Reply::Null);
    assert_eq!(say("OBJECT IDLETIME key"), error("ERR idle times are not tracked here"));
    assert_eq!(say("MEMORY USAGE key SAMPLES 5"), Reply::Integer(8));
    assert_eq!(say("MEMORY USAGE none"), Reply::Null);
    assert_eq!(say("MEMORY USAGE key SAMPLES"), error("ERR syntax error"));
    let unknown = "ERR unknown subcommand 'DOCTOR'. Try MEMORY HELP.";
    assert_eq!(say("MEMORY DOCTOR"), error(unknown));
    let arity = "ERR wrong number of arguments for 'object|encoding' command";
    assert_eq!(say("OBJECT ENCODING"), error(arity));
    assert!(matches!(say("OBJECT HELP"), Reply::Array(lines) if lines.len() > 3));
}

#[test]
fn what_nobody_answers_is_told_as_what_it_is() {
    let gateway = Gateway::start();
    let store = gateway.store_within(Duration::from_millis(200));
    let runtime = gateway.stop();
    let unread = "ERR not read, and nothing was changed: no answer before the deadline";
    let unknown = "ERR outcome unknown, a write may have happened: no answer before the deadline";
    for (words, start) in [
        ("GET k", unread),
        ("MGET k l", unread),
        ("KEYS *", unread),
        // These would have written after that.
        ("APPEND k v", unread),
        ("GETDEL k", unread),
        ("SET k v", unknown),
        ("SET k v NX", unknown),
        ("INCR k", unknown),
        ("DEL k", unknown),
        ("MSET k 1 l 2", "ERR 2 of 2 writes are not known to be done: outcome unknown"),
    ] {
        let args: Vec<Bytes> = words.split(' ').map(|it| it.to_owned().into()).collect();
        let Reply::Error(text) = runtime.block_on(run(&store, &args)) else { panic!("{words}") };
        assert!(text.starts_with(start), "{words}: {text}");
    }
}
