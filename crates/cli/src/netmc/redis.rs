//! Redis processes behind the nodes of a rack, one for each, reached over sockets in its directory:
//! they need no network.

use crate::exit::Failure;
use crate::lab::process::{Identity, pause};
use anyhow::{Context, anyhow};
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
pub(crate) struct Redis {
    child: Child,
}

/// What it may be called.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// How long one may take until it answers, and how often to look.
const READY_TRIES: u32 = 500;
const TRY_EVERY: Duration = Duration::from_millis(20);

impl Redis {
    /// Starts one for each of so many nodes, without data and without persistence, with their
    /// files in this directory.
    pub(crate) fn start(nodes: u16, directory: &Path) -> Result<Vec<Self>, Failure> {
        let program = PROGRAMS.into_iter().find(|name| is_there(name));
        let Some(program) = program else {
            let why = "there is no redis-server: apt-get install redis-server";
            return Err(Failure::usage(why));
        };
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

    fn spawn(program: &str, socket: &Path, directory: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program, "--port", "0", "--unixsocket"]);
        command.arg(socket).args(["--save", "", "--appendonly", "no", "--dir"]).arg(directory);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn().with_context(|| format!("cannot run {program}"))? })
    }

    /// Its process.
    pub(crate) fn identity(&self) -> Option<Identity> {
        Identity::of(Pid::from_raw(i32::try_from(self.child.id()).ok()?))
    }
}

impl Drop for Redis {
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
