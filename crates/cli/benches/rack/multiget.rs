//! Part B: who takes a multiget apart.

use crate::load::alternate::alternate;
use crate::load::contents::Contents;
use crate::load::figures::Rounds;
use crate::load::options::Options;
use crate::load::pace::{Pace, equal};
use crate::rack::asker::{Asker, Split};
use crate::rack::lab::{Lab, NODES};
use serde_json::json;

/// Keys of one multiget.
const SIZES: [usize; 4] = [4, 8, 16, 32];
/// Keys in flight, whatever the size. Tails are compared at equal load as well: in an open loop, at
/// half of the keys that the slowest reaches so.
const KEYS_IN_FLIGHT: usize = 256;

struct Arm<'a> {
    name: &'static str,
    asker: Asker,
    contents: &'a Contents,
}

/// The arm that the others are compared with.
const SWITCH: usize = 0;

/// Measures and reports. Both racks hold their contents already.
pub(crate) fn measure(
    options: &Options,
    (xdp, xdp_contents): (&Lab, &Contents),
    (plain, plain_contents): (&Lab, &Contents),
) {
    let arm = |name, lab: &Lab, contents, split| {
        let pids = lab.pids.clone();
        let asker = lab.on("c0", || Asker::connect(&lab.reach, split, pids));
        Arm { name, asker: asker.expect("a free port"), contents }
    };
    let mut arms = [
        arm("XDP switch splits", xdp, xdp_contents, Split::Switch),
        arm("  with hints", xdp, xdp_contents, Split::Assisted),
        arm("client, per server", xdp, xdp_contents, Split::Server),
        arm("  without XDP", plain, plain_contents, Split::Server),
        arm("client, per key", xdp, xdp_contents, Split::Key),
    ];
    if !options.json {
        println!("\nMultigets, {KEYS_IN_FLIGHT} keys in flight, over {NODES} nodes; kilokeys/s;");
        println!(
            "us: p50 / p99 / p99.9 of whole multigets; us of CPU time per key: client + others;"
        );
        println!("last, the ratio of the switch's keys/s to it, round by round");
    }
    for keys in SIZES {
        let mut measure = |pace| {
            let rounds = alternate(options, arms.len(), |arm| {
                let Arm { asker, contents, .. } = arms.get_mut(arm).expect("one of them");
                Some(asker.run(contents, keys, pace, options.round()))
            });
            report(options, keys, pace, &arms, &rounds);
            rounds
        };
        let rounds = measure(Pace::Closed(KEYS_IN_FLIGHT / keys));
        measure(equal(&rounds, keys));
    }
}

fn report(options: &Options, keys: usize, pace: Pace, arms: &[Arm<'_>], rounds: &[Rounds]) {
    if !options.json {
        println!("\nMGET of {keys} keys, {pace}");
    }
    let switch = rounds.get(SWITCH).expect("the first of them");
    for (at, (Arm { name, .. }, mine)) in arms.iter().zip(rounds).enumerate() {
        let rate = mine.rate();
        let ratio = (at != SWITCH).then(|| switch.ratio_to(mine));
        let [p50, p99, p999] = [50.0, 99.0, 99.9].map(|it| mine.latency_us(it));
        let (client, others) = (mine.client_us(), mine.server_us(""));
        let (resent, strays) = mine.losses();
        if options.json {
            let row = json!({
                "benchmark": "rack", "part": "multiget", "arm": name.trim(), "op": "MGET",
                "keys": keys, "in_flight": pace.in_flight(), "rate": pace.rate(), "nodes": NODES,
                "rounds": options.rounds, "round_ms": options.round().as_millis(),
                "keys_per_second": rate, "p50_us": p50, "p99_us": p99, "p999_us": p999,
                "client_cpu_us_per_key": client, "other_cpu_us_per_key": others,
                "saturated": mine.saturated(), "switch_ratio": ratio,
                "resent": resent, "strays": strays,
            });
            println!("{row}");
        } else {
            println!(
                "  {name:<18} {:7.1} [{:7.1} {:7.1}] k/s  {p50:6.0} / {p99:6.0} / {p999:6.0} us  \
                 CPU {client:5.2} + {others:5.2}  full: {:<7}  resent {resent}, strays \
                 {strays}{}",
                rate.median / 1e3,
                rate.low / 1e3,
                rate.high / 1e3,
                mine.saturated(),
                ratio.map_or_else(String::new, |it| {
                    format!("  switch {:.2} [{:.2} {:.2}] of it", it.median, it.low, it.high)
                }),
            );
        }
    }
}
