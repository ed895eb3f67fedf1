//! One file of vectors: tables, perhaps hot keys, and cases of one datagram each, or of several of
//! which the last counts.

use super::codec::{self, Codec};
use crate::oracle::counts::Counts;
use crate::oracle::model::Sent;
use cluster::{HotOrder, Match, Selection, SwitchTables};
use serde::Deserialize;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use wire::{Endpoint, Revision};

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    about: String,
    /// Whether the switch has a lease.
    #[serde(default = "usually")]
    pub leased: bool,
    /// What is installed before each case; nothing if absent.
    pub tables: Option<SwitchTables>,
    /// What is installed after that, for the switch's incarnation 1.
    pub hot: Option<HotOrder>,
    /// Later orders, of which cases name some.
    #[serde(default)]
    orders: Vec<HotOrder>,
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

fn usually() -> bool {
    true
}

/// What is installed before a datagram arrives.
pub enum Change<'f> {
    Tables(SwitchTables),
    Hot(&'f HotOrder),
}

/// A datagram and where it comes from.
pub type Arrival = (Endpoint, Vec<u8>);

/// One datagram into a fresh switch, or into one that has taken others, and all that comes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows, as a sentence.
    pub name: String,
    /// What arrives before. What is sent then is not said here; what is counted is.
    #[serde(default)]
    before: Vec<Packet>,
    packet: Packet,
    #[serde(default)]
    sends: Vec<Send>,
    #[serde(default)]
    pub counters: Counts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Packet {
    /// Whether the switch stands by for a moment before, and forgets all hot keys.
    #[serde(default)]
    forgets: bool,
    /// Revision of the order that is installed after that, and before this arrives.
    order: Option<u64>,
    from: SocketAddr,
    header: Table,
    #[serde(default)]
    payload: Vec<String>,
    /// How many bytes of the datagram arrive, if not all.
    cut: Option<usize>,
    #[serde(default)]
    hex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    to: SocketAddr,
    changed: Table,
    hex: String,
}

impl File {
    /// Reads one file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if file.cases.is_empty() {
            return Err("no cases".into());
        }
        Ok(file)
    }

    /// The file as it is to be, with its hex digits and with what these functions say.
    pub fn render(
        &self,
        codec: &Codec,
        run: impl Fn(&Case, &[Arrival]) -> (Vec<Sent>, Counts),
    ) -> Result<String, String> {
        let mut out = format!("about = {}\n", quoted(&self.about));
        if !self.leased {
            line(&mut out, format_args!("leased = false"));
        }
        if let Some(tables) = &self.tables {
            render_tables(&mut out, tables);
        }
        if let Some(order) = &self.hot {
            render_hot(&mut out, "[hot]", order);
        }
        for order in &self.orders {
            render_hot(&mut out, "[[orders]]", order);
        }
        for case in &self.cases {
            let arrivals = case.datagrams(codec)?;
            let (sent, counts) = run(case, &arrivals);
            case.render(&mut out, codec, &arrivals, &sent, &counts);
        }
        Ok(out)
    }

    /// What is installed before each datagram of a case arrives.
    pub fn changes(&self, case: &Case) -> Result<Vec<Vec<Change<'_>>>, String> {
        let mut tables = self.tables.clone();
        let first = tables.iter().cloned().map(Change::Tables);
        let mut next: Vec<_> = first.chain(self.hot.iter().map(Change::Hot)).collect();
        let mut all = Vec::new();
        for packet in case.packets() {
            for active in [false, true] {
                if let Some(tables) = tables.as_mut().filter(|_| packet.forgets) {
                    tables.revision = tables.revision.next(0);
                    next.push(Change::Tables(SwitchTables { active, ..tables.clone() }));
                }
            }
            if let Some(revision) = packet.order {
                let order =
                    self.orders.iter().find(|order| order.revision == Revision::new(revision));
                let none = || format!("{}: there is no order {revision}", case.name);
                next.push(Change::Hot(order.ok_or_else(none)?));
            }
            all.push(std::mem::take(&mut next));
        }
        Ok(all)
    }
}

impl Case {
    /// The datagrams that the descriptions make, in order, and where they come from.
    pub fn datagrams(&self, codec: &Codec) -> Result<Vec<Arrival>, String> {
        let packets = self.packets().map(|packet| packet.datagram(codec));
        packets.collect::<Result<_, _>>().map_err(|why| format!("{}: {why}", self.name))
    }

