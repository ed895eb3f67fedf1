//! Keyspaces that are altered under load: more replicas, a node that is lost, fewer again; nothing
//! that was acknowledged is lost or done twice.

use crate::backends;
use crate::config::{Cluster, Shape};
use crate::parts::{check, pause, while_counting};
use crate::processes::{Processes, node};
use crate::recovery::durable;
use serde_json::{Value, json};
use testkit::program::Ran;

const CREATE: &str = "keyspace create counted --range --prefix k --partitions 4 --replicas 1 \
                      --split k050 --split k100 --split k150";

/// The members of each chain of the keyspace.
fn members(status: &Value) -> Vec<usize> {
    let spaces = status["keyspaces"].as_array().unwrap();
    let ours = spaces.iter().find(|it| it["name"] == "counted").unwrap();
    let chains = ours["partitions"].as_array().unwrap().iter().map(|it| it["chain"].as_array());
    chains.map(|chain| chain.unwrap().len()).collect()
}

fn alter(processes: &Processes, replicas: usize) -> Ran {
    let ran = processes.ask(&format!("keyspace alter counted --replicas {replicas} --json"));
    let ran = ran.expect(0);
    let said = json!({
        "outcome": "done", "name": "counted", "changed": true, "replicas": replicas,
        "hot": "replicate",
    });
    assert_eq!(ran.json(), said);
    let status = processes.status().unwrap();
    assert_eq!(members(&status), [replicas; 4], "it waits until all chains have followed");
    ran
}

/// From one replica to three, the loss of a node, and back to one.
fn survives_a_loss(mut processes: Processes) {
    processes.ask(CREATE).expect(0);
    let sums = while_counting(&mut processes, |processes| {
        pause();
        alter(processes, 3);
        pause();
        processes.kill(&node(2));
        pause();
        alter(processes, 1);
        pause();
    });
    check(&processes.space_of("counted"), &sums);
    processes.run(&node(2));
    processes.wait_replicated();
    assert_eq!(members(&processes.status().unwrap()), [1; 4], "nothing is copied to it");
    check(&processes.space_of("counted"), &sums);
}

#[test]
fn a_keyspace_on_disks_gets_replicas_survives_a_loss_and_gives_them_up_under_load() {
    let (cluster, _directory) = durable(4);
    survives_a_loss(Processes::start(cluster, &[1, 2, 3, 4]));
}

#[test]
fn so_does_one_in_memory() {
    let cluster = Cluster::with(Shape { nodes: 4, switches: 1, standby: false });
    survives_a_loss(Processes::start(cluster, &[1, 2, 3, 4]));
}

#[test]
fn so_does_one_before_redis_processes() {
    let Some(servers) = backends::servers("altering a keyspace before Redis", 4) else { return };
    survives_a_loss(backends::start(&servers, 1));
}

#[test]
fn what_cannot_be_is_refused_and_what_is_so_is_said() {
    let cluster = Cluster::with(Shape { nodes: 3, switches: 1, standby: false });
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    processes.ask(CREATE).expect(0);
    let refuse = |processes: &Processes, what: &str, code, why: &str| {
        let ran = processes.ask(&format!("keyspace alter {what}")).expect(code);
        assert!(ran.stderr.contains(why), "{what}: {ran:?}");
    };
    refuse(&processes, "counted", 2, "--replicas");
    refuse(&processes, "counted --replicas 0", 3, "1 replica or more");
    refuse(&processes, "counted --replicas 4", 3, "3 nodes answer and stay; add nodes first");
    refuse(&processes, "nobody --replicas 2", 3, "there is no keyspace \"nobody\"");
    let same = processes.ask("keyspace alter counted --replicas 1").expect(0);
    assert_eq!(same.stdout, "counted has already 1 replicas, hot keys: replicate\n");
    let hot = processes.ask("keyspace alter counted --hot off").expect(0);
    assert_eq!(hot.stdout, "counted has 1 replicas, hot keys: off\n");
    refuse(&processes, "counted --replicas 4 --hot reads", 3, "cannot have 4 replicas");
    assert_eq!(processes.status().unwrap()["keyspaces"][2]["hot"], "off", "all of it or nothing");

    processes.ask("cluster pause-copies").expect(0);
    refuse(&processes, "counted --replicas 3", 5, "to go on: keyway cluster resume-copies");
    processes.ask("cluster resume-copies").expect(0);
    processes.wait("it went on by itself", |status| members(status) == [3; 4]);
    let same = processes.ask("keyspace alter counted --replicas 3 --json").expect(0);
    assert_eq!(same.json()["changed"], false);

    // What was asked for outlives whoever decided it.
    processes.kill("controller");
    processes.run("controller");
    let status = processes.wait_replicated();
    assert_eq!(members(&status), [3; 4]);
    processes.kill(&node(3));
    let replicas = processes.ask("keyspace alter counted --replicas 2 --json").expect(0);
    assert_eq!(replicas.json()["replicas"], 2, "those that are left are enough");
}
