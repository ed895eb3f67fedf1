//! What must hold between the parts of a configuration. Every problem is a sentence that says what
//! to do.

use super::content::check_content;
use super::etcd::check_etcd;
use super::openflow::check_openflow;
use super::security::check_security;
use super::{
    CacheSection, Config, ControllerSection, EngineKind, KeyspaceForm, KeyspaceSection,
    NodeSection, Problems, SwitchSection,
};
use cluster::{CACHE_SHARDS_MAX, CacheSpec, NodeSpec};
use controller::SWITCHES_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

/// Threads of a switch at most: more than the cores of any machine it is worth running on.
pub(super) const THREADS_MAX: usize = 256;

pub(super) fn problems(config: &Config) -> Problems {
    let mut found = Vec::new();
    check_switches(config, &mut found);
    check_lease(config, &mut found);
    config.nodes.iter().for_each(|node| check_node(node, &mut found));
    check_together(config, &mut found);
    check_caches(config, &mut found);
    check_content(config, &mut found);
    check_openflow(config, &mut found);
    check_admins(config, &mut found);
    check_security(config, &mut found);
    check_directories(config, &mut found);
    check_etcd(config, &mut found);
    check_backends(config, &mut found);
    for (index, keyspace) in config.keyspaces.iter().enumerate() {
        check_keyspace(config, index, keyspace, &mut found);
    }
    let partitions: u64 = config.keyspaces.iter().map(|it| u64::from(it.partitions())).sum();
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

/// What a switch is called: one alone has a table of its own.
fn switch_name(config: &Config, index: usize) -> String {
    if config.switches.len() == 1 { "[switch]".into() } else { format!("switch {index}") }
}

fn check_switches(config: &Config, found: &mut Vec<String>) {
    if !(1..=SWITCHES_MAX).contains(&config.switches.len()) {
        let count = config.switches.len();
        found.push(format!("there are {count} switches: describe 1 to {SWITCHES_MAX}"));
    }
    let mut services = BTreeSet::new();
    for (index, switch) in config.switches.iter().enumerate() {
        let (name, SwitchSection { service, threads, .. }) = (switch_name(config, index), switch);
        check_reachable(&format!("service of {name}"), *service, found);
        if !(1..=THREADS_MAX).contains(threads) {
            found.push(format!("threads of {name} is {threads}: choose 1 to {THREADS_MAX}"));
        }
        if !services.insert(service) {
            found.push(format!(
                "{name}: the service address {service} is another switch's: give each its own, \
                 and clients all of them"
            ));
        }
    }
}

/// Shorter, and members that are only slow would be taken to be gone all the time.
const LEASE_MS_MIN: u64 = 50;
/// Longer, and a node that fails makes its keys wait for longer than people do.
const LEASE_MS_MAX: u64 = 60_000;

fn check_lease(config: &Config, found: &mut Vec<String>) {
    let lease_ms = config.controller.lease_ms;
    if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&lease_ms) {
        found.push(format!(
            "lease_ms in [controller] is {lease_ms}: choose {LEASE_MS_MIN} to {LEASE_MS_MAX}"
        ));
    }
    if config.controller.copy_bytes_per_s == 0 {
        found.push(
            "copy_bytes_per_s in [controller] is 0, so that no lost copy would ever be replaced: \
             choose a rate, and pause copies with: keyway cluster pause-copies"
                .into(),
        );
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
        (EngineKind::Redis | EngineKind::Memcached, Some(_)) => found.push(format!(
            "node {id}: the engine {:?} keeps nothing in a directory: remove data",
            engine.name()
        )),
        (EngineKind::Fjall, Some(_)) | (_, None) => {}
    }
    check_backend(node, found);
}

