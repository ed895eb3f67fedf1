//! Who is who on the control plane: certificates with a role and a name in them, the files that
//! they are kept in, how both ends of a connection check each other, and the authority that makes
//! them.
//!
//! A process has one [`Security`]: it has a certificate, or the control plane is open. Whoever
//! answers a request is told who asks, as a [`Peer`].

mod authority;
mod certificate;
mod connect;
mod error;
mod files;
mod names;
mod open;
mod outside;
mod revoked;
mod secret;
mod security;
mod verify;
mod watch;
mod write;

pub use authority::{Authority, Issued, ListedCertificate, Validity, list};
pub use certificate::Facts;
pub use connect::agent;
pub use error::IdentityError;
pub use files::{CertificateFiles, Credentials};
pub use names::{Expected, Identity, Peer, Role};
pub use open::is_local;
pub(crate) use outside::outside_agent;
pub use outside::{OutsideFiles, OutsideTls, OutsideUser};
pub use revoked::{Revoked, revoke};
pub use secret::{SecretSource, make_secret, read_secrets, replace_secret, secret_in};
pub use security::Security;
pub use watch::Watched;
