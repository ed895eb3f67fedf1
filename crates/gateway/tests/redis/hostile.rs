//! Clients that mean harm, or are broken: they hurt nobody else.

use crate::raw::{Raw, command, eventually, options, put, start};
use gateway::{Acl, Gateway, Options};
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn bytes_that_are_no_command_end_the_connection_with_a_reason() {
    let gateway = start();
    let ends = |sent: &[u8], reason: &str| {
        let mut client = Raw::connect(gateway.local());
        client.send([b"PING\r\n", sent].concat());
        assert_eq!(client.rest(), format!("+PONG\r\n-ERR Protocol error: {reason}\r\n"));
    };
    ends(b"*x\r\n", "invalid multibulk length");
    ends(b"*1048577\r\n", "invalid multibulk length");
    ends(b"*1\r\nGET\r\n", "expected '$', got 'G'");
    ends(b"*1\r\n$536870913\r\n", "invalid bulk length");
    ends(b"*1\r\n$536870912\r\n", "command exceeds client-query-buffer-limit");
    ends(b"get \"a\r\n", "unbalanced quotes in request");
    ends(&b"a".repeat(70_000), "too big inline request");
    // The reply comes through though the client goes on sending.
    ends(&[b"*1\r\n!\r\n".as_slice(), &[b'x'; 200_000]].concat(), "expected '$', got '!'");
}

#[test]
fn browsers_are_not_served() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nPING\r\n");
    assert_eq!(client.rest(), "");
}

#[test]
fn too_many_are_turned_away_and_let_in_when_others_have_gone() {
    let gateway = Gateway::start(Options { maxclients: 20, ..options() }).unwrap();
    let mut clients: Vec<Raw> = (0..20).map(|_| Raw::connect(gateway.local())).collect();
    clients.iter_mut().for_each(|client| client.ask("PING\r\n", "+PONG\r\n"));
    for _ in 0..50 {
        let turned_away = Raw::connect(gateway.local()).rest();
        assert_eq!(turned_away, "-ERR max number of clients reached\r\n");
    }
    let info = clients[0].text("INFO stats\r\n");
    assert!(info.contains("\r\nrejected_connections:50\r\n"), "{info}");
    clients.truncate(10);
    eventually(|| clients[0].text("INFO clients\r\n").contains("\r\nconnected_clients:10\r\n"));
    Raw::connect(gateway.local()).ask("PING\r\n", "+PONG\r\n");
}

#[test]
fn whoever_sends_no_whole_command_in_time_is_disconnected() {
    let timeout = Duration::from_secs(1);
    let gateway = Gateway::start(Options { idle_timeout: timeout, ..options() }).unwrap();
    let mut idle = Raw::connect(gateway.local());
    let mut slow = Raw::connect(gateway.local());
    slow.send("*2\r\n$4\r\nECHO\r\n$100000\r\n");
    let pause = std::sync::mpsc::channel::<()>();
    let mut busy = Raw::connect(gateway.local());
    // It drips for as long as it is let, and others are served meanwhile.
    let mut dripped = 0;
    while slow.0.write_all(b"x").is_ok() {
        dripped += 1;
        assert!(dripped < 3_000, "still connected");
        busy.ask("PING\r\n", "+PONG\r\n");
        pause.1.recv_timeout(Duration::from_millis(20)).unwrap_err();
    }
    assert_eq!(idle.rest(), "");
}

#[test]
fn whoever_does_not_read_holds_up_only_itself() {
    put("big", &"v".repeat(1_000));
    let gateway = start();
    let mut deaf = TcpStream::connect(gateway.local()).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    // Replies of a gigabyte: far more than all buffers on the way hold.
    let part = command(&["GET", "big"]).repeat(1_000);
    let sent = (0..1_000).take_while(|_| deaf.write_all(&part).is_ok()).count();
    assert!(sent < 1_000, "nothing held it up");
    let mut other = Raw::connect(gateway.local());
    other.ask("PING\r\n", "+PONG\r\n");
    let list = other.text("CLIENT LIST\r\n");
    for line in list.lines() {
        for field in ["qbuf=", "omem="] {
            let held = line.split(field).nth(1).unwrap().split(' ').next().unwrap();
            assert!(held.parse::<usize>().unwrap() < 1 << 20, "{line}");
        }
    }
    // It does not keep the gateway from ending, either.
    gateway.stop();
}

