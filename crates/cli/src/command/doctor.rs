//! `keyway doctor`: whether this machine can switch packets in its kernel, and whether data and
//! backends are sound.

use crate::doctor::finding::{Finding, Grade};
use crate::doctor::link::Link;
use crate::doctor::{backend, content, data, etcd, machine, port, read, security};
use cluster::ContentRouting;
use console::admin::Admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::out::{self, Tone, paint};
use console::shared::Shared;
use runtime::config::Config;
use serde_json::json;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Check whether this machine can run `keyway switch --plane xdp`, and say what to do if not.
///
/// With --data it checks data directories instead: who gets in, whether there is room, and whether
/// the stores in them, of controllers and nodes, are whole as far as that can be told while they
/// may be in use. With --config it checks what the nodes of a cluster keep their values in, where
/// that is a Redis or a memcached, the etcd of its controllers, the data directories that are on
/// this machine, and, where there are content addresses, whether they lead to its nodes and caches.
///
/// With --security it says what of a cluster is open to others: the control plane, packets, rights.
///
/// Run it where the switch will run: as root, in its network namespace. On each of the ports the
/// program is attached for a moment, unless another one is there; it passes everything on, but some
/// drivers reset their link for it. Exit code 1 if something is a problem.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo keyway doctor                                 the machine, and which interfaces there are
  sudo keyway doctor --ports eth1,eth2 --service 10.0.0.1:7700
  keyway doctor --data /var/lib/keyway
  keyway doctor --config keyway.toml
  keyway doctor --security --config keyway.toml      what of the cluster is open to others
  sudo ip netns exec keyway-lab-sw keyway doctor --ports p-c0,p-n1 --service 10.77.255.1:7700")]
pub(crate) struct Args {
    /// Interfaces to which clients and nodes are connected, with commas.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    ports: Vec<String>,
    /// Data directories, with commas: those of controllers and nodes, or that of `keyway up`.
    #[arg(long, value_name = "DIR,..", value_delimiter = ',', conflicts_with = "ports")]
    data: Vec<PathBuf>,
    /// The cluster's configuration.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ports", "data"])]
    config: Option<PathBuf>,
    /// Say what of the cluster is open to others, as its controller and --config tell.
    #[arg(long, conflicts_with_all = ["ports", "data"])]
    security: bool,
}

/// Everything that was found.
#[derive(Debug, Default)]
struct Report {
    machine: Vec<Finding>,
    ports: Vec<(String, Vec<Finding>)>,
    /// Interfaces that could be ports, if none were named.
    candidates: Vec<Candidate>,
    data: Vec<(String, Vec<Finding>)>,
    /// By the addresses that nodes know them by.
    backends: Vec<(String, Vec<Finding>)>,
    /// By where it is.
    etcd: Vec<(String, Vec<Finding>)>,
    /// By the names of nodes and caches that are on this machine.
    content: Vec<(String, Vec<Finding>)>,
    security: Vec<Finding>,
}

#[derive(Debug, serde::Serialize)]
struct Candidate {
    name: String,
    driver: Option<String>,
    up: bool,
    mtu: u32,
    /// The bridge or bond that it belongs to.
    master: Option<String>,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        if self.security {
            let security = check_security(self.config.as_deref(), shared)?;
            return Report { security, ..Report::default() }.print(shared);
        }
        if let Some(path) = &self.config {
            return Report::of_cluster(path)?.print(shared);
        }
        if !self.data.is_empty() {
            let data = self.data.iter().map(|path| check_data(path)).collect();
            return Report { data, ..Report::default() }.print(shared);
        }
        let links = read::links()?;
        let program = read::load();
        let machine = machine::check(&read::machine(&program, &links), &shared.services);
        let check = |name: &String| {
            let link = links.iter().find(|link| link.name == *name);
            let seen = link.map(|link| port::check(&read::port(link, program.as_ref().ok())));
            (name.clone(), seen.unwrap_or_else(|| vec![not_there()]))
        };
        let ports = self.ports.iter().map(check).collect();
        let wanted = links.iter().filter(|link| self.ports.is_empty() && link.is_candidate());
        let candidates = wanted.map(Candidate::of).collect();
        Report { machine, ports, candidates, ..Report::default() }.print(shared)
    }
}

