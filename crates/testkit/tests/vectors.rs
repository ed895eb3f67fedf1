//! Runs `spec/vectors` against the pipeline. With `UPDATE_VECTORS=1` it instead rewrites the hex
//! digits of each datagram from its description, and what comes of it, for review.

use cluster::Capabilities;
use std::collections::BTreeSet;
use std::path::Path;
use testkit::fuzzed;
use testkit::oracle::compare::Both;
use testkit::oracle::counts::Counts;
use testkit::oracle::model::Sent;
use testkit::vector::codec::Codec;
use testkit::vector::file::{self, Arrival, Case, Change, File};
use testkit::vector::shown;
use wire::{DropReason, Op};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What a fresh switch with what the file installs makes of the last of these datagrams, and all
/// that it has counted. The model must agree.
fn run(file: &File, case: &Case, arrivals: &[Arrival]) -> (Vec<Sent>, Counts) {
    let mut both = Both::new(file.leased);
    let mut sent = Vec::new();
    let changes = file.changes(case).expect("they were looked at");
    for (changes, (from, datagram)) in changes.into_iter().zip(arrivals) {
        for change in changes {
            match change {
                Change::Tables(tables) => both.install(&tables),
                Change::Hot(order) => both.install_hot(order),
            }
        }
        sent = both.process(*from, datagram);
    }
    (sent, both.counts())
}

/// Holds every case of a file against the pipeline, by the exact bytes.
fn check(file: &File, codec: &Codec) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for case in &file.cases {
        let name = &case.name;
        let arrivals = case.arrivals()?;
        let described = case.datagrams(codec)? == arrivals;
        file.changes(case)?;
        let (sent, counts) = run(file, case, &arrivals);
        let holds = [
            (names.insert(name), "its name is there twice"),
            (described, "the description does not make the hex digits"),
            (case.sent()? == sent, "other datagrams are sent"),
            (case.changes_hold(codec)?, "`changed` does not say what the hex digits say"),
            (case.counters == counts, "other counts"),
        ];
        if let Some((_, why)) = holds.iter().find(|(holds, _)| !holds) {
            return Err(format!("{name:?}: {why}; found {counts:?}, sent {sent:02x?}"));
        }
    }
    Ok(())
}

#[test]
fn the_pipeline_does_what_the_vectors_say() {
    let codec = Codec::read(repository()).unwrap();
    for path in file::paths(repository()).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let read = |text: &str| File::parse(text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let file = read(&text);
        let rendered = file
            .render(&codec, |case, arrivals| run(&file, case, arrivals))
            .unwrap_or_else(|e| panic!("{path:?}: {e}"));
        if std::env::var_os("UPDATE_VECTORS").is_some() {
            std::fs::write(&path, &rendered).unwrap();
        } else {
            check(&file, &codec).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            assert!(rendered == text, "{path:?} is right but not in the form of UPDATE_VECTORS=1");
        }
        check(&read(&rendered), &codec).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    }
}

#[test]
fn a_switch_can_what_it_says_and_nothing_else() {
    let mut shown = Capabilities::default();
    for path in file::paths(repository()).unwrap() {
        let file = File::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for case in &file.cases {
            let arrivals = case.arrivals().unwrap();
            let (sent, counts) = run(&file, case, &arrivals);
            let (_, came) = arrivals.last().unwrap();
            shown = shown.or(shown::capabilities(file.tables.as_ref(), came, &sent, &counts));
        }
    }
    // What it has room for is tried where its tables are.
    shown.sizes = Capabilities::PROGRAM.sizes;
    assert_eq!(shown, Both::new(true).capabilities());
    assert_eq!(shown, Capabilities::PROGRAM);
}

