//! What content addresses ask of a cluster.

use super::{CacheSection, Config, KeyspaceForm, KeyspaceSection, NodeSection};
use cluster::{ContentRouting, NoAddresses};
use std::net::{IpAddr, SocketAddr};

pub(super) fn check_content(config: &Config, found: &mut Vec<String>) {
    let Some(content) = &config.content else { return };
    if content.port == 0 {
        found.push("port in [content] is 0: choose a port".into());
    }
    for node in &config.nodes {
        let NodeSection { id, listen, shards, .. } = node;
        check_listen(content, &format!("node {id}"), *listen, found);
        check_shards(&format!("node {id}"), *shards, found);
    }
    for cache in &config.caches {
        let CacheSection { id, listen, shards, .. } = cache;
        check_listen(content, &format!("cache {id}"), *listen, found);
        check_shards(&format!("cache {id}"), *shards, found);
    }
    config.keyspaces.iter().for_each(|keyspace| check_keyspace(keyspace, found));
}

/// All addresses have one port, and so do those who receive at them.
fn check_shards(name: &str, shards: u16, found: &mut Vec<String>) {
    if shards != 1 {
        found.push(format!(
            "{name} has {shards} shards: with [content] it has one, since all of its addresses \
             have one port; run more, on machines or in network namespaces of their own"
        ));
    }
}

/// All receive at one port, each of them at all addresses of its machine.
fn check_listen(content: &ContentRouting, name: &str, listen: SocketAddr, found: &mut Vec<String>) {
    let IpAddr::V6(addr) = listen.ip() else {
        found.push(format!("{name} is at {listen}: content addresses need IPv6 everywhere"));
        return;
    };
    if listen.port() != content.port {
        found.push(format!(
            "{name} is at port {}: with [content] it receives at the port that is there, {}",
            listen.port(),
            content.port
        ));
    }
    if content.prefix.addresses().holds(addr) {
        found.push(format!(
            "{name} is at {addr}, a content address: choose one outside of {}",
            content.prefix
        ));
    }
}

fn check_keyspace(keyspace: &KeyspaceSection, found: &mut Vec<String>) {
    let (name, partitions) = (&keyspace.name, keyspace.partitions());
    if let Some(why) = NoAddresses::of(keyspace.kind == KeyspaceForm::Range, partitions) {
        found.push(format!("keyspace {name:?} cannot be reached by content addresses: {why}"));
    }
}
