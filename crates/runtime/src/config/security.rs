//! What protects the control plane: certificates, or a network that nobody else is in.

use super::rights::{RIGHTS_MAX, RightsSection};
use super::{Classes, Config};
use crate::driver::KeyPlan;
use crate::identity::{
    CertificateFiles, Expected, Identity, IdentityError, Role, SecretSource, Security, is_local,
    secret_in,
};
use crate::keyring::Keyring;
use cluster::{CacheId, Member, NodeId};
use envelope::RingPorts;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::{SocketAddr, SocketAddrV6};
use std::path::PathBuf;

/// `[security]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecuritySection {
    /// What `keyway certs` has made, or the part of it that this machine needs.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// Authorities that are believed, in place of those in the directory.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The certificate of this machine's role, in place of the one in the directory.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its key.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// Whether everybody who reaches the control plane is served, without certificates.
    #[serde(default)]
    pub open: bool,
    /// Whether packets are in envelopes, where there are certificates.
    #[serde(default = "yes")]
    pub envelopes: bool,
    /// The secret of controllers that the keys of envelopes follow from, in place of the one in the
    /// directory.
    #[serde(default)]
    pub envelope_key: Option<PathBuf>,
    /// What clients may do. Whom none of these is about may do everything.
    #[serde(default)]
    pub rights: Vec<RightsSection>,
}

impl SecuritySection {
    /// The files of one whose files in the directory would be these.
    fn files(&self, usual: impl FnOnce(&PathBuf) -> CertificateFiles) -> CertificateFiles {
        let nowhere = PathBuf::new();
        let usual = usual(self.directory.as_ref().unwrap_or(&nowhere));
        CertificateFiles {
            ca: self.ca.clone().unwrap_or(usual.ca),
            certificate: self.certificate.clone().unwrap_or(usual.certificate),
            key: self.key.clone().unwrap_or(usual.key),
        }
    }
}

fn yes() -> bool {
    true
}

impl Config {
    /// What the roles open and seal envelopes by, if packets are to be in some.
    #[must_use]
    pub fn keyring(&self) -> Option<Keyring> {
        self.sealing().map(|_| Keyring::default())
    }

    /// The section, if it says that packets are in envelopes.
    fn sealing(&self) -> Option<&SecuritySection> {
        self.security.as_ref().filter(|section| !section.open && section.envelopes)
    }

    /// What the keys of envelopes are made of, if packets are to be in some.
    ///
    /// # Errors
    ///
    /// If the secret cannot be used.
    pub fn key_plan(&self) -> Result<Option<KeyPlan>, IdentityError> {
        let Some(section) = self.sealing() else { return Ok(None) };
        let usual = || section.directory.as_deref().map(secret_in);
        let path = section.envelope_key.clone().or_else(usual).ok_or_else(|| {
            let hint = "name a file that keyway certs rotate --envelopes has made, or set \
                        envelopes = false if nobody else can send packets";
            IdentityError::Missing {
                path: "envelope_key in [security]".into(),
                hint: hint.to_owned(),
            }
        })?;
        let secrets = SecretSource::of_file(&path)?;
        let ports = |first, ports| RingPorts { first, ports };
        let switches = self.switches.iter().map(|it| ports(it.service, 1));
        let caches = self.caches.iter().map(|it| ports(it.listen, it.shards));
        Ok(Some(KeyPlan {
            secrets,
            classes: section.rights.iter().map(RightsSection::class).collect(),
            fixed: switches.chain(caches).collect(),
            content: self
                .content
                .map(|it| SocketAddrV6::new(it.prefix.addresses().addr, it.port, 0, 0)),
        }))
    }

    /// Who is of which class of rights.
    #[must_use]
    pub fn classes(&self) -> Classes {
        let rights = self.sealing().map(|section| section.rights.as_slice()).unwrap_or_default();
        Classes(rights.into())
    }

    /// What protects the control plane of a member.
    ///
    /// # Errors
    ///
    /// If its certificate cannot be used.
    pub fn security_of(&self, member: Member) -> Result<Security, IdentityError> {
        let identity = Identity::of(member);
        self.security_as(Expected::One(identity.clone()), |directory| {
            CertificateFiles::of(directory, &identity)
        })
    }

    /// What protects that of a controller: with several, each machine has a certificate of its own.
    ///
    /// # Errors
    ///
    /// If its certificate cannot be used.
    pub fn security_of_controller(&self) -> Result<Security, IdentityError> {
        let role = Role::Controller;
        self.security_as(Expected::Role(role), |directory| {
            CertificateFiles::of_role(directory, role)
        })
    }

