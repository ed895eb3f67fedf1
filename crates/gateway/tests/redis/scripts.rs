//! Scripts on a connection: the replies of Redis, byte for byte, and what others see meanwhile.

use crate::raw::{Raw, command, eventually, options, put, start};
use gateway::{Acl, Gateway};

const ONE: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

fn eval(text: &str, keys: &[&str], args: &[&str]) -> Vec<u8> {
    let count = keys.len().to_string();
    let words: Vec<&str> = ["EVAL", text, &count].into_iter().chain(keys.iter().copied()).collect();
    command(&[&words, args].concat())
}

#[test]
fn a_script_reads_and_writes_at_one_instant() {
    put("{e}a", "5");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let text = "redis.call('set', KEYS[2], redis.call('get', KEYS[1]) * 2) \
                return {redis.call('incrby', KEYS[1], ARGV[1]), redis.call('get', KEYS[2])}";
    client.ask(eval(text, &["{e}a", "{e}b"], &["10"]), "*2\r\n:15\r\n$2\r\n10\r\n");
    client.ask("MGET {e}a {e}b\r\n", "*2\r\n$2\r\n15\r\n$2\r\n10\r\n");
    // What was written before an error stays, as in Redis.
    client.send(eval("redis.call('set', KEYS[1], 'x') error('no')", &["{e}a"], &[]));
    assert!(client.line().starts_with("-ERR user_script:1: no script: "));
    client.ask("GET {e}a\r\n", "$1\r\nx\r\n");
}

#[test]
fn scripts_are_known_by_their_names() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let none = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    client.ask(command(&["EVALSHA", ONE, "0"]), none);
    client.ask(command(&["SCRIPT", "LOAD", "return 1"]), format!("$40\r\n{ONE}\r\n"));
    client.ask(command(&["EVALSHA", ONE, "0"]), ":1\r\n");
    client.ask(command(&["SCRIPT", "EXISTS", ONE, "x"]), "*2\r\n:1\r\n:0\r\n");
    let mut other = Raw::connect(gateway.local());
    other.ask(command(&["EVALSHA_RO", ONE, "0"]), ":1\r\n");
    other.ask("SCRIPT FLUSH\r\n", "+OK\r\n");
    client.ask(command(&["EVALSHA", ONE, "0"]), none);
    client.ask("SCRIPT FLUSH NOW\r\n", "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n");
    client.send(command(&["SCRIPT", "LOAD", "return +"]));
    assert!(
        client.line().starts_with("-ERR Error compiling script (new function): user_script:1:")
    );
    client.ask("SCRIPT KILL\r\n", "-NOTBUSY No scripts in execution right now.\r\n");
}

