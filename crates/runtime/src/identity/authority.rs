//! The authority of a cluster, in a directory: makes certificates and replaces them.
//!
//! An authority that is replaced is believed on until the next rotation. Certificates that the new
//! one issues meanwhile come with a certificate of the new authority by the old one, so that
//! processes that have not read the new bundle yet believe them as well: files may reach machines
//! in any order.

use super::certificate::{Facts, is_of_key};
use super::error::IdentityError;
use super::files::{CA_CERTIFICATE, certificates, read_secret};
use super::names::Identity;
use super::revoked::Revoked;
use super::write::{Visibility, write};
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::pki_types::UnixTime;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The authority's key.
const CA_KEY: &str = "ca.key";
/// The authority's certificate by the one before it, until the next rotation.
const CA_CROSS: &str = "ca-cross.crt";

/// How long an authority is valid: replacing it takes more care than replacing certificates.
const CA_DAYS: u32 = 3650;

/// How much earlier certificates begin to be valid than they are made, for machines whose clocks
/// are behind.
const EARLIER: Duration = Duration::from_secs(300);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// From when until when something is valid, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From.
    pub from: u64,
    /// Until.
    pub until: u64,
}

impl Validity {
    /// So many days, beginning now.
    #[must_use]
    pub fn days(days: u32) -> Self {
        let now = UnixTime::now().as_secs();
        Self { from: now.saturating_sub(EARLIER.as_secs()), until: now + (DAY * days).as_secs() }
    }
}

/// A certificate that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Whose.
    pub identity: Identity,
    /// Its file; the key lies beside it.
    pub certificate: PathBuf,
}

/// A certificate that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCertificate {
    /// Its file.
    pub certificate: PathBuf,
    /// What it says.
    pub facts: Facts,
}

/// The authority in a directory.
pub struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as it is written.
    own: String,
    /// What goes with its certificates until the next rotation.
    cross: String,
}

impl Authority {
    /// Makes a new one in a directory that has none.
    ///
    /// # Errors
    ///
    /// If there is one, or it cannot be written.
    pub fn init(directory: &Path) -> Result<Self, IdentityError> {
        let key_file = directory.join(CA_KEY);
        for path in [&key_file, &directory.join(CA_CERTIFICATE)] {
            if path.exists() {
                return Err(IdentityError::Exists { path: path.clone() });
            }
        }
        crate::private::directory(directory).map_err(IdentityError::file(directory))?;
        let key = new_key()?;
        let params = ca_params()?;
        let own = params.self_signed(&key).map_err(IdentityError::refused("the authority"))?;
        write(&key_file, Visibility::Secret, key.serialize_pem().as_bytes())?;
        write(&directory.join(CA_CERTIFICATE), Visibility::Public, own.pem().as_bytes())?;
        let issuer = Issuer::new(params, key);
        let (directory, own, cross) = (directory.to_owned(), own.pem(), String::new());
        Ok(Self { directory, issuer, own, cross })
    }

    /// Opens the one in this directory.
    ///
    /// # Errors
    ///
    /// If there is none, or its key is not for its owner alone.
    pub fn open(directory: &Path) -> Result<Self, IdentityError> {
        let ca = directory.join(CA_CERTIFICATE);
        let found = certificates(&ca, "authority")?;
        let key_file = directory.join(CA_KEY);
        let text = read_secret(&key_file)?;
        let text = String::from_utf8_lossy(&text);
        let form = |path: &Path, what| {
            let path = path.to_owned();
            move |error: rcgen::Error| IdentityError::Form { path, what, why: error.to_string() }
        };
        let key = KeyPair::from_pem(&text).map_err(form(&key_file, "key"))?;
        // The first one, unless somebody was interrupted while it was replaced.
        let own = found.iter().position(|it| is_of_key(it, key.public_key_raw()));
        let own = own.and_then(|at| texts(&ca).ok()?.into_iter().nth(at));
        let own = own.ok_or_else(|| IdentityError::OtherKey {
            key: key_file.clone(),
            certificate: ca.clone(),
        })?;
        let issuer = Issuer::from_ca_cert_pem(&own, key).map_err(form(&ca, "authority"))?;
        let cross = match fs::read_to_string(directory.join(CA_CROSS)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(why) => return Err(IdentityError::File { path: directory.join(CA_CROSS), why }),
        };
        Ok(Self { directory: directory.to_owned(), issuer, own, cross })
    }

    /// Makes a certificate, in place of one that is there if `replace` says so.
    ///
    /// # Errors
    ///
    /// If there is one, or it cannot be written.
    pub fn issue(
        &self,
        identity: &Identity,
        addresses: &[IpAddr],
        validity: Validity,
        replace: bool,
    ) -> Result<Issued, IdentityError> {
        let certificate = self.directory.join(format!("{}.crt", identity.stem()));
        if !replace && certificate.exists() {
            return Err(IdentityError::Exists { path: certificate });
        }
        let key = new_key()?;
        // One that begins earlier than those that were revoked end would be refused with them.
        let revoked = Revoked::in_directory(&self.directory)?.until(identity);
        let from = validity.from.max(revoked.map_or(0, |until| until + 1));
        let params = params(identity, addresses, Validity { from, ..validity })?;
        let what = identity.to_string();
        let made = params.signed_by(&key, &self.issuer).map_err(IdentityError::refused(&what))?;
        write(
            &certificate.with_extension("key"),
            Visibility::Secret,
            key.serialize_pem().as_bytes(),
        )?;
        let text = format!("{}{}", made.pem(), self.cross);
        write(&certificate, Visibility::Public, text.as_bytes())?;
        Ok(Issued { identity: identity.clone(), certificate })
    }

