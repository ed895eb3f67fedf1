//! The files of an identity: which there are, and what is in them.

use super::certificate::Facts;
use super::error::IdentityError;
use super::names::{Expected, Identity, Role};
use super::revoked::Revoked;
use super::verify::{ClientVerifier, ServerVerifier, provider};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier as _;
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The file of authorities in a directory: the one that issues, and one before it after it was
/// replaced.
pub(super) const CA_CERTIFICATE: &str = "ca.crt";

/// Where the files of one identity are, in the PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Authorities that are believed.
    pub ca: PathBuf,
    /// The certificate, and those between it and an authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Those of an identity in a directory that `keyway certs` has made.
    #[must_use]
    pub fn of(directory: &Path, identity: &Identity) -> Self {
        Self::beside(&directory.join(format!("{}.crt", identity.stem())))
    }

    /// Those of the first identity of a role that are there; if there are none, those that should
    /// be.
    #[must_use]
    pub fn of_role(directory: &Path, role: Role) -> Self {
        let is_of_role = |stem: &str| {
            let rest = stem.strip_prefix(role.name());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let found = entries.map(|entry| entry.path()).filter(|path| {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            path.extension().is_some_and(|it| it == "crt")
                && stem.is_some_and(is_of_role)
                && path.with_extension("key").is_file()
        });
        let usual = || {
            let numbered = matches!(role, Role::Controller | Role::Switch);
            directory.join(if numbered { format!("{role}-0.crt") } else { format!("{role}.crt") })
        };
        Self::beside(&found.min().unwrap_or_else(usual))
    }

    /// Those that belong to a certificate's file and lie beside it.
    #[must_use]
    pub fn beside(certificate: &Path) -> Self {
        Self {
            ca: certificate.with_file_name(CA_CERTIFICATE),
            certificate: certificate.to_owned(),
            key: certificate.with_extension("key"),
        }
    }

    /// All of them.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let revoked = Revoked::beside(&self.ca);
        vec![self.ca.clone(), self.certificate.clone(), self.key.clone(), revoked]
    }

    /// Reads and checks them: they go together, are valid now, and of whom they should be.
    pub(super) fn load(&self, wanted: &Expected) -> Result<Credentials, IdentityError> {
        let roots = roots(&self.ca)?;
        let revoked = Arc::new(Revoked::load(&Revoked::beside(&self.ca))?);
        let chain = certificates(&self.certificate, "certificate")?;
        let path = || self.certificate.clone();
        let (first, between) = chain.split_first().ok_or_else(|| nothing(&self.certificate))?;
        let facts = Facts::read(first).map_err(|why| IdentityError::Form {
            path: path(),
            what: "certificate",
            why,
        })?;
        check_time(&self.certificate, &facts)?;
        let is_revoked = revoked.covers(&facts);
        let Some(identity) = facts.identity else {
            return Err(IdentityError::Nameless { path: path() });
        };
        if !wanted.allows(&identity) {
            return Err(match wanted {
                Expected::One(wanted) => IdentityError::OtherName {
                    path: path(),
                    found: identity,
                    wanted: wanted.clone(),
                },
                other => IdentityError::OtherRole {
                    path: path(),
                    found: identity,
                    wanted: other.to_string(),
                },
            });
        }
        if is_revoked {
            return Err(IdentityError::Revoked { path: path(), identity });
        }
        let verifier = ClientVerifier::new(Arc::clone(&roots), Arc::clone(&revoked))
            .map(Arc::new)
            .map_err(|why| IdentityError::Form { path: self.ca.clone(), what: "authority", why })?;
        verifier.verify_client_cert(first, between, UnixTime::now()).map_err(
            |error| match error {
                Error::InvalidCertificate(
                    CertificateError::UnknownIssuer | CertificateError::BadSignature,
                ) => IdentityError::OtherAuthority { path: path(), ca: self.ca.clone() },
                other => {
                    let what = self.certificate.display().to_string();
                    IdentityError::Refused { what, why: other.to_string() }
                }
            },
        )?;
        let key = private_key(&self.key)?;
        let server = Arc::new(self.server(Arc::clone(&verifier), &chain, &key)?);
        let until = facts.until;
        Ok(Credentials { identity, until, roots, revoked, chain, key, server, verifier })
    }

    fn server(
        &self,
        verifier: Arc<ClientVerifier>,
        chain: &[CertificateDer<'static>],
        key: &PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, IdentityError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(IdentityError::refused("TLS 1.3"))?
            .with_client_cert_verifier(verifier);
        let config = builder.with_single_cert(chain.to_vec(), key.clone_key());
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => IdentityError::OtherKey {
                key: self.key.clone(),
                certificate: self.certificate.clone(),
            },
            other => IdentityError::refused(&self.certificate.display().to_string())(other),
        })?;
        // Who comes back shows its certificate again, for it may have ended meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

