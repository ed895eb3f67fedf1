//! Goal: every mutant is seen, in the world that docs/concepts/simulator.md names for it.
//! Method: the table of that page is read and each of its worlds run, with the bug and without.
//!
//! Whatever changes a machine moves the seeds: `UPDATE_EXPECT=1 cargo test -p keyway-sim --test
//! mutants` looks for new ones where it must, and writes them into the page.

use cluster::Mutant;
use sim::{HUNT_SEEDS, Options, Profile, hunt, mutant_name, mutant_named, run, with_mutant};
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/simulator.md");

/// A row of the table: `| bug | rule | profile | seed |`.
struct Row {
    mutant: Mutant,
    rule: String,
    profile: String,
    seed: String,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, rule, profile, seed, ""] = cells[..] else { return None };
        let mutant = mutant_named(name.strip_prefix('`')?.strip_suffix('`')?).ok()?;
        let [rule, profile, seed] = [rule, profile, seed].map(str::to_owned);
        Some(Self { mutant, rule, profile, seed })
    }

    fn text(&self) -> String {
        let Self { mutant, rule, profile, seed } = self;
        format!("| `{}` | {rule} | {profile} | {seed} |", mutant_name(*mutant))
    }

    /// Whether the bug is seen in the row's world, and nothing without it.
    fn holds(&self) -> Result<(), String> {
        let name = mutant_name(self.mutant);
        let Self { profile, seed, .. } = self;
        let parsed = profile.parse().map_err(|why| format!("{name}: {why}"))?;
        let options = with_mutant(self.mutant, parsed, seed.parse().map_err(|_| seed.clone())?);
        if run(&options).violations.is_empty() {
            return Err(format!("{name} is not seen in seed {seed} of {profile}"));
        }
        match run(&Options { mutant: None, ..options }).violations {
            sound if sound.is_empty() => Ok(()),
            others => Err(format!("{name}: the bug is not the cause: {others:?}")),
        }
    }

    /// The same row, with a world in which the bug is seen today; as it is, if there is none.
    fn renewed(self) -> Self {
        if self.holds().is_ok() {
            return self;
        }
        let own: Vec<Profile> = self.profile.parse().into_iter().collect();
        let caught = hunt(self.mutant, &own, HUNT_SEEDS);
        let caught = caught.or_else(|| hunt(self.mutant, &Profile::ALL, HUNT_SEEDS));
        let Some(caught) = caught else { return self };
        Self { profile: caught.profile.to_string(), seed: caught.seed.to_string(), ..self }
    }
}

#[test]
fn every_mutant_is_seen_where_the_page_says() {
    let mut page = fs::read_to_string(PAGE).expect("the page is there");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let renew = |line: &str| Row::parse(line).map(|row| row.renewed().text());
        let lines = page.lines().map(|line| renew(line).unwrap_or_else(|| line.to_owned()));
        page = lines.collect::<Vec<_>>().join("\n") + "\n";
        fs::write(PAGE, &page).expect("the page can be written");
    }
    let rows: Vec<Row> = page.lines().filter_map(Row::parse).collect();
    let named: BTreeSet<Mutant> = rows.iter().map(|row| row.mutant).collect();
    assert_eq!(named, Mutant::ALL.into(), "the page names every bug");
    for row in rows {
        let again = "UPDATE_EXPECT=1 cargo test -p keyway-sim --test mutants looks for others";
        row.holds().unwrap_or_else(|why| panic!("{why}; {again}"));
    }
}