#[test]
fn an_operator_ends_connections() {
    let gateway = start();
    let mut operator = Raw::connect(gateway.local());
    operator.ask("PING\r\n", "+PONG\r\n");
    let mut victims: Vec<Raw> = (0..3).map(|_| Raw::connect(gateway.local())).collect();
    victims.iter_mut().for_each(|victim| victim.ask("PING\r\n", "+PONG\r\n"));
    operator.ask("CLIENT KILL ID 2\r\n", ":1\r\n");
    assert_eq!(victims[0].rest(), "");
    let address = victims[1].0.local_addr().unwrap();
    operator.ask(format!("CLIENT KILL {address}\r\n"), "+OK\r\n");
    assert_eq!(victims[1].rest(), "");
    operator.ask("CLIENT KILL 127.0.0.1:1\r\n", "-ERR No such client\r\n");
    eventually(|| operator.text("CLIENT LIST\r\n").lines().count() == 2);
    operator.ask("CLIENT KILL TYPE normal\r\n", ":1\r\n");
    assert_eq!(victims[2].rest(), "");
    operator.send("CLIENT KILL ID 1 SKIPME no\r\nPING\r\n");
    assert_eq!(operator.rest(), ":1\r\n");
}

#[test]
fn what_a_command_costs_is_bounded_by_what_it_may_say() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let refused = |client: &mut Raw, words: &[&str], text: &str| {
        client.ask(command(words), format!("-ERR {text}\r\n"));
    };
    // A class of 40,000 letters, and one that nobody could pay for if it were read for each key.
    for letters in [40_000, 1 << 20] {
        let pattern = format!("*[{}]", "b".repeat(letters));
        let len = pattern.len();
        let text = format!("a pattern has at most 4096 bytes here, and this one has {len}");
        refused(&mut client, &["SCAN", "0", "MATCH", &pattern], &text);
        refused(&mut client, &["KEYS", &pattern], &text);
    }
    let few = "commands that are not about keys have at most 1024 arguments of 65536 bytes here";
    for name in [
        &["CONFIG", "GET"][..],
        &["CLIENT", "LIST", "ID"],
        &["COMMAND", "DOCS"],
        &["LATENCY", "HISTOGRAM"],
        &["INFO"],
    ] {
        let words: Vec<&str> = name.iter().copied().chain(["1"; 1024]).collect();
        refused(&mut client, &words, few);
    }
    refused(&mut client, &["AUTH", &"x".repeat(70_000)], few);
    let text = "Client names have at most 256 bytes here.";
    refused(&mut client, &["CLIENT", "SETNAME", &"n".repeat(257)], text);
    let keys: Vec<String> = (0..1025).map(|key| key.to_string()).collect();
    let words: Vec<&str> = ["WATCH"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    refused(&mut client, &words, "a connection watches at most 1024 keys here");
    client.ask(command(&["PING"]), "+PONG\r\n");
}

#[test]
fn a_transaction_that_is_broken_keeps_nothing() {
    let gateway = start();
    let (mut client, mut other) = (Raw::connect(gateway.local()), Raw::connect(gateway.local()));
    client.ask("MULTI\r\nSET a b\r\n", "+OK\r\n+QUEUED\r\n");
    client.send("NOTHING\r\n");
    assert!(client.line().starts_with("-ERR unknown command"));
    client.ask("SET a b\r\n".repeat(50), "+QUEUED\r\n".repeat(50));
    let list = other.text("CLIENT LIST\r\n");
    assert!(list.lines().any(|line| line.contains(" multi=1 ")), "{list}");
    client.send("EXEC\r\n");
    assert!(client.line().starts_with("-EXECABORT"));
}

/// A figure of INFO.
#[track_caller]
fn figure(client: &mut Raw, section: &str, name: &str) -> u64 {
    let info = client.text(format!("INFO {section}\r\n"));
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{name} in {info}")).trim().parse().unwrap()
}

