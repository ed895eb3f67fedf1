//! Budgets for files, functions and lines, and what must be said where.

use super::Finding;
use super::tree::{File, Tree};

/// Lines of a source file: what one can still hold in mind, and split before nobody dares to.
const FILE_LINES_MAX: usize = 500;
/// Lines of a file of tests, which is read a test at a time.
const TEST_LINES_MAX: usize = 800;
/// Lines of a function: two screens.
const FUNCTION_LINES_MAX: usize = 70;
/// Columns: two files side by side.
const COLUMNS_MAX: usize = 100;

/// Files over the budget, with the reason.
const LARGE: [(&str, &str); 0] = [];

/// Files stay within their budget of lines.
pub(super) fn files_have_a_budget(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.is_generated()) {
        if LARGE.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        let budget = if file.is_test() { TEST_LINES_MAX } else { FILE_LINES_MAX };
        let lines = file.text.lines().count();
        if lines > budget {
            let what = format!("{lines} lines, the budget is {budget}: split it by subject");
            findings.push(Finding::new(&file.path, 0, what));
        }
    }
    findings
}

/// Functions stay within their budget of lines.
pub(super) fn functions_have_a_budget(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.is_generated()) {
        for (line, lines) in functions(&file.code) {
            if lines > FUNCTION_LINES_MAX {
                let what = format!("a function of {lines} lines, over {FUNCTION_LINES_MAX}");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// Where each function begins, and how many lines it has.
fn functions(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code.get(..at).unwrap_or_default();
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = code.get(at..).unwrap_or_default();
        if let Some(length) = body_end(rest) {
            let line = before.matches('\n').count() + 1;
            let lines = rest.get(..length).unwrap_or_default().matches('\n').count() + 1;
            found.push((line, lines));
        }
    }
    found
}

/// Where the body of the function that `rest` begins with ends; `None` if it has none.
fn body_end(rest: &str) -> Option<usize> {
    let (mut round, mut curly) = (0i32, 0i32);
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            '{' => curly += 1,
            '}' if curly == 1 && round == 0 => return Some(at),
            '}' => curly -= 1,
            // A declaration, or a type such as `fn (u8)`.
            ';' | ',' | '=' | '>' if curly == 0 && round < 0 => return None,
            ';' if curly == 0 && round == 0 => return None,
            _ => {}
        }
        if round < 0 || curly < 0 {
            return None;
        }
    }
    None
}

/// Lines of programs stay within their width.
pub(super) fn lines_have_a_width(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = |file: &&File| {
        let program = [".rs", ".c", ".h", ".lua", ".sh"].iter().any(|end| file.path.ends_with(end));
        let whole = file.path.starts_with(".ci/") || file.path == "Makefile";
        (program || whole) && !file.is_generated()
    };
    for file in tree.files.iter().filter(ours) {
        for (number, line) in (1..).zip(file.text.lines()) {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                let what = format!("{columns} columns, over {COLUMNS_MAX}");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// A file begins with what it is for.
pub(super) fn modules_say_what_they_are_for(tree: &Tree) -> Vec<Finding> {
    let silent = tree.rust().filter(|file| !file.text.starts_with("//! "));
    silent.map(|file| Finding::new(&file.path, 1, "begin with `//!` and what it is for")).collect()
}

/// A limit says in its doc comment why it is what it is.
pub(super) fn limits_say_why(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in file.code.lines().enumerate() {
            let Some(name) = limit_name(line) else { continue };
            let above = lines.get(..index).unwrap_or_default().iter().rev();
            let mut above = above.map(|line| line.trim()).skip_while(|l| l.starts_with("#["));
            if !above.next().is_some_and(|line| line.starts_with("///")) {
                let what = format!("{name} has no doc comment that says why it is what it is");
                findings.push(Finding::new(&file.path, index + 1, what));
            }
        }
    }
    findings
}

/// The name of the limit that this line declares.
fn limit_name(line: &str) -> Option<&str> {
    let declared = line.trim_start();
    let declared = declared.strip_prefix("pub").map_or(declared, |rest| {
        let visibility = rest.strip_prefix("(crate)").or_else(|| rest.strip_prefix("(super)"));
        visibility.unwrap_or(rest).trim_start()
    });
    let name = declared.strip_prefix("const ")?.split(':').next()?;
    name.ends_with("_MAX").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> Tree {
        Tree::of(&[(path, text)])
    }

    #[test]
    fn a_file_over_its_budget_is_found() {
        let long = "//! a\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(files_have_a_budget(&one("crates/a/src/b.rs", &long)).len(), 1);
        assert_eq!(files_have_a_budget(&one("crates/a/src/tests.rs", &long)).len(), 0);
        assert_eq!(files_have_a_budget(&one("crates/wire/src/layout.rs", &long)).len(), 0);
        let longer = "//! a\n".repeat(TEST_LINES_MAX + 1);
        assert_eq!(files_have_a_budget(&one("crates/a/tests/b.rs", &longer)).len(), 1);
    }

    #[test]
    fn a_function_over_its_budget_is_found() {
        let body = "    let a = b(|| { \"}\" });\n".repeat(FUNCTION_LINES_MAX - 3);
        let fits = format!("impl A {{\nfn a(&self) -> [u8; 2] {{\n{body}}}\n}}\n");
        assert_eq!(functions_have_a_budget(&one("a.rs", &fits)), []);
        let over = format!("\nfn a(b: fn(u8) -> u8)\nwhere\n    C: D,\n{{\n{body}}}\n");
        let found = functions_have_a_budget(&one("a.rs", &over));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn declarations_and_types_are_not_functions() {
        let long = format!("struct A {{ b: fn (u8), c: fn (u8) }}\n{}", "// a\n".repeat(99));
        assert_eq!(functions_have_a_budget(&one("a.rs", &long)), []);
        let text = format!("trait A {{\n fn a(&self);\n{} fn b(&self) {{}}\n}}", "\n".repeat(99));
        assert_eq!(functions_have_a_budget(&one("a.rs", &text)), []);
    }

    #[test]
    fn a_wide_line_is_found() {
        let wide = format!("// {}\n", "é".repeat(COLUMNS_MAX - 2));
        assert_eq!(lines_have_a_width(&one("a.rs", &wide)).len(), 1);
        assert_eq!(lines_have_a_width(&one("Makefile", &wide)).len(), 1);
        assert_eq!(lines_have_a_width(&one("a.bpf.c", &wide)).len(), 1);
        assert_eq!(lines_have_a_width(&one("a.md", &wide)).len(), 0);
        let fits = format!("// {}\n", "é".repeat(COLUMNS_MAX - 3));
        assert_eq!(lines_have_a_width(&one("a.rs", &fits)).len(), 0);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_for_is_found() {
        assert_eq!(modules_say_what_they_are_for(&one("a.rs", "use b;\n//! c\n")).len(), 1);
        assert_eq!(modules_say_what_they_are_for(&one("a.rs", "//! c\n")).len(), 0);
    }

    #[test]
    fn a_limit_without_a_reason_is_found() {
        let count = |text: &str| limits_say_why(&one("a.rs", text)).len();
        assert_eq!(count("pub(crate) const A_MAX: u8 = 1;\n"), 1);
        assert_eq!(count("// b\npub const A_MAX: u8 = 1;\n"), 1);
        assert_eq!(count("/// b\n#[cfg(test)]\nconst A_MAX: u8 = 1;\n"), 0);
        assert_eq!(count("const A: u8 = B_MAX;\n"), 0);
    }
}
