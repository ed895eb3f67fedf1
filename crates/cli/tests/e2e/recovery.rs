//! What docs/operating/recovery.md says, tried: stores that are lost or from another time, and what
//! an operator does then. Everything that was acknowledged is there afterwards, or it was said that
//! it would not be.

use crate::config::{Cluster, Shape};
use crate::processes::{Processes, node};
use client::PutOptions;
use client::blocking::Space;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::program::{Ran, Up, keyway, run};

const KEYS: u32 = 60;

/// Nodes with durable stores, below one directory.
pub(crate) fn durable(nodes: u16) -> (Cluster, PathBuf) {
    let mut cluster = Cluster::with(Shape { nodes, switches: 1, standby: false });
    let directory = cluster.file("").parent().expect("it is in a directory").to_owned();
    for id in 1..=nodes {
        let data = directory.join(format!("node-{id}"));
        let named = format!("[[node]]\nid = {id}\n");
        let with_data = format!("{named}engine = \"fjall\"\ndata = {data:?}\n");
        cluster.text = cluster.text.replace(&named, &with_data);
    }
    (cluster, directory)
}

fn write(space: &Space, value: &str) {
    for key in 0..KEYS {
        let key = format!("key-{key}");
        space.put(key.as_bytes(), value.as_bytes(), PutOptions::default()).into_result().unwrap();
    }
}

#[track_caller]
fn check(space: &Space, value: &str) {
    for key in 0..KEYS {
        let found = space.get(format!("key-{key}").as_bytes()).into_result().unwrap();
        let found = found.map(|it| String::from_utf8(it.value).unwrap());
        assert_eq!(found.as_deref(), Some(value), "key-{key}");
    }
}

fn count(processes: &Processes) -> u64 {
    processes.ask("incr visits --json").expect(0).json()["sum"].as_u64().unwrap()
}

