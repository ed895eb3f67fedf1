//! Redis processes behind the nodes of a rack, one for each, reached over sockets in its directory:
//! they need no network.

use anyhow::{Context, anyhow};
use console::exit::Failure;
use lab::process::{Identity, pause};
use nix::unistd::Pid;
use runtime::store::BackendUrl;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One of them; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RedisProcess {
    child: Child,
    socket: PathBuf,
}

/// What processes were asked for so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// MGETs,
    pub(crate) mgets: u64,
    /// and the keys in them.
    pub(crate) keys: u64,
}

impl Reads {
    /// What all of these were asked for.
    ///
    /// # Errors
    ///
    /// If one does not say.
    pub(crate) fn of(all: &[RedisProcess]) -> Result<Self, Failure> {
        let told = all.iter().map(|redis| {
            let text = redis.info().context("a Redis does not say what it was asked for")?;
            Ok(Self::told(&text))
        });
        let told: Vec<Self> = told.collect::<Result<_, Failure>>()?;
        let sum = |of: fn(&Self) -> u64| told.iter().map(of).sum();
        Ok(Self { mgets: sum(|it| it.mgets), keys: sum(|it| it.keys) })
    }

    fn told(info: &str) -> Self {
        let number = |name: &str| {
            let told = info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            let digits = told.split(|it: char| !it.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        // A node reads with MGET alone.
        let keys = number("keyspace_hits:") + number("keyspace_misses:");
        Self { mgets: number("cmdstat_mget:calls="), keys }
    }

    /// What they were asked for since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { mgets: self.mgets - before.mgets, keys: self.keys - before.keys }
    }
}

/// What it may be called.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// How long one may take until it answers, and how often to look.
const READY_TRIES: u32 = 500;
const TRY_EVERY: Duration = Duration::from_millis(20);

impl RedisProcess {
    /// Starts one for each of so many nodes, without data and without persistence, with their
    /// files in this directory.
    pub(crate) fn start(nodes: u16, directory: &Path) -> Result<Vec<Self>, Failure> {
        let program = Self::program()?;
        fs::create_dir_all(directory).context("cannot create a directory for Redis")?;
        let start = |node| -> Result<Self, Failure> {
            let socket = socket(directory, node);
            let redis = Self::spawn(program, &socket, directory)?;
            if !(0..READY_TRIES).any(|_| answers(&socket)) {
                return Err(Failure::Other(anyhow!("{program} does not answer")));
            }
            Ok(redis)
        };
        (1..=nodes).map(start).collect()
    }

    /// What it is called on this machine, if there is one.
    pub(crate) fn program() -> Result<&'static str, Failure> {
        let program = PROGRAMS.into_iter().find(|name| is_there(name));
        let why = "there is no redis-server: apt-get install redis-server";
        program.ok_or_else(|| Failure::usage(why))
    }

    fn spawn(program: &str, socket: &Path, directory: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program, "--port", "0", "--unixsocket"]);
        command.arg(socket).args(["--save", "", "--appendonly", "no", "--dir"]).arg(directory);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        Ok(Self { child, socket: socket.to_path_buf() })
    }

    /// What it counts.
    fn info(&self) -> std::io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"INFO stats\r\nINFO commandstats\r\nQUIT\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Its process.
    pub(crate) fn identity(&self) -> Option<Identity> {
        Identity::of(Pid::from_raw(i32::try_from(self.child.id()).ok()?))
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Where those that were started in this directory are reached, as nodes are told.
pub(crate) fn backends(nodes: u16, directory: &Path) -> Vec<BackendUrl> {
    let url = |node| format!("redis+unix://{}", socket(directory, node).display());
    (1..=nodes).map(|node| url(node).parse().expect("the form that is documented")).collect()
}

fn socket(directory: &Path, node: u16) -> PathBuf {
    directory.join(format!("redis-{node}.sock"))
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn answers(socket: &Path) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut found = [0; 5];
        stream.read_exact(&mut found)?;
        Ok(&found == b"+PONG")
    };
    let ready = ask().unwrap_or(false);
    if !ready {
        pause(TRY_EVERY);
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_redis_counts_is_understood() {
        let info = "$40\r\n# Stats\r\nkeyspace_hits:30\r\nkeyspace_misses:12\r\n\r\n$9\r\n\
                    # Commandstats\r\ncmdstat_mget:calls=7,usec=30,usec_per_call=4.28\r\n+OK\r\n";
        let reads = Reads::told(info);
        assert_eq!(reads, Reads { mgets: 7, keys: 42 });
        assert_eq!(reads.since(Reads { mgets: 3, keys: 2 }), Reads { mgets: 4, keys: 40 });
        assert_eq!(Reads::told(""), Reads::default());
    }
}
