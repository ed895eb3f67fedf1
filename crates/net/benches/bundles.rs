//! What receiving in bundles saves: a client, a switch that only forwards, and servers that only
//! answer, a thread and a socket each, over loopback. Each has the datagrams apart in one round and
//! in bundles in the next; printed is the processor time of the threads for each request, which
//! other work on the machine changes little. What stands there is the cost of sockets and of
//! nothing else.
//!
//! `cargo bench -p keyway-net --bench bundles [-- --json]`

#![expect(clippy::indexing_slicing, reason = "all indices are below a constant length")]

use net::{BATCH_MAX, Inbound, Outbound, Socket};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use wire::Endpoint;

/// Requests of a round.
const REQUESTS: u32 = 10_000;
/// Rounds of each way; odd, for a median.
const ROUNDS: usize = 7;
/// Bytes of a request: a GET of a 16-byte key.
const REQUEST_SIZE: usize = 120;
/// Bytes of replies.
const REPLY_SIZES: [(&str, [usize; 4]); 2] =
    [("alike", [232, 232, 232, 232]), ("4 sizes", [232, 140, 600, 1_200])];

/// What a datagram begins with: its number, and then whether it is a reply.
const NUMBER_LEN: usize = 4;
const REPLY_AT: usize = NUMBER_LEN;

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    if !json {
        println!(
            "us of processor time for a request: client, switch, servers; medians of {ROUNDS}"
        );
        println!("{REQUESTS} requests of {REQUEST_SIZE} B a round; in turn apart and in bundles");
        println!("| servers | in flight | replies | apart | in bundles | ratio of all |");
        println!("|--:|--:|---|---|---|--:|");
    }
    for servers in [1, 4] {
        for in_flight in [1, 32, 256] {
            for (name, sizes) in REPLY_SIZES {
                let rounds = |_| [true, false].map(|apart| round(servers, in_flight, sizes, apart));
                let rounds: Vec<[[f64; 3]; 2]> = (0..ROUNDS).map(rounds).collect();
                let of = |way: usize, role: usize| {
                    median(rounds.iter().map(|round| round[way][role]).collect())
                };
                let [apart, bundles] = [0, 1].map(|way| [0, 1, 2].map(|role| of(way, role)));
                let ratio = |[apart, bundles]: &[[f64; 3]; 2]| {
                    bundles.iter().sum::<f64>() / apart.iter().sum::<f64>()
                };
                let ratio = median(rounds.iter().map(ratio).collect());
                if json {
                    let row = json!({
                        "benchmark": "bundles", "servers": servers, "in_flight": in_flight,
                        "replies": name, "apart_us": apart, "bundles_us": bundles, "ratio": ratio,
                        "rounds": ROUNDS, "requests": REQUESTS, "request_bytes": REQUEST_SIZE,
                    });
                    println!("{row}");
                    continue;
                }
                println!(
                    "| {servers} | {in_flight} | {name} | {:.2}, {:.2}, {:.2} | {:.2}, {:.2}, \
                     {:.2} | {ratio:.2} |",
                    apart[0], apart[1], apart[2], bundles[0], bundles[1], bundles[2]
                );
            }
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One round; microseconds for a request of the client, the switch and all servers.
fn round(servers: usize, in_flight: u32, sizes: [usize; 4], apart: bool) -> [f64; 3] {
    let bind = || {
        let mut socket = Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        if apart {
            socket.receive_apart().expect("the kernel lets it");
        }
        socket
    };
    let (client, switch) = (bind(), bind());
    let nodes: Vec<Socket> = (0..servers).map(|_| bind()).collect();
    let to = |socket: &Socket| Endpoint::from(socket.local());
    let (client_at, switch_at) = (to(&client), to(&switch));
    let nodes_at: Vec<Endpoint> = nodes.iter().map(to).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = nodes.iter().map(|socket| {
            let done = &done;
            let answer = move |out: &mut Outbound, number: u32, payload: &mut [u8]| {
                let size = sizes[number as usize % sizes.len()];
                let mut reply = [1; wire::PACKET_MAX];
                reply[..NUMBER_LEN].copy_from_slice(&payload[..NUMBER_LEN]);
                out.push(switch_at, &reply[..size]);
            };
            scope.spawn(move || serve(socket, done, answer))
        });
        let serving: Vec<_> = serving.collect();
        let nodes_at = &nodes_at;
        let forward = move |out: &mut Outbound, number: u32, payload: &mut [u8]| {
            let node = nodes_at[number as usize % nodes_at.len()];
            out.push(if payload[REPLY_AT] == 0 { node } else { client_at }, payload);
        };
        let (switch, done) = (&switch, &done);
        let switching = scope.spawn(move || serve(switch, done, forward));
        let asked = ask(&client, switch_at, in_flight);
        done.store(true, Ordering::Relaxed);
        let switched = switching.join().expect("the switch forwards");
        let served = serving.into_iter().map(|thread| thread.join().expect("servers answer"));
        [asked, switched, served.sum()].map(|us| us / f64::from(REQUESTS))
    })
}

/// Keeps so many requests in flight until all are answered. Gives the microseconds it took.
fn ask(socket: &Socket, to: Endpoint, in_flight: u32) -> f64 {
    let (mut inbound, mut outbound) =
        (Inbound::new(socket.family()), Outbound::new(socket.family()));
    let (mut sent, mut answered) = (0, 0);
    let began = processor_us();
    while answered < REQUESTS {
        while sent < REQUESTS && sent - answered < in_flight {
            let mut request = [0; REQUEST_SIZE];
            request[..NUMBER_LEN].copy_from_slice(&sent.to_be_bytes());
            outbound.push(to, &request);
            sent += 1;
            if outbound.is_full() {
                assert_eq!(outbound.send(socket), 0);
            }
        }
        assert_eq!(outbound.send(socket), 0);
        if inbound.receive(socket).expect("the socket is open") == 0 {
            assert!(wait(socket, 10_000), "a datagram was lost");
        }
        answered += u32::try_from(inbound.payloads().count()).expect("a batch");
    }
    processor_us() - began
}

/// Deals with what comes until it is done. Gives the microseconds it took.
fn serve(
    socket: &Socket,
    done: &AtomicBool,
    mut handle: impl FnMut(&mut Outbound, u32, &mut [u8]),
) -> f64 {
    let (mut inbound, mut outbound) =
        (Inbound::new(socket.family()), Outbound::new(socket.family()));
    while !done.load(Ordering::Relaxed) {
        let received = inbound.receive(socket).expect("the socket is open");
        assert!(received <= BATCH_MAX);
        for datagram in inbound.iter_mut() {
            let number = datagram.payload.first_chunk::<NUMBER_LEN>().expect("it has a number");
            handle(&mut outbound, u32::from_be_bytes(*number), datagram.payload);
        }
        assert_eq!(outbound.send(socket), 0);
        if received == 0 || received == 1 && inbound.is_last() {
            wait(socket, 10);
        }
    }
    processor_us()
}

/// Waits until there is something to receive; whether there is.
fn wait(socket: &Socket, ms_max: u16) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(ms_max)).expect("the socket is open") > 0
}

/// Processor time of this thread since it began.
fn processor_us() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has it");
    std::time::Duration::from(time).as_secs_f64() * 1e6
}
