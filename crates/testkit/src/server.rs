//! Redis, memcached and etcd processes of a test: on loopback, on ports of their own, killed by
//! their process ids when the test ends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A process that stays until it is dropped.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    child: Child,
    pub port: u16,
    options: Vec<String>,
    directory: TempDir,
    /// Of an etcd under TLS: the directory of its certificates.
    certificates: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Redis,
    Memcached,
    Etcd,
}

/// How long a server may take until it answers, and how often to look.
const READY_TRIES: u32 = 1_000;
const TRY_EVERY: Duration = Duration::from_millis(30);

impl Kind {
    /// The first of its programs that there is.
    fn program(self) -> Option<&'static str> {
        let names: &[&str] = match self {
            Self::Redis => &["redis-server", "valkey-server"],
            Self::Memcached => &["memcached"],
            Self::Etcd => &["etcd"],
        };
        let there = |name: &&&str| {
            let version = Command::new(name).arg("--version").stdout(Stdio::null()).status();
            version.is_ok_and(|status| status.success())
        };
        names.iter().find(there).copied()
    }

    fn start(self, port: u16, setup: &Setup<'_>) -> Option<Child> {
        let Setup { options, directory, certificates } = *setup;
        let mut command = Command::new(self.program()?);
        let port = port.to_string();
        match self {
            Self::Redis => command
                .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"])
                .arg(directory),
            // A server that runs as root demands to be told so.
            Self::Memcached => {
                command.args(["-p", &port, "-l", "127.0.0.1", "-U", "0", "-u"]).arg("root")
            }
            Self::Etcd => {
                let scheme = if certificates.is_some() { "https" } else { "http" };
                let at = format!("{scheme}://127.0.0.1:{port}");
                let peer = format!("http://127.0.0.1:{}", free_port());
                command
                    .args(["--listen-client-urls", &at, "--advertise-client-urls", &at])
                    .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                    .args(["--initial-cluster", &format!("default={peer}"), "--data-dir"])
                    .arg(directory.join("etcd"));
                if let Some(made) = certificates {
                    let file = |name: &str| made.join(name);
                    command.arg("--client-cert-auth").arg("--cert-file").arg(file("server.crt"));
                    command.arg("--key-file").arg(file("server.key"));
                    command.arg("--trusted-ca-file").arg(file("ca.crt"));
                }
                &mut command
            }
        };
        let command = command.args(options).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Some(child.expect("the program was there a moment ago"))
    }
}

/// How a server is started.
#[derive(Clone, Copy)]
struct Setup<'a> {
    options: &'a [String],
    directory: &'a Path,
    certificates: Option<&'a Path>,
}

impl Server {
    /// A Redis, or a Valkey, without data; `None` if there is no such program.
    pub fn redis(options: &[&str]) -> Option<Self> {
        Self::start(Kind::Redis, options, None)
    }

    /// A memcached; `None` if there is no such program.
    pub fn memcached() -> Option<Self> {
        Self::memcached_with(&[])
    }

    /// The same with options.
    pub fn memcached_with(options: &[&str]) -> Option<Self> {
        Self::start(Kind::Memcached, options, None)
    }

    /// An etcd of one member, with these options; `None` if there is no such program.
    pub fn etcd(options: &[&str]) -> Option<Self> {
        Self::start(Kind::Etcd, options, None)
    }

    /// The same under TLS: it shows `server.crt` of this directory, and takes whoever has a
    /// certificate of `ca.crt`, as `client.crt` is. The keys lie beside them.
    pub fn etcd_under_tls(certificates: &Path) -> Option<Self> {
        Self::start(Kind::Etcd, &[], Some(certificates.to_owned()))
    }

    fn start(kind: Kind, options: &[&str], certificates: Option<PathBuf>) -> Option<Self> {
        let directory = TempDir::new().expect("a temporary directory");
        let port = free_port();
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let made = certificates.as_deref();
        let setup = Setup { options: &options, directory: directory.path(), certificates: made };
        let child = kind.start(port, &setup)?;
        let server = Self { kind, child, port, options, directory, certificates };
        server.wait();
        Some(server)
    }

    /// Its address, as a configuration has it.
    pub fn url(&self) -> String {
        let scheme = match self.kind {
            Kind::Redis => "redis",
            Kind::Memcached => "memcached",
            Kind::Etcd if self.certificates.is_some() => "etcds",
            Kind::Etcd => "etcd",
        };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    fn wait(&self) {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let (ask, answer) = match self.kind {
            Kind::Redis => (&b"PING\r\n"[..], &b"+PONG"[..]),
            Kind::Memcached => (&b"version\r\n"[..], &b"VERSI"[..]),
            Kind::Etcd => return self.wait_for_etcd(),
        };
        let answers = || -> std::io::Result<bool> {
            let mut stream = TcpStream::connect(at)?;
            stream.set_read_timeout(Some(TRY_EVERY * 10))?;
            stream.write_all(ask)?;
            let mut found = [0; 5];
            stream.read_exact(&mut found)?;
            Ok(found == answer)
        };
        for _ in 0..READY_TRIES {
            if answers().is_ok_and(|ready| ready) {
                return;
            }
            std::thread::park_timeout(TRY_EVERY);
        }
        panic!("{:?} does not answer", self.kind);
    }

    /// Until it has a leader.
    fn wait_for_etcd(&self) {
        for _ in 0..READY_TRIES {
            let health = self.etcdctl(&["endpoint", "health"]);
            if health.is_some_and(|status| status.success()) {
                return;
            }
            std::thread::park_timeout(TRY_EVERY);
        }
        panic!("etcd does not answer");
    }

    /// What becomes of a command of etcdctl; `None` if there is no such program.
    pub fn etcdctl(&self, arguments: &[&str]) -> Option<ExitStatus> {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints=127.0.0.1:{}", self.port));
        if let Some(made) = &self.certificates {
            let files = [("--cacert", "ca.crt"), ("--cert", "client.crt"), ("--key", "client.key")];
            files.iter().for_each(|(option, file)| {
                command.arg(option).arg(made.join(file));
            });
        }
        let command = command.arg("--command-timeout=1s").args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()
    }

    /// Stops it as `kill -STOP` does: it is there, and does nothing.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {signal} {pid}");
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().expect("our own child");
    }

    /// Starts it once more, where it was and as it was.
    pub fn come_back(&mut self) {
        let (options, directory) = (&self.options, self.directory.path());
        let setup = Setup { options, directory, certificates: self.certificates.as_deref() };
        let child = self.kind.start(self.port, &setup);
        self.child = child.expect("the program was there before");
        self.wait();
    }

    /// What redis-cli says to a command.
    pub fn redis_cli(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let mut command = Command::new("redis-cli");
        let output = command.args(["-p", &port]).args(arguments).output();
        let output = output.expect("redis-cli comes with redis-server");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// How often it has carried out a command.
    pub fn calls(&self, command: &str) -> u64 {
        let all = self.redis_cli(&["INFO", "commandstats"]);
        let line = all.lines().find_map(|l| l.strip_prefix(&format!("cmdstat_{command}:calls=")));
        let calls = line.and_then(|line| line.split(',').next());
        calls.map_or(0, |calls| calls.parse().expect("a number"))
    }
}

/// A port that nobody has a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
