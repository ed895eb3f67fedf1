//! The command line as a whole: what all commands share, and the list of them.

use crate::command::{
    bench, cas, cluster, completion, controller, coordinator, del, demo, doctor, explain, export,
    gateway, get, hot, import, incr, keyspace, lab, mdel, mget, mset, node, paper, put, scan, sim,
    status, switch, top, up,
};
use crate::exit::{EXIT_CODES, Failure, Verdict};
use crate::out::Color;
use crate::parse;
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::time::Duration;

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

/// What commands have in common.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Shared options")]
pub(crate) struct Shared {
    /// Service address of the cluster: where every request goes. Where switches stand by, those of
    /// all, with commas: the one that answers is found.
    #[arg(long = "service", global = true, value_name = "HOST:PORT,..", env = "KEYWAY_SERVICE")]
    #[arg(default_value = "127.0.0.1:7700", value_delimiter = ',', value_parser = parse::address)]
    pub(crate) services: Vec<SocketAddr>,
    /// Admin address of the controller: status, map, keyspaces, members. Where a second one stands
    /// by, those of both, with a comma.
    #[arg(long = "admin", global = true, value_name = "HOST:PORT,..", env = "KEYWAY_ADMIN")]
    #[arg(default_value = "127.0.0.1:7780", value_delimiter = ',', value_parser = parse::address)]
    pub(crate) admins: Vec<SocketAddr>,
    /// Keyspace that keys belong to.
    #[arg(long, short = 'k', global = true, value_name = "NAME", env = "KEYWAY_KEYSPACE")]
    #[arg(default_value = "default")]
    pub(crate) keyspace: String,
    /// How long an answer is waited for, such as 500ms, 5s or 1h30m.
    #[arg(long, global = true, value_name = "TIME", default_value = "5s")]
    #[arg(value_parser = parse::some_time)]
    pub(crate) timeout: Duration,
    /// Print JSON, one object per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours: on a terminal, unless NO_COLOR is set; always; or never.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
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
    Hot(hot::Args),
    Top(top::Args),
    Explain(explain::Args),
    Bench(Box<bench::Args>),
    Sim(sim::Args),
    Paper(paper::Args),
    Lab(lab::Args),
    Doctor(doctor::Args),
    Switch(switch::Args),
    Node(node::Args),
    Controller(controller::Args),
    Coordinator(coordinator::Args),
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
            Command::Hot(args) => args.run(&shared),
            Command::Top(args) => args.run(&shared),
            Command::Explain(args) => args.run(&shared),
            Command::Bench(args) => args.run(&shared),
            Command::Sim(args) => args.run(&shared),
            Command::Paper(args) => args.run(&shared),
            Command::Lab(args) => args.run(&shared),
            Command::Doctor(args) => args.run(&shared),
            Command::Switch(args) => args.run(&shared),
            Command::Node(args) => args.run(&shared),
            Command::Controller(args) => args.run(&shared),
            Command::Coordinator(args) => args.run(&shared),
            Command::Gateway(args) => args.run(&shared),
            Command::Completion(args) => args.run(),
        }
    }
}

impl Shared {
    /// What the readers of single arguments do not see.
    fn check(&self) -> Result<(), Failure> {
        let (count, most) = (self.services.len(), client::SERVICES_MAX);
        if count > most {
            return Err(Failure::usage(format!("{count} service addresses: give at most {most}")));
        }
        if self.services.iter().any(SocketAddr::is_ipv4)
            && self.services.iter().any(SocketAddr::is_ipv6)
        {
            let why = "no socket reaches IPv4 and IPv6 service addresses: give them all as one";
            return Err(Failure::usage(why));
        }
        Ok(())
    }

    /// The one service address and the one admin address of a cluster that is to be started.
    pub(crate) fn listen(&self) -> Result<(SocketAddr, SocketAddr), Failure> {
        match (self.services.as_slice(), self.admins.as_slice()) {
            ([service], [admin]) => Ok((*service, *admin)),
            _ => Err(Failure::usage(
                "a cluster in one process listens at one --service and one --admin address",
            )),
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
    use clap::CommandFactory;

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
