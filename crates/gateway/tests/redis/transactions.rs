//! MULTI and its kin on a connection: the replies of Redis, byte for byte.

use crate::raw::{Raw, command, put, start};

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
