//! A gateway whose cluster is another one than it was.

use crate::raw::{Raw, command, options};
use gateway::{Gateway, Options};
use runtime::up::{Embedded, UpOptions};

#[test]
fn a_gateway_finds_a_cluster_that_was_made_anew() {
    let size = UpOptions::in_memory(3, 2, 16);
    let first = Embedded::start(&size).unwrap();
    let service = first.service();
    let gateway = Gateway::start(Options { services: vec![service], ..options() }).unwrap();
    let mut client = Raw::connect(gateway.local());
    client.ask(command(&["SET", "a", "1"]), "+OK\r\n");
    let long = "x".repeat(100_000);
    drop(first);
    // What is asked first is of another kind each time.
    for first in [
        (command(&["GET", "a"]), "$-1\r\n".to_owned()),
        (command(&["MGET", "a", "b"]), "*2\r\n$-1\r\n$-1\r\n".to_owned()),
        (command(&["MSET", "a", "1", "b", "2"]), "+OK\r\n".to_owned()),
        (command(&["SET", "a", "1", "NX"]), "+OK\r\n".to_owned()),
        (command(&["SET", "a", &long[..50_000]]), "+OK\r\n".to_owned()),
        (command(&["DBSIZE"]), ":0\r\n".to_owned()),
        (command(&["DEL", "a", "b"]), ":0\r\n".to_owned()),
        (command(&["INCR", "n"]), ":1\r\n".to_owned()),
    ] {
        let again = Embedded::start(&UpOptions { service, ..size.clone() }).unwrap();
        client.ask(first.0, first.1);
        client.ask(command(&["SET", "a", "2"]), "+OK\r\n");
        client.ask(command(&["GET", "a"]), "$1\r\n2\r\n");
        again.stop();
    }
    // The end of a long value that comes piece by piece is told, and after it all goes on.
    let again = Embedded::start(&UpOptions { service, ..size }).unwrap();
    client.send(command(&["SET", "a", &long]));
    let line = client.line();
    assert!(line == "+OK" || line.starts_with("-ERR"), "{line}");
    client.ask(command(&["SET", "a", &long]), "+OK\r\n");
    again.stop();
}
