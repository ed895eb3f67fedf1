//! Two clusters whose configurations name one switch.

use crate::config::Cluster;
use crate::processes::{Processes, node};
use client::PutOptions;

#[test]
fn a_switch_stays_with_its_cluster_until_it_is_restarted() {
    let mut first = Processes::start(Cluster::new(), &[1, 2, 3]);
    let space = first.space();
    space.put(b"key", b"value", PutOptions::default()).into_result().unwrap();
    let read = || space.get(b"key").into_result().unwrap().map(|found| found.value);

    // Everything of its own, but for the switch.
    let mut second = Cluster::new();
    for (theirs, ours) in addresses(&second).into_iter().zip(addresses(&first.cluster)) {
        second.text = second.text.replace(&theirs, &ours);
    }
    second.services.clone_from(&first.cluster.services);
    let mut second = Processes::new(second);
    for id in 1..=3 {
        second.run(&node(id));
    }
    second.run("controller");
    let status = second.wait("the switch is somebody else's", |status| {
        let members = status["members"].as_array().unwrap();
        let is_switch = |member: &serde_json::Value| member["member"]["switch"] == 0;
        let switch = members.iter().find(|member| is_switch(member)).unwrap();
        switch["state"] == "foreign"
    });
    let text = status.to_string();
    assert!(text.contains("this switch follows cluster"), "{status:#}");
    assert_eq!((&status["ready"], &status["covered"]), (&false.into(), &false.into()));
    for _ in 0..20 {
        assert_eq!(read().as_deref(), Some(&b"value"[..]));
    }
    first.wait("the first notices nothing", |status| status["ready"] == true);

    // Handed over: nobody gives it orders any more, and it has forgotten whom it followed.
    first.kill("controller");
    first.kill("switch --index 0");
    second.run("switch");
    second.wait("it follows the second", |status| status["ready"] == true);
    assert_eq!(second.space().get(b"key").into_result().unwrap(), None);
}

/// Service and admin address of the switch.
fn addresses(cluster: &Cluster) -> [String; 2] {
    let table = cluster.text.split("[switch]").nth(1).expect("there is one switch");
    let value = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).expect("it is there");
        line.split('"').nth(1).expect("in quotes").to_owned()
    };
    [value("service"), value("admin")]
}
