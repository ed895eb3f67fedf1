//! TLS: the gateway's certificate, and the authorities that clients' certificates must come from.

use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Files in the PEM format.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The gateway's certificate, and those between it and an authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities. If they are given, a client must have a certificate of one of them.
    pub authorities: Option<PathBuf>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: PemError,
    },
    /// The files do not go together.
    #[error("{}: {why}", path.display())]
    Refused {
        /// The file that was refused.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// What accepts connections under TLS.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificates = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|why| TlsError::File { path: files.key.clone(), why })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let refused = |path: &Path, why: String| TlsError::Refused { path: path.to_owned(), why };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|why| refused(&files.certificate, why.to_string()))?;
    let builder = match &files.authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(path)? {
                roots.add(certificate).map_err(|why| refused(path, why.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.build().map_err(|why| refused(path, why.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(certificates, key)
        .map_err(|why| refused(&files.certificate, why.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let error = |why| TlsError::File { path: path.to_owned(), why };
    let found = CertificateDer::pem_file_iter(path).map_err(error)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(error)?;
    if found.is_empty() {
        return Err(error(PemError::NoItemsFound));
    }
    Ok(found)
}
