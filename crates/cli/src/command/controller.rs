//! `keyway controller`: the controller of a configured cluster.

use crate::command::role::Role;
use crate::exit::{Failure, Verdict};
use runtime::server::Server;

/// Run the controller of a cluster as a process of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway controller --config cluster.toml --check
  keyway controller --config cluster.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    role: Role,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict, Failure> {
        self.role.run("controller", |_| Ok(()), Server::start_controller)
    }
}
