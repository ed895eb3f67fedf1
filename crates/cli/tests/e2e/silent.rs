//! Members that are there and say nothing, as a stopped process does: whatever an operator asks is
//! answered soon all the same, and says who is silent.

use crate::config::{Cluster, Shape};
use crate::processes::{Processes, node};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runtime::clock::Clock;
use std::time::Duration;
use testkit::program::{Ran, free_addresses};

/// How long any answer may take: less than a command waits for one silent address by itself.
const ANSWER_MAX: Duration = Duration::from_secs(4);

/// A process that is stopped until this is dropped.
pub(crate) struct Stopped(Pid);

impl Stopped {
    pub(crate) fn new(processes: &Processes, name: &str) -> Self {
        let pid = i32::try_from(processes.id_of(name)).expect("process ids are positive");
        let pid = Pid::from_raw(pid);
        kill(pid, Signal::SIGSTOP).expect("it runs");
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill(self.0, Signal::SIGCONT).ok();
    }
}

/// Runs a command, which answers in time.
#[track_caller]
fn ask(processes: &Processes, command: &str) -> Ran {
    let mut clock = Clock::new();
    let called = clock.now();
    let ran = processes.ask(command);
    let took = clock.now().since(called);
    assert!(took < ANSWER_MAX, "{command} took {took:?}: {ran:?}");
    ran
}

/// Commands of an operator that ask, and none of which is to wait for anybody.
const QUESTIONS: [&str; 6] = [
    "status",
    "status --json",
    "top --once",
    "keyspace list",
    "keyspace show default",
    "cluster upgrade-check",
];

/// Those that name a member that is silent, or a controller.
const OF_MEMBERS: [&str; 3] = ["status", "top --once", "cluster upgrade-check"];
const OF_CONTROLLERS: [&str; 2] = ["status", "cluster upgrade-check"];

/// All questions are answered, and these answers name a member that is silent.
#[track_caller]
fn all_answer(processes: &Processes, silent: &str, naming: &[&str]) {
    for command in QUESTIONS {
        let ran = ask(processes, command);
        assert!(matches!(ran.code, Some(0 | 1)), "{command}: {ran:?}");
    }
    for command in naming {
        let said = ask(processes, command).stdout;
        assert!(said.contains(silent), "{command} does not name {silent}: {said}");
    }
}

/// Keyspaces are made and used.
#[track_caller]
fn keyspaces_are_made(processes: &Processes, name: &str) {
    ask(processes, &format!("keyspace create {name} --partitions 4")).expect(0);
    ask(processes, &format!("put greeting hello --keyspace {name}")).expect(0);
    assert_eq!(
        ask(processes, &format!("get greeting --keyspace {name}")).expect(0).stdout,
        "hello"
    );
}

/// Waits until the controller misses this node or switch.
fn missed(processes: &Processes, kind: &str, id: u64) {
    processes.wait("it is missed", |it| {
        let members = it["members"].as_array().expect("a list");
        let of = members.iter().find(|it| it["member"][kind] == id).expect("it is listed");
        of["state"] != "ready"
    });
}

#[test]
fn a_stopped_node_holds_up_no_command_and_no_keyspace() {
    let shape = Shape { nodes: 4, switches: 1, standby: false };
    let mut processes = Processes::start(Cluster::with(shape), &[1, 2, 3, 4]);
    let listen = free_addresses(1)[0];
    processes.run_client("gateway", &format!("gateway --listen {listen}"));
    // At once: nobody has missed it yet.
    let stopped = Stopped::new(&processes, &node(4));
    keyspaces_are_made(&processes, "at-once");
    missed(&processes, "node", 4);
    let _gateway = Stopped::new(&processes, "gateway");
    all_answer(&processes, "node 4", &OF_MEMBERS);
    keyspaces_are_made(&processes, "later");
    ask(&processes, "cluster verify").expect(0);
    drop(stopped);
    processes.wait_replicated();
}

#[test]
fn a_comparison_that_waits_for_a_stopped_node_names_it_and_ends() {
    let processes = Processes::start(Cluster::new(), &[1, 2, 3]);
    processes.ask("keyspace create alone --replicas 1 --partitions 6").expect(0);
    processes.wait_replicated();
    let stopped = Stopped::new(&processes, &node(3));
    missed(&processes, "node", 3);
    let verified = ask(&processes, "cluster verify --timeout 1s").expect(5);
    assert!(verified.stderr.contains("node 3"), "{verified:?}");
    drop(stopped);
    processes.wait("all are ready", |it| it["ready"] == true);
    processes.ask("cluster verify").expect(0);
}

#[test]
fn a_stopped_switch_holds_up_no_command_and_one_that_stands_by_no_keyspace() {
    let shape = Shape { nodes: 3, switches: 2, standby: false };
    let processes = Processes::start(Cluster::with(shape), &[1, 2, 3]);
    let active = processes.wait("one is active", |_| true)["active_switch"].clone();
    let active = active.as_u64().expect("a number");
    let other = format!("switch --index {}", 1 - active);
    let stopped = Stopped::new(&processes, &other);
    keyspaces_are_made(&processes, "at-once");
    missed(&processes, "switch", 1 - active);
    all_answer(&processes, &format!("switch {}", 1 - active), &OF_MEMBERS);
    keyspaces_are_made(&processes, "later");
    drop(stopped);
    processes.wait("all are ready", |it| it["ready"] == true);

    let stopped = Stopped::new(&processes, &format!("switch --index {active}"));
    keyspaces_are_made(&processes, "taken-over");
    all_answer(&processes, &format!("switch {active}"), &OF_MEMBERS);
    drop(stopped);
    processes.wait("all are ready", |it| it["ready"] == true);
}

#[test]
fn without_its_only_switch_nothing_is_served_and_commands_say_so() {
    let processes = Processes::start(Cluster::new(), &[1, 2, 3]);
    let stopped = Stopped::new(&processes, "switch --index 0");
    missed(&processes, "switch", 0);
    all_answer(&processes, "switch 0", &OF_MEMBERS);
    let created = ask(&processes, "keyspace create more --timeout 1s");
    assert_eq!(created.code, Some(5), "{created:?}");
    assert!(created.stderr.contains("switch 0"), "{created:?}");
    drop(stopped);
    processes.wait("all are ready", |it| it["ready"] == true);
}

#[test]
fn a_stopped_controller_whose_address_comes_first_holds_up_no_command() {
    let shape = Shape { nodes: 3, switches: 1, standby: true };
    let mut processes = Processes::new(Cluster::with(shape));
    for role in [node(1), node(2), node(3), "switch --index 0".to_owned()] {
        processes.run(&role);
    }
    for name in ["first", "second"] {
        processes.run_as(name, "controller --standby");
    }
    processes.wait_replicated();
    processes.kill("first");
    processes.wait("the second leads", |it| it["ready"] == true);
    // It is the first address that is free again.
    processes.run_as("first", "controller --standby");
    let stopped = Stopped::new(&processes, "first");
    let at = processes.cluster.admins[0].to_string();
    all_answer(&processes, &at, &OF_CONTROLLERS);
    keyspaces_are_made(&processes, "more");
    ask(&processes, "cluster pause-copies").expect(0);
    ask(&processes, "cluster resume-copies").expect(0);
    drop(stopped);
    processes.wait("all are ready", |it| it["ready"] == true);
}
