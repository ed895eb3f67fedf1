//! Why a store cannot be opened or used, in words that say what to do.

use super::BackendUrl;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why a store cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has it open.
    #[error(
        "{} is in use by another keyway process; stop that one, or give this one a place of its \
         own",
        path.display()
    )]
    Locked {
        /// The store.
        path: PathBuf,
    },
    /// It belongs to another member of the cluster, or to one of another shape.
    #[error(
        "{} was created for {created_for}, but this is {opened_for}; start it as it was created, \
         or give it an empty place to start without data",
        path.display()
    )]
    Foreign {
        /// The store.
        path: PathBuf,
        /// Whose it is.
        created_for: String,
        /// Who wants to open it.
        opened_for: String,
    },
    /// A version of Keyway wrote it that this one does not understand.
    #[error(
        "{} has format {found}, and this version of keyway knows format {known} only; use the \
         version that wrote it, or give this one an empty place to start without data",
        path.display()
    )]
    Format {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: String,
        /// Ours.
        known: u32,
    },
    /// What is there cannot be made sense of.
    #[error(
        "{} is damaged ({detail}); it was left as it is. Move it away and start without data: what \
         other nodes hold is copied from them. If they do not, restore it from a copy \
         (docs/operating/recovery.md)",
        path.display()
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// A controller's state cannot be made sense of.
    #[error(
        "{} is damaged ({detail}), and was left as it is: restore the newest copy of it; if there \
         is none, move it away and have the map rebuilt from what the nodes have on record \
         (`keyway controller rebuild`, docs/operating/recovery.md). A controller that starts \
         without it is that of a new cluster, which no node with data follows",
        path.display()
    )]
    MapDamaged {
        /// The store.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The value given cannot be written down.
    #[error("cannot write the value to {}: {why}", path.display())]
    Encode {
        /// The store.
        path: PathBuf,
        /// Why.
        why: serde_json::Error,
    },
    /// A backend cannot be used.
    #[error("cannot use the backend {url}: {why}")]
    Backend {
        /// Where it is.
        url: BackendUrl,
        /// What it, or the system, said.
        why: String,
    },
    /// A backend that throws away what it likes.
    #[error(
        "{url} throws values away when its memory is full (maxmemory-policy {policy}), and with \
         them what Keyway knows of its keys: set it to noeviction"
    )]
    Evicting {
        /// Where it is.
        url: BackendUrl,
        /// Its policy.
        policy: String,
    },
    /// An etcd cannot be used, or what is there makes no sense.
    #[error("cannot use {at}: {why}")]
    Etcd {
        /// Where it is.
        at: String,
        /// What it said, or what was found.
        why: String,
    },
    /// The operating system said no.
    #[error("cannot use {}: {why}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        why: std::io::Error,
    },
}

impl StoreError {
    /// Whether there is no room on the disk, or nothing can be written there for now: what was
    /// there before is as it was.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let Self::Io { why, .. } = self else { return false };
        let kinds =
            [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::ReadOnlyFilesystem];
        kinds.contains(&why.kind())
    }

    pub(super) fn io(path: &Path, why: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), why }
    }

    pub(super) fn map_damaged(path: &Path, detail: impl ToString) -> Self {
        Self::MapDamaged { path: path.to_path_buf(), detail: detail.to_string() }
    }

    pub(super) fn damaged(path: &Path, detail: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), detail: detail.to_string() }
    }
}
