//! What `switch`, `node` and `controller` have in common: one role of a configured cluster.

use crate::command::logs::Logs;
use crate::exit::{Failure, Verdict};
use crate::out;
use anyhow::Context;
use runtime::config::Config;
use runtime::server::{Server, StartError};
use runtime::signals::{RELOAD, Signals};
use std::path::PathBuf;

/// Which configuration, and what to do with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Role {
    /// The cluster's configuration, the same file on every machine.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Check the configuration and end: exit code 2 and a list of everything wrong, or 0.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    logs: Logs,
}

impl Role {
    /// Checks the configuration, or runs the role until it is asked to end. With `reloads` it does
    /// not end but reload when the terminal hangs up.
    pub(crate) fn run(
        &self,
        name: &str,
        reloads: bool,
        check: impl FnOnce(&Config) -> Result<(), Failure>,
        start: impl FnOnce(&Config) -> Result<Server, StartError>,
    ) -> Result<Verdict, Failure> {
        let config =
            Config::load(&self.config).map_err(|error| Failure::usage(error.to_string()))?;
        check(&config)?;
        if self.check {
            out::line(&format!("{}: fine for this {name}", self.config.display()))?;
            return Ok(Verdict::Yes);
        }
        self.logs.start("info")?;
        let hold = if reloads { Signals::hold_with_reload } else { Signals::hold };
        let signals = hold().context("cannot hold signals back")?;
        let server = start(&config).map_err(|error| Failure::Other(error.into()))?;
        let state = if server.stands_by() { "stands by" } else { "ready" };
        out::line(&format!("{name} {state}, admin server at http://{}", server.admin()))?;
        let signal = loop {
            match signals.wait().context("cannot wait for signals")? {
                RELOAD => server.reload(),
                signal => break signal,
            }
        };
        note!("keyway: {signal}: ending in good order");
        server.stop();
        Ok(Verdict::Yes)
    }
}
