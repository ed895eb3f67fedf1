//! The store of a controller: one value, written seldom and read at the start.
//!
//! It is a file of a line that says what it is, a line with a checksum of all that follows, and the
//! value as JSON. A new value is written beside it and takes its name when it is on disk, so that
//! at every moment the whole file is there, with the old value or the new one. What is there and
//! is anything else is damage, be it empty: a controller that took it for a new store would be
//! that of a new cluster, and the data of its nodes would be out of reach.
//!
//! No embedded database does this: those we know panic on pages that have changed under them, or go
//! back to the commit before.

use super::checksum;
use crate::private;
use crate::store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Layout of the file; raised when it changes. The first one was a database.
pub const FORMAT: u32 = 2;

/// Stores that are kept aside beside the present one: a new one is seldom made, and who has made so
/// many looks at what goes wrong.
const ASIDE_MAX: u32 = 1_000;

/// What every file begins with, in any format from the second on; the number follows.
const MAGIC: &str = "keyway controller state ";

/// What a file of the first format begins with.
const FIRST_MAGIC: &[u8] = b"redb";

/// Keys and addresses of a cluster are nobody else's business.
const MODE: u32 = 0o600;

/// Keeps one value in a file, each replacement whole or not at all.
#[derive(Debug)]
pub struct FileMapStore {
    path: PathBuf,
    lock: File,
}

impl FileMapStore {
    /// Takes the file for this process, if it is whole or is not there yet.
    ///
    /// # Errors
    ///
    /// If another process has it, it is damaged or of another format, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Self::take(path)?;
        store.read()?;
        // Older versions let others read them.
        for file in [path, &beside(path, ".lock"), &beside(path, ".unfinished")] {
            private::tighten(file).map_err(|why| StoreError::io(file, why))?;
        }
        Ok(store)
    }

    /// Takes the file for this process, whatever is in it.
    ///
    /// # Errors
    ///
    /// If another process has it.
    pub fn take(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { path: path.to_path_buf(), lock: lock(path)? })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Saves a value where something else may be, which is kept under another name: that is given
    /// back, if there was anything.
    ///
    /// # Errors
    ///
    /// If that cannot be done; what was there is then there still, under one name or the other.
    pub fn replace<T: Serialize>(&self, value: &T) -> Result<Option<PathBuf>, StoreError> {
        let kept = self.keep_aside()?;
        self.save(value)?;
        Ok(kept)
    }

    /// Gives what is there another name as well, that nothing else has.
    fn keep_aside(&self) -> Result<Option<PathBuf>, StoreError> {
        for number in 1..=ASIDE_MAX {
            let aside = beside(&self.path, &format!(".replaced-{number}"));
            match std::fs::hard_link(&self.path, &aside) {
                Ok(()) => return Ok(Some(aside)),
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
                Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
                Err(why) if aside.exists() => return Err(StoreError::io(&aside, why)),
                // Not every file system has links.
                Err(_) => {
                    std::fs::rename(&self.path, &aside)
                        .map_err(|why| StoreError::io(&aside, why))?;
                    return Ok(Some(aside));
                }
            }
        }
        Err(StoreError::io(&beside(&self.path, ".replaced-1"), ErrorKind::AlreadyExists.into()))
    }

    /// The value last saved; `None` if there never was one.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is damaged, or is not a `T`.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let Some(file) = self.read()? else { return Ok(None) };
        match serde_json::from_slice(body(&file)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(StoreError::map_damaged(&self.path, error)),
        }
    }

    /// Replaces the value. It survives a power cut once this returns.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the old value is then still there, unless the disk lied.
    pub fn save<T: Serialize>(&self, value: &T) -> Result<(), StoreError> {
        let body = serde_json::to_vec(value)
            .map_err(|why| StoreError::Encode { path: self.path.clone(), why })?;
        let unfinished = beside(&self.path, ".unfinished");
        let write = || {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(MODE)
                .open(&unfinished)?;
            file.write_all(&head(&body))?;
            file.write_all(&body)?;
            file.sync_all()
        };
        write().map_err(|why| StoreError::io(&unfinished, why))?;
        std::fs::rename(&unfinished, &self.path).map_err(|why| StoreError::io(&self.path, why))?;
        sync_parent(&self.path)
    }

    /// The whole file, if it is there; its checksum is right then.
    fn read(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let file = match std::fs::read(&self.path) {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(StoreError::io(&self.path, why)),
        };
        check(&self.path, &file)?;
        Ok(Some(file))
    }
}

