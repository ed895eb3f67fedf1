//! Attaching to interfaces and letting go of them, whichever way a process ends.

use crate::stand::SERVICE;
use cluster::Incarnation;
use machine::Instant;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant as WallInstant};
use testkit::skip;
use testkit::wires::{Room, enter_own_namespace, ip};
use xdp::{Mode, Plane};

fn plane() -> Plane<fn() -> Instant> {
    Plane::load(SERVICE, Incarnation(1), (|| Instant::from_unix_ms(1_000)) as fn() -> Instant)
        .unwrap()
}

/// A namespace with a wire `near` to `far`, or nothing, and that is said.
fn wired(test: &str) -> Option<Room> {
    let made = enter_own_namespace().and_then(|()| {
        let room = Room::open()?;
        Plane::load(SERVICE, Incarnation(1), || Instant::from_unix_ms(1))
            .map_err(|e| e.to_string())?;
        room.wire("near", "far", 1);
        Ok(room)
    });
    made.map_err(|why| skip::report(test, &why)).ok()
}

/// How the kernel says an XDP program is attached to `near`, if one is.
fn shown(interface: &str) -> Option<&'static str> {
    let text = ip(&format!("-details link show dev {interface}"));
    let kinds = ["xdpgeneric", "xdpoffload", "xdp"];
    kinds.into_iter().find(|kind| text.split_whitespace().any(|word| word == *kind))
}

fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let late = WallInstant::now() + Duration::from_secs(5);
    loop {
        if holds() {
            return true;
        }
        if WallInstant::now() >= late {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn in_the_driver_and_gone_when_dropped() {
    let Some(_room) = wired("attaching in the driver") else { return };
    let mut plane = plane();
    assert_eq!(plane.attach("near").unwrap(), Mode::Native);
    assert_eq!(shown("near"), Some("xdp"));
    assert_eq!(plane.ports().len(), 1);
    drop(plane);
    assert!(soon(|| shown("near").is_none()), "dropping it detaches it");
}

#[test]
fn behind_the_driver_where_that_cannot_run_it() {
    let Some(room) = wired("attaching behind the driver") else { return };
    let mut plane = plane();
    // The loopback interface has no hook for it, and a veth has one only for packets of one page.
    assert_eq!(plane.attach("lo").unwrap(), Mode::Generic);
    assert_eq!(shown("lo"), Some("xdpgeneric"));
    ip("link set near mtu 9000");
    room.run(|| ip("link set far mtu 9000"));
    assert_eq!(plane.attach("near").unwrap(), Mode::Generic);
    assert_eq!(shown("near"), Some("xdpgeneric"));
    let modes: Vec<Mode> = plane.ports().iter().map(|port| port.mode).collect();
    assert_eq!(modes, [Mode::Generic, Mode::Generic]);
}

#[test]
fn an_interface_that_is_taken_is_refused() {
    let Some(_room) = wired("refusing an interface that is taken") else { return };
    let (mut holder, mut other) = (plane(), plane());
    for (port, mode) in [("near", "xdp"), ("lo", "xdpgeneric")] {
        holder.attach(port).unwrap();
        let why = other.attach(port).unwrap_err().to_string();
        assert!(why.contains(port) && why.contains("another program is attached"), "{why}");
        assert!(other.ports().is_empty());
        assert_eq!(shown(port), Some(mode), "it is left alone");
    }
    let why = other.attach("nowhere").unwrap_err().to_string();
    assert!(why.contains("no interface nowhere"), "{why}");
    drop(holder);
    assert!(soon(|| other.attach("near").is_ok()), "it is free again");
}

/// Names the interface that a process of this test attaches to, and holds until it is killed.
const HOLDS: &str = "KEYWAY_TEST_HOLDS";

#[test]
fn a_killed_process_leaves_nothing_attached() {
    if let Some(port) = std::env::var_os(HOLDS) {
        let mut plane = plane();
        plane.attach(port.to_str().unwrap()).unwrap();
        println!("\nholds it");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let Some(_room) = wired("detaching by being killed") else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attached::a_killed_process_leaves_nothing_attached", "--nocapture"])
        .env(HOLDS, "near")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let says = BufReader::new(child.stdout.take().unwrap());
    let holds = says.lines().map_while(Result::ok).any(|line| line == "holds it");
    let attached = shown("near");
    // SIGKILL: nothing of the process runs any more.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(holds, "it attached");
    assert_eq!(attached, Some("xdp"));
    assert!(soon(|| shown("near").is_none()), "the kernel detaches it");
    plane().attach("near").unwrap();
}
