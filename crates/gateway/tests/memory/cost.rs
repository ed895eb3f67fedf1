//! What a client costs that is idle, or that sends too much, or does not read.

use crate::raw::{PATIENCE, Raw, command, eventually, options, put};
use gateway::{Gateway, Options};
use socket2::{Domain, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Until this is dropped no other test measures.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resident memory of this process, which is the gateway's, the cluster's and the clients'.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn idle_clients_cost_little() {
    const WANTED: usize = 10_000;
    let _alone = alone();
    let gateway = Gateway::start(Options { maxclients: WANTED + 10, ..options() }).unwrap();
    let mut first = Raw::connect(gateway.local());
    first.ask("PING\r\n", "+PONG\r\n");
    let before = resident();
    let mut clients = Vec::new();
    while clients.len() < WANTED
        && let Ok(client) = TcpStream::connect(gateway.local())
    {
        clients.push(client);
        // Both ends are this process's: each client takes two of its files.
        if clients.len() % 100 == 0 && clients.len() + 400 > files() / 2 {
            break;
        }
    }
    let count = clients.len();
    for client in &mut clients {
        client.write_all(b"PING\r\n").unwrap();
    }
    eventually(|| {
        let info = first.text("INFO commandstats\r\n");
        let pings = info.split("cmdstat_ping:calls=").nth(1).unwrap().split(',').next().unwrap();
        pings.parse::<usize>().unwrap() > count
    });
    let each = resident().saturating_sub(before) / count;
    println!("{count} idle clients: {each} bytes of resident memory each");
    assert!(count > 100 && each < 16 << 10, "{each} bytes for each of {count}");
    first.ask("PING\r\n", "+PONG\r\n");
}

/// Files that this process may have.
fn files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_ascii_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn commands_that_never_end_and_replies_that_nobody_reads_fill_no_memory() {
    const ENDLESS: usize = 30;
    const DEAF: usize = 8;
    const LIMIT: usize = 2 << 20;
    let _alone = alone();
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
    // Room for 256 KiB of replies and one more, which grew by doubling, and for a batch of input.
    assert!(buffers < DEAF * (1 << 20), "{buffers}");
    assert!(more < (ENDLESS + DEAF) * (2 << 20), "{more}");
    operator.ask("PING\r\n", "+PONG\r\n");
    // Whoever begins to read gets all of it.
    let mut reader = deaf.swap_remove(0);
    drop(deaf);
    reader.shutdown(Shutdown::Write).unwrap();
    let mut replies = Vec::new();
    reader.set_read_timeout(Some(PATIENCE)).unwrap();
    reader.read_to_end(&mut replies).unwrap();
    let reply = format!("$1000\r\n{}\r\n", "v".repeat(1_000)).into_bytes();
    assert!(replies.len() > 1 << 18 && replies.starts_with(&reply), "{}", replies.len());
    eventually(|| held(&mut operator) < 64 << 10);
}
