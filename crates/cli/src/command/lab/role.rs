//! Roles of a configured cluster as experiments need them, and no operator.

use crate::command::node::check_id;
use crate::command::role::Role;
use crate::command::switch::check_index;
use cluster::NodeId;
use console::exit::{Failure, Verdict};
use console::parse;
use console::shared::Shared;
use runtime::server::Server;
use std::num::NonZero;

/// Run one storage node that serves requests at a fixed rate, as a slow server would.
///
/// Each shard serves them one after the other; writes that come down a chain count. A queue of 256
/// waits; what comes when it is full is dropped and counted as queue_full.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab node --config cluster.toml --id 1 --max-rate 10k")]
pub(super) struct Node {
    /// Which node of the configuration.
    #[arg(long)]
    id: u16,
    /// Requests per second that each shard serves at most.
    #[arg(long, value_name = "PER_SECOND", value_parser = parse::rate)]
    max_rate: NonZero<u32>,
    #[command(flatten)]
    role: Role,
}

impl Node {
    pub(super) fn run(&self, shared: &Shared) -> Result<Verdict, Failure> {
        let id = NodeId(self.id);
        self.role.run(
            shared,
            &format!("node {id}"),
            false,
            |config| check_id(config, id),
            |config| Server::start_limited_node(config, id, self.max_rate),
        )
    }
}

/// Run a switch that goes by the hints of multigets which have some (keyway bench --multigets
/// assisted), as one that cannot loop over keys must.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab switch --config cluster.toml")]
pub(super) struct Switch {
    /// Which switch of the configuration, counted from 0; needed if there are several.
    #[arg(long, value_name = "N")]
    index: Option<u16>,
    #[command(flatten)]
    role: Role,
}

impl Switch {
    pub(super) fn run(&self, shared: &Shared) -> Result<Verdict, Failure> {
        let index = self.index.unwrap_or(0);
        self.role.run(
            shared,
            &format!("switch {index}"),
            false,
            |config| check_index(config, self.index),
            |config| Server::start_switch_by_hints(config, index),
        )
    }
}
