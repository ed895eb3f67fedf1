//! Configurations: a good one to change, and what `--check` says about bad ones.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testkit::program::{free_addresses, run};

/// A cluster of processes, in a file.
#[derive(Debug)]
pub(crate) struct Cluster {
    directory: TempDir,
    /// Service addresses of its switches.
    pub(crate) services: Vec<SocketAddr>,
    /// Admin addresses of its switches.
    pub(crate) switch_admins: Vec<SocketAddr>,
    /// Admin addresses of its controllers.
    pub(crate) admins: Vec<SocketAddr>,
    /// For each node from 1 on, where packets and where orders reach it.
    pub(crate) nodes: Vec<[SocketAddr; 2]>,
    /// Where its certificates are, if it has any.
    pub(crate) certs: Option<PathBuf>,
    pub(crate) text: String,
}

/// What a cluster consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: u16,
    pub(crate) switches: u16,
    /// Whether there is an address for a second controller.
    pub(crate) standby: bool,
}

pub(crate) const NODES: u16 = 3;

impl Cluster {
    /// One switch, three nodes and a controller.
    pub(crate) fn new() -> Self {
        Self::with(Shape { nodes: NODES, switches: 1, standby: false })
    }

    pub(crate) fn with(shape: Shape) -> Self {
        let Shape { nodes, switches, standby } = shape;
        let directory = TempDir::new().expect("a temporary directory");
        let mut free = free_addresses(2 + 2 * usize::from(nodes + switches)).into_iter();
        let mut next = || free.next().expect("as many as asked for");
        let mut text = "[cluster]\nseed = 7\n\n".to_owned();
        let table = if switches == 1 { "[switch]" } else { "[[switch]]" };
        let (mut services, mut switch_admins) = (Vec::new(), Vec::new());
        for _ in 0..switches {
            let (service, admin) = (next(), next());
            text.push_str(&format!("{table}\nservice = \"{service}\"\nadmin = \"{admin}\"\n"));
            text.push_str("threads = 1\n\n");
            services.push(service);
            switch_admins.push(admin);
        }
        let data = directory.path().join("controller");
        let mut admins = vec![next()];
        text.push_str(&format!("[controller]\nadmin = \"{}\"\ndata = {data:?}\n", admins[0]));
        if standby {
            admins.push(next());
            text.push_str(&format!("standby_admin = \"{}\"\n", admins[1]));
        }
        let mut places = Vec::new();
        for id in 1..=nodes {
            let [listen, admin] = [next(), next()];
            write!(text, "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n")
                .expect("strings take everything");
            places.push([listen, admin]);
        }
        text.push_str("\n[[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 16\n");
        text.push_str("\n[[keyspace]]\nname = \"words\"\nkind = \"range\"\npartitions = 8\n");
        Self { directory, services, switch_admins, admins, nodes: places, certs: None, text }
    }

    /// The same with controllers whose store is this etcd.
    pub(crate) fn with_etcd(etcd: &str, controllers: usize) -> Self {
        Self::new().in_etcd(etcd, controllers)
    }

    fn in_etcd(self, etcd: &str, controllers: usize) -> Self {
        let mut cluster = self;
        let more = free_addresses(controllers - 1);
        let from = cluster.text.find("data = ").expect("a controller has a directory");
        let end = from + cluster.text[from..].find('\n').expect("a line ends");
        let store = format!("store = \"{etcd}/keyway\"\nother_admins = {more:?}");
        let store = more
            .iter()
            .fold(store, |text, at| text.replace(&format!("{at:?}"), &format!("\"{at}\"")));
        cluster.text.replace_range(from..end, &store);
        cluster.admins.extend(more);
        cluster
    }

    /// One that stands for long, and whose members may be restarted one by one: nodes keep what
    /// they have on disk, and each of the other roles is there more than once.
    pub(crate) fn to_last(etcd: &str, nodes: u16, controllers: usize) -> Self {
        let shape = Shape { nodes, switches: 2, standby: false };
        let mut cluster = Self::with(shape).in_etcd(etcd, controllers);
        for id in 1..=nodes {
            let data = cluster.directory.path().join(format!("node-{id}"));
            let named = format!("[[node]]\nid = {id}\n");
            let durable = format!("{named}engine = \"fjall\"\ndata = {data:?}\n");
            assert!(cluster.text.contains(&named));
            cluster.text = cluster.text.replace(&named, &durable);
        }
        cluster
    }

    /// The same with a certificate for everybody, as `keyway certs init` makes them.
    pub(crate) fn secured(self) -> Self {
        let mut cluster = self;
        let certs = cluster.directory.path().join("certs");
        cluster.text.push_str(&format!("\n[security]\ndirectory = {certs:?}\n"));
        let config = cluster.file(&cluster.text);
        run(&["certs", "init", "--config", config.to_str().expect("a path")]).expect(0);
        cluster.certs = Some(certs);
        cluster
    }

    /// The directory that an embedded store would have.
    pub(crate) fn controller_data(&self) -> PathBuf {
        self.directory.path().join("controller")
    }

    /// Writes the text into a file.
    pub(crate) fn file(&self, text: &str) -> PathBuf {
        let path = self.directory.path().join("cluster.toml");
        std::fs::write(&path, text).expect("the directory is ours");
        path
    }
}

fn check(path: &Path, role: &[&str]) -> testkit::program::Ran {
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
    let ran = check(&path, &["switch", "--index", "1"]).expect(2);
    assert!(ran.stderr.contains("no switch 1"), "{ran:?}");
    let ran = check(&path, &["controller", "--standby"]).expect(2);
    assert!(ran.stderr.contains("add standby_admin"), "{ran:?}");
    let two = Cluster::with(Shape { nodes: 3, switches: 2, standby: true });
    let path = two.file(&two.text);
    check(&path, &["switch", "--index", "1"]).expect(0);
    check(&path, &["controller", "--standby"]).expect(0);
    let ran = check(&path, &["switch"]).expect(2);
    assert!(ran.stderr.contains("add --index 0 to 1"), "{ran:?}");
}

#[test]
fn a_bad_configuration_is_refused_with_everything_that_is_wrong() {
    let cluster = Cluster::new();
    let good = &cluster.text;
    let service = cluster.services[0].to_string();
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
