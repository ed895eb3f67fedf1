//! `keyway controller`: the controller of a configured cluster.

mod migrate;
mod rebuild;

use crate::command::role::Role;
use console::exit::{Failure, Verdict};
use console::shared::Shared;
use runtime::config::Config;
use runtime::server::Server;

/// Run the controller of a cluster as a process of its own.
///
/// There is one at a time that leads: it holds the lock of its data directory. Another one that is
/// started with --standby waits for the lock, on the same machine, and takes over when the first
/// ends, however it ends. With a `store` in an etcd, controllers run on several machines; they are
/// all started in the same way, one leads, and another one does a second after that has failed.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  keyway controller --config cluster.toml --check
  keyway controller --config cluster.toml
  keyway controller --config cluster.toml --standby
  keyway controller rebuild --config cluster.toml      when its store is lost
  keyway controller migrate-store --from DIR --to etcd://HOST:PORT/PREFIX")]
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
    MigrateStore(migrate::Args),
}

impl Args {
    pub(crate) fn run(mut self, shared: &Shared) -> Result<Verdict, Failure> {
        match self.command.take() {
            Some(Command::Rebuild(args)) => return args.run(shared),
            Some(Command::MigrateStore(args)) => return args.run(shared),
            None => {}
        }
        let start = if self.standby { Server::start_standby } else { Server::start_controller };
        self.role.run(shared, "controller", false, |config| self.check(config), start)
    }

    fn check(&self, config: &Config) -> Result<(), Failure> {
        if self.standby && config.controller.admins().len() < 2 {
            let why = "a controller that stands by needs an address of its own: add standby_admin \
                       = \"HOST:PORT\" to [controller]";
            return Err(Failure::usage(why));
        }
        Ok(())
    }
}
