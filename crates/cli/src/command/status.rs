//! `keyway status`: how the cluster stands.

use crate::process::ProcessFigures;
use cluster::{ContentReport, Durability, KeyspaceKind, Member, Resources};
use console::admin::Admin;
use console::answer::Answer;
use console::chart::{bar, grouped, list, table};
use console::exit::{Failure, Verdict};
use console::out::{self, Tone, paint};
use console::shared::Shared;
use controller::{
    CacheStatus, CopyStatus, Decision, KeyspaceStatus, NodeLoad, Protection, Status, StoreStatus,
    VerifyStatus,
};
use std::net::SocketAddr;
use std::time::Duration;
use wire::Room;

/// Show how the cluster stands: members, copies, keyspaces, load.
///
/// Ends with exit code 1 if some keys cannot be read and written at the moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway status
  keyway status --watch
  keyway status --json
  until keyway status >/dev/null; do sleep 1; done")]
pub(crate) struct Args {
    /// Show what the controller did lately, too.
    #[arg(long)]
    decisions: bool,
    /// Show it again every second, until Ctrl-C.
    #[arg(long)]
    watch: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let admin = Admin::of(shared, shared.timeout)?;
        if self.watch {
            loop {
                let text = match admin.status().and_then(|it| self.text(&it, &admin, shared)) {
                    Ok(text) => text,
                    // It may be back in a second, or another one may take over.
                    Err(failure) if shared.json => {
                        let answer = Answer::new(failure.outcome());
                        answer.with("error", failure.message()).line() + "\n"
                    }
                    Err(failure) => format!("{}\n", failure.message()),
                };
                let screen = !shared.json && out::is_terminal();
                out::print(&if screen { format!("{CLEAR}{text}") } else { text })?;
                watch_pause();
            }
        }
        let status = admin.status()?;
        out::print(&self.text(&status, &admin, shared)?)?;
        Ok(if status.covered { Verdict::Yes } else { Verdict::No })
    }

    fn text(&self, status: &Status, admin: &Admin, shared: &Shared) -> Result<String, Failure> {
        // Who cannot tell it is no reason not to tell the rest.
        let process = admin.metrics().ok().and_then(|text| ProcessFigures::read(&text));
        let silent = if shared.admins.len() > 1 { admin.others().silent } else { Vec::new() };
        if !shared.json {
            return Ok(describe(status, (process.as_ref(), &silent), self.decisions));
        }
        let failed = |error: serde_json::Error| Failure::Other(error.into());
        let mut value = serde_json::to_value(status).map_err(failed)?;
        if let Some(fields) = value.as_object_mut() {
            let process = serde_json::to_value(process).map_err(failed)?;
            fields.insert("process".to_owned(), process);
            let silent = serde_json::to_value(silent).map_err(failed)?;
            fields.insert("silent_controllers".to_owned(), silent);
        }
        Ok(format!("{value}\n"))
    }
}

/// What makes a terminal begin anew at its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one looks every second")]
fn watch_pause() {
    std::thread::sleep(Duration::from_secs(1));
}

fn describe(
    status: &Status,
    (process, silent): (Option<&ProcessFigures>, &[SocketAddr]),
    decisions: bool,
) -> String {
    let mut text = format!("cluster   {} (map revision {})\n", state(status), status.revision);
    for line in exceptions(status) {
        text.push_str(&format!("          {line}\n"));
    }
    text.push_str(&format!("leader    {}\n", leader(status)));
    for at in silent {
        text.push_str(&format!("          the controller at {at} does not answer\n"));
    }
    text.push_str(&format!("security  {}\n", security(status)));
    text.push_str(&format!("writes    {}\n", kept(&status.load)));
    if let Some(process) = process {
        text.push_str(&format!("process   {}\n", process.line()));
    }
    text.push('\n');
    text.push_str(&members(status));
    text.push('\n');
    if !status.copies.is_empty() {
        text.push_str(&copies(&status.copies));
        text.push('\n');
    }
    text.push_str(&keyspaces(&status.keyspaces));
    text.push('\n');
    text.push_str(&load(&status.load));
    if decisions {
        text.push_str("\ndecisions, oldest first\n");
        for Decision { saw, did, changed, .. } in &status.decisions {
            let changed = if changed.is_empty() { String::new() } else { format!(" ({changed})") };
            text.push_str(&format!("  {saw}: {did}{changed}\n"));
        }
    }
    text
}

