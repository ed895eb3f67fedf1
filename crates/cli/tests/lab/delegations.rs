//! Writes of a hot key that go anywhere, between real processes, with the switch in the kernel.

use crate::metrics::{samples, sum};
use crate::rack::{Lab, can_build, can_load_programs};
use crate::tests::MACHINE;
use lab::hammer::{KEY, hammer, wait};
use lab::process::pause;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::run;

/// Delegated writes after which enough has been seen.
const WRITES: u64 = 100;

/// What there is of a cluster to ask.
#[derive(Clone, Copy)]
struct Admins {
    switch: SocketAddr,
    nodes: [SocketAddr; 4],
}

impl Admins {
    /// As the controller knows the nodes: all admin servers have the same port.
    fn find(controller: SocketAddr, service: SocketAddr) -> Self {
        let mut response = ureq::get(format!("http://{controller}/v1/map")).call().unwrap();
        let map: Value = response.body_mut().read_json().unwrap();
        let at = |ip: IpAddr| SocketAddr::new(ip, controller.port());
        let node = |index: usize| {
            let endpoint = map["nodes"][index]["endpoint"].as_str().expect("there are four");
            at(endpoint.parse::<SocketAddr>().unwrap().ip())
        };
        Self { switch: at(service.ip()), nodes: [0, 1, 2, 3].map(node) }
    }

    /// Writes that each node has taken under delegations.
    fn taken(&self) -> [u64; 4] {
        self.nodes.map(|node| sum(node, "keyway_node_hot_delegated_writes_total"))
    }
}

fn wait_for_delegations(admins: Admins, lab: &str) {
    let all = || Some(admins.taken()).filter(|taken| taken.iter().all(|writes| *writes > 0));
    wait(all).expect("all four nodes take writes of it");
    let stamped = samples(admins.switch, "keyway_switch_hot_delegated_writes_total");
    assert!(stamped.values().sum::<u64>() > 0, "{stamped:?}");
    // Neither requests nor replies come to the socket, but for the first ones.
    let kernel = || sum(admins.switch, "keyway_switch_in_kernel_total");
    let (in_kernel, delegated) = (kernel(), admins.taken().iter().sum::<u64>());
    let more = || Some(admins.taken().iter().sum::<u64>()).filter(|sum| *sum > delegated + WRITES);
    let more = wait(more).expect("writes go on");
    assert!(kernel() - in_kernel > more - delegated, "they were stamped in the kernel");

    let words = ["keyway", "explain", KEY, "--plane", "xdp", "--json"];
    let delegated = || {
        let said = run(&[&["lab", "run", "--name", lab, "--"][..], &words].concat()).json();
        let delegation =
            said["hot"]["delegation"].as_object().filter(|it| it["next_version"].is_u64())?;
        assert_eq!(delegation["replicas"], 2, "{said:#}");
        assert!(delegation["next_version"].as_u64() > said["hot"]["floor"].as_u64(), "{said:#}");
        Some(())
    };
    wait(delegated).expect("explain tells of the delegation");

    // What needs the value brings the key home, and it goes again.
    let incr = ["keyway", "incr", KEY, "0", "--json"];
    let asked = run(&[&["lab", "run", "--name", lab, "--"][..], &incr].concat()).expect(0).json();
    assert!(asked["sum"].as_u64() > Some(0), "{asked}");
    let again = || Some(admins.taken().iter().sum::<u64>()).filter(|sum| *sum > more + WRITES);
    wait(again).expect("it goes again");
}

#[test]
fn writes_of_a_hot_key_go_anywhere_by_a_switch_in_the_kernel() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let test = "writes_of_a_hot_key_go_anywhere_by_a_switch_in_the_kernel";
    if !can_build(test) || !can_load_programs(test) {
        return;
    }
    let lab = Lab::up(&["--nodes", "4", "--replicas", "2", "--plane", "xdp"]);
    let address = |what: &str| lab.ready[what].as_str().unwrap().parse::<SocketAddr>().unwrap();
    let (service, controller) = (address("service"), address("admin"));
    lab.run(0, &["keyway", "hot", "pin", KEY]).expect(0);
    let (ends, name) = (AtomicBool::new(false), lab.name().to_owned());
    lab.on("c0", || {
        let admins = Admins::find(controller, service);
        thread::scope(|scope| {
            scope.spawn(|| hammer(service, &ends, Duration::from_millis(2)));
            let _ends = RaiseOnDrop(&ends);
            wait_for_delegations(admins, &name);
            // Reads and writes go on for a while, and each is checked.
            pause(Duration::from_secs(1));
        });
    });
    let log = lab.run(0, &["keyway", "hot", "log", "--json"]).expect(0).json_lines();
    let did = |what: &str| log.iter().filter(|it| it["decision"] == what).count();
    assert!(did("delegation_begun") >= 2 && did("delegation_ended") >= 1, "{log:?}");
    assert_eq!(lab.interrupt(), Some(0));
}
