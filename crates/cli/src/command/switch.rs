//! `keyway switch`: a switch of a configured cluster.

use crate::command::role::Role;
use crate::exit::{Failure, Verdict};
use runtime::config::Config;
use runtime::server::Server;

/// Run a switch of a cluster as a process of its own.
///
/// Of several, one is active and the others stand by; the controller says which.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway switch --config cluster.toml --check
  keyway switch --config cluster.toml
  keyway switch --config cluster.toml --index 1        the second of two")]
pub(crate) struct Args {
    /// Which switch of the configuration, counted from 0; needed if there are several.
    #[arg(long, value_name = "N")]
    index: Option<u16>,
    #[command(flatten)]
    role: Role,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict, Failure> {
        let index = self.index.unwrap_or(0);
        self.role.run(
            &format!("switch {index}"),
            |config| self.check(config),
            |config| Server::start_switch(config, index),
        )
    }

    fn check(&self, config: &Config) -> Result<(), Failure> {
        let (count, last) = (config.switches.len(), config.switches.len().saturating_sub(1));
        match self.index {
            None if count > 1 => {
                Err(Failure::usage(format!("there are {count} switches: add --index 0 to {last}")))
            }
            Some(index) if usize::from(index) >= count => Err(Failure::usage(format!(
                "no switch {index} in the configuration; choose --index 0 to {last}"
            ))),
            _ => Ok(()),
        }
    }
}
