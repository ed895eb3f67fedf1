//! Certificates that are made can be used, and each mistake with files is found.

use super::super::error::IdentityError;
use super::super::files::CertificateFiles;
use super::super::names::{Expected, Role};
use super::super::revoked::revoke;
use super::super::security::Security;
use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn node(name: &str) -> Identity {
    Identity::new(Role::Node, name).unwrap()
}

/// An authority, and a certificate of node 3.
fn setup(validity: Validity) -> (TempDir, Authority) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::init(directory.path()).unwrap();
    let local = ["127.0.0.1".parse().unwrap()];
    authority.issue(&node("3"), &local, validity, false).unwrap();
    (directory, authority)
}

fn load(files: CertificateFiles, identity: Identity) -> Result<Security, IdentityError> {
    Security::load(files, Expected::One(identity))
}

/// What is said of the certificate of node 3.
fn complaint(directory: &Path) -> String {
    load(CertificateFiles::of(directory, &node("3")), node("3")).unwrap_err().to_string()
}

#[test]
fn a_certificate_that_was_issued_can_be_used_and_says_whose_it_is() {
    let (directory, _authority) = setup(Validity::days(30));
    let security = load(CertificateFiles::of(directory.path(), &node("3")), node("3")).unwrap();
    assert_eq!(*security.credentials().unwrap().identity(), node("3"));
    let [listed] = list(directory.path()).unwrap().try_into().unwrap();
    assert_eq!(listed.facts.identity, Some(node("3")));
    assert_eq!(listed.facts.addresses, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    let days = (listed.facts.until - listed.facts.from) / 86_400;
    assert_eq!(days, 30);
    assert!(listed.facts.serial.len() >= 16);
    for key in ["ca.key", "node-3.key"] {
        let mode = fs::metadata(directory.path().join(key)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
    // Neither an authority nor a certificate is written over by accident.
    let again = Authority::init(directory.path()).unwrap_err();
    assert!(matches!(again, IdentityError::Exists { .. }), "{again}");
    let authority = Authority::open(directory.path()).unwrap();
    let again = authority.issue(&node("3"), &[], Validity::days(1), false).unwrap_err();
    assert!(again.to_string().contains("keyway certs rotate"), "{again}");
}

#[test]
fn a_certificate_that_was_revoked_is_refused_and_the_next_one_is_not() {
    let (directory, mut authority) = setup(Validity::days(30));
    let files = || CertificateFiles::of(directory.path(), &node("3"));
    let security = load(files(), node("3")).unwrap();
    let former = certificates(&files().certificate, "certificate").unwrap();
    assert!(security.credentials().unwrap().vouch_for(&former));
    revoke(directory.path(), &[node("3")], UnixTime::now().as_secs()).unwrap();
    let said = complaint(directory.path());
    assert!(said.contains("was revoked: keyway certs rotate node/3"), "{said}");
    authority.rotate(&[node("3")], Validity::days(30)).unwrap();
    security.reload();
    let next = certificates(&files().certificate, "certificate").unwrap();
    let vouches = |it| security.credentials().unwrap().vouch_for(it);
    assert!(vouches(&next) && !vouches(&former));
}

#[test]
fn a_certificate_whose_time_is_over_or_to_come_is_refused() {
    let now = UnixTime::now().as_secs();
    let (directory, _) = setup(Validity { from: now - 1000, until: now - 10 });
    let why = complaint(directory.path());
    assert!(why.contains("has expired") && why.contains("keyway certs rotate"), "{why}");
    let (directory, _) = setup(Validity { from: now + 1000, until: now + 2000 });
    let why = complaint(directory.path());
    assert!(why.contains("not valid before") && why.contains("clock"), "{why}");
}

#[test]
fn a_certificate_of_somebody_else_is_refused() {
    let (directory, authority) = setup(Validity::days(1));
    let files = || CertificateFiles::of(directory.path(), &node("3"));
    let why = load(files(), node("4")).unwrap_err().to_string();
    assert!(why.contains("of node/3, and this is node/4"), "{why}");
    assert!(why.contains("keyway certs issue node 4"), "{why}");
    let why = Security::load(files(), Expected::Role(Role::Controller)).unwrap_err().to_string();
    assert!(why.contains("of node/3, and controller is needed"), "{why}");

    let (other, _) = setup(Validity::days(1));
    let own = other.path().join("node-3.crt");
    fs::copy(directory.path().join("node-3.crt"), own).unwrap();
    fs::copy(directory.path().join("node-3.key"), other.path().join("node-3.key")).unwrap();
    let why = complaint(other.path());
    assert!(why.contains("was not issued by an authority in"), "{why}");

    authority.issue(&node("4"), &[], Validity::days(1), false).unwrap();
    let keys = ["node-4.key", "node-3.key"].map(|name| directory.path().join(name));
    fs::copy(&keys[0], &keys[1]).unwrap();
    let why = complaint(directory.path());
    assert!(why.contains("does not go with the certificate"), "{why}");
}

#[test]
fn files_that_are_not_there_or_hold_something_else_or_are_open_to_others_are_named() {
    let (directory, _) = setup(Validity::days(1));
    let at = |name: &str| directory.path().join(name);
    fs::set_permissions(at("node-3.key"), Permissions::from_mode(0o640)).unwrap();
    let why = complaint(directory.path());
    assert!(why.contains("others can read") && why.contains("chmod 600"), "{why}");
    fs::set_permissions(at("node-3.key"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(at("ca.key"), Permissions::from_mode(0o604)).unwrap();
    let why = Authority::open(directory.path()).unwrap_err();
    assert!(matches!(why, IdentityError::Readable { .. }), "{why}");

    for name in ["node-3.key", "node-3.crt", "ca.crt"] {
        let kept = fs::read(at(name)).unwrap();
        fs::write(at(name), "nothing").unwrap();
        let why = complaint(directory.path());
        assert!(why.contains(name) && why.contains("holds no"), "{why}");
        fs::remove_file(at(name)).unwrap();
        let why = complaint(directory.path());
        assert!(why.contains(&format!("there is no {}", at(name).display())), "{why}");
        assert!(why.contains("keyway certs i"), "{why}");
        fs::write(at(name), kept).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(0o600)).unwrap();
    }
    load(CertificateFiles::of(directory.path(), &node("3")), node("3")).unwrap();
}

/// Whether files of one state of a directory are believed by another's.
fn believes(ca: &[u8], directory: &Path) -> bool {
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("ca.crt"), ca).unwrap();
    for name in ["node-3.crt", "node-3.key"] {
        fs::copy(directory.join(name), other.path().join(name)).unwrap();
    }
    load(CertificateFiles::of(other.path(), &node("3")), node("3")).is_ok()
}

#[test]
fn a_new_authority_is_believed_by_those_who_know_the_old_one_only_until_the_next_rotation() {
    let (directory, mut authority) = setup(Validity::days(1));
    let ca = || fs::read(directory.path().join("ca.crt")).unwrap();
    let first = ca();
    let before = tempfile::tempdir().unwrap();
    for name in ["node-3.crt", "node-3.key"] {
        fs::copy(directory.path().join(name), before.path().join(name)).unwrap();
    }
    authority.replace().unwrap();
    authority.rotate(&[], Validity::days(1)).unwrap();
    let both = ca();
    assert!(believes(&first, directory.path()), "by the certificate of the new by the old one");
    assert!(believes(&both, directory.path()));
    assert!(believes(&both, before.path()), "old certificates are good");

    // Another process goes on with what is there.
    let mut authority = Authority::open(directory.path()).unwrap();
    authority.issue(&node("4"), &[], Validity::days(1), false).unwrap();
    authority.forget_former().unwrap();
    let issued = authority.rotate(&[], Validity::days(1)).unwrap();
    assert_eq!(issued.len(), 2);
    let last = ca();
    assert!(!believes(&last, before.path()), "old certificates are not");
    assert!(believes(&last, directory.path()) && believes(&both, directory.path()));
    assert!(!believes(&first, directory.path()));
}

#[test]
fn one_certificate_can_be_rotated_and_one_that_is_not_there_cannot() {
    let (directory, mut authority) = setup(Validity::days(1));
    authority.issue(&node("4"), &[], Validity::days(1), false).unwrap();
    let serials = || -> Vec<String> {
        list(directory.path()).unwrap().into_iter().map(|it| it.facts.serial).collect()
    };
    let before = serials();
    authority.rotate(&[node("4")], Validity::days(2)).unwrap();
    let after = serials();
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
    let why = authority.rotate(&[node("5")], Validity::days(2)).unwrap_err().to_string();
    assert!(why.contains("keyway certs issue node 5"), "{why}");
}

#[test]
fn an_authority_whose_replacement_was_interrupted_goes_on_and_one_of_another_key_does_not() {
    let (directory, mut authority) = setup(Validity::days(1));
    let at = |name: &str| directory.path().join(name);
    let key = fs::read(at("ca.key")).unwrap();
    authority.replace().unwrap();
    // The bundle is there already, and the key not yet.
    fs::write(at("ca.key"), key).unwrap();
    fs::remove_file(at("ca-cross.crt")).unwrap();
    let mut authority = Authority::open(directory.path()).unwrap();
    authority.forget_former().unwrap();
    authority.rotate(&[], Validity::days(1)).unwrap();
    load(CertificateFiles::of(directory.path(), &node("3")), node("3")).unwrap();

    let (other, _authority) = setup(Validity::days(1));
    fs::copy(other.path().join("ca.key"), at("ca.key")).unwrap();
    let why = Authority::open(directory.path()).unwrap_err().to_string();
    assert!(why.contains("does not go with"), "{why}");
}
