//! Passwords stay with those who have them, and what a cluster keeps with its owner.

use crate::config::Cluster;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use testkit::program::{Ran, Up, keyway, run};

const PASSWORD: &str = "s3cret";

/// Checks that a command has failed without repeating the password.
#[track_caller]
fn silent(ran: Ran, code: i32) -> Ran {
    let ran = ran.expect(code);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains(PASSWORD), "{said}");
    assert!(!ran.stderr.is_empty(), "it says why");
    ran
}

fn up(more: &[&str]) -> Ran {
    let size = ["up", "--nodes", "1", "--replicas", "1", "--engine", "redis", "--data"];
    let folder = tempfile::tempdir().unwrap();
    run(&[&size[..], &[folder.path().to_str().unwrap()], more].concat())
}

#[test]
fn a_password_on_the_command_line_is_refused_and_never_repeated() {
    let ran = silent(up(&["--backend", "redis://:s3cret@127.0.0.1:1"]), 2);
    assert!(ran.stderr.contains("--backend-file"), "{ran:?}");
    for wrong in ["redis://:s3cret", "http://:s3cret@a", "s3cret", "redis://s3c:s3cret@a:b"] {
        silent(up(&["--backend", wrong]), 2);
        let mut command = keyway();
        command.args(["up", "--nodes", "1", "--replicas", "1", "--engine", "redis"]);
        command.env("KEYWAY_BACKEND", wrong).stdin(Stdio::null());
        silent(Ran::from(command.output().unwrap()), 2);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), wrong).unwrap();
        silent(up(&["--backend-file", file.path().to_str().unwrap()]), 2);
    }
    silent(run(&["redis://:s3cret@a"]), 2);
    silent(run(&["up", "--nodes", "redis://:s3cret@a"]), 2);
    let mut command = keyway();
    command.args(["up", "--help"]).env("KEYWAY_BACKEND", "redis://:s3cret@a:1");
    let help = Ran::from(command.output().unwrap()).expect(0).stdout;
    assert!(help.contains("KEYWAY_BACKEND") && !help.contains(PASSWORD), "{help}");
    // Where it may stand, it is read.
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "redis://:s3cret@127.0.0.1:1\nredis://:s3cret@127.0.0.1:2\n").unwrap();
    let ran = silent(up(&["--backend-file", file.path().to_str().unwrap()]), 2);
    assert!(ran.stderr.contains("2 backends for 1 nodes"), "{ran:?}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_without_its_passwords() {
    let cluster = Cluster::new();
    for line in [
        "engine = \"redis\"\nbackend = \"http://:s3cret@a:1\"",
        "engine = \"redis\"\nbackend = \"redis://:s3cret@a:1",
        "engine = \"redis\"\nbackend = \"redis://:s3cret@a:1\" more",
        "engine = \"redis://:s3cret@a:1\"",
        "shards = \"redis://:s3cret@a:1\"",
        "backend = \"memcached://:s3cret@a:1\"\nengine = \"redis\"",
    ] {
        let text = cluster.text.replace("id = 2\n", &format!("id = 2\n{line}\n"));
        let path = cluster.file(&text);
        let path = path.to_str().unwrap();
        let ran = silent(run(&["node", "--id", "2", "--config", path, "--check"]), 2);
        assert!(ran.stderr.contains("line "), "{ran:?}");
    }
    let text = cluster
        .text
        .replace("id = 2\n", "id = 2\nengine = \"redis\"\nbackend = \"redis://:s3cret@a:1\"\n");
    let path = cluster.file(&text);
    let path = path.to_str().unwrap();
    silent(run(&["node", "--id", "2", "--config", path, "--check"]), 2);
    let acl = tempfile::NamedTempFile::new().unwrap();
    for rules in ["on s3cret ~*", "on >s3cret nonsense", "on #s3cret", "s3cret"] {
        fs::write(acl.path(), format!("user alice {rules}\n")).unwrap();
        let listen = ["gateway", "--listen", "127.0.0.1:0", "--acl-file"];
        let ran = silent(run(&[&listen[..], &[acl.path().to_str().unwrap()]].concat()), 2);
        assert!(ran.stderr.contains("line 1"), "{ran:?}");
    }
}

#[test]
fn what_a_cluster_keeps_is_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let size = ["--nodes", "1", "--replicas", "1", "--partitions", "2", "--engine", "fjall"];
    let arguments = [&size[..], &["--redis", "off", "--data", data.to_str().unwrap()]].concat();
    let up = Up::start(&arguments);
    up.run(&["put", "greeting", "hello"]).expect(0);
    assert_eq!(up.interrupt(), Some(0));
    assert_eq!(open_to_others(&data), Vec::<PathBuf>::new());
    // An older version has left all of it open.
    for path in all(&data) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let up = Up::start(&arguments);
    assert_eq!(up.run(&["get", "greeting"]).expect(0).stdout, "hello");
    assert_eq!(up.interrupt(), Some(0));
    let open: Vec<PathBuf> =
        open_to_others(&data).into_iter().filter(|path| path.is_file()).collect();
    let plan = data.join("keyway.json");
    assert!(open.iter().all(|path| *path == plan), "{open:?}");
    let shard = data.join("node-1/shard-0");
    assert!(!open_to_others(&data).iter().any(|path| path.starts_with(&shard)), "{shard:?}");
}

fn all(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.for_each(|entry| found.extend(all(&entry)));
    }
    found
}

fn open_to_others(path: &Path) -> Vec<PathBuf> {
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode();
    all(path).into_iter().filter(|path| mode(path) & 0o077 != 0).collect()
}
