//! A gateway as a node of a Redis Cluster.

use crate::raw::{Raw, command, options, start};
use gateway::{Cluster, Gateway, Options};
use std::net::TcpListener;
use std::time::Duration;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A gateway that says so, that it is reached there, and that these are others.
fn start_cluster(announce: Option<&str>, gateways: &[&str]) -> Gateway {
    let read = |it: &str| it.parse().unwrap();
    let gateways = gateways.iter().copied().map(read).collect();
    let cluster = Some(Cluster { announce: announce.map(read), gateways });
    Gateway::start(Options { cluster, ..options() }).unwrap()
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

#[test]
fn without_a_cluster_there_are_no_slots() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let disabled = "-ERR This instance has cluster support disabled\r\n";
    for sent in ["CLUSTER SLOTS", "CLUSTER INFO", "CLUSTER KEYSLOT a", "READONLY", "ASKING"] {
        client.ask(format!("{sent}\r\n"), disabled);
    }
    let info = client.text("INFO\r\n");
    assert!(info.contains("\r\nredis_mode:standalone\r\n"), "{info}");
    assert!(info.contains("\r\ncluster_enabled:0\r\n"), "{info}");
}

#[test]
fn one_node_has_all_slots_where_the_client_has_connected() {
    let gateway = start_cluster(None, &[]);
    let mut client = Raw::connect(gateway.local());
    let port = gateway.local().port();
    client.send("CLUSTER MYID\r\n");
    assert_eq!(client.line(), "$40");
    let id = client.line();
    let (host, node) = (bulk("127.0.0.1"), bulk(&id));
    let slots = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n{host}:{port}\r\n{node}*0\r\n");
    client.ask("CLUSTER SLOTS\r\n", slots);
    let nodes = client.text("CLUSTER NODES\r\n");
    let expected = format!("{id} 127.0.0.1:{port}@0 myself,master - 0 0 1 connected 0-16383\n");
    assert_eq!(nodes, expected);
    let info = client.text("CLUSTER INFO\r\n");
    for line in ["cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:1"] {
        assert!(info.contains(&format!("{line}\r\n")), "{line} in {info}");
    }
    client.ask("CLUSTER KEYSLOT {foo}bar\r\n", ":12182\r\n");
    client.ask("READONLY\r\nREADWRITE\r\nASKING\r\n", "+OK\r\n".repeat(3));
    let info = client.text("INFO\r\n");
    assert!(info.contains("\r\nredis_mode:cluster\r\n"), "{info}");
    assert!(info.contains("\r\ncluster_enabled:1\r\n"), "{info}");
    client.ask("CONFIG GET cluster-enabled\r\n", "*2\r\n$15\r\ncluster-enabled\r\n$3\r\nyes\r\n");
    // Whatever its slot is, the key is here.
    for n in 0..50 {
        let key = format!("slotted-{n}");
        client.ask(command(&["SET", &key, "1"]), "+OK\r\n");
    }
    let unknown = "-ERR unknown subcommand 'COUNTKEYSINSLOT'. Try CLUSTER HELP.\r\n";
    client.ask("CLUSTER COUNTKEYSINSLOT 1\r\n", unknown);
}

#[test]
fn the_place_of_a_node_can_be_announced() {
    let gateway = start_cluster(Some("redis.example.com:7000"), &[]);
    let mut client = Raw::connect(gateway.local());
    client.send("HELLO 3\r\n");
    assert_eq!(client.line(), "%7");
    while client.line() != "mode" {}
    client.expect("$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n");
    let nodes = client.text("CLUSTER NODES\r\n");
    assert!(nodes.contains(" redis.example.com:7000@0 myself,master "), "{nodes}");
    client.send("CLUSTER SHARDS\r\n");
    let slots =
        format!("*1\r\n%2\r\n{}*2\r\n:0\r\n:16383\r\n{}*1\r\n", bulk("slots"), bulk("nodes"));
    client.expect(slots);
    client.expect(format!("%6\r\n{}$40\r\n", bulk("id")));
    client.line();
    let host = bulk("redis.example.com");
    client.expect(format!("{}:7000\r\n{}{host}", bulk("port"), bulk("ip")));
    client.expect(format!("{}{host}", bulk("endpoint")));
}

#[test]
fn gateways_share_the_slots_and_one_that_is_gone_has_none() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap();
    let gateway = start_cluster(Some("a.example.com:7000"), &[&at.to_string()]);
    let mut client = Raw::connect(gateway.local());
    let both = client.text("CLUSTER NODES\r\n");
    let lines: Vec<&str> = both.lines().collect();
    assert!(
        lines.len() == 2
            && lines[0].ends_with(&format!(" {at}@0 master - 0 0 1 connected 0-8191"))
            && lines[1]
                .ends_with(" a.example.com:7000@0 myself,master - 0 0 1 connected 8192-16383"),
        "{both}"
    );
    client.send("CLUSTER SLOTS\r\n");
    client.expect("*2\r\n*3\r\n:0\r\n:8191\r\n");
    client.expect(format!("*4\r\n{}:{}\r\n$40\r\n", bulk("127.0.0.1"), at.port()));
    client.line();
    client.expect("*0\r\n*3\r\n:8192\r\n:16383\r\n");
    client.expect(format!("*4\r\n{}:7000\r\n$40\r\n", bulk("a.example.com")));
    client.line();
    client.expect("*0\r\n");
    drop(other);
    let mut seen = (0..200).map(|_| {
        std::thread::park_timeout(PAUSE);
        client.text("CLUSTER NODES\r\n")
    });
    let text =
        seen.find(|text| text.contains(" connected 0-16383")).expect("it is seen to be gone");
    assert!(text.contains(&format!(" {at}@0 master,fail - 0 0 1 disconnected\n")), "{text}");
    // Whoever has its slots now, every key is here as before.
    client.ask("SET shared 1\r\nGET shared\r\n", "+OK\r\n$1\r\n1\r\n");
}
