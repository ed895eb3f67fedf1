//! A real Redis server on a socket file, and the little RESP2 that it takes to ask it.

use bytes::Bytes;
use gateway::Reply;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::skip;

/// A server that ends with this value.
pub(crate) struct Server {
    process: Child,
    socket: PathBuf,
    _directory: TempDir,
}

impl Server {
    /// Starts one; `None`, and said so, if this machine has none.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let socket = directory.path().join("redis.sock");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(&socket).current_dir(&directory).stdout(Stdio::null());
        let process = match command.spawn() {
            Ok(process) => process,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip::report(test, "redis-server is not installed: apt-get install redis-server");
                return None;
            }
            Err(error) => panic!("redis-server does not start: {error}"),
        };
        Some(Self { process, socket, _directory: directory })
    }

    /// A connection, as soon as the server takes one.
    #[expect(clippy::disallowed_methods, reason = "a real process is waited for, with a deadline")]
    pub(crate) fn connect(&self) -> Connection {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => return Connection(BufReader::new(stream)),
                Err(error) => assert!(Instant::now() < deadline, "redis-server: {error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A connection that speaks RESP2.
pub(crate) struct Connection(BufReader<UnixStream>);

impl Connection {
    /// Carries out a command.
    pub(crate) fn run(&mut self, args: &[Bytes]) -> Reply {
        let mut out = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            out.extend_from_slice(arg);
            out.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&out).unwrap();
        self.reply()
    }

    /// The same, given as words.
    pub(crate) fn say(&mut self, words: &str) -> Reply {
        let args: Vec<Bytes> = words.split(' ').map(|it| it.to_owned().into()).collect();
        self.run(&args)
    }

    fn reply(&mut self) -> Reply {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).unwrap();
        // Errors repeat what they were given, which need not be text.
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches("\r\n");
        let (kind, rest) = line.split_at(1);
        match kind {
            "+" => Reply::Status(rest.to_owned().into()),
            "-" => Reply::Error(rest.to_owned().into()),
            ":" => Reply::Integer(rest.parse().unwrap()),
            "$" if rest == "-1" => Reply::Null,
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(bytes.into())
            }
            "*" if rest == "-1" => Reply::NullArray,
            "*" => Reply::Array((0..rest.parse().unwrap()).map(|_| self.reply()).collect()),
            _ => panic!("not RESP2: {line:?}"),
        }
    }
}