fn check_security(config: Option<&Path>, shared: &Shared) -> Result<Vec<Finding>, Failure> {
    let load = |path| Config::load(path).map_err(|error| Failure::usage(error.to_string()));
    let config = config.map(load).transpose()?;
    let status = Admin::of(shared, shared.timeout)?.status()?;
    let credentials = shared.security()?.credentials();
    let ca_key = shared.certs.as_deref().filter(|path| path.is_dir()).map(|it| it.join("ca.key"));
    let seen = security::Seen {
        protection: status.security,
        envelopes: status.envelopes,
        services: &shared.services,
        certificate: credentials.as_ref().map(|it| (it.identity(), it.left())),
        ca_key: ca_key.filter(|path| path.is_file()),
        config: config.as_ref(),
    };
    Ok(security::check(&seen))
}

/// Whether the etcd of the controllers, if they have one, is well.
fn check_etcd(config: &Config) -> Result<Vec<(String, Vec<Finding>)>, Failure> {
    let Some(url) = &config.controller.store else { return Ok(Vec::new()) };
    let access = config.etcd_access(url).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(vec![(url.to_string(), etcd::check(url, access))])
}

fn check_data(path: &Path) -> (String, Vec<Finding>) {
    (path.display().to_string(), data::check(path))
}

/// Whether content addresses lead to the roles of a cluster that are on this machine.
fn check_content(config: &Config, content: &ContentRouting) -> Vec<(String, Vec<Finding>)> {
    let owned = read::owned(content);
    let here = |listen: SocketAddr| read::is_own(listen.ip()) == Ok(true);
    let nodes = config.nodes.iter().filter(|it| here(it.listen));
    let nodes = nodes.map(|it| (format!("node {}", it.id), content::check_node(content, &owned)));
    let caches = config.caches.iter().filter(|it| here(it.listen));
    let caches =
        caches.map(|it| (format!("cache {}", it.id), content::check_cache(content, &owned)));
    nodes.chain(caches).map(|(name, finding)| (name, vec![finding])).collect()
}

fn not_there() -> Finding {
    let todo = "keyway doctor, in the network namespace of the switch, lists those that are there";
    Finding::problem("link", "there is no such interface", todo)
}

impl Candidate {
    fn of(link: &Link) -> Self {
        Self {
            name: link.name.clone(),
            driver: read::driver(&link.name).or_else(|| link.kind().map(str::to_owned)),
            up: link.is("UP"),
            mtu: link.mtu,
            master: link.master.clone(),
        }
    }
}

impl Report {
    /// What the roles of a configuration keep, as far as it can be seen from here.
    fn of_cluster(path: &Path) -> Result<Self, Failure> {
        let config = Config::load(path).map_err(|error| Failure::usage(error.to_string()))?;
        let directories = config.nodes.iter().filter_map(|node| node.data.as_ref());
        let directories = directories.chain([&config.controller.data]).filter(|it| it.exists());
        let backends = config.nodes.iter().filter_map(|node| node.backend.as_ref());
        Ok(Self {
            data: directories.map(|path| check_data(path)).collect(),
            backends: backends.map(|url| (url.to_string(), backend::check(url))).collect(),
            etcd: check_etcd(&config)?,
            content: config
                .content
                .map_or_else(Vec::new, |content| check_content(&config, &content)),
            ..Self::default()
        })
    }

    fn print(&self, shared: &Shared) -> Result<Verdict, Failure> {
        if shared.json {
            self.json().print()?;
        } else {
            out::print(&self.text())?;
        }
        Ok(if self.count(Grade::Problem) == 0 { Verdict::Yes } else { Verdict::No })
    }

    fn count(&self, grade: Grade) -> usize {
        let parts = self.ports.iter().chain(self.configured());
        let all = self.machine.iter().chain(parts.flat_map(|(_, findings)| findings));
        let all = all.chain(&self.security);
        all.filter(|finding| finding.grade == grade).count()
    }

    /// What roles keep, where they keep it, and where they are reached.
    fn configured(&self) -> impl Iterator<Item = &(String, Vec<Finding>)> {
        self.data.iter().chain(&self.backends).chain(&self.etcd).chain(&self.content)
    }