    fn security_as(
        &self,
        expected: Expected,
        usual: impl FnOnce(&PathBuf) -> CertificateFiles,
    ) -> Result<Security, IdentityError> {
        match &self.security {
            None => Ok(Security::Loopback),
            Some(section) if section.open => Ok(Security::Open),
            Some(section) => Security::load(section.files(usual), expected),
        }
    }

    /// Everybody who needs a certificate, and where others reach it.
    ///
    /// # Errors
    ///
    /// If a name cannot stand in a certificate.
    pub fn identities(&self) -> Result<Vec<(Identity, SocketAddr)>, IdentityError> {
        // The one that stands by runs on the first one's machine.
        let controllers = [&self.controller.admin].into_iter().chain(&self.controller.other_admins);
        let mut found = Vec::new();
        for (index, at) in controllers.enumerate() {
            found.push((Identity::new(Role::Controller, index.to_string())?, *at));
        }
        let switches =
            (0..).zip(&self.switches).map(|(index, it)| (Member::Switch(index), it.admin));
        let nodes = self.nodes.iter().map(|it| (Member::Node(NodeId(it.id)), it.admin));
        let caches = self.caches.iter().map(|it| (Member::Cache(CacheId(it.id)), it.admin));
        let members = switches.chain(nodes).chain(caches);
        found.extend(members.map(|(member, at)| (Identity::of(member), at)));
        Ok(found)
    }
}

/// Whether the control plane is protected as it needs to be.
pub(super) fn check_security(config: &Config, found: &mut Vec<String>) {
    let Some(section) = &config.security else {
        found.extend(unprotected(config));
        return;
    };
    let SecuritySection { directory, ca, certificate, key, open, .. } = section;
    check_envelopes(section, found);
    let named = [("ca", ca), ("certificate", certificate), ("key", key)];
    let there = directory.is_some() || named.iter().any(|(_, path)| path.is_some());
    if *open {
        if there {
            found.push(
                "[security] is open and names certificates, which nobody would be asked for: \
                 remove open, or the certificates"
                    .to_owned(),
            );
        }
        return;
    }
    if !there {
        found.push(
            "[security] says nothing: set directory to where keyway certs init is to put \
             certificates, or open = true if the network is protected by other means"
                .to_owned(),
        );
        return;
    }
    if certificate.is_some() != key.is_some() {
        found.push(
            "[security] has one of certificate and key: name both, or neither and a directory \
             that keyway certs init has made"
                .to_owned(),
        );
    }
    let missing: Vec<&str> =
        named.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect();
    if directory.is_none() && !missing.is_empty() {
        found.push(format!(
            "[security] has no {}: name all three of ca, certificate and key, or a directory that \
             keyway certs init has made",
            missing.join(" and no ")
        ));
    }
}

/// Whether what it says of envelopes and rights makes sense.
fn check_envelopes(section: &SecuritySection, found: &mut Vec<String>) {
    let SecuritySection { open, envelopes, rights, .. } = section;
    if !rights.is_empty() && (*open || !envelopes) {
        found.push(
            "[security] has rights, and without envelopes nobody knows whose a packet is: remove \
             the rights, or open = true and envelopes = false"
                .to_owned(),
        );
    }
    if rights.len() > RIGHTS_MAX {
        found.push(format!("[security] has {} rights: at most {RIGHTS_MAX}", rights.len()));
    }
    found.extend(rights.iter().filter_map(RightsSection::problem));
    let mut named = BTreeSet::new();
    let twice = rights.iter().filter(|it| !named.insert(&it.identity));
    found.extend(twice.map(|RightsSection { identity, .. }| {
        format!("{identity} has more than one [[security.rights]], and only the first would count")
    }));
}

/// The first address beyond this machine at which anybody could give orders.
fn unprotected(config: &Config) -> Option<String> {
    let switches = config.switches.iter().map(|it| it.admin);
    let nodes = config.nodes.iter().map(|it| it.admin);
    let caches = config.caches.iter().map(|it| it.admin);
    let mut all = config.controller.admins().into_iter().chain(switches).chain(nodes).chain(caches);
    let at = all.find(|at| !is_local(*at) && !at.ip().is_unspecified())?;
    Some(format!(
        "the admin address {at} is reached from other machines, and nothing says who may give \
         orders there: add [security] with directory = \"...\" and make certificates with keyway \
         certs init --config FILE, or set open = true in it if the network is protected by other \
         means"
    ))
}
