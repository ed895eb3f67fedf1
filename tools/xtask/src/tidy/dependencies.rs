//! Who may depend on whom: the house is a stack of floors, and nobody looks up.

use super::Finding;
use super::tree::{File, Tree};
use toml::{Table, Value};

/// Floor of each crate, and the foreign crates that it may use. A crate uses floors below its own.
///
/// The machines stand side by side: a switch that used a node's code could no longer be checked
/// against it. A machine may use foreign code only if that is pure as well.
const FLOORS: [(&str, u32, Foreign); 27] = [
    ("wire", 0, Foreign::Only(&["crc32c", "serde"])),
    ("machine", 1, Foreign::Only(&[])),
    ("net", 1, Foreign::Any),
    (
        "envelope",
        1,
        Foreign::Only(&["data-encoding", "hashbrown", "hmac", "serde", "sha2", "siphasher"]),
    ),
    ("cluster", 2, Foreign::Only(&["data-encoding", "serde", "serde_json", "xxhash-rust"])),
    ("switch", 3, Foreign::Only(&["arrayvec", "hashbrown", "serde"])),
    ("cache", 3, Foreign::Only(&["hashbrown"])),
    ("content", 3, Foreign::Only(&[])),
    ("node", 3, Foreign::Only(&["arrayvec", "hashbrown", "xxhash-rust"])),
    ("controller", 3, Foreign::Only(&["serde"])),
    // Its two faces open sockets; purity.rs says which files those are.
    ("client", 3, Foreign::Only(&["arrayvec", "hashbrown", "mio", "tokio"])),
    ("workload", 3, Foreign::Only(&["hdrhistogram", "serde"])),
    ("sim", 4, Foreign::Only(&[])),
    // Rules once more, on their own: it shares nothing with the machines but the names of bugs.
    ("model", 3, Foreign::Only(&["arrayvec", "clap", "stateright"])),
    ("xdp", 4, Foreign::Any),
    ("routes", 4, Foreign::Any),
    ("openflow", 4, Foreign::Only(&[])),
    // Above what it tests with, and below those whose tests use it.
    ("testkit", 4, Foreign::Any),
    ("runtime", 5, Foreign::Any),
    ("gateway", 6, Foreign::Any),
    ("console", 6, Foreign::Any),
    ("lab", 7, Foreign::Any),
    ("bench", 8, Foreign::Any),
    ("experiments", 9, Foreign::Any),
    ("cli", 10, Foreign::Any),
    ("fuzz", 10, Foreign::Any),
    ("xtask", 10, Foreign::Any),
];

#[derive(Clone, Copy)]
enum Foreign {
    Any,
    Only(&'static [&'static str]),
}

/// Crates depend downwards only; in tests also sideways.
pub(super) fn point_one_way(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in manifests(tree) {
        let Some((floor, _)) = floor_of(manifest.name) else {
            let what = format!("give the crate {} a floor in tidy/dependencies.rs", manifest.name);
            findings.push(Finding::new(&manifest.file.path, 0, what));
            continue;
        };
        for (section, reach) in [("dependencies", 0), ("dev-dependencies", 1)] {
            for used in manifest.section(section) {
                if floor_of(&used).is_some_and(|(other, _)| other >= floor + reach) {
                    let what = format!("{} may not use {used}: not below it", manifest.name);
                    findings.push(Finding::new(&manifest.file.path, 0, what));
                }
            }
        }
    }
    findings
}

/// Pure crates use only the foreign crates that were let in.
pub(super) fn argue_for_themselves(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in manifests(tree) {
        let Some((_, Foreign::Only(allowed))) = floor_of(manifest.name) else { continue };
        for used in manifest.section("dependencies") {
            if floor_of(&used).is_none() && !allowed.contains(&used.as_str()) {
                let what = format!(
                    "{} is pure and {used} was not let in: see tidy/dependencies.rs",
                    manifest.name
                );
                findings.push(Finding::new(&manifest.file.path, 0, what));
            }
        }
    }
    findings
}

/// What people run has no mutants: a crate asks for them in its tests, or in a feature of its own.
pub(super) fn leave_mutants_to_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in manifests(tree) {
        for section in ["dependencies", "features"] {
            if manifest.turns_mutants_on(section) {
                let what = format!("[{section}] turns mutants on: leave them to dev-dependencies");
                findings.push(Finding::new(&manifest.file.path, 0, what));
            }
        }
    }
    findings
}

