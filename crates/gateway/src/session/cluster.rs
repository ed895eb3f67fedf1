//! CLUSTER: gateways are nodes that share all slots.

use super::words::{Peer, arg};
use crate::Reply;
use crate::command::ClusterCommand;
use crate::shared::Shared;
use crate::siblings::SlotNode;
use crate::slots::{SLOTS, slot};
use bytes::Bytes;

/// What Redis says where there is no cluster.
const DISABLED: Reply = Reply::error("ERR This instance has cluster support disabled");

/// The epoch of a configuration that never changes: the first that there is.
const EPOCH: u8 = 1;

impl Peer {
    pub(super) fn run_cluster(
        &self,
        shared: &Shared,
        command: ClusterCommand,
        args: &[Bytes],
    ) -> Reply {
        let Some(siblings) = &shared.cluster else { return DISABLED };
        let nodes = siblings.nodes(self.entry.local, &shared.run_id);
        match command {
            ClusterCommand::Info => info(&nodes),
            ClusterCommand::KeySlot => Reply::Integer(slot(&arg(args, 2)).into()),
            ClusterCommand::MyId => {
                nodes.iter().find(|it| it.is_own).map_or(Reply::Null, |it| Reply::bulk(&it.id))
            }
            ClusterCommand::Nodes => list(&nodes),
            ClusterCommand::Shards => shards(&nodes),
            ClusterCommand::Slots => slots(&nodes),
        }
    }
}

/// READONLY, READWRITE and ASKING: every gateway carries out every command, and what is read is
/// never old.
pub(super) fn go_anywhere(shared: &Shared) -> Reply {
    if shared.cluster.is_some() { Reply::OK } else { DISABLED }
}

fn info(nodes: &[SlotNode<'_>]) -> Reply {
    let lines = [
        ("cluster_state", "ok".to_owned()),
        ("cluster_slots_assigned", SLOTS.to_string()),
        ("cluster_slots_ok", SLOTS.to_string()),
        ("cluster_slots_pfail", "0".to_owned()),
        ("cluster_slots_fail", "0".to_owned()),
        ("cluster_known_nodes", nodes.len().to_string()),
        ("cluster_size", with_slots(nodes).count().to_string()),
        ("cluster_current_epoch", EPOCH.to_string()),
        ("cluster_my_epoch", EPOCH.to_string()),
    ];
    let text: String = lines.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
    Reply::Verbatim(text.into())
}

/// Nodes and their slots, the first and the last.
fn with_slots<'a>(nodes: &'a [SlotNode<'a>]) -> impl Iterator<Item = (&'a SlotNode<'a>, [u16; 2])> {
    nodes
        .iter()
        .filter_map(|it| Some((it, it.slots.as_ref()?)))
        .map(|(it, slots)| (it, [*slots.start(), *slots.end()]))
}

/// One line for each node. There is no bus between them, and so no port of one.
fn list(nodes: &[SlotNode<'_>]) -> Reply {
    let mut text = String::new();
    for SlotNode { id, at, slots, is_own } in nodes {
        let own = if *is_own { "myself," } else { "" };
        text += &match slots {
            Some(slots) => {
                let (first, last) = (slots.start(), slots.end());
                format!("{id} {at}@0 {own}master - 0 0 {EPOCH} connected {first}-{last}\n")
            }
            None => format!("{id} {at}@0 {own}master,fail - 0 0 {EPOCH} disconnected\n"),
        };
    }
    Reply::Verbatim(text.into())
}

fn slots(nodes: &[SlotNode<'_>]) -> Reply {
    let range = |(it, [first, last]): (&SlotNode<'_>, [u16; 2])| {
        let node = vec![
            Reply::bulk(&it.at.host),
            Reply::Integer(it.at.port.into()),
            Reply::bulk(&it.id),
            // What else there is to know: nothing.
            Reply::Array(Vec::new()),
        ];
        let [first, last] = [first, last].map(|slot| Reply::Integer(slot.into()));
        Reply::Array(vec![first, last, Reply::Array(node)])
    };
    Reply::Array(with_slots(nodes).map(range).collect())
}

fn shards(nodes: &[SlotNode<'_>]) -> Reply {
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    let shard = |(it, slots): (&SlotNode<'_>, [u16; 2])| {
        let node = Reply::Map(vec![
            pair("id", Reply::bulk(&it.id)),
            pair("port", Reply::Integer(it.at.port.into())),
            pair("ip", Reply::bulk(&it.at.host)),
            pair("endpoint", Reply::bulk(&it.at.host)),
            pair("role", Reply::bulk("master")),
            pair("health", Reply::bulk("online")),
        ]);
        let slots = slots.map(|slot| Reply::Integer(slot.into())).into();
        let nodes = Reply::Array(vec![node]);
        Reply::Map(vec![pair("slots", Reply::Array(slots)), pair("nodes", nodes)])
    };
    Reply::Array(with_slots(nodes).map(shard).collect())
}