#[test]
fn a_script_is_a_part_of_a_transaction() {
    put("{em}a", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("MULTI\r\nINCR {em}a\r\n", "+OK\r\n+QUEUED\r\n");
    let add = "return redis.call('incr', KEYS[1])";
    client.ask(eval(add, &["{em}a"], &[]), "+QUEUED\r\n");
    client.ask("GET {em}a\r\nEXEC\r\n", "+QUEUED\r\n*3\r\n:2\r\n:3\r\n$1\r\n3\r\n");
    // One that is ended takes all with it.
    client.ask("CONFIG SET lua-time-limit 50\r\n", "+OK\r\n");
    client.ask("MULTI\r\nINCR {em}a\r\n", "+OK\r\n+QUEUED\r\n");
    client.ask(eval("while true do end", &[], &[]), "+QUEUED\r\n");
    client.send("EXEC\r\n");
    assert!(client.line().starts_with("-ERR the script took more than 50 ms"));
    client.ask("GET {em}a\r\n", "$1\r\n3\r\n");
    client.ask("WATCH {em}a\r\n", "+OK\r\n");
    let mut other = Raw::connect(gateway.local());
    other.ask("SET {em}a 9\r\n", "+OK\r\n");
    client.ask("MULTI\r\n", "+OK\r\n");
    client.ask(eval(add, &["{em}a"], &[]), "+QUEUED\r\n");
    client.ask("EXEC\r\n", "*-1\r\n");
}

#[test]
fn a_script_without_end_holds_up_nobody_and_can_be_killed() {
    let gateway = start();
    // Of each worker some, and more than there are threads for scripts.
    let mut busy: Vec<Raw> = (0..6).map(|_| Raw::connect(gateway.local())).collect();
    let endless = eval("redis.call('set', KEYS[1], 1) while true do end", &["{ek}a"], &[]);
    busy.iter_mut().for_each(|client| client.send(&endless));
    let mut others: Vec<Raw> = (0..4).map(|_| Raw::connect(gateway.local())).collect();
    for client in &mut others {
        client.ask("SET {ek}b 1\r\nGET {ek}b\r\n", "+OK\r\n$1\r\n1\r\n");
    }
    let mut operator = Raw::connect(gateway.local());
    let running = |operator: &mut Raw| {
        let list = operator.text("CLIENT LIST\r\n");
        list.lines().filter(|line| line.contains(" cmd=eval ")).count()
    };
    eventually(|| running(&mut operator) == 6);
    // Those that wait for a turn are not under way yet.
    eventually(|| {
        operator.send("SCRIPT KILL\r\n");
        operator.line().starts_with("-NOTBUSY")
    });
    for client in &mut busy {
        let line = client.line();
        assert!(line.starts_with("-ERR Script killed by user with SCRIPT KILL."), "{line}");
    }
    operator.ask("EXISTS {ek}a\r\n", ":0\r\n");
}

#[test]
fn a_script_may_do_what_its_user_may() {
    let text = "user default on nopass ~* +@all\n\
                user ann on >pw ~{eu}* +eval +get +auth\n\
                user bob on >pw ~* +@all -eval\n";
    let gateway = Gateway::start(gateway::Options { acl: Acl::parse(text).unwrap(), ..options() });
    let gateway = gateway.unwrap();
    let mut client = Raw::connect(gateway.local());
    let set = eval("return redis.call('set', KEYS[1], 1)", &["{eu}a"], &[]);
    client.ask(&set, "+OK\r\n");
    client.ask("AUTH ann pw\r\n", "+OK\r\n");
    client.ask(eval("return redis.call('get', KEYS[1])", &["{eu}a"], &[]), "$1\r\n1\r\n");
    client.send(&set);
    let line = client.line();
    let denied =
        "-NOPERM ACL failure in script: User ann has no permissions to run the 'set' command";
    assert!(line.starts_with(denied), "{line}");
    client.send(eval("return redis.call('get', 'other')", &[], &[]));
    let line = client.line();
    assert!(line.starts_with("-NOPERM ACL failure in script: No permissions to access a key"));
    client.ask(eval("return 1", &["other"], &[]), "-NOPERM No permissions to access a key\r\n");
    client.ask("AUTH bob pw\r\n", "+OK\r\n");
    let denied = "-NOPERM User bob has no permissions to run the 'eval' command\r\n";
    client.ask(&set, denied);
}

#[test]
fn replies_are_those_of_the_version_that_the_client_speaks() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let text = "redis.setresp(3) return {map = {a = true}}";
    client.ask(eval(text, &[], &[]), "*2\r\n$1\r\na\r\n:1\r\n");
    client.send("HELLO 3\r\n");
    let head = client.line();
    assert!(head.starts_with('%'), "{head}");
    client.send("ECHO end\r\n");
    while client.line() != "end" {}
    client.ask(eval(text, &[], &[]), "%1\r\n$1\r\na\r\n#t\r\n");
    client.ask(eval("return false", &[], &[]), "_\r\n");
    client.ask(eval("return {double = 1.5}", &[], &[]), ",1.5\r\n");
}
