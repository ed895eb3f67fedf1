//! What the nodes of a cluster in one process have on record while it does not run, for whoever
//! makes its map anew.

use super::POLL_INTERVAL;
use super::plan::Plan;
use crate::driver::joint_store;
use crate::store::{FjallEngine, ShardIdentity, StoreError, SyncPolicy};
use cluster::{
    ClusterId, Incarnation, NodeId, NodeRecord, NodeSpec, Selection, ShardRecord, StoreId,
};
use controller::{COPY_BYTES_PER_S, ControllerConfig, LEASE, LOAD_FLOOR, SPLIT_BYTES};
use node::engine::Engine as _;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// What the cluster in this data directory is to be, and what its nodes have on record. Their
/// stores are opened, so it must not run.
///
/// # Errors
///
/// If it is no such directory, it is in use, or a store cannot be read.
pub fn records_of(data: &Path) -> Result<(ControllerConfig, Vec<NodeRecord>), StoreError> {
    let plan = Plan::read(data)?;
    let ids = || (1..=plan.nodes).map(NodeId);
    let spec = |(id, port): (NodeId, &u16)| NodeSpec {
        id,
        endpoint: SocketAddr::from((Ipv4Addr::LOCALHOST, *port)).into(),
        shards: plan.shards,
    };
    let config = ControllerConfig {
        seed: plan.seed,
        cluster: ClusterId::default(),
        // It has another one with every start.
        switches: Vec::new(),
        nodes: ids().zip(&plan.ports).map(spec).collect(),
        caches: Vec::new(),
        controls: BTreeMap::new(),
        poll_interval: POLL_INTERVAL,
        lease: LEASE,
        overlap: Duration::ZERO,
        copy_bytes_per_s: COPY_BYTES_PER_S,
        hot_selection: Selection::default(),
        content: None,
        load_floor: LOAD_FLOOR,
        split_bytes: SPLIT_BYTES,
    };
    let records = ids().map(|id| record(data, id, plan.shards));
    Ok((config, records.collect::<Result<_, _>>()?))
}

fn record(data: &Path, node: NodeId, shards: u16) -> Result<NodeRecord, StoreError> {
    let mut stores = Vec::new();
    let mut records = Vec::new();
    for shard in 0..shards {
        let dir = data.join(format!("node-{node}")).join(format!("shard-{shard}"));
        let (store, record) = if dir.exists() {
            let identity = ShardIdentity { node, shard, shards };
            let engine = FjallEngine::open(&dir, identity, StoreId(0), SyncPolicy::Always)?;
            (engine.store_id(), node::on_record(&engine))
        } else {
            (StoreId(0), ShardRecord::default())
        };
        stores.push(store);
        records.push(record);
    }
    let store = joint_store(stores.into_iter());
    let mut record = NodeRecord::of_shards((node, store, Incarnation(0)), false, &records);
    // Of all incarnations that every shard knows of, the last is the one that ended last.
    record.incarnation = record.past.pop().unwrap_or_default();
    Ok(record)
}
