//! Waiting until the cluster in a rack answers.

use crate::cluster::{admin, service};
use crate::namespace::inside;
use crate::plane::Plane;
use crate::rack::{LabHost, Rack};
use anyhow::{Context, Result, bail};
use client::blocking::Client;
use client::{Options, PutOptions};
use console::admin::Admin;
use console::exit::Failure;
use console::shared::Shared;
use controller::{MemberState, Status};
use envelope::Passes;
use runtime::admin::AskPass;
use runtime::up::HASH_KEYSPACE;
use std::path::PathBuf;
use std::time::Duration;

/// How far a cluster has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything can be read and written.
    Serving,
    /// What is missing.
    Missing(String),
}

/// How the cluster is reached from its hosts.
pub fn settings(plane: Plane, certs: Option<PathBuf>) -> Shared {
    Shared::of(&[service(plane)], &[admin(LabHost::Controller)], certs, ANSWER_WAIT)
}

/// Asks the controller.
pub fn look(rack: &Rack, shared: &Shared) -> Result<Progress, Failure> {
    let admin = Admin::of(shared, shared.timeout)?;
    let ask = || Ok(admin.status());
    Ok(match inside(&rack.namespace(LabHost::Controller), ask)? {
        Ok(status) => judge(&status),
        Err(_) => Progress::Missing("the controller does not answer yet".to_owned()),
    })
}

/// On the host of the controller itself, and most often nobody listens yet.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

fn judge(status: &Status) -> Progress {
    let ready = status.members.iter().filter(|it| it.state == MemberState::Ready).count();
    let all = status.members.len();
    if status.ready && status.covered && !status.keyspaces.is_empty() {
        return Progress::Serving;
    }
    Progress::Missing(format!("{ready} of {all} members are ready"))
}

/// Writes, reads and deletes a key as the first client.
pub fn try_out(rack: &Rack, shared: &Shared) -> Result<(), Failure> {
    let admin = Admin::of(shared, shared.timeout)?;
    let pass = || Ok(admin.pass(&AskPass::default()));
    let pass = inside(&rack.namespace(LabHost::Controller), pass)??;
    let options = Options { passes: pass.map(Passes::new), ..Options::default() };
    Ok(inside(&rack.namespace(LabHost::Client(0)), || {
        let client = Client::connect(&shared.services[..], options).context("cannot connect")?;
        let space = client.keyspace(HASH_KEYSPACE).context("nobody answers")?;
        let put = space.put(KEY, KEY, PutOptions::default()).into_result();
        put.context("the first write was not answered")?;
        let found = space.get(KEY).into_result().context("the first read was not answered")?;
        if found.is_none_or(|found| found.value != KEY) {
            bail!("the first read did not find what was written");
        }
        space.del(KEY).into_result().context("the first deletion was not answered")?;
        Ok(())
    })?)
}

/// Of nobody else.
const KEY: &[u8] = b"keyway-lab: is it ready?";
