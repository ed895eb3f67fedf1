//! What `switch`, `node` and `controller` have in common: one role of a configured cluster.

use anyhow::Context;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::logs::Logs;
use console::note;
use console::out;
use console::shared::Shared;
use nix::sys::stat::{Mode, umask};
use runtime::config::Config;
use runtime::server::{Server, StartError};
use runtime::signals::{HAND_OVER, RELOAD, Signals};
use runtime::store::BackendUrl;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Which configuration, and what to do with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Role {
    /// The cluster's configuration, the same file on every machine.
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
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
        shared: &Shared,
        name: &str,
        reloads: bool,
        check: impl FnOnce(&Config) -> Result<(), Failure>,
        start: impl FnOnce(&Config) -> Result<Server, StartError>,
    ) -> Result<Verdict, Failure> {
        let Some(path) = &self.config else { return Err(Failure::usage("say --config FILE")) };
        let config = Config::load(path).map_err(|error| Failure::usage(error.to_string()))?;
        check(&config)?;
        if config.nodes.iter().any(|node| node.backend.as_ref().is_some_and(BackendUrl::is_secret))
        {
            warn_if_others_read(path);
        }
        if self.check {
            if shared.json {
                Answer::new("done").with("role", name).print()?;
            } else {
                out::line(&format!("{}: fine for this {name}", path.display()))?;
            }
            return Ok(Verdict::Yes);
        }
        self.logs.start("info")?;
        private_files();
        let reloads = reloads || config.security.as_ref().is_some_and(|it| !it.open);
        let hold = if reloads { Signals::hold_with_reload } else { Signals::hold };
        let signals = hold().context("cannot hold signals back")?;
        let server = start(&config).map_err(|error| Failure::Other(error.into()))?;
        if shared.json {
            let outcome = if server.stands_by() { "stands_by" } else { "ready" };
            let answer = Answer::new(outcome).with("role", name).with("admin", server.admin());
            answer.with("pid", std::process::id()).print()?;
        } else {
            let state = if server.stands_by() { "stands by" } else { "ready" };
            let scheme = server.roles().security.scheme();
            out::line(&format!("{name} {state}, admin server at {scheme}://{}", server.admin()))?;
        }
        let signal = loop {
            match signals.wait().context("cannot wait for signals")? {
                RELOAD => server.reload(),
                signal => break signal,
            }
        };
        note!("keyway: {signal}: ending in good order");
        if signal == HAND_OVER {
            server.leave();
        }
        server.stop();
        Ok(Verdict::Yes)
    }
}

/// Files that this process makes are for its owner only.
pub(crate) fn private_files() {
    umask(Mode::from_bits_truncate(0o077));
}

/// Says so if a file with passwords can be read by others.
pub(crate) fn warn_if_others_read(path: &Path) {
    let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o004 != 0) {
        let path = path.display();
        note!(
            "keyway: everybody on this machine can read {path}, which may have a password: \
             chmod o-r {path}"
        );
    }
}
