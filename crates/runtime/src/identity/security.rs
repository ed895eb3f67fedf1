//! What protects the control plane of a process.

use super::error::IdentityError;
use super::files::{CertificateFiles, Credentials};
use super::names::Expected;
use super::open::is_local;
use super::watch::Watched;
use controller::Protection;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a process shows others on the control plane, and asks of them.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// Nothing. Only this machine is served.
    #[default]
    Loopback,
    /// Nothing, and whoever reaches it is served: somebody has said that the network is protected
    /// by other means.
    Open,
    /// Certificates, under TLS 1.3.
    Tls(Arc<Watched<Credentials>>),
}

impl Security {
    /// Reads these files, and does so again when they change; the certificate must be of whom is
    /// wanted.
    ///
    /// # Errors
    ///
    /// If they cannot be used.
    pub fn load(files: CertificateFiles, wanted: Expected) -> Result<Self, IdentityError> {
        let paths = files.paths();
        let watched = Watched::new("certificate", paths, move || files.load(&wanted))?;
        Ok(Self::Tls(Arc::new(watched)))
    }

    /// What is told of it in a status.
    #[must_use]
    pub fn protection(&self) -> Protection {
        match self {
            Self::Loopback => Protection::Loopback,
            Self::Open => Protection::Open,
            Self::Tls(_) => Protection::MutualTls,
        }
    }

    /// Whether an admin server may be at this address.
    #[must_use]
    pub fn may_serve_at(&self, at: SocketAddr) -> bool {
        match self {
            Self::Loopback => is_local(at),
            Self::Open | Self::Tls(_) => true,
        }
    }

    /// What URLs begin with.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Loopback | Self::Open => "http",
            Self::Tls(_) => "https",
        }
    }

    /// The newest credentials, if there are any.
    #[must_use]
    pub fn credentials(&self) -> Option<Arc<Credentials>> {
        match self {
            Self::Loopback | Self::Open => None,
            Self::Tls(watched) => Some(watched.get()),
        }
    }

    /// How many times credentials have been read anew.
    #[must_use]
    pub fn generation(&self) -> u64 {
        match self {
            Self::Loopback | Self::Open => 0,
            Self::Tls(watched) => watched.generation(),
        }
    }

    /// Reads the files anew, without waiting until it is time to look at them.
    pub fn reload(&self) {
        if let Self::Tls(watched) = self {
            watched.reload();
        }
    }
}
