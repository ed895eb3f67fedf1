//! Every role as a process of its own, from one configuration.

use crate::config::{Cluster, NODES};
use std::path::Path;
use testkit::program::{Daemon, Ran, keyway};

fn start(role: &[&str], config: &Path) -> Daemon {
    let (daemon, line) = Daemon::start(keyway().args(role).arg("--config").arg(config));
    assert!(line.contains("ready"), "{line}");
    daemon
}

fn run(cluster: &Cluster, arguments: &[&str]) -> Ran {
    let mut command = keyway();
    // Longer than any of the roles takes to find the others.
    command.args(arguments).args(["--timeout", "60s"]);
    command.env("KEYWAY_SERVICE", cluster.services[0].to_string());
    command.env("KEYWAY_ADMIN", cluster.admins[0].to_string());
    Ran::from(command.output().expect("the binary runs"))
}

#[test]
fn a_cluster_of_processes_serves_and_outlives_its_switch_and_controller() {
    let cluster = Cluster::new();
    let config = cluster.file(&cluster.text);
    let mut nodes = Vec::new();
    for id in 1..=NODES {
        nodes.push(start(&["node", "--id", &id.to_string()], &config));
    }
    let switch = start(&["switch"], &config);
    let controller = start(&["controller"], &config);

    // The first request waits until all have found each other.
    run(&cluster, &["put", "greeting", "hello"]).expect(0);
    assert_eq!(run(&cluster, &["get", "greeting"]).expect(0).stdout, "hello");
    for word in ["pear", "apple", "quince"] {
        run(&cluster, &["put", "-k", "words", word, "1"]).expect(0);
    }
    let found = run(&cluster, &["scan", "-k", "words", "--keys-only"]).expect(0);
    assert_eq!(found.stdout, "apple\npear\nquince\n");
    let status = run(&cluster, &["status"]).expect(0).stdout;
    assert!(status.contains("switch 0") && status.contains("node 3"), "{status}");

    controller.kill();
    assert_eq!(run(&cluster, &["get", "greeting"]).expect(0).stdout, "hello");
    switch.kill();
    let _controller = start(&["controller"], &config);
    let _switch = start(&["switch"], &config);
    assert_eq!(run(&cluster, &["get", "greeting"]).expect(0).stdout, "hello");
    run(&cluster, &["put", "greeting", "again"]).expect(0);
    assert_eq!(run(&cluster, &["get", "greeting"]).expect(0).stdout, "again");
    let last = nodes.pop().expect("there are three");
    assert_eq!(last.interrupt(), Some(0), "Ctrl-C ends it in good order");
}
