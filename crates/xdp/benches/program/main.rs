//! Nanoseconds per packet of the programs in the kernel, and packets per second of one core:
//! `cargo bench -p keyway-xdp --bench program [-- --json] [-- --envelopes]`. As root. With the
//! second only what envelopes cost.
//!
//! The kernel runs a program many times on one packet (`BPF_PROG_TEST_RUN`). Each time the packet
//! is first made as it came, with another match value, which is measured by itself and taken off.
//! Programs take turns, so that what disturbs one disturbs the other.

mod addresses;
mod bed;
mod cases;
mod report;
mod sealers;

use addresses::{CACHED_KEYS, HOT_KEYS, NODES};
use bed::{Bed, Task};
use cases::{KEY, Of, READERS, REPLICAS, VALUE_LEN};
use report::Report;
use serde_json::json;

const ROUNDS: usize = 21;
/// Times that the programs of one packet are loaded: where they lie matters.
const LOADS: usize = 9;
/// Runs in a round, of programs that take one packet and of those that make many.
const RUNS: u32 = 100_000;
const RUNS_OF_MANY: u32 = 5_000;

fn main() {
    let report = Report::asked_for();
    let mut bed = match Bed::make() {
        Ok(bed) => bed,
        Err(why) => return report.row(&format!("SKIPPED: {why}"), &json!({ "skipped": why })),
    };
    report.text(&bed::machine());
    report.text(&format!(
        "least of {ROUNDS} rounds of {RUNS} runs ({RUNS_OF_MANY} of MGET), median of {LOADS} loads \
         [least and most]; random match values, \
         {NODES} nodes, chains of {REPLICAS}, key {} B, value {VALUE_LEN} B\n",
        KEY.len()
    ));
    for (program, instructions) in bed.instructions() {
        report.row(
            &format!("the verifier went through {instructions} instructions of {program}"),
            &json!({ "group": "verifier", "program": program, "instructions": instructions }),
        );
    }
    let only_envelopes = std::env::args().any(|argument| argument == "--envelopes");
    for partitions in [128, 4096] {
        singles(report, &mut bed, partitions);
        if !only_envelopes {
            with_hot_keys(report, &mut bed, partitions);
            with_delegations(report, &mut bed, partitions);
            with_caches(report, &mut bed, partitions);
        }
    }
    let clone = clone_cost(report, &mut bed);
    many(report, &mut bed, clone);
    if !only_envelopes {
        live(report, &mut bed);
    }
    bed.seal();
    for partitions in [128, 4096] {
        singles(report, &mut bed, partitions);
    }
    many(report, &mut bed, clone);
}

/// Frames that really flow.
fn live(report: Report, bed: &mut Bed) {
    bed.install(128, NODES);
    for (name, program) in [("least: rewrite, redirect", "anew_least"), ("GET", "anew_one")] {
        let seconds = bed.flow(&Task::new(program, &cases::get(Of::Nothing), 1));
        let per_second = f64::from(bed::LIVE_FRAMES) / seconds;
        report.row(
            &format!(
                "{name}, 128 partitions, over a wire to a sink, all on one core: {:.2} million \
                 packets a second, all of {} arrived",
                per_second / 1e6,
                bed::LIVE_FRAMES
            ),
            &json!({
                "group": "live", "packet": name, "partitions": 128, "per_second": per_second,
            }),
        );
    }
}

