//! `keyway lab run`: a command on a client's host.

use anyhow::Context;
use console::exit::{Failure, Verdict};
use lab::cluster::{admin, service};
use lab::name::{Name, no_lab};
use lab::rack::LabHost;
use lab::{namespace, process, state};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Run a command on a client's host in a lab, or a shell if none is given.
///
/// It finds the cluster by KEYWAY_SERVICE and KEYWAY_ADMIN, its certificate by KEYWAY_CERTS, and
/// this program as keyway. Ends as the command does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab run -- keyway put greeting hello
  keyway lab run -- keyway bench --load --workload b --in-flight 256
  keyway lab run --client 1 -- tcpdump -ni eth0 udp
  keyway lab run")]
pub(crate) struct Args {
    #[command(flatten)]
    lab: Name,
    /// Which client, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    client: u16,
    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    /// Becomes the command; returns only if that fails.
    pub(crate) fn run(self) -> Result<Verdict, Failure> {
        let lab = self.lab.name;
        let Some(state) = state::read(&lab)? else { return Err(no_lab(&lab)) };
        if self.client >= state.clients {
            let last = state.clients.saturating_sub(1);
            let why = format!("no client {} in lab {lab}; choose 0 to {last}", self.client);
            return Err(Failure::usage(why));
        }
        let (plane, certs) = (state.plane, state.certs(&lab));
        let rack = state.rack(lab);
        namespace::enter(&rack.namespace(LabHost::Client(self.client)))?;
        let shell = || std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let mut words = self.command.into_iter();
        let program = words.next().unwrap_or_else(shell);
        let mut command = Command::new(&program);
        command.args(words);
        command.env("KEYWAY_SERVICE", service(plane).to_string());
        command.env("KEYWAY_ADMIN", admin(LabHost::Controller).to_string());
        command.env("KEYWAY_SWITCH", admin(LabHost::Switch).to_string());
        if let Some(certs) = certs {
            command.env("KEYWAY_CERTS", certs);
        }
        command.env("PATH", path()?);
        let error = command.exec();
        let context = format!("cannot run {}", program.display());
        Err(anyhow::Error::new(error).context(context).into())
    }
}

/// Where commands are looked for: this program's folder first, so that `keyway` is this one.
fn path() -> Result<OsString, Failure> {
    let mut folders = Vec::new();
    let binary = process::this_binary()?;
    folders.extend(binary.parent().map(|folder| folder.to_path_buf()));
    let others = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(<OsString as AsRef<OsStr>>::as_ref(&others)));
    let joined = std::env::join_paths(folders);
    Ok(joined.context("this program's folder has a colon in its name")?)
}
