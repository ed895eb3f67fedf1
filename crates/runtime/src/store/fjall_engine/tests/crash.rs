//! Crashes: a copy of the directory, a killed process, a torn journal.

use super::{SHARD, open, open_small, refusal, steps};
use crate::store::StoreError;
use crate::store::fjall_engine::SyncPolicy;
use node::engine::Engine;
use node::engine::conformance::{Draw, Model, Notes, Step};
use proptest::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Memtables so small that kills also meet flushes and compactions.
const SMALL: u64 = 32 << 10;

/// Copies a store, without the zeros that fjall reserves at the end of its journals.
pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
            continue;
        }
        let mut bytes = std::fs::read(&from).unwrap();
        if from.extension().is_some_and(|extension| extension == "jnl") {
            bytes.truncate(used(&bytes) + 1_000);
        }
        std::fs::write(&to, bytes).unwrap();
    }
}

/// Commits end in a byte that is not zero.
pub(super) fn used(journal: &[u8]) -> usize {
    journal.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

pub(super) fn journal(dir: &Path) -> PathBuf {
    dir.join("store/fjall/0.jnl")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_crash_leaves_all_that_was_synced_and_nothing_else(
        draws in proptest::collection::vec(any::<Draw>(), 0..200),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (live, crashed) = (dir.path().join("live"), dir.path().join("crashed"));
        let mut engine = open(&live);
        let mut model = Model::new(Notes::Kept);
        let mut synced = model.clone();
        let steps: Vec<Step> = draws.into_iter().map(Step::from_draw).collect();
        for step in &steps {
            model.step(&mut engine, step);
            if *step == Step::Sync {
                synced = model.clone();
            }
        }
        copy(&live, &crashed);
        synced.check(&open(&crashed), &steps);
        model.check(&engine, &steps);
    }
}

/// Number `index` of the batches that the killed process writes.
fn batch(index: u64) -> Vec<Step> {
    let count = 1 + machine::Rng::new(index).below(60);
    steps(0x6b65_7977 ^ index, usize::try_from(count).unwrap())
}

const CRASH_DIR: &str = "KEYWAY_TEST_CRASH_DIR";
const CRASH_FROM: &str = "KEYWAY_TEST_CRASH_FROM";

/// Both sides of the test are in this function, because the process to kill is this very binary
/// told to run nothing else.
#[test]
fn what_was_synced_survives_a_kill_and_what_was_not_is_there_whole_or_not_at_all() {
    if let Ok(dir) = std::env::var(CRASH_DIR) {
        let from = std::env::var(CRASH_FROM).unwrap().parse().unwrap();
        write_until_killed(Path::new(&dir), from);
    }
    const ROUNDS: u64 = 24;
    let dir = tempfile::tempdir().unwrap();
    drop(open_small(dir.path(), SMALL, SyncPolicy::Never));
    let mut rng = machine::Rng::new(20);
    let (mut model, mut touched, mut next) = (Model::new(Notes::Kept), Vec::new(), 0);
    let mut whole_unacknowledged = 0;
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(dir.path(), next, 1 + rng.below(30), rng.below(100_000));
        assert!(acknowledged > next, "round {round} got somewhere");
        for index in next..acknowledged {
            let steps = batch(index);
            steps.iter().for_each(|step| model.apply(step));
            touched.extend(steps);
        }
        next = acknowledged;
        let on_its_way = batch(next);
        touched.extend(on_its_way.iter().cloned());
        let engine = open(dir.path());
        if !model.is_held_by(&engine, &touched) {
            on_its_way.iter().for_each(|step| model.apply(step));
            next += 1;
            whole_unacknowledged += 1;
        }
        model.check(&engine, &touched);
        assert!(!engine.is_empty(), "round {round} left something");
    }
    println!("{ROUNDS} kills, {next} batches, {whole_unacknowledged} of them unacknowledged");
}

/// Starts the other side, waits for that many acknowledgements and a little longer, kills it, and
/// returns how many batches it has acknowledged in all.
fn run_and_kill(dir: &Path, from: u64, wait_for: u64, spins: u64) -> u64 {
    let name = concat!(
        module_path!(),
        "::what_was_synced_survives_a_kill_and_what_was_not_is_there_whole_or_not_at_all"
    );
    let (_crate, name) = name.split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CRASH_DIR, dir)
        .env(CRASH_FROM, from.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut acknowledged = from;
    let mut take = |line: std::io::Result<String>| {
        let line = line.unwrap();
        let number = line.strip_prefix("synced ").and_then(|number| number.parse().ok());
        acknowledged = number.unwrap_or_else(|| panic!("the other side failed: {line}"));
    };
    (0..wait_for).for_each(|_| take(lines.next().expect("it runs until killed")));
    (0..spins).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    child.wait().unwrap();
    lines.for_each(take);
    acknowledged
}

