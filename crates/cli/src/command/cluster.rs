//! `keyway cluster`: nodes that come, go and stay, when copies run, whether replicas agree, what
//! may be restarted, and who has changed something.

mod audit;
mod upgrade_check;
mod verify;

use console::admin::Admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::out;
use console::parse;
use console::shared::Shared;
use runtime::admin::NewNode;
use std::net::SocketAddr;

/// Add nodes to a cluster and take them out, say when copies run, and compare replicas.
///
/// What is asked for is kept by the controller and carried out step by step, while clients go on:
/// `keyway status --watch` shows how far it has come.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway cluster add-node 4 --listen 10.0.0.4:7801 --control 10.0.0.4:7891
  keyway cluster drain-node 2 && keyway status --watch
  keyway cluster remove-node 2
  keyway cluster pause-copies")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    AddNode(AddNode),
    /// Let others take a node's place in all its chains, so that it can be removed.
    ///
    /// Each of its partitions is copied to another node first, and clients go on meanwhile.
    #[command(after_help = "\
Examples:
  keyway cluster drain-node 2
  keyway cluster keep-node 2       to change your mind")]
    DrainNode {
        /// Its id.
        id: u16,
    },
    /// Cancel drain-node: the node keeps what it still holds.
    #[command(after_help = "Example:\n  keyway cluster keep-node 2")]
    KeepNode {
        /// Its id.
        id: u16,
    },
    /// Forget a node that holds nothing any more, be it after drain-node or because it is gone.
    ///
    /// Take it out of the configuration file as well: a controller that starts adds the nodes that
    /// it finds there.
    #[command(after_help = "Example:\n  keyway cluster remove-node 2")]
    RemoveNode {
        /// Its id.
        id: u16,
    },
    /// Believe a node that came back with an older copy of its store, and lose what is newer.
    ///
    /// A partition whose last member is such a node stays closed, since what was acknowledged after
    /// the copy was made is not in it. Bring another member or the newest store back if you can:
    /// this is for when nobody holds anything newer any more. `keyway status` names such nodes.
    #[command(after_help = "Example:\n  keyway cluster accept-loss 2")]
    AcceptLoss {
        /// Its id.
        id: u16,
    },
    /// Let running copies stand still, and begin none.
    ///
    /// Lost replicas are then not replaced, and drained nodes do not empty, until resume-copies.
    #[command(after_help = "Example:\n  keyway cluster pause-copies")]
    PauseCopies,
    /// Go on copying after pause-copies.
    #[command(after_help = "Example:\n  keyway cluster resume-copies")]
    ResumeCopies,
    Verify(verify::Args),
    UpgradeCheck(upgrade_check::Args),
    Audit(audit::Args),
}

/// Make a node known, which is then given its share of the partitions.
///
/// Start it before or after, from a configuration file that has it as a node; the controller's
/// own file need not have it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway cluster add-node 4 --listen 10.0.0.4:7801 --control 10.0.0.4:7891
  keyway cluster add-node 5 --listen 10.0.0.5:7801 --shards 4 --control 10.0.0.5:7891")]
struct AddNode {
    /// Its id, which no other node has.
    id: u16,
    /// UDP address of its first shard: `listen` in its configuration.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse::address)]
    listen: SocketAddr,
    /// Its shards: `shards` in its configuration.
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: u16,
    /// TCP address at which the controller reaches it: `admin` in its configuration.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse::address)]
    control: SocketAddr,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let admin = Admin::of(shared, shared.timeout)?;
        let done = match self.command {
            Command::Verify(args) => return args.run(&admin, shared),
            Command::UpgradeCheck(args) => return args.run(&admin, shared),
            Command::Audit(args) => return args.run(&admin, shared),
            Command::AddNode(AddNode { id, listen, shards, control }) => {
                admin.add_node(&NewNode { id, listen, shards, control })?;
                format!("node {id} is known; it is given partitions once it answers at {control}")
            }
            Command::DrainNode { id } => {
                admin.command(&format!("/v1/nodes/{id}/drain"))?;
                format!("node {id} is leaving its chains; when it is done: {REMOVE} {id}")
            }
            Command::KeepNode { id } => {
                admin.command(&format!("/v1/nodes/{id}/keep"))?;
                format!("node {id} keeps what it holds")
            }
            Command::RemoveNode { id } => {
                admin.remove_node(id)?;
                format!("node {id} is forgotten; stop it, and take it out of the configuration")
            }
            Command::AcceptLoss { id } => {
                admin.command(&format!("/v1/nodes/{id}/accept-loss"))?;
                format!("what node {id} holds counts; its partitions open again")
            }
            Command::PauseCopies => {
                admin.command("/v1/copies/pause")?;
                "copies stand still; to go on: keyway cluster resume-copies".to_owned()
            }
            Command::ResumeCopies => {
                admin.command("/v1/copies/resume")?;
                "copies go on".to_owned()
            }
        };
        if shared.json {
            Answer::new("done").print()?;
        } else {
            out::line(&done)?;
        }
        Ok(Verdict::Yes)
    }
}

const REMOVE: &str = "keyway cluster remove-node";
