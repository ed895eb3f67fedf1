//! A Redis server on each node's host of a rack, a client that finds the server of a key itself,
//! and nutcracker on the switch's host, which finds it for a client.

use crate::load::closed_loop::{Connection, Reply, Request, now};
use crate::load::cores::Cores;
use crate::pipe::Pipe;
use crate::pipe::redis;
use crate::rack::lab::{Lab, NODES, soft_interrupt_threads};
use ::lab::process::Running;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const REDIS_PORT: u16 = 6379;
/// Where nutcracker listens: at the address of the rack's switch.
const FORWARDER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 77, 255, 1)), 22_121);

fn server(id: u16) -> SocketAddr {
    let [_, id] = id.to_be_bytes();
    (Ipv4Addr::new(10, 77, 1, id), REDIS_PORT).into()
}

/// Redis servers, and what forwards to them.
#[derive(Debug)]
pub(crate) struct RedisRack {
    servers: Vec<Running>,
    /// `None` if nutcracker is not installed.
    forwarder: Option<Running>,
    /// What they print, and the forwarder's configuration.
    _files: TempDir,
}

/// Whether a program can be started; says how to get it if not.
fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(_) => true,
        Err(error) => {
            eprintln!(
                "\nSKIPPED: {program} cannot be run ({error}); its rows are missing. To install \
                 it on Debian or Ubuntu: apt-get install -y {program}\n"
            );
            false
        }
    }
}

impl RedisRack {
    /// Starts what is installed; `None` without redis-server.
    pub(crate) fn start(cores: &Cores, lab: &Lab) -> Option<Self> {
        if !is_installed("redis-server") {
            return None;
        }
        let files = TempDir::new().expect("a temporary directory");
        let place = |host| ServerLocation { cores, lab, host, files: files.path() };
        let servers = (1..=NODES).map(|id| start_redis(place(format!("n{id}")), id)).collect();
        let forwarder = is_installed("nutcracker").then(|| start_forwarder(place("sw".to_owned())));
        Some(Self { servers, forwarder, _files: files })
    }

    /// Processes that work for a client.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let ours = self.servers.iter().chain(&self.forwarder);
        let ours = ours.map(|it| it.pid().as_raw().cast_unsigned());
        ours.chain(soft_interrupt_threads()).collect()
    }

    /// A client's connection to nutcracker, if there is one.
    pub(crate) fn forwarded(&self, lab: &Lab) -> Option<Pipe> {
        self.forwarder.as_ref()?;
        Some(lab.on("c0", || Pipe::new(connect(FORWARDER), redis::PROTOCOL)))
    }

    /// A client's connections to all servers.
    pub(crate) fn sharded(&self, lab: &Lab) -> Sharded {
        lab.on("c0", || Sharded::connect().expect("an epoll descriptor"))
    }
}

/// Where a server runs, and where its files are.
struct ServerLocation<'a> {
    cores: &'a Cores,
    lab: &'a Lab,
    host: String,
    files: &'a Path,
}

fn start_redis(place: ServerLocation<'_>, id: u16) -> Running {
    let (at, port) = (server(id), REDIS_PORT.to_string());
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", &at.ip().to_string(), "--port", &port, "--save", ""])
        .args(["--appendonly", "no", "--io-threads", "1", "--daemonize", "no"])
        .args(["--protected-mode", "no", "--loglevel", "warning"]);
    start(&place, command, at)
}

/// nutcracker with one connection to each server.
fn start_forwarder(place: ServerLocation<'_>) -> Running {
    let servers = (1..=NODES).map(|id| format!("    - {}:1 n{id}\n", server(id)));
    let config = format!(
        "rack:\n  listen: {FORWARDER}\n  redis: true\n  hash: fnv1a_64\n  \
         distribution: modula\n  preconnect: true\n  auto_eject_hosts: false\n  \
         server_connections: 1\n  servers:\n{}",
        servers.collect::<String>()
    );
    let file = place.files.join("nutcracker.yml");
    std::fs::write(&file, config).expect("room for it");
    let mut command = Command::new("nutcracker");
    command.arg("-c").arg(file).args(["-a", "127.0.0.1"]);
    start(&place, command, FORWARDER)
}

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(10);

fn start(place: &ServerLocation<'_>, mut command: Command, at: SocketAddr) -> Running {
    let ServerLocation { cores, lab, host, files } = place;
    command.stdin(Stdio::null());
    let log = files.join(format!("{host}.log"));
    let run = || cores.as_server(|| Running::start(&mut command, log));
    let mut process = lab.on(host, run).expect("it is installed");
    let started = now();
    while lab.on("c0", || TcpStream::connect(at)).is_err() {
        let ended = process.end();
        assert!(ended.is_none(), "{command:?} ended by itself: {ended:?}");
        assert!(started.elapsed() < START_MAX, "{command:?} does not listen");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    process
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_nonblocking(true).expect("sockets can");
    stream.set_nodelay(true).expect("TCP can");
    stream
}

/// A connection to each server, of which a key has one.
#[derive(Debug)]
pub(crate) struct Sharded {
    shards: Vec<Shard>,
    epoll: Epoll,
}

#[derive(Debug)]
struct Shard {
    pipe: Pipe,
    /// Numbers of the requests that it has not answered, in their order.
    waiting: VecDeque<u64>,
}

impl Sharded {
    fn connect() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut shards = Vec::new();
        for id in 1..=NODES {
            let pipe = Pipe::new(connect(server(id)), redis::PROTOCOL);
            epoll.add(pipe.fd(), EpollEvent::new(EpollFlags::EPOLLIN, shards.len() as u64))?;
            shards.push(Shard { pipe, waiting: VecDeque::new() });
        }
        Ok(Self { shards, epoll })
    }
}

/// The server of a key as nutcracker finds it, so that both ways lead to the same: the low bits of
/// FNV-1a modulo the number of servers.
fn shard_of(key: &[u8]) -> usize {
    let hash = key.iter().fold(FNV_INIT, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(FNV));
    usize::try_from(hash).expect("an index") % usize::from(NODES)
}

const FNV_INIT: u32 = 0x8422_2325;
const FNV: u32 = 0x1b3;

impl Connection for Sharded {
    fn queue(&mut self, request: &Request<'_>) {
        let shard = self.shards.get_mut(shard_of(request.key)).expect("one of them");
        shard.waiting.push_back(request.seq);
        shard.pipe.queue(request);
    }

    fn send(&mut self) -> io::Result<()> {
        self.shards.iter_mut().try_for_each(|shard| shard.pipe.send())
    }

    /// The rest goes when replies have come: what has no room waits for others to be answered.
    fn is_blocked(&self) -> bool {
        self.shards.iter().any(|shard| shard.pipe.is_blocked())
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, Reply<'_>)) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); NODES as usize];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO)?;
        for event in events.iter().take(count) {
            let index = usize::try_from(event.data()).expect("an index");
            let Shard { pipe, waiting } = self.shards.get_mut(index).expect("one of them");
            pipe.receive(&mut |_, reply| {
                take(waiting.pop_front().expect("a reply to something"), reply);
            })?;
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn may_lose(&self) -> bool {
        false
    }
}
