//! What can be wrong with certificates and their files. Each text says what to do.

use super::names::Identity;
use std::io;
use std::path::PathBuf;

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No name of an identity.
    #[error("{0:?} is no name: choose 1 to 64 letters, digits, '_', '-' or '.'")]
    Name(String),
    /// A file is not there.
    #[error("there is no {}: {hint}", path.display())]
    Missing {
        /// Which.
        path: PathBuf,
        /// What makes it.
        hint: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// A key is not for its owner alone.
    #[error(
        "others can read {}, which is a secret: chmod 600 {}",
        path.display(), path.display()
    )]
    Readable {
        /// Which.
        path: PathBuf,
    },
    /// A file holds something else.
    #[error("{} holds no {what}: {why}", path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A certificate's time is over.
    #[error(
        "the certificate {} has expired ({until}): keyway certs rotate",
        path.display()
    )]
    Expired {
        /// Which.
        path: PathBuf,
        /// Until when it was valid.
        until: String,
    },
    /// A certificate does not count any more.
    #[error(
        "the certificate {} was revoked: keyway certs rotate {identity}",
        path.display()
    )]
    Revoked {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        identity: Identity,
    },
    /// A certificate's time is to come.
    #[error(
        "the certificate {} is not valid before {from}: is this machine's clock right?",
        path.display()
    )]
    NotYetValid {
        /// Which.
        path: PathBuf,
        /// From when on it is valid.
        from: String,
    },
    /// A certificate says nothing of a role, or more than one thing.
    #[error(
        "the certificate {} names no role: it needs one URI like keyway://node/3 among its \
         alternative names, which keyway certs issue puts there",
        path.display()
    )]
    Nameless {
        /// Which.
        path: PathBuf,
    },
    /// A certificate is somebody else's.
    #[error(
        "the certificate {} is of {found}, and this is {wanted}: keyway certs issue {} {}",
        path.display(), wanted.role, wanted.name
    )]
    OtherName {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        found: Identity,
        /// Whose it should be.
        wanted: Identity,
    },
    /// A certificate is of another role.
    #[error("the certificate {} is of {found}, and {wanted} is needed here", path.display())]
    OtherRole {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        found: Identity,
        /// Which roles would do.
        wanted: String,
    },
    /// A certificate comes from another authority.
    #[error(
        "the certificate {} was not issued by an authority in {}: they are of different clusters, \
         or the authority was replaced: keyway certs rotate",
        path.display(), ca.display()
    )]
    OtherAuthority {
        /// Which.
        path: PathBuf,
        /// The authorities.
        ca: PathBuf,
    },
    /// A key is not the certificate's.
    #[error(
        "the key {} does not go with the certificate {}: copy both from the same place, or \
         issue them anew with keyway certs rotate",
        key.display(), certificate.display()
    )]
    OtherKey {
        /// Which key.
        key: PathBuf,
        /// Which certificate.
        certificate: PathBuf,
    },
    /// There is something already.
    #[error(
        "{} is there already: nothing was written; choose another --dir, or replace certificates \
         with keyway certs rotate",
        path.display()
    )]
    Exists {
        /// What.
        path: PathBuf,
    },
    /// A certificate cannot be made or used.
    #[error("{what}: {why}")]
    Refused {
        /// What was tried.
        what: String,
        /// Why not.
        why: String,
    },
}

impl IdentityError {
    /// For what the system says of a file.
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |why| Self::File { path, why }
    }

    /// For what a library says of something that was tried.
    pub(super) fn refused<E: ToString>(what: &str) -> impl FnOnce(E) -> Self {
        let what = what.to_owned();
        move |why| Self::Refused { what, why: why.to_string() }
    }
}
