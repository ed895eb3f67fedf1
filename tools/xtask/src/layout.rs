//! `spec/layout.toml` as types, with the checks that make it trustworthy.

mod shown;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) use shown::{Part, Payload, Rest, Shown, When};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layout {
    pub(crate) protocol: Protocol,
    #[serde(rename = "field")]
    pub(crate) fields: Vec<Field>,
    #[serde(rename = "family")]
    pub(crate) families: Vec<Family>,
    pub(crate) flags: Vec<Flags>,
    #[serde(rename = "body")]
    pub(crate) bodies: Vec<Body>,
    #[serde(rename = "message")]
    pub(crate) messages: Vec<Message>,
    #[serde(rename = "payload")]
    pub(crate) payloads: Vec<Payload>,
    #[serde(rename = "limit")]
    pub(crate) limits: Vec<Limit>,
    #[serde(rename = "metric")]
    pub(crate) metrics: Vec<Metric>,
    #[serde(rename = "record")]
    pub(crate) records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Protocol {
    pub(crate) magic: u16,
    pub(crate) version: u8,
    pub(crate) header_len: usize,
    pub(crate) end_to_end_at: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) size: usize,
    #[serde(default)]
    pub(crate) bytes: bool,
    #[serde(default)]
    pub(crate) overlay: bool,
    /// It means something of its own in each message.
    #[serde(default)]
    pub(crate) said: bool,
    /// When an overlay is there.
    #[serde(default)]
    pub(crate) when: Vec<When>,
    /// What its numbers are called.
    pub(crate) family: Option<String>,
    /// What its bits are called.
    pub(crate) bits: Option<String>,
    pub(crate) shown: Option<Shown>,
    /// The counter that it is one of, instead of just a number.
    #[serde(rename = "type")]
    pub(crate) type_name: Option<Counter>,
    /// Of ids: the field that says how many they are.
    pub(crate) count: Option<String>,
    /// Of ids: what those after them are, sometimes.
    pub(crate) rest: Option<Rest>,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) doc: String,
    pub(crate) values: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) value: u8,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flags {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) values: Vec<Flag>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flag {
    pub(crate) name: String,
    pub(crate) bit: u8,
    /// The bit of another flag, which no packet has a use for that has one for this.
    #[serde(default)]
    pub(crate) overlay: bool,
    /// The operations that it is a variant of; none: all.
    #[serde(default)]
    pub(crate) ops: Vec<String>,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) name: String,
    pub(crate) fields: Vec<BodyField>,
    /// The numbers of its first field by which it is known in a list.
    #[serde(default)]
    pub(crate) kinds: Vec<u8>,
    /// What follows it.
    #[serde(default)]
    pub(crate) then: Vec<Part>,
    /// When a payload ends with it.
    #[serde(default)]
    pub(crate) tail: Vec<When>,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BodyField {
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) family: Option<String>,
    pub(crate) shown: Option<Shown>,
    /// The counter that it is one of, instead of just a number.
    #[serde(rename = "type")]
    pub(crate) type_name: Option<Counter>,
}

/// What numbers of 8 bytes count that have a type of their own (`crates/wire/src/number.rs`).
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum Counter {
    Version,
    Revision,
    Generation,
    DelegationId,
    LoanNumber,
    DirectoryClock,
    /// What it counts depends on the write (`crates/wire/src/result.rs`).
    ChainResult,
}

impl Counter {
    /// The Rust type of a number of so many bytes.
    pub(crate) fn type_of(counter: Option<Self>, size: usize) -> String {
        match counter {
            Some(counter) => format!("{counter:?}"),
            None => format!("u{}", size * 8),
        }
    }
}

/// What a message says in its header, by names of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) doc: String,
    /// The hop flags that it has.
    #[serde(default)]
    pub(crate) hop: Vec<String>,
    pub(crate) says: Vec<Said>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub(crate) name: String,
    /// The header's field in which it is.
    pub(crate) field: String,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limit {
    pub(crate) name: String,
    pub(crate) value: u64,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) kind: MetricKind,
    #[serde(default)]
    pub(crate) unit: Option<Unit>,
    pub(crate) labels: Vec<String>,
    pub(crate) doc: String,
}

/// What a metric is measured in, where it does not just count: the base units of Prometheus.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    Ratio,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Ratio => "ratio",
        }
    }

    /// What a name that ends in this is measured in.
    fn of_name(name: &str) -> Option<Self> {
        let last = name.rsplit('_').next().unwrap_or_default();
        [Self::Seconds, Self::Bytes, Self::Ratio].into_iter().find(|unit| unit.name() == last)
    }
}

