//! Scripts beside those of a real Redis server, and many of them at once.

use super::redis::{Connection, Server};
use crate::setup::{Gateway, integer, run};
use bytes::Bytes;
use gateway::Reply;
use gateway::store::Store;
use std::sync::Arc;
use tokio::task::JoinSet;

/// EVAL of a script about some keys.
fn eval(text: &str, keys: &[&str], args: &[&str]) -> Vec<Bytes> {
    let count = keys.len().to_string();
    let words = ["EVAL", text, &count].into_iter().chain(keys.iter().copied());
    words.chain(args.iter().copied()).map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

/// Scripts that are run one after the other, on the keys `{s}a` and `{s}b` with the arguments `x`
/// and `5`.
const SCRIPTS: &[&str] = &[
    // What becomes of values and replies.
    "return 1.9",
    "return {1, 2.5, 'x', true, {false, 3}, nil, 4}",
    "return {ok = 'fine', err = 'both'}",
    "return redis.status_reply('fine')",
    "return redis.error_reply('wrong')",
    "return redis.error_reply('-WRONG too')",
    "return redis.error_reply(1, 2)",
    "return {KEYS[1], KEYS[2], KEYS[3], ARGV[1]}",
    "return #KEYS .. #ARGV",
    "return tostring(redis.call('get', 'nothing{s}'))",
    "return redis.call('set', KEYS[1], ARGV[2])",
    "return redis.call('incrby', KEYS[1], 2)",
    "return redis.call('incrby', KEYS[1], 2.0)",
    "return redis.call('incrby', KEYS[1], 2.5)",
    "return redis.call('incrbyfloat', KEYS[1], 0.1)",
    "return redis.call('append', KEYS[2], 1e300)",
    "return redis.call('append', KEYS[2], 123456789012345678)",
    "return redis.call('mget', KEYS[1], KEYS[2], '{s}none')",
    "return #redis.call('mget', KEYS[1], KEYS[2], '{s}none')",
    "return redis.call('set', KEYS[1], 1).ok",
    "return redis.call('exists', KEYS[1], KEYS[1])",
    "return {redis.call('del', KEYS[1]), redis.call('get', KEYS[1])}",
    "redis.call('set', KEYS[1], 1, 'px', 100000) return redis.call('pttl', KEYS[1]) > 99000",
    "return redis.call('pttl', KEYS[1]) > 90000",
    "redis.call('persist', KEYS[1]) return redis.call('ttl', KEYS[1])",
    "return redis.call('set', KEYS[1], 'new', 'nx')",
    "return redis.call('set', KEYS[1], 'new', 'xx', 'get')",
    "return redis.call('ping')",
    "return redis.call('echo', 'x')",
    "return redis.call('type', KEYS[1])",
    "return {type(redis.call('time')[1]), #redis.call('time')}",
    "redis.setresp(3); return redis.call('get', '{s}none') == nil",
    "redis.setresp(3); return true",
    "redis.setresp(4)",
    "redis.setresp()",
    // Errors.
    "return redis.call('nosuch')",
    "return redis.pcall('nosuch')",
    "return redis.call('get')",
    "return redis.call('set', KEYS[1], {})",
    "return redis.call()",
    "return redis.pcall()",
    "return redis.call('multi')",
    "return redis.call('auth', 'x')",
    "return redis.call('eval', 'return 1', 0)",
    "return redis.call('config', 'get', 'x')",
    "return redis.call('client', 'id')",
    "return redis.call('incr', KEYS[1])",
    "return redis.pcall('incr', KEYS[1])",
    "local e = redis.pcall('incr', KEYS[1]) return e.err",
    "local e = redis.pcall('incr', KEYS[1]) return e['err']:len()",
    "local ok, e = pcall(redis.call, 'incr', KEYS[1]) return {tostring(ok), type(e), e}",
    "\n\nlocal x = 1\nreturn redis.call('incr', KEYS[1])",
    "error('boom')",
    "error({err = 'MY boom'})",
    "return error('boom', 0)",
    "local function f() error('inside') end\nf()",
    "return nosuch",
    "nosuch = 1",
    "local x; return x.y",
    "return 1 +",
    "return unpack({1, 2}) == 1",
    "redis.call('set', KEYS[1], 'kept') error('after')",
    "return redis.call('get', KEYS[1])",
    "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 1)",
    "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])",
    "#!nosuch\nreturn 1",
    "#!lua flags=nosuch\nreturn 1",
    // Libraries.
    "return redis.sha1hex('')",
    "return redis.sha1hex()",
    "return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}",
    "redis.log(redis.LOG_DEBUG, 'said') return 1",
    "redis.log(1)",
    "redis.log('x', 'y')",
    "return redis.replicate_commands()",
    "math.randomseed(7) return {tostring(math.random()), math.random(100), math.random(5, 9)}",
    "return tostring(1e15) .. tostring(0.1) .. tostring(-0)",
    "return cjson.encode({1, 2.5, 'x', true, cjson.null, {}, {a = {1}}})",
    "return cjson.encode({[1] = 1, [3] = 3})",
    "return cjson.encode({[100] = 1})",
    "return cjson.encode({x = function() end})",
    "return cjson.encode({1/3, 1e14, 1e15, 123456789, -0.5, 1e-5})",
    "return cjson.encode('/\\1\\127\"\\\\\\b\\f\\n\\r\\t')",
    "return cjson.encode({[5.5] = 1})",
    "return cjson.decode('{\"a\":[1,2,{\"b\":null}]}').a[2]",
    "return cjson.decode('[1,2.9,\"x\",true]')",
    "return cjson.decode('{\"a\":null}').a == cjson.null",
    "return cjson.encode(cjson.decode('{\"a\":[{\"b\":\"\\\\u00e9\"}]}'))",
    "return cmsgpack.pack(1, -1, 127, 128, 255, 256, 65535, 65536, 4294967296, -32, -33, -129)",
    "return cmsgpack.pack(0.5, 0.1, 1e300, true, false, nil)",
    "return cmsgpack.pack('', 'abc', ('x'):rep(31), ('x'):rep(32), ('x'):rep(300))",
    "return cmsgpack.pack({}, {1, 2, 3}, {a = 1}, {[2] = 1}, {{{{}}}})",
    "return {cmsgpack.unpack(cmsgpack.pack(1, 'x', {1, 2, {3}}, true))}",
    "return cmsgpack.unpack('\\217\\5ab')",
    "return {bit.band(0xff, 0x0f), bit.bor(1, 2), bit.bxor(5, 1), bit.bnot(0), bit.lshift(1, 31)}",
    "return {bit.rshift(-1, 28), bit.arshift(-16, 2), bit.rol(1, 33), bit.ror(1, 1)}",
    "return {bit.tobit(0xffffffff), bit.bswap(0x01020304), bit.tohex(255), bit.tohex(255, -4)}",
    "return loadstring('return 1 + 1')()",
    "return ({loadstring('return +')})[2]",
    "return string.format('%5.1f|%d|%s|%q', 1.25, 3, 'x', 'y')",
    "return {('abc'):gsub('b', '%0%0')}",
    "local t = {3, 1, 2} table.sort(t) return table.concat(t, ',')",
    "return coroutine.wrap(function() coroutine.yield(redis.call('get', KEYS[1])) end)()",
    "return select('#', pcall(function() return 1, 2, 3 end))",
    "return ({xpcall(function() error('x') end, function(e) return 'got ' .. e end)})[2]",
];

/// Whether replies are the same to a client that speaks RESP2. Here an error says which command
/// there is not.
fn is_alike(theirs: &Reply, ours: &Reply) -> bool {
    match ours {
        Reply::Error(text) if text.contains("from script: 'nosuch'") => {
            *theirs == Reply::Error(text.replacen(": 'nosuch'", "", 1).into())
        }
        Reply::Boolean(is) => *theirs == Reply::Integer((*is).into()),
        ours => theirs == ours,
    }
}

#[test]
fn scripts_reply_what_they_reply_in_redis() {
    let Some(server) = Server::start("scripts_reply_what_they_reply_in_redis") else { return };
    let mut redis: Connection = server.connect();
    let gateway = Gateway::start();
    let store = gateway.store();
    let mut wrong = Vec::new();
    for text in SCRIPTS {
        let args = eval(text, &["{s}a", "{s}b"], &["x", "5"]);
        let theirs = redis.run(&args);
        let ours = gateway.runtime.block_on(run(&store, &args));
        if !is_alike(&theirs, &ours) {
            wrong.push(format!("{text}\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_names_a_script_and_its_keys_is_looked_at_as_in_redis() {
    let Some(server) = Server::start("what_names_a_script_and_its_keys") else { return };
    let mut redis = server.connect();
    let gateway = Gateway::start();
    let store = gateway.store();
    let known = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    for words in [
        vec!["EVALSHA", known, "0"],
        vec!["EVAL", "return 1", "0"],
        vec!["EVALSHA", known, "0"],
        vec!["EVALSHA_RO", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"],
        vec!["EVALSHA", "nosuch", "0"],
        vec!["EVAL", "return 1", "1"],
        vec!["EVAL", "return 1", "-1"],
        vec!["EVAL", "return 1", "x"],
        vec!["EVAL", "return 1"],
        vec!["EVAL_RO", "return redis.call('set', KEYS[1], 1)", "1", "a"],
        vec!["EVAL_RO", "return redis.call('get', KEYS[1])", "1", "a"],
    ] {
        let args: Vec<Bytes> = words.iter().map(|it| it.as_bytes().to_vec().into()).collect();
        let ours = gateway.runtime.block_on(run(&store, &args));
        assert_eq!(ours, redis.run(&args), "{words:?}");
    }
}

/// Tasks, half of them through each gateway.
const TASKS: usize = 8;

const ADD: &str = "local n = tonumber(redis.call('get', KEYS[1]) or '0') \
                   redis.call('set', KEYS[1], n + 1, 'px', 600000) \
                   redis.call('set', KEYS[2], n + 1) return n + 1";

#[test]
fn no_step_of_a_script_is_lost() {
    let gateway = Gateway::start();
    let stores = [gateway.store(), gateway.store()];
    let mut all = gateway.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let store = stores[task % 2].clone();
            let _abort = tasks.spawn(async move {
                let mut seen = Vec::new();
                for _ in 0..20 {
                    seen.push(integer(&run(&store, &eval(ADD, &["{n}a", "{n}b"], &[])).await));
                }
                seen
            });
        }
        tasks.join_all().await.into_iter().flatten().collect::<Vec<_>>()
    });
    all.sort_unstable();
    let expected: Vec<i64> = (1..=i64::try_from(TASKS * 20).unwrap()).collect();
    assert_eq!(all, expected, "each number once");
    let last = Reply::bulk((TASKS * 20).to_string());
    assert_eq!(gateway.say(&stores[0], "MGET {n}a {n}b"), Reply::Array(vec![last.clone(), last]));
}

const UNLOCK: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
                      return redis.call('del', KEYS[1]) else return 0 end";

/// Who holds the lock adds to a number without any other protection.
#[test]
fn a_lock_is_held_by_one() {
    let gateway = Gateway::start();
    let stores = [gateway.store(), gateway.store()];
    gateway.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let store = stores[task % 2].clone();
            let _abort = tasks.spawn(async move {
                for round in 0..5 {
                    add_under_lock(&store, &format!("{task}-{round}")).await;
                }
            });
        }
        tasks.join_all().await;
    });
    let sum = Reply::bulk((TASKS * 5).to_string());
    assert_eq!(gateway.say(&stores[0], "GET sum"), sum);
}

