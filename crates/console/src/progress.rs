//! How far something has come, on a terminal; elsewhere nothing is shown.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error. It goes with the value.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Counts so many things.
    pub fn keys(what: &'static str, of: u64) -> Self {
        Self::new(what, Some(of), "{human_pos}/{human_len}")
    }

    /// Counts thousandths of what nobody counts otherwise.
    pub fn permille(what: &'static str) -> Self {
        Self::new(what, Some(1_000), "{percent} %")
    }

    /// Counts bytes; of a pipe nobody knows how many there are.
    pub fn bytes(what: &'static str, of: Option<u64>) -> Self {
        Self::new(what, of, "{binary_bytes}/{binary_total_bytes}")
    }

    fn new(what: &'static str, of: Option<u64>, counts: &str) -> Self {
        let template = match of {
            Some(_) => format!("{{msg}} [{{bar:30}}] {counts}, {{eta}} left"),
            None => "{msg} {binary_bytes}, {elapsed}".to_owned(),
        };
        let style = ProgressStyle::with_template(&template).expect("a constant that parses");
        let bar = ProgressBar::with_draw_target(of, ProgressDrawTarget::stderr());
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        bar.set_message(what);
        Self(bar)
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.inc(more);
    }

    /// Prints something, so that neither writes over the other.
    pub fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// So many by now.
    pub fn set(&self, now: u64) {
        self.0.set_position(now);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