/// What proves an identity, ready to be used at either end of a connection.
pub struct Credentials {
    identity: Identity,
    until: i64,
    roots: Arc<RootCertStore>,
    revoked: Arc<Revoked>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    server: Arc<ServerConfig>,
    verifier: Arc<ClientVerifier>,
}

impl Credentials {
    /// Whose they are.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// For how long they are still valid.
    #[must_use]
    pub fn left(&self) -> Duration {
        let until = Duration::from_secs(u64::try_from(self.until).unwrap_or_default());
        until.saturating_sub(Duration::from_secs(UnixTime::now().as_secs()))
    }

    /// For those who accept connections. A client may show no certificate; one that it shows is
    /// good.
    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// Whether a certificate that was good when it was shown, with those between it and an
    /// authority, still is.
    pub(crate) fn vouch_for(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((first, between)) = chain.split_first() else { return false };
        self.verifier.verify_client_cert(first, between, UnixTime::now()).is_ok()
    }

    /// For those who connect.
    pub(super) fn client(&self, expected: Expected) -> Result<ClientConfig, Error> {
        let (roots, revoked) = (Arc::clone(&self.roots), Arc::clone(&self.revoked));
        let verifier = ServerVerifier::new(roots, revoked, expected);
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(config)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// The authorities in a file, at least one.
pub(super) fn roots(path: &Path) -> Result<Arc<RootCertStore>, IdentityError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, "authority")? {
        roots.add(certificate).map_err(|error| IdentityError::Form {
            path: path.to_owned(),
            what: "authority",
            why: error.to_string(),
        })?;
    }
    Ok(Arc::new(roots))
}

/// The key in a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let text = read_secret(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|why| IdentityError::Form {
        path: path.to_owned(),
        what: "key",
        why: why.to_string(),
    })
}

/// Certificates in a file, at least one.
pub(super) fn certificates(
    path: &Path,
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(nothing(path)),
        Ok(found) => Ok(found),
        Err(why) => Err(IdentityError::Form { path: path.to_owned(), what, why: why.to_string() }),
    }
}

fn nothing(path: &Path) -> IdentityError {
    let why = "there is no CERTIFICATE in it".to_owned();
    IdentityError::Form { path: path.to_owned(), what: "certificate", why }
}

fn check_time(path: &Path, facts: &Facts) -> Result<(), IdentityError> {
    let now = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
    if facts.until < now {
        let until = facts.until_text.clone();
        return Err(IdentityError::Expired { path: path.to_owned(), until });
    }
    if now < facts.from {
        let from = facts.from_text.clone();
        return Err(IdentityError::NotYetValid { path: path.to_owned(), from });
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    fs::read(path).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => {
            IdentityError::Missing { path: path.to_owned(), hint: hint(path) }
        }
        _ => IdentityError::File { path: path.to_owned(), why },
    })
}

/// Reads a file that must be its owner's alone.
pub(super) fn read_secret(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let text = read(path)?;
    let found = fs::metadata(path).map_err(IdentityError::file(path))?;
    if found.permissions().mode() & OTHERS != 0 {
        return Err(IdentityError::Readable { path: path.to_owned() });
    }
    Ok(text)
}

/// A password: the first line of a file that is its owner's alone.
pub(super) fn read_first_line(path: &Path) -> Result<String, IdentityError> {
    let text = read_secret(path)?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        let why = "its first line is empty".to_owned();
        return Err(IdentityError::Form { path: path.to_owned(), what: "password", why });
    }
    Ok(line.to_owned())
}

/// What group and others may do.
const OTHERS: u32 = 0o077;

/// What would make a file that is not there.
fn hint(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let directory = path.parent().unwrap_or(Path::new(".")).display();
    let (role, name) = stem.split_once('-').unwrap_or((stem, stem));
    match role.parse::<Role>() {
        Ok(role) => {
            format!("keyway certs issue {role} {name} --dir {directory}")
        }
        Err(_) => "keyway certs init --config FILE makes all that a cluster needs".to_owned(),
    }
}
