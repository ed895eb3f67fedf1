//! `keyway node`: one storage node of a configured cluster.

use crate::command::role::Role;
use cluster::NodeId;
use console::exit::{Failure, Verdict};
use console::shared::Shared;
use runtime::config::Config;
use runtime::server::Server;

/// Run one storage node of a cluster as a process of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway node --config cluster.toml --id 1 --check
  keyway node --config cluster.toml --id 1")]
pub(crate) struct Args {
    /// Which node of the configuration.
    #[arg(long)]
    id: u16,
    #[command(flatten)]
    role: Role,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let id = NodeId(self.id);
        self.role.run(
            shared,
            &format!("node {id}"),
            false,
            |config| check_id(config, id),
            |config| Server::start_node(config, id),
        )
    }
}

/// Whether there is a node of this id.
pub(crate) fn check_id(config: &Config, id: NodeId) -> Result<(), Failure> {
    if config.node(id).is_some() {
        return Ok(());
    }
    let known: Vec<String> = config.nodes.iter().map(|n| n.id.to_string()).collect();
    let known = known.join(", ");
    Err(Failure::usage(format!("no node {id} in the configuration; there are {known}")))
}
