//! The store of a controller that is replaced by a map made anew. It is taken first, so that no
//! controller runs meanwhile, and what was there is kept.

use crate::config::Config;
use crate::server::{StartError, map_store_path};
use crate::store::{FileMapStore, StoreError};
use controller::Saved;
use std::path::{Path, PathBuf};

/// A controller's store that is to be replaced.
#[derive(Debug)]
pub struct Replaced {
    path: PathBuf,
    store: FileMapStore,
    found: StoreContents,
}

/// What was in it.
#[derive(Debug)]
pub enum StoreContents {
    /// It is not there.
    Nothing,
    /// A map, of whatever age.
    Map(Box<Saved>),
    /// It is damaged, or written by another version.
    Unreadable(StoreError),
}

impl Replaced {
    /// That of a configured cluster.
    ///
    /// # Errors
    ///
    /// If a controller has it, or its directory cannot be made.
    pub fn of_config(config: &Config) -> Result<Self, StartError> {
        Self::take(&config.controller.data)
    }

    /// That of a cluster in one process, in its data directory.
    ///
    /// # Errors
    ///
    /// As [`of_config`](Self::of_config).
    pub fn of_up(data: &Path) -> Result<Self, StartError> {
        Self::take(&data.join("controller"))
    }

    fn take(directory: &Path) -> Result<Self, StartError> {
        let path = map_store_path(directory)?;
        let store = FileMapStore::take(&path)?;
        let found = match store.load::<Saved>() {
            Ok(None) => StoreContents::Nothing,
            Ok(Some(saved)) => StoreContents::Map(Box::new(saved)),
            Err(error) => StoreContents::Unreadable(error),
        };
        Ok(Self { path, store, found })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    #[must_use]
    pub fn found(&self) -> &StoreContents {
        &self.found
    }

    /// The map in it, if there is one that can be read.
    #[must_use]
    pub fn older(&self) -> Option<&Saved> {
        match &self.found {
            StoreContents::Map(saved) => Some(saved),
            StoreContents::Nothing | StoreContents::Unreadable(_) => None,
        }
    }

    /// Puts another map in its place. What was there is kept, under the name that is given back.
    ///
    /// # Errors
    ///
    /// If it cannot be written; what was there is there still.
    pub fn replace(self, saved: &Saved) -> Result<Option<PathBuf>, StoreError> {
        self.store.replace(saved)
    }
}
