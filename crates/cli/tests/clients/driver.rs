//! A driver's process: what it says, line by line, within a time.

use crate::script::Script;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tempfile::NamedTempFile;

/// Until the next line; a virtual machine has to start, and a client to notice that a server went.
const LINE_WAIT_MAX: Duration = Duration::from_secs(90);

/// A driver that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Driver {
    child: Child,
    lines: Receiver<String>,
    _script: NamedTempFile,
}

impl Driver {
    /// Starts it with what it has to send.
    pub(crate) fn start(command: Command, to: SocketAddr, script: &Script) -> Self {
        Self::start_as(command, to, script, None)
    }

    /// The same, as something else than a client of one server.
    pub(crate) fn start_as(
        mut command: Command,
        to: SocketAddr,
        script: &Script,
        mode: Option<&str>,
    ) -> Self {
        let file = NamedTempFile::new().expect("a file");
        std::fs::write(&file, script.to_send().to_string()).expect("a file");
        command.arg(to.ip().to_string()).arg(to.port().to_string()).arg(file.path()).args(mode);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it was there a moment ago");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // A test that has failed does not read on.
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, _script: file }
    }

    /// The next line, which must say that.
    #[track_caller]
    pub(crate) fn expect(&mut self, name: &str) -> Value {
        let line = match self.lines.recv_timeout(LINE_WAIT_MAX) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no {name} within {LINE_WAIT_MAX:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("no {name}: the driver has ended"),
        };
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        said.get(name).unwrap_or_else(|| panic!("no {name}, but {line}")).clone()
    }

    /// Tells it that the gateway was restarted.
    pub(crate) fn go_on(&mut self) {
        writeln!(self.child.stdin.as_mut().expect("piped")).expect("it waits for this");
    }

    /// Waits until it has ended, in good order and with nothing more to say.
    pub(crate) fn wait(&mut self) {
        let end = self.lines.recv_timeout(LINE_WAIT_MAX);
        assert_eq!(end, Err(RecvTimeoutError::Disconnected));
        assert!(self.child.wait().expect("our own child").success());
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().expect("our own child");
    }
}
