//! Goal: no machine's clock decides when a value goes, nor which keys packets have, whichever role
//! runs there.
//! Method: a cluster of servers whose packets are in envelopes, each of which in its turn starts
//! anew on a machine whose clock was set by hours, while the clocks of all others are set back and
//! forth meanwhile. The client has one pass, which is renewed once, at the end.

use client::blocking::{Client, Space};
use client::{CasReply, Expect, Expiry, Options, PutOptions};
use cluster::NodeId;
use envelope::{Pass, Passes, Period};
use runtime::clock::set_wall_clock_of_test;
use runtime::config::Config;
use runtime::driver::PassWish;
use runtime::identity::{Authority, Validity, make_secret, secret_in};
use runtime::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::tempdir;
use wire::Version;

const HOUR_MS: i64 = 3_600_000;

/// How long a lock is taken for: longer than the test holds it.
const LOCK: Duration = Duration::from_secs(60);

/// A time to live that is waited for.
const SHORT: Duration = Duration::from_millis(700);

/// By how much it may end earlier than the client counts: what the docs say of clocks that drift.
const EARLY_MAX: Duration = Duration::from_millis(120);

/// Longer than anything here may take on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Controller,
    Switch,
    Node(u16),
}

#[expect(clippy::disallowed_methods, reason = "a real cluster takes real time")]
fn now() -> Instant {
    Instant::now()
}

/// Addresses that nobody uses now, with ports that no socket gets without having asked for them:
/// all are taken a moment later, and again when a role starts anew.
fn free_addresses<const COUNT: usize>() -> [SocketAddr; COUNT] {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    let mut ports = first..32_000;
    let is_free = |at: &SocketAddr| TcpListener::bind(at).is_ok() && UdpSocket::bind(at).is_ok();
    [(); COUNT].map(|()| {
        let mut all = ports.by_ref().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        all.find(is_free).expect("one of two thousand")
    })
}

/// Three nodes with durable stores, certificates and the secret of envelopes.
fn config(dir: &Path) -> Config {
    let [service, switch_admin, admin, rest @ ..] = free_addresses::<9>();
    let data = dir.join("controller");
    let mut text = format!(
        "[cluster]\nseed = 7\n[switch]\nservice = \"{service}\"\nadmin = \"{switch_admin}\"\n\
         [controller]\nadmin = \"{admin}\"\ndata = {data:?}\n"
    );
    for (id, at) in (1..).zip(rest.as_chunks::<2>().0) {
        let [listen, admin] = at;
        let data = dir.join(format!("node-{id}"));
        text += &format!(
            "[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n\
             engine = \"fjall\"\ndata = {data:?}\n"
        );
    }
    text += "[[keyspace]]\nname = \"locks\"\nkind = \"hash\"\npartitions = 8\nreplicas = 3\n";
    let path = dir.join("keyway.toml");
    let certs = dir.join("certs");
    text += &format!("[security]\ndirectory = {certs:?}\n");
    std::fs::write(&path, text).unwrap();
    let config = Config::load(&path).unwrap();
    let authority = Authority::init(&certs).unwrap();
    make_secret(&secret_in(&certs)).unwrap();
    for (identity, at) in config.identities().unwrap() {
        authority.issue(&identity, &[at.ip()], Validity::days(1), false).unwrap();
    }
    config
}

struct Rig {
    config: Config,
    servers: BTreeMap<Role, Server>,
}

impl Rig {
    fn start(&mut self, role: Role) {
        let server = match role {
            Role::Controller => Server::start_controller(&self.config),
            Role::Switch => Server::start_switch(&self.config, 0, &[]),
            Role::Node(id) => Server::start_node(&self.config, NodeId(id)),
        };
        self.servers.insert(role, server.unwrap());
    }

    fn status(&self) -> Value {
        let roles = self.servers[&Role::Controller].roles();
        let controller = roles.controller.as_ref().unwrap();
        serde_json::to_value(controller.status().unwrap()).unwrap()
    }