/// Every crate is held to the lints of the workspace that it belongs to.
pub(super) fn share_the_lints(tree: &Tree) -> Vec<Finding> {
    let shares = |manifest: &Manifest<'_>| {
        let lints = manifest.table.get("lints").and_then(|lints| lints.get("workspace"));
        lints.and_then(Value::as_bool) == Some(true)
    };
    let is_root = |manifest: &Manifest<'_>| manifest.table.contains_key("workspace");
    let lacking = manifests(tree).filter(|manifest| !shares(manifest) && !is_root(manifest));
    lacking.map(|m| Finding::new(&m.file.path, 0, "add `[lints] workspace = true`")).collect()
}

struct Manifest<'a> {
    file: &'a File,
    /// The crate's folder, which is its name inside the workspace.
    name: &'a str,
    table: Table,
}

impl Manifest<'_> {
    fn section(&self, name: &str) -> Vec<String> {
        let section = self.table.get(name).and_then(Value::as_table);
        section.into_iter().flat_map(Table::keys).cloned().collect()
    }

    /// Whether a dependency is used with its mutants, or a feature that is on by itself has them.
    fn turns_mutants_on(&self, section: &str) -> bool {
        let asked = |value: &Value, name: &str| {
            let features = value.as_array().into_iter().flatten();
            features.filter_map(Value::as_str).any(|it| it.ends_with(name))
        };
        let Some(table) = self.table.get(section).and_then(Value::as_table) else { return false };
        match section {
            "features" => table.get("default").is_some_and(|it| asked(it, "mutants")),
            _ => table.values().any(|it| it.get("features").is_some_and(|it| asked(it, "mutants"))),
        }
    }
}

fn manifests(tree: &Tree) -> impl Iterator<Item = Manifest<'_>> {
    tree.files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        let name = folder.rsplit('/').next()?;
        // One that does not parse stops cargo long before this.
        let table = file.text.parse::<Table>().unwrap_or_default();
        Some(Manifest { file, name, table })
    })
}

fn floor_of(name: &str) -> Option<(u32, Foreign)> {
    FLOORS.iter().find(|(known, ..)| *known == name).map(|(_, floor, foreign)| (*floor, *foreign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, text: &str) -> Tree {
        Tree::of(&[(&format!("crates/{name}/Cargo.toml"), text)])
    }

    #[test]
    fn looking_up_or_sideways_is_found() {
        let ways = |name, text| point_one_way(&tree(name, text)).len();
        assert_eq!(ways("switch", "[dependencies]\nwire.workspace = true"), 0);
        assert_eq!(ways("wire", "[dependencies]\ncluster.workspace = true"), 1);
        assert_eq!(ways("switch", "[dependencies]\nnode = { workspace = true }"), 1);
        assert_eq!(ways("switch", "[dev-dependencies]\nnode.workspace = true"), 0);
        assert_eq!(ways("switch", "[dev-dependencies]\nsim.workspace = true"), 1);
        assert_eq!(ways("attic", ""), 1);
    }

    #[test]
    fn mutants_outside_tests_are_found() {
        let found = |text: &str| leave_mutants_to_tests(&tree("cli", text)).len();
        let asks = "cluster = { workspace = true, features = [\"mutants\"] }";
        assert_eq!(found(&format!("[dependencies]\n{asks}")), 1);
        assert_eq!(found(&format!("[dev-dependencies]\n{asks}")), 0);
        assert_eq!(found("[features]\nmutants = [\"cluster/mutants\"]"), 0);
        assert_eq!(found("[features]\ndefault = [\"cluster/mutants\"]"), 1);
    }

    #[test]
    fn a_foreign_crate_that_was_not_let_in_is_found() {
        let text = "[dependencies]\nrand.workspace = true\n[dev-dependencies]\nproptest = \"1\"";
        assert_eq!(argue_for_themselves(&tree("switch", text)).len(), 1);
        assert_eq!(argue_for_themselves(&tree("runtime", text)).len(), 0);
    }

    #[test]
    fn a_crate_with_lints_of_its_own_is_found() {
        assert_eq!(share_the_lints(&tree("wire", "[lints]\nworkspace = true")).len(), 0);
        assert_eq!(
            share_the_lints(&tree("wire", "[lints.rust]\nunsafe_code = \"allow\"")).len(),
            1
        );
    }
}