fn write_until_killed(dir: &Path, from: u64) -> ! {
    let mut engine = open_small(dir, SMALL, SyncPolicy::Always);
    let mut model = Model::new(Notes::Kept);
    (0..from).flat_map(batch).for_each(|step| model.apply(&step));
    for index in from.. {
        batch(index).iter().for_each(|step| model.step(&mut engine, step));
        engine.sync().unwrap();
        // Not by a macro, whose output the test harness would keep to itself.
        std::io::stderr().write_all(format!("synced {}\n", index + 1).as_bytes()).unwrap();
    }
    unreachable!("the numbers do not end");
}

/// A store of several commits: where each of them ends in the journal, and what was there then.
fn commits(dir: &Path, count: u64) -> (Vec<(usize, Model)>, Vec<Step>) {
    let mut engine = open(dir);
    let mut model = Model::new(Notes::Kept);
    let mut ends = vec![(0, model.clone())];
    let mut touched = Vec::new();
    for index in 0..count {
        let steps = batch(index);
        steps.iter().for_each(|step| model.step(&mut engine, step));
        touched.extend(steps);
        engine.sync().unwrap();
        ends.push((used(&std::fs::read(journal(dir)).unwrap()), model.clone()));
    }
    (ends, touched)
}

/// Opens the store twice, with a commit in between: what recovery left must be fit to be written.
fn check_recovery(dir: &Path, model: &Model, touched: &[Step]) {
    let mut engine = open(dir);
    model.check(&engine, touched);
    let mut model = model.clone();
    let more = batch(1_000);
    more.iter().for_each(|step| model.step(&mut engine, step));
    engine.sync().unwrap();
    drop(engine);
    model.check(&open(dir), &[touched, &more].concat());
}

#[test]
fn a_journal_cut_off_anywhere_recovers_to_its_last_whole_commit() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let (ends, touched) = commits(&live, 12);
    let (last, _) = ends[ends.len() - 1];
    let mut rng = machine::Rng::new(30);
    let anywhere = (0..20).map(|_| usize::try_from(rng.below(last as u64)).unwrap());
    let edges = ends.iter().skip(9).flat_map(|(end, _)| [end - 1, *end, (end + 1).min(last)]);
    for (index, cut) in anywhere.chain(edges).enumerate() {
        let torn = dir.path().join(format!("torn{index}"));
        copy(&live, &torn);
        std::fs::File::options()
            .write(true)
            .open(journal(&torn))
            .and_then(|file| file.set_len(cut as u64))
            .unwrap();
        let whole = ends.partition_point(|(end, _)| *end <= cut);
        check_recovery(&torn, &ends[whole - 1].1, &touched);
    }
}

#[test]
fn a_journal_whose_end_reads_as_zeros_recovers_to_its_last_whole_commit() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let (ends, touched) = commits(&live, 3);
    let (last, _) = ends[3];
    for lost in 1..=13 {
        let torn = dir.path().join(format!("torn{lost}"));
        copy(&live, &torn);
        let mut bytes = std::fs::read(journal(&torn)).unwrap();
        bytes[last - lost..last].fill(0);
        std::fs::write(journal(&torn), bytes).unwrap();
        check_recovery(&torn, &ends[2].1, &touched);
    }
}

#[test]
fn a_journal_with_a_wrong_value_inside_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let mut engine = open(&live);
    engine.note(cluster::PartitionId(1), b"n", Some(&[0x5a; 100]));
    engine.sync().unwrap();
    engine.note(cluster::PartitionId(1), b"m", Some(b"later"));
    engine.sync().unwrap();
    let torn = dir.path().join("torn");
    copy(&live, &torn);
    let mut bytes = std::fs::read(journal(&torn)).unwrap();
    let at = bytes.windows(100).position(|window| window == [0x5a; 100]).unwrap();
    bytes[at + 50] ^= 1;
    std::fs::write(journal(&torn), bytes).unwrap();
    let error = refusal(&torn, SHARD);
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}
