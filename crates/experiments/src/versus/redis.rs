//! A Redis Cluster of masters, and nutcracker before the same servers.

use super::process::{Process, ServerProcess};
use super::work::{WorkDone, free_addresses, wait};
use anyhow::{Context, Result};
use console::note;
use redis::Connection;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Servers that run until this is dropped.
#[derive(Debug)]
pub(crate) struct RedisCluster {
    nodes: Vec<ServerProcess>,
    /// Where the servers listen.
    pub(crate) addresses: Vec<SocketAddr>,
    nutcracker: Option<(Process, SocketAddr)>,
}

/// Of a Redis Cluster.
const SLOTS: usize = 16_384;

/// A server that has had its share waits; others must not take it for dead.
const NODE_TIMEOUT_MS: &str = "60000";

impl RedisCluster {
    /// Starts a cluster of so many masters: a power of two. Slots go around the servers, so that
    /// CRC-16 modulo their number finds the server of a key, for nutcracker too.
    pub(crate) fn start(directory: &Path, count: u16) -> Result<Self> {
        let count = usize::from(count);
        let mut free = free_addresses(2 * count)?;
        let buses = free.split_off(count);
        let mut nodes = Vec::new();
        for (index, (at, bus)) in free.iter().zip(&buses).enumerate() {
            nodes.push(start(directory, index, *at, *bus)?);
        }
        let mut connections = Vec::new();
        for at in &free {
            wait("redis-server listens", || Ok(TcpStream::connect(at).is_ok()))?;
            let client = redis::Client::open(format!("redis://{at}"))?;
            connections.push(client.get_connection().context("redis-server does not answer")?);
        }
        join(&mut connections, &free, &buses)?;
        let nutcracker = nutcracker(directory, &free)?;
        Ok(Self { nodes, addresses: free, nutcracker })
    }

    /// Where nutcracker listens, if it is installed.
    pub(crate) fn nutcracker(&self) -> Option<SocketAddr> {
        self.nutcracker.as_ref().map(|(_, at)| *at)
    }

    /// Sets what share of one processor each server gets.
    pub(crate) fn limit(&self, share: Option<f64>) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.limit(share))
    }

    /// What was done so far.
    pub(crate) fn work(&self) -> Result<WorkDone> {
        let nodes = self.nodes.iter().map(ServerProcess::cpu).sum::<Result<Duration>>()?;
        let between = match &self.nutcracker {
            Some((process, _)) => process.cpu()?,
            None => Duration::ZERO,
        };
        let served = self.addresses.iter().map(served).collect::<Result<Vec<u64>>>()?;
        Ok(WorkDone { served, nodes, between })
    }
}

fn start(directory: &Path, index: usize, at: SocketAddr, bus: SocketAddr) -> Result<ServerProcess> {
    let (port, bus) = (at.port().to_string(), bus.port().to_string());
    let (home, nodes) = (directory.display().to_string(), format!("redis-{index}.conf"));
    let arguments = [
        ["--bind", "127.0.0.1"],
        ["--port", &port],
        ["--cluster-enabled", "yes"],
        ["--cluster-port", &bus],
        ["--cluster-config-file", &nodes],
        ["--cluster-node-timeout", NODE_TIMEOUT_MS],
        ["--dir", &home],
        ["--save", ""],
        ["--appendonly", "no"],
        ["--io-threads", "1"],
        ["--loglevel", "warning"],
    ];
    let arguments: Vec<String> = arguments.iter().flatten().map(|it| (*it).to_owned()).collect();
    ServerProcess::start("redis-server", &arguments, directory, Some(&format!("redis-{index}")))
        .context(INSTALL_REDIS)
}

/// Makes a cluster of servers.
fn join(servers: &mut [Connection], at: &[SocketAddr], buses: &[SocketAddr]) -> Result<()> {
    let count = servers.len();
    for (index, server) in servers.iter_mut().enumerate() {
        let slots: Vec<usize> = (index..SLOTS).step_by(count).collect();
        redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots).exec(server)?;
        redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(index + 1).exec(server)?;
    }
    let first = servers.first_mut().context("a cluster without servers")?;
    for (at, bus) in at.iter().zip(buses).skip(1) {
        let mut meet = redis::cmd("CLUSTER");
        meet.arg("MEET").arg(at.ip().to_string()).arg(at.port()).arg(bus.port()).exec(first)?;
    }
    for server in servers {
        wait("Redis Cluster serves all slots", || {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(server)?;
            let has = |line: &str| info.lines().any(|it| it == line);
            Ok(has("cluster_state:ok") && has(&format!("cluster_known_nodes:{count}")))
        })?;
    }
    Ok(())
}

