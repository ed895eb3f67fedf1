//! Configurations: a good one to change, and what `--check` says about bad ones.

use crate::harness::{free_addresses, run};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A cluster of one switch, three nodes and a controller, in a file.
#[derive(Debug)]
pub(crate) struct Cluster {
    directory: TempDir,
    pub(crate) service: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) text: String,
}

pub(crate) const NODES: u16 = 3;

impl Cluster {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let mut free = free_addresses(3 + 2 * usize::from(NODES)).into_iter();
        let mut next = || free.next().expect("as many as asked for");
        let (service, switch_admin, admin) = (next(), next(), next());
        let data = directory.path().join("controller");
        let mut text = format!(
            "[cluster]\nseed = 7\n\n\
             [switch]\nservice = \"{service}\"\nadmin = \"{switch_admin}\"\n\n\
             [controller]\nadmin = \"{admin}\"\ndata = \"{}\"\n\n",
            data.display()
        );
        for id in 1..=NODES {
            let (listen, admin) = (next(), next());
            write!(text, "[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n\n")
                .expect("strings take everything");
        }
        text.push_str("[[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 16\n\n");
        text.push_str("[[keyspace]]\nname = \"words\"\nkind = \"range\"\npartitions = 8\n");
        Self { directory, service, admin, text }
    }

    /// Writes the text into a file.
    pub(crate) fn file(&self, text: &str) -> PathBuf {
        let path = self.directory.path().join("cluster.toml");
        std::fs::write(&path, text).expect("the directory is ours");
        path
    }
}

fn check(path: &Path, role: &[&str]) -> crate::harness::Ran {
    let path = path.display().to_string();
    let mut arguments = role.to_vec();
    arguments.extend(["--config", &path, "--check"]);
    run(&arguments)
}

#[test]
fn a_good_configuration_is_fine_for_every_role() {
    let cluster = Cluster::new();
    let path = cluster.file(&cluster.text);
    for role in [&["switch"][..], &["controller"], &["node", "--id", "1"], &["node", "--id", "3"]] {
        check(&path, role).expect(0);
    }
    let ran = check(&path, &["node", "--id", "9"]).expect(2);
    assert!(ran.stderr.contains("there are 1, 2, 3"), "{ran:?}");
}

#[test]
fn a_bad_configuration_is_refused_with_everything_that_is_wrong() {
    let cluster = Cluster::new();
    let good = &cluster.text;
    let service = cluster.service.to_string();
    let changes: [(&str, String, &[&str]); 8] = [
        ("not TOML", "[cluster".to_owned(), &["not a configuration"]),
        ("an unknown field", good.replace("seed", "sead"), &["sead"]),
        ("no nodes", good.split("[[node]]").next().unwrap_or_default().to_owned(), &["no node"]),
        ("a node twice", good.replace("id = 2", "id = 1"), &["node 1 is there more than once"]),
        ("a wildcard", good.replace(&service, "0.0.0.0:7700"), &["wildcard"]),
        ("fjall without data", good.replace("id = 3", "id = 3\nengine = \"fjall\""), &["data = "]),
        (
            "a name and replicas",
            good.replace("\"words\"\n", "\"wo rds\"\nreplicas = 4\n"),
            &["choose a name", "replicas is 4"],
        ),
        (
            "splits of a hash keyspace",
            good.replace("partitions = 16", "partitions = 2\nsplits = [\"m\"]"),
            &["remove them"],
        ),
    ];
    for (what, text, reasons) in changes {
        assert_ne!(&text, good, "{what} is a change");
        let ran = check(&cluster.file(&text), &["switch"]).expect(2);
        for reason in reasons {
            assert!(ran.stderr.contains(reason), "{what}: {reason:?} is missing: {ran:#?}");
        }
    }
}
