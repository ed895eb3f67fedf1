//! The store of a controller: one value, written seldom and read at the start.

use super::StoreError;
use redb::{Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Layout of the tables below; raised when it changes.
const FORMAT: u32 = 1;
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keyway");
const FORMAT_KEY: &str = "format";
const VALUE_KEY: &str = "value";
/// The value is some hundred kilobytes at most, so that little is gained by caching it.
const CACHE_BYTES: usize = 1 << 20;

/// Keeps one value in a file, each replacement whole or not at all.
pub struct RedbMapStore {
    path: PathBuf,
    database: Database,
}

impl RedbMapStore {
    /// Opens the file, or creates it with no value.
    ///
    /// # Errors
    ///
    /// If another process has it open, it is damaged or of another format, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(path)
            .map_err(|error| open_error(path, error))?;
        let store = Self { path: path.to_path_buf(), database };
        match store.get(FORMAT_KEY)? {
            Some(found) if found == FORMAT.to_be_bytes() => Ok(store),
            Some(found) => Err(StoreError::Format {
                path: store.path,
                found: describe_format(&found),
                known: FORMAT,
            }),
            None => {
                store.put(FORMAT_KEY, &FORMAT.to_be_bytes())?;
                sync_parent(path)?;
                Ok(store)
            }
        }
    }

    /// The value last saved; `None` if there never was one.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a `T`.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let Some(bytes) = self.get(VALUE_KEY)? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(StoreError::damaged(&self.path, error)),
        }
    }

    /// Replaces the value. It survives a power cut once this returns.
    ///
    /// # Errors
    ///
    /// If it cannot be written; the old value is then still there, unless the disk lied.
    pub fn save<T: Serialize>(&self, value: &T) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|why| StoreError::Encode { path: self.path.clone(), why })?;
        self.put(VALUE_KEY, &bytes)
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.try_get(key).map_err(|error| self.error(error))
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.try_put(key, value).map_err(|error| self.error(error))
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, redb::Error> {
        let table = match self.database.begin_read()?.open_table(TABLE) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }

    /// Commits with redb's default durability, which is fsync.
    fn try_put(&self, key: &str, value: &[u8]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        transaction.open_table(TABLE)?.insert(key, value)?;
        transaction.commit()?;
        Ok(())
    }

    fn error(&self, error: redb::Error) -> StoreError {
        match error {
            redb::Error::Io(source) => StoreError::io(&self.path, source),
            other => StoreError::damaged(&self.path, other),
        }
    }
}

fn open_error(path: &Path, error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::Locked { path: path.to_path_buf() },
        DatabaseError::UpgradeRequired(version) => StoreError::Format {
            path: path.to_path_buf(),
            found: format!("redb {version}"),
            known: FORMAT,
        },
        // What is not a database at all.
        DatabaseError::Storage(StorageError::Io(source))
            if source.kind() == std::io::ErrorKind::InvalidData =>
        {
            StoreError::damaged(path, source)
        }
        DatabaseError::Storage(StorageError::Io(source)) => StoreError::io(path, source),
        other => StoreError::damaged(path, other),
    }
}

fn describe_format(bytes: &[u8]) -> String {
    match bytes.try_into() {
        Ok(number) => u32::from_be_bytes(number).to_string(),
        Err(_) => "unknown".to_string(),
    }
}

/// So that the name of a new file survives a power cut as well.
fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    std::fs::File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| StoreError::io(parent, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::{Seek, SeekFrom, Write};

    type Value = BTreeMap<String, Vec<u64>>;

    fn value(number: u64) -> Value {
        (0..number).map(|n| (n.to_string(), vec![number; 100])).collect()
    }

    #[test]
    fn the_value_last_saved_is_loaded_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        assert_eq!(RedbMapStore::open(&path).unwrap().load::<Value>().unwrap(), None);
        for number in [1, 50, 2] {
            let store = RedbMapStore::open(&path).unwrap();
            store.save(&value(number)).unwrap();
            assert_eq!(store.load::<Value>().unwrap(), Some(value(number)));
            drop(store);
            let store = RedbMapStore::open(&path).unwrap();
            assert_eq!(store.load::<Value>().unwrap(), Some(value(number)));
        }
    }

    /// A copy of the file at that moment is what a crash would leave.
    #[test]
    fn a_saved_value_is_on_disk_when_save_returns() {
        let dir = tempfile::tempdir().unwrap();
        let store = RedbMapStore::open(&dir.path().join("map")).unwrap();
        for number in 1..10 {
            store.save(&value(number)).unwrap();
            let copy = dir.path().join("copy");
            std::fs::copy(dir.path().join("map"), &copy).unwrap();
            let copied = RedbMapStore::open(&copy).unwrap();
            assert_eq!(copied.load::<Value>().unwrap(), Some(value(number)));
        }
    }

    #[test]
    fn a_store_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        let _held = RedbMapStore::open(&path).unwrap();
        let error = RedbMapStore::open(&path).err().unwrap();
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        assert!(error.to_string().contains("in use by another keyway process"), "{error}");
    }

    #[test]
    fn another_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        RedbMapStore::open(&path).unwrap().put(FORMAT_KEY, &7u32.to_be_bytes()).unwrap();
        let error = RedbMapStore::open(&path).err().unwrap().to_string();
        assert!(error.contains("has format 7"), "{error}");
    }

    #[test]
    fn what_is_not_a_store_or_not_the_value_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        std::fs::write(&path, b"text that somebody put here").unwrap();
        let error = RedbMapStore::open(&path).err().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"text that somebody put here");

        std::fs::remove_file(&path).unwrap();
        let store = RedbMapStore::open(&path).unwrap();
        store.save(&"no map").unwrap();
        let error = store.load::<Value>().err().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_store_whose_pages_were_overwritten_is_damaged_or_at_least_not_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("map");
        RedbMapStore::open(&path).unwrap().save(&value(50)).unwrap();
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(100)).unwrap();
        file.write_all(&[0xab; 400]).unwrap();
        drop(file);
        match RedbMapStore::open(&path).and_then(|store| store.load::<Value>()) {
            Ok(loaded) => assert_eq!(loaded, Some(value(50))),
            Err(error) => assert!(matches!(error, StoreError::Damaged { .. }), "{error}"),
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nowhere/map");
        let error = RedbMapStore::open(&path).err().unwrap();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(error.to_string().contains("nowhere/map"), "{error}");
    }
}
