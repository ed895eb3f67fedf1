//! What must hold between the parts of a configuration. Every problem is a sentence that says what
//! to do.

use super::{Config, EngineKind, KeyspaceForm, KeyspaceSection, NodeSection, Problems};
use cluster::NodeSpec;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

/// Threads of a switch at most: more than the cores of any machine it is worth running on.
pub(super) const THREADS_MAX: usize = 256;

pub(super) fn problems(config: &Config) -> Problems {
    let mut found = Vec::new();
    check_switch(config, &mut found);
    config.nodes.iter().for_each(|node| check_node(node, &mut found));
    check_together(config, &mut found);
    check_admins(config, &mut found);
    check_directories(config, &mut found);
    for (index, keyspace) in config.keyspaces.iter().enumerate() {
        check_keyspace(config, index, keyspace, &mut found);
    }
    let partitions: u64 = config.keyspaces.iter().map(|it| u64::from(it.partitions)).sum();
    if partitions > wire::PARTITIONS_MAX as u64 {
        found.push(format!(
            "the keyspaces have {partitions} partitions together: reduce them to {} or fewer",
            wire::PARTITIONS_MAX
        ));
    }
    if config.keyspaces.len() > wire::KEYSPACES_MAX {
        found.push(format!("there are more than {} keyspaces: remove some", wire::KEYSPACES_MAX));
    }
    Problems(found)
}

fn check_switch(config: &Config, found: &mut Vec<String>) {
    check_reachable("service in [switch]", config.switch.service, found);
    if !(1..=THREADS_MAX).contains(&config.switch.threads) {
        found.push(format!(
            "threads in [switch] is {}: choose 1 to {THREADS_MAX}",
            config.switch.threads
        ));
    }
}

fn check_node(node: &NodeSection, found: &mut Vec<String>) {
    let NodeSection { id, listen, shards, engine, data, .. } = node;
    check_reachable(&format!("listen of node {id}"), *listen, found);
    if usize::from(*id) >= wire::NODES_MAX {
        found.push(format!("node {id}: choose an id from 0 to {}", wire::NODES_MAX - 1));
    }
    let last = shards.checked_sub(1).and_then(|more| listen.port().checked_add(more));
    if last.is_none() {
        found.push(format!(
            "node {id}: {shards} shards from port {} do not fit: choose at least 1 shard and \
             a lower port",
            listen.port()
        ));
    }
    match (engine, data) {
        (EngineKind::Fjall, None) => found
            .push(format!("node {id}: the engine \"fjall\" needs a directory: add data = \"...\"")),
        (EngineKind::Memory, Some(_)) => found.push(format!(
            "node {id}: the engine \"memory\" keeps nothing: remove data, or choose \
             engine = \"fjall\""
        )),
        (EngineKind::Fjall, Some(_)) | (EngineKind::Memory, None) => {}
    }
}

/// Nodes among each other, and with the switch.
fn check_together(config: &Config, found: &mut Vec<String>) {
    if config.nodes.is_empty() {
        found.push("there is no node: add at least one [[node]]".into());
    }
    let mut names: BTreeMap<u16, usize> = BTreeMap::new();
    config.nodes.iter().for_each(|node| *names.entry(node.id).or_default() += 1);
    for (id, _) in names.iter().filter(|(_, times)| **times > 1) {
        found.push(format!("node {id} is there more than once: give each node its own id"));
    }
    let service = config.switch.service;
    let specs: Vec<NodeSpec> = config.nodes.iter().map(NodeSection::spec).collect();
    for (index, spec) in specs.iter().enumerate() {
        let id = spec.id;
        if spec.owns(service.into()) {
            found.push(format!("node {id} and the switch share port {}", service.port()));
        }
        // Two intervals of ports overlap if and only if one holds the other's first.
        let shares = |(other, it): (usize, &NodeSpec)| other != index && spec.owns(it.endpoint);
        if specs.iter().enumerate().any(shares) {
            found.push(format!(
                "node {id}: a port of its shards is another node's: leave as many ports free after \
                 listen as it has shards"
            ));
        }
        let listen = SocketAddr::from(spec.endpoint);
        if listen.is_ipv4() != service.is_ipv4() {
            found.push(format!(
                "node {id} listens on {listen} and the switch on {service}: choose IPv4 or IPv6 \
                 for both"
            ));
        }
        if listen.ip().is_loopback() != service.ip().is_loopback() {
            found.push(format!(
                "of {listen} (node {id}) and {service} (switch) one is a loopback address, so \
                 they cannot reach each other: use loopback addresses for all or for none"
            ));
        }
    }
}

