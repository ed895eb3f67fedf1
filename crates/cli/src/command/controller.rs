//! `keyway controller`: the controller of a configured cluster.

mod rebuild;

use crate::command::role::Role;
use console::exit::{Failure, Verdict};
use console::shared::Shared;
use runtime::config::Config;
use runtime::server::Server;

/// Run the controller of a cluster as a process of its own.
///
/// There is one at a time: it holds the lock of its data directory. Another one that is started
/// with --standby waits for the lock, on the same machine, and takes over when the first ends,
/// however it ends.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  keyway controller --config cluster.toml --check
  keyway controller --config cluster.toml
  keyway controller --config cluster.toml --standby
  keyway controller rebuild --config cluster.toml      when its store is lost")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Wait until no other controller runs, then take over. Serves at `admin` of the configuration,
    /// or at `standby_admin` if that is taken.
    #[arg(long)]
    standby: bool,
    #[command(flatten)]
    role: Role,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Rebuild(rebuild::Args),
}

impl Args {
    pub(crate) fn run(mut self, shared: &Shared) -> Result<Verdict, Failure> {
        if let Some(Command::Rebuild(args)) = self.command.take() {
            return args.run(shared);
        }
        let start = if self.standby { Server::start_standby } else { Server::start_controller };
        self.role.run(shared, "controller", false, |config| self.check(config), start)
    }

    fn check(&self, config: &Config) -> Result<(), Failure> {
        if self.standby && config.controller.standby_admin.is_none() {
            let why = "a controller that stands by needs an address of its own: add standby_admin \
                       = \"HOST:PORT\" to [controller]";
            return Err(Failure::usage(why));
        }
        Ok(())
    }
}