/// A row of a table: a name, by place in the tasks the figure, and what is taken off.
type Row = (&'static str, usize, Option<usize>);

/// GET, PUT and reply beside the least that a switch does, without hot keys.
fn singles(report: Report, bed: &mut Bed, partitions: u32) {
    let of = Of::Nothing;
    let (get, put, reply) = (cases::get(of), cases::put(of), cases::reply(of));
    let task = |program, packet: &[u8]| bed.task(program, packet, RUNS);
    let tasks = [
        task("only_anew", &get),
        task("anew_least", &get),
        task("anew_one", &get),
        task("only_anew", &put),
        task("anew_one", &put),
        task("only_anew", &reply),
        task("anew_one", &reply),
    ];
    let rows = [
        ("packet made anew", 0, None),
        ("least: rewrite, redirect", 1, Some(0)),
        ("GET", 2, Some(0)),
        ("PUT", 4, Some(3)),
        ("reply", 6, Some(5)),
    ];
    let (group, how) = bed.pick(("plain", ""), ("sealed", ", in envelopes"));
    report.text(&format!("{partitions} partitions{how:<16}ns raw   ns net   net to the least"));
    measure(report, bed, (group, partitions), &tasks, &rows, |_| ());
}

/// The same while some keys are hot.
fn with_hot_keys(report: Report, bed: &mut Bed, partitions: u32) {
    let [none, cold, hot] = [Of::Nothing, Of::Cold, Of::Hot].map(cases::get);
    let [cold_put, hot_put] = [Of::Cold, Of::Hot].map(cases::put);
    let [reply, hot_reply, raising] = [Of::Cold, Of::Hot, Of::Raised].map(cases::reply);
    let tasks = [
        task("only_anew", &none),
        task("anew_least", &none),
        task("only_anew", &cold),
        task("anew_one", &cold),
        task("anew_one", &cold_put),
        task("only_anew", &hot),
        task("anew_one", &hot),
        task("anew_one", &hot_put),
        task("only_anew", &reply),
        task("anew_one", &reply),
        task("only_anew", &hot_reply),
        task("anew_one", &hot_reply),
        task("only_anew", &raising),
        task("anew_one", &raising),
    ];
    let rows = [
        ("least: rewrite, redirect", 1, Some(0)),
        ("GET of a cold key", 3, Some(2)),
        ("PUT of a cold key", 4, Some(2)),
        ("GET of a hot key, spread", 6, Some(5)),
        ("PUT of a hot key", 7, Some(5)),
        ("reply for a cold key", 9, Some(8)),
        ("reply for a hot key", 11, Some(10)),
        ("the same, raises the floor", 13, Some(12)),
    ];
    report.text(&format!("{partitions} partitions, {HOT_KEYS} hot keys on {READERS} readers each"));
    measure(report, bed, ("hot", partitions), &tasks, &rows, |bed| bed.warm(NODES, false));
    let (reads, spread) = bed.spread();
    report.text(&format!("  {spread} of {reads} reads of hot keys went to copies\n"));
}

/// The same while those keys are under delegations.
fn with_delegations(report: Report, bed: &mut Bed, partitions: u32) {
    let [none, cold, hot] = [Of::Nothing, Of::Cold, Of::Hot].map(cases::get);
    let [cold_put, new, same] = [Of::Cold, Of::NewWrite, Of::SameWrite].map(cases::put);
    let tasks = [
        task("only_anew", &none),
        task("anew_least", &none),
        task("only_anew", &cold),
        task("anew_one", &cold),
        task("anew_one", &cold_put),
        task("only_anew", &hot),
        task("anew_one", &hot),
        task("only_anew", &new),
        task("anew_one", &new),
        task("only_anew", &same),
        task("anew_one", &same),
    ];
    let rows = [
        ("least: rewrite, redirect", 1, Some(0)),
        ("GET of a cold key", 3, Some(2)),
        ("PUT of a cold key", 4, Some(2)),
        ("GET of a delegated key", 6, Some(5)),
        ("PUT of a delegated key", 8, Some(7)),
        ("the same, again", 10, Some(9)),
    ];
    report.text(&format!(
        "{partitions} partitions, {HOT_KEYS} delegated keys, {READERS} nodes for each"
    ));
    measure(report, bed, ("delegated", partitions), &tasks, &rows, |bed| bed.warm(NODES, true));
    let [new, again] = bed.delegated();
    report.text(&format!(
        "  {new} writes went under delegations with a new grant, {again} with that of before\n"
    ));
}

/// GETs while a cache holds as many keys as rules have room for.
fn with_caches(report: Report, bed: &mut Bed, partitions: u32) {
    let [none, cold, cached] = [Of::Nothing, Of::Cold, Of::Cached].map(cases::get);
    let tasks = [
        task("only_anew", &none),
        task("anew_least", &none),
        task("only_anew", &cold),
        task("anew_one", &cold),
        task("only_anew", &cached),
        task("anew_one", &cached),
    ];
    let rows = [
        ("least: rewrite, redirect", 1, Some(0)),
        ("GET of a key without a rule", 3, Some(2)),
        ("GET of a cached key", 5, Some(4)),
    ];
    report.text(&format!("{partitions} partitions, {CACHED_KEYS} keys of which a cache has rules"));
    measure(report, bed, ("cached", partitions), &tasks, &rows, Bed::cache);
    let reads = u64::from(RUNS + 1) * ROUNDS as u64;
    assert_eq!(bed.cached(), reads, "all of them, and no others, go to the cache");
}

fn task(program: &'static str, datagram: &[u8]) -> Task {
    Task::new(program, datagram, RUNS)
}

/// Times tasks with programs that are loaded again and again, and prints rows of figures. The first
/// two tasks are a packet made anew and the least that a switch does.
fn measure<const N: usize>(
    report: Report,
    bed: &mut Bed,
    (group, partitions): (&str, u32),
    tasks: &[Task; N],
    rows: &[Row],
    warm: impl Fn(&mut Bed),
) {
    let loads: Vec<[f64; N]> = (0..LOADS)
        .map(|_| {
            bed.load_again();
            bed.install(partitions, NODES);
            warm(bed);
            bed.time(tasks, ROUNDS)
        })
        .collect();
    for (name, place, off) in rows {
        let at =
            |load: &[f64; N], place: usize| load.get(place).copied().expect("one of the tasks");
        let net = |load: &[f64; N]| at(load, *place) - off.map_or(0.0, |off| at(load, off));
        let ratio = |load: &[f64; N]| net(load) / (at(load, 1) - at(load, 0));
        let (raw, net) = (spread(&loads, |load| at(load, *place)), spread(&loads, net));
        let ratio = spread(&loads, ratio);
        let ([_, raw, _], [_, net, _], [least, median, most]) = (raw, net, ratio);
        report.row(
            &format!("  {name:<30} {raw:>6.1}   {net:>6.1}   {median:>6.2} [{least:.2} {most:.2}]"),
            &json!({
                "group": group, "partitions": partitions, "packet": name, "ns_raw": raw, "ns": net,
                "ratio": { "median": median, "low": least, "high": most },
                "rounds": ROUNDS, "runs": RUNS, "loads": LOADS,
            }),
        );
    }
    report.text("");
}

/// Least, median and most.
fn spread<T>(of: &[T], figure: impl Fn(&T) -> f64) -> [f64; 3] {
    let mut figures: Vec<f64> = of.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    let at = |place: usize| figures.get(place).copied().expect("some figures");
    [at(0), at(figures.len() / 2), at(figures.len() - 1)]
}

/// Nanoseconds that it takes to send a part of a packet as a clone, whatever is in the packet.
fn clone_cost(report: Report, bed: &mut Bed) -> f64 {
    bed.load_again();
    bed.install(128, 1);
    let clones = |count| Task::new("only_clones", &cases::parts(count), RUNS_OF_MANY);
    let [one, sixteen] = bed.time(&[clones(1), clones(16)], ROUNDS);
    let clone = (sixteen - one) / 15.0;
    report.row(
        &format!("sending a part as a clone, to an interface that drops it: {clone:.0} ns\n"),
        &json!({ "group": "clone", "ns": clone }),
    );
    clone
}

/// MGET by keys and nodes, if sending a part as a clone takes so long.
fn many(report: Report, bed: &mut Bed, clone: f64) {
    bed.load_again();
    let (group, how) = bed.pick(("mget", ""), ("sealed mget", "in envelopes: "));
    report.text(&format!(
        "{how}partitions  keys  nodes  parts   ns raw   ns net   without clones   net per key"
    ));
    for (partitions, nodes) in [128, 4096].into_iter().flat_map(|p| [(p, 1), (p, 4), (p, 16)]) {
        bed.install(partitions, nodes);
        for keys in [8, 32] {
            let mget = cases::mget(keys);
            let task = |program| bed.task(program, &mget, RUNS_OF_MANY);
            let tasks = [task("only_anew_many"), task("anew_many_parts")];
            let before = bed.emitted();
            let [anew, whole] = bed.time(&tasks, ROUNDS);
            let runs = ROUNDS as f64 * f64::from(RUNS_OF_MANY);
            let parts = (bed.emitted() - before) as f64 / runs;
            let net = whole - anew;
            let without = net - (parts - 1.0) * clone;
            report.row(
                &format!(
                    "{partitions:>10} {keys:>5} {nodes:>6} {parts:>6.2} {whole:>8.0} {net:>8.0} \
                     {without:>16.0} {:>13.1}",
                    net / f64::from(keys)
                ),
                &json!({
                    "group": group, "partitions": partitions, "keys": keys, "nodes": nodes,
                    "parts": parts, "ns_raw": whole, "ns": net, "ns_without_clones": without,
                }),
            );
        }
    }
    report.text("");
}
