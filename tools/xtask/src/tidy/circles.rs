//! No import circle: whoever reads a file can read what it stands on first, and never comes back.
//!
//! A module is a file. It imports another one if some path in it, of a `use` or not, leads to an
//! item that the other one defines. Where a path leads to a re-export, the file that counts is the
//! one that defines what is exported, not those on the way. Tests count for nothing, and a call of
//! a method is no path.

mod paths;

use super::Finding;
use super::tree::{File, Tree};
use paths::Modules;
use std::collections::{BTreeMap, BTreeSet};

/// Where there is none, and none may come.
const CLEAN: [&str; 10] = [
    "bench",
    "cli",
    "client",
    "console",
    "controller",
    "gateway",
    "lab",
    "machine",
    "node",
    "switch",
];

/// No circle in crates that were freed of them.
pub(super) fn imports_go_one_way(tree: &Tree) -> Vec<Finding> {
    let of_crate = |name: &&str| circles(tree, name);
    let finding = |circle: Vec<String>| {
        let first = circle.first().cloned().unwrap_or_default();
        Finding::new(&first, 0, format!("is in an import circle: {}", circle.join(", ")))
    };
    CLEAN.iter().flat_map(of_crate).map(finding).collect()
}

/// The circles of a crate, each with its files in order: all files that reach each other.
fn circles(tree: &Tree, name: &str) -> Vec<Vec<String>> {
    let source = format!("crates/{name}/src/");
    let ours = |file: &&File| file.path.starts_with(&source) && !file.is_test();
    let files: Vec<&File> = tree.rust().filter(ours).collect();
    let imports = Modules::read(&source, &files).imports();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|from| (from.as_str(), reach(&imports, from))).collect();
    let mut circles = BTreeSet::new();
    for (file, reaches) in &reached {
        if reaches.contains(file) {
            let back = |other: &&&str| reached.get(**other).is_some_and(|it| it.contains(file));
            let circle = reaches.iter().filter(back).map(ToString::to_string);
            circles.insert(circle.collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}

/// All files that a file reaches by at least one import.
fn reach<'a>(imports: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a str> {
    let next = |file: &str| imports.get(file).into_iter().flatten().map(String::as_str);
    let mut reached = BTreeSet::new();
    let mut todo: Vec<&str> = next(from).collect();
    while let Some(file) = todo.pop() {
        if reached.insert(file) {
            todo.extend(next(file));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let named: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text)).collect();
        let files: Vec<(&str, &str)> =
            named.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let short = |path: String| path.replace("crates/a/src/", "");
        let circles = circles(&Tree::of(&files), "a").into_iter();
        circles.map(|circle| circle.into_iter().map(short).collect()).collect()
    }

    #[test]
    fn a_circle_is_found_whichever_way_it_is_written() {
        let ways = [
            "use crate::b::B; struct A;",
            "use crate::{b::{B as C}, x}; struct A;",
            "use super::b::B; struct A;",
            "use crate::b; struct A(b::B);",
            "struct A(crate::b::B);",
            "fn f() { use super::b::*; } struct A;",
            "mod inner { use super::super::b::B; } struct A;",
            "struct A; fn f() { print!(\"{}\", crate::b::B); }",
        ];
        for way in ways {
            let files = [
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", way),
                ("b.rs", "use super::a::A; struct B;"),
            ];
            assert_eq!(found(&files), [["a.rs", "b.rs"]], "{way}");
        }
        let three = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; struct A;"),
            ("b.rs", "use crate::c::C; struct B;"),
            ("c.rs", "use crate::a::A; struct C;"),
        ];
        assert_eq!(found(&three), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn a_folder_and_what_is_in_it_may_be_a_circle() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b; use b::B; struct A;"),
            ("a/b.rs", "use super::A; struct B;"),
        ];
        assert_eq!(found(&files), [["a.rs", "a/b.rs"]]);
    }

    #[test]
    fn what_is_exported_again_counts_where_it_is_defined() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::*;"),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "use super::c::C; pub struct B;"),
            ("c.rs", "pub struct C;"),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
        let mut back = files;
        back[3].1 = "use crate::A; pub struct C;";
        assert_eq!(found(&back), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn tests_and_other_crates_count_for_nothing() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; use other::a::B; pub struct B; #[cfg(test)] mod tests;"),
            ("b/tests.rs", "use crate::a::A; use super::B;"),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
    }
}