fn check_backend(node: &NodeSection, found: &mut Vec<String>) {
    let NodeSection { id, engine, backend, .. } = node;
    let name = engine.name();
    match backend {
        None if engine.has_backend() => found.push(format!(
            "node {id}: the engine {name:?} needs an address: add backend = \"{name}://HOST:PORT\""
        )),
        Some(backend) if !engine.takes(backend) => found.push(format!(
            "node {id}: {backend} is no store for the engine {name:?}: remove backend, or choose \
             the engine that goes with it"
        )),
        None | Some(_) => {}
    }
}

/// What engines over stores of others need of each other.
fn check_backends(config: &Config, found: &mut Vec<String>) {
    let mut owners: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in &config.nodes {
        if let Some(backend) = &node.backend {
            owners.entry(backend.secret()).or_default().push(format!("node {}", node.id));
        }
    }
    for owners in owners.values().filter(|owners| owners.len() > 1) {
        found.push(format!("{} share a backend: give each its own", owners.join(" and ")));
    }
    // Heads give out other first versions, because of what was there before.
    let (with, without): (Vec<_>, Vec<_>) =
        config.nodes.iter().partition(|node| node.engine.has_backend());
    if let (Some(with), Some(without)) = (with.first(), without.first()) {
        found.push(format!(
            "node {} has a backend and node {} has none: give all nodes one, or none",
            with.id, without.id
        ));
    }
}

/// Nodes among each other, and with the switches.
fn check_together(config: &Config, found: &mut Vec<String>) {
    if config.nodes.is_empty() {
        found.push("there is no node: add at least one [[node]]".into());
    }
    let mut names: BTreeMap<u16, usize> = BTreeMap::new();
    config.nodes.iter().for_each(|node| *names.entry(node.id).or_default() += 1);
    for (id, _) in names.iter().filter(|(_, times)| **times > 1) {
        found.push(format!("node {id} is there more than once: give each node its own id"));
    }
    let specs: Vec<NodeSpec> = config.nodes.iter().map(NodeSection::spec).collect();
    for (index, spec) in specs.iter().enumerate() {
        let id = spec.id;
        // Two intervals of ports overlap if and only if one holds the other's first.
        let shares = |(other, it): (usize, &NodeSpec)| other != index && spec.owns(it.endpoint);
        if specs.iter().enumerate().any(shares) {
            found.push(format!(
                "node {id}: a port of its shards is another node's: leave as many ports free after \
                 listen as it has shards"
            ));
        }
        for switch in &config.switches {
            if spec.owns(switch.service.into()) {
                let port = switch.service.port();
                found.push(format!("node {id} and a switch share port {port}"));
            }
        }
    }
    check_network(config, found);
}

/// Caches among each other, and with nodes and switches.
fn check_caches(config: &Config, found: &mut Vec<String>) {
    let most = wire::CACHES_MAX;
    if config.caches.len() > most {
        found.push(format!("there are {} caches: describe {most} or fewer", config.caches.len()));
    }
    let nodes: Vec<NodeSpec> = config.nodes.iter().map(NodeSection::spec).collect();
    for (index, cache) in config.caches.iter().enumerate() {
        let CacheSection { id, listen, .. } = *cache;
        check_reachable(&format!("listen of cache {id}"), listen, found);
        if usize::from(id) >= most {
            found.push(format!("cache {id}: choose an id from 0 to {}", most - 1));
        }
        if !(1..=CACHE_ENTRIES_MAX).contains(&cache.entries) || cache.rules_per_second == 0 {
            found.push(format!(
                "cache {id} holds {} keys and changes {} rules a second: choose 1 to \
                 {CACHE_ENTRIES_MAX} keys, and 1 rule or more",
                cache.entries, cache.rules_per_second
            ));
        }
        if !(1..=CACHE_SHARDS_MAX).contains(&cache.shards)
            || listen.port().checked_add(cache.shards - 1).is_none()
        {
            found.push(format!(
                "cache {id}: {} shards from port {} do not fit: choose 1 to {CACHE_SHARDS_MAX} \
                 shards and a lower port",
                cache.shards,
                listen.port()
            ));
        }
        let spec = cache.spec();
        let mut before = config.caches.iter().take(index);
        if before.clone().any(|other| other.id == id) {
            found.push(format!("cache {id} is there more than once: give each cache its own id"));
        }
        // Two intervals of ports overlap if and only if one holds the other's first.
        let shared = |other: &CacheSpec| other.owns(listen.into()) || spec.owns(other.endpoint);
        if let Some(other) = before.find(|other| shared(&other.spec())) {
            found.push(format!(
                "cache {id} and cache {} share a port: leave as many free after listen as each \
                 has shards",
                other.id
            ));
        }
        let on_node = |node: &&NodeSpec| node.owns(listen.into()) || spec.owns(node.endpoint);
        if let Some(node) = nodes.iter().find(on_node) {
            let node = node.id;
            found.push(format!(
                "cache {id} is at {listen}, a port of node {node}: choose one that no node's \
                 shards have"
            ));
        }
        if let Some(it) = config.switches.iter().find(|it| spec.owns(it.service.into())) {
            found.push(format!("cache {id} and a switch share {}: move one", it.service));
        }
    }
}

