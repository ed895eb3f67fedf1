//! How the two ends of a connection check each other: by an authority of the cluster, and by role
//! and name instead of the names of hosts.

use super::certificate::Facts;
use super::names::{Expected, Identity};
use super::revoked::Revoked;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::sync::Arc;

/// Who computes.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Why a certificate that an authority vouches for is not taken all the same.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
enum Unfit {
    #[error("the certificate at the other end names no role")]
    Nameless,
    #[error("the certificate at the other end is of {found}, and {expected} is expected there")]
    Other { found: Identity, expected: Expected },
    #[error("the certificate at the other end is of {0}, and was revoked")]
    Revoked(Identity),
}

impl fmt::Debug for Unfit {
    // rustls shows what others find in this form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Unfit> for Error {
    fn from(unfit: Unfit) -> Self {
        CertificateError::Other(OtherError(Arc::new(unfit))).into()
    }
}

fn identity_of(certificate: &CertificateDer<'_>, revoked: &Revoked) -> Result<Identity, Error> {
    let facts = Facts::read(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let is_revoked = revoked.covers(&facts);
    match facts.identity.ok_or(Unfit::Nameless)? {
        identity if is_revoked => Err(Unfit::Revoked(identity).into()),
        identity => Ok(identity),
    }
}

/// What a server asks of a client's certificate, if it shows one.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    inner: Arc<dyn ClientCertVerifier>,
    revoked: Arc<Revoked>,
}

impl ClientVerifier {
    pub(super) fn new(roots: Arc<RootCertStore>, revoked: Arc<Revoked>) -> Result<Self, String> {
        let builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
        let inner = builder.allow_unauthenticated().build().map_err(|error| error.to_string())?;
        Ok(Self { inner, revoked })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // None: after the authority was replaced, whoever has a certificate shows it, and the
        // answer says what is wrong with it.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(certificate, between, now)?;
        identity_of(certificate, &self.revoked).map(|_| verified)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// What a client asks of a server's certificate.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    roots: Arc<RootCertStore>,
    revoked: Arc<Revoked>,
    expected: Expected,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerVerifier {
    pub(super) fn new(
        roots: Arc<RootCertStore>,
        revoked: Arc<Revoked>,
        expected: Expected,
    ) -> Self {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        Self { roots, revoked, expected, algorithms }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, between, now, algorithms)?;
        let found = identity_of(certificate, &self.revoked)?;
        if self.expected.allows(&found) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Unfit::Other { found, expected: self.expected.clone() }.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
