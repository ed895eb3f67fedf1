//! Clients in crowds, and clients that are broken: the gateway goes on, and its memory stays
//! bounded.

use crate::setup::{Raw, command, eventually, options, put, start};
use gateway::{Gateway, Options};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Memory of this process, which is the gateway's, the cluster's and the clients'.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn whoever_has_said_all_and_still_listens_is_answered() {
    put("half", "open");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.send(command(&["GET", "half"]).repeat(300));
    // It will send nothing more; half of its connection is closed.
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "$4\r\nopen\r\n".repeat(300));
    // And whoever stops in the middle of a command has not asked for anything.
    let mut client = Raw::connect(gateway.local());
    client.send("*2\r\n$3\r\nGET\r\n$4\r\nha");
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "");
    eventually(|| {
        let info = Raw::connect(gateway.local()).text("INFO clients\r\n");
        info.contains("\r\nconnected_clients:1\r\n")
    });
}

#[test]
fn whoever_is_gone_without_a_word_keeps_no_place() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("PING\r\n", "+PONG\r\n");
    for _ in 0..20 {
        let stream = TcpStream::connect(gateway.local()).unwrap();
        // Ends with a reset, in the middle of a command and with a reply on its way.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        (&stream).write_all(b"PING\r\n*2\r\n$4\r\nECHO\r\n$1000\r\nx").unwrap();
    }
    eventually(|| client.text("CLIENT LIST\r\n").lines().count() == 1);
    // The other half of a connection that has lost its power is found by the kernel, which asks.
    let told = "*2\r\n$13\r\ntcp-keepalive\r\n$3\r\n300\r\n";
    client.ask("CONFIG GET tcp-keepalive\r\n", told);
}

#[test]
fn a_crowd_of_slow_clients_is_served_as_it_drips_and_holds_up_nobody() {
    const SLOW: usize = 40;
    let gateway = start();
    let word = "x".repeat(64);
    let whole = command(&["ECHO", &word]);
    let mut crowd: Vec<Raw> = (0..SLOW).map(|_| Raw::connect(gateway.local())).collect();
    let mut busy = Raw::connect(gateway.local());
    for byte in &whole {
        for client in &mut crowd {
            client.send([*byte]);
        }
        busy.ask("PING\r\n", "+PONG\r\n");
    }
    for client in &mut crowd {
        client.expect(format!("$64\r\n{word}\r\n"));
    }
}

#[test]
fn commands_that_never_end_and_replies_that_nobody_reads_fill_no_memory() {
    const ENDLESS: usize = 30;
    const DEAF: usize = 8;
    const LIMIT: usize = 2 << 20;
    put("large", &"v".repeat(1_000));
    let gateway = Gateway::start(Options { maxclients: 500, ..options() }).unwrap();
    let mut operator = Raw::connect(gateway.local());
    operator.ask("CONFIG SET proto-max-bulk-len 1mb\r\n", "+OK\r\n");
    operator.ask(format!("CONFIG SET client-query-buffer-limit {LIMIT}\r\n"), "+OK\r\n");
    let before = resident();
    // Each sends one argument after the other: it is ended as soon as they are over the limit.
    let part = [b"$65536\r\n".as_slice(), &[b'k'; 65_536], b"\r\n"].concat();
    for _ in 0..ENDLESS {
        let mut client = Raw::connect(gateway.local());
        client.send("*1000\r\n$3\r\nDEL\r\n");
        // It may be gone before all is sent.
        let sent = (0..34).take_while(|_| client.0.write_all(&part).is_ok()).count();
        assert!(sent * 65_536 >= LIMIT, "{sent} arguments were over the limit");
        let why = "-ERR Protocol error: command exceeds client-query-buffer-limit\r\n";
        assert_eq!(client.rest(), why);
    }
    // Each asks for far more than it reads.
    let part = command(&["GET", "large"]).repeat(500);
    let mut deaf = Vec::new();
    for _ in 0..DEAF {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        // Little room at the end of it, so that replies wait in the gateway.
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&gateway.local().into()).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        while stream.write_all(&part).is_ok() {}
        deaf.push(stream);
    }
    let held = |client: &mut Raw| {
        let info = client.text("INFO memory\r\n");
        let line = info.lines().find_map(|line| line.strip_prefix("mem_clients_normal:"));
        line.unwrap().trim().parse::<usize>().unwrap()
    };
    let (buffers, more) = (held(&mut operator), resident().saturating_sub(before));
    println!(
        "{ENDLESS} endless commands and {DEAF} clients that do not read: {buffers} bytes in \
         buffers, {more} bytes more of resident memory than before"
    );
    // 256 KiB of replies and one more, a batch of input, and what the allocator keeps.
    assert!(buffers < DEAF * (512 << 10), "{buffers}");
    assert!(more < (ENDLESS + DEAF) * (2 << 20), "{more}");
    operator.ask("PING\r\n", "+PONG\r\n");
    // Whoever begins to read gets all of it.
    let mut reader = deaf.swap_remove(0);
    drop(deaf);
    reader.shutdown(Shutdown::Write).unwrap();
    let mut replies = Vec::new();
    reader.set_read_timeout(Some(crate::setup::PATIENCE)).unwrap();
    reader.read_to_end(&mut replies).unwrap();
    let reply = format!("$1000\r\n{}\r\n", "v".repeat(1_000)).into_bytes();
    assert!(replies.len() > 1 << 18 && replies.starts_with(&reply), "{}", replies.len());
    eventually(|| held(&mut operator) < 64 << 10);
}
