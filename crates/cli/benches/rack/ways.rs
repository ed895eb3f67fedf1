//! Part A: one request at a time finds its server by different ways.

use crate::load::alternate::alternate;
use crate::load::closed_loop::{Client, Connection, Kind};
use crate::load::figures::{Rounds, Spread};
use crate::load::keyway::{Coordination, Keyway};
use crate::load::options::Options;
use crate::load::pace::{Pace, equal};
use crate::rack::lab::{Lab, SOFT_INTERRUPTS};
use crate::rack::redis_rack::RedisRack;
use crate::{Racks, Stores};
use serde_json::json;

const IN_FLIGHT: [usize; 3] = [1, 32, 256];

/// Tails are compared at equal load as well: in an open loop, at half of what the slowest reaches
/// with so many in flight.
const EQUAL_IN_FLIGHT: usize = 32;

/// A way to the servers.
struct Arm {
    name: &'static str,
    /// Index of its servers' contents.
    store: usize,
    /// `None` if something is not installed.
    client: Option<Client>,
    /// How the names of the threads begin that do the switch's work.
    switch: &'static str,
    /// Indices of the arms that it is compared with.
    compared: &'static [usize],
}

const DIRECT: usize = 0;
const APART: usize = 1;
const SAME: usize = 2;
const REDIS: usize = 6;

fn arms(racks: &Racks, stores: &Stores, redis: Option<&RedisRack>) -> [Arm; 7] {
    let keyway = |lab: &Lab, how| {
        let [contents, ..] = stores;
        let connection = lab.on("c0", || Keyway::connect(&lab.reach, contents, how));
        Some(Client::new(Box::new(connection.expect("a free port")), lab.pids.clone()))
    };
    let client =
        |connection: Box<dyn Connection>, redis: &RedisRack| Client::new(connection, redis.pids());
    let forwarded =
        redis.and_then(|redis| Some(client(Box::new(redis.forwarded(&racks.user)?), redis)));
    let sharded = redis.map(|redis| client(Box::new(redis.sharded(&racks.user)), redis));
    let by_client = |lab| keyway(lab, Coordination::Client);
    let by_switch = |lab| keyway(lab, Coordination::Switch);
    let arm = |name, store, client, switch, compared| Arm { name, store, client, switch, compared };
    [
        arm("direct", 0, by_client(&racks.user), "switch-", &[]),
        arm("direct, apart", 1, by_client(&racks.apart), "switch-", &[DIRECT]),
        arm("direct, same", 2, by_client(&racks.xdp), "switch-", &[DIRECT, APART]),
        arm("XDP switch", 2, by_switch(&racks.xdp), "switch-", &[DIRECT, APART, SAME]),
        arm("user switch", 0, by_switch(&racks.user), "switch-", &[DIRECT, APART]),
        arm("nutcracker", 3, forwarded, "nutcracker", &[REDIS]),
        arm("Redis, direct", 3, sharded, "nutcracker", &[]),
    ]
}

/// Fills all stores, measures and reports.
pub(crate) fn measure(
    options: &Options,
    racks: &Racks,
    stores: &mut Stores,
    redis: Option<&RedisRack>,
) {
    let mut arms = arms(racks, stores, redis);
    let mut number = 1;
    for Arm { store, client, .. } in &mut arms {
        let contents = stores.get_mut(*store).expect("one for each");
        client.iter_mut().for_each(|client| client.load(contents, number));
    }
    for kind in [Kind::Get, Kind::Put] {
        let mut measure = |pace| {
            let rounds = alternate(options, arms.len(), |arm| {
                let Arm { store, client, .. } = arms.get_mut(arm).expect("one of them");
                let contents = stores.get_mut(*store).expect("one for each");
                number += 1;
                let client = client.as_mut()?;
                Some(client.run(contents, kind, number, pace, options.round()))
            });
            report(options, kind, pace, &arms, &rounds);
            rounds
        };
        for in_flight in IN_FLIGHT {
            let rounds = measure(Pace::Closed(in_flight));
            if in_flight == EQUAL_IN_FLIGHT {
                measure(equal(&rounds, 1));
            }
        }
    }
}

