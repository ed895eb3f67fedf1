//! How a server that is not Keyway's is reached, by files of somebody else's making: under TLS, and
//! as a user with a password.

use super::connect::{Tls, agent_over, refused};
use super::error::IdentityError;
use super::files::{certificates, private_key, read_first_line, roots};
use super::verify::provider;
use super::watch::Watched;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, DEFAULT_VERSIONS, Error};
use std::path::PathBuf;
use std::sync::Arc;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::ConnectionDetails;

/// The files by which such a server is known, and by which it knows us, in the PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideFiles {
    /// The authorities of its certificate, which must name the host that is asked.
    pub ca: PathBuf,
    /// The certificate that is shown to it if it asks for one, and the key of that.
    pub shown: Option<(PathBuf, PathBuf)>,
}

/// What was read from them. Each new connection goes by the files as they are then.
#[derive(Clone, Debug)]
pub struct OutsideTls(Arc<Watched<ClientConfig>>);

impl OutsideFiles {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If one of them cannot be used, or the key is not the certificate's.
    pub fn open(self) -> Result<OutsideTls, IdentityError> {
        let shown = self.shown.iter().flat_map(|(certificate, key)| [certificate, key]);
        let paths = [&self.ca].into_iter().chain(shown).cloned().collect();
        let watched = Watched::new("certificates for etcd", paths, move || self.read())?;
        Ok(OutsideTls(Arc::new(watched)))
    }

    fn read(&self) -> Result<ClientConfig, IdentityError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(DEFAULT_VERSIONS)
            .map_err(IdentityError::refused("TLS"))?
            .with_root_certificates(roots(&self.ca)?);
        let Some((certificate, key)) = &self.shown else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates(certificate, "certificate")?;
        let config = builder.with_client_auth_cert(chain, private_key(key)?);
        config.map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                IdentityError::OtherKey { key: key.clone(), certificate: certificate.clone() }
            }
            other => IdentityError::refused(&certificate.display().to_string())(other),
        })
    }
}

/// Who we are to such a server, if it has users.
#[derive(Clone, Debug)]
pub struct OutsideUser {
    /// The name that it knows.
    pub name: String,
    password: Arc<Watched<String>>,
}

impl OutsideUser {
    /// Reads the user's password, the first line of a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, others can read it, or it is empty.
    pub fn open(name: String, path: PathBuf) -> Result<Self, IdentityError> {
        let paths = vec![path.clone()];
        let read = move || read_first_line(&path);
        Ok(Self { name, password: Arc::new(Watched::new("password for etcd", paths, read)?) })
    }

    /// The password as it is in its file now.
    pub(crate) fn password(&self) -> Arc<String> {
        self.password.get()
    }
}

/// Who asks a server that is not Keyway's: under TLS, or plainly if there is none.
pub(crate) fn outside_agent(tls: Option<OutsideTls>, config: Config) -> ureq::Agent {
    agent_over(tls, config, DefaultResolver::default())
}

impl Tls for Option<OutsideTls> {
    fn begin(&self, to: &ConnectionDetails<'_>) -> Result<Option<ClientConnection>, ureq::Error> {
        let Some(OutsideTls(config)) = self else { return Ok(None) };
        let host = to.uri.host().ok_or(ureq::Error::HostNotFound)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| ureq::Error::HostNotFound)?;
        ClientConnection::new(config.get(), name).map(Some).map_err(refused)
    }
}