#[test]
fn unfinished_commands_of_many_clients_fill_no_memory() {
    let gateway = start();
    let mut other = Raw::connect(gateway.local());
    other.ask("CONFIG SET maxmemory-clients 8mb\r\n", "+OK\r\n");
    let part = [command(&["PING"]), b"*2\r\n$4\r\nECHO\r\n$4000000\r\n".to_vec()].concat();
    let mut crowd: Vec<Raw> = (0..20).map(|_| Raw::connect(gateway.local())).collect();
    for client in &mut crowd {
        client.ask(&part, "+PONG\r\n");
        // Whoever has been ended does not take it all.
        drop(client.0.write_all(&vec![b'x'; 3_900_000]));
        other.ask("PING\r\n", "+PONG\r\n");
    }
    eventually(|| figure(&mut other, "stats", "evicted_clients") >= 18);
    assert!(figure(&mut other, "memory", "mem_clients_normal") <= 8 << 20);
    let told: Vec<String> = crowd[..18].iter_mut().map(Raw::rest).collect();
    let reason = "-ERR all clients together hold more than maxmemory-clients";
    assert!(told.iter().any(|text| text.starts_with(reason)), "{told:?}");
    other.ask(command(&["SET", "after", "x"]), "+OK\r\n");
}

#[test]
fn strangers_fill_no_memory_and_are_not_waited_for() {
    let acl = Acl::with_password(b"word");
    let gateway = Gateway::start(Options { acl, maxclients: 1_000, ..options() }).unwrap();
    let mut known = Raw::connect(gateway.local());
    known.ask("AUTH word\r\n", "+OK\r\n");
    let part = ["*4\r\n$4\r\nAUTH\r\n", &format!("$16384\r\n{}\r\n", "x".repeat(16_384)).repeat(2)];
    let part = [&part.concat(), "$16384\r\n", &"x".repeat(16_000)].concat();
    let mut crowd = Vec::new();
    for _ in 0..600 {
        let mut stranger = Raw::connect(gateway.local());
        drop(stranger.0.write_all(part.as_bytes()));
        crowd.push(stranger);
    }
    eventually(|| figure(&mut known, "stats", "evicted_clients") > 0);
    assert!(figure(&mut known, "memory", "mem_clients_normal") < 20 << 20);
    known.ask("PING\r\n", "+PONG\r\n");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is looked at")]
fn wrong_passwords_are_slowed_down_and_counted() {
    let gateway = Gateway::start(Options { acl: Acl::with_password(b"w"), ..options() }).unwrap();
    let mut guesser = Raw::connect(gateway.local());
    let began = std::time::Instant::now();
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    guesser.ask("AUTH guess\r\n".repeat(28), wrong.repeat(28));
    // Twenty at once, and then five a second.
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
    let mut known = Raw::connect(gateway.local());
    known.ask("AUTH w\r\n", "+OK\r\n");
    assert_eq!(figure(&mut known, "stats", "acl_access_denied_auth"), 28);
    // Many at once from there are not even looked at.
    let mut crowd: Vec<Raw> = (0..80).map(|_| Raw::connect(gateway.local())).collect();
    crowd.iter_mut().for_each(|guesser| guesser.send("AUTH guess\r\nQUIT\r\n"));
    let refused = crowd.iter_mut().map(Raw::rest).filter(|text| text.contains("too many wrong"));
    assert!(refused.count() > 40);
}

#[test]
fn a_command_that_is_under_way_is_not_idle() {
    let timeout = Duration::from_secs(1);
    let gateway = Gateway::start(Options { idle_timeout: timeout, ..options() }).unwrap();
    let mut client = Raw::connect(gateway.local());
    client.ask("DEBUG SLEEP 4\r\nPING\r\n", "+OK\r\n+PONG\r\n");
    assert_eq!(client.rest(), "", "and then it is");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is looked at")]
fn a_long_value_that_is_read_slowly_comes_whole() {
    const LEN: usize = 24 << 20;
    let idle_timeout = Duration::from_secs(1);
    let gateway = Gateway::start(Options { idle_timeout, ..options() }).unwrap();
    let mut client = Raw::connect(gateway.local());
    client.ask(command(&["SET", "slowly", &"x".repeat(LEN)]), "+OK\r\n");
    let began = std::time::Instant::now();
    client.ask("GET slowly\r\n", format!("${LEN}\r\n"));
    for _ in 0..24 {
        assert!(client.bytes(LEN / 24).iter().all(|byte| *byte == b'x'));
        std::thread::park_timeout(Duration::from_millis(150));
    }
    client.expect("\r\n");
    assert!(began.elapsed() > 3 * idle_timeout, "that was no test");
}
