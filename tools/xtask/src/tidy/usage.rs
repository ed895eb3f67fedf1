//! What the specification names, the programs use: a drop reason that nobody counts under and a
//! metric that nobody serves are promises not kept.

use super::Finding;
use super::lexer::has_word;
use super::tree::Tree;
use crate::layout::Layout;

const SPECIFICATION: &str = "spec/layout.toml";

/// Every drop reason, metric, outcome code and limit is used outside the generated file.
pub(super) fn every_name_is_used(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.get(SPECIFICATION) else { return Vec::new() };
    let layout: Layout = match toml::from_str(&file.text) {
        Ok(layout) => layout,
        Err(error) => return vec![Finding::new(SPECIFICATION, 0, error.to_string())],
    };
    let codes: Vec<&str> =
        tree.rust().filter(|f| !f.is_generated() && !f.is_test()).map(|f| &*f.code).collect();
    let unused = |name: &String| !codes.iter().any(|code| has_word(code, name));
    let unused: Vec<String> = names(&layout).into_iter().filter(unused).collect();
    let finding = |name: &String| {
        let what = format!("{name} is specified, but no program uses it");
        Finding::new(SPECIFICATION, 0, what)
    };
    unused.iter().map(finding).collect()
}

/// The names as programs write them.
fn names(layout: &Layout) -> Vec<String> {
    let mut names = Vec::new();
    for family in layout.families.iter().filter(|f| f.name == "drop" || f.name == "code") {
        names.extend(family.values.iter().map(|v| format!("{}::{}", family.type_name, v.name)));
    }
    let metrics = layout.metrics.iter().map(|m| m.name.strip_prefix("keyway_").unwrap_or(&m.name));
    names.extend(metrics.map(str::to_uppercase));
    names.extend(layout.limits.iter().map(|limit| limit.name.clone()));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = r#"
        field = []
        body = []
        payload = []
        flags = []
        record = []
        message = []
        [protocol]
        magic = 1
        version = 1
        header_len = 0
        end_to_end_at = 0
        [[family]]
        name = "drop"
        type = "DropReason"
        doc = ""
        values = [{ name = "BadTag", value = 1, doc = "" }]
        [[limit]]
        name = "KEY_MAX"
        value = 1
        doc = ""
        [[metric]]
        name = "keyway_node_replies"
        kind = "counter"
        labels = []
        doc = ""
    "#;

    #[test]
    fn a_name_that_no_program_uses_is_found() {
        let generated = "DropReason::BadTag NODE_REPLIES KEY_MAX";
        let count = |path: &str, text: &str| {
            let files =
                [(SPECIFICATION, LAYOUT), ("crates/wire/src/layout.rs", generated), (path, text)];
            every_name_is_used(&Tree::of(&files)).len()
        };
        assert_eq!(count("crates/a/src/lib.rs", generated), 0);
        assert_eq!(count("crates/a/src/lib.rs", "DropReason::BadTag"), 2);
        assert_eq!(count("crates/a/src/tests.rs", generated), 3);
        assert_eq!(count("crates/a/src/lib.rs", "// KEY_MAX"), 3);
    }

    #[test]
    fn a_specification_that_does_not_parse_is_found() {
        assert_eq!(every_name_is_used(&Tree::of(&[(SPECIFICATION, "a = ")])).len(), 1);
    }
}
