//! `keyway placement`: who has how much to do, and what is changed because of it.

use crate::partitions::PartitionView;
use cluster::{NodeId, PartitionId};
use console::admin::Admin;
use console::answer::Answer;
use console::chart::{bar, grouped, table};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use controller::{NodeBurden, PlacementDecision, PlacementStatus, Purpose, Status};
use runtime::admin::{Merge, Move, Split};
use runtime::clock::Clock;

/// Partitions that are shown to people, the busiest first.
const SHOWN_MAX: usize = 16;

/// Columns of the bar of the busiest node.
const BAR_WIDTH: usize = 30;

/// Show who has how much to do, and what is changed because of it.
///
/// A node has to do the reads of the partitions whose tail it is, and the writes of all partitions
/// that it is a member of. The controller evens that out: it has another member of a chain answer
/// reads, or moves a replica to another node. It begins when a node has more than 1.25 times the
/// mean for a few samples in a row, and goes on until nobody has more than 1.05 times.
///
/// A node that holds 80 % of what it may (`full`: of its memory or its disk) gives replicas to
/// nodes with room, before anything is evened out, and no replica moves to one that would then hold
/// 75 %.
///
/// A partition that was changed is left alone for 10 seconds, then for 20, and so on to ten
/// minutes, and no replica goes back to a node that it left less than ten minutes ago.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway placement show
  keyway placement show --json
  keyway placement plan
  keyway placement log
  keyway placement move 7 --from 1 --to 3
  keyway placement split 7 --at user5000
  keyway placement merge 8 9
  keyway placement pause")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what nodes and partitions are asked for, and the changes that are under way.
    #[command(after_help = "Example:\n  keyway placement show --json")]
    Show,
    /// Show what would be changed if load stayed as uneven as it is; exit code 1 if nothing.
    #[command(after_help = "Example:\n  keyway placement plan")]
    Plan,
    /// Show what was decided lately and what came of it; exit code 1 if nothing was.
    ///
    /// `for` is what it was for: to even out load, to make room at nodes that are nearly full, or
    /// to fit sizes: to split what is large and merge what is small. `busiest` is what the node
    /// with most to do had, as a multiple of the mean: when it was decided, as it was predicted,
    /// and as it was found when all of it had been carried out.
    #[command(after_help = "Example:\n  keyway placement log --json")]
    Log,
    /// Move a replica of a partition to another node.
    ///
    /// It is copied while it serves. `keyway status` shows how far the copy is.
    #[command(after_help = "Example:\n  keyway placement move 7 --from 1 --to 3")]
    Move {
        /// Which partition: `keyway placement show` and `keyway status` name it.
        partition: u32,
        /// The node that gives it up.
        #[arg(long, value_name = "NODE")]
        from: u16,
        /// The node that gets it.
        #[arg(long, value_name = "NODE")]
        to: u16,
    },
    /// Split a partition in two, which the same nodes have.
    ///
    /// It is closed for some milliseconds, in which clients ask again. Nothing is copied: each
    /// part can then be moved by itself.
    #[command(after_help = "Examples:\n  keyway placement split 7 --at user5000\n  \
                            keyway placement split 3")]
    Split {
        /// Which partition: `keyway placement show` and `keyway status` name it.
        partition: u32,
        /// Where: before this key, whether there is such a key or not. A partition of a hash
        /// keyspace is cut in the middle if this is left out.
        #[arg(long, value_name = "KEY")]
        at: Option<String>,
    },
    /// Make one of two neighbouring partitions, which have the same nodes.
    ///
    /// Both are closed for some milliseconds, in which clients ask again. Nothing is copied.
    #[command(after_help = "Example:\n  keyway placement merge 8 9")]
    Merge {
        /// Which partition: `keyway status` names all in the order of their keys.
        partition: u32,
        /// The one that comes right before it or after it.
        with: u32,
    },
    /// Change nothing because of the load, until `resume`; what is under way goes on.
    #[command(after_help = "Example:\n  keyway placement pause")]
    Pause,
    /// Have placement follow the load again.
    #[command(after_help = "Example:\n  keyway placement resume")]
    Resume,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let admin = Admin::of(shared, shared.timeout)?;
        match self.command {
            Command::Show => show(&admin.status()?, shared),
            Command::Plan => plan(&admin.status()?, shared),
            Command::Log => log(&admin.status()?, shared),
            Command::Move { partition, from, to } => {
                let (from, to) = (NodeId(from), NodeId(to));
                let partition = PartitionId(partition);
                admin.move_replica(&Move { partition, from, to })?;
                let text = format!("partition {partition} is copied from node {from} to node {to}");
                say(shared, &format!("{text}; keyway status shows how far"))
            }
            Command::Split { partition, at } => {
                let (partition, at) = (PartitionId(partition), at.map(String::into_bytes));
                admin.split(&Split { partition, at })?;
                let text = format!("partition {partition} is split");
                say(shared, &format!("{text}; keyway status names the parts"))
            }
            Command::Merge { partition, with } => {
                let (partition, with) = (PartitionId(partition), PartitionId(with));
                admin.merge(&Merge { partition, with })?;
                let text = format!("partitions {partition} and {with} become one");
                say(shared, &format!("{text}; keyway status names it"))
            }
            Command::Pause => {
                admin.command("/v1/placement/pause")?;
                say(shared, "nothing moves because of the load; to go on: keyway placement resume")
            }
            Command::Resume => {
                admin.command("/v1/placement/resume")?;
                say(shared, "placement follows the load")
            }
        }
    }
}

