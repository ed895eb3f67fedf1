//! Machines are pure: what they do is a function of what they are told, in that order.

use super::Finding;
use super::lexer::has_word;
use super::tree::{File, Tree};

/// Crates whose `src` is pure.
const PURE: [&str; 9] =
    ["wire", "machine", "cluster", "switch", "node", "controller", "client", "workload", "sim"];

/// Modules of other crates that are pure: the file of this name and the folder.
const PURE_MODULES: [&str; 1] = ["crates/experiments/src/paper"];

/// Files of pure crates that are not, and why.
const FACES: [(&str, &str); 11] = [
    ("crates/client/src/channel.rs", "a client's socket"),
    ("crates/client/src/port.rs", "the socket of each face"),
    ("crates/client/src/face.rs", "what the two faces share: a clock, a random client id"),
    ("crates/client/src/blocking/client.rs", "the face that gives the client machine a socket"),
    ("crates/client/src/blocking/long.rs", "a caller of it waits"),
    ("crates/client/src/asynchronous/long.rs", "answers of it are awaited"),
    ("crates/client/src/asynchronous/space.rs", "answers of it are awaited"),
    ("crates/client/src/asynchronous/client.rs", "the face that gives it a tokio socket"),
    ("crates/client/src/asynchronous/io.rs", "its task"),
    ("crates/client/src/clock.rs", "the one clock that both faces read"),
    ("crates/sim/src/many.rs", "many worlds on all cores, each of them on one thread"),
];

/// What a pure crate may not name, and why.
const BANNED: [(&str, &str); 19] = [
    ("std::time::Instant", "time is an argument, a machine::Instant"),
    ("SystemTime", "time is an argument, a machine::Instant"),
    ("Instant::now", "time is an argument"),
    ("std::thread", "a machine belongs to one thread, its driver's"),
    ("thread::spawn", "a machine belongs to one thread, its driver's"),
    ("UdpSocket", "datagrams are handed in and polled out"),
    ("TcpStream", "datagrams are handed in and polled out"),
    ("TcpListener", "datagrams are handed in and polled out"),
    ("Inbound", "datagrams are handed in and polled out"),
    ("Outbound", "datagrams are handed in and polled out"),
    ("socket2", "datagrams are handed in and polled out"),
    ("tokio", "datagrams are handed in and polled out"),
    ("std::fs", "an engine behind the trait stores, nobody else"),
    ("std::env", "settings are arguments"),
    ("std::process", "only a binary may end the process"),
    ("HashMap", "its order is random, so a seed would not replay"),
    ("HashSet", "its order is random, so a seed would not replay"),
    ("RandomState", "its order is random, so a seed would not replay"),
    ("static mut", "two machines in one process must not meet"),
];

/// No clock, socket, thread, file, random order or global state in a pure crate.
pub(super) fn machines_are_pure(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| is_pure(file)) {
        for (number, line) in (1..).zip(file.code.lines()) {
            for (word, why) in BANNED {
                if has_word(line, word) {
                    let what = format!("{word} in a pure crate: {why}");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
        }
    }
    findings
}

/// The one file that may lift the ban on unsafe code, and only because libbpf's Rust face cannot do
/// what it does.
const UNSAFE: &str = "crates/xdp/src/link.rs";

/// Unsafe code is in one file.
pub(super) fn unsafe_code_has_one_place(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| file.path != UNSAFE) {
        for (number, line) in (1..).zip(file.code.lines()) {
            if has_word(line, "unsafe_code") {
                let what = format!("unsafe code belongs into {UNSAFE}, or nowhere");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

fn is_pure(file: &File) -> bool {
    let inside = |name: &str| file.path.starts_with(&format!("crates/{name}/src/"));
    let of = |module: &&str| {
        let rest = file.path.strip_prefix(*module);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    let is_pure = PURE.iter().any(|name| inside(name)) || PURE_MODULES.iter().any(of);
    is_pure && !FACES.iter().any(|(face, _)| *face == file.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        machines_are_pure(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn each_banned_word_is_found() {
        for (word, _) in BANNED {
            let text = format!("use {word};");
            assert!(count("crates/node/src/lib.rs", &text) >= 1, "{word}");
        }
    }

    #[test]
    fn a_pure_module_of_a_crate_that_is_not_is_looked_at() {
        assert_eq!(count("crates/experiments/src/paper.rs", "use std::thread;"), 1);
        assert_eq!(count("crates/experiments/src/paper/rack.rs", "use std::thread;"), 1);
        assert_eq!(count("crates/experiments/src/papers.rs", "use std::thread;"), 0);
        assert_eq!(count("crates/experiments/src/site.rs", "use std::thread;"), 0);
    }

    #[test]
    fn unsafe_code_elsewhere_is_found() {
        let count = |path: &str| {
            let text = "#![expect(unsafe_code, reason = \"speed\")]\n// Not unsafe_code.";
            unsafe_code_has_one_place(&Tree::of(&[(path, text)])).len()
        };
        assert_eq!(count("crates/xdp/src/link.rs"), 0);
        assert_eq!(count("crates/xdp/src/plane.rs"), 1);
        assert_eq!(count("crates/node/tests/link.rs"), 1);
    }

    #[test]
    fn only_code_of_pure_crates_counts() {
        let text = "use std::time::Instant;";
        assert_eq!(count("crates/runtime/src/lib.rs", text), 0);
        assert_eq!(count("crates/switch/benches/pipeline.rs", text), 0);
        assert_eq!(count("crates/client/src/blocking/client.rs", text), 0);
        assert_eq!(count("crates/client/src/machine.rs", text), 1);
        assert_eq!(count("crates/node/src/lib.rs", "// unlike a HashMap\nlet a = \"tokio\";"), 0);
        assert_eq!(count("crates/node/src/lib.rs", "use hashbrown::HashTable;"), 0);
    }
}
