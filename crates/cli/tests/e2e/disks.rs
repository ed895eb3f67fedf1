//! What clients are told of the disks of nodes: how safe acknowledged writes are, and what becomes
//! of them when a disk is slow or fails.

use crate::full::Redis;
use runtime::clock::Clock;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::program::{Up, keyway};
use testkit::skip;

#[test]
fn status_and_info_say_what_acknowledged_writes_are_safe_from() {
    let engines: [(&[&str], &str, &str); 4] = [
        (&["--engine", "memory"], "memory", "gone with their processes"),
        (&["--engine", "fjall", "--sync", "never"], "never", "(sync never)"),
        (&["--engine", "fjall", "--sync", "interval"], "interval", "within 100 ms"),
        (&["--engine", "fjall", "--sync", "always"], "always", "once they are on disk"),
    ];
    for (engine, word, text) in engines {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().to_str().expect("text");
        let mut arguments = vec!["--nodes", "2", "--replicas", "2", "--partitions", "2"];
        arguments.extend(engine);
        if word != "memory" {
            arguments.extend(["--data", data]);
        }
        let up = Up::start(&arguments);
        let status = up.run(&["status"]).expect(0).stdout;
        let line = status.lines().find(|line| line.starts_with("writes "));
        assert!(line.is_some_and(|line| line.contains(text)), "{word}: {status}");
        let status = up.run(&["status", "--json"]).expect(0).json();
        for node in 0..2 {
            let said = status.pointer(&format!("/load/{node}/resources/durability"));
            assert_eq!(said.and_then(|it| it.as_str()), Some(word), "{status}");
        }
        let mut redis = Redis::connect(up.redis.expect("a gateway"));
        let info = redis.ask_text(&["INFO", "persistence"]);
        assert!(info.contains(&format!("keyway_sync:{word}\r\n")), "{info}");
    }
}

/// A cluster of three nodes with two shards each, in which the disk of one shard can be made bad.
struct Bad {
    dir: tempfile::TempDir,
    library: PathBuf,
}

const SIZE: [&str; 12] = [
    "--nodes",
    "3",
    "--replicas",
    "1",
    "--partitions",
    "24",
    "--shards",
    "2",
    "--engine",
    "fjall",
    "--timeout",
    "30s",
];

