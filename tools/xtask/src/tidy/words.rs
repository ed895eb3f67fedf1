//! Words that say that something is not finished, or that a lint was silenced; and words that are
//! not ours any more.

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

/// Words that were given up for the field's, and what the glossary says instead. Each counts also
/// as a part of a name, whatever its case.
const RETIRED: [(&str, &str); 17] = [
    ("trip", "delegation"),
    ("trips", "delegations"),
    ("roam", "delegate"),
    ("roams", "delegates"),
    ("roamed", "delegated"),
    ("roamer", "grantee"),
    ("roaming", "delegated"),
    ("homecoming", "recall"),
    ("homecomings", "recalls"),
    ("joiner", "learner"),
    ("joiners", "learners"),
    ("withheld", "deferred"),
    ("errand", "step"),
    ("plant", "mutant"),
    ("plants", "mutants"),
    ("planted", "of a mutant"),
    ("unmark", "unregister"),
];

/// Where an old word is what it says: history, this list, and a trip there and back.
fn may_say(path: &str, before: &str, word: &str) -> bool {
    let round = before.trim_end_matches(['_', '-', ' ']).to_ascii_lowercase().ends_with("round");
    path == "CHANGELOG.md" || path.ends_with("tidy/words.rs") || round && word.starts_with("trip")
}

/// One meaning for each word, and the field's own: `docs/concepts/glossary.md` has no others.
pub(super) fn words_are_the_fields(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            for (at, part) in parts(line) {
                let retired = RETIRED.iter().find(|(word, _)| part.eq_ignore_ascii_case(word));
                let Some((word, instead)) = retired else { continue };
                let before = line.get(..at).unwrap_or_default();
                if !may_say(&file.path, before, word) {
                    let what = format!("\"{word}\" is not a word of ours: say \"{instead}\"");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
        }
    }
    findings
}

/// The words of a line and of the names in it, and where each begins: `on_trip` has two, `TripOver`
/// as well.
fn parts(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut begins = Vec::new();
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        let is_letter = c.is_ascii_alphabetic();
        let hump = c.is_ascii_uppercase() && before.is_ascii_lowercase();
        if is_letter && (!before.is_ascii_alphabetic() || hump) {
            begins.push(at);
        }
        before = c;
    }
    begins.into_iter().filter_map(move |at| {
        let rest = line.get(at..)?;
        let rest_of_word = |(i, c): (usize, char)| {
            let hump = i > 0 && c.is_ascii_uppercase();
            let follows_lower = rest[..i].ends_with(|c: char| c.is_ascii_lowercase());
            (!c.is_ascii_alphabetic() || hump && follows_lower).then_some(i)
        };
        let end = rest.char_indices().find_map(rest_of_word).unwrap_or(rest.len());
        Some((at, rest.get(..end)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_words_are_found_in_names_and_sentences_and_a_round_trip_is_none() {
        let count = |text: &str| words_are_the_fields(&Tree::of(&[("a.rs", text)])).len();
        let old =
            ["let on_trip = 1;", "struct TripOver;", "KW_TRIP_AT", "// A trip.", "fn plant() {}"];
        for text in old {
            assert_eq!(count(text), 1, "{text}");
        }
        for text in ["// a round trip, a round-trip", "fn round_trip()", "strip(tripod)", "planter"]
        {
            assert_eq!(count(text), 0, "{text}");
        }
    }

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