#[test]
fn every_operation_and_every_drop_of_a_switch_has_a_vector() {
    let mut seen = BTreeSet::new();
    for path in file::paths(repository()).unwrap() {
        for case in File::parse(&std::fs::read_to_string(&path).unwrap()).unwrap().cases {
            seen.extend(case.counters.packets.into_keys().chain(case.counters.dropped.into_keys()));
        }
    }
    let ops = Op::ALL.map(Op::name);
    // The others are counted by nodes and clients only.
    let drops = [
        DropReason::Truncated,
        DropReason::NotOurs,
        DropReason::BadVersion,
        DropReason::BadOp,
        DropReason::BadLength,
        DropReason::BadBody,
        DropReason::BadChain,
        DropReason::NoKeyspace,
        DropReason::NoPartition,
        DropReason::NoNode,
        DropReason::ReplyNotFromNode,
        DropReason::RequestFromNode,
        DropReason::NotServing,
        DropReason::BadReplyAddress,
        DropReason::NoLease,
        DropReason::Standby,
        DropReason::StaleRequest,
        DropReason::NotFromMember,
    ];
    let wanted: BTreeSet<String> =
        ops.into_iter().chain(drops.map(DropReason::name)).map(str::to_owned).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn malformed_vectors_and_wrong_ones_are_noticed() {
    let codec = Codec::read(repository()).unwrap();
    let good = std::fs::read_to_string(repository().join("spec/vectors/single.toml")).unwrap();
    let outcome = |text: &str| File::parse(text).and_then(|file| check(&file, &codec));
    assert_eq!(outcome(&good), Ok(()));
    let spoilt = [
        ("emitted = 1", "emitted = 2"),
        ("emitted = 1", "emited = 1"),
        ("reads = { 11 = 1 }", "reads = { 12 = 1 }"),
        ("hex = \"\"\"\n4b57", "hex = \"\"\"\n4b58"),
        ("hex = \"\"\"\n4b57", "hex = \"\"\"\n4b5"),
        ("hex = \"\"\"\n4b57", "hex = \"\"\"\n4b5x"),
        ("op = \"get\"", "op = \"got\""),
        ("op = \"get\"", "op = \"del\""),
        ("chain_len = 1", "chain_len = 2"),
        ("to = \"10.0.0.3:9002\"", "to = \"10.0.0.3:9001\""),
        ("[[case.sends]]", "[[case.sent]]"),
    ];
    for (from, to) in spoilt {
        assert!(good.contains(from), "{from:?} is in the file");
        assert!(outcome(&good.replacen(from, to, 1)).is_err(), "{to:?} is noticed");
    }
    let orders = std::fs::read_to_string(repository().join("spec/vectors/orders.toml")).unwrap();
    assert_eq!(outcome(&orders), Ok(()));
    for (from, to) in [("\norder = 3", "\norder = 33"), ("\nforgets = true", "\n")] {
        assert!(orders.contains(from), "{from:?} is in the file");
        assert!(outcome(&orders.replacen(from, to, 1)).is_err(), "{to:?} is noticed");
    }
    assert!(File::parse("about = \"nothing\"\n").is_err());
    assert!(File::parse("about = \"nothing\"\ncase = []\n").is_err());
    assert!(file::paths(Path::new("no such folder")).is_err());
    assert!(file::paths(&repository().join("crates/switch")).is_err());
}

#[test]
fn the_fuzz_targets_take_every_vector() {
    for path in file::paths(repository()).unwrap() {
        for case in File::parse(&std::fs::read_to_string(&path).unwrap()).unwrap().cases {
            for (_, datagram) in case.arrivals().unwrap() {
                fuzzed::packet(&datagram);
                for source in [0, 224, 232] {
                    for flags in [0, fuzzed::form::MEND] {
                        let len = u16::try_from(datagram.len()).unwrap() | flags;
                        // No tables.
                        fuzzed::pipeline(
                            &[&[0, source], &len.to_be_bytes()[..], &datagram].concat(),
                        );
                    }
                }
            }
        }
    }
}

/// What is counted of hot keys.
fn of_hot_keys(counts: Counts) -> Counts {
    let Counts { hot_reads, hot_spread, hot_writes, delegated, hot_keys, doubted, .. } = counts;
    let rest = Counts::default();
    Counts { hot_reads, hot_spread, hot_writes, delegated, hot_keys, doubted, ..rest }
}

/// So that fuzzing begins where hot keys are spread and writes are delegated: it hardly gets there
/// by chance.
#[test]
fn the_seeds_of_fuzzing_do_with_hot_keys_what_the_vectors_do() {
    let (mut done, mut in_envelopes) = (Vec::new(), 0);
    for path in file::paths(repository()).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let seeds = fuzzed::seeds::of_file(&toml::from_str(&text).unwrap()).unwrap();
        let cases = File::parse(&text).unwrap().cases;
        assert_eq!(cases.len(), seeds.len());
        for (case, seed) in cases.into_iter().zip(seeds) {
            fuzzed::packet(&seed.packet);
            in_envelopes += fuzzed::envelope(&seed.envelope);
            let counts = of_hot_keys(fuzzed::pipeline(&seed.pipeline));
            assert_eq!(counts, of_hot_keys(case.counters), "{path:?}: {}", case.name);
            done.push(counts);
        }
    }
    let reach: [fn(&Counts) -> bool; 5] = [
        |counts| !counts.hot_spread.is_empty(),
        |counts| counts.hot_keys.contains_key("copy"),
        |counts| counts.delegated.contains_key("new"),
        |counts| counts.delegated.contains_key("again"),
        |counts| counts.doubted > 0,
    ];
    let reached = reach.map(|reaches| done.iter().filter(|counts| reaches(counts)).count());
    assert!(reached.iter().all(|seeds| *seeds > 0), "{reached:?}");
    assert!(in_envelopes > 100, "{in_envelopes} have arrived");
}
