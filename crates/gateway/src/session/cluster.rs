//! CLUSTER: one node with all slots.

use super::words::{Peer, arg};
use crate::Reply;
use crate::command::ClusterCommand;
use crate::shared::Shared;
use crate::slots::{Endpoint, SLOTS, slot};
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
        let Some(cluster) = &shared.cluster else { return DISABLED };
        let endpoint = cluster.endpoint(self.entry.local);
        let id = &shared.run_id;
        match command {
            ClusterCommand::Info => info(),
            ClusterCommand::KeySlot => Reply::Integer(slot(&arg(args, 2)).into()),
            ClusterCommand::MyId => Reply::bulk(id),
            ClusterCommand::Nodes => nodes(id, &endpoint),
            ClusterCommand::Shards => shards(id, &endpoint),
            ClusterCommand::Slots => slots(id, &endpoint),
        }
    }
}

/// READONLY, READWRITE and ASKING: every gateway carries out every command, and what is read is
/// never old.
pub(super) fn go_anywhere(shared: &Shared) -> Reply {
    if shared.cluster.is_some() { Reply::OK } else { DISABLED }
}

fn info() -> Reply {
    let lines = [
        ("cluster_state", "ok".to_owned()),
        ("cluster_slots_assigned", SLOTS.to_string()),
        ("cluster_slots_ok", SLOTS.to_string()),
        ("cluster_slots_pfail", "0".to_owned()),
        ("cluster_slots_fail", "0".to_owned()),
        ("cluster_known_nodes", "1".to_owned()),
        ("cluster_size", "1".to_owned()),
        ("cluster_current_epoch", EPOCH.to_string()),
        ("cluster_my_epoch", EPOCH.to_string()),
    ];
    let text: String = lines.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
    Reply::Verbatim(text.into())
}

/// One line for each node. There is no bus between them, and so no port of one.
fn nodes(id: &str, endpoint: &Endpoint) -> Reply {
    let last = SLOTS - 1;
    let text = format!("{id} {endpoint}@0 myself,master - 0 0 {EPOCH} connected 0-{last}\n");
    Reply::Verbatim(text.into())
}

fn slots(id: &str, endpoint: &Endpoint) -> Reply {
    let node = vec![
        Reply::bulk(&endpoint.host),
        Reply::Integer(endpoint.port.into()),
        Reply::bulk(id),
        // What else there is to know: nothing.
        Reply::Array(Vec::new()),
    ];
    let range = vec![Reply::Integer(0), Reply::Integer((SLOTS - 1).into()), Reply::Array(node)];
    Reply::Array(vec![Reply::Array(range)])
}

fn shards(id: &str, endpoint: &Endpoint) -> Reply {
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    let node = Reply::Map(vec![
        pair("id", Reply::bulk(id)),
        pair("port", Reply::Integer(endpoint.port.into())),
        pair("ip", Reply::bulk(&endpoint.host)),
        pair("endpoint", Reply::bulk(&endpoint.host)),
        pair("role", Reply::bulk("master")),
        pair("health", Reply::bulk("online")),
    ]);
    let slots = vec![Reply::Integer(0), Reply::Integer((SLOTS - 1).into())];
    let shard = vec![pair("slots", Reply::Array(slots)), pair("nodes", Reply::Array(vec![node]))];
    Reply::Array(vec![Reply::Map(shard)])
}