/// How names end that are measured in no base unit.
const OTHER_UNITS: [&str; 9] =
    ["ms", "us", "ns", "millis", "micros", "nanos", "permille", "percent", "kilobytes"];

impl Metric {
    /// By the conventions of Prometheus: the base unit ends the name, and `_total` is what the
    /// exposition gives to counters.
    fn check(&self) -> Result<()> {
        let name = &self.name;
        let last = name.rsplit('_').next().unwrap_or_default();
        ensure!(!OTHER_UNITS.contains(&last), "metric {name}: use seconds, bytes or a ratio");
        ensure!(Unit::of_name(name) == self.unit, "metric {name}: its unit ends its name");
        ensure!(last != "total", "metric {name}: the exposition adds _total to counters");
        Ok(())
    }
}

/// A structure in a map of the kernel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) fields: Vec<RecordField>,
    pub(crate) doc: String,
}

/// `count` numbers of `size` bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordField {
    pub(crate) name: String,
    pub(crate) size: usize,
    #[serde(default = "one")]
    pub(crate) count: usize,
    /// Big-endian, as in packets.
    #[serde(default)]
    pub(crate) wire: bool,
    /// The counter that it is one of, instead of just a number.
    #[serde(rename = "type")]
    pub(crate) type_name: Option<Counter>,
}

fn one() -> usize {
    1
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl Layout {
    /// Reads and checks `spec/layout.toml`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let path = root.join("spec/layout.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let layout: Self = toml::from_str(&text)?;
        layout.check().context("spec/layout.toml contradicts itself")?;
        Ok(layout)
    }

    /// Whether a field goes by what a message says in it: it lies over others, or means something
    /// else in each message.
    pub(crate) fn is_said(&self, field: &Field) -> bool {
        field.overlay || field.said
    }

    /// No gap, no overlap but the declared ones, no number used twice.
    fn check(&self) -> Result<()> {
        let mut at = 0;
        for field in self.fields.iter().filter(|f| !f.overlay) {
            ensure!(field.at == at, "field {} is at {}, expected {at}", field.name, field.at);
            at += field.size;
        }
        ensure!(at == self.protocol.header_len, "fields end at {at}, not at header_len");
        for field in &self.fields {
            let inside = field.at + field.size <= self.protocol.header_len;
            ensure!(inside, "field {} leaves the header", field.name);
            let boundary = self.protocol.end_to_end_at;
            let straddles = field.at < boundary && field.at + field.size > boundary;
            ensure!(!straddles, "field {} is on both sides of end_to_end_at", field.name);
            let sized = field.bytes || matches!(field.size, 1 | 2 | 4 | 8 | 16);
            ensure!(sized, "field {} has an odd size", field.name);
            let counts = field.type_name.is_none() || (field.size == 8 && !field.bytes);
            ensure!(counts, "field {} is no counter of 8 bytes", field.name);
        }
        for family in &self.families {
            let distinct: BTreeSet<u8> = family.values.iter().map(|v| v.value).collect();
            ensure!(distinct.len() == family.values.len(), "{}: a value twice", family.name);
        }
        for flags in &self.flags {
            let own = || flags.values.iter().filter(|f| !f.overlay);
            let distinct: BTreeSet<u8> = own().map(|f| f.bit).collect();
            let fits = flags.values.iter().all(|f| f.bit < 8);
            ensure!(fits && distinct.len() == own().count(), "{}: bad bits", flags.name);
        }
        self.check_shown()?;
        for record in &self.records {
            record.check()?;
        }
        let names: BTreeSet<&str> = self.metrics.iter().map(|m| m.name.as_str()).collect();
        ensure!(names.len() == self.metrics.len(), "a metric twice");
        self.metrics.iter().try_for_each(Metric::check)?;
        Ok(())
    }
}

impl Record {
    /// Bytes of the whole.
    pub(crate) fn len(&self) -> usize {
        self.fields.iter().map(RecordField::len).sum()
    }

    /// Each field where a compiler would put it, and nothing to fill up at the end.
    fn check(&self) -> Result<()> {
        let mut at = 0;
        for field in &self.fields {
            let sized = matches!(field.size, 1 | 2 | 4 | 8);
            let place = format!("field {} of record {}", field.name, self.name);
            ensure!(sized, "{place} has an odd size");
            ensure!(at % field.size == 0, "{place} is not aligned: spell the padding out");
            at += field.len();
        }
        let align = self.fields.iter().map(|field| field.size).max().unwrap_or(1);
        ensure!(at % align == 0, "record {} ends with hidden padding", self.name);
        Ok(())
    }
}

impl RecordField {
    /// Bytes of all its numbers.
    pub(crate) fn len(&self) -> usize {
        self.size * self.count
    }
}
