//! Files that were damaged in place: whatever is done to one of them, the store is refused, or
//! fails when it comes upon it, or has what it had; of a journal that was cut off it has all up to
//! some commit. It never shows anything else, and nothing panics or aborts.

use super::crash::{copy, used};
use super::{SHARD, open_small, steps};
use crate::store::fjall_engine::{FjallEngine, SyncPolicy};
use cluster::StoreId;
use machine::Rng;
use node::engine::Engine;
use node::engine::conformance::{Model, Notes, Step};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    /// Bytes of a sector are others.
    Scramble,
    /// A sector reads as zeros.
    Zero,
    Cut,
    Empty,
    Remove,
    /// As a disk does that lost the order of two sectors.
    Swap,
}

const DAMAGES: [Damage; 7] = [
    Damage::Flip,
    Damage::Scramble,
    Damage::Zero,
    Damage::Cut,
    Damage::Empty,
    Damage::Remove,
    Damage::Swap,
];

const SECTOR: usize = 512;

impl Damage {
    /// How often it is done to each file, elsewhere each time.
    fn times(self) -> u64 {
        match self {
            Self::Flip => 12,
            Self::Scramble | Self::Zero | Self::Cut | Self::Swap => 4,
            Self::Empty | Self::Remove => 1,
        }
    }

    /// Whether that changed anything.
    fn apply(self, path: &Path, rng: &mut Rng) -> bool {
        let before = std::fs::read(path).unwrap();
        let used = used(&before);
        let mut bytes = before.clone();
        let mut below = |bound: usize| usize::try_from(rng.below(bound.max(1) as u64)).unwrap();
        let at = below(used);
        let sector = at / SECTOR * SECTOR;
        let end = (sector + SECTOR).min(used);
        match self {
            Self::Flip if used > 0 => bytes[at] ^= 1 << below(8),
            Self::Scramble => bytes[sector..end].iter_mut().for_each(|byte| {
                *byte = u8::try_from(below(256)).unwrap();
            }),
            Self::Zero => bytes[sector..end].fill(0),
            Self::Cut => bytes.truncate(at),
            Self::Empty => bytes.clear(),
            Self::Swap if sector + 2 * SECTOR <= used => {
                let (first, second) = bytes[sector..].split_at_mut(SECTOR);
                first.swap_with_slice(&mut second[..SECTOR]);
            }
            Self::Flip | Self::Swap | Self::Remove => {}
        }
        if matches!(self, Self::Remove) {
            std::fs::remove_file(path).unwrap();
            return true;
        }
        std::fs::write(path, &bytes).unwrap();
        bytes != before
    }
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
    found.sort();
}

/// A store with tables, several manifests and a journal, and what was in it after each sync.
fn make(dir: &Path) -> (Vec<Model>, Vec<Step>) {
    let mut engine = open_small(dir, 16 << 10, SyncPolicy::Always);
    let (mut model, mut states, mut touched) = (Model::new(Notes::Kept), Vec::new(), Vec::new());
    for index in 0..60 {
        let steps = steps(1_000 + index, 30);
        steps.iter().for_each(|step| model.step(&mut engine, step));
        touched.extend(steps);
        engine.sync().unwrap();
        states.push(model.clone());
    }
    (states, touched)
}

/// What a start and reading everything shows.
fn judge(
    dir: &Path,
    file: &Path,
    states: &[Model],
    touched: &[Step],
) -> Result<&'static str, String> {
    let opened = FjallEngine::open(dir, SHARD, StoreId(8), SyncPolicy::Always);
    let mut engine = match opened {
        Ok(engine) => engine,
        Err(error) => {
            let error = error.to_string();
            let named = error.contains(&dir.display().to_string());
            return if named { Ok("refused") } else { Err(format!("nothing is named: {error}")) };
        }
    };
    let is_journal = file.extension().is_some_and(|it| it == "jnl");
    let whole = states.last().unwrap().is_held_by(&engine, touched);
    let earlier = is_journal && states.iter().any(|state| state.is_held_by(&engine, touched));
    engine.note(cluster::PartitionId(9), b"n", Some(b"n"));
    match engine.sync() {
        Err(error) if error.to_string().contains(&dir.display().to_string()) => Ok("failed"),
        Err(error) => Err(format!("nothing is named: {error}")),
        Ok(()) if whole => Ok("whole"),
        Ok(()) if earlier => Ok("earlier"),
        Ok(()) => Err("it shows what never was".to_owned()),
    }
}

const DAMAGE_DIR: &str = "KEYWAY_TEST_DAMAGE_DIR";

/// The damage is done in another process, because one that aborts is to be noticed.
#[test]
fn whatever_is_damaged_is_refused_or_noticed_and_nothing_else_is_shown() {
    if let Ok(dir) = std::env::var(DAMAGE_DIR) {
        return damage_all(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let name = concat!(
        module_path!(),
        "::whatever_is_damaged_is_refused_or_noticed_and_nothing_else_is_shown"
    );
    let (_crate, name) = name.split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(DAMAGE_DIR, dir.path());
    let ran = child.output().unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let end = said.len().saturating_sub(4_000);
    let end = said.get(end..).unwrap_or(&said);
    assert!(ran.status.success(), "{}: {end}", ran.status);
    println!("{end}");
}

static PANICKED: AtomicBool = AtomicBool::new(false);

fn damage_all(dir: &Path) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::SeqCst);
        usual(info);
    }));
    let live = dir.join("live");
    let (states, touched) = make(&live);
    let mut all = Vec::new();
    files(&live, &mut all);
    assert!(all.len() > 20, "{all:?}");
    let (mut rng, mut wrong) = (Rng::new(7), Vec::new());
    let mut outcomes = std::collections::BTreeMap::<_, u32>::new();
    for file in &all {
        for damage in DAMAGES {
            for time in 0..damage.times() {
                let copied = dir.join("copy");
                copy(&live, &copied);
                let place = file.strip_prefix(&live).unwrap();
                let what = format!("{damage:?} {time} of {}", place.display());
                if damage.apply(&copied.join(place), &mut rng) {
                    println!("{what}");
                    match judge(&copied, file, &states, &touched) {
                        Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
                        Err(why) => wrong.push(format!("{what}: {why}")),
                    }
                    if PANICKED.swap(false, Ordering::SeqCst) {
                        wrong.push(format!("{what}: a panic"));
                    }
                }
                std::fs::remove_dir_all(&copied).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong, {outcomes:?}: {wrong:#?}", wrong.len());
    println!("{outcomes:?}");
}

/// The list of a table's sections says that it has four thousand million, for which there is no
/// memory.
#[test]
fn a_table_that_claims_too_much_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let mut all = Vec::new();
    files(dir.path(), &mut all);
    let list = |bytes: &[u8]| bytes.windows(4).rposition(|it| it == b"TOC!");
    let of_table = |path: &PathBuf| path.parent().is_some_and(|it| it.ends_with("tables"));
    let table = all.iter().find(|path| of_table(path)).unwrap();
    let mut bytes = std::fs::read(table).unwrap();
    let at = list(&bytes).unwrap() + 4;
    bytes[at..at + 4].fill(0xff);
    std::fs::write(table, bytes).unwrap();
    let opened = FjallEngine::open(dir.path(), SHARD, StoreId(8), SyncPolicy::Always);
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("fewer sections than it says"), "{error}");
}