fn state(status: &Status) -> String {
    let (tone, text) = match (status.ready, status.covered, status.replicated) {
        (true, true, true) => (Tone::Good, "ready, all replicas answer"),
        (true, true, false) => (Tone::Doubtful, "ready, but not every replica is there"),
        (false, true, _) if !status.awaited.is_empty() => {
            (Tone::Doubtful, "not all keyspaces are there yet")
        }
        (false, true, _) => (Tone::Doubtful, "serving all keys, but not every member is ready"),
        (_, false, _) => (Tone::Bad, "not serving all keys"),
    };
    paint(tone, text)
}

/// The term of the controller that answers, and where it keeps the map.
fn leader(status: &Status) -> String {
    let StoreStatus { kind, at, silent_ms, .. } = &status.store;
    let place = match kind.as_str() {
        "" => "a store that it does not name".to_owned(),
        "memory" => "memory".to_owned(),
        "embedded" => at.clone(),
        _ => format!("{at}, which answered {} ms ago", silent_ms.unwrap_or_default()),
    };
    format!("term {}; the map is kept in {place}", status.term)
}

/// What protects the control plane, and packets.
fn security(status: &Status) -> &'static str {
    match status.security {
        Protection::MutualTls if status.envelopes => "mutual TLS; packets are in envelopes",
        Protection::MutualTls => "mutual TLS; packets are bare: whoever reaches nodes can write",
        Protection::Open => "open: whoever reaches the controller can change the cluster",
        Protection::Loopback => "open (loopback only)",
    }
}

/// What acknowledged writes are safe from on all nodes, as far as each has said so.
pub(crate) fn durability(nodes: &[NodeLoad]) -> Option<Durability> {
    nodes.iter().map(|node| node.resources.durability).min().flatten()
}

/// The same in words, and of which nodes it is true if others do better.
fn kept(nodes: &[NodeLoad]) -> String {
    let Some(least) = durability(nodes) else {
        return "not every node has said yet what they are safe from".to_owned();
    };
    let what = match least {
        Durability::Memory => "acknowledged in memory: they are gone with their processes",
        Durability::Never => {
            "acknowledged before they are on disk, which they are when the operating system sees \
             fit (sync never)"
        }
        Durability::Interval => {
            "acknowledged before they are on disk, which they are within 100 ms (sync interval)"
        }
        Durability::Backend => "acknowledged when the stores behind the nodes have them",
        Durability::Always => "acknowledged once they are on disk (sync always)",
    };
    let such = nodes.iter().filter(|node| node.resources.durability == Some(least));
    let such: Vec<String> = such.map(|node| node.node.to_string()).collect();
    if such.len() == nodes.len() {
        return what.to_owned();
    }
    let plural = if such.len() == 1 { "" } else { "s" };
    format!("{what}; so on node{plural} {}", such.join(", "))
}

/// What is not as it is to be.
fn exceptions(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if status.closed > 0 {
        lines.push(format!("{} partitions are closed while their chain changes", status.closed));
    }
    if status.under_replicated > 0 {
        let count = status.under_replicated;
        lines.push(format!("{count} partitions have fewer replicas than they are to have"));
    }
    lines.extend(status.trouble.iter().map(|why| format!("the controller {why}")));
    lines.extend(status.load.iter().filter_map(lack_of_room));
    for awaited in &status.awaited {
        lines.push(format!("keyspace {:?} is not there yet: {}", awaited.name, awaited.why));
    }
    if status.unheard > 0 {
        let count = status.unheard;
        lines.push(format!(
            "{count} partitions have replicas on nodes that have not said what they hold"
        ));
    }
    lines.push(compared(status));
    if status.paused {
        lines.push("copies are paused; to go on: keyway cluster resume-copies".to_owned());
    }
    lines
}

/// What a node has no room for, and why.
fn lack_of_room(node: &NodeLoad) -> Option<String> {
    let Resources { room, memory, memory_max, disk_free, disk_floor, .. } = node.resources;
    let refuses = match room {
        Room::Plenty => return None,
        Room::Tight => "it takes no big values and no copies of partitions",
        Room::Full => "it takes nothing new, only deletes and what is no longer than before",
        Room::Shut => "it takes nothing but deletes",
    };
    let by_disk = disk_free.zip(disk_floor).filter(|(free, floor)| free / 2 < *floor);
    let has = match (by_disk, memory_max) {
        (Some((free, floor)), _) => {
            format!("its disk has {} free, the floor is {}", size(free), size(floor))
        }
        (None, Some(most)) => format!("it takes {} of {} of memory", size(memory), size(most)),
        (None, None) => "it says so".to_owned(),
    };
    let state = if room == Room::Tight { "nearly full" } else { "full" };
    Some(format!("node {} is {state}: {has}; {refuses}", node.node))
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib >= 10 {
        format!("{} MiB", grouped(mib))
    } else {
        format!("{} KiB", grouped(bytes >> 10))
    }
}

