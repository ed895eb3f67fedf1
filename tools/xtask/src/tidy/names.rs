//! One type to a name: who has met a name in one file of a crate knows what it is in all others.

use super::Finding;
use super::tree::{File, Tree};
use std::collections::BTreeMap;

/// Where a name is declared several times: the crate, the name, how often at most, and why. `*`
/// stands for every crate, or for every name of a crate.
const EXCEPTIONS: [(&str, &str, usize, &str); 8] = [
    ("*", "Args", usize::MAX, "what a command is given, one in the module of each command"),
    ("model", "*", usize::MAX, "models side by side, each with a state and steps of its own"),
    ("client", "Client", 3, "the machine, as all texts call it, and its two faces"),
    ("client", "Download", 3, "each of the two faces is the one of `big` over its own line"),
    ("client", "Io", 2, "what carries datagrams, of either face: they wait in two ways"),
    ("client", "Line", 2, "what a long value takes, of either face: they wait in two ways"),
    ("client", "Space", 2, "a keyspace, of either face: they wait in two ways"),
    ("client", "Upload", 2, "a value written in pieces, of either face: they wait in two ways"),
];

/// Names that were given to anything, until they said nothing: one thing in all of the product may
/// have each.
const WORN: [&str; 4] = ["Directory", "Held", "Place", "Told"];

/// Crates that are not the product: what it is tested and measured with.
const BESIDE: [&str; 5] = ["bench", "experiments", "model", "sim", "testkit"];

const RENAME: &str = "name each for what it is, or make one of them";

/// In a crate, no two types that other modules can see have one name.
pub(super) fn types_have_names_of_their_own(tree: &Tree) -> Vec<Finding> {
    let mut all: BTreeMap<(&str, &str), Vec<Site<'_>>> = BTreeMap::new();
    for file in tree.rust().filter(|file| !file.is_test()) {
        let [_, name, "src", ..] = *file.path.split('/').collect::<Vec<_>>() else { continue };
        for site in sites(file).filter(|site| site.visible) {
            all.entry((name, site.name)).or_default().push(site);
        }
    }
    let over =
        |((of, name), sites): ((&str, &str), Vec<Site<'_>>)| repeated(&sites, most(of, name));
    all.into_iter().flat_map(over).collect()
}

/// In the product, each worn name is one type's, whoever can see it.
pub(super) fn worn_names_are_given_once(tree: &Tree) -> Vec<Finding> {
    let mut all: BTreeMap<&str, Vec<Site<'_>>> = BTreeMap::new();
    for file in tree.rust() {
        let ["crates", of, ..] = *file.path.split('/').collect::<Vec<_>>() else { continue };
        if !BESIDE.contains(&of) {
            for site in sites(file).filter(|site| WORN.contains(&site.name)) {
                all.entry(site.name).or_default().push(site);
            }
        }
    }
    all.into_values().flat_map(|sites| repeated(&sites, 1)).collect()
}

/// How often a crate may declare a name.
fn most(of: &str, name: &str) -> usize {
    let is =
        |it: &&(&str, &str, usize, &str)| ["*", of].contains(&it.0) && ["*", name].contains(&it.1);
    EXCEPTIONS.iter().find(is).map_or(1, |(_, _, most, _)| *most)
}

/// Those beyond the first so many.
fn repeated(sites: &[Site<'_>], most: usize) -> Vec<Finding> {
    let Some(first) = sites.first() else { return Vec::new() };
    let finding = |site: &Site<'_>| {
        let what = format!("{} is {}:{} already: {RENAME}", site.name, first.path, first.line);
        Finding::new(site.path, site.line, what)
    };
    sites.iter().skip(most).map(finding).collect()
}

/// Where a type is declared.
struct Site<'a> {
    path: &'a str,
    line: usize,
    name: &'a str,
    /// To other modules.
    visible: bool,
}

fn sites(file: &File) -> impl Iterator<Item = Site<'_>> {
    let declared = |(line, text)| {
        let (name, visible) = declared(text)?;
        Some(Site { path: &file.path, line, name, visible })
    };
    (1..).zip(file.code.lines()).filter_map(declared)
}