fn check_admins(config: &Config, found: &mut Vec<String>) {
    let mut all = vec![
        ("[switch]".to_owned(), config.switch.admin),
        ("[controller]".to_owned(), config.controller.admin),
    ];
    all.extend(config.nodes.iter().map(|node| (format!("node {}", node.id), node.admin)));
    let mut owners: BTreeMap<SocketAddr, Vec<&str>> = BTreeMap::new();
    for (owner, admin) in &all {
        check_reachable(&format!("admin of {owner}"), *admin, found);
        owners.entry(*admin).or_default().push(owner);
    }
    for (admin, owners) in owners.iter().filter(|(_, owners)| owners.len() > 1) {
        found.push(format!("{} share the admin address {admin}", owners.join(" and ")));
    }
}

fn check_directories(config: &Config, found: &mut Vec<String>) {
    let mut owners: BTreeMap<&Path, Vec<String>> = BTreeMap::new();
    owners.entry(&config.controller.data).or_default().push("[controller]".into());
    for node in &config.nodes {
        if let Some(data) = &node.data {
            owners.entry(data).or_default().push(format!("node {}", node.id));
        }
    }
    for (data, owners) in owners.iter().filter(|(_, owners)| owners.len() > 1) {
        found.push(format!(
            "{} share the directory {}: give each its own",
            owners.join(" and "),
            data.display()
        ));
    }
}

fn check_keyspace(
    config: &Config,
    index: usize,
    keyspace: &KeyspaceSection,
    found: &mut Vec<String>,
) {
    let KeyspaceSection { name, kind, prefix, partitions, replicas, splits } = keyspace;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !(1..=wire::NAME_MAX).contains(&name.len()) || !name.bytes().all(plain) {
        found.push(format!(
            "keyspace {name:?}: choose a name of 1 to {} letters, digits, '_', '-' or '.'",
            wire::NAME_MAX
        ));
    }
    if config.keyspaces.iter().take(index).any(|other| other.name == *name) {
        found.push(format!("keyspace {name:?} is there more than once: rename one"));
    }
    if *partitions == 0 {
        found.push(format!("keyspace {name:?}: partitions is 0: choose at least 1"));
    }
    let most = config.nodes.len().min(wire::CHAIN_MAX);
    if !(1..=most).contains(&usize::from(*replicas)) {
        found.push(format!(
            "keyspace {name:?}: replicas is {replicas}: choose 1 to {most}, one per node and at \
             most {}",
            wire::CHAIN_MAX
        ));
    }
    if prefix.len() > wire::PREFIX_MAX {
        found.push(format!("keyspace {name:?}: the prefix is over {} bytes", wire::PREFIX_MAX));
    }
    if *kind == KeyspaceForm::Hash && !(prefix.is_empty() && splits.is_empty()) {
        found.push(format!(
            "keyspace {name:?}: prefix and splits are for kind = \"range\": remove them"
        ));
    }
    if !splits.is_empty() && u32::try_from(splits.len()).ok() != partitions.checked_sub(1) {
        found.push(format!(
            "keyspace {name:?}: {} split keys make {} partitions: set partitions to that",
            splits.len(),
            splits.len() + 1
        ));
    }
    if !splits.is_sorted_by(|a, b| a < b) || splits.iter().any(|key| !key.starts_with(prefix)) {
        found.push(format!(
            "keyspace {name:?}: sort the split keys, and let each begin with the prefix"
        ));
    }
}

/// Others must be able to send to it.
fn check_reachable(what: &str, at: SocketAddr, found: &mut Vec<String>) {
    if at.ip().is_unspecified() {
        found.push(format!(
            "{what} is {at}: name the one address that others reach it at, not a wildcard"
        ));
    }
    if at.port() == 0 {
        found.push(format!("{what} has port 0: choose a port"));
    }
}
