//! What a switch knows of a key that is hot.

use cluster::NodeId;
use console::answer::Answer;
use serde_json::json;
use switch::{DelegationExplanation, HotExplanation};

/// What a switch said: the key is hot, or it is not.
#[derive(Debug)]
pub(super) struct Known(pub(super) Option<HotExplanation>);

impl Known {
    pub(super) fn add_to(&self, answer: Answer) -> Answer {
        let Some(hot) = &self.0 else { return answer.with("hot", ()) };
        let HotExplanation { generation, floor, proven, readers, delegation } = hot;
        let reader = |(node, holds): &(NodeId, bool)| json!({ "node": node, "holds": holds });
        let delegation = delegation.map(|DelegationExplanation { number, replicas, next }| {
            json!({ "number": number, "replicas": replicas, "next_version": next })
        });
        let told = json!({
            "generation": generation,
            "floor": floor,
            "proven": proven,
            "readers": readers.iter().map(reader).collect::<Vec<_>>(),
            "read_goes_to_one_of": hot.asked(),
            "floor_at_home": hot.floor_at_home(),
            "delegation": delegation,
        });
        answer.with("hot", told)
    }

    pub(super) fn text(&self) -> String {
        let Some(hot) = &self.0 else { return line("hot", "no".to_owned()) };
        let sure = if hot.proven { "" } else { ", which is not yet proven" };
        let mut text =
            line("hot", format!("floor {}{sure}; generation {}", hot.floor, hot.generation));
        let asked = hot.asked();
        text += &line("  copies", nodes(&hot.readers.iter().map(|it| it.0).collect::<Vec<_>>()));
        text += &line("  GET", reads(hot, &asked));
        if let Some(delegation) = &hot.delegation {
            text += &line("  PUT", writes(delegation));
        }
        text
    }
}

fn reads(hot: &HotExplanation, asked: &[NodeId]) -> String {
    if !asked.is_empty() {
        return format!("to one of the nodes {}, floor stamped: {}", nodes(asked), hot.floor);
    }
    match hot.floor_at_home() {
        Some(floor) => format!("to the tail, floor stamped: {floor}"),
        None => "to the tail, which alone may answer".to_owned(),
    }
}

fn writes(delegation: &DelegationExplanation) -> String {
    let DelegationExplanation { number, replicas, next } = delegation;
    match next {
        Some(version) => format!(
            "under delegation {number}, version stamped: {version}; chain stamped: {replicas} of \
             these \
             nodes that have little to do"
        ),
        None => format!("to the head: delegation {number} has not begun, or has no versions left"),
    }
}

fn nodes(ids: &[NodeId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

fn line(name: &str, what: String) -> String {
    format!("{name:<20} {what}\n")
}
