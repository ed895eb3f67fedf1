//! No source file that the compiler never sees, and none that it sees in two places.

use super::Finding;
use super::lexer::has_word;
use super::tree::Tree;

/// Every file under a `src`, `tests` or `benches` is a root that cargo finds, or a `mod` of its
/// parent.
pub(super) fn every_file_is_reached(tree: &Tree) -> Vec<Finding> {
    let orphan = |path: &&str| !is_root(path) && !is_declared(tree, path);
    let paths = tree.rust().map(|file| file.path.as_str());
    let orphans = paths.filter(orphan);
    orphans.map(|path| Finding::new(path, 0, "no `mod` names this file")).collect()
}

/// The one folder that takes sources of other crates, since whole crates would take too long to
/// build with its instruments.
const BORROWS: &str = "fuzz/src/";

/// A module lies where its name says. What several crates need is a crate.
pub(super) fn modules_lie_where_their_names_say(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.path.starts_with(BORROWS)) {
        for (number, line) in (1..).zip(file.code.lines()) {
            if line.replace(' ', "").contains("#[path=") {
                let what = "#[path]: what tests of several crates share belongs into testkit";
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// What cargo compiles without being told.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.rsplit('/').collect();
    match parts.as_slice() {
        ["lib.rs" | "main.rs", "src", ..] | ["build.rs", ..] => true,
        ["main.rs", _, "tests" | "benches" | "examples", ..] => true,
        [_, "tests" | "benches" | "examples" | "fuzz_targets", above, ..] => *above != "src",
        [_, "bin", "src", ..] => true,
        _ => false,
    }
}

fn is_declared(tree: &Tree, path: &str) -> bool {
    let Some((folder, file)) = path.rsplit_once('/') else { return false };
    let (folder, name) = match (file, folder.rsplit_once('/')) {
        ("mod.rs", Some((above, name))) => (above, name),
        _ => (folder, file.trim_end_matches(".rs")),
    };
    let declaration = format!("mod {name};");
    let declares = |path: &str| tree.get(path).is_some_and(|f| has_word(&f.code, &declaration));
    // Beside the roots in `tests` or `benches` there may be modules that several of them share.
    let shared = |file: &&str| is_root(file) && file.rsplit_once('/').map(|f| f.0) == Some(folder);
    ["lib.rs", "main.rs", "mod.rs"].iter().any(|f| declares(&format!("{folder}/{f}")))
        || declares(&format!("{folder}.rs"))
        || tree.rust().map(|f| f.path.as_str()).filter(shared).any(declares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)]) -> Vec<String> {
        every_file_is_reached(&Tree::of(files)).into_iter().map(|f| f.path).collect()
    }

    #[test]
    fn a_module_from_elsewhere_is_found() {
        let count = |path: &str, text: &str| {
            modules_lie_where_their_names_say(&Tree::of(&[(path, text)])).len()
        };
        let borrowed = "#[path = \"../../a/tests/b.rs\"]\nmod b;";
        assert_eq!(count("crates/c/tests/d.rs", borrowed), 1);
        assert_eq!(count("crates/c/src/d.rs", "#[ path=\"b.rs\" ]\nmod b;"), 1);
        assert_eq!(count("fuzz/src/lib.rs", borrowed), 0);
        assert_eq!(count("crates/c/src/d.rs", "// #[path = \"b.rs\"]"), 0);
    }

    #[test]
    fn a_file_that_nobody_declares_is_found() {
        let declared = [
            ("crates/a/src/lib.rs", "mod b;\n// mod d;"),
            ("crates/a/src/b.rs", "pub mod c;"),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/tests/e.rs", "mod world;"),
            ("crates/a/tests/world/mod.rs", "mod parts;"),
            ("crates/a/tests/world/parts.rs", ""),
            ("crates/a/benches/f.rs", ""),
            ("crates/a/tests/town/main.rs", "mod houses;"),
            ("crates/a/tests/town/houses.rs", ""),
        ];
        assert_eq!(orphans(&declared), Vec::<String>::new());
        let mut more = declared.to_vec();
        more.push(("crates/a/src/d.rs", ""));
        more.push(("crates/a/src/b/lost.rs", ""));
        more.push(("crates/a/tests/world/gone.rs", ""));
        let lost = ["crates/a/src/d.rs", "crates/a/src/b/lost.rs", "crates/a/tests/world/gone.rs"];
        assert_eq!(orphans(&more), lost);
    }
}