impl Drop for FileMapStore {
    /// Closing the file is not enough if a process that is just being started has inherited it.
    fn drop(&mut self) {
        // It is closed anyway, and a failure would help nobody.
        let _ = self.lock.unlock();
    }
}

/// What a file is, without taking it: for one who only wants to know whether it is whole.
///
/// # Errors
///
/// If it is not, or cannot be read.
pub fn inspect(path: &Path) -> Result<String, StoreError> {
    let file = std::fs::read(path).map_err(|why| StoreError::io(path, why))?;
    check(path, &file)?;
    Ok(format!("a controller's state, whole ({} bytes)", file.len()))
}

/// The lock is a file of its own, because the other one is replaced.
fn lock(path: &Path) -> Result<File, StoreError> {
    let name = beside(path, ".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(MODE).open(&name);
    let file = file.map_err(|why| StoreError::io(&name, why))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.to_path_buf() }),
        Err(TryLockError::Error(why)) => Err(StoreError::io(&name, why)),
    }
}

/// A file of this name with an ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("map")).to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// The two lines before a value.
fn head(body: &[u8]) -> Vec<u8> {
    format!("{MAGIC}{FORMAT}\n{}\n", checksum(body)).into_bytes()
}

/// What follows the two lines.
fn body(file: &[u8]) -> &[u8] {
    let mut lines = file.splitn(3, |byte| *byte == b'\n');
    lines.nth(2).unwrap_or_default()
}

fn check(path: &Path, file: &[u8]) -> Result<(), StoreError> {
    if file.is_empty() {
        return Err(StoreError::map_damaged(path, "it is empty"));
    }
    if file.starts_with(&head(body(file))) {
        return Ok(());
    }
    let format = |found: &str| {
        let found = found.to_owned();
        Err(StoreError::Format { path: path.to_path_buf(), found, known: FORMAT })
    };
    if file.starts_with(FIRST_MAGIC) {
        return format("1");
    }
    let first = file.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let number = std::str::from_utf8(first).ok().and_then(|line| line.strip_prefix(MAGIC));
    match number.and_then(|number| number.parse::<u32>().ok()) {
        Some(number) if number > FORMAT => format(&number.to_string()),
        Some(_) => Err(StoreError::map_damaged(path, "its checksum is wrong")),
        None => Err(StoreError::map_damaged(path, "it does not begin as a controller's state")),
    }
}