/// What the status says that it is about a member that is in trouble.
fn details(status: &Value) -> String {
    let members = status["members"].as_array().unwrap().iter();
    members.map(|it| it["detail"].as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn rebuild(processes: &Processes, more: &str) -> Ran {
    let config = processes.cluster.file(&processes.cluster.text);
    processes.ask(format!("controller rebuild --config {} {more}", config.display()).trim_end())
}

fn roles(nodes: u16) -> Vec<String> {
    let others = ["controller", "switch --index 0"].map(str::to_owned);
    others.into_iter().chain((1..=nodes).map(node)).collect()
}

fn kill_all(processes: &mut Processes, nodes: u16) {
    roles(nodes).iter().for_each(|role| processes.kill(role));
}

fn start_members(processes: &mut Processes, nodes: u16) {
    roles(nodes).iter().skip(1).for_each(|role| drop(processes.run(role)));
}

#[test]
fn a_lost_store_of_the_controller_is_made_anew_and_nothing_acknowledged_is_missing() {
    let (cluster, directory) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    write(&processes.space(), "kept");
    assert_eq!((count(&processes), count(&processes)), (1, 2));
    let refused = rebuild(&processes, "--yes").expect(3);
    assert!(refused.stderr.contains("a controller has"), "{refused:?}");
    kill_all(&mut processes, 3);
    fs::remove_dir_all(directory.join("controller")).unwrap();

    // Whoever starts it to see what happens is told what to do, and nothing is harmed by it.
    start_members(&mut processes, 3);
    processes.run("controller");
    let status = processes.wait("it is said what to do", |it| details(it).contains("rebuild"));
    assert_eq!(status["ready"], false, "{status:#}");
    assert!(details(&status).contains("keyway controller rebuild"), "{status:#}");
    processes.kill("controller");

    // Without a terminal and without consent there is a plan, and nothing else.
    let store = directory.join("controller/map.redb");
    let before = fs::read(&store).unwrap();
    let plan = rebuild(&processes, "").expect(1);
    for words in ["cluster", "of another cluster", "24 partitions", "Nothing was changed", "--yes"]
    {
        assert!(plan.stdout.contains(words), "{words:?} is missing: {plan:#?}");
    }
    assert_eq!(fs::read(&store).unwrap(), before);
    let plan = rebuild(&processes, "--json").expect(1).json();
    assert_eq!(plan["outcome"], "planned", "{plan:#}");
    assert_eq!(plan["partitions"].as_array().unwrap().len(), 24);

    let done = rebuild(&processes, "--yes").expect(0);
    for words in ["keyway controller --config", "restart the switches"] {
        assert!(done.stdout.contains(words), "{words:?} is missing: {done:#?}");
    }
    // It was given tables by the controller that had no store.
    processes.kill("switch --index 0");
    processes.run("switch --index 0");
    assert_eq!(fs::read(directory.join("controller/map.redb.replaced-1")).unwrap(), before);
    processes.run("controller");
    processes.wait_replicated();
    processes.wait("it is ready", |status| status["ready"] == true);
    check(&processes.space(), "kept");
    assert_eq!(count(&processes), 3);
    processes.ask("cluster verify").expect(0);
    // It goes on as any other: a start of everything needs nobody.
    kill_all(&mut processes, 3);
    start_members(&mut processes, 3);
    processes.run("controller");
    processes.wait_replicated();
    check(&processes.space(), "kept");
}

#[test]
fn an_older_store_of_the_controller_empties_nobody_and_is_made_anew() {
    let (cluster, directory) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    write(&processes.space(), "old");
    processes.kill("controller");
    let (store, copy) = (directory.join("controller/map.redb"), directory.join("copy"));
    fs::copy(&store, &copy).unwrap();
    processes.run("controller");
    // Node 3 misses what is new; the copy says that it is a member.
    processes.kill(&node(3));
    write(&processes.space(), "new");
    kill_rest(&mut processes, &[1, 2]);
    fs::copy(&copy, &store).unwrap();

    start_members(&mut processes, 3);
    processes.run("controller");
    let status = processes.wait("it is said what to do", |it| details(it).contains("rebuild"));
    assert_eq!((&status["ready"], &status["covered"]), (&false.into(), &false.into()));
    processes.kill("controller");
    let plan = rebuild(&processes, "").expect(1);
    assert!(plan.stdout.contains("an older copy"), "{plan:?}");
    rebuild(&processes, "--yes").expect(0);
    processes.run("controller");
    processes.wait_replicated();
    check(&processes.space(), "new");
    processes.ask("cluster verify").expect(0);
}

fn kill_rest(processes: &mut Processes, nodes: &[u16]) {
    processes.kill("controller");
    processes.kill("switch --index 0");
    nodes.iter().for_each(|id| processes.kill(&node(*id)));
}

#[test]
fn a_map_is_made_anew_without_a_node_only_if_the_operator_says_so() {
    let (cluster, directory) = durable(4);
    let mut processes = Processes::start(cluster, &[1, 2, 3, 4]);
    write(&processes.space(), "kept");
    // A copy of it, so that it can come back from the grave with what it held.
    kill_all(&mut processes, 4);
    fs::remove_file(directory.join("controller/map.redb")).unwrap();
    start_members(&mut processes, 3);
    let refused = rebuild(&processes, "--yes").expect(3);
    for words in ["node 4", "--without 4", "lost", "nobody answers at"] {
        assert!(refused.stderr.contains(words), "{words:?} is missing: {refused:#?}");
    }
    assert!(!directory.join("controller/map.redb").exists());
    // All but one of a chain are too many.
    kill_node(&mut processes, 2);
    kill_node(&mut processes, 3);
    let refused = rebuild(&processes, "--without 2 --without 3 --without 4").expect(3);
    assert!(refused.stderr.contains("no member is left"), "{refused:?}");
    processes.run(&node(2));
    processes.run(&node(3));
    let done = rebuild(&processes, "--without 4 --yes").expect(0);
    assert!(done.stdout.contains("Without node 4"), "{done:?}");
    processes.run("controller");
    processes.wait_replicated();
    check(&processes.space(), "kept");
    write(&processes.space(), "later");
    // It was not gone: it is emptied, and takes its part again.
    processes.run(&node(4));
    let placed = |status: &Value| status.to_string().contains("\"chain\":[4");
    processes.wait("node 4 has replicas", placed);
    processes.wait_replicated();
    check(&processes.space(), "later");
}

fn kill_node(processes: &mut Processes, id: u16) {
    processes.kill(&node(id));
}

#[test]
fn nodes_that_run_on_in_memory_keep_what_they_hold_when_the_map_is_made_anew() {
    let mut processes = Processes::start(Cluster::new(), &[1, 2, 3]);
    let directory = processes.cluster.file(&processes.cluster.text);
    let directory = directory.parent().unwrap().to_owned();
    write(&processes.space(), "kept");
    processes.kill("controller");
    // Damaged, and said to be so.
    let store = directory.join("controller/map.redb");
    fs::write(&store, b"").unwrap();
    let config = processes.cluster.file(&processes.cluster.text);
    let refused = processes.ask(&format!("controller --config {}", config.display())).expect(5);
    assert!(refused.stderr.contains("keyway controller rebuild"), "{refused:?}");
    let done = rebuild(&processes, "--yes").expect(0);
    assert!(done.stdout.contains("cannot be read"), "{done:?}");
    processes.run("controller");
    processes.wait_replicated();
    check(&processes.space(), "kept");
    // One that has lost its memory is no witness.
    processes.kill("controller");
    processes.kill(&node(2));
    processes.run(&node(2));
    fs::remove_file(&store).unwrap();
    let refused = rebuild(&processes, "--yes").expect(3);
    assert!(refused.stderr.contains("its memory is new: node 2"), "{refused:?}");
    rebuild(&processes, "--yes --without 2").expect(0);
    processes.run("controller");
    processes.wait_replicated();
    check(&processes.space(), "kept");
}

#[test]
fn the_map_of_a_cluster_in_one_process_is_made_anew_from_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let size = ["--nodes", "3", "--replicas", "3", "--partitions", "8", "--redis", "off"];
    let arguments = [&size[..], &["--engine", "fjall", "--data", &data]].concat();
    let up = Up::start(&arguments);
    up.run(&["put", "greeting", "hello"]).expect(0);
    up.run(&["incr", "visits", "41"]).expect(0);
    let refused = run(&["controller", "rebuild", "--data", &data]).expect(3);
    assert!(refused.stderr.contains("in use"), "{refused:?}");
    up.kill();
    fs::remove_dir_all(Path::new(&data).join("controller")).unwrap();
    let mut start = keyway();
    start.args(["up", "--json", "--service", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let failed = Ran::from(start.args(&arguments).output().unwrap()).expect(5);
    assert!(failed.stderr.contains("keyway controller rebuild"), "{failed:?}");
    let plan = run(&["controller", "rebuild", "--data", &data]).expect(1);
    assert!(plan.stdout.contains("16 partitions"), "{plan:?}");
    run(&["controller", "rebuild", "--data", &data, "--yes"]).expect(0);
    let up = Up::start(&arguments);
    assert_eq!(up.run(&["get", "greeting"]).expect(0).stdout, "hello");
    assert_eq!(up.run(&["incr", "visits", "--json"]).expect(0).json()["sum"], 42);
    let nothing = run(&["controller", "rebuild", "--data", "/nowhere/at/all"]).expect(2);
    assert!(nothing.stderr.contains("no data directory"), "{nothing:?}");
}

fn copy_directory(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("there is a cp");
    assert!(copied.success());
}

#[test]
fn a_node_whose_disk_is_lost_is_copied_to_anew() {
    let (cluster, directory) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    write(&processes.space(), "kept");
    processes.kill(&node(2));
    fs::rename(directory.join("node-2"), directory.join("node-2.bad")).unwrap();
    write(&processes.space(), "later");
    processes.run(&node(2));
    processes.wait("it has replicas again", |status| status["ready"] == true);
    processes.wait_replicated();
    check(&processes.space(), "later");
    processes.ask("cluster verify").expect(0);
}

#[test]
fn an_older_directory_of_a_node_is_found_out_and_a_lone_one_needs_a_word() {
    let (cluster, directory) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    write(&processes.space(), "old");
    kill_all(&mut processes, 3);
    let place = |id: u16, ending: &str| directory.join(format!("node-{id}{ending}"));
    (1..=3).for_each(|id| copy_directory(&place(id, ""), &place(id, ".copy")));
    let put_back = |id: u16| {
        fs::remove_dir_all(place(id, "")).unwrap();
        copy_directory(&place(id, ".copy"), &place(id, ""));
    };
    start_members(&mut processes, 3);
    processes.run("controller");
    write(&processes.space(), "new");
    kill_all(&mut processes, 3);
    put_back(2);
    start_members(&mut processes, 3);
    processes.run("controller");
    processes.wait_replicated();
    check(&processes.space(), "new");
    // All of them: nobody knows better, and only the operator can say that it is to be so.
    kill_all(&mut processes, 3);
    (1..=3).for_each(put_back);
    start_members(&mut processes, 3);
    processes.run("controller");
    processes.wait("they are found out", |status| {
        status["members"].to_string().contains("accept-loss") && status["covered"] == false
    });
    processes.ask("cluster accept-loss 2").expect(0);
    processes.wait_replicated();
    // The last writes were only pending in the copies: the head sends them down the chain anew.
    let space = processes.space();
    processes.wait("what was pending is committed", |_| {
        let found = |key| space.get(format!("key-{key}").as_bytes()).into_result().unwrap();
        (0..KEYS).all(|key| found(key).is_some())
    });
    check(&space, "old");
}

#[test]
fn a_rack_that_is_lost_waits_for_one_that_holds_everything() {
    let (cluster, _directory) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    write(&processes.space(), "kept");
    (1..=3).for_each(|id| processes.kill(&node(id)));
    processes.wait("nobody is there", |status| status["ready"] == false);
    processes.run(&node(2));
    // Every key is served by the one that is back.
    processes.wait("its keys are served", |status| status["covered"] == true);
    check(&processes.space(), "kept");
    write(&processes.space(), "later");
    processes.run(&node(1));
    processes.run(&node(3));
    processes.wait_replicated();
    check(&processes.space(), "later");
}
