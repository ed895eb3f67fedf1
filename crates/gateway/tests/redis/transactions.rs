//! MULTI and its kin on a connection: the replies of Redis, byte for byte.

use crate::raw::{Raw, command, options, put, start};
use gateway::{Gateway, Multi, Options};

#[test]
fn commands_are_queued_and_carried_out_together() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("MULTI\r\n", "+OK\r\n");
    client.ask("SET {q}a 1\r\nINCR {q}a\r\nPING\r\n", "+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    client.ask("GET {q}b\r\nINCRBY {q}a x\r\n", "+QUEUED\r\n+QUEUED\r\n");
    let mut other = Raw::connect(gateway.local());
    other.ask("GET {q}a\r\n", "$-1\r\n");
    let not_an_integer = "-ERR value is not an integer or out of range\r\n";
    client.ask("EXEC\r\n", format!("*5\r\n+OK\r\n:2\r\n+PONG\r\n$-1\r\n{not_an_integer}"));
    client.ask("GET {q}a\r\nEXEC\r\n", "$1\r\n2\r\n-ERR EXEC without MULTI\r\n");
    client.ask("MULTI\r\nEXEC\r\n", "+OK\r\n*0\r\n");
}

#[test]
fn a_transaction_is_discarded_by_the_client_or_by_an_error() {
    put("{d}a", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("MULTI\r\nSET {d}a 2\r\nDISCARD\r\n", "+OK\r\n+QUEUED\r\n+OK\r\n");
    client.ask("DISCARD\r\n", "-ERR DISCARD without MULTI\r\n");
    client.ask("MULTI\r\nMULTI\r\n", "+OK\r\n-ERR MULTI calls can not be nested\r\n");
    client.ask("WATCH a\r\n", "-ERR WATCH inside MULTI is not allowed\r\n");
    client.ask("SET {d}a 3\r\nEXEC\r\n", "+QUEUED\r\n*1\r\n+OK\r\n");
    let arity = "-ERR wrong number of arguments for 'set' command\r\n";
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    client.ask("MULTI\r\nSET {d}a\r\n", format!("+OK\r\n{arity}"));
    client.ask("SET {d}a 4\r\nEXEC\r\n", format!("+QUEUED\r\n{aborted}"));
    client.send("MULTI\r\nSCAN 0\r\nCONFIG RESETSTAT\r\nEXEC\r\nGET {d}a\r\n");
    client.expect("+OK\r\n-ERR 'scan' is about all keys, and no part of a transaction here\r\n");
    client.expect("-ERR Command not allowed inside a transaction\r\n");
    client.expect(format!("{aborted}$1\r\n3\r\n"));
    client.ask("MULTI\r\nRESET\r\nEXEC\r\n", "+OK\r\n+RESET\r\n-ERR EXEC without MULTI\r\n");
}

#[test]
fn what_only_tells_can_be_part_of_a_transaction() {
    put("{t}a", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.send("CLIENT ID\r\n");
    let id = client.line();
    client.send("MULTI\r\nCLIENT ID\r\nCONFIG GET timeout\r\nINFO nosuch\r\nGET {t}a\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    let timeout = "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n";
    client.expect(format!("*4\r\n{id}\r\n{timeout}$0\r\n\r\n$1\r\n1\r\n"));
}

#[test]
fn what_is_queued_is_told_and_what_was_carried_out_is_counted() {
    put("{c}a", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let mut other = Raw::connect(gateway.local());
    let field = |other: &mut Raw, name: &str| {
        let list = other.text("CLIENT LIST\r\n");
        let line = list.lines().find(|line| !line.contains(" cmd=client|list ")).unwrap();
        let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
        fields.find(|(found, _)| *found == name).unwrap_or_else(|| panic!("{line}")).1.to_owned()
    };
    let told = |other: &mut Raw| ["flags", "multi", "watch"].map(|name| field(other, name));
    client.ask("WATCH {c}a {c}b\r\n", "+OK\r\n");
    assert_eq!(told(&mut other), ["N", "-1", "2"]);
    client.ask("MULTI\r\n", "+OK\r\n");
    assert_eq!(told(&mut other), ["x", "0", "2"]);
    client.ask("INCR {c}a\r\nINCR {c}a\r\n", "+QUEUED\r\n+QUEUED\r\n");
    client.ask("INCRBY {c}a x\r\nPING\r\n", "+QUEUED\r\n+QUEUED\r\n");
    assert_eq!(told(&mut other), ["x", "4", "2"]);
    assert_eq!(field(&mut other, "multi-mem"), "31", "bytes of what was queued");
    let stats = other.text("INFO commandstats\r\n");
    assert!(!stats.contains("cmdstat_incr:"), "nothing was carried out: {stats}");
    let error = "-ERR value is not an integer or out of range\r\n";
    client.ask("EXEC\r\n", format!("*4\r\n:2\r\n:3\r\n{error}+PONG\r\n"));
    assert_eq!(told(&mut other), ["N", "-1", "0"]);
    let stats = other.text("INFO commandstats\r\n");
    for (name, calls, failed) in [("incr", 2, 0), ("incrby", 1, 1), ("ping", 1, 0), ("exec", 1, 0)]
    {
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        let line = line.unwrap_or_else(|| panic!("{name} in {stats}"));
        assert!(line.contains(&format!(":calls={calls},usec=")), "{line}");
        assert!(line.ends_with(&format!("failed_calls={failed}")), "{line}");
    }
    let histogram = "*2\r\n$4\r\nincr\r\n*4\r\n$5\r\ncalls\r\n:2\r\n";
    other.ask("LATENCY HISTOGRAM incr\r\n", histogram);
    let mut client = Raw::connect(gateway.local());
    client.ask("WATCH {c}a\r\nMULTI\r\nRESET\r\n", "+OK\r\n+OK\r\n+RESET\r\n");
    drop(other);
}

#[test]
fn a_watched_key_that_changes_undoes_the_next_transaction_only() {
    put("{w}a", "1");
    let gateway = start();
    let (mut client, mut other) = (Raw::connect(gateway.local()), Raw::connect(gateway.local()));
    client.ask("WATCH {w}a {w}b\r\nGET {w}a\r\n", "+OK\r\n$1\r\n1\r\n");
    other.ask("SET {w}a 1\r\n", "+OK\r\n");
    client.ask("MULTI\r\nSET {w}a 9\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*-1\r\n");
    client.ask("MULTI\r\nSET {w}a 2\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    client.ask("WATCH {w}b\r\n", "+OK\r\n");
    other.ask("SET {w}b 1\r\n", "+OK\r\n");
    client.ask("UNWATCH\r\nMULTI\r\nPING\r\nEXEC\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
    client.ask("WATCH {w}b\r\n", "+OK\r\n");
    other.ask("DEL {w}b\r\n", ":1\r\n");
    client.ask("MULTI\r\nPING\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*-1\r\n");
}

#[test]
fn keys_in_other_places_are_refused() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let keys: Vec<String> = (0..12).map(|n| format!("far-{n}")).collect();
    let mut all = vec!["MSETNX"];
    keys.iter().for_each(|key| all.extend([key.as_str(), "1"]));
    client.send(command(&all));
    assert!(client.line().starts_with("-CROSSSLOT "));
    client.ask("EXISTS far-0 far-1\r\n", ":0\r\n");
}

/// A gateway that carries out one by one what cannot be carried out together.
fn start_ordered() -> Gateway {
    Gateway::start(Options { multi: Multi::Ordered, ..options() }).unwrap()
}

/// A figure of INFO.
fn in_order(client: &mut Raw) -> u64 {
    let info = client.text("INFO stats\r\n");
    let line = info.lines().find_map(|it| it.strip_prefix("keyway_multi_in_order:"));
    line.unwrap_or_else(|| panic!("{info}")).parse().unwrap()
}

#[test]
fn keys_that_lie_apart_are_written_in_order_if_so_wanted() {
    let gateway = start_ordered();
    let mut client = Raw::connect(gateway.local());
    let info = client.text("INFO server\r\n");
    assert!(info.contains("\r\nkeyway_multi:ordered\r\n"), "{info}");
    // As the caches of Django and Laravel write many keys.
    let keys: Vec<String> = (0..40).map(|n| format!("ordered-{n}")).collect();
    let mut mset = vec!["MSET"];
    keys.iter().for_each(|key| mset.extend([key.as_str(), "1"]));
    client.ask("MULTI\r\n", "+OK\r\n");
    client.ask(command(&mset), "+QUEUED\r\n");
    for key in &keys {
        client.ask(command(&["EXPIRE", key, "100"]), "+QUEUED\r\n");
    }
    client.ask("EXEC\r\n", format!("*41\r\n+OK\r\n{}", ":1\r\n".repeat(40)));
    client.ask("GET ordered-0\r\nTTL ordered-39\r\n", "$1\r\n1\r\n:100\r\n");
    assert_eq!(in_order(&mut client), 1);
    // A few keys with one tag take effect together, as ever.
    client.ask("MULTI\r\nSET {o}a 1\r\nSET {o}b 2\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    client.ask("EXEC\r\n", "*2\r\n+OK\r\n+OK\r\n");
    assert_eq!(in_order(&mut client), 1);
    // Each has its reply, errors as well, and those behind it are carried out.
    client.ask("MULTI\r\n", "+OK\r\n");
    for key in &keys {
        client.ask(command(&["APPEND", key, "2"]), "+QUEUED\r\n");
    }
    client.ask("INCRBY ordered-0 x\r\nGET ordered-0\r\nPING\r\n", "+QUEUED\r\n".repeat(3));
    let not_an_integer = "-ERR value is not an integer or out of range\r\n";
    let lengths = ":2\r\n".repeat(40);
    client.ask("EXEC\r\n", format!("*43\r\n{lengths}{not_an_integer}$2\r\n12\r\n+PONG\r\n"));
    assert_eq!(in_order(&mut client), 2);
    // So few that they would fit one batch, but lie apart.
    client.ask("MULTI\r\n", "+OK\r\n");
    for key in &keys[..10] {
        client.ask(command(&["DEL", key]), "+QUEUED\r\n");
    }
    client.ask("EXEC\r\n", format!("*10\r\n{}", ":1\r\n".repeat(10)));
    assert_eq!(in_order(&mut client), 3);
    // One command that is to be atomic by itself stays so.
    let mut msetnx = vec!["MSETNX"];
    keys.iter().for_each(|key| msetnx.extend([key.as_str(), "1"]));
    client.send(command(&msetnx));
    let line = client.line();
    assert!(line.contains("take effect together") || line.starts_with("-CROSSSLOT "), "{line}");
}

#[test]
fn long_values_are_queued_and_read_whole_in_order() {
    queues_long_values(&start_ordered(), ["long-ordered-1", "long-ordered-2"]);
}

#[test]
fn long_values_are_queued_and_written_together() {
    queues_long_values(&start(), ["{long-atomic}1", "{long-atomic}2"]);
}

fn queues_long_values(gateway: &Gateway, [first, second]: [&str; 2]) {
    let mut client = Raw::connect(gateway.local());
    let (one, other) = ("1".repeat(300_000), "2".repeat(70_000));
    client.ask("MULTI\r\n", "+OK\r\n");
    client.ask(command(&["SET", first, &one]), "+QUEUED\r\n");
    client.ask(command(&["SET", second, &other]), "+QUEUED\r\n");
    let mut reader = Raw::connect(gateway.local());
    reader.ask(command(&["EXISTS", first, second]), ":0\r\n");
    client.ask(command(&["GET", first]), "+QUEUED\r\n");
    client.ask(command(&["STRLEN", second]), "+QUEUED\r\n");
    let text = format!("*4\r\n+OK\r\n+OK\r\n$300000\r\n{one}\r\n:70000\r\n");
    client.ask("EXEC\r\n", text);
    // More than a connection may keep is refused, and nothing of it is done.
    client.ask("MULTI\r\n", "+OK\r\n");
    let much = "3".repeat(9 << 20);
    client.ask(command(&["SET", first, &much]), "+QUEUED\r\n");
    let full = "-ERR a transaction has at most 16384 commands here, with 16 MiB of arguments\r\n";
    client.ask(command(&["SET", second, &much]), full);
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    client.ask("EXEC\r\n", aborted);
    client.ask(command(&["STRLEN", first]), ":300000\r\n");
}

#[test]
fn what_is_watched_is_checked_or_the_transaction_refused() {
    put("{ow}a", "1");
    let gateway = start_ordered();
    let (mut client, mut other) = (Raw::connect(gateway.local()), Raw::connect(gateway.local()));
    client.ask("WATCH {ow}a\r\n", "+OK\r\n");
    other.ask("SET {ow}a 2\r\n", "+OK\r\n");
    client.ask("MULTI\r\nSET {ow}b 1\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*-1\r\n");
    client.ask("WATCH {ow}a\r\nMULTI\r\n", "+OK\r\n+OK\r\n");
    let keys: Vec<String> = (0..12).map(|n| format!("watched-far-{n}")).collect();
    for key in &keys {
        client.ask(command(&["SET", key, "1"]), "+QUEUED\r\n");
    }
    client.send("EXEC\r\n");
    assert!(client.line().starts_with("-CROSSSLOT "));
    for key in &keys {
        client.ask(command(&["EXISTS", key]), ":0\r\n");
    }
    assert_eq!(in_order(&mut client), 0);
}
