//! The command line as a whole: the list of commands.

use crate::command::{
    bench, cache, cas, certs, cluster, completion, controller, del, demo, doctor, explain, export,
    gateway, get, hot, import, incr, keyspace, lab, mdel, mget, mset, node, placement, put, scan,
    sim, status, switch, top, up, wire,
};
use clap::{CommandFactory as _, Parser, Subcommand};
use console::exit::{EXIT_CODES, Failure, Verdict};
use console::shared::Shared;

/// A key-value store whose network switch does the coordination.
///
/// Clients send every request to one service address. The switch there reads the key in the packet
/// and sends it to the right storage node, splits multigets and range scans, and counts the load.
#[derive(Debug, Parser)]
#[command(name = "keyway", version, after_help = after_help(), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Args),
    Demo(demo::Args),
    Get(get::Args),
    Put(put::Args),
    Del(del::Args),
    Cas(cas::Args),
    Incr(incr::Args),
    Mget(mget::Args),
    Mset(mset::Args),
    Mdel(mdel::Args),
    Scan(scan::Args),
    Export(export::Args),
    Import(import::Args),
    Status(status::Args),
    Keyspace(keyspace::Args),
    Cluster(cluster::Args),
    Certs(certs::Args),
    Hot(hot::Args),
    Placement(placement::Args),
    Top(top::Args),
    Explain(explain::Args),
    Bench(Box<bench::Args>),
    Sim(sim::Args),
    Paper(experiments::command::paper::Args),
    Lab(lab::Args),
    Doctor(doctor::Args),
    Wire(wire::Args),
    Switch(switch::Args),
    Node(node::Args),
    Cache(cache::Args),
    Controller(controller::Args),
    Coordinator(experiments::command::coordinator::Args),
    Gateway(gateway::Args),
    Completion(completion::Args),
}

impl Cli {
    /// Carries the command out.
    pub(crate) fn run(self) -> Result<Verdict, Failure> {
        let shared = self.shared;
        shared.check()?;
        match self.command {
            Command::Up(args) => args.run(&shared),
            Command::Demo(args) => args.run(&shared),
            Command::Get(args) => args.run(&shared),
            Command::Put(args) => args.run(&shared),
            Command::Del(args) => args.run(&shared),
            Command::Cas(args) => args.run(&shared),
            Command::Incr(args) => args.run(&shared),
            Command::Mget(args) => args.run(&shared),
            Command::Mset(args) => args.run(&shared),
            Command::Mdel(args) => args.run(&shared),
            Command::Scan(args) => args.run(&shared),
            Command::Export(args) => args.run(&shared),
            Command::Import(args) => args.run(&shared),
            Command::Status(args) => args.run(&shared),
            Command::Keyspace(args) => args.run(&shared),
            Command::Cluster(args) => args.run(&shared),
            Command::Certs(args) => args.run(&shared),
            Command::Hot(args) => args.run(&shared),
            Command::Placement(args) => args.run(&shared),
            Command::Top(args) => args.run(&shared),
            Command::Explain(args) => args.run(&shared),
            Command::Bench(args) => args.run(&shared),
            Command::Sim(args) => args.run(&shared),
            Command::Paper(args) => args.run(&shared),
            Command::Lab(args) => args.run(&shared),
            Command::Doctor(args) => args.run(&shared),
            Command::Wire(args) => args.run(&shared),
            Command::Switch(args) => args.run(&shared),
            Command::Node(args) => args.run(&shared),
            Command::Cache(args) => args.run(&shared),
            Command::Controller(args) => args.run(&shared),
            Command::Coordinator(args) => args.run(&shared),
            Command::Gateway(args) => args.run(&shared),
            Command::Completion(args) => args.run(Self::command()),
        }
    }
}

fn after_help() -> String {
    format!(
        "\
Examples:
  keyway demo                          see a cluster at work, for half a minute
  keyway up                            start a cluster on this machine
  keyway put greeting hello            in another shell: write,
  keyway get greeting                  read,
  keyway explain greeting              and see which way the switch sends it

{EXIT_CODES}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_every_command_shows_an_example() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let mut todo: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        while let Some(command) = todo.pop() {
            if command.get_name() == "help" {
                continue;
            }
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{} has no example", command.get_name());
            todo.extend(command.get_subcommands().cloned());
        }
    }
}
