//! What `keyway controller rebuild` is about to do, in words.

use cluster::NodeId;
use console::chart::table;
use console::out::{Tone, paint};
use controller::{NodePart, PartitionPart, Rebuilt};
use runtime::rebuild::{Replaced, StoreContents};
use std::collections::BTreeMap;
use wire::Revision;

/// Partitions that are listed; all are in --json.
const LISTED_MAX: usize = 20;

/// The plan as a page.
pub(super) fn describe(
    rebuilt: &Rebuilt,
    store: &Replaced,
    silent: &BTreeMap<NodeId, String>,
) -> String {
    let Rebuilt { saved, nodes, partitions } = rebuilt;
    let map = &saved.map;
    let mut text = format!(
        "\
cluster     {:016x}
store       {}: {}
new map     revision {}, {} partitions in {} keyspaces, closed until their members are compared

",
        map.cluster.0,
        store.path().display(),
        what_is_there(rebuilt, store.found()),
        map.revision,
        map.partitions.len(),
        map.keyspaces.len(),
    );
    text.push_str(&of_nodes(nodes));
    text.push_str(&of_partitions(partitions));
    for NodePart { node, .. } in nodes.iter().filter(|it| it.without) {
        let why = silent.get(node).map_or_else(String::new, |why| format!(" ({why})"));
        let lost = format!("Without node {node}{why}: what only it has acknowledged is lost.");
        text.push_str(&paint(Tone::Bad, &lost));
        text.push('\n');
    }
    if nodes.iter().any(|it| it.aged > 0) {
        let old = "A node has an older copy of its store: what it holds counts only where another \
                   member holds the same.";
        text.push_str(&paint(Tone::Bad, old));
        text.push('\n');
    }
    if store.older().is_none_or(|older| older.map.cluster != map.cluster) {
        text.push_str(
            "No node knows which keys are pinned or which nodes are to be drained: say it anew.\n",
        );
    }
    text.push('\n');
    text
}

fn what_is_there(rebuilt: &Rebuilt, found: &StoreContents) -> String {
    match found {
        StoreContents::Nothing => "not there".to_owned(),
        StoreContents::Unreadable(error) => format!("cannot be read ({error})"),
        StoreContents::Map(saved) if saved.map.cluster != rebuilt.saved.map.cluster => {
            format!("of another cluster, {:016x}", saved.map.cluster.0)
        }
        StoreContents::Map(saved) => {
            let newest = rebuilt.nodes.iter().map(|it| it.revision).max().unwrap_or_default();
            let revision = saved.map.revision;
            if revision < newest {
                format!("an older copy, of revision {revision}; nodes have followed {newest}")
            } else {
                format!("whole, of revision {revision}, and no node has followed a newer one")
            }
        }
    }
}

fn of_nodes(nodes: &[NodePart]) -> String {
    let head = ["node", "has on record", "replicas", "behind", "old copy", "forgets"];
    let head = head.map(str::to_owned).to_vec();
    let row = |it: &NodePart| {
        let NodePart { node, revision, replicas_held, behind, aged, left, without } = *it;
        let recorded = match revision {
            _ if without => "does not count".to_owned(),
            Revision::NONE => "nothing".to_owned(),
            _ => format!("revision {revision}"),
        };
        let counts = [replicas_held, behind, aged, left].map(|count| count.to_string());
        [vec![node.to_string(), recorded], counts.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(nodes.iter().map(row)).collect();
    format!(
        "\
{}
  replicas  partitions that it is in from now on
  behind    of these, those that others know a newer epoch of: it is sent what it lacks
  old copy  of these, those in which its store is certainly older than what it acknowledged
  forgets   partitions that it has on record and is not in any more

",
        table(&rows)
    )
}

fn of_partitions(partitions: &[PartitionPart]) -> String {
    let notable = |it: &&PartitionPart| {
        let apart = it.behind.len() + it.aged.len() + it.left.len() + it.lost.len();
        apart > 0 || it.sources.is_empty()
    };
    let notable: Vec<&PartitionPart> = partitions.iter().filter(notable).collect();
    let plain = partitions.len() - notable.len();
    let mut text = format!("{plain} partitions as all their members have them on record.\n");
    for it in notable.iter().take(LISTED_MAX) {
        text.push_str(&of_partition(it));
    }
    if let Some(more) = notable.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("{more} more like these; --json has all.\n"));
    }
    text
}

fn of_partition(part: &PartitionPart) -> String {
    let PartitionPart { partition, recorded, sources, chain, behind, aged, left, lost, .. } = part;
    let from = if sources.is_empty() {
        "told to nobody yet, so it is empty".to_owned()
    } else {
        format!("epoch {recorded} by {}", names(sources))
    };
    let mut text = format!("partition {partition}: {from}; chain {}", list(chain, " > "));
    let apart = [(behind, "behind"), (aged, "old copy"), (lost, "left out"), (left, "forgets it")];
    for (nodes, what) in apart.into_iter().filter(|(nodes, _)| !nodes.is_empty()) {
        text.push_str(&format!("; {what}: {}", names(nodes)));
    }
    text.push('\n');
    text
}

fn names(nodes: &[NodeId]) -> String {
    let noun = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("{noun} {}", list(nodes, ", "))
}

fn list(nodes: &[NodeId], between: &str) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}