/// nutcracker with one connection to each server, unless it is not installed.
fn nutcracker(directory: &Path, servers: &[SocketAddr]) -> Result<Option<(Process, SocketAddr)>> {
    let mut command = Command::new("nutcracker");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().is_err() {
        note!("SKIPPED: no nutcracker, its rows are missing: apt-get install nutcracker");
        return Ok(None);
    }
    let free = free_addresses(2)?;
    let [at, statistics] = free[..] else { anyhow::bail!("two addresses were asked for") };
    let lines = servers.iter().enumerate().map(|(index, at)| format!("    - {at}:1 n{index}\n"));
    let text = format!(
        "rack:\n  listen: {at}\n  redis: true\n  hash: crc16\n  distribution: modula\n  \
         preconnect: true\n  auto_eject_hosts: false\n  server_connections: 1\n  servers:\n{}",
        lines.collect::<String>()
    );
    let config = directory.join("nutcracker.yml");
    std::fs::write(&config, text).context("cannot write a configuration")?;
    let port = statistics.port().to_string();
    let config = config.display().to_string();
    let arguments = ["-c", &config, "-a", "127.0.0.1", "-s", &port].map(str::to_owned);
    let process = Process::start("nutcracker", &arguments, directory)?;
    wait("nutcracker listens", || Ok(TcpStream::connect(at).is_ok()))?;
    Ok(Some((process, at)))
}

/// A Redis server and its replicas, all of which sync each write to disk.
#[derive(Debug)]
pub(crate) struct Durable {
    _servers: Vec<Process>,
    /// Where clients connect.
    pub(crate) primary: SocketAddr,
}

impl Durable {
    /// Starts one with so many replicas, with their files below `directory`.
    pub(crate) fn start(directory: &Path, replicas: usize) -> Result<Self> {
        let free = free_addresses(1 + replicas)?;
        let primary = *free.first().context("one address was asked for")?;
        let mut servers = Vec::new();
        for (index, at) in free.iter().enumerate() {
            let home = directory.join(format!("redis-{index}"));
            std::fs::create_dir(&home).context("no directory for Redis")?;
            let (port, home) = (at.port().to_string(), home.display().to_string());
            let mut arguments: Vec<&str> = vec!["--bind", "127.0.0.1", "--port", &port];
            arguments.extend(["--dir", &home, "--save", "", "--loglevel", "warning"]);
            arguments.extend(["--appendonly", "yes", "--appendfsync", "always"]);
            let of = format!("127.0.0.1 {}", primary.port());
            if index > 0 {
                arguments.extend(["--replicaof", &of]);
            }
            let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
            let server = Process::start("redis-server", &arguments, directory);
            servers.push(server.context(INSTALL_REDIS)?);
        }
        wait("redis-server has all replicas", || {
            let client = redis::Client::open(format!("redis://{primary}"))?;
            let Ok(mut connection) = client.get_connection() else { return Ok(false) };
            let info: String = redis::cmd("INFO").arg("replication").query(&mut connection)?;
            Ok(info.lines().filter(|line| line.contains("state=online")).count() == replicas)
        })?;
        Ok(Self { _servers: servers, primary })
    }
}

const INSTALL_REDIS: &str = "is redis-server installed? apt-get install redis-server";

/// Commands about keys that a server has carried out.
fn served(at: &SocketAddr) -> Result<u64> {
    let client = redis::Client::open(format!("redis://{at}"))?;
    let mut connection = client.get_connection().context("redis-server does not answer")?;
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut connection)?;
    let calls = |name: &str| {
        let head = format!("cmdstat_{name}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&head));
        line.and_then(|it| it.split(',').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    Ok(calls("get") + calls("set") + calls("mget"))
}
