//! Steps of chains in words, for people.

use super::plan::{Reason, Step};
use super::sight::Outlook;
use cluster::{Partition, PartitionId};
use std::collections::BTreeSet;

/// How many things a decision names before it says how many more there are.
const NAMED_MAX: usize = 8;

/// What was seen that had these steps be taken, and what they do.
pub(super) fn explain(outlook: &Outlook, reason: Reason, steps: &[&Step]) -> (String, String) {
    let some = list(steps.iter().map(|step| step.next.id.to_string()));
    let copies = || {
        let copies = steps.iter().filter_map(|s| Some((s.next.id, s.intent?)));
        list(copies.map(|(id, copy)| format!("{id} from node {} to {}", copy.giver, copy.taker)))
    };
    let to_copy = |why: &str| (why.to_owned(), format!("close them to copy: {}", copies()));
    match reason {
        Reason::Lost => {
            let gone = list(outlook.gone().map(|id| format!("node {id}")));
            let saw = format!("no answer, and no client reaches: {gone}");
            (saw, format!("close partitions without: {some}"))
        }
        Reason::Whole => (
            "copies have ended".to_owned(),
            format!("close partitions to make the learner a member: {some}"),
        ),
        Reason::Short => to_copy("partitions have too few members"),
        Reason::Leaving => to_copy("partitions have departing members"),
        Reason::Ending => {
            let leaving = list(outlook.leaving().map(|id| format!("node {id}")));
            let saw = format!("to end for a while: {leaving}");
            (saw, format!("close partitions to go on without: {some}"))
        }
        Reason::Back => (
            "nodes that had left for a while are back".to_owned(),
            format!("close partitions to compare what they hold: {some}"),
        ),
        Reason::Uneven => to_copy("nodes have more replicas than others"),
        Reason::Loaded => (
            "nodes have more to do than others".to_owned(),
            format!("close partitions to change who does what: {some}"),
        ),
        Reason::Unwanted => (
            "nodes of partitions are no longer wanted there".to_owned(),
            format!("close partitions to let them go: {some}"),
        ),
        Reason::Large => ("partitions are to be split".to_owned(), format!("close them: {some}")),
        Reason::Small => ("partitions are to be merged".to_owned(), format!("close them: {some}")),
        Reason::Remade => {
            let made = steps.iter().flat_map(|step| [&step.next].into_iter().chain(&step.rest));
            let origins = made.clone().flat_map(|it| &it.made).flat_map(|it| &it.origins);
            let of: BTreeSet<PartitionId> = origins.map(|it| it.partition).collect();
            let of = list(of.iter().map(ToString::to_string));
            let chains = list(made.map(chain_text));
            let saw = format!("closed partitions have settled: {of}");
            (saw, format!("make others of them: {chains}"))
        }
        Reason::Settled => {
            let chains = list(steps.iter().map(|step| chain_text(&step.next)));
            ("closed partitions have settled".to_owned(), format!("open them: {chains}"))
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let named = items.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn chain_text(partition: &Partition) -> String {
    let members: Vec<String> = partition.members().iter().map(ToString::to_string).collect();
    let learner = partition.learner().map_or(String::new(), |node| format!(" +{node}"));
    format!("{}: {}{learner}", partition.id, members.join(">"))
}
