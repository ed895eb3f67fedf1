//! `cargo xtask tidy`: the rules of this repository that the compiler and clippy do not know.
//!
//! Each rule looks at the whole [`Tree`] and says what it finds. Its exceptions stand beside it,
//! each with its reason; there is no other way around a rule.

mod circles;
mod dependencies;
mod fields;
mod lexer;
mod links;
mod modules;
mod names;
mod purity;
mod shape;
mod tree;
mod usage;
mod words;

use anyhow::{Result, bail};
use std::fmt;
use std::path::Path;
use tree::Tree;

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1; 0 stands for the file as a whole.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every rule. Work is linear in the size of the tree, but for [`usage`], which searches the tree
/// once for each name.
const RULES: [fn(&Tree) -> Vec<Finding>; 21] = [
    dependencies::point_one_way,
    dependencies::argue_for_themselves,
    dependencies::leave_mutants_to_tests,
    dependencies::share_the_lints,
    purity::machines_are_pure,
    purity::unsafe_code_has_one_place,
    shape::files_have_a_budget,
    shape::functions_have_a_budget,
    shape::lines_have_a_width,
    shape::modules_say_what_they_are_for,
    shape::limits_say_why,
    words::nothing_is_left_undone,
    words::words_are_the_fields,
    names::types_have_names_of_their_own,
    names::worn_names_are_given_once,
    modules::every_file_is_reached,
    modules::modules_lie_where_their_names_say,
    circles::imports_go_one_way,
    usage::every_name_is_used,
    fields::messages_say_what_fields_mean,
    links::lead_somewhere,
];

/// Applies every rule to the checkout.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let findings = findings(&tree);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        n => bail!("{n} findings; CONTRIBUTING.md gives the reasons for the rules"),
    }
}

fn findings(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let tree = Tree::read(&crate::repository_root()).unwrap();
        let findings: Vec<String> = findings(&tree).iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }
}