    /// What arrives according to the hex digits, which is what a runner in another language reads.
    pub fn arrivals(&self) -> Result<Vec<Arrival>, String> {
        let arrives =
            |packet: &Packet| Ok((Endpoint::from(packet.from), codec::from_hex(&packet.hex)?));
        self.packets().map(arrives).collect()
    }

    fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.before.iter().chain([&self.packet])
    }

    /// What is sent according to the hex digits.
    pub fn sent(&self) -> Result<Vec<Sent>, String> {
        let sent = |send: &Send| Ok((Endpoint::from(send.to), codec::from_hex(&send.hex)?));
        self.sends.iter().map(sent).collect()
    }

    /// Whether `changed` says what the hex digits say.
    pub fn changes_hold(&self, codec: &Codec) -> Result<bool, String> {
        let came = codec::from_hex(&self.packet.hex)?;
        for send in &self.sends {
            let found = codec.changed(&came, &codec::from_hex(&send.hex)?);
            if found.into_iter().collect::<Table>() != send.changed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn render(
        &self,
        out: &mut String,
        codec: &Codec,
        arrivals: &[Arrival],
        sent: &[Sent],
        counts: &Counts,
    ) {
        line(out, format_args!("\n[[case]]\nname = {}", quoted(&self.name)));
        for (packet, (_, datagram)) in self.before.iter().zip(arrivals) {
            line(out, format_args!("\n[[case.before]]"));
            packet.render(out, codec, "case.before", datagram);
        }
        let (_, datagram) = arrivals.last().expect("the packet itself");
        line(out, format_args!("\n[case.packet]"));
        self.packet.render(out, codec, "case.packet", datagram);
        for (to, bytes) in sent {
            line(out, format_args!("\n[[case.sends]]\nto = \"{to}\""));
            render_hex(out, bytes);
            line(out, format_args!("\n[case.sends.changed]"));
            for (name, value) in codec.changed(datagram, bytes) {
                line(out, format_args!("{name} = {value}"));
            }
        }
        let Counts { packets, emitted, dropped, reads, writes, loads, .. } = counts;
        let Counts { hot_reads, hot_spread, hot_writes, delegated, hot_keys, doubted, .. } = counts;
        line(out, format_args!("\n[case.counters]\nemitted = {emitted}"));
        if *doubted > 0 {
            line(out, format_args!("doubted = {doubted}"));
        }
        let groups = [
            ("packets", packets),
            ("dropped", dropped),
            ("reads", reads),
            ("writes", writes),
            ("loads", loads),
            ("hot_reads", hot_reads),
            ("hot_spread", hot_spread),
            ("hot_writes", hot_writes),
            ("delegated", delegated),
            ("hot_keys", hot_keys),
        ];
        let (mut short, mut long) = (String::new(), String::new());
        for (name, group) in groups.into_iter().filter(|(_, group)| !group.is_empty()) {
            let pairs: Vec<String> = group.iter().map(|(key, n)| format!("{key} = {n}")).collect();
            // TOML wants an inline table in one line.
            if pairs.len() <= 5 {
                line(&mut short, format_args!("{name} = {{ {} }}", pairs.join(", ")));
            } else {
                let rows = pairs.join("\n");
                line(&mut long, format_args!("\n[case.counters.{name}]\n{rows}"));
            }
        }
        out.push_str(&short);
        out.push_str(&long);
    }
}

impl Packet {
    /// The datagram that the description makes, and where it comes from.
    fn datagram(&self, codec: &Codec) -> Result<Arrival, String> {
        let payload = codec::payload(&self.payload)?;
        let mut bytes = codec.datagram(&self.header, &payload)?;
        bytes.truncate(self.cut.unwrap_or(bytes.len()));
        Ok((Endpoint::from(self.from), bytes))
    }

    fn render(&self, out: &mut String, codec: &Codec, name: &str, datagram: &[u8]) {
        if self.forgets {
            line(out, format_args!("forgets = true"));
        }
        if let Some(revision) = self.order {
            line(out, format_args!("order = {revision}"));
        }
        line(out, format_args!("from = \"{}\"", self.from));
        if !self.payload.is_empty() {
            line(out, format_args!("payload = ["));
            for part in &self.payload {
                line(out, format_args!("    {},", quoted(part)));
            }
            line(out, format_args!("]"));
        }
        if let Some(cut) = self.cut {
            line(out, format_args!("cut = {cut}"));
        }
        render_hex(out, datagram);
        line(out, format_args!("\n[{name}.header]"));
        for (name, value) in codec.in_order(&self.header) {
            line(out, format_args!("{name} = {value}"));
        }
    }
}

/// All vector files of the repository, by name.
pub fn paths(repository: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = repository.join("spec/vectors");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{folder:?}: {e}"))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() { Err(format!("no vectors in {folder:?}")) } else { Ok(paths) }
}

fn render_tables(out: &mut String, tables: &SwitchTables) {
    line(out, format_args!("\n[tables]\nrevision = {}", tables.revision));
    if !tables.active {
        line(out, format_args!("active = false"));
    }
    if !tables.fenced.is_empty() {
        let fenced: Vec<u16> = tables.fenced.iter().map(|node| node.0).collect();
        line(out, format_args!("fenced = {fenced:?}"));
    }
    if tables.nodes.is_empty() {
        line(out, format_args!("nodes = []"));
    }
    if tables.partitions.is_empty() {
        line(out, format_args!("partitions = []"));
    }
    for node in &tables.nodes {
        line(out, format_args!("\n[[tables.nodes]]\nid = {}", node.id));
        line(out, format_args!("endpoint = \"{}\"\nshards = {}", node.endpoint, node.shards));
    }
    for cache in &tables.caches {
        line(out, format_args!("\n[[tables.caches]]\nid = {}", cache.id.0));
        line(out, format_args!("endpoint = \"{}\"\nshards = {}", cache.endpoint, cache.shards));
    }
    for partition in &tables.partitions {
        let (id, keyspace) = (partition.id, partition.keyspace);
        line(out, format_args!("\n[[tables.partitions]]\nid = {id}\nkeyspace = {keyspace}"));
        let (Match(first), Match(last)) = (partition.first, partition.last);
        line(out, format_args!("first = \"{first:032x}\"\nlast = \"{last:032x}\""));
        let chain: Vec<u16> = partition.chain.iter().map(|node| node.0).collect();
        line(out, format_args!("epoch = {}\nchain = {chain:?}", partition.epoch));
        if partition.has_learner {
            line(out, format_args!("has_learner = true"));
        }
    }
}

/// An order of hot keys, as the table of this name.
fn render_hot(out: &mut String, table: &str, order: &HotOrder) {
    let selection = match order.selection {
        Selection::Random => "random",
        Selection::Reported => "reported",
        Selection::Predicted => "predicted",
    };
    line(out, format_args!("\n{table}\nrevision = {}\nswitch = {}", order.revision, order.switch));
    // Text has no word for a hole; a node that the node table lacks is as good as one.
    let places =
        order.places.iter().flatten().map(|(node, incarnation)| format!("[{node}, {incarnation}]"));
    let places: Vec<String> = places.collect();
    line(out, format_args!("selection = \"{selection}\"\nplaces = [{}]", places.join(", ")));
    if order.keys.is_empty() {
        line(out, format_args!("keys = []"));
    }
    let name = table.trim_matches(['[', ']']);
    for key in &order.keys {
        let digits: String = key.key.iter().map(|byte| format!("{byte:02x}")).collect();
        line(out, format_args!("\n[[{name}.keys]]\nkeyspace = {}", key.keyspace));
        line(out, format_args!("key = \"{digits}\""));
        line(out, format_args!("keyhash = {}\nmatch_value = \"{}\"", key.keyhash, key.match_value));
        line(out, format_args!("generation = {}", key.generation));
        line(out, format_args!("first = {}\nreaders = {}", key.first, key.readers));
        if let Some(cluster::Delegation { number, replicas, copies }) = key.delegation {
            let delegation =
                format_args!("number = {number}, replicas = {replicas}, copies = {copies}");
            line(out, format_args!("delegation = {{ {delegation} }}"));
        }
    }
}

fn render_hex(out: &mut String, bytes: &[u8]) {
    line(out, format_args!("hex = \"\"\"\n{}\"\"\"", codec::to_hex(bytes)));
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("strings take everything");
}