async fn add_under_lock(store: &Store, token: &str) {
    let words = |text: String| -> Vec<Bytes> {
        text.split(' ').map(|word| word.to_owned().into()).collect()
    };
    let lock = words(format!("SET lock {token} NX PX 600000"));
    while run(store, &lock).await != Reply::OK {
        tokio::task::yield_now().await;
    }
    let sum = match run(store, &words("GET sum".into())).await {
        Reply::Null => 0,
        Reply::Bulk(text) => std::str::from_utf8(&text).unwrap().parse::<i64>().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(run(store, &words(format!("SET sum {}", sum + 1))).await, Reply::OK);
    assert_eq!(run(store, &eval(UNLOCK, &["lock"], &["other"])).await, Reply::Integer(0));
    assert_eq!(run(store, &eval(UNLOCK, &["lock"], &[token])).await, Reply::Integer(1));
}

#[test]
fn a_script_writes_long_values() {
    let gateway = Gateway::start();
    let store = gateway.store();
    let text = "redis.call('set', KEYS[1], ('x'):rep(100000))
        redis.call('append', KEYS[1], 'y') return redis.call('set', KEYS[2], ('z'):rep(1400))";
    let given = eval(text, &["{l}a", "{l}b"], &[]);
    assert_eq!(gateway.runtime.block_on(run(&store, &given)), Reply::OK);
    let long = |letter: &str, count: usize, end: &str| {
        Reply::Bulk(format!("{}{end}", letter.repeat(count)).into())
    };
    assert_eq!(gateway.say(&store, "GET {l}a"), long("x", 100_000, "y"));
    assert_eq!(gateway.say(&store, "GET {l}b"), long("z", 1_400, ""));
}

#[test]
fn what_cannot_take_effect_together_is_refused() {
    let gateway = Gateway::start();
    let store = Arc::new(gateway.store());
    let say =
        |text: &str, keys: &[&str]| gateway.runtime.block_on(run(&store, &eval(text, keys, &[])));
    let many = "for n = 1, 49 do redis.call('set', '{m}' .. n, 1) end return 1";
    let Reply::Error(why) = say(many, &[]) else { panic!("49 keys were written") };
    assert!(why.starts_with("ERR this would take 49 keys"), "{why}");
    let much = "local long = ('x'):rep(1048576 * 17)
        for n = 1, 4 do redis.call('set', KEYS[1] .. n, long) end return 1";
    let Reply::Error(why) = say(much, &["{m}a"]) else { panic!("68 MiB were written") };
    assert!(why.contains("67108864 bytes at most"), "{why}");
    let apart = "for n = 1, 16 do redis.call('set', 'key' .. n, 1) end return 1";
    let Reply::Error(why) = say(apart, &[]) else { panic!("keys in many places were written") };
    assert!(why.starts_with("CROSSSLOT "), "{why}");
    let endless =
        "redis.call('set', KEYS[1], 1) while true do redis.call('get', KEYS[1] .. 'x') end";
    let limited = Arc::clone(&store);
    let given = eval(endless, &["{m}a"], &[]);
    let stopped = gateway.runtime.block_on(async move {
        let run =
            tokio::time::timeout(std::time::Duration::from_millis(200), run(&limited, &given));
        run.await.is_err()
    });
    assert!(stopped, "nobody waits for it any more");
    assert_eq!(gateway.say(&store, "EXISTS {m}1 {m}a {m}b key1"), Reply::Integer(0));
    assert_eq!(say("return redis.call('scan', 0)", &[]), {
        let text = "return redis.call('scan', 0)";
        let sha = match gateway
            .runtime
            .block_on(run(&store, &eval("return redis.sha1hex(ARGV[1])", &[], &[text])))
        {
            Reply::Bulk(sha) => String::from_utf8(sha.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        let what = "ERR 'scan' is about all keys, and no part of a script here";
        Reply::Error(format!("{what} script: {sha}, on @user_script:1.").into())
    });
}
