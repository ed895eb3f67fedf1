//! `keyway lab`: a rack in network namespaces, and a cluster in it.

mod faults;
mod role;
mod run;
mod soak;
mod status;
mod up;

use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use lab::name::Name;
use lab::{guard, state};

/// Build a rack of network namespaces on this machine and run a cluster in it.
///
/// Clients, nodes, the controller and the switch each have a host of their own, with a link to the
/// switch's. Takes root. What is left of a lab whose process was killed is taken down by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab up --nodes 16                                   in one shell,
  keyway lab run -- keyway bench --load --workload b         in another
  keyway lab up --nodes 8 --node-rate 20k --detach && keyway lab run -- keyway status
  keyway lab balance --theta 1.2 --reads 100                 does it all by itself
  keyway lab soak --for 10m                                  as does this, without a rack
  keyway lab down")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Up(up::Args),
    Run(run::Args),
    Status(status::Args),
    Faults(faults::Args),
    Balance(experiments::command::balance::Args),
    Shift(experiments::command::shift::Args),
    Latency(experiments::command::latency::Args),
    Soak(soak::Args),
    Node(role::Node),
    Switch(role::Switch),
    Down(Down),
}

/// End everything that runs in a lab and remove its namespaces, links and files.
///
/// A durable engine's --data stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab down
  keyway lab down --name other")]
struct Down {
    #[command(flatten)]
    lab: Name,
    /// Wait until standard input ends.
    #[arg(long, hide = true)]
    after_stdin: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        match self.command {
            Command::Up(args) => args.run(shared),
            Command::Run(args) => args.run(),
            Command::Status(args) => args.run(shared),
            Command::Faults(args) => args.run(shared),
            Command::Balance(args) => args.run(shared),
            Command::Shift(args) => args.run(shared),
            Command::Latency(args) => args.run(shared),
            Command::Soak(args) => args.run(shared),
            Command::Node(args) => args.run(shared),
            Command::Switch(args) => args.run(shared),
            Command::Down(args) => args.run(shared),
        }
    }
}

impl Down {
    fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let lab = &self.lab.name;
        if self.after_stdin {
            guard::wait();
        }
        let was_there = state::take_down(lab)?;
        if shared.json {
            Answer::new("done").with("lab", lab).with("was_there", was_there).print()?;
        } else if was_there {
            out::line(&format!("lab {lab} is down"))?;
        } else {
            out::line(&format!("there is no lab {lab}: nothing to take down"))?;
        }
        Ok(Verdict::Yes)
    }
}
