//! `keyway lab up`.

use super::status;
use crate::command::cluster_size::ClusterSize;
use anyhow::Context;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::parse;
use console::shared::Shared;
use lab::cluster::{Cluster, admin, service};
use lab::keeper::Lab;
use lab::name::Name;
use lab::plane::Plane;
use lab::rack::{CLIENTS_MAX, LabHost, NODES_MAX, Rack, name_option};
use runtime::clock::Clock;
use runtime::identity::Security;
use runtime::up::UpOptions;
use std::num::NonZero;
use std::time::Duration;

/// Build the rack, start the cluster, and keep both until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab up
  keyway lab up --nodes 16 --clients 2
  keyway lab up --nodes 32 --replicas 1 --node-rate 5k --detach
  keyway lab up --node-rate 5k --slow-nodes 4
  keyway lab up --engine fjall --data ./data
  keyway lab up --plane routes --caches 1                    the switch is a router
  keyway lab up --plane openflow --caches 1                  an Open vSwitch links the hosts
  keyway lab up --secured                                    packets are in envelopes
  keyway lab up --name other --json                          for scripts and tests")]
pub(crate) struct Args {
    #[command(flatten)]
    lab: Name,
    /// Hosts for clients.
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: u16,
    /// Where packets are switched.
    #[arg(long, value_enum, default_value_t = Plane::User)]
    plane: Plane,
    /// Requests that each shard of a node serves in a second at most, one after the other.
    ///
    /// Many slow servers fit on a few cores, and what is measured is where load goes. A write
    /// counts at each node of its chain; up to 256 requests wait, and more are dropped.
    #[arg(long, value_name = "PER_SECOND", value_parser = parse::rate)]
    node_rate: Option<NonZero<u32>>,
    /// So many of the nodes, the last ones, serve half of --node-rate.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "node_rate")]
    slow_nodes: u16,
    /// Everybody has a certificate, and packets are in envelopes.
    #[arg(long)]
    secured: bool,
    /// Return when the cluster is ready, and leave the lab until: keyway lab down
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    size: ClusterSize,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let mut clock = Clock::new();
        let began = clock.now();
        let cluster = self.cluster()?;
        let name = cluster.rack.lab.clone();
        let tell = |text: &str| note!("keyway: lab {name}: {text}");
        let mut lab = Lab::claim(cluster.clone())?;
        if let Err(failure) = lab.start(self.detach, tell) {
            lab.take_down()?;
            return Err(failure);
        }
        if self.detach {
            lab.leave()?;
        }
        let took = clock.now().since(began);
        if shared.json {
            let answer = Answer::new("ready").with("ready_ms", took.as_millis() as u64);
            status::describe(answer, &name, lab.state()).print()?;
        } else {
            out::print(&self.ready_screen(&cluster.rack, took))?;
        }
        if self.detach {
            return Ok(Verdict::Yes);
        }
        let signal = lab.wait(tell);
        tell(&format!("{signal}: taking it down"));
        lab.take_down()?;
        Ok(Verdict::Yes)
    }

    /// What is asked for, if it can be had.
    fn cluster(&self) -> Result<Cluster, Failure> {
        let mut size = self.size.options(
            service(self.plane),
            admin(LabHost::Controller),
            // Nobody else is in its namespaces.
            Security::Open,
        )?;
        if let Some(data) = &mut size.data {
            *data = std::path::absolute(&data).context("there is no present directory")?;
        }
        let mut problems = size.problems();
        if size.engine.has_backend() {
            let name = size.engine.name();
            problems.push(format!("nodes in a lab reach no {name}: choose another engine"));
        }
        for (what, count, most) in
            [("nodes", size.nodes, NODES_MAX), ("clients", self.clients, CLIENTS_MAX)]
        {
            if !(1..=most).contains(&count) {
                problems.push(format!("{count} {what}: choose 1 to {most} in a lab"));
            }
        }
        let (slow, nodes) = (self.slow_nodes, size.nodes);
        if slow > nodes {
            problems.push(format!("{slow} slow nodes of {nodes}"));
        }
        if !problems.is_empty() {
            return Err(Failure::usage(problems.join("; ")));
        }
        let UpOptions { nodes, caches, .. } = size;
        let rack = Rack { lab: self.lab.name.clone(), nodes, caches, clients: self.clients };
        let Self { plane, node_rate, slow_nodes, secured, .. } = *self;
        Ok(Cluster { rack, plane, size, node_rate, slow_nodes, secured })
    }

    fn ready_screen(&self, rack: &Rack, took: Duration) -> String {
        let Rack { lab, nodes, caches, clients } = rack;
        let (service, admin, seconds) =
            (service(self.plane), admin(LabHost::Controller), took.as_secs_f64());
        let option = name_option(lab);
        let rate = self.node_rate.map_or_else(String::new, |rate| {
            let slow = match self.slow_nodes {
                0 => String::new(),
                slow => format!(", half of that the last {slow}"),
            };
            format!(", each shard serves {rate} requests per second{slow}")
        });
        let caches = match caches {
            0 => String::new(),
            caches => format!("\n  caches     {caches}"),
        };
        let (scheme, envelopes) =
            if self.secured { ("https", " in envelopes") } else { ("http", "") };
        let (replicas, engine) = (self.size.replicas, self.size.engine().name());
        let end = if self.detach {
            format!("keyway lab down{option} ends it.")
        } else {
            "Ctrl-C ends it.".to_owned()
        };
        format!(
            "\
Lab {lab} is ready after {seconds:.1} s.

  clients    {clients}, the first in namespace {}
  service    {service}, UDP{envelopes}, in namespace {}
  nodes      {nodes}, from {} on, {engine}{rate}{caches}
  keeps      each key on {replicas} nodes
  admin      {scheme}://{admin}

Try in another shell:

  keyway lab run{option} -- keyway put greeting hello
  keyway lab run{option} -- keyway bench --load --workload b
  keyway lab run{option} -- keyway status
  keyway lab status{option}

{end}
",
            rack.namespace(LabHost::Client(0)),
            rack.namespace(LabHost::Switch),
            self.plane.address_of(LabHost::Node(1)),
        )
    }
}
