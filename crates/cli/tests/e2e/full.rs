//! Nodes that run out of memory or disk: they say so, and go on with all else.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::program::Up;
use testkit::skip;

/// Questions until an answer is another: some ten seconds' worth.
const ASKED_MAX: u32 = 100_000;

/// The same for commands, each of which is a process of its own.
const RUNS_MAX: u32 = 1_000;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";

/// A connection of a Redis client.
pub(crate) struct Redis(BufReader<TcpStream>);

impl Redis {
    pub(crate) fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).expect("a gateway");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        Self(BufReader::new(stream))
    }

    /// The first line of what a command is answered; a value that follows is read and compared.
    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.try_ask(words).expect("an answer")
    }

    /// The same; `None` if the connection ends before.
    pub(crate) fn try_ask(&mut self, words: &[&str]) -> Option<String> {
        self.send(words)?;
        let line = self.line()?;
        let value = line.strip_prefix('$').and_then(|len| len.parse().ok());
        let Some(len) = value else { return Some(line) };
        Some(self.value(len)?.trim_end().to_owned())
    }

    /// A text of several lines.
    pub(crate) fn ask_text(&mut self, words: &[&str]) -> String {
        self.send(words).expect("it takes commands");
        let line = self.line().expect("an answer");
        let len = line.trim_start_matches(['$', '=']).parse().expect("a length");
        self.value(len).expect("a text")
    }

    fn send(&mut self, words: &[&str]) -> Option<()> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(text.as_bytes()).ok()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    fn value(&mut self, len: usize) -> Option<String> {
        let mut value = vec![0; len + 2];
        self.0.read_exact(&mut value).ok()?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// Writes keys of this letter until one is refused, and says how many were taken.
    fn fill(&mut self, letter: char, most: usize, value: &str) -> usize {
        for n in 0..most {
            let said = self.ask(&["SET", &format!("{letter}{n}"), value]);
            if said == OOM {
                return n;
            }
            assert_eq!(said, "+OK");
        }
        panic!("it is never full");
    }

    /// Asks until this is the answer.
    fn ask_until(&mut self, words: &[&str], wanted: &str) {
        let mut last = String::new();
        for _ in 0..ASKED_MAX {
            last = self.ask(words);
            if last == wanted {
                return;
            }
        }
        panic!("{words:?}: {last}");
    }
}

/// Waits until the status says this: nodes are asked twice a second.
fn status_says(up: &Up, wanted: &str) {
    let mut status = String::new();
    for _ in 0..RUNS_MAX {
        status = up.run(&["status"]).stdout;
        if status.contains(wanted) {
            return;
        }
    }
    panic!("{wanted}: {status}");
}

#[test]
fn a_cluster_that_is_out_of_memory_refuses_what_is_new_and_takes_deletes() {
    let size = ["--nodes", "3", "--replicas", "3", "--partitions", "4", "--max-memory", "4m"];
    let up = Up::start(&size);
    let mut redis = Redis::connect(up.redis.expect("a gateway"));
    let value = "v".repeat(1_000);
    let taken = redis.fill('k', 10_000, &value);
    assert!((1_500..4_000).contains(&taken), "{taken} keys of 1 KB in 4 MiB");
    // The other heads find out with the next write of theirs.
    let mut refused = 0;
    for n in 0.. {
        let said = redis.ask(&["SET", &format!("more{n}"), &value]);
        refused = if said == OOM { refused + 1 } else { 0 };
        assert!(n < 1_000, "some are taken still");
        if refused == 30 {
            break;
        }
    }
    assert_eq!(redis.ask(&["SET", "another", &value]), OOM);
    assert_eq!(redis.ask(&["GET", "another"]), "$-1");
    assert_eq!(redis.ask(&["GET", "k0"]), value);
    assert_eq!(redis.ask(&["SET", "k0", &value]), "+OK", "what is no longer goes on");
    let ran = up.run(&["put", "one", "more"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("a node that holds the key is full"));
    // What is pending counts: a moment later it may be a little less than full.
    status_says(&up, "full: it takes ");
    for n in 0..500 {
        assert_eq!(redis.ask(&["DEL", &format!("k{n}")]), ":1");
    }
    redis.ask_until(&["SET", "another", &value], "+OK");
    assert_eq!(redis.ask(&["GET", "another"]), value);
}

/// A file system of its own, in a mount namespace that lives as long as this.
struct SmallDisk {
    keeper: Child,
    dir: tempfile::TempDir,
}

impl SmallDisk {
    fn new(size: &str) -> Result<Self, String> {
        let dir = tempfile::tempdir().expect("a folder");
        let script = format!("mount -t tmpfs -o size={size} small \"$0\" && echo ok && exec cat");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut keeper = command.spawn().map_err(|why| why.to_string())?;
        let mut line = String::new();
        let stdout = keeper.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).map_err(|why| why.to_string())?;
        if line.trim() == "ok" {
            return Ok(Self { keeper, dir });
        }
        let ended = keeper.wait_with_output().map_err(|why| why.to_string())?;
        Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned())
    }

    /// A file there, as it is seen from outside.
    fn file(&self, name: &str) -> PathBuf {
        let inside = self.dir.path().strip_prefix("/").expect("an absolute path");
        PathBuf::from(format!("/proc/{}/root", self.keeper.id())).join(inside).join(name)
    }

    fn start(&self, arguments: &[&str]) -> Up {
        let mut command = Command::new("nsenter");
        command.args(["-m", "-t", &self.keeper.id().to_string(), "--"]);
        command.arg(env!("CARGO_BIN_EXE_keyway"));
        let data = self.dir.path().to_str().expect("text");
        Up::start_by(command, "127.0.0.1:0", &[arguments, &["--data", data]].concat())
    }

    /// Bytes that are free.
    fn free(&self) -> u64 {
        let mut command = Command::new("stat");
        command.args(["-f", "-c", "%a %S"]).arg(self.file(""));
        let said = String::from_utf8(command.output().expect("there is a stat").stdout);
        let said = said.expect("text");
        let (blocks, size) = said.trim().split_once(' ').expect("two numbers");
        blocks.parse::<u64>().expect("a number") * size.parse::<u64>().expect("a number")
    }

    /// Waits until nobody has written to it for a while.
    fn come_to_rest(&self) {
        let (mut free, mut alike) = (self.free(), 0);
        for _ in 0..RUNS_MAX {
            std::thread::park_timeout(Duration::from_millis(100));
            alike = if self.free() == free { alike + 1 } else { 0 };
            if alike == 5 {
                return;
            }
            free = self.free();
        }
        panic!("somebody writes all the time");
    }

    /// Writes a file of so many bytes, or as many as there is room for.
    fn fill_up(&self, bytes: u64) {
        let file = File::options().create(true).append(true).open(self.file("foreign"));
        let mut file = file.expect("a file");
        let piece = vec![1; 1 << 16];
        let mut left = bytes;
        while left > 0 && file.write_all(&piece).is_ok() {
            left = left.saturating_sub(piece.len() as u64);
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.keeper.kill().ok();
        self.keeper.wait().expect("our own child");
    }
}

