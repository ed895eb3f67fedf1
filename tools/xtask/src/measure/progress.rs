//! How far it is, and how long it will take.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Runs that are to come, with what each is thought to take, and those that have been.
#[derive(Debug)]
pub(super) struct Progress {
    /// Seconds that were thought for what is left.
    left: f64,
    /// Seconds that were thought for what is done, and those that it took.
    thought: f64,
    took: f64,
}

impl Progress {
    /// Begins, with what all runs are thought to take, in seconds.
    pub(super) fn new(seconds: f64) -> Self {
        Self { left: seconds, thought: 0.0, took: 0.0 }
    }

    /// Tells that a run begins; the line lives until it is dropped.
    pub(super) fn begin(&self, what: &str) -> Running {
        let left = text(self.left());
        eprintln!("== {what}; {left} left in all");
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}");
        let bar = ProgressBar::new_spinner();
        bar.set_style(style.expect("a sound template"));
        bar.set_message(format!("{what}; {left} left in all when it began"));
        bar.enable_steady_tick(Duration::from_millis(250));
        Running(bar)
    }

    /// A run that was thought to take so long has taken so long.
    pub(super) fn done(&mut self, thought: f64, took: f64) {
        self.left -= thought;
        self.thought += thought;
        self.took += took;
    }

    /// Something will not be run.
    pub(super) fn skip(&mut self, thought: f64) {
        self.left -= thought;
    }

    /// Seconds, by how right the guesses were so far.
    fn left(&self) -> f64 {
        let factor = if self.thought > 0.0 { self.took / self.thought } else { 1.0 };
        self.left.max(0.0) * factor
    }
}

/// The line of what runs.
#[derive(Debug)]
pub(super) struct Running(ProgressBar);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A time that nobody needs to the second.
pub(super) fn text(seconds: f64) -> String {
    let unit = if seconds < 120.0 { 5.0 } else { 60.0 };
    let rounded = ((seconds / unit).round().max(1.0) * unit) as u64;
    humantime::format_duration(Duration::from_secs(rounded)).to_string()
}

#[test]
fn what_is_left_is_corrected_by_what_was_seen() {
    let mut progress = Progress::new(400.0);
    assert_eq!(progress.left(), 400.0);
    progress.done(100.0, 150.0);
    assert_eq!(progress.left(), 450.0);
    progress.skip(200.0);
    assert_eq!(progress.left(), 150.0);
    assert_eq!([3.0, 47.0, 450.0, 3_700.0].map(text), ["5s", "45s", "8m", "1h 2m"]);
}
