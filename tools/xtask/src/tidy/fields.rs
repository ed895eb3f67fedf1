//! What a field of the header means is the message's to say. The compiler keeps those that lie over
//! others from everybody but `wire`; one that every header has, and that each message means
//! something of its own with, it cannot: that stands in `Header`.

use super::Finding;
use super::lexer::has_word;
use super::tree::Tree;
use crate::layout::Layout;

const SPECIFICATION: &str = "spec/layout.toml";

/// Where headers become messages.
const WIRE: &str = "crates/wire/src/";

/// Nobody outside `wire` names a field that is `said`.
pub(super) fn messages_say_what_fields_mean(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.get(SPECIFICATION) else { return Vec::new() };
    // That it parses is another rule's to ask.
    let Ok(layout) = toml::from_str::<Layout>(&file.text) else { return Vec::new() };
    let said: Vec<&str> =
        layout.fields.iter().filter(|field| field.said).map(|field| &*field.name).collect();
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.path.starts_with(WIRE)) {
        for (number, line) in (1..).zip(file.code.lines()) {
            let names =
                |name: &&&str| has_word(line, name) || has_word(line, &format!("set_{name}"));
            for name in said.iter().filter(names) {
                let what = format!("{name} means something else in each message: read the message");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = r#"
        body = []
        payload = []
        flags = []
        record = []
        message = []
        family = []
        limit = []
        metric = []
        [protocol]
        magic = 1
        version = 1
        header_len = 16
        end_to_end_at = 0
        [[field]]
        name = "number"
        at = 0
        size = 8
        said = true
        doc = ""
        [[field]]
        name = "seq"
        at = 8
        size = 8
        doc = ""
    "#;

    #[test]
    fn a_field_that_only_messages_read_is_found_elsewhere() {
        let count = |path: &str, text: &str| {
            messages_say_what_fields_mean(&Tree::of(&[(SPECIFICATION, LAYOUT), (path, text)])).len()
        };
        let raw = "let it = header.number;\nheader.set_number(it); Header { number: 1, seq: 2 }";
        assert_eq!(count("crates/a/src/lib.rs", raw), 2);
        assert_eq!(count("crates/a/tests/it.rs", raw), 2);
        assert_eq!(count("crates/wire/src/messages.rs", raw), 0);
        assert_eq!(count("crates/a/src/lib.rs", "header.seq // number"), 0);
        assert_eq!(count("crates/a/src/lib.rs", "let numbers = \"number\";"), 0);
    }
}
