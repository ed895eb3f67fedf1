//! Scripts, without a cluster.

use super::*;
use bytes::Bytes;

/// What commands reply: their words in a list, or what their name says.
fn answer(args: &[Bytes]) -> Result<Reply, Reply> {
    Ok(match args[0].as_ref() {
        b"nil" => Reply::Null,
        b"status" => Reply::OK,
        b"number" => Reply::Integer(41),
        b"fail" => Reply::error("ERR failed"),
        b"over" => return Err(Reply::error("ERR over")),
        b"double" => Reply::Double(1.5),
        _ => Reply::Array(args.iter().cloned().map(Reply::Bulk).collect()),
    })
}

fn run_for(machine: &mut Machine, text: &str, time_max: Duration) -> Ended {
    let given = Given {
        source: Arc::new(Source::new(text.as_bytes()).unwrap()),
        keys: vec!["a".into(), "b".into()],
        args: vec!["x".into()],
        commands: Box::new(answer),
    };
    machine.run(given, Arc::new(Stop::default()), time_max)
}

fn run(machine: &mut Machine, text: &str) -> Reply {
    match run_for(machine, text, Duration::from_secs(60)) {
        Ended::Done(reply) => reply,
        Ended::Over(reply) => panic!("{text}: {reply:?}"),
    }
}

#[track_caller]
fn check(text: &str, expected: Reply) {
    let mut machine = Machine::new().unwrap();
    assert_eq!(run(&mut machine, text), expected, "{text}");
}

fn bulk(text: &str) -> Reply {
    Reply::bulk(text)
}

/// The text of an error of the script, which is on that line.
#[track_caller]
fn check_error(text: &str, expected: &str, line: usize) {
    let sha = super::super::source::sha_of(text.as_bytes());
    let expected = format!("{expected} script: {sha}, on @user_script:{line}.");
    check(text, Reply::Error(expected.into()));
}

#[test]
fn values_become_replies_as_in_redis() {
    check("return 3.99", Reply::Integer(3));
    check("return -3.99", Reply::Integer(-3));
    check("return 'x'", bulk("x"));
    check("return true", Reply::Integer(1));
    check("return false", Reply::Null);
    check("", Reply::Null);
    check("return print", Reply::Error(error_of_print().into()));
    let items = [Reply::Integer(1), bulk("2"), Reply::Array(vec![Reply::Integer(3)])];
    check("return {1, '2', {3, nil, 4}, nil, 5}", Reply::Array(items.to_vec()));
    check("return {ok = 'fine'}", Reply::Status("fine".into()));
    check("return {err = 'MY error'}", Reply::error("MY error"));
    check("return redis.status_reply('fine')", Reply::Status("fine".into()));
    check("return redis.error_reply('-MY error')", Reply::error("MY error"));
    let wrong = Reply::error("ERR wrong number or type of arguments");
    check("return redis.error_reply({})", wrong);
    check("return {double = 0.5}", Reply::Double(0.5));
    check("redis.setresp(3); return true", Reply::Boolean(true));
    let map = Reply::Map(vec![(bulk("a"), Reply::Integer(1))]);
    check("return {map = {a = 1}}", map);
    check("return {set = {a = true}}", Reply::Set(vec![bulk("a")]));
    check("return {KEYS[1], KEYS[2], ARGV[1], #KEYS}", {
        Reply::Array(vec![bulk("a"), bulk("b"), bulk("x"), Reply::Integer(2)])
    });
}

fn error_of_print() -> String {
    let what = "ERR user_script:1: Script attempted to access nonexistent global variable 'print'";
    let sha = super::super::source::sha_of(b"return print");
    format!("{what} script: {sha}, on @user_script:1.")
}

