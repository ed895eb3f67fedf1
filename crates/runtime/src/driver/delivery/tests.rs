//! Who is believed to be a member, and that one which says nothing is not waited for.

use super::*;
use crate::admin::Admin;
use crate::clock::Clock;
use crate::identity::{Authority, CertificateFiles, Role, Validity};
use crate::roles::Roles;
use cluster::NodeId;
use std::net::TcpListener;
use std::path::Path;
use tempfile::TempDir;

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// A directory with certificates of a controller and two nodes.
fn setup() -> (TempDir, Security) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::init(directory.path()).unwrap();
    for (role, name) in [(Role::Controller, "0"), (Role::Node, "2"), (Role::Node, "3")] {
        let identity = Identity::new(role, name).unwrap();
        authority.issue(&identity, &[], Validity::days(1), false).unwrap();
    }
    let controller = security(directory.path(), Role::Controller, "0");
    (directory, controller)
}

fn security(directory: &Path, role: Role, name: &str) -> Security {
    let identity = Identity::new(role, name).unwrap();
    let files = CertificateFiles::of(directory, &identity);
    Security::load(files, Expected::One(identity)).unwrap()
}

fn failure(line: &mut Line) -> String {
    match (line.deliver)(Order::default()).unwrap_err() {
        Undelivered::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_else_is_believed_to_be_a_member_whose_address_it_has() {
    let (directory, controller) = setup();
    let roles = Roles { security: security(directory.path(), Role::Node, "2"), ..Roles::default() };
    let server = Admin::start(LOCAL.into(), roles).unwrap();
    let at = server.local();
    let mut impostor = over_http(Member::Node(NodeId(3)), at, &controller);
    let why = failure(&mut impostor);
    assert!(why.contains("is of node/2, and node/3 is expected there"), "{why}");
    // The right one is asked, and there is no member behind it here.
    let why = failure(&mut over_http(Member::Node(NodeId(2)), at, &controller));
    assert!(why.contains("404"), "{why}");
    // A node gives no orders.
    let node = security(directory.path(), Role::Node, "3");
    let why = failure(&mut over_http(Member::Node(NodeId(2)), at, &node));
    assert!(why.contains("404") || why.contains("403"), "{why}");
    // Nobody without TLS is asked anything, and nobody with it without a certificate.
    let why = failure(&mut over_http(Member::Node(NodeId(2)), at, &Security::Loopback));
    assert!(!why.contains("404"), "{why}");
    let open = Admin::start(LOCAL.into(), Roles::default()).unwrap();
    let why = failure(&mut over_http(Member::Node(NodeId(2)), open.local(), &controller));
    assert!(!why.contains("404"), "{why}");
}

#[test]
fn a_member_that_accepts_connections_and_says_nothing_is_not_waited_for() {
    let (_directory, controller) = setup();
    // It is in the backlog of a socket that nobody accepts at, and so established.
    let silent = TcpListener::bind(SocketAddr::from(LOCAL)).unwrap();
    let at = silent.local_addr().unwrap();
    let mut line = over_http(Member::Node(NodeId(2)), at, &controller);
    let mut clock = Clock::new();
    let started = clock.now();
    let why = failure(&mut line);
    assert!(why.contains("timeout"), "{why}");
    let mut listen = line.listen.expect("a node is listened to");
    assert!(listen(0).is_err());
    let took = clock.now().since(started);
    assert!(took < 2 * (PATIENCE + 2 * SILENCE), "{took:?}");
}