/// What is known of replicas holding the same.
fn compared(status: &Status) -> String {
    if let Some(running) = status.verify.as_ref().filter(|it| it.done < it.partitions) {
        let VerifyStatus { done, partitions, permille, found, .. } = running;
        let different = found.different;
        let percent = permille / 10;
        return format!(
            "replicas are being compared: {percent} %, {done} of {partitions} partitions, \
             {different} keys differ"
        );
    }
    let partitions = || status.keyspaces.iter().flat_map(|keyspace| &keyspace.partitions);
    let verified = || partitions().filter_map(|partition| partition.verified);
    let left: u64 = verified().map(|it| it.left).sum();
    let (all, known) = (partitions().count(), verified().count());
    let oldest = verified().map(|it| it.ms_ago).max().unwrap_or(0) / 1_000;
    match (known, left) {
        (0, _) => "replicas were not compared since this controller began: whether they hold the \
                   same is not known (keyway cluster verify)"
            .to_owned(),
        (_, 1..) => format!("{left} keys differ among replicas (keyway cluster verify --mend)"),
        (_, 0) if known < all => {
            format!("replicas of {known} of {all} partitions were compared, and agree")
        }
        (_, 0) => format!("all replicas agree, as compared up to {oldest} s ago"),
    }
}

fn members(status: &Status) -> String {
    let seconds = |ms: u64| Duration::from_millis(ms).as_secs_f64();
    let mut text = format!(
        "members (a lease lasts {} s; without a controller all that is served is for {:.1} s)\n",
        seconds(status.lease_ms),
        seconds(status.serves_alone_ms)
    );
    let mut rows = Vec::new();
    for member in &status.members {
        let name = member.member.to_string();
        let turn = match member.member {
            Member::Switch(index) if index == status.active_switch => "active",
            Member::Switch(_) => "standby",
            Member::Node(_) if member.departing => "leaving",
            Member::Node(_) | Member::Cache(_) => "",
        };
        let lease = match (member.lease_ms_left, &member.cache) {
            (_, Some(cache)) => cache_in_words(cache),
            (0, None) if matches!(member.member, Member::Cache(_)) => String::new(),
            (0, None) => "no lease".to_owned(),
            (left, None) => format!("lease {left} ms"),
        };
        let mut detail = member.detail.clone();
        if let Some(content) = member.switch.as_ref().and_then(|it| it.content.as_ref()) {
            detail.push_str(&format!("; {}", content_in_words(content)));
        }
        let endpoint = format!("{}", member.endpoint);
        rows.push(vec![name, endpoint, turn.to_owned(), lease, detail]);
    }
    text.extend(list(&rows).lines().map(|line| format!("  {line}\n")));
    text
}

/// How full a cache is, and what it is good for.
fn cache_in_words(cache: &CacheStatus) -> String {
    let CacheStatus { entries, room_entries, hits, misses, rules, .. } = *cache;
    let (keys, room) = (grouped(entries), grouped(room_entries));
    let (hits, misses, rules) = (grouped(hits), grouped(misses), grouped(rules));
    format!("{keys} of {room} keys, {hits} hits, {misses} misses, {rules} rules")
}

/// How the content table stands that a switch keeps.
fn content_in_words(content: &ContentReport) -> String {
    let ContentReport { plane, partitions, rules, pending, refused, unroutable, .. } = content;
    let of_room = content.capabilities.sizes.rules.map(|room| format!(" of {}", grouped(room)));
    let mut text = format!(
        "by --plane {plane} {} prefixes and {}{} rules of cached keys",
        grouped(*partitions),
        grouped(*rules),
        of_room.unwrap_or_default()
    );
    let rest = [
        (*pending, "to come"),
        (*refused, "refused, the log says why"),
        (*unroutable, "partitions without a prefix, whose keys go by the service address"),
    ];
    for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {} {what}", grouped(count)));
    }
    if let Some(trouble) = &content.trouble {
        text.push_str(&format!(", and it does not answer: {trouble}"));
    }
    text
}

