//! `keyway status`: how the cluster stands.

use crate::admin::Admin;
use crate::chart::{bar, grouped, table};
use crate::cli::Shared;
use crate::exit::{Failure, Verdict};
use crate::out;
use cluster::KeyspaceKind;
use controller::{KeyspaceStatus, NodeLoad, Status};

/// Show how the cluster stands: members, keyspaces, load.
///
/// Ends with exit code 1 if some keys cannot be read and written at the moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway status
  keyway status --json
  until keyway status >/dev/null; do sleep 1; done")]
pub(crate) struct Args {
    /// Show what the controller did lately, too.
    #[arg(long)]
    decisions: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let status = Admin::new(shared.admin, shared.timeout).status()?;
        if shared.json {
            let text = serde_json::to_string(&status).map_err(|error| Failure::Other(error.into()));
            out::line(&text?);
        } else {
            out::print(&describe(&status, self.decisions));
        }
        Ok(if status.covered { Verdict::Yes } else { Verdict::No })
    }
}

fn describe(status: &Status, decisions: bool) -> String {
    let state = match (status.ready, status.covered) {
        (true, _) => "ready",
        (false, true) => "serving all keys, but not every member is ready",
        (false, false) => "not serving all keys",
    };
    let mut text = format!("cluster   {state} (map revision {})\n\n", status.revision);
    text.push_str(&members(status));
    text.push('\n');
    text.push_str(&keyspaces(&status.keyspaces));
    text.push('\n');
    text.push_str(&load(&status.load));
    if decisions {
        text.push_str("\ndecisions, oldest first\n");
        for decision in &status.decisions {
            text.push_str(&format!("  {}: {}\n", decision.saw, decision.did));
        }
    }
    text
}

fn members(status: &Status) -> String {
    let mut text = String::from("members\n");
    for member in &status.members {
        let name = member.member.to_string();
        text.push_str(&format!("  {name:<10} {:<22} {}\n", member.endpoint, member.detail));
    }
    text
}

fn keyspaces(keyspaces: &[KeyspaceStatus]) -> String {
    let head = ["keyspace", "kind", "partitions", "replicas", "reads", "writes"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for keyspace in keyspaces {
        rows.push(vec![
            keyspace.name.clone(),
            kind(&keyspace.kind),
            keyspace.partitions.len().to_string(),
            keyspace.replicas.to_string(),
            grouped(keyspace.partitions.iter().map(|p| p.reads).sum()),
            grouped(keyspace.partitions.iter().map(|p| p.writes).sum()),
        ]);
    }
    table(&rows)
}

/// Hash, or range with its prefix.
pub(crate) fn kind(kind: &KeyspaceKind) -> String {
    match kind {
        KeyspaceKind::Hash => "hash".to_owned(),
        KeyspaceKind::Range { prefix } if prefix.is_empty() => "range".to_owned(),
        KeyspaceKind::Range { prefix } => format!("range after {}", prefix.escape_ascii()),
    }
}

/// A bar for the reads and writes of each node.
pub(crate) fn load(load: &[NodeLoad]) -> String {
    let total = |node: &NodeLoad| node.reads.saturating_add(node.writes);
    let most = load.iter().map(total).max().unwrap_or(0);
    let head = ["node", "head of", "tail of", "reads", "writes", "waiting", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for node in load {
        rows.push(vec![
            node.node.to_string(),
            node.heads.to_string(),
            node.tails.to_string(),
            grouped(node.reads),
            grouped(node.writes),
            grouped(node.pending),
            format!("{:<BAR_WIDTH$}", bar(total(node), most, BAR_WIDTH)),
        ]);
    }
    table(&rows)
}

const BAR_WIDTH: usize = 30;
