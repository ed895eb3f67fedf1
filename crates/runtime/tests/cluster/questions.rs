//! Goal: no question of a client costs a node its lease, or others their answers.
//! Method: keys of one match value and a long value, which clients scan, count and read as fast as
//! they can, while the controller is asked who has a lease and others read one key.

use crate::servers::{config, wait_ready};
use crate::setup::get;
use client::blocking::{Client, Space};
use client::{Options, PageStart, PutOptions};
use cluster::NodeId;
use runtime::config::Config;
use runtime::server::Server;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Keys that have the match value of their tag.
const TAGGED: usize = 80_000;
const LONG: usize = 20 << 20;

/// Clients that ask, and for how long: as many questions as a node takes in one turn.
const ASKERS: usize = 64;
const ASKED_FOR: Duration = Duration::from_secs(5);

/// Longer than a machine that is busy with other tests stands still, and far less than it takes to
/// sort what has one match value once for each piece of a scan.
const LEASE_MS: u64 = 2_000;

#[expect(clippy::disallowed_methods, reason = "a real cluster takes real time")]
fn now() -> Instant {
    Instant::now()
}

fn space(config: &Config) -> Space {
    let client = Client::connect(config.switches[0].service, Options::default()).unwrap();
    client.keyspace("users").unwrap()
}

fn tagged(number: usize) -> Vec<u8> {
    format!("{{t}}:{number}").into_bytes()
}

/// Asks one kind of question after the other, and never waits. Most are small scans: whoever gives
/// ten keys must not look at all that have their match value.
fn ask(users: &Space, kind: usize, over: &AtomicBool) {
    let many: Vec<Vec<u8>> = (0..2_000).map(tagged).collect();
    while !over.load(Ordering::Relaxed) {
        match kind % 16 {
            0 => assert_eq!(users.count().into_result().unwrap().keys, TAGGED as u64 + 2),
            1 => {
                let found = users.mget(&many);
                assert!(found.into_iter().all(|it| it.into_result().unwrap().is_some()));
            }
            _ => {
                let mut next = Some(PageStart::FIRST);
                while let Some(from) = next.filter(|_| !over.load(Ordering::Relaxed)) {
                    next = users.page(&from, 10, true).into_result().unwrap().next;
                }
            }
        }
    }
}

/// How many nodes have no lease.
fn without_lease(controller: &Server) -> usize {
    let status = get(controller.admin(), "/v1/status").json();
    let members = status["members"].as_array().unwrap();
    members.iter().filter(|it| it["lease_ms_left"].as_u64().unwrap_or_default() == 0).count()
}

#[test]
fn whatever_clients_ask_leases_are_kept_and_others_are_answered() {
    let dir = tempdir().unwrap();
    let mut config = config(dir.path(), 2);
    config.controller.lease_ms = LEASE_MS;
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let _nodes = [1, 2].map(|id| Server::start_node(&config, NodeId(id)).unwrap());
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    let users = space(&config);
    let entries: Vec<_> = (0..TAGGED).map(|number| (tagged(number), b"v")).collect();
    let done = users.mset(&entries, PutOptions::default());
    assert!(done.into_iter().all(|it| it.is_done()));
    users.put(b"one", b"1", PutOptions::default()).into_result().unwrap();
    users.put(b"long", &vec![b'x'; LONG], PutOptions::default()).into_result().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for kind in 0..ASKERS {
            let (config, over) = (&config, &over);
            scope.spawn(move || ask(&space(config), kind, over));
        }
        let began = now();
        let mut slowest = Duration::ZERO;
        while began.elapsed() < ASKED_FOR {
            assert_eq!(without_lease(&controller), 0, "after {:?}", began.elapsed());
            let asked = now();
            users.get(b"one").into_result().unwrap();
            slowest = slowest.max(asked.elapsed());
        }
        over.store(true, Ordering::Relaxed);
        assert!(slowest < Duration::from_millis(LEASE_MS), "one key took {slowest:?}");
    });
}
