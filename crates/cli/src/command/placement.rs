//! `keyway placement`: who has how much to do, and what is changed because of it.

use cluster::PartitionId;
use console::admin::Admin;
use console::chart::{bar, grouped, table};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use controller::{NodeBurden, PartitionRate, PlacementChange, PlacementStatus, Status};
use std::cmp::Reverse;

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
/// `keyway cluster pause-copies` keeps it from beginning anything, until `resume-copies`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway placement show
  keyway placement show --json
  keyway placement plan")]
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
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let status = Admin::new(&shared.admins, shared.timeout).status()?;
        match self.command {
            Command::Show => show(&status, shared),
            Command::Plan => plan(&status, shared),
        }
    }
}

fn show(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    let placement = &status.placement;
    if shared.json {
        print_json(placement)?;
        return Ok(Verdict::Yes);
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
        note!("keyway: load is as even as these chains can make it");
        return Ok(verdict);
    }
    for change in planned {
        out::line(&PlacementChange::to_string(change))?;
    }
    out::line("")?;
    out::line("then:")?;
    out::print(&nodes(predicted))?;
    Ok(verdict)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::Other(error.into()))?;
    out::line(&text)
}

fn nodes(nodes: &[NodeBurden]) -> String {
    let head = ["node", "requests/s", "of the mean", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let most = nodes.iter().map(|it| it.load).max().unwrap_or(0);
    for it in nodes {
        let share = format!("{}.{:02}", it.permille / 1_000, it.permille % 1_000 / 10);
        rows.push(vec![
            it.node.to_string(),
            grouped(it.load),
            share,
            bar(it.load, most, BAR_WIDTH),
        ]);
    }
    table(&rows)
}

fn partitions(status: &Status) -> String {
    let head = ["partition", "keyspace", "reads/s", "writes/s", "chain"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut busiest: Vec<&PartitionRate> = status.placement.partitions.iter().collect();
    busiest.sort_by_key(|it| (Reverse(it.reads.saturating_add(it.writes)), it.partition));
    for it in busiest.iter().take(SHOWN_MAX) {
        let (keyspace, chain) = place(status, it.partition);
        let (reads, writes) = (grouped(it.reads), grouped(it.writes));
        rows.push(vec![it.partition.to_string(), keyspace, reads, writes, chain]);
    }
    table(&rows)
}

/// The keyspace of a partition, and its chain from the head to the tail.
fn place(status: &Status, id: PartitionId) -> (String, String) {
    let all = status.keyspaces.iter();
    let mut found = all.flat_map(|it| it.partitions.iter().map(move |partition| (it, partition)));
    let found = found.find(|(_, partition)| partition.id == id);
    let Some((keyspace, partition)) = found else { return Default::default() };
    let chain: Vec<String> = partition.chain.iter().map(ToString::to_string).collect();
    (keyspace.name.clone(), chain.join(" > "))
}