fn say(shared: &Shared, text: &str) -> Result<Verdict, Failure> {
    if shared.json {
        Answer::new("done").print()?;
    } else {
        out::line(text)?;
    }
    Ok(Verdict::Yes)
}

fn show(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    let placement = &status.placement;
    if shared.json {
        print_json(placement)?;
        return Ok(Verdict::Yes);
    }
    if placement.paused {
        note!("keyway: nothing moves because of the load: placement or copies are paused");
    }
    if placement.partitions.is_empty() {
        note!("keyway: the controller has not counted for long enough: some two seconds");
    }
    out::print(&nodes(&placement.nodes))?;
    if !placement.partitions.is_empty() {
        out::line("")?;
        out::print(&partitions(status))?;
    }
    for change in &placement.under_way {
        out::line(&format!("under way: {change}"))?;
    }
    Ok(Verdict::Yes)
}

fn plan(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    let PlacementStatus { planned, predicted, .. } = &status.placement;
    let verdict = if planned.is_empty() { Verdict::No } else { Verdict::Yes };
    if shared.json {
        print_json(&serde_json::json!({ "planned": planned, "predicted": predicted }))?;
        return Ok(verdict);
    }
    if planned.is_empty() {
        note!("keyway: load is as even as these chains can make it, and no node needs room");
        return Ok(verdict);
    }
    for change in planned {
        out::line(&change.to_string())?;
    }
    out::line("")?;
    out::line("then:")?;
    out::print(&nodes(predicted))?;
    Ok(verdict)
}

fn log(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    let decisions = &status.placement.decisions;
    if decisions.is_empty() {
        note!("keyway: nothing has been changed because of the load");
        return Ok(Verdict::No);
    }
    if shared.json {
        for it in decisions {
            print_json(it)?;
        }
        return Ok(Verdict::Yes);
    }
    let head = ["ago", "for", "busiest", "predicted", "found", "change"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let now = Clock::new().now().unix_ms().max(status.at_ms);
    for it in decisions {
        let PlacementDecision { at_ms, purpose, saw_permille, changes, predicted_permille, .. } =
            it;
        let purpose = match purpose {
            Purpose::Load => "load",
            Purpose::Room => "room",
            Purpose::Size => "size",
        };
        let found = it.found_permille.map_or_else(|| "-".to_owned(), ratio);
        let ago = now.saturating_sub(*at_ms);
        let mut first = [
            format!("{}.{} s", ago / 1_000, ago % 1_000 / 100),
            purpose.to_owned(),
            ratio(*saw_permille),
            ratio(*predicted_permille),
            found,
        ];
        for change in changes {
            let row = std::mem::take(&mut first);
            rows.push(row.into_iter().chain([change.to_string()]).collect());
        }
    }
    out::print(&table(&rows))?;
    Ok(Verdict::Yes)
}

/// A multiple of the mean.
fn ratio(permille: u64) -> String {
    format!("{}.{:02}", permille / 1_000, permille % 1_000 / 10)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::Other(error.into()))?;
    out::line(&text)
}

fn nodes(nodes: &[NodeBurden]) -> String {
    let head = ["node", "full", "requests/s", "of the mean", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let most = nodes.iter().map(|it| it.load).max().unwrap_or(0);
    for it in nodes {
        let full = it.room_permille.map(|permille| format!("{} %", permille / 10));
        rows.push(vec![
            it.node.to_string(),
            full.unwrap_or_else(|| "-".to_owned()),
            grouped(it.load),
            ratio(it.permille),
            bar(it.load, most, BAR_WIDTH),
        ]);
    }
    table(&rows)
}

fn partitions(status: &Status) -> String {
    let mut rows = vec![PartitionView::HEAD.map(str::to_owned).to_vec()];
    let busiest = PartitionView::busiest_first(status);
    rows.extend(busiest.iter().take(SHOWN_MAX).map(PartitionView::row));
    table(&rows)
}
