//! Words that say that something is not finished, or that a lint was silenced.

use super::Finding;
use super::lexer::has_word;
use super::tree::Tree;

/// What code may not say, and what to do instead.
const IN_CODE: [(&str, &str); 6] = [
    ("dbg!", "take it out"),
    ("todo!", "finish it"),
    ("unimplemented!", "finish it"),
    ("#[ignore", "a test that does not run proves nothing: make it run, or report its skip"),
    ("#[allow(", "use #[expect(lint, reason = \"...\")], which says when it is no longer needed"),
    ("#![allow(", "use #[expect(lint, reason = \"...\")], which says when it is no longer needed"),
];

/// What comments may not say; spelled so that this line does not say it.
const IN_COMMENTS: [(&str, &str); 3] = [
    (concat!("FIX", "ME"), "fix it"),
    (concat!("TO", "DO"), "do it, or open an issue"),
    (concat!("XX", "X"), "say what is meant"),
];

/// Nothing in the tree is waiting to be finished.
pub(super) fn nothing_is_left_undone(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let texts = [(&file.code, IN_CODE.as_slice()), (&file.comments, IN_COMMENTS.as_slice())];
        for (text, words) in texts {
            for (number, line) in (1..).zip(text.lines()) {
                for (word, instead) in words.iter().filter(|(word, _)| has_word(line, word)) {
                    findings.push(Finding::new(&file.path, number, format!("{word}: {instead}")));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_where_it_counts_and_not_elsewhere() {
        let count = |text: &str| nothing_is_left_undone(&Tree::of(&[("a.rs", text)])).len();
        for (word, _) in IN_CODE {
            assert_eq!(count(&format!("{word} x)]")), 1, "{word}");
            assert_eq!(count(&format!("// {word}")), 0, "{word}");
        }
        for (word, _) in IN_COMMENTS {
            assert_eq!(count(&format!("// {word}: later")), 1, "{word}");
            assert_eq!(count(&format!("let a = \"{word}\";")), 0, "{word}");
        }
    }
}
