//! Which tests failed, and with what words, taken from what the test harness prints.

use std::collections::BTreeSet;

/// How much of what a failed test said is told again, in characters.
const WORDS_MAX: usize = 400;

/// A test that failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The suite that it is in, or the crate whose documentation has it.
    pub(super) binary: String,
    /// The test's name.
    pub(super) test: String,
    /// What it panicked with: the place and the message, without the backtrace.
    pub(super) words: String,
}

/// Reads what a test harness prints, line by line.
#[derive(Default)]
pub(super) struct Failures {
    /// The suite, or the crate whose documentation is tested now.
    binary: String,
    /// Whether the lines that come now are the words of the last failure.
    is_speaking: bool,
    found: Vec<Failure>,
}

impl Failures {
    /// Of what this suite prints.
    pub(super) fn of(binary: &str) -> Self {
        Self { binary: binary.to_owned(), ..Self::default() }
    }

    /// Takes in the next line.
    pub(super) fn read(&mut self, line: &str) {
        if let Some(binary) = started(line) {
            binary.clone_into(&mut self.binary);
            self.is_speaking = false;
        } else if let Some(test) = section(line) {
            let (binary, test) = (self.binary.clone(), test.to_owned());
            self.found.push(Failure { binary, test, words: String::new() });
            self.is_speaking = false;
        } else if line == "failures:" || line.starts_with("stack backtrace:") {
            self.is_speaking = false;
        } else if let Some(failure) = self.found.last_mut() {
            // What a test printed before it panicked is in the log; the last panic is told.
            if line.starts_with("thread '") && line.contains(" panicked at ") {
                failure.words.clear();
                self.is_speaking = true;
            }
            if self.is_speaking && failure.words.chars().count() < WORDS_MAX {
                let room = WORDS_MAX - failure.words.chars().count();
                failure.words.extend(line.trim().chars().chain([' ']).take(room));
            }
        }
    }

    /// The suite was ended here: the tests that ran for long and have not said how they ended are
    /// failures too.
    pub(super) fn cut_off(&mut self, said: &str) {
        let ends = |test: &str| said.lines().any(|line| is_end_of(line, test));
        let begun: BTreeSet<&str> = said.lines().filter_map(slow).collect();
        for test in begun.into_iter().filter(|test| !ends(test)) {
            let (binary, test) = (self.binary.clone(), test.to_owned());
            let words = "it did not end, and was ended".to_owned();
            self.found.push(Failure { binary, test, words });
        }
    }

    /// All that failed, in the order in which they were told.
    pub(super) fn into_found(self) -> Vec<Failure> {
        self.found
    }
}

/// The crate whose documentation cargo tests now. (What a test prints may look like "Running ..".)
fn started(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("Doc-tests ")
}

/// The test whose output follows.
fn section(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The test that has been running for a minute.
fn slow(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" has been running for over 60 seconds")
}

/// Whether this says how this test ended.
fn is_end_of(line: &str, test: &str) -> bool {
    let rest = line.strip_prefix("test ").and_then(|rest| rest.strip_prefix(test));
    rest.is_some_and(|rest| rest.starts_with(" ... "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log: &str) -> Vec<Failure> {
        let mut failures = Failures::of("chaos");
        log.lines().for_each(|line| failures.read(line));
        failures.into_found()
    }

    #[test]
    fn a_failure_has_its_binary_its_name_and_its_last_panic() {
        let log = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n\
            Running as root\nthread 'x' (7) panicked at a.rs:1:2:\nan earlier one\n\
            thread 'b' (8) panicked at b.rs:3:4:\nlost\n  key 7\nstack backtrace:\n   0: main\n\n\n\
            failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\n\
            \x20  Doc-tests lab\n\
            ---- c stdout ----\nthread 'c' panicked at c.rs:5:6:\nslow\n";
        let failure = |binary: &str, test: &str, words: &str| Failure {
            binary: binary.to_owned(),
            test: test.to_owned(),
            words: words.to_owned(),
        };
        let expected = [
            failure("chaos", "b", "thread 'b' (8) panicked at b.rs:3:4: lost key 7 "),
            failure("lab", "c", "thread 'c' panicked at c.rs:5:6: slow "),
        ];
        assert_eq!(found(log), expected);
        assert_eq!(found("test a ... ok\n\ntest result: ok. 1 passed\n"), []);
    }

    #[test]
    fn of_a_suite_that_was_cut_off_the_tests_that_still_ran_are_failures() {
        let log = "test a has been running for over 60 seconds\n\
            test ab has been running for over 60 seconds\ntest ab ... ok\n\
            test c ... ok\n";
        let mut failures = Failures::of("chaos");
        failures.cut_off(log);
        let found = failures.into_found();
        let names: Vec<&str> = found.iter().map(|it| it.test.as_str()).collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn long_words_are_cut() {
        let log = format!("---- a stdout ----\nthread 'a' panicked at é{}", "é".repeat(999));
        assert_eq!(found(&log)[0].words.chars().count(), WORDS_MAX);
    }
}
