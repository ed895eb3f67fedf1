//! What a hundred thousand routes cost: how fast they are made, what the kernel needs for them, and
//! how long a packet takes that is forwarded by them.
//!
//! Takes root: everything happens in three network namespaces, a sender, a router and a sink.
//! `cargo bench -p keyway-routes`.

use content::{BATCH_MAX, Change};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{MsgFlags, SockaddrIn6, sendto};
use nix::time::{ClockId, clock_gettime};
use routes::Fib;
use std::fs::{self, File};
use std::net::{Ipv6Addr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::time::Duration;
use wire::{AddressPrefix, ContentClass, ServicePrefix};

/// Routes of cached keys.
const ROUTES: u64 = 100_000;
/// Packets of one measurement of forwarding.
const PACKETS: u64 = 400_000;
/// Measurements, of which the median counts.
const RUNS: usize = 5;

/// Namespaces that are removed in the end.
struct Rack(String);

impl Rack {
    fn build() -> Self {
        let rack = Self(format!("keyway-bench{}", std::process::id()));
        let [a, r, b] = ["a", "r", "b"].map(|host| rack.name(host));
        for name in [&a, &r, &b] {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        for (host, number) in [("a", 1), ("b", 2)] {
            let name = rack.name(host);
            ip(&format!("-n {r} link add name {host} type veth peer name up netns {name}"));
            for (at, link, end) in [(&r, host, 1), (&name, "up", 2)] {
                let mac = format!("02:00:00:00:{number:02}:{end:02}");
                ip(&format!("-n {at} link set dev {link} address {mac} up"));
                let address = format!("fd77::{number}:{end}/112");
                ip(&format!("-n {at} address add {address} dev {link} nodad"));
                let (far, other) = (3 - end, format!("02:00:00:00:{number:02}:{:02}", 3 - end));
                ip(&format!(
                    "-n {at} neighbour add fd77::{number}:{far} lladdr {other} dev {link}"
                ));
            }
        }
        ip(&format!("-n {a} route add fd77:1::/48 via fd77::1:1"));
        ip(&format!("-n {b} route add blackhole fd77:1::/48"));
        rack.enter("r");
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").expect("root may");
        rack
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.0)
    }

    /// Moves this thread there.
    fn enter(&self, host: &str) {
        let file = File::open(format!("/run/netns/{}", self.name(host))).expect("it is there");
        setns(file, CloneFlags::CLONE_NEWNET).expect("root may");
    }

    /// Packets that the router has passed on.
    fn forwarded(&self) -> u64 {
        self.enter("r");
        let text = fs::read_to_string("/proc/thread-self/net/snmp6").expect("Linux has it");
        let line = text.lines().find_map(|line| line.strip_prefix("Ip6OutForwDatagrams"));
        line.expect("it counts them").trim().parse().expect("a number")
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for host in ["a", "r", "b"] {
            ip(&format!("netns del {}", self.name(host)));
        }
    }
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().expect("there is ip");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("there is a clock").into()
}

/// Bytes that the kernel has in memory for small objects.
fn slab() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix("Slab:")).expect("it says that");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Bytes that it has for each processor's counts, of which a route's next hop has one.
fn per_processor() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix("Percpu:")).expect("it says that");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// The address of a key, all over the space.
fn rule(key: u64) -> AddressPrefix {
    let service: ServicePrefix = "fd77:1::/48".parse().expect("a service prefix");
    let addresses = service.keyspace(2).expect("a small id");
    let at = u128::from(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64;
    addresses.rule_of_key(ContentClass::Read, at)
}

fn apply(fib: &mut Fib, what: &str, changes: &[Change]) {
    let begun = now();
    for batch in changes.chunks(BATCH_MAX) {
        let refused = fib.apply(batch).expect("the kernel answers");
        assert!(refused.is_empty(), "{refused:?}");
    }
    let took = now() - begun;
    let each = took.as_nanos() / changes.len() as u128;
    let rate = changes.len() as f64 / took.as_secs_f64();
    println!("{what}: {:.2} s, {each} ns each, {rate:.0} a second", took.as_secs_f64());
}

/// Nanoseconds of this processor for a packet from the sender through the router to the sink, all
/// of which it does itself.
fn forward(rack: &Rack, keys: u64) -> u64 {
    rack.enter("a");
    let socket = UdpSocket::bind("[::]:0").expect("there are sockets");
    let to: Vec<SockaddrIn6> =
        (0..keys).map(|key| SocketAddrV6::new(rule(key).addr, 9, 0, 0).into()).collect();
    let mut runs: Vec<u64> = (0..RUNS)
        .map(|_| {
            let before = rack.forwarded();
            rack.enter("a");
            let begun = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is counted");
            for to in to.iter().cycle().take(PACKETS as usize) {
                sendto(socket.as_raw_fd(), &[0; 64], to, MsgFlags::empty()).expect("it is sent");
            }
            let ended = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is counted");
            let passed = rack.forwarded() - before;
            assert!(passed >= PACKETS * 99 / 100, "{passed} of {PACKETS} were forwarded");
            let took = Duration::from(ended) - Duration::from(begun);
            u64::try_from(took.as_nanos()).expect("not that long") / PACKETS
        })
        .collect();
    runs.sort_unstable();
    runs.get(RUNS / 2).copied().expect("there were some")
}

fn main() {
    let rack = Rack::build();
    let mut fib = Fib::open("fd77:1::/48".parse().expect("a service prefix")).expect("root may");
    let node = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 2, 2);
    let other = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 2, 3);
    let to = |prefix, via| Change { prefix, via: Some(via) };
    let service: ServicePrefix = "fd77:1::/48".parse().expect("a service prefix");
    apply(&mut fib, "one route for all", &[to(service.addresses(), node)]);
    let (one, spread) = (forward(&rack, 1), forward(&rack, ROUTES));
    println!("a packet by one route: {one} ns; to many addresses {spread} ns");
    rack.enter("r");
    let (before, counts) = (slab(), per_processor());
    let all: Vec<Change> = (0..ROUTES).map(|key| to(rule(key), node)).collect();
    apply(&mut fib, "routes made", &all);
    let (after, counted) = (slab(), per_processor());
    let each = after.saturating_sub(before) / ROUTES;
    let per_cpu = counted.saturating_sub(counts) / ROUTES;
    println!("kernel memory: {each} bytes each, and {per_cpu} of counts of processors");
    let begun = now();
    let listed = fib.routes(|_| Some(node)).expect("the kernel lists them").len();
    println!("{listed} listed in {:.2} s", (now() - begun).as_secs_f64());
    let many = forward(&rack, ROUTES);
    println!("a packet by {ROUTES} routes, to all in turn: {many} ns");
    rack.enter("r");
    let moved: Vec<Change> = all.iter().map(|change| to(change.prefix, other)).collect();
    apply(&mut fib, "routes replaced", &moved);
    let gone: Vec<Change> =
        all.iter().map(|change| Change { prefix: change.prefix, via: None }).collect();
    apply(&mut fib, "routes taken out", &gone);
}