#[test]
fn replies_become_values_as_in_redis() {
    check("return redis.call('nil') == false and 1", Reply::Integer(1));
    check("return redis.call('status').ok", bulk("OK"));
    check("return redis.call('number') + 1", Reply::Integer(42));
    check("return redis.pcall('fail').err", bulk("ERR failed"));
    check("return redis.pcall('fail')", Reply::error("ERR failed"));
    check("return redis.call('double')", bulk("1.5"));
    check("redis.setresp(3); return redis.call('double').double * 2", Reply::Integer(3));
    check("redis.setresp(3); return redis.call('nil') == nil", Reply::Boolean(true));
    let words = ["set", "1", "0.10000000000000001", "-7", "1e+300", "x"];
    let words = words.map(bulk).to_vec();
    check("return redis.call('set', 1, 0.1, -7.0, 1e300, ARGV[1])", {
        let mut words = words;
        words[4] = bulk("1.0000000000000001e+300");
        Reply::Array(words)
    });
}

#[test]
fn errors_say_where_they_come_from() {
    check_error("return redis.call('fail')", "ERR failed", 1);
    check_error("\nlocal x = redis.call('fail')\nreturn x", "ERR failed", 2);
    check_error("error('boom')", "ERR user_script:1: boom", 1);
    check_error("error({err = 'MY boom'})", "MY boom", 1);
    check_error(
        "local x = nil\nreturn x.y",
        "ERR user_script:2: attempt to index local 'x' (a nil value)",
        2,
    );
    check_error("x = 1", "ERR user_script:1: Attempt to modify a readonly table", 1);
    check_error(
        "return cjson.decode('[')",
        {
            "ERR user_script:1: Expected value but found invalid token at character 1 (EOF while \
         parsing a list at line 1 column 1)"
        },
        1,
    );
    let none = "ERR Please specify at least one argument for this redis lib call";
    check_error("redis.call()", none, 1);
    let kinds = "ERR Lua redis lib command arguments must be strings or integers";
    check_error("redis.call('set', {})", kinds, 1);
    check("return redis.pcall('set', true)", Reply::error(kinds));
    check("local ok, e = pcall(redis.call, 'fail'); return {tostring(ok), e}", {
        Reply::Array(vec![bulk("false"), bulk("ERR failed")])
    });
    check("local ok, e = pcall(error, 'x'); return e", bulk("x"));
    check(
        "return ({xpcall(function() redis.call('fail') end, function(e) return e.err end)})[2]",
        bulk("ERR failed"),
    );
    let mut machine = Machine::new().unwrap();
    let text = "ERR Error compiling script (new function): user_script:1: unexpected symbol near \
                '?'";
    assert_eq!(run(&mut machine, "?"), Reply::error(text));
    assert!(matches!(run(&mut machine, "\x1bLua"), Reply::Error(_)), "compiled code is refused");
}

#[test]
fn nothing_of_a_script_is_left_to_the_next() {
    let mut machine = Machine::new().unwrap();
    let mut say = |text: &str| run(&mut machine, text);
    say("string.upper = nil; math.x = 1; redis.call = nil; rawset(_G, 'x', 1); return 1");
    let text =
        "return {type(string.upper), type(math.x), type(redis.call), tostring(rawget(_G, 'x'))}";
    let expected = ["function", "nil", "function", "nil"].map(bulk).to_vec();
    assert_eq!(say(text), Reply::Array(expected));
    assert_eq!(say("return getmetatable('')"), Reply::Null);
    assert_eq!(say("return ('x'):upper()"), bulk("X"));
    let drawn = "return tostring(math.random())";
    assert_ne!(say(drawn), say(drawn));
    let seeded = format!("math.randomseed(7) {drawn}");
    assert_eq!(say(&seeded), say(&seeded));
    for gone in ["io", "require", "dofile", "loadfile", "debug", "package", "getfenv", "newproxy"] {
        let Reply::Error(text) = say(&format!("return {gone}")) else { panic!("{gone} is there") };
        assert!(text.contains("nonexistent global variable"), "{text}");
    }
    assert_eq!(say("return type(os.execute) .. type(os.clock)"), bulk("nilfunction"));
    assert_eq!(say("return loadstring('return 1 + 1')()"), Reply::Integer(2));
    assert_eq!(say("return loadstring('return type(ARGV)')()"), bulk("table"));
    assert_eq!(say("return type(loadstring('\\27Lua'))"), bulk("nil"));
}

