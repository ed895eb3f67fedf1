//! A lab of a test: built, used, ended in one way or another, and looked for afterwards.

use lab::child::ChildLab;
use serde_json::Value;
use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use testkit::program::{Ran, keyway, run};
use testkit::skip;

/// Whether racks can be built here; if not, it is reported that this test is skipped.
pub(crate) fn can_build(test: &str) -> bool {
    let name = Lab::free_name();
    let programs = ["ip", "ethtool", "setpriv"];
    for program in programs {
        // Each of them knows this option.
        if Command::new(program).arg("-V").output().is_err() {
            skip::report(test, &format!("there is no {program}"));
            return false;
        }
    }
    for what in ["add", "del"] {
        let output = Command::new("ip").args(["netns", what, &name]).output().expect("it is there");
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            skip::report(
                test,
                &format!("namespaces are not allowed; run the tests as root: {why}"),
            );
            return false;
        }
    }
    true
}

/// A lab that is up, kept by a child of this process.
#[derive(Debug)]
pub(crate) struct Lab(ChildLab);

impl Deref for Lab {
    type Target = ChildLab;

    fn deref(&self) -> &ChildLab {
        &self.0
    }
}

/// Whether programs can be loaded into this kernel; if not, it is reported that this test is
/// skipped. To be asked only where racks can be built.
pub(crate) fn can_load_programs(test: &str) -> bool {
    let lab = Lab::up(&["--nodes", "1", "--replicas", "1"]);
    let ran = run(&["lab", "faults", "--name", lab.name(), "--lost", "0"]);
    if ran.code != Some(0) {
        skip::report(test, ran.stderr.trim());
    }
    ran.code == Some(0)
}

impl Lab {
    /// A name that no other test uses.
    pub(crate) fn free_name() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("test{}x{number}", std::process::id())
    }

    /// Builds one with these options.
    pub(crate) fn up(options: &[&str]) -> Self {
        Self::up_as(&Self::free_name(), options)
    }

    /// Builds one of this name.
    pub(crate) fn up_as(name: &str, options: &[&str]) -> Self {
        let lab = ChildLab::up(keyway(), name, options, Command::spawn);
        let lab = lab.unwrap_or_else(|why| panic!("{why:#}"));
        assert_eq!(lab.ready["outcome"], "ready");
        Self(lab)
    }

    /// The process id of what the lab has started on a host, or as a part of its switch.
    pub(crate) fn pid(&self, host: &str) -> String {
        let processes = self.ready["processes"].as_array().unwrap();
        processes.iter().find(|it| it["host"] == host).unwrap()["pid"].to_string()
    }

    /// Runs a command on the host of this client.
    pub(crate) fn run(&self, client: u16, command: &[&str]) -> Ran {
        let client = client.to_string();
        let mut arguments = vec!["lab", "run", "--name", self.name(), "--client", &client, "--"];
        arguments.extend(command);
        run(&arguments)
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Option<i32> {
        self.0.interrupt()
    }

    /// Kills its process.
    pub(crate) fn kill(self) {
        self.0.kill();
    }

    /// Kills its process, and before that the one that would take the lab down then.
    pub(crate) fn kill_with_guard(self) {
        let path = Path::new("/run/keyway-lab").join(self.name()).join("state.json");
        let state: Value =
            serde_json::from_slice(&fs::read(path).expect("it is up")).expect("JSON");
        let guard = state["guard"]["pid"].as_i64().expect("it has a guard").to_string();
        let sent = Command::new("kill").args(["-KILL", &guard]).status().expect("there is a kill");
        assert!(sent.success());
        self.kill();
    }
}

/// Takes a lab down at the end of a test, however that comes.
#[derive(Debug)]
pub(crate) struct DownInTheEnd<'a>(pub(crate) &'a str);

impl Drop for DownInTheEnd<'_> {
    fn drop(&mut self) {
        run(&["lab", "down", "--name", self.0]);
    }
}

/// What there is of a lab.
pub(crate) fn traces(lab: &str) -> Vec<String> {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let prefix = format!("keyway-{lab}-");
    let namespaces = names("/run/netns").into_iter().filter(|name| name.starts_with(&prefix));
    let directories = names("/run/keyway-lab").into_iter().filter(|name| name == lab);
    let mine = |pid: &String| {
        // Of a process that has ended and was not waited for there is no more than its id.
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains(lab)
    };
    let processes = names("/proc").into_iter().filter(mine);
    let namespaces = namespaces.map(|name| format!("namespace {name}"));
    let directories = directories.map(|name| format!("directory {name}"));
    let processes = processes.map(|pid| format!("process {pid}"));
    namespaces.chain(directories).chain(processes).collect()
}

/// Waits until a process is in another network namespace than this one: before that it is nobody's
/// part, and who takes a lab down does not know of it.
pub(crate) fn wait_until_inside(pid: u32) {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let mine = namespace("self");
    for _ in 0..600 {
        if namespace(&pid.to_string()).is_some_and(|its| Some(its) != mine) {
            return;
        }
        thread::park_timeout(Duration::from_millis(50));
    }
    panic!("process {pid} is not inside after half a minute");
}

/// Waits until nothing is left of a lab.
pub(crate) fn wait_until_gone(lab: &str) {
    for _ in 0..600 {
        if traces(lab).is_empty() {
            return;
        }
        thread::park_timeout(Duration::from_millis(50));
    }
    panic!("after half a minute still there: {:?}", traces(lab));
}
