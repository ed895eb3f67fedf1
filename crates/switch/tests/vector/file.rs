//! One file of vectors: tables, and cases of one datagram each.

use super::codec::{self, Codec};
use crate::oracle::counts::Counts;
use crate::oracle::model::Sent;
use cluster::{Match, SwitchTables};
use serde::Deserialize;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use wire::Endpoint;

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    about: String,
    /// Whether the switch has a lease.
    #[serde(default = "usually")]
    pub(crate) leased: bool,
    /// What is installed before each case; nothing if absent.
    pub(crate) tables: Option<SwitchTables>,
    #[serde(rename = "case")]
    pub(crate) cases: Vec<Case>,
}

fn usually() -> bool {
    true
}

/// One datagram into a fresh switch, and all that comes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What it shows, as a sentence.
    pub(crate) name: String,
    packet: Packet,
    #[serde(default)]
    sends: Vec<Send>,
    #[serde(default)]
    pub(crate) counters: Counts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Packet {
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
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if file.cases.is_empty() {
            return Err("no cases".into());
        }
        Ok(file)
    }

    /// The file as it is to be, with its hex digits and with what these functions say.
    pub(crate) fn render(
        &self,
        codec: &Codec,
        run: impl Fn(Endpoint, &[u8]) -> (Vec<Sent>, Counts),
    ) -> Result<String, String> {
        let mut out = format!("about = {}\n", quoted(&self.about));
        if !self.leased {
            line(&mut out, format_args!("leased = false"));
        }
        if let Some(tables) = &self.tables {
            render_tables(&mut out, tables);
        }
        for case in &self.cases {
            let (from, datagram) = case.datagram(codec)?;
            let (sent, counts) = run(from, &datagram);
            case.render(&mut out, codec, &datagram, &sent, &counts);
        }
        Ok(out)
    }
}

impl Case {
    /// The datagram that the description makes, and where it comes from.
    pub(crate) fn datagram(&self, codec: &Codec) -> Result<(Endpoint, Vec<u8>), String> {
        let Packet { from, header, payload, cut, .. } = &self.packet;
        let named = |why| format!("{}: {why}", self.name);
        let payload = codec::payload(payload).map_err(named)?;
        let mut bytes = codec.datagram(header, &payload).map_err(named)?;
        bytes.truncate(cut.unwrap_or(bytes.len()));
        Ok((Endpoint::from(*from), bytes))
    }

    /// What arrives according to the hex digits, which is what a runner in another language reads.
    pub(crate) fn arrives(&self) -> Result<(Endpoint, Vec<u8>), String> {
        Ok((Endpoint::from(self.packet.from), codec::from_hex(&self.packet.hex)?))
    }

    /// What is sent according to the hex digits.
    pub(crate) fn sent(&self) -> Result<Vec<Sent>, String> {
        let sent = |send: &Send| Ok((Endpoint::from(send.to), codec::from_hex(&send.hex)?));
        self.sends.iter().map(sent).collect()
    }

    /// Whether `changed` says what the hex digits say.
    pub(crate) fn changes_hold(&self, codec: &Codec) -> Result<bool, String> {
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
        datagram: &[u8],
        sent: &[Sent],
        counts: &Counts,
    ) {
        line(out, format_args!("\n[[case]]\nname = {}\n\n[case.packet]", quoted(&self.name)));
        line(out, format_args!("from = \"{}\"", self.packet.from));
        if !self.packet.payload.is_empty() {
            line(out, format_args!("payload = ["));
            for part in &self.packet.payload {
                line(out, format_args!("    {},", quoted(part)));
            }
            line(out, format_args!("]"));
        }
        if let Some(cut) = self.packet.cut {
            line(out, format_args!("cut = {cut}"));
        }
        render_hex(out, datagram);
        line(out, format_args!("\n[case.packet.header]"));
        for (name, value) in codec.in_order(&self.packet.header) {
            line(out, format_args!("{name} = {value}"));
        }
        for (to, bytes) in sent {
            line(out, format_args!("\n[[case.sends]]\nto = \"{to}\""));
            render_hex(out, bytes);
            line(out, format_args!("\n[case.sends.changed]"));
            for (name, value) in codec.changed(datagram, bytes) {
                line(out, format_args!("{name} = {value}"));
            }
        }
        let Counts { packets, emitted, dropped, reads, writes, loads } = counts;
        line(out, format_args!("\n[case.counters]\nemitted = {emitted}"));
        let groups = [packets, dropped, reads, writes, loads];
        let names = ["packets", "dropped", "reads", "writes", "loads"];
        let (mut short, mut long) = (String::new(), String::new());
        for (name, group) in names.into_iter().zip(groups).filter(|(_, group)| !group.is_empty()) {
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

/// All vector files of the repository, by name.
pub(crate) fn paths(repository: &Path) -> Result<Vec<PathBuf>, String> {
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
    for partition in &tables.partitions {
        let (id, keyspace) = (partition.id, partition.keyspace);
        line(out, format_args!("\n[[tables.partitions]]\nid = {id}\nkeyspace = {keyspace}"));
        let (Match(first), Match(last)) = (partition.first, partition.last);
        line(out, format_args!("first = \"{first:032x}\"\nlast = \"{last:032x}\""));
        let chain: Vec<u16> = partition.chain.iter().map(|node| node.0).collect();
        line(out, format_args!("epoch = {}\nchain = {chain:?}", partition.epoch));
        if partition.joining {
            line(out, format_args!("joining = true"));
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
