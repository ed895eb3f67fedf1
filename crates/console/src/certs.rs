//! The certificate that a command shows.

use crate::exit::Failure;
pub use runtime::identity::Role;
use runtime::identity::{CertificateFiles, Expected, SecretSource, Security, secret_in};
use std::path::Path;

/// Loads a certificate, or of a directory the first one of the first role that has one there.
pub fn load(path: &Path, roles: &[Role]) -> Result<Security, Failure> {
    let files = if path.is_dir() { first(path, roles) } else { CertificateFiles::beside(path) };
    let loaded = Security::load(files, Expected::Anybody);
    loaded.map_err(|error| Failure::usage(error.to_string()))
}

/// The same for a process that others connect to, so that no certificate of another role will do.
pub fn load_of(path: &Path, role: Role) -> Result<Security, Failure> {
    let files = if path.is_dir() { first(path, &[role]) } else { CertificateFiles::beside(path) };
    let loaded = Security::load(files, Expected::Role(role));
    loaded.map_err(|error| Failure::usage(error.to_string()))
}

/// What the keys of envelopes are made of, of a directory that `keyway certs` has made; or of the
/// one that this certificate is in.
pub fn secrets(path: &Path) -> Result<SecretSource, Failure> {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    let source = SecretSource::of_file(&secret_in(directory));
    source.map_err(|error| Failure::usage(error.to_string()))
}

fn first(directory: &Path, roles: &[Role]) -> CertificateFiles {
    let of = |role: &Role| CertificateFiles::of_role(directory, *role);
    let all = || roles.iter().map(of);
    let there = all().find(|files| files.certificate.is_file());
    there.or_else(|| all().next()).unwrap_or_else(|| CertificateFiles::beside(directory))
}