#[test]
fn a_full_disk_is_read_from_takes_deletes_and_loses_nothing() {
    const NAME: &str = "a_full_disk_is_read_from_takes_deletes_and_loses_nothing";
    let disk = match SmallDisk::new("192m") {
        Ok(disk) => disk,
        Err(why) => return skip::report(NAME, &format!("no small file system: {why}")),
    };
    let size = ["--nodes", "2", "--replicas", "2", "--partitions", "2", "--engine", "fjall"];
    let arguments = [&size[..], &["--min-free-disk", "24m"]].concat();
    let up = disk.start(&arguments);
    let mut redis = Redis::connect(up.redis.expect("a gateway"));
    for n in 0..300 {
        assert_eq!(redis.ask(&["SET", &format!("a{n}"), "kept"]), "+OK");
    }
    // Somebody else fills the disk while there are writes. What nodes put aside may grow meanwhile
    // by a step of 8 MiB.
    let foreign = disk.free() - (9 << 20);
    let (taken, filled) = std::thread::scope(|scope| {
        let filler = scope.spawn(|| disk.fill_up(foreign));
        let taken = redis.fill('b', 1_000_000, "written");
        (taken, filler.join())
    });
    filled.expect("it is full");
    // Then all but so little that nodes give up what they have put aside.
    disk.fill_up(disk.free() - (1 << 20));
    let check = |redis: &mut Redis| {
        for n in 100..300 {
            assert_eq!(redis.ask(&["GET", &format!("a{n}")]), "kept");
        }
        for n in (0..taken).step_by(7) {
            assert_eq!(redis.ask(&["GET", &format!("b{n}")]), "written");
        }
    };
    check(&mut redis);
    assert_eq!(redis.ask(&["SET", "new", "x"]), OOM);
    for n in 0..50 {
        assert_eq!(redis.ask(&["DEL", &format!("a{n}")]), ":1", "a delete finds room");
    }
    status_says(&up, "its disk has ");
    // A power cut, and a start on the full disk.
    drop(up);
    let up = disk.start(&arguments);
    let mut redis = Redis::connect(up.redis.expect("a gateway"));
    check(&mut redis);
    assert_eq!(redis.ask(&["GET", "a0"]), "$-1", "what was deleted stays so");
    assert_eq!(redis.ask(&["SET", "new", "x"]), OOM);
    for n in 50..100 {
        assert_eq!(redis.ask(&["DEL", &format!("a{n}")]), ":1");
    }
    // Somebody takes even what was put aside for that: nothing is written, and all is read. A table
    // that is being written at that moment would find no room, and end its store.
    disk.come_to_rest();
    disk.fill_up(u64::MAX);
    check(&mut redis);
    let ran = up.run(&["keyspace", "create", "late", "--partitions", "2", "--replicas", "2"]);
    assert_ne!(ran.code, Some(0), "the controller cannot decide: {ran:?}");
    status_says(&up, "cannot save the cluster map");
    check(&mut redis);
    // There is room again.
    fs::remove_file(disk.file("foreign")).expect("it is there");
    redis.ask_until(&["SET", "new", "x"], "+OK");
    check(&mut redis);
    assert_eq!(redis.ask(&["GET", "new"]), "x");
    // What was asked for meanwhile is carried out.
    let there = || up.run(&["keyspace", "show", "late"]).code == Some(0);
    assert!((0..RUNS_MAX).any(|_| there()), "it is never there");
}
