//! A second router between client and rack, with nothing of ours: FRR tells it of the first one's
//! routes.

use crate::rack::can_build;
use crate::routes::Routed;
use crate::tests::MACHINE;
use lab::hammer::wait;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use tempfile::TempDir;
use testkit::skip;

/// Where Debian puts FRR's daemons, which nobody calls by hand.
const DAEMONS: &str = "/usr/lib/frr";

/// A router's zebra and bgpd, in a namespace.
struct Frr {
    _folder: TempDir,
    daemons: Vec<Child>,
}

impl Frr {
    /// Number 1 is the rack's switch, 2 is the other.
    fn start(namespace: &str, number: u8, redistributes: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path();
        // The daemons give up root's rights before they make their sockets there.
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let other = 3 - number;
        let bgp = format!(
            "ipv6 prefix-list keys permit fd77:1::/48 le 128\n\
             route-map keys permit 10\n match ipv6 address prefix-list keys\n\
             router bgp 6500{number}\n bgp router-id 10.0.0.{number}\n\
             \x20no bgp default ipv4-unicast\n no bgp ebgp-requires-policy\n\
             \x20neighbor fd77:f::{other} remote-as 6500{other}\n\
             \x20neighbor fd77:f::{other} timers 1 3\n\
             \x20neighbor fd77:f::{other} timers connect 1\n\
             \x20neighbor fd77:f::{other} advertisement-interval 0\n\
             \x20address-family ipv6 unicast\n  neighbor fd77:f::{other} activate\n\
             \x20 redistribute {redistributes}\n exit-address-family\n"
        );
        let daemons = [("zebra", format!("hostname r{number}\n")), ("bgpd", bgp)];
        let start = |(daemon, config): (&str, String)| {
            let child = spawn(namespace, path, daemon, &config);
            if daemon == "zebra" {
                let socket = path.join("zserv.api");
                assert!(wait(|| socket.exists().then_some(())).is_some(), "zebra does not start");
            }
            child
        };
        Self { daemons: daemons.map(start).into(), _folder: folder }
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            daemon.kill().ok();
            daemon.wait().ok();
        }
    }
}

fn spawn(namespace: &str, folder: &Path, daemon: &str, config: &str) -> Child {
    let at = |name: String| folder.join(name).display().to_string();
    let file = at(format!("{daemon}.conf"));
    fs::write(&file, config).expect("there is room");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(format!("{DAEMONS}/{daemon}"));
    command.args(["-f", &file, "-i", &at(format!("{daemon}.pid")), "-z", &at("zserv.api".into())]);
    command.arg("--vty_socket").arg(folder).args(["-A", "127.0.0.1", "-P", "0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("there is ip")
}

/// Namespaces that no lab knows of.
struct Beyond([String; 2]);

impl Beyond {
    /// A router next to the rack's switch, and a host behind it.
    fn build(lab: &str) -> Self {
        let names = ["r2", "f"].map(|host| format!("{lab}-{host}"));
        let beyond = Self(names.clone());
        let [router, host] = names;
        let switch = format!("keyway-{lab}-sw");
        for name in [&router, &host] {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        let ends = [
            (&switch, "mid", "fd77:f::1", &router, "mid", "fd77:f::2"),
            (&router, "far", "fd77:e::1", &host, "eth0", "fd77:e::2"),
        ];
        for (near, link, address, far, far_link, far_address) in ends {
            ip(&format!(
                "-n {near} link add name {link} type veth peer name {far_link} netns {far}"
            ));
            for (name, link, address) in [(near, link, address), (far, far_link, far_address)] {
                ip(&format!("-n {name} address add {address}/64 dev {link} nodad"));
                ip(&format!("-n {name} link set {link} up"));
            }
        }
        ip(&format!("netns exec {router} sysctl -qw net.ipv6.conf.all.forwarding=1"));
        ip(&format!("-n {host} -6 route add default via fd77:e::1"));
        beyond
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output().expect("there is ip");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_router_that_runs_frr_alone_finds_the_nodes_of_keys() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let test = "a_router_that_runs_frr_alone_finds_the_nodes_of_keys";
    if !can_build(test) {
        return;
    }
    if !Path::new(DAEMONS).join("bgpd").exists() {
        return skip::report(test, "there is no bgpd: install frr");
    }
    let routed = Routed::up();
    let beyond = Beyond::build(routed.name());
    let [router, host] = &beyond.0;
    let switch = format!("keyway-{}-sw", routed.name());
    let _near = Frr::start(&switch, 1, "kernel route-map keys");
    let _far = Frr::start(router, 2, "connected");
    let learned = || ip(&format!("-n {router} -6 route show proto bgp"));
    let ours = routed.routes().len();
    let all = wait(|| (learned().lines().count() == ours).then_some(()));
    assert!(all.is_some(), "{}", learned());
    let back = || ip(&format!("-n {switch} -6 route show proto bgp"));
    let back = wait(|| back().contains("fd77:e::/64").then_some(()));
    assert!(back.is_some(), "the way back is not known");
    routed.reach_from(host, &routed.ways());

    // A cached key is one more route there, too; the agent would take out what is not its own.
    routed.kill_switch();
    ip(&format!(
        "-n {switch} -6 route add fd77:1:0:1fff::9 via fd77::3:1 dev p-k1 proto 107 metric 7700"
    ));
    let rule = || learned().contains("fd77:1:0:1fff::9");
    assert!(wait(|| rule().then_some(())).is_some(), "{}", learned());
    let next = routed.start_switch();
    assert!(wait(|| (!rule()).then_some(())).is_some(), "{}", learned());
    assert_eq!(learned().lines().count(), ours);
    next.end();
    let none = wait(|| learned().is_empty().then_some(()));
    assert!(none.is_some(), "{}", learned());
}
