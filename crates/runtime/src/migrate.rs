//! A controller's state that moves from one store to another, while no controller runs.

use crate::identity::IdentityError;
use crate::server::{StartError, map_store_path};
use crate::store::{
    Candidacy, Candidate, EmbeddedStore, EtcdAccess, EtcdUrl, MapStore, SaveError, StoreError,
};
use controller::Saved;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A store, as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// The data directory of a controller.
    Directory(PathBuf),
    /// An etcd.
    Etcd(EtcdUrl),
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return text.parse().map(Self::Etcd);
        }
        Ok(Self::Directory(PathBuf::from(text)))
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Etcd(url) => url.fmt(f),
        }
    }
}

/// Why nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A store cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A controller has it.
    #[error("a controller leads by {0}: stop all controllers first")]
    InUse(StoreLocation),
    /// There is no state.
    #[error("there is no controller's state in {0}")]
    Empty(StoreLocation),
    /// There is one where it is to go.
    #[error(
        "{0} has a controller's state already, of cluster {1:016x}: nothing is written over it; \
         name another place, or remove what is there"
    )]
    Taken(StoreLocation, u64),
    /// It could not be written.
    #[error("cannot write to {0}: {1}")]
    Save(StoreLocation, SaveError),
    /// What was read after it was written is something else.
    #[error("what was written to {0} is not what is read there; do not use it")]
    Differs(StoreLocation),
}

impl From<StoreError> for MigrateError {
    fn from(error: StoreError) -> Self {
        Self::Start(error.into())
    }
}

/// How long a lease of a controller that has ended is waited for, and a store to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How an etcd is reached.
pub type EtcdLookup<'a> = &'a dyn Fn(&EtcdUrl) -> Result<EtcdAccess, IdentityError>;

/// Moves the state, and gives it. Where it was it stays, and is old from the next decision on.
///
/// # Errors
///
/// If a store cannot be used, a controller runs, there is nothing to move, or something is where it
/// is to go.
pub fn migrate(
    from: &StoreLocation,
    to: &StoreLocation,
    access: EtcdLookup<'_>,
) -> Result<Saved, MigrateError> {
    // Both at once, so that no controller starts by either meanwhile.
    let mut source = open(from, access)?;
    let saved = source.load()?.ok_or_else(|| MigrateError::Empty(from.clone()))?;
    let mut target = open(to, access)?;
    if let Some(there) = target.load()? {
        return Err(MigrateError::Taken(to.clone(), there.map.cluster.0));
    }
    target.save(&saved);
    let ended = wait(|| target.poll_saved());
    let ended = ended.unwrap_or_else(|| Err(SaveError::NotNow("it does not answer".into())));
    ended.map_err(|error| MigrateError::Save(to.clone(), error))?;
    if target.load()?.as_ref() != Some(&saved) {
        return Err(MigrateError::Differs(to.clone()));
    }
    Ok(saved)
}

fn open(place: &StoreLocation, access: EtcdLookup<'_>) -> Result<Box<dyn MapStore>, MigrateError> {
    match place {
        StoreLocation::Directory(data) => match EmbeddedStore::open(&map_store_path(data)?) {
            Ok(store) => Ok(Box::new(store)),
            Err(StoreError::Locked { .. }) => Err(MigrateError::InUse(place.clone())),
            Err(error) => Err(error.into()),
        },
        StoreLocation::Etcd(url) => {
            let access = access(url).map_err(StartError::from)?;
            let candidate = Candidate::new(url.clone(), access, None)?;
            let stand = || match candidate.stand() {
                Ok(Candidacy::Leads(store)) => Some(Ok(store)),
                Ok(Candidacy::Waits(_)) => None,
                Err(error) => Some(Err(error)),
            };
            let store = wait(stand).ok_or_else(|| MigrateError::InUse(place.clone()))?;
            Ok(store?)
        }
    }
}

fn wait<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let looks = PATIENCE.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..looks {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    None
}
