//! `keyway switch`: a switch of a configured cluster.

use crate::command::role::Role;
use console::exit::{Failure, Verdict};
use console::shared::Shared;
use runtime::config::Config;
use runtime::server::{Forwards, Server};

/// Run a switch of a cluster as a process of its own.
///
/// Of several, one is active and the others stand by; the controller says which.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway switch --config cluster.toml --check
  keyway switch --config cluster.toml
  keyway switch --config cluster.toml --index 1        the second of two
  keyway switch --config cluster.toml --plane xdp --ports eth1,eth2
  keyway switch --config cluster.toml --plane routes   on a router, which then forwards by keys
  keyway switch --config cluster.toml --plane openflow    beside a switch that speaks OpenFlow")]
pub(crate) struct Args {
    /// Which switch of the configuration, counted from 0; needed if there are several.
    #[arg(long, value_name = "N")]
    index: Option<u16>,
    /// Where packets are switched: in this process, or in the kernel as well (Linux, root).
    #[arg(long, value_enum, default_value_t = Plane::User)]
    plane: Plane,
    /// Interfaces to which clients and nodes are connected, with commas; for --plane xdp.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', required_if_eq("plane", "xdp"))]
    ports: Vec<String>,
    #[command(flatten)]
    role: Role,
}

/// What switches packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Plane {
    /// The switch's process.
    User,
    /// A program in the kernel, at the driver. The process deals with what that leaves to it.
    Xdp,
    /// The kernel's routes, which this process keeps, for requests to the addresses of keys. The
    /// process deals with those to the service address.
    Routes,
    /// The flows of a switch that speaks OpenFlow 1.3 and connects to this process, for requests to
    /// the addresses of keys. The process deals with those to the service address.
    #[value(name = "openflow")]
    OpenFlow,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let index = self.index.unwrap_or(0);
        self.role.run(
            shared,
            &format!("switch {index}"),
            self.plane == Plane::Xdp,
            |config| self.check(config),
            |config| match self.plane {
                Plane::User | Plane::Xdp => Server::start_switch(config, index, &self.ports),
                Plane::Routes => Server::start_switch_beside(config, index, Forwards::Routes),
                Plane::OpenFlow => Server::start_switch_beside(config, index, Forwards::OpenFlow),
            },
        )
    }

    fn check(&self, config: &Config) -> Result<(), Failure> {
        if self.plane != Plane::Xdp && !self.ports.is_empty() {
            return Err(Failure::usage("--ports is for --plane xdp".to_owned()));
        }
        if self.plane == Plane::Routes && config.content.is_none() {
            let why = "--plane routes needs the addresses of keys: say [content]";
            return Err(Failure::usage(why.to_owned()));
        }
        check_index(config, self.index)?;
        let section = config.switches.get(usize::from(self.index.unwrap_or(0)));
        if self.plane == Plane::OpenFlow && section.is_none_or(|it| it.openflow.is_none()) {
            let why = "--plane openflow needs a switch that connects: say [switch.openflow]";
            return Err(Failure::usage(why.to_owned()));
        }
        Ok(())
    }
}

/// Whether it is clear which switch is meant, and there is one.
pub(crate) fn check_index(config: &Config, index: Option<u16>) -> Result<(), Failure> {
    let (count, last) = (config.switches.len(), config.switches.len().saturating_sub(1));
    match index {
        None if count > 1 => {
            Err(Failure::usage(format!("there are {count} switches: add --index 0 to {last}")))
        }
        Some(index) if usize::from(index) >= count => Err(Failure::usage(format!(
            "no switch {index} in the configuration; choose --index 0 to {last}"
        ))),
        _ => Ok(()),
    }
}
