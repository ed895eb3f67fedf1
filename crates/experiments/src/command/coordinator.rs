//! `keyway coordinator`: coordinates in the switch's place, to compare with it.

use anyhow::Context;
use bench::Directory;
use console::admin::Admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::logs::Logs;
use console::out;
use console::parse;
use console::shared::Shared;
use runtime::net::Socket;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Coordinate in the switch's place, to compare with it.
///
/// Takes requests at its address. Those for one key, and scans, it passes on to the nodes that they
/// are for, and their answers to whoever asked; of multigets it sends each node its keys, and
/// answers when all are there. Nothing in a cluster needs it. Runs until it is interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway coordinator --listen 127.0.0.1:7790
  keyway bench --mix mget:32=1 --multigets 127.0.0.1:7790
  keyway bench --workload b --multigets 127.0.0.1:7790")]
pub struct Args {
    /// Where it takes requests, and nodes answer: no wildcard address.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse::address)]
    listen: SocketAddr,
    #[command(flatten)]
    logs: Logs,
}

/// How long the controller may take to say it.
const MAP_WAIT_MAX: Duration = Duration::from_secs(5);

impl Args {
    /// Carries the command out.
    pub fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        self.logs.start("warn")?;
        if self.listen.ip().is_unspecified() {
            let why = "--listen: nodes answer to this address, so it must be one of this host";
            return Err(Failure::usage(why));
        }
        let admin = Admin::of(shared, MAP_WAIT_MAX)?;
        let map = admin.map()?;
        let socket = Socket::bind(self.listen).context("cannot open a socket")?;
        let directory = Directory::kept_new(map, move || admin.map().ok());
        if shared.json {
            let answer = Answer::new("ready").with("coordinator", socket.local());
            answer.with("pid", std::process::id()).print()?;
        } else {
            out::line(&format!("coordinator ready at {}", socket.local()))?;
        }
        bench::coordinate(&socket, &shared.services, &directory, &AtomicBool::new(false))?;
        Ok(Verdict::Yes)
    }
}