#[test]
fn a_script_that_takes_too_long_is_ended() {
    let mut machine = Machine::new().unwrap();
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do local ok = xpcall(function() while true do end end, function() end) end",
        "local function f() while true do end end\n\
         while true do coroutine.resume(coroutine.create(f)) end",
        "local co = coroutine.wrap(function() while true do end end)\nwhile true do pcall(co) end",
        "redis.call('set', 'a'); while true do end",
    ] {
        match run_for(&mut machine, text, Duration::from_millis(50)) {
            Ended::Over(Reply::Error(why)) => {
                assert!(why.starts_with("ERR the script took more than 50 ms"), "{why}");
            }
            other => panic!("{text}: {other:?}"),
        }
        assert_eq!(run(&mut machine, "return 1"), Reply::Integer(1), "after {text}");
    }
}

#[test]
fn a_script_that_is_ended_by_others_goes_no_further() {
    let mut machine = Machine::new().unwrap();
    let text = "pcall(redis.call, 'over'); return 1";
    let sha = super::super::source::sha_of(text.as_bytes());
    let over = Ended::Over(Reply::Error(format!("ERR over script: {sha}").into()));
    assert_eq!(run_for(&mut machine, text, Duration::from_secs(60)), over);
    let stop = Arc::new(Stop::default());
    stop.kill();
    let given = Given {
        source: Arc::new(Source::new(b"return redis.call('number')").unwrap()),
        keys: Vec::new(),
        args: Vec::new(),
        commands: Box::new(|_| panic!("it was killed before")),
    };
    match machine.run(given, stop, Duration::from_secs(60)) {
        Ended::Over(Reply::Error(text)) => {
            assert!(text.starts_with("ERR Script killed by user with SCRIPT KILL."), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_script_that_takes_too_much_memory_is_ended() {
    let mut machine = Machine::new().unwrap();
    for text in [
        "local t = {}; while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "return ('x'):rep(1e9)",
    ] {
        let ended = run_for(&mut machine, text, Duration::from_secs(60));
        let Ended::Over(Reply::Error(why)) = ended else { panic!("{text}: {ended:?}") };
        assert!(why.starts_with("ERR the script needs more than 64 MB"), "{why}");
        assert_eq!(run(&mut machine, "return 1"), Reply::Integer(1), "after {text}");
    }
    // What is in a table any number of times is no reply without end, nor a text.
    let double = "local t = ('x'):rep(1e6); for _ = 1, 30 do t = {t, t} end; ";
    let long = run(&mut machine, &format!("{double} return t"));
    assert!(matches!(&long, Reply::Error(text) if text.contains("more than")), "{long:?}");
    for library in ["cjson.encode", "cmsgpack.pack"] {
        let text = "local t = ('x'):rep(1e6); for _ = 1, 12 do t = {t, t} end; ";
        let long = run(&mut machine, &format!("{text} return {library}(t)"));
        assert!(matches!(long, Reply::Error(_)), "{library}");
    }
    let deep = "local t = {}; for _ = 1, 5000 do t = {t} end; return t";
    assert!(matches!(run(&mut machine, deep), Reply::Error(_)));
    let endless = run(&mut machine, "local function f() return f() + 1 end f()");
    assert!(matches!(endless, Reply::Error(_)));
}

#[test]
fn json_is_that_of_cjson() {
    let encoded = |value: &str, json: &str| {
        check(&format!("return cjson.encode({value})"), bulk(json));
    };
    encoded("{}", "{}");
    encoded("{1, 2.5, 'x', true, cjson.null}", r#"[1,2.5,"x",true,null]"#);
    encoded("{a = {b = 1}}", r#"{"a":{"b":1}}"#);
    encoded("{[1] = 1, [3] = 3}", "[1,null,3]");
    encoded("{[1] = 1, x = 2}", r#"{"1":1,"x":2}"#);
    encoded("'/\\1\\127\"\\\\'", r#""\/\u0001\u007f\"\\""#);
    encoded("1e15", "1e+15");
    encoded("0.1", "0.1");
    encoded("1/3", "0.33333333333333");
    let sparse = "ERR user_script:1: Cannot serialise table: excessively sparse array";
    check_error("return cjson.encode({[100] = 1})", sparse, 1);
    let function = "ERR user_script:1: Cannot serialise function: type not supported";
    check_error("return cjson.encode(function() end)", function, 1);
    let round = r#"return cjson.encode(cjson.decode('{"a":[1,-2,3.5e1,null,"\\u00e9\\/"]}'))"#;
    check(round, bulk("{\"a\":[1,-2,35,null,\"\u{e9}\\/\"]}"));
    check("return cjson.decode('[]')[1] == nil and cjson.decode('null') == cjson.null", {
        Reply::Integer(1)
    });
}

#[test]
fn packed_values_are_those_of_cmsgpack() {
    let hex = "local function hex(s) return (s:gsub('.', function(c) \
               return ('%02x'):format(c:byte()) end)) end ";
    let packed = |values: &str, expected: &str| {
        check(&format!("{hex} return hex(cmsgpack.pack({values}))"), bulk(expected));
    };
    packed("1, -1, 200, -200, 65536", "01ffccc8d1ff38ce00010000");
    packed("0.5, 0.1, true, false, nil", "ca3f000000cb3fb999999999999ac3c2c0");
    packed("'abc', {}, {1, 2}, {a = 1}", "a3616263909201 0281a16101".replace(' ', "").as_str());
    packed("{{{{{{{{{{{{{{{{{1}}}}}}}}}}}}}}}}}", &format!("{}c0", "91".repeat(16)));
    check("return {cmsgpack.unpack(cmsgpack.pack(1, 'x', {a = {2}}))}", {
        Reply::Array(vec![Reply::Integer(1), bulk("x"), Reply::Array(Vec::new())])
    });
    check("return cmsgpack.unpack(cmsgpack.pack({a = {2, 3}})).a[2]", Reply::Integer(3));
    let missing = "ERR user_script:1: Missing bytes in input.";
    check_error("return cmsgpack.unpack('\\217\\5ab')", missing, 1);
    check_error(
        "return cmsgpack.unpack('\\193')",
        "ERR user_script:1: Bad data format in input.",
        1,
    );
}

#[test]
fn bits_are_those_of_32() {
    for (call, expected) in [
        ("bit.band(0xff, 0x0f, 3)", 3),
        ("bit.bor(1, 2, 4)", 7),
        ("bit.bxor(5, 1)", 4),
        ("bit.bnot(0)", -1),
        ("bit.tobit(0xffffffff)", -1),
        ("bit.lshift(1, 31)", i64::from(i32::MIN)),
        ("bit.rshift(-1, 28)", 15),
        ("bit.arshift(-16, 2)", -4),
        ("bit.rol(0x12345678, 8)", 0x3456_7812),
        ("bit.ror(1, 1)", i64::from(i32::MIN)),
        ("bit.bswap(0x01020304)", 0x0403_0201),
    ] {
        check(&format!("return {call}"), Reply::Integer(expected));
    }
    check("return bit.tohex(255) .. bit.tohex(255, -4)", bulk("000000ff00FF"));
    let missing = "ERR user_script:1: bad argument #1 (number expected)";
    check_error("return bit.band()", missing, 1);
}

#[test]
fn the_time_of_its_commands_is_not_that_of_a_script() {
    let mut machine = Machine::new().unwrap();
    let (sender, never) = std::sync::mpsc::channel::<()>();
    let given = Given {
        source: Arc::new(Source::new(b"redis.call('wait'); return 1").unwrap()),
        keys: Vec::new(),
        args: Vec::new(),
        commands: Box::new(move |_| {
            never.recv_timeout(Duration::from_millis(80)).unwrap_err();
            Ok(Reply::OK)
        }),
    };
    let ended = machine.run(given, Arc::new(Stop::default()), Duration::from_millis(50));
    assert_eq!(ended, Ended::Done(Reply::Integer(1)));
    drop(sender);
}
