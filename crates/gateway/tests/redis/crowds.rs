//! Clients in crowds, and clients that are broken: the gateway goes on.

use crate::raw::{PATIENCE, Raw, command, eventually, options, put, start};
use gateway::{Gateway, Options};
use socket2::SockRef;
use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wire::{Op, Packet};

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

/// Passes datagrams of one client on to a service, and what comes from there back to it. It tells
/// of goodbyes.
fn relay(service: SocketAddr) -> (SocketAddr, Receiver<()>) {
    let (front, back) = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap()).into();
    let (at, (tell, told)) = (front.local_addr().unwrap(), channel());
    let [front_too, back_too] = [&front, &back].map(|socket| socket.try_clone().unwrap());
    let client = Arc::new(OnceLock::new());
    let known = Arc::clone(&client);
    std::thread::spawn(move || {
        let mut buffer = [0; wire::PACKET_MAX];
        while let Ok((len, from)) = front.recv_from(&mut buffer) {
            known.set(from).ok();
            let datagram = &buffer[..len];
            back.send_to(datagram, service).unwrap();
            if Packet::parse(datagram).is_ok_and(|packet| packet.op() == Op::Goodbye) {
                // Whoever has heard enough is gone.
                tell.send(()).ok();
            }
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; wire::PACKET_MAX];
        while let Ok((len, _)) = back_too.recv_from(&mut buffer) {
            front_too.send_to(&buffer[..len], client.get().unwrap()).unwrap();
        }
    });
    (at, told)
}

#[test]
fn a_gateway_that_stops_says_goodbye() {
    let options = options();
    let (at, goodbyes) = relay(options.services[0]);
    let gateway = Gateway::start(Options { services: vec![at], workers: 1, ..options }).unwrap();
    let mut client = Raw::connect(gateway.local());
    client.ask("SET goodbye said\r\n", "+OK\r\n");
    gateway.stop();
    goodbyes.recv_timeout(PATIENCE).unwrap();
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