fn report(options: &Options, kind: Kind, pace: Pace, arms: &[Arm], rounds: &[Rounds]) {
    if !options.json {
        println!("\n{}, {pace}", kind.name());
    }
    for (arm, mine) in arms.iter().zip(rounds) {
        let is_there = |at: &&usize| arms.get(**at).is_some_and(|other| other.client.is_some());
        let other = |at: &usize| {
            let (other, theirs) = (arms.get(*at), rounds.get(*at));
            let (other, theirs) = other.zip(theirs).expect("the index of an arm");
            (other.name, mine.ratio_to(theirs))
        };
        if arm.client.is_none() {
            print_skipped(options, kind, pace, arm.name);
            continue;
        }
        let ratios: Vec<_> = arm.compared.iter().filter(is_there).map(other).collect();
        if options.json {
            print_json(options, kind, pace, arm, mine, &ratios);
        } else {
            print_line(arm, mine, &ratios);
        }
    }
}

fn print_skipped(options: &Options, kind: Kind, pace: Pace, name: &str) {
    if options.json {
        let row = json!({
            "benchmark": "rack", "part": "coordination", "arm": name, "op": kind.name(),
            "in_flight": pace.in_flight(), "rate": pace.rate(), "skipped": true,
        });
        println!("{row}");
    } else {
        println!("  {name:<13} SKIPPED: not installed, see above");
    }
}

fn print_line(arm: &Arm, rounds: &Rounds, ratios: &[(&str, Spread)]) {
    let (rate, cpu, (resent, strays)) = (rounds.rate(), Cpu::of(arm, rounds), rounds.losses());
    let ratio = |(name, it): &(&str, Spread)| {
        format!("  {:.2} [{:.2} {:.2}] of {name};", it.median, it.low, it.high)
    };
    println!(
        "  {:<13} {:6.1} [{:6.1} {:6.1}] k/s  {:5.0} / {:5.0} / {:5.0} us  CPU {:5.2} + {:5.2} + \
         {:5.2} + {:5.2}  full: {:<7}  resent {resent}, strays {strays}{}",
        arm.name,
        rate.median / 1e3,
        rate.low / 1e3,
        rate.high / 1e3,
        rounds.latency_us(50.0),
        rounds.latency_us(99.0),
        rounds.latency_us(99.9),
        rounds.client_us(),
        cpu.switch,
        cpu.servers,
        cpu.soft_interrupts,
        rounds.saturated(),
        ratios.iter().map(ratio).collect::<String>(),
    );
}

/// CPU time of a rack per request, in microseconds.
struct Cpu {
    /// Of the process that does the switch's work.
    switch: f64,
    /// Of the servers, and what else runs in the rack.
    servers: f64,
    /// Of the kernel's threads for what is left of packets.
    soft_interrupts: f64,
}

impl Cpu {
    fn of(arm: &Arm, rounds: &Rounds) -> Self {
        let switch = rounds.server_us(arm.switch);
        let soft_interrupts = rounds.server_us(SOFT_INTERRUPTS);
        let servers = rounds.server_us("") - switch - soft_interrupts;
        Self { switch, servers, soft_interrupts }
    }
}

fn print_json(
    options: &Options,
    kind: Kind,
    pace: Pace,
    arm: &Arm,
    rounds: &Rounds,
    ratios: &[(&str, Spread)],
) {
    let (cpu, (resent, strays)) = (Cpu::of(arm, rounds), rounds.losses());
    let ratios: serde_json::Map<_, _> =
        ratios.iter().map(|(name, it)| ((*name).to_owned(), json!(it))).collect();
    let row = json!({
        "benchmark": "rack", "part": "coordination", "arm": arm.name, "op": kind.name(),
        "in_flight": pace.in_flight(), "rate": pace.rate(), "rounds": options.rounds,
        "round_ms": options.round().as_millis(), "per_second": rounds.rate(),
        "p50_us": rounds.latency_us(50.0), "p99_us": rounds.latency_us(99.0),
        "p999_us": rounds.latency_us(99.9),
        "client_cpu_us": rounds.client_us(), "switch_cpu_us": cpu.switch,
        "servers_cpu_us": cpu.servers, "soft_interrupt_cpu_us": cpu.soft_interrupts,
        "saturated": rounds.saturated(),
        "ratio_to": ratios, "resent": resent, "strays": strays,
    });
    println!("{row}");
}
