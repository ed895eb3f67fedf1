//! What is read from a certificate.

use super::names::Identity;
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whose it is; `None` if it does not say so, or says more than one thing.
    pub identity: Option<Identity>,
    /// Addresses that it is also good for.
    pub addresses: Vec<IpAddr>,
    /// Names of hosts that it is also good for.
    pub hosts: Vec<String>,
    /// Its number, in hexadecimal digits.
    pub serial: String,
    /// From when on it is valid, in Unix seconds.
    pub from: i64,
    /// Until when it is valid, in Unix seconds.
    pub until: i64,
    /// The same for people.
    pub from_text: String,
    /// The same for people.
    pub until_text: String,
}

impl Facts {
    /// Reads a certificate.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
        let names = parsed.subject_alternative_name().map_err(|error| error.to_string())?;
        let names = names.map(|it| it.value.general_names.as_slice()).unwrap_or_default();
        let (mut uris, mut addresses, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            match name {
                GeneralName::URI(uri) => uris.push(*uri),
                GeneralName::IPAddress(bytes) => addresses.extend(address(bytes)),
                GeneralName::DNSName(host) => hosts.push((*host).to_owned()),
                _ => {}
            }
        }
        // Others may have URIs of their own there, but not two of ours.
        let mut ours = uris.iter().filter(|uri| uri.starts_with("keyway:"));
        let identity = match (ours.next(), ours.next()) {
            (Some(uri), None) => Identity::from_uri(uri),
            (None, _) | (Some(_), Some(_)) => None,
        };
        let validity = parsed.validity();
        Ok(Self {
            identity,
            addresses,
            hosts,
            serial: parsed.raw_serial_as_string().replace(':', ""),
            from: validity.not_before.timestamp(),
            until: validity.not_after.timestamp(),
            from_text: validity.not_before.to_string(),
            until_text: validity.not_after.to_string(),
        })
    }
}

/// Whether a certificate is about this public key.
pub(super) fn is_of_key(certificate: &CertificateDer<'_>, public_key: &[u8]) -> bool {
    let parsed = X509Certificate::from_der(certificate);
    parsed.is_ok_and(|(_, it)| it.public_key().subject_public_key.data.as_ref() == public_key)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four: Result<[u8; 4], _> = bytes.try_into();
    let sixteen: Result<[u8; 16], _> = bytes.try_into();
    four.map(IpAddr::from).or_else(|_| sixteen.map(IpAddr::from)).ok()
}
