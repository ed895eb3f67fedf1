//! Goal: every planted bug is seen, in the world that docs/concepts/simulator.md names for it.
//! Method: the table of that page is read and each of its worlds run, with the bug and without.
//!
//! Whatever changes a machine moves the seeds: `UPDATE_EXPECT=1 cargo test -p keyway-sim --test
//! plants` looks for new ones and writes them into the page.

use cluster::Plant;
use sim::{Options, hunt, plant_name, plant_named, planted, run};
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/simulator.md");

/// Seeds of each profile in which a bug is looked for.
const SEEDS: u64 = 1_000;

/// A row of the table: `| bug | rule | profile | seed |`.
struct Row {
    plant: Plant,
    rule: String,
    profile: String,
    seed: String,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, rule, profile, seed, ""] = cells[..] else { return None };
        let plant = plant_named(name.strip_prefix('`')?.strip_suffix('`')?).ok()?;
        let [rule, profile, seed] = [rule, profile, seed].map(str::to_owned);
        Some(Self { plant, rule, profile, seed })
    }

    fn text(&self) -> String {
        let Self { plant, rule, profile, seed } = self;
        format!("| `{}` | {rule} | {profile} | {seed} |", plant_name(*plant))
    }

    /// The same row, with a world in which the bug is seen today.
    fn renewed(self) -> Self {
        let name = plant_name(self.plant);
        let caught = hunt(self.plant, SEEDS).unwrap_or_else(|| panic!("{name} is never seen"));
        Self { profile: caught.profile.to_string(), seed: caught.seed.to_string(), ..self }
    }
}

#[test]
fn every_planted_bug_is_seen_where_the_page_says() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let renew = |line: &str| Row::parse(line).map(|row| row.renewed().text());
        let lines = page.lines().map(|line| renew(line).unwrap_or_else(|| line.to_owned()));
        let text = lines.collect::<Vec<_>>().join("\n") + "\n";
        fs::write(PAGE, text).expect("the page can be written");
        return;
    }
    let rows: Vec<Row> = page.lines().filter_map(Row::parse).collect();
    let named: BTreeSet<Plant> = rows.iter().map(|row| row.plant).collect();
    assert_eq!(named, Plant::ALL.into(), "the page names every bug");
    for row in rows {
        let name = plant_name(row.plant);
        let profile = row.profile.parse().unwrap_or_else(|why| panic!("{name}: {why}"));
        let seed = row.seed.parse().unwrap_or_else(|_| panic!("{name}: {:?}", row.seed));
        let options = planted(row.plant, profile, seed);
        let again = "UPDATE_EXPECT=1 cargo test -p keyway-sim --test plants looks for others";
        let seen = !run(&options).violations.is_empty();
        assert!(seen, "{name} is not seen in seed {seed} of {profile}; {again}");
        let sound = run(&Options { plant: None, ..options }).violations;
        assert!(sound.is_empty(), "{name}: the bug is not the cause: {sound:?}; {again}");
    }
}
