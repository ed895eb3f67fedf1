//! The directory of a run: data, logs, and on failure what there is to be looked at.

use nix::sys::statvfs::statvfs;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with the run, unless the run has failed.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: bool,
}

/// Where there is one, in memory: a process that is killed loses nothing that the system has, so
/// all that a disk adds is how busy it happens to be, and time limits would be about that.
const IN_MEMORY: &str = "/dev/shm";

/// Bytes that must be free there.
const ROOM_MIN: u64 = 4 << 30;

/// With this in the environment everything is on the disk all the same, as for figures.
const ON_DISK: &str = "CHAOS_ON_DISK";

/// In directories that are kept.
const FAILED: &str = "FAILED";

impl Folder {
    /// A new one. What runs that were killed have left behind is removed.
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let all = place();
        fs::create_dir_all(&all).expect("a directory of ours");
        remove_leftovers(&all);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = all.join(format!("{process}-{number}-{name}"));
        // A process of the same id may have failed earlier.
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("a directory of ours");
        Self { path, keep: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path.join(name), text).expect("a directory of ours");
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

/// Where all of them are.
fn place() -> PathBuf {
    let room = statvfs(IN_MEMORY).map_or(0, |it| it.blocks_available() * it.fragment_size());
    if room >= ROOM_MIN && std::env::var_os(ON_DISK).is_none() {
        return Path::new(IN_MEMORY).join("keyway-chaos");
    }
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos")
}

/// Directories begin with the id of their process.
fn remove_leftovers(all: &Path) {
    for entry in fs::read_dir(all).expect("a directory of ours").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.split('-').next().unwrap_or_default().to_owned();
        let runs = Path::new("/proc").join(process).exists();
        if !runs && !entry.path().join(FAILED).exists() {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
