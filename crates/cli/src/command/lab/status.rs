//! `keyway lab status`: what of a lab runs, and where.

use console::answer::Answer;
use console::chart::table;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use lab::cluster::{admin, service};
use lab::name::{Name, no_lab};
use lab::process::Process;
use lab::rack::LabHost;
use lab::state::{self, State};
use serde_json::{Value, json};

/// Show the processes of a lab.
///
/// Ends with exit code 1 if one of them has ended. How the cluster stands, its controller says:
/// keyway lab run -- keyway status
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab status
  keyway lab status --json")]
pub(crate) struct Args {
    #[command(flatten)]
    lab: Name,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let lab = self.lab.name;
        let Some(state) = state::read(&lab)? else { return Err(no_lab(&lab)) };
        let all_run = state.processes.iter().all(|process| process.identity.runs());
        if shared.json {
            describe(Answer::new(if all_run { "done" } else { "degraded" }), &lab, &state)
                .print()?;
        } else {
            out::print(&text(&lab, &state))?;
        }
        Ok(if all_run { Verdict::Yes } else { Verdict::No })
    }
}

/// What programs want to know of a lab.
pub(super) fn describe(answer: Answer, lab: &str, state: &State) -> Answer {
    let State { nodes, clients, plane, secured, namespaces, .. } = state;
    let processes: Vec<Value> = state.processes.iter().map(process_json).collect();
    answer
        .with("lab", lab)
        .with("service", service(*plane))
        .with("admin", admin(LabHost::Controller))
        .with("plane", plane)
        .with("secured", secured)
        .with("nodes", nodes)
        .with("clients", clients)
        .with("keeper", state.keeper.map(|keeper| keeper.pid))
        .with("namespaces", namespaces)
        .with("processes", processes)
}

fn process_json(process: &Process) -> Value {
    let Process { place, namespace, identity, log } = process;
    json!({
        "host": place,
        "namespace": namespace,
        "pid": identity.pid,
        "runs": identity.runs(),
        "log": log,
    })
}

fn text(lab: &str, state: &State) -> String {
    let mut rows = vec![["host", "namespace", "process", "log"].map(str::to_owned).to_vec()];
    for Process { place, namespace, identity, log } in &state.processes {
        let pid = identity.pid;
        let process = if identity.runs() { pid.to_string() } else { format!("{pid} has ended") };
        rows.push(vec![place.clone(), namespace.clone(), process, log.display().to_string()]);
    }
    let (clients, service, admin) =
        (state.clients, service(state.plane), admin(LabHost::Controller));
    format!("lab {lab}: {clients} clients, service {service}, admin {admin}\n\n{}", table(&rows))
}
