//! How the controllers' etcd is reached.

use super::Config;
use crate::identity::{IdentityError, OutsideFiles, OutsideUser};
use crate::store::{EtcdAccess, EtcdUrl};
use serde::Deserialize;
use std::path::PathBuf;

/// `[controller.etcd]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdSection {
    /// The authorities of the certificates that its members show, in the PEM format; for `etcds`.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The certificate that is shown to them, if they ask for one (`--client-cert-auth`).
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its key.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// Whom etcd is to take controllers for, if it has users.
    #[serde(default)]
    pub user: Option<String>,
    /// The file with that user's password.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
}

impl Config {
    /// How an etcd is reached: the controllers', or one to which their state is moved.
    ///
    /// # Errors
    ///
    /// If a file that is named cannot be used, or none is that is needed.
    pub fn etcd_access(&self, url: &EtcdUrl) -> Result<EtcdAccess, IdentityError> {
        let EtcdSection { ca, certificate, key, user, password_file } =
            self.controller.etcd.clone().unwrap_or_default();
        let tls = url.is_tls().then(|| {
            let ca = ca.ok_or_else(|| IdentityError::Missing {
                path: "ca in [controller.etcd]".into(),
                hint: format!("name the authority of the certificates that {url} shows"),
            })?;
            OutsideFiles { ca, shown: certificate.zip(key) }.open()
        });
        // A password goes nowhere where others could read it.
        let user = user.zip(password_file).filter(|_| url.is_tls());
        let user = user.map(|(name, path)| OutsideUser::open(name, path));
        Ok(EtcdAccess { tls: tls.transpose()?, user: user.transpose()? })
    }
}

/// Whether it says what it has to, and nothing that others would read on the way.
pub(super) fn check_etcd(config: &Config, found: &mut Vec<String>) {
    let Some(section) = &config.controller.etcd else { return };
    let EtcdSection { ca, certificate, key, user, password_file } = section;
    if certificate.is_some() != key.is_some() {
        found.push("[controller.etcd] has one of certificate and key: name both".to_owned());
    }
    if user.is_some() != password_file.is_some() {
        found.push("[controller.etcd] has one of user and password_file: name both".to_owned());
    }
    if let Some(url) = config.controller.store.as_ref().filter(|url| !url.is_tls()) {
        let files = [("ca", ca), ("certificate", certificate)];
        let named = files.iter().filter(|(_, path)| path.is_some()).map(|(what, _)| *what);
        if let Some(what) = named.chain(user.as_ref().map(|_| "user")).next() {
            found.push(format!(
                "[controller.etcd] has a {what}, and {url} is reached without TLS: write etcds://"
            ));
        }
    }
}
