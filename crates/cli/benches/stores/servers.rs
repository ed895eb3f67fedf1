//! Redis and memcached as processes of this benchmark.

use crate::load::closed_loop::now;
use crate::load::cores::Cores;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    at: SocketAddr,
    version: String,
}

/// Why there is no server.
#[derive(Debug)]
pub(crate) struct Unavailable {
    program: &'static str,
    source: io::Error,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, source } = self;
        write!(f, "{program} cannot be run ({source}); its rows are missing. ")?;
        write!(f, "To install it on Debian or Ubuntu: apt-get install -y {program}")
    }
}

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(10);

impl Server {
    /// Redis without persistence, with one thread that serves.
    pub(crate) fn redis(cores: &Cores) -> Result<Self, Unavailable> {
        let at = free_address();
        let port = at.port().to_string();
        let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly"];
        let more = ["no", "--io-threads", "1", "--daemonize", "no", "--loglevel", "warning"];
        Self::start(cores, "redis-server", &[&arguments[..], &more].concat(), at)
    }

    /// memcached with one thread that serves, over TCP and UDP.
    pub(crate) fn memcached(cores: &Cores) -> Result<Self, Unavailable> {
        let at = free_address();
        let port = at.port().to_string();
        // Not limited to 20 requests of a connection at a time: there is only one connection.
        let arguments = ["-t", "1", "-m", "1024", "-l", "127.0.0.1", "-R", "1000", "-u", "root"];
        Self::start(cores, "memcached", &[&arguments[..], &["-p", &port, "-U", &port]].concat(), at)
    }

    fn start(
        cores: &Cores,
        program: &'static str,
        arguments: &[&str],
        at: SocketAddr,
    ) -> Result<Self, Unavailable> {
        let unavailable = |source| Unavailable { program, source };
        let version = Command::new(program).arg("--version").output().map_err(unavailable)?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let child = cores.spawn_server(&mut command).map_err(unavailable)?;
        let mut server = Self { child, at, version };
        let started = now();
        while TcpStream::connect(at).is_err() {
            let ended = server.child.try_wait().expect("our own child");
            assert!(ended.is_none(), "{program} {arguments:?} ended by itself: {ended:?}");
            assert!(started.elapsed() < START_MAX, "{program} does not listen at {at}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Connects without waiting on reads or writes, and without holding small ones back.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).expect("it listens");
        stream.set_nonblocking(true).expect("sockets can");
        stream.set_nodelay(true).expect("TCP can");
        stream
    }

    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It keeps nothing; it may have ended by itself.
        self.child.kill().ok();
        self.child.wait().expect("our own child");
    }
}

/// A port that is free for both protocols: neither server takes 0 for any.
fn free_address() -> SocketAddr {
    loop {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let at = held.local_addr().expect("bound");
        if UdpSocket::bind(at).is_ok() {
            return at;
        }
    }
}