/// So that the name of a new file survives a power cut as well.
fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| StoreError::io(parent, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    type Value = BTreeMap<String, Vec<u64>>;

    fn value(number: u64) -> Value {
        (0..number).map(|n| (n.to_string(), vec![number; 100])).collect()
    }

    #[test]
    fn the_value_last_saved_is_loaded_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        assert_eq!(FileMapStore::open(&path).unwrap().load::<Value>().unwrap(), None);
        for number in [1, 50, 2] {
            let store = FileMapStore::open(&path).unwrap();
            store.save(&value(number)).unwrap();
            assert_eq!(store.load::<Value>().unwrap(), Some(value(number)));
            drop(store);
            let store = FileMapStore::open(&path).unwrap();
            assert_eq!(store.load::<Value>().unwrap(), Some(value(number)));
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    }

    /// A copy of the directory at that moment is what a crash would leave; the rest of a save that
    /// did not come to its end does no harm.
    #[test]
    fn a_saved_value_is_on_disk_when_save_returns() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileMapStore::open(&dir.path().join("map")).unwrap();
        for number in 1..10 {
            store.save(&value(number)).unwrap();
            let copy = dir.path().join("copy");
            fs::copy(dir.path().join("map"), &copy).unwrap();
            fs::write(dir.path().join("copy.unfinished"), b"keyway contr").unwrap();
            let copied = FileMapStore::open(&copy).unwrap();
            assert_eq!(copied.load::<Value>().unwrap(), Some(value(number)));
            copied.save(&value(3)).unwrap();
            assert_eq!(copied.load::<Value>().unwrap(), Some(value(3)));
        }
    }

    #[test]
    fn a_store_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        let held = FileMapStore::open(&path).unwrap();
        let error = FileMapStore::open(&path).err().unwrap();
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        assert!(error.to_string().contains("in use by another keyway process"), "{error}");
        drop(held);
        FileMapStore::open(&path).unwrap();
    }

    #[test]
    fn another_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        for (file, format) in [(&b"redb\x1a\x0a"[..], "1"), (b"keyway controller state 7\n", "7")] {
            fs::write(&path, file).unwrap();
            let error = FileMapStore::open(&path).err().unwrap();
            assert!(matches!(error, StoreError::Format { .. }), "{error}");
            assert!(error.to_string().contains(&format!("has format {format}")), "{error}");
        }
    }

    /// Damaged, of another format, or not there: but never another value, and never a new store.
    #[track_caller]
    fn is_refused(path: &Path, file: &[u8], what: &str) {
        fs::write(path, file).unwrap();
        match FileMapStore::open(path) {
            Err(StoreError::MapDamaged { .. } | StoreError::Format { .. }) => {}
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(fs::read(path).unwrap(), file, "{what}: it is left as it was found");
    }

    #[test]
    fn every_byte_that_changes_and_every_end_that_is_missing_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        FileMapStore::open(&path).unwrap().save(&value(4)).unwrap();
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            for flip in [1, 2, 0x20, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                is_refused(&path, &bad, &format!("byte {at} xor {flip}"));
            }
        }
        for len in 0..good.len() {
            is_refused(&path, &good[..len], &format!("{len} bytes"));
            let mut zeroed = good.clone();
            zeroed[len..].fill(0);
            is_refused(&path, &zeroed, &format!("zeros from {len} on"));
        }
        is_refused(&path, &[&good[..], b" "].concat(), "a byte too many");
        fs::write(&path, good).unwrap();
        assert_eq!(FileMapStore::open(&path).unwrap().load().unwrap(), Some(value(4)));
    }

    #[test]
    fn what_is_not_the_value_is_damaged_and_it_is_said_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        is_refused(&path, b"", "an empty file");
        is_refused(&path, b"text that somebody put here", "text");
        let error = FileMapStore::open(&path).err().unwrap().to_string();
        for words in [&path.display().to_string(), "copy", "rebuild"] {
            assert!(error.contains(words), "{words}: {error}");
        }
        fs::remove_file(&path).unwrap();
        let store = FileMapStore::open(&path).unwrap();
        store.save(&"no map").unwrap();
        let error = store.load::<Value>().err().unwrap();
        assert!(matches!(error, StoreError::MapDamaged { .. }), "{error}");
    }

    #[test]
    fn what_is_replaced_is_kept_under_another_name_whatever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        assert_eq!(FileMapStore::take(&path).unwrap().replace(&value(1)).unwrap(), None);
        let whole = fs::read(&path).unwrap();
        for (number, file) in [(1, whole.as_slice()), (2, b""), (3, b"rubbish")] {
            fs::write(&path, file).unwrap();
            let store = FileMapStore::take(&path).unwrap();
            assert!(matches!(FileMapStore::take(&path), Err(StoreError::Locked { .. })));
            let kept = store.replace(&value(number)).unwrap().unwrap();
            assert_eq!(kept, dir.path().join(format!("map.replaced-{number}")));
            assert_eq!(fs::read(kept).unwrap(), file);
            assert_eq!(store.load::<Value>().unwrap(), Some(value(number)));
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nowhere/map");
        let error = FileMapStore::open(&path).err().unwrap();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(error.to_string().contains("nowhere/map"), "{error}");
    }
}