/// The type that a line declares, and whether other modules can see it.
fn declared(line: &str) -> Option<(&str, bool)> {
    let all = line.trim_start();
    let (rest, visible) = match all.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (rest.split_once(") ")?.1, true),
        Some(rest) => (rest.strip_prefix(' ')?, true),
        None => (all, false),
    };
    let (keyword, rest) = rest.strip_prefix("unsafe ").unwrap_or(rest).split_once(' ')?;
    // What stands in a trait or an `impl` belongs to that.
    let is_associated = keyword == "type" && !visible && all.len() < line.len();
    if is_associated || !["enum", "struct", "trait", "type", "union"].contains(&keyword) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    // A macro has a `$` there: who calls it names the type.
    let name = rest.get(..end).filter(|name| !name.is_empty())?;
    Some((name, visible))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<(String, usize)> {
        rule(&Tree::of(files)).into_iter().map(|it| (it.path, it.line)).collect()
    }

    #[test]
    fn a_name_that_a_crate_shows_twice_is_found() {
        let ways = [
            "//! c\npub struct Found;",
            "//! c\npub(crate) enum Found { One }",
            "//! c\n    pub(in crate::a) trait Found<T>: Send {",
            "//! c\npub unsafe trait Found {}",
            "//! c\npub(super) type Found = u8;",
        ];
        for way in ways {
            let files =
                [("crates/a/src/b.rs", "pub struct Found(u8);"), ("crates/a/src/c.rs", way)];
            let twice = found(types_have_names_of_their_own, &files);
            assert_eq!(twice, [("crates/a/src/c.rs".to_owned(), 2)], "{way}");
        }
    }

    #[test]
    fn what_others_cannot_take_for_it_is_not_found() {
        let others = [
            ("crates/a/src/c.rs", "struct Found;"),
            ("crates/a/src/c.rs", "pub struct Founder; pub fn type_of() {}"),
            ("crates/a/src/c.rs", "impl A for B {\n    type Found = u8;\n}"),
            ("crates/a/src/c.rs", "pub struct $name;\npub struct $name;"),
            ("crates/a/src/c.rs", "// pub struct Found;"),
            ("crates/a/src/c/tests.rs", "pub struct Found;"),
            ("crates/a/tests/c.rs", "pub struct Found;"),
            ("crates/b/src/c.rs", "pub struct Found;"),
        ];
        for other in others {
            let files = [("crates/a/src/b.rs", "pub struct Found;"), other];
            assert_eq!(found(types_have_names_of_their_own, &files), [], "{other:?}");
        }
    }

    #[test]
    fn an_exception_is_for_so_many() {
        let mut files = vec![
            ("crates/client/src/asynchronous/long.rs", "pub struct Line;"),
            ("crates/client/src/blocking/long.rs", "pub struct Line;"),
        ];
        assert_eq!(found(types_have_names_of_their_own, &files), []);
        files.push(("crates/client/src/window.rs", "pub(crate) struct Line;"));
        assert_eq!(found(types_have_names_of_their_own, &files).len(), 1);
        let all = [
            ("crates/model/src/a.rs", "pub struct B;"),
            ("crates/model/src/c.rs", "pub struct B;"),
        ];
        assert_eq!(found(types_have_names_of_their_own, &all), []);
    }

    #[test]
    fn a_worn_name_is_found_wherever_it_is_given_again() {
        for again in ["struct Place<'a> {", "pub(crate) enum Place {", "type Place = u8;"] {
            let files =
                [("crates/a/src/b.rs", "pub enum Place {}"), ("crates/c/tests/d.rs", again)];
            assert_eq!(found(worn_names_are_given_once, &files).len(), 1, "{again}");
            let beside = [files[0], ("crates/sim/src/d.rs", again)];
            assert_eq!(found(worn_names_are_given_once, &beside), [], "{again}");
        }
        let places =
            [("crates/a/src/b.rs", "struct Place;"), ("crates/c/src/d.rs", "struct Places;")];
        assert_eq!(found(worn_names_are_given_once, &places), []);
    }
}
