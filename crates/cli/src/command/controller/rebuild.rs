//! `keyway controller rebuild`: the map made anew from what nodes have on record.

mod plan;

use crate::command::role::private_files;
use cluster::{ClusterId, Lease, NodeId, NodeRecord, SwitchRecord};
use console::admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use controller::{Basis, ControllerConfig, RebuildError, Rebuilt};
use plan::describe;
use runtime::clock::Clock;
use runtime::config::Config;
use runtime::identity::Security;
use runtime::rebuild::Replaced;
use runtime::server::StartError;
use runtime::store::StoreError;
use runtime::up;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, IsTerminal as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Make the map anew from what the nodes have on record, when the controller's store is lost,
/// damaged or an older copy.
///
/// Every node keeps the last part of the map that it has followed. All nodes that can have been
/// members are asked, and the newest that any of them has on record of each partition says who its
/// members are. The plan is shown before anything is done; without a terminal, --yes does it. The
/// store that is replaced is kept under another name.
///
/// The nodes have to run, and no controller: it would decide something else meanwhile. Afterwards
/// start the controller: it compares what the members of each chain hold before it opens it.
///
/// Ends with exit code 1 if the plan was shown and not carried out, and with 3 if no map can be
/// made or a controller runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway controller rebuild --config keyway.toml
  keyway controller rebuild --config keyway.toml --without 3 --yes
  keyway controller rebuild --data ./data        of `keyway up --engine fjall --data ./data`")]
pub(super) struct Args {
    /// The cluster's configuration.
    #[arg(long, value_name = "FILE", required_unless_present = "data", conflicts_with = "data")]
    config: Option<PathBuf>,
    /// The data directory of `keyway up`, which must not run.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A node that is gone for good, or whose store is not to count. What only it has acknowledged
    /// is lost. May be said several times.
    #[arg(long, value_name = "ID")]
    without: Vec<u16>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

/// All that a map is made from.
struct Found {
    config: ControllerConfig,
    store: Replaced,
    records: Vec<NodeRecord>,
    /// Of those that answer.
    switches: Vec<SwitchRecord>,
    /// Why others said nothing.
    silent: BTreeMap<NodeId, String>,
}

impl Args {
    pub(super) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        private_files();
        let found = match (&self.config, &self.data) {
            (Some(path), _) => ask_nodes(path, shared)?,
            (None, Some(data)) => read_stores(data)?,
            (None, None) => return Err(Failure::usage("say --config FILE or --data DIR")),
        };
        let without: BTreeSet<NodeId> = self.without.iter().copied().map(NodeId).collect();
        let basis = Basis {
            config: &found.config,
            records: &found.records,
            switches: &found.switches,
            without: &without,
            older: found.store.older(),
            mutant: cluster::MaybeMutant::default(),
        };
        let rebuilt = controller::rebuild(&basis, Clock::new().now())
            .map_err(|error| Failure::Refused(explain(&error, &found.silent)))?;
        if !shared.json {
            out::print(&describe(&rebuilt, &found.store, &found.silent))?;
        }
        if !self.yes && !consents(shared)? {
            if shared.json {
                answer("planned", &rebuilt, None).print()?;
            } else {
                out::line("Nothing was changed. To do this: the same with --yes")?;
            }
            return Ok(Verdict::No);
        }
        let other = found.store.older().map(|it| it.map.cluster);
        let strange = other.is_some_and(|it| it != rebuilt.saved.map.cluster);
        let kept = found.store.replace(&rebuilt.saved).map_err(|it| Failure::Other(it.into()))?;
        if shared.json {
            answer("done", &rebuilt, kept).print()?;
        } else {
            out::print(&self.next_steps(kept, strange))?;
        }
        Ok(Verdict::Yes)
    }

    /// How the controller is started.
    fn start(&self) -> String {
        match (&self.config, &self.data) {
            (Some(config), _) => format!("keyway controller --config {}", config.display()),
            (None, Some(data)) => format!("keyway up --data {} ... as before", data.display()),
            (None, None) => String::new(),
        }
    }

    /// What is left to do. If another cluster's store was there, a controller has run without its
    /// own.
    fn next_steps(&self, kept: Option<PathBuf>, strange: bool) -> String {
        let kept = kept.map_or_else(String::new, |path| {
            format!("What was there is kept as {}.\n", path.display())
        });
        let strange = if strange && self.config.is_some() {
            "  restart the switches       if they follow the cluster that the store was of\n"
        } else {
            ""
        };
        let start = self.start();
        format!(
            "\
The controller's store has the new map.
{kept}Next:

  {start}
{strange}  keyway status --watch      chains open when their members have been compared
  keyway cluster verify      whether all replicas hold the same
"
        )
    }
}