    /// Makes the certificates of these anew, or all there are if none is named.
    ///
    /// # Errors
    ///
    /// If one is not there or cannot be written; those before it have been replaced then.
    pub fn rotate(
        &mut self,
        only: &[Identity],
        validity: Validity,
    ) -> Result<Vec<Issued>, IdentityError> {
        let listed = list(&self.directory)?;
        let known = |identity: &Identity| {
            listed.iter().any(|it| it.facts.identity.as_ref() == Some(identity))
        };
        if let Some(unknown) = only.iter().find(|identity| !known(identity)) {
            return Err(IdentityError::Missing {
                path: self.directory.join(format!("{}.crt", unknown.stem())),
                hint: format!("keyway certs issue {} {}", unknown.role, unknown.name),
            });
        }
        let mut issued = Vec::new();
        for ListedCertificate { facts, .. } in listed {
            let Some(identity) = facts.identity else { continue };
            if only.is_empty() || only.contains(&identity) {
                issued.push(self.issue(&identity, &facts.addresses, validity, true)?);
            }
        }
        Ok(issued)
    }

    /// Believes no authority any more that was replaced earlier: to be called before all
    /// certificates are rotated.
    ///
    /// # Errors
    ///
    /// If files cannot be written.
    pub fn forget_former(&mut self) -> Result<(), IdentityError> {
        let ca = self.directory.join(CA_CERTIFICATE);
        write(&ca, Visibility::Public, self.own.as_bytes())?;
        self.cross.clear();
        let cross = self.directory.join(CA_CROSS);
        match fs::remove_file(&cross) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                Err(IdentityError::File { path: cross, why })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Makes a new authority in place of this one, which is believed beside it until
    /// [`forget_former`](Self::forget_former).
    ///
    /// # Errors
    ///
    /// If files cannot be written.
    pub fn replace(&mut self) -> Result<(), IdentityError> {
        let ca = self.directory.join(CA_CERTIFICATE);
        let (key, params) = (new_key()?, ca_params()?);
        let refused = || IdentityError::refused::<rcgen::Error>("the new authority");
        let own = params.self_signed(&key).map_err(refused())?;
        let cross = params.signed_by(&key, &self.issuer).map_err(refused())?;
        // The bundle first: whatever is read meanwhile, certificates of both are believed.
        write(&ca, Visibility::Public, format!("{}{}", own.pem(), self.own).as_bytes())?;
        write(&self.directory.join(CA_CROSS), Visibility::Public, cross.pem().as_bytes())?;
        write(&self.directory.join(CA_KEY), Visibility::Secret, key.serialize_pem().as_bytes())?;
        (self.own, self.cross) = (own.pem(), cross.pem());
        self.issuer = Issuer::new(params, key);
        Ok(())
    }
}

/// The certificates in a directory by their file names, authorities aside.
///
/// # Errors
///
/// If the directory or a certificate cannot be read.
pub fn list(directory: &Path) -> Result<Vec<ListedCertificate>, IdentityError> {
    let entries = fs::read_dir(directory).map_err(IdentityError::file(directory))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(IdentityError::file(directory))?.path();
        let of_authority = [CA_CERTIFICATE, CA_CROSS].iter().any(|name| path.ends_with(name));
        if path.extension().is_some_and(|it| it == "crt") && !of_authority {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let found = certificates(&path, "certificate")?;
        let first = found.first().map(Facts::read).transpose();
        match first {
            Ok(Some(facts)) => Ok(ListedCertificate { certificate: path, facts }),
            Ok(None) => Err(IdentityError::Nameless { path }),
            Err(why) => Err(IdentityError::Form { path, what: "certificate", why }),
        }
    };
    paths.into_iter().map(read).collect()
}

fn new_key() -> Result<KeyPair, IdentityError> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)
        .map_err(IdentityError::refused("a new key"))
}

fn ca_params() -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::default();
    // One that takes the place of another must have another name.
    let number = crate::entropy::draw().map_err(IdentityError::refused("a random number"))?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, format!("Keyway cluster CA {number:016x}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, Validity::days(CA_DAYS));
    Ok(params)
}

fn params(
    identity: &Identity,
    addresses: &[IpAddr],
    validity: Validity,
) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, identity.to_string());
    let uri = Ia5String::try_from(identity.uri()).map_err(IdentityError::refused("a name"))?;
    params.subject_alt_names = vec![SanType::URI(uri)];
    params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if identity.role.serves() {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    }
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, validity);
    Ok(params)
}

fn set_validity(params: &mut CertificateParams, validity: Validity) {
    let at = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_before = at(validity.from);
    params.not_after = at(validity.until);
}

/// The certificates of a file, as they are written there.
fn texts(path: &Path) -> Result<Vec<String>, IdentityError> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = fs::read_to_string(path).map_err(IdentityError::file(path))?;
    let parts = text.split_inclusive(END).filter(|part| part.ends_with(END));
    Ok(parts.map(|part| part.trim_start().to_owned() + "\n").collect())
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("directory", &self.directory).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
