//! Links between the texts of the repository lead somewhere.

use super::Finding;
use super::tree::Tree;

/// Every relative link in a text names a file, and every fragment a heading of it.
pub(super) fn lead_somewhere(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in links(&file.text) {
            if !leads(tree, &file.path, &target) {
                let what = format!("the link to {target} leads nowhere");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// Targets of all links, with their lines; code is left out.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (at, _) in prose.match_indices("](") {
            let rest = prose.get(at + 2..).unwrap_or_default();
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            found.push((number, target.to_owned()));
        }
    }
    found
}

fn leads(tree: &Tree, from: &str, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, fragment) = match target.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => (target, None),
    };
    let Some(path) = resolve(from, path) else { return false };
    if !tree.holds(&path) {
        return false;
    }
    let Some(fragment) = fragment else { return true };
    tree.get(&path).is_some_and(|file| headings(&file.text).any(|slug| slug == fragment))
}

/// The path that `target` names in the file `from`; `None` if it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The fragments that the headings of a text can be reached by.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let count = |text: &str| {
            let files = [
                ("docs/a.md", text),
                ("docs/b.md", "# One thing: `x`\n"),
                ("spec/vectors/c.json", "{}"),
            ];
            lead_somewhere(&Tree::of(&files)).len()
        };
        assert_eq!(count("[b](b.md), [b](./b.md#one-thing-x) and [c](../spec/vectors/)"), 0);
        assert_eq!(count("[b](c.md)\n[b](b.md#two)\n[b](../../b.md)\n[x](#gone)"), 4);
        assert_eq!(count("[out](https://example.org/x) [me](#here)\n## Here"), 0);
        assert_eq!(count("`[a](gone.md)`\n```\n[a](gone.md)\n```\n"), 0);
    }
}
