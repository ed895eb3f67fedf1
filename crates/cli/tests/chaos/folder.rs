//! The directory of a run: data, logs, and on failure what there is to be looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with the run, unless the run has failed.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: bool,
}

/// In directories that are kept.
const FAILED: &str = "FAILED";

impl Folder {
    /// A new one. What runs that were killed have left behind is removed.
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos");
        fs::create_dir_all(&all).expect("the target directory is ours");
        remove_leftovers(&all);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = all.join(format!("{process}-{number}-{name}"));
        // A process of the same id may have failed earlier.
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("the target directory is ours");
        Self { path, keep: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path.join(name), text).expect("the target directory is ours");
    }

    /// It stays, whatever happens.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep || std::thread::panicking() {
            fs::write(self.path.join(FAILED), "").ok();
            eprintln!("kept for you to look at: {}", self.path.display());
        } else {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// Directories begin with the id of their process.
fn remove_leftovers(all: &Path) {
    for entry in fs::read_dir(all).expect("the target directory is ours").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.split('-').next().unwrap_or_default().to_owned();
        let runs = Path::new("/proc").join(process).exists();
        if !runs && !entry.path().join(FAILED).exists() {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
