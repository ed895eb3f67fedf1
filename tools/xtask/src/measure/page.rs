//! The tables of a page, each between a marker with its name and an end.

use anyhow::{Result, bail, ensure};

/// Begins the lines of a table; its name follows, and then [`CLOSE`].
const OPEN: &str = "<!-- measured: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Begins the line that says why a table is older than others.
const NOTE: &str = "*Not measured again";

/// A page and what lies between its markers.
#[derive(Debug)]
pub(super) struct Page {
    lines: Vec<String>,
}

impl Page {
    /// Takes a page that has exactly these tables, once each.
    pub(super) fn of(text: &str, tables: &[&str]) -> Result<Self> {
        let page = Self { lines: text.lines().map(str::to_owned).collect() };
        let found = page.names()?;
        for name in &found {
            ensure!(
                tables.contains(name),
                "the page has a marker for {name:?}, which nobody measures: remove it, or add it \
                 to tools/xtask/src/measure/sections.rs; there are {}",
                tables.join(", ")
            );
        }
        for name in tables {
            let times = found.iter().filter(|it| *it == name).count();
            ensure!(
                times == 1,
                "the page has {times} places for the table {name:?}: write it once, as\n\
                 {OPEN}{name}{CLOSE}\n{END}"
            );
        }
        Ok(page)
    }

    /// The names of all tables; every one ends before the next begins.
    fn names(&self) -> Result<Vec<&str>> {
        let (mut names, mut open) = (Vec::new(), None);
        for (number, line) in (1..).zip(&self.lines) {
            if let Some(name) = name(line) {
                ensure!(open.is_none(), "line {number}: close the marker before it: {END}");
                open = Some(number);
                names.push(name);
            } else if line == END {
                ensure!(open.take().is_some(), "line {number}: nothing is open that could end");
            }
        }
        match open {
            Some(number) => bail!("line {number}: the marker has no end: {END}"),
            None => Ok(names),
        }
    }

    /// Puts this text in place of a table.
    pub(super) fn set(&mut self, table: &str, text: &str) {
        let (from, to) = self.between(table);
        self.lines.splice(from..to, text.lines().map(str::to_owned));
    }

    /// Leaves a table as it is, and says why below it.
    pub(super) fn leave(&mut self, table: &str, date: &str, why: &str) {
        let (from, to) = self.between(table);
        let old = self.lines.get(from..to).unwrap_or_default();
        let mut kept: Vec<String> =
            old.iter().filter(|line| !line.starts_with(NOTE)).cloned().collect();
        while kept.last().is_some_and(String::is_empty) {
            kept.pop();
        }
        kept.extend([String::new(), format!("{NOTE} on {date}: {why}.*")]);
        self.lines.splice(from..to, kept);
    }

    /// From the line after the marker to that of its end.
    fn between(&self, table: &str) -> (usize, usize) {
        let open = self.lines.iter().position(|line| name(line) == Some(table));
        let from = open.expect("the page was made with this table") + 1;
        let rest = self.lines.iter().skip(from);
        (from, from + rest.take_while(|line| *line != END).count())
    }

    /// The page as it is now.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// The name in a marker.
fn name(line: &str) -> Option<&str> {
    line.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Page

<!-- measured: a -->
old a
<!-- end -->
between
<!-- measured: b -->
<!-- end -->
";

    #[test]
    fn a_table_is_replaced_and_nothing_else() {
        let mut page = Page::of(TEXT, &["a", "b"]).unwrap();
        page.set("a", "new\na\n");
        page.set("b", "b");
        let expected = TEXT.replace("old a", "new\na").replace("b -->\n", "b -->\nb\n");
        assert_eq!(page.text(), expected);
        page.set("a", "old a");
        page.set("b", "");
        assert_eq!(page.text(), TEXT);
    }

    #[test]
    fn a_table_that_stays_says_why_once() {
        let mut page = Page::of(TEXT, &["a", "b"]).unwrap();
        page.leave("a", "2026-01-01", "needs root");
        page.leave("a", "2026-01-02", "there is no etcd");
        let note = "old a\n\n*Not measured again on 2026-01-02: there is no etcd.*\n<!-- end -->";
        assert_eq!(page.text(), TEXT.replacen("old a\n<!-- end -->", note, 1));
        page.set("a", "new");
        assert_eq!(page.text(), TEXT.replace("old a", "new"));
    }

    #[test]
    fn markers_and_tables_are_the_same() {
        let error = |text: &str, tables: &[&str]| Page::of(text, tables).unwrap_err().to_string();
        assert!(error(TEXT, &["a"]).starts_with("the page has a marker for \"b\", which nobody"));
        assert!(error(TEXT, &["a", "b", "c"]).starts_with("the page has 0 places for the table"));
        let twice = TEXT.replace("measured: b", "measured: a");
        assert!(error(&twice, &["a"]).starts_with("the page has 2 places for the table \"a\""));
    }

    #[test]
    fn markers_are_paired() {
        let error = |text: &str| Page::of(text, &["a"]).unwrap_err().to_string();
        let (open, end) = ("<!-- measured: a -->\n", "<!-- end -->\n");
        assert_eq!(error(open), "line 1: the marker has no end: <!-- end -->");
        assert_eq!(error(end), "line 1: nothing is open that could end");
        let nested = [open, open, end].concat();
        assert_eq!(error(&nested), "line 2: close the marker before it: <!-- end -->");
    }
}
