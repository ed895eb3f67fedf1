//! Something that is made of files, and made anew when they change.

use super::error::IdentityError;
use crate::clock::Clock;
use machine::Instant;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Something made of files. Whoever uses it gets the newest that could be made: files that cannot
/// be used change nothing, and are complained about in the log.
pub struct Watched<T> {
    what: &'static str,
    files: Vec<PathBuf>,
    make: Box<dyn Fn() -> Result<T, IdentityError> + Send + Sync>,
    state: Mutex<State<T>>,
}

struct State<T> {
    made: Arc<T>,
    /// How many times it was made anew.
    generation: u64,
    /// How the files were when they were looked at last.
    stamps: Vec<Option<Stamp>>,
    looked: Instant,
    clock: Clock,
    trouble: Trouble,
}

/// What became of files that have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    /// They cannot be used. Whoever replaces several does so one by one: they are given another
    /// look before anything is said.
    New,
    /// They still could not be used, and that was said.
    Said,
}

/// By what a file that has changed is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    size: u64,
}

impl<T> Watched<T> {
    /// Makes it for the first time.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub fn new(
        what: &'static str,
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, IdentityError> + Send + Sync + 'static,
    ) -> Result<Self, IdentityError> {
        // Before it is made: what changes meanwhile is found by the next look.
        let stamps = stamps(&files);
        let made = Arc::new(make()?);
        let mut clock = Clock::new();
        let looked = clock.now();
        let state = State { made, generation: 0, stamps, looked, clock, trouble: Trouble::None };
        Ok(Self { what, files, make: Box::new(make), state: Mutex::new(state) })
    }

    /// The newest, for which files are looked at once a second at most.
    pub fn get(&self) -> Arc<T> {
        let mut state = self.lock();
        let now = state.clock.now();
        if now.since(state.looked) >= LOOK_EVERY {
            state.looked = now;
            self.look(&mut state, false);
        }
        Arc::clone(&state.made)
    }

    /// Makes it anew now, whether files have changed or not. Whether they could be used.
    pub fn reload(&self) -> bool {
        let mut state = self.lock();
        self.look(&mut state, true);
        state.trouble == Trouble::None
    }

    /// How many times it was made anew, for which files are looked at as by [`get`](Self::get).
    pub fn generation(&self) -> u64 {
        self.get();
        self.lock().generation
    }

    fn look(&self, state: &mut State<T>, asked: bool) {
        let stamps = stamps(&self.files);
        let changed = stamps != state.stamps;
        if !changed && !asked && state.trouble != Trouble::New {
            return;
        }
        state.stamps = stamps;
        match (self.make)() {
            Ok(made) => {
                state.made = Arc::new(made);
                state.generation += 1;
                state.trouble = Trouble::None;
                tracing::info!("{}: read anew", self.what);
            }
            Err(_) if changed && !asked => state.trouble = Trouble::New,
            Err(why) => {
                state.trouble = Trouble::Said;
                tracing::error!(%why, "{}: cannot be used; the former stays", self.what);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("files", &self.files).finish_non_exhaustive()
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some(Stamp {
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            inode: found.ino(),
            size: found.size(),
        })
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_of_files_follows_them_and_outlives_bad_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("number");
        std::fs::write(&path, "1").unwrap();
        let read = path.clone();
        let make = move || {
            let text = std::fs::read_to_string(&read).map_err(IdentityError::file(&read))?;
            text.parse::<u32>().map_err(IdentityError::refused("a number"))
        };
        let watched = Watched::new("number", vec![path.clone()], make).unwrap();
        assert_eq!((*watched.get(), watched.generation()), (1, 0));
        std::fs::write(&path, "22").unwrap();
        assert!(watched.reload());
        assert_eq!((*watched.get(), watched.generation()), (22, 1));
        std::fs::write(&path, "no number").unwrap();
        assert!(!watched.reload());
        assert!(!watched.reload());
        std::fs::remove_file(&path).unwrap();
        assert!(!watched.reload());
        assert_eq!((*watched.get(), watched.generation()), (22, 1), "the former stays");
        std::fs::write(&path, "333").unwrap();
        let mut clock = Clock::new();
        let give_up = clock.now() + 10 * LOOK_EVERY;
        while *watched.get() != 333 {
            assert!(clock.now() < give_up, "files are looked at without being asked to");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}