/// All that send datagrams to each other must be able to.
fn check_network(config: &Config, found: &mut Vec<String>) {
    let Some(first) = config.switches.first().map(|switch| switch.service) else { return };
    let switches = (0..).zip(&config.switches).skip(1);
    let switches = switches.map(|(index, it)| (switch_name(config, index), it.service));
    let nodes = config.nodes.iter().map(|it| (format!("node {}", it.id), it.listen));
    let caches = config.caches.iter().map(|it| (format!("cache {}", it.id), it.listen));
    for (name, at) in switches.chain(nodes).chain(caches) {
        if at.is_ipv4() != first.is_ipv4() {
            found.push(format!(
                "{name} is at {at} and the switch at {first}: choose IPv4 or IPv6 for both"
            ));
        }
        if at.ip().is_loopback() != first.ip().is_loopback() {
            found.push(format!(
                "of {at} ({name}) and {first} (switch) one is a loopback address, so that they \
                 cannot reach each other: use loopback addresses for all or for none"
            ));
        }
    }
}

fn check_admins(config: &Config, found: &mut Vec<String>) {
    let switches = config.switches.iter().enumerate();
    let mut all: Vec<(String, SocketAddr)> =
        switches.map(|(index, it)| (switch_name(config, index), it.admin)).collect();
    let controllers = config.controller.admins().into_iter();
    all.extend(controllers.map(|admin| ("[controller]".to_owned(), admin)));
    all.extend(config.nodes.iter().map(|node| (format!("node {}", node.id), node.admin)));
    all.extend(config.caches.iter().map(|cache| (format!("cache {}", cache.id), cache.admin)));
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
    let ControllerSection { data, store, other_admins, .. } = &config.controller;
    if data.as_os_str().is_empty() && store.is_none() {
        found.push(
            "[controller] has no store: set data to a directory, or store to an etcd".to_owned(),
        );
    }
    if store.is_none() && !other_admins.is_empty() {
        found.push(
            "other_admins in [controller] is for controllers on several machines, which keep \
             their state in an etcd: set store, or remove it"
                .to_owned(),
        );
    }
    if !data.as_os_str().is_empty() {
        owners.entry(data).or_default().push("[controller]".into());
    }
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
    let KeyspaceSection { name, kind, prefix, replicas, splits, hot, .. } = keyspace;
    let partitions = keyspace.partitions();
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
    if partitions == 0 {
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
    if hot.caches() && config.caches.is_empty() {
        found.push(format!(
            "keyspace {name:?}: there is no cache to hold its hot keys: add a [[cache]], or choose \
             another hot"
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

/// Keys that a cache may hold: switches have room for as many rules.
const CACHE_ENTRIES_MAX: usize = 65_536;
