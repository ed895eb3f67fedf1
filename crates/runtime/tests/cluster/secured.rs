//! Admin servers that ask for certificates.

use cluster::Incarnation;
use runtime::admin::Admin;
use runtime::driver::SwitchDriver;
use runtime::identity::{
    Authority, CertificateFiles, Expected, Identity, Role, Security, Validity, agent,
};
use runtime::roles::Roles;
use runtime::up::{Embedded, UpError, UpOptions};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use ureq::unversioned::resolver::DefaultResolver;

fn identity(role: Role) -> Identity {
    Identity::new(role, "0").unwrap()
}

/// An authority, and certificates of a switch, a controller and an admin.
fn setup() -> (TempDir, Authority) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::init(directory.path()).unwrap();
    for role in [Role::Switch, Role::Controller, Role::Admin] {
        authority.issue(&identity(role), &[], Validity::days(1), false).unwrap();
    }
    (directory, authority)
}

fn security(directory: &Path, role: Role) -> Security {
    let files = CertificateFiles::of(directory, &identity(role));
    Security::load(files, Expected::Role(role)).unwrap()
}

/// Who asks a switch.
fn asker(security: &Security) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .http_status_as_error(false)
        .proxy(None)
        .build();
    agent(security, Expected::Role(Role::Switch), config, DefaultResolver::default())
}

/// A switch without a controller, and who asks it.
fn switch(directory: &Path, asker_role: Role) -> (SwitchDriver, Admin, ureq::Agent) {
    let at: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let switch = SwitchDriver::start(at, 1, Incarnation(1), None, None).unwrap();
    let security_of = |role| security(directory, role);
    let roles = Roles {
        switch: Some(switch.handle()),
        security: security_of(Role::Switch),
        ..Roles::default()
    };
    let admin = Admin::start(at, roles).unwrap();
    let agent = asker(&security_of(asker_role));
    (switch, admin, agent)
}

fn status(agent: &ureq::Agent, admin: &Admin, path: &str) -> u16 {
    let answer = agent.get(format!("https://{}{path}", admin.local())).call();
    let mut answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
    // Read to its end, so that the connection is kept.
    answer.body_mut().read_to_string().unwrap();
    answer.status().as_u16()
}

fn status_or_none(agent: &ureq::Agent, admin: &Admin) -> Option<u16> {
    let answer = agent.get(format!("https://{}/v1/record", admin.local())).call();
    answer.ok().map(|answer| answer.status().as_u16())
}

#[test]
fn a_crowd_that_connects_and_says_nothing_keeps_nobody_out() {
    let (directory, _authority) = setup();
    let (_switch, admin, agent) = switch(directory.path(), Role::Admin);
    let crowd: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(admin.local()).unwrap()).collect();
    assert_eq!(status(&agent, &admin, "/healthz"), 200);
    assert_eq!(status(&agent, &admin, "/v1/record"), 200);
    drop(crowd);
}

#[test]
fn a_connection_that_is_kept_is_believed_no_longer_than_its_certificate() {
    let (directory, mut authority) = setup();
    let (_switch, admin, agent) = switch(directory.path(), Role::Admin);
    assert_eq!(status(&agent, &admin, "/v1/record"), 200);
    // The asker's files stay as they are: it goes on as if it had not heard of the rotation.
    let other = tempfile::tempdir().unwrap();
    for name in ["ca.crt", "admin-0.crt", "admin-0.key"] {
        std::fs::copy(directory.path().join(name), other.path().join(name)).unwrap();
    }
    let kept = asker(&security(other.path(), Role::Admin));
    assert_eq!(status(&kept, &admin, "/v1/record"), 200);
    authority.replace().unwrap();
    authority.rotate(&[], Validity::days(1)).unwrap();
    std::thread::park_timeout(Duration::from_millis(1200));
    assert_eq!(status(&kept, &admin, "/v1/record"), 200, "both authorities are believed");
    authority.forget_former().unwrap();
    std::thread::park_timeout(Duration::from_millis(1200));
    assert_eq!(status(&kept, &admin, "/v1/record"), 401);
    // Who has the new one has shown the old one on this connection, and shows it on the next.
    assert_eq!(status(&agent, &admin, "/v1/record"), 401);
    assert_eq!(status(&agent, &admin, "/v1/record"), 200);
    assert!(status_or_none(&kept, &admin).is_none(), "there is no next one");
}

#[test]
fn without_certificates_only_this_machine_is_served() {
    let wide: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let why = Admin::start(wide, Roles::default()).unwrap_err();
    assert!(why.to_string().contains("no certificates"), "{why}");
    let options = UpOptions { admin: wide, ..UpOptions::in_memory(1, 1, 1) };
    let Err(UpError::Options(why)) = Embedded::start(&options) else { panic!("it is refused") };
    assert!(why[0].contains("--certs") && why[0].contains("--open"), "{why:?}");
    let open = Roles { security: Security::Open, ..Roles::default() };
    Admin::start(wide, open).unwrap();
}
