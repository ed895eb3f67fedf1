//! The view as text, and as JSON for scripts.

use super::view::{KeyView, NodeView, View};
use crate::partitions::PartitionView;
use console::answer::Answer;
use console::bytes::Style;
use console::chart::{bar, grouped, table};
use serde_json::{Map, Value, json};

const STYLE: Style = Style { hex: false };
/// Keys that text lists; JSON has all that the controller tells of.
const KEYS_MAX: usize = 20;
/// Partitions, likewise: a screen has room for all of it.
const PARTITIONS_MAX: usize = 8;
const BAR_WIDTH: usize = 20;

pub(super) const NODES_HEAD: [&str; 9] =
    ["node", "requests/s", "busy", "full", "waiting", "uncommitted", "head of", "tail of", ""];
pub(super) const KEYS_HEAD: [&str; 9] =
    ["key", "keyspace", "reads/s", "writes/s", "copies", "spread/s", "hot for", "delegated", ""];

/// For people who read on, or without a terminal.
pub(crate) fn text(view: &View) -> String {
    let head = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut nodes = vec![head(&NODES_HEAD)];
    nodes.extend(node_rows(view));
    let mut text = format!("{}\n\n{}", summary(view), table(&nodes));
    let mut partitions = vec![head(&PartitionView::HEAD)];
    partitions.extend(partition_rows(view).take(PARTITIONS_MAX));
    if partitions.len() > 1 {
        text.push_str(&format!("\n{}", table(&partitions)));
    }
    let mut keys = vec![head(&KEYS_HEAD)];
    keys.extend(key_rows(view).take(KEYS_MAX));
    if keys.len() > 1 {
        text.push_str(&format!("\n{}", table(&keys)));
    }
    text
}

/// All in one line.
pub(super) fn summary(view: &View) -> String {
    let uncovered = if view.covered { "" } else { "NOT ALL KEYS ARE SERVED; " };
    let late: Vec<String> = view.late.iter().map(ToString::to_string).collect();
    let late =
        if late.is_empty() { String::new() } else { format!("not ready: {}; ", late.join(", ")) };
    let imbalance = view.imbalance.map_or_else(
        || "nodes idle".to_owned(),
        |it| format!("the busiest node gets {} times the mean", decimal(it)),
    );
    format!(
        "{uncovered}{late}switch: {} reads/s, {} of them to copies, {} writes/s; {imbalance}",
        known(view.reads),
        grouped(view.spread),
        known(view.writes),
    )
}

pub(super) fn node_rows(view: &View) -> impl Iterator<Item = Vec<String>> {
    let most = view.nodes.iter().filter_map(|node| node.requests).max().unwrap_or(0);
    view.nodes.iter().map(move |node| {
        let NodeView { id, ready, requests, busy, waiting, pending, heads, tails, room } = node;
        let percent = |permille: &u64| format!("{} %", permille / 10);
        let bar = bar(requests.unwrap_or(0), most, BAR_WIDTH);
        vec![
            id.to_string(),
            known(*requests),
            busy.as_ref().map_or_else(|| "-".to_owned(), percent),
            room.as_ref().map_or_else(|| "-".to_owned(), percent),
            grouped(*waiting),
            grouped(*pending),
            heads.to_string(),
            tails.to_string(),
            if *ready { format!("{bar:<BAR_WIDTH$}") } else { "not ready".to_owned() },
        ]
    })
}

pub(super) fn partition_rows(view: &View) -> impl Iterator<Item = Vec<String>> {
    view.partitions.iter().map(PartitionView::row)
}

pub(super) fn key_rows(view: &View) -> impl Iterator<Item = Vec<String>> {
    view.keys.iter().map(|it| {
        let KeyView { keyspace, key, pinned, generation } = it;
        let mut row = vec![STYLE.line(&key.key), keyspace.clone()];
        row.extend([key.reads, key.writes].map(grouped));
        let seconds = |ms: u64| format!("{} s", ms / 1_000);
        match generation {
            Some(generation) => {
                row.extend([generation.readers, generation.spread].map(grouped));
                row.push(seconds(generation.age_ms));
                row.push(
                    generation
                        .delegation
                        .map_or_else(String::new, |delegation| seconds(delegation.age_ms)),
                );
            }
            None => row.extend(["-", "", "", ""].map(str::to_owned)),
        }
        row.push(if *pinned { "pinned" } else { "" }.to_owned());
        row
    })
}

fn known(rate: Option<u64>) -> String {
    rate.map_or_else(|| "-".to_owned(), grouped)
}

/// Thousandths with two decimals.
fn decimal(thousandths: u64) -> String {
    format!("{}.{:02}", thousandths / 1_000, thousandths % 1_000 / 10)
}

/// One object with everything.
pub(crate) fn json(view: &View) -> Answer {
    let nodes: Vec<Value> = view.nodes.iter().map(node_json).collect();
    let partitions: Vec<Value> = view.partitions.iter().map(partition_json).collect();
    let keys: Vec<Value> = view.keys.iter().map(key_json).collect();
    Answer::new("done")
        .with("at_ms", view.at_ms)
        .with("covered", view.covered)
        .with("not_ready", view.late.iter().map(ToString::to_string).collect::<Vec<_>>())
        .with("reads_per_s", view.reads)
        .with("writes_per_s", view.writes)
        .with("spread_per_s", view.spread)
        .with("imbalance_permille", view.imbalance)
        .with("nodes", nodes)
        .with("partitions", partitions)
        .with("keys", keys)
}

fn node_json(node: &NodeView) -> Value {
    json!({
        "id": node.id,
        "ready": node.ready,
        "requests_per_s": node.requests,
        "busy_permille": node.busy,
        "waiting": node.waiting,
        "pending": node.pending,
        "heads": node.heads,
        "tails": node.tails,
        "room_permille": node.room,
    })
}

fn partition_json(it: &PartitionView) -> Value {
    json!({
        "id": it.id,
        "keyspace": it.keyspace,
        "reads_per_s": it.reads,
        "scanned_per_s": it.scanned,
        "writes_per_s": it.writes,
        "bytes_in_per_s": it.bytes_in,
        "bytes_out_per_s": it.bytes_out,
        "tail_busy_permille": it.busy_permille,
        "bytes": it.bytes,
        "chain": it.chain,
    })
}

fn key_json(it: &KeyView) -> Value {
    let mut object = Map::new();
    STYLE.put(&mut object, "key", &it.key.key);
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("keyspace", json!(it.keyspace));
    put("reads_per_s", json!(it.key.reads));
    put("writes_per_s", json!(it.key.writes));
    put("pinned", json!(it.pinned));
    put("hot", json!(it.generation.is_some()));
    if let Some(generation) = it.generation {
        put("copies", json!(generation.readers));
        put("spread_per_s", json!(generation.spread));
        put("home_per_s", json!(generation.home));
        put("age_ms", json!(generation.age_ms));
        if let Some(delegation) = generation.delegation {
            put("delegation_age_ms", json!(delegation.age_ms));
            put("delegation_replicas", json!(delegation.replicas));
        }
    }
    Value::Object(object)
}