/// Copies that are listed one by one; the rest is counted, so that the members stay in view.
const COPIES_SHOWN_MAX: usize = 16;

fn copies(copies: &[CopyStatus]) -> String {
    let mut rows =
        vec![["copy of", "from", "to", "done", "bytes", "left"].map(str::to_owned).to_vec()];
    for copy in copies.iter().take(COPIES_SHOWN_MAX) {
        let CopyStatus { partition, from, to, permille, bytes, eta_ms } = copy;
        rows.push(vec![
            format!("partition {partition}"),
            format!("node {from}"),
            format!("node {to}"),
            format!("{}.{} %", permille / 10, permille % 10),
            grouped(*bytes),
            eta_ms.map_or_else(String::new, |ms| format!("{} s", ms.div_ceil(1_000))),
        ]);
    }
    let mut text = table(&rows);
    if let Some(more) = copies.len().checked_sub(COPIES_SHOWN_MAX).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more\n"));
    }
    text
}

fn keyspaces(keyspaces: &[KeyspaceStatus]) -> String {
    let head = ["keyspace", "kind", "partitions", "replicas", "keys", "bytes", "reads", "writes"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for keyspace in keyspaces {
        rows.push(vec![
            keyspace.name.clone(),
            kind(&keyspace.kind),
            keyspace.partitions.len().to_string(),
            match (keyspace.replicas_min, keyspace.replicas) {
                (least, wanted) if least < wanted => format!("{least} of {wanted}"),
                (_, wanted) => wanted.to_string(),
            },
            keyspace.stored.map_or_else(unknown, |it| grouped(it.keys)),
            keyspace.stored.map_or_else(unknown, |it| grouped(it.bytes)),
            grouped(keyspace.partitions.iter().map(|p| p.reads).sum()),
            grouped(keyspace.partitions.iter().map(|p| p.writes).sum()),
        ]);
    }
    table(&rows)
}

/// What stands where nobody has said how much there is.
fn unknown() -> String {
    "?".to_owned()
}

/// Hash, or range with its prefix.
pub(crate) fn kind(kind: &KeyspaceKind) -> String {
    match kind {
        KeyspaceKind::Hash => "hash".to_owned(),
        KeyspaceKind::Range { prefix } if prefix.is_empty() => "range".to_owned(),
        KeyspaceKind::Range { prefix } => format!("range after {}", prefix.escape_ascii()),
    }
}

/// A bar for the reads and writes of each node.
pub(crate) fn load(load: &[NodeLoad]) -> String {
    let total = |node: &NodeLoad| node.reads.saturating_add(node.writes);
    let most = load.iter().map(total).max().unwrap_or(0);
    let head = [
        "node", "head of", "tail of", "reads", "writes", "waiting", "keys", "bytes", "memory",
        "disk", "",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for node in load {
        rows.push(vec![
            node.node.to_string(),
            node.heads.to_string(),
            node.tails.to_string(),
            grouped(node.reads),
            grouped(node.writes),
            grouped(node.pending),
            node.stored.map_or_else(unknown, |it| grouped(it.keys)),
            node.stored.map_or_else(unknown, |it| grouped(it.bytes)),
            size(node.resources.memory),
            node.resources.disk_used.map_or_else(|| "none".to_owned(), size),
            format!("{:<BAR_WIDTH$}", bar(total(node), most, BAR_WIDTH)),
        ]);
    }
    table(&rows)
}

const BAR_WIDTH: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Capabilities, TableSizes};

    #[test]
    fn of_a_content_table_what_is_wrong_is_said_and_nothing_that_is_not() {
        let good = ContentReport {
            plane: "routes".into(),
            capabilities: Capabilities::ADDRESSES,
            changes_per_second: None,
            partitions: 1_536,
            rules: 12,
            pending: 0,
            refused: 0,
            unroutable: 0,
            trouble: None,
        };
        let text = "by --plane routes 1 536 prefixes and 12 rules of cached keys";
        assert_eq!(content_in_words(&good), text);
        let sizes = TableSizes { rules: Some(2_000), ..TableSizes::default() };
        let bad = ContentReport {
            capabilities: Capabilities { sizes, ..Capabilities::ADDRESSES },
            pending: 1,
            refused: 2,
            unroutable: 3,
            trouble: Some("no answer".into()),
            ..good
        };
        let said = content_in_words(&bad);
        for part in [
            "and 12 of 2 000 rules",
            "1 to come",
            "2 refused",
            "3 partitions without",
            "does not answer: no answer",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