    fn wait(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let began = now();
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(began.elapsed() < WAIT_MAX, "never {what}: {status:#}");
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// A pass, or the one that is there with newer keys.
    fn pass(&self, before: Option<&Pass>) -> Pass {
        let renew = before.map(|pass| (pass.number, pass.ticket));
        let wish = PassWish { whose: "client/a".to_owned(), class: None, renew };
        let roles = self.servers[&Role::Controller].roles();
        roles.controller.as_ref().unwrap().pass(wish).unwrap().expect("packets are in envelopes")
    }

    fn space(&self, passes: &Passes) -> Space {
        let service = self.config.switches[0].service;
        let options = Options { passes: Some(passes.clone()), ..Options::default() };
        Client::connect(service, options).unwrap().keyspace("locks").unwrap()
    }
}

/// By how much the status says that a node's clock is off.
fn ahead_ms(status: &Value, id: u16) -> Option<i64> {
    let members = status["members"].as_array().unwrap();
    let member = members.iter().find(|it| it["member"] == json!({ "node": id })).unwrap();
    member["clock_ahead_ms"].as_i64()
}

/// Takes a lock that nobody has; tells whether that was so.
fn take(locks: &Space, key: &str, time: Duration) -> bool {
    let options = PutOptions { expiry: Expiry::In(time) };
    let answer = locks.cas(key.as_bytes(), Expect::Version(Version::NONE), b"mine", options);
    matches!(answer.into_result().unwrap(), CasReply::Written { .. })
}

fn left(locks: &Space, key: &str) -> Option<Duration> {
    let found = locks.get(key.as_bytes()).into_result().unwrap()?;
    Some(Duration::from_millis(found.ttl_ms().expect("it goes some time")))
}

/// A value goes when its time is over, and not before.
fn check_the_end(locks: &Space, what: &str) {
    let began = now();
    assert!(take(locks, "short", SHORT), "{what}");
    let answered = now();
    while left(locks, "short").is_some() {
        assert!(answered.elapsed() < WAIT_MAX, "{what}: it stays");
    }
    assert!(
        began.elapsed() + EARLY_MAX >= SHORT,
        "{what}: it has gone after {:?}",
        began.elapsed()
    );
}

#[test]
fn no_clock_that_is_set_in_any_role_ends_a_lock_or_changes_keys() {
    let dir = tempdir().unwrap();
    let mut rig = Rig { config: config(dir.path()), servers: BTreeMap::new() };
    let began = now();
    let roles = [Role::Controller, Role::Switch, Role::Node(1), Role::Node(2), Role::Node(3)];
    roles.into_iter().for_each(|role| rig.start(role));
    rig.wait("ready", |status| status["ready"] == true);
    let first = rig.pass(None);
    let passes = Passes::new(first.clone());
    let locks = rig.space(&passes);
    locks.put(b"kept", b"value", PutOptions::default()).into_result().unwrap();
    for role in roles {
        for hours in [5, -20] {
            let what = format!("{role:?} by {hours} hours");
            let (key, began) = (what.as_str(), now());
            assert!(take(&locks, key, LOCK), "{what}");
            rig.servers.remove(&role).expect("it runs").stop();
            set_wall_clock_of_test(hours * HOUR_MS);
            rig.start(role);
            rig.wait("ready", |status| status["ready"] == true && status["replicated"] == true);
            let least = LOCK.saturating_sub(began.elapsed() + Duration::from_secs(1));
            let remains = left(&locks, key).expect(&what);
            assert!((least..=LOCK).contains(&remains), "{what}: {remains:?} of {LOCK:?}");
            assert!(!take(&locks, key, LOCK), "{what}: two owners of one lock");
            check_the_end(&locks, &what);
            assert!(locks.get(b"kept").into_result().unwrap().is_some(), "{what}");
            if let Role::Node(id) = role {
                let names = |status: &Value| {
                    let off = ahead_ms(status, id).unwrap_or_default() - hours * HOUR_MS;
                    off.abs() < 60_000
                };
                rig.wait("is the node named whose clock it is", names);
            }
            // Its clock is set right again while it runs, which nobody follows either.
            set_wall_clock_of_test(0);
            check_the_end(&locks, &what);
            rig.servers.remove(&role).expect("it runs").stop();
            rig.start(role);
            rig.wait("ready", |status| status["ready"] == true && status["replicated"] == true);
        }
    }
    let last = rig.pass(Some(&first));
    let gone = began.elapsed().as_secs() / Period::LEN.as_secs() + 1;
    assert!((first.current.0..=first.current.0 + gone).contains(&last.current.0), "{last:?}");
    assert!(passes.renew(last));
    assert!(locks.get(b"kept").into_result().unwrap().is_some());
}
