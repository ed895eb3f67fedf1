//! `keyway controller`: the controller of a configured cluster.

use crate::cli::Shared;
use crate::command::role::Role;
use crate::exit::{Failure, Verdict};
use runtime::config::Config;
use runtime::server::Server;

/// Run the controller of a cluster as a process of its own.
///
/// There is one at a time: it holds the lock of its data directory. Another one that is started
/// with --standby waits for the lock, on the same machine, and takes over when the first ends,
/// however it ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway controller --config cluster.toml --check
  keyway controller --config cluster.toml
  keyway controller --config cluster.toml --standby")]
pub(crate) struct Args {
    /// Wait until no other controller runs, then take over. Serves at `admin` of the configuration,
    /// or at `standby_admin` if that is taken.
    #[arg(long)]
    standby: bool,
    #[command(flatten)]
    role: Role,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
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