    fn json(&self) -> Answer {
        let checks = |kind: &str, parts: &[(String, Vec<Finding>)]| -> Vec<serde_json::Value> {
            let each = parts.iter().map(|(it, findings)| json!({ kind: it, "checks": findings }));
            each.collect()
        };
        let (ports, data) = (checks("port", &self.ports), checks("directory", &self.data));
        let backends = checks("backend", &self.backends);
        let content = checks("role", &self.content);
        let well = self.count(Grade::Problem) == 0;
        Answer::new(if well { "done" } else { "not_ready" })
            .with("problems", self.count(Grade::Problem))
            .with("warnings", self.count(Grade::Warning))
            .with("machine", &self.machine)
            .with("ports", ports)
            .with("data", data)
            .with("backends", backends)
            .with("etcd", checks("etcd", &self.etcd))
            .with("content", content)
            .with("security", &self.security)
            .with("candidates", &self.candidates)
    }

    fn text(&self) -> String {
        let about_machine = !self.machine.is_empty();
        let mut text = if about_machine { "this machine\n".to_owned() } else { String::new() };
        self.machine.iter().for_each(|finding| add(&mut text, finding));
        for (port, findings) in &self.ports {
            text.push_str(&format!("\n{port}\n"));
            findings.iter().for_each(|finding| add(&mut text, finding));
        }
        for (it, findings) in self.configured() {
            text.push_str(&format!("{it}\n"));
            findings.iter().for_each(|finding| add(&mut text, finding));
        }
        self.security.iter().for_each(|finding| add(&mut text, finding));
        if self.ports.is_empty() && about_machine {
            text.push_str(&self.candidates());
        }
        let (problems, warnings) = (self.count(Grade::Problem), self.count(Grade::Warning));
        let verdict = match (problems, warnings) {
            (0, 0) => "all is well".to_owned(),
            (problems, warnings) => format!("problems: {problems}, warnings: {warnings}"),
        };
        text + "\n" + &verdict + "\n"
    }

    fn candidates(&self) -> String {
        if self.candidates.is_empty() {
            return "\nno interfaces that could be ports\n".to_owned();
        }
        let mut text =
            "\ninterfaces that could be ports (keyway doctor --ports NAME,..)\n".to_owned();
        for it in &self.candidates {
            let driver = it.driver.as_deref().unwrap_or("unknown driver");
            let up = if it.up { "up" } else { "down" };
            let of = it.master.as_ref().map_or_else(String::new, |it| format!(", part of {it}"));
            let mtu = it.mtu;
            writeln!(text, "  {:<16} {driver}, {up}, MTU {mtu}{of}", it.name)
                .expect("strings take everything");
        }
        text
    }
}

/// A line for what was found, and one for what to do.
fn add(text: &mut String, finding: &Finding) {
    let Finding { check, grade, found, remedy } = finding;
    let tone = match grade {
        Grade::Ok => Tone::Good,
        Grade::Warning => Tone::Doubtful,
        Grade::Problem => Tone::Bad,
    };
    let word = paint(tone, &format!("{:<8}", grade.word()));
    let mut say = |line| writeln!(text, "{line}").expect("strings take everything");
    say(format!("  {word} {check:<16} {found}"));
    if let Some(remedy) = remedy {
        say(format!("  {:<25} → {remedy}", ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ports: Vec<(String, Vec<Finding>)>) -> Report {
        let eth1 = Candidate {
            name: "eth1".into(),
            driver: Some("virtio_net".into()),
            up: true,
            mtu: 1_500,
            master: Some("br0".into()),
        };
        let candidates = if ports.is_empty() { vec![eth1] } else { Vec::new() };
        let machine = vec![Finding::ok("jit", "on")];
        Report { machine, ports, candidates, ..Report::default() }
    }

    #[test]
    fn what_is_to_be_done_stands_below_what_was_found() {
        let bad = Finding::problem("link", "down", "sudo ip link set dev eth1 up");
        let one = report(vec![("eth1".into(), vec![bad, Finding::ok("mtu", "1500")])]);
        let text = one.text();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| line.starts_with("problem")).unwrap();
        assert_eq!(lines[at + 1], "→ sudo ip link set dev eth1 up");
        assert_eq!(lines.last(), Some(&"problems: 1, warnings: 0"));
        let json: serde_json::Value = serde_json::from_str(&one.json().line()).unwrap();
        assert_eq!(json["outcome"], "not_ready");
        assert_eq!(json["ports"][0]["checks"][0]["grade"], "problem");
        assert_eq!(json["ports"][0]["checks"][1].get("remedy"), None);
    }

    #[test]
    fn without_ports_the_interfaces_are_listed() {
        let text = report(Vec::new()).text();
        assert!(text.contains("virtio_net, up, MTU 1500, part of br0"), "{text}");
        assert!(text.ends_with("all is well\n"), "{text}");
    }
}