/// Takes the controller's store, and asks the nodes.
fn ask_nodes(path: &Path, shared: &Shared) -> Result<Found, Failure> {
    let config = Config::load(path).map_err(|error| Failure::usage(error.to_string()))?;
    let (timeout, security) = (shared.timeout, security(&config, shared)?);
    if config.controller.data.as_os_str().is_empty() {
        return Err(Failure::usage(
            "the map is made anew in a directory: set data in [controller], and move it to the \
             etcd of its store afterwards (keyway controller migrate-store)",
        ));
    }
    let store = Replaced::of_config(&config).map_err(not_taken)?;
    // Nodes that were added by command may be in the older store alone.
    let older = store.older().into_iter().flat_map(|it| &it.controls).map(|(id, at)| (*id, *at));
    let configured = config.nodes.iter().map(|node| (NodeId(node.id), node.admin));
    let nodes: BTreeMap<NodeId, SocketAddr> = older.chain(configured).collect();
    let nodes: Vec<(NodeId, SocketAddr)> = nodes.into_iter().collect();
    let (mut clock, mut answers) = (Clock::new(), admin::records(&nodes, timeout, &security));
    // A controller that has just ended leaves leases behind.
    let lease = Duration::from_millis(config.controller.lease_ms);
    let give_up = Lease::over_by(clock.now(), lease) + timeout;
    if led(&answers).is_some() {
        note!("waiting until the leases of the last controller are over");
    }
    while led(&answers).is_some() && clock.now() < give_up {
        pause();
        answers = admin::records(&nodes, timeout, &security);
    }
    if let Some(node) = led(&answers) {
        return Err(Failure::Refused(format!(
            "a controller leads node {node} now: stop it, and those that stand by, and try again; \
             a map that is made meanwhile would not have what it decides"
        )));
    }
    let (mut records, mut silent) = (Vec::new(), BTreeMap::new());
    for (node, answer) in answers {
        match answer {
            Ok(record) => records.push(record),
            Err(why) => drop(silent.insert(node, why)),
        }
    }
    let ask = |at| admin::switch_record(at, timeout, &security);
    let asked = config.switches.iter().map(|it| ask(it.admin));
    let switches = asked.filter_map(Result::ok).collect();
    let config = config.controller_config(ClusterId::default());
    Ok(Found { config, store, records, switches, silent })
}

/// The certificate that the command line names, or else that of the controller.
fn security(config: &Config, shared: &Shared) -> Result<Security, Failure> {
    if shared.certs.is_some() {
        return shared.security();
    }
    config.security_of_controller().map_err(|error| Failure::usage(error.to_string()))
}

/// Reads what the nodes of a cluster in one process have on record.
fn read_stores(data: &Path) -> Result<Found, Failure> {
    let failed = |error: StoreError| match error {
        StoreError::Locked { .. } => Failure::Refused(error.to_string()),
        StoreError::Io { why, .. } if why.kind() == io::ErrorKind::NotFound => {
            Failure::usage(format!("{} is no data directory of keyway up", data.display()))
        }
        error => Failure::Other(error.into()),
    };
    // Before the store is taken, which makes its directory.
    let (config, records) = up::records_of(data).map_err(failed)?;
    let store = Replaced::of_up(data).map_err(not_taken)?;
    Ok(Found { config, store, records, switches: Vec::new(), silent: BTreeMap::new() })
}

/// The first node that has a lease.
fn led(answers: &[(NodeId, Result<NodeRecord, String>)]) -> Option<NodeId> {
    let leased = |answer: &Result<NodeRecord, String>| answer.as_ref().is_ok_and(|it| it.leased);
    answers.iter().find(|(_, answer)| leased(answer)).map(|(node, _)| *node)
}

fn not_taken(error: StartError) -> Failure {
    match error {
        StartError::Store(StoreError::Locked { path }) => Failure::Refused(format!(
            "a controller has {}: stop it, and those that stand by, and try again",
            path.display()
        )),
        error => Failure::Other(error.into()),
    }
}

/// Why no map can be made, and why nodes did not answer.
fn explain(error: &RebuildError, silent: &BTreeMap<NodeId, String>) -> String {
    let mut text = error.to_string();
    if let RebuildError::Missing(nodes) | RebuildError::Blank(nodes) = error {
        for (node, why) in silent.iter().filter(|(node, _)| nodes.contains(node)) {
            text.push_str(&format!("\n  node {node}: {why}"));
        }
    }
    text
}

/// Asks a person, if there is one.
fn consents(shared: &Shared) -> Result<bool, Failure> {
    if shared.json || !out::is_terminal() || !io::stdin().is_terminal() {
        return Ok(false);
    }
    out::print("Put this map in place of the controller's store? [y/N] ")?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| Failure::Other(error.into()))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn answer(outcome: &str, rebuilt: &Rebuilt, kept: Option<PathBuf>) -> Answer {
    let Rebuilt { saved, nodes, partitions } = rebuilt;
    Answer::new(outcome)
        .with("cluster", saved.map.cluster)
        .with("revision", saved.map.revision)
        .with("nodes", nodes)
        .with("partitions", partitions)
        .with("kept", kept)
}

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one asks again and again")]
fn pause() {
    std::thread::sleep(ASK_AGAIN);
}

/// How often nodes are asked whether their leases have ended.
const ASK_AGAIN: Duration = Duration::from_millis(100);