impl Bad {
    /// Says why if it cannot be made here.
    fn new() -> Result<Self, String> {
        let dir = tempfile::tempdir().expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/bad_disk.c");
        let library = dir.path().join("bad_disk.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).arg("-ldl");
        let compiled = compiler.output().map_err(|why| format!("no C compiler: {why}"))?;
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Ok(Self { dir, library })
    }

    fn command(&self) -> Command {
        let mut command = keyway();
        command.env("LD_PRELOAD", &self.library).env("KEYWAY_TEST_MARKS", self.dir.path());
        command.env("KEYWAY_TEST_DISK", self.data().join("node-1").join("shard-0"));
        command
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn arguments(&self) -> Vec<String> {
        let data = ["--data".to_owned(), self.data().display().to_string()];
        SIZE.iter().map(|it| (*it).to_owned()).chain(data).collect()
    }

    fn start(&self) -> Up {
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Up::start_by(self.command(), "127.0.0.1:0", &arguments)
    }

    fn mark(&self, mark: &str) {
        std::fs::write(self.dir.path().join(mark), []).expect("a file");
    }

    fn clear(&self, mark: &str) {
        std::fs::remove_file(self.dir.path().join(mark)).expect("it is there");
    }
}

const KEYS: usize = 64;

/// Sets each key by a client of its own, all at once; what each was answered, and when.
fn set_all(at: SocketAddr, value: &str) -> Vec<(String, Duration)> {
    std::thread::scope(|scope| {
        let set = |n: usize| {
            let mut clock = Clock::new();
            let began = clock.now();
            let said = Redis::connect(at).ask(&["SET", &format!("k{n}"), value]);
            (said, clock.now().since(began))
        };
        let clients: Vec<_> = (0..KEYS).map(|n| scope.spawn(move || set(n))).collect();
        clients.into_iter().map(|it| it.join().expect("it is answered")).collect()
    })
}

/// Two syncs of two seconds, the second of which has what came during the first.
const SLOW: Duration = Duration::from_millis(1_800);

#[test]
fn while_a_disk_takes_seconds_for_a_sync_its_shard_is_read_and_others_go_on() {
    const NAME: &str = "while_a_disk_takes_seconds_for_a_sync_its_shard_is_read_and_others_go_on";
    let bad = match Bad::new() {
        Ok(bad) => bad,
        Err(why) => return skip::report(NAME, &why),
    };
    let up = bad.start();
    let at = up.redis.expect("a gateway");
    assert!(set_all(at, "old").iter().all(|(said, _)| said == "+OK"));
    let mut redis = Redis::connect(at);
    let read_only: Vec<String> = (0..KEYS).map(|n| format!("r{n}")).collect();
    for key in &read_only {
        assert_eq!(redis.ask(&["SET", key, "kept"]), "+OK");
    }
    bad.mark("slow");
    let (written, longest) = std::thread::scope(|scope| {
        let written = scope.spawn(|| set_all(at, "new"));
        // Reads of what is on disk wait for no sync, whoever writes.
        let (mut clock, mut longest) = (Clock::new(), Duration::ZERO);
        while !written.is_finished() {
            for key in &read_only {
                let asked = clock.now();
                assert_eq!(redis.ask(&["GET", key]), "kept");
                longest = longest.max(clock.now().since(asked));
            }
        }
        (written.join().expect("all are answered"), longest)
    });
    assert!(longest < SLOW, "a read took {longest:?}");
    assert!(written.iter().all(|(said, _)| said == "+OK"), "{written:?}");
    let slow = written.iter().filter(|(_, took)| *took >= SLOW).count();
    assert!((1..KEYS / 2).contains(&slow), "{slow} of {KEYS} keys are on one of six shards");
    // What was acknowledged outlives the process.
    up.kill();
    bad.clear("slow");
    let up = bad.start();
    let mut redis = Redis::connect(up.redis.expect("a gateway"));
    for n in 0..KEYS {
        assert_eq!(redis.ask(&["GET", &format!("k{n}")]), "new");
    }
}

#[test]
fn a_disk_that_becomes_read_only_ends_its_process_with_its_name_and_loses_nothing() {
    const NAME: &str =
        "a_disk_that_becomes_read_only_ends_its_process_with_its_name_and_loses_nothing";
    let bad = match Bad::new() {
        Ok(bad) => bad,
        Err(why) => return skip::report(NAME, &why),
    };
    let up = bad.start();
    let at = up.redis.expect("a gateway");
    assert!(set_all(at, "old").iter().all(|(said, _)| said == "+OK"));
    let clients: Vec<Redis> = (0..KEYS).map(|_| Redis::connect(at)).collect();
    bad.mark("read-only");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let set =
            |(n, mut client): (usize, Redis)| client.try_ask(&["SET", &format!("k{n}"), "new"]);
        let clients: Vec<_> =
            clients.into_iter().enumerate().map(|it| scope.spawn(move || set(it))).collect();
        clients.into_iter().map(|it| it.join().expect("it ends")).collect()
    });
    let (code, said) = up.ended();
    assert_eq!(code, Some(70), "{said}");
    let shard = bad.data().join("node-1").join("shard-0");
    assert!(said.contains(&shard.display().to_string()), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    // A start on it says the same.
    let mut again = bad.command();
    let again = again.args(["up", "--service", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let again = again.args(bad.arguments()).output().expect("it runs");
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(5), "{said}");
    assert!(said.contains("Read-only file system") && said.contains("node-1"), "{said}");
    bad.clear("read-only");
    let up = bad.start();
    let mut redis = Redis::connect(up.redis.expect("a gateway"));
    for (n, said) in answers.iter().enumerate() {
        let found = redis.ask(&["GET", &format!("k{n}")]);
        let acknowledged = said.as_deref() == Some("+OK");
        assert!(found == "new" || (!acknowledged && found == "old"), "k{n}: {said:?}, {found}");
    }
}
