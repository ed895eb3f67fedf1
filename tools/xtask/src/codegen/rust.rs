//! The layout as Rust: constants, enums, header accessors, bodies, metric names.

use crate::layout::{Body, BodyField, Counter, Family, Field, Flags, Layout, MetricKind, Unit};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::process::{Command, Stdio};

/// The text of `crates/wire/src/layout.rs`, as rustfmt leaves it.
pub(crate) fn generate(layout: &Layout) -> Result<String> {
    let mut out = String::from(
        "//! The layout of every packet. Generated from `spec/layout.toml` by \
         `cargo xtask codegen`; do not edit.\n\n\
         use crate::number::{DelegationId, DirectoryClock, Generation, LoanNumber, Revision, \
         Version};\n\
         use crate::result::ChainResult;\n\n",
    );
    constants(&mut out, layout)?;
    for family in &layout.families {
        enumeration(&mut out, family)?;
    }
    for flags in &layout.flags {
        bits(&mut out, flags)?;
    }
    header(&mut out, &layout.fields)?;
    accessors(&mut out, layout)?;
    for body in &layout.bodies {
        structure(&mut out, body)?;
    }
    metrics(&mut out, layout)?;
    rustfmt(&out)
}

fn constants(out: &mut String, layout: &Layout) -> Result<()> {
    let p = &layout.protocol;
    writeln!(
        out,
        "/// First two bytes of every packet.\npub const MAGIC: u16 = {:#06x};",
        p.magic
    )?;
    writeln!(out, "/// Version of this layout.\npub const VERSION: u8 = {};", p.version)?;
    writeln!(out, "/// Bytes of the header.\npub const HEADER_LEN: usize = {};", p.header_len)?;
    let at = p.end_to_end_at;
    writeln!(
        out,
        "/// Where the part under the tag begins.\npub const END_TO_END_AT: usize = {at};"
    )?;
    for limit in &layout.limits {
        let is_short = ["PORT", "ENVELOPE_MAGIC"].contains(&limit.name.as_str());
        let kind = if is_short { "u16" } else { "usize" };
        writeln!(out, "/// {}\npub const {}: {kind} = {};", limit.doc, limit.name, limit.value)?;
    }
    Ok(())
}

fn enumeration(out: &mut String, family: &Family) -> Result<()> {
    let Family { type_name, doc, values, .. } = family;
    writeln!(out, "\n/// {doc}")?;
    writeln!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]")?;
    writeln!(out, "#[repr(u8)]\npub enum {type_name} {{")?;
    for v in values {
        writeln!(out, "/// {}\n{} = {:#04x},", v.doc, v.name, v.value)?;
    }
    writeln!(out, "}}\n\nimpl {type_name} {{")?;
    writeln!(out, "/// Every value, in the order of the specification.")?;
    let all: Vec<String> = values.iter().map(|v| format!("Self::{}", v.name)).collect();
    writeln!(out, "pub const ALL: [Self; {}] = [{}];", values.len(), all.join(", "))?;
    writeln!(out, "\n/// The value that this byte stands for, if any.")?;
    writeln!(
        out,
        "#[must_use]\npub const fn from_wire(byte: u8) -> Option<Self> {{\nmatch byte {{"
    )?;
    for v in values {
        writeln!(out, "{:#04x} => Some(Self::{}),", v.value, v.name)?;
    }
    writeln!(out, "_ => None,\n}}\n}}")?;
    writeln!(out, "\n/// The name used in metrics, logs and documents.")?;
    writeln!(out, "#[must_use]\npub const fn name(self) -> &'static str {{\nmatch self {{")?;
    for v in values {
        writeln!(out, "Self::{} => \"{}\",", v.name, snake(&v.name))?;
    }
    writeln!(out, "}}\n}}\n}}")?;
    Ok(())
}

fn bits(out: &mut String, flags: &Flags) -> Result<()> {
    writeln!(out, "\n/// {}\npub mod {} {{", flags.doc, flags.name)?;
    for f in &flags.values {
        writeln!(out, "/// {}\npub const {}: u8 = 1 << {};", f.doc, f.name, f.bit)?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

fn header(out: &mut String, fields: &[Field]) -> Result<()> {
    writeln!(
        out,
        "\n/// A header as its author decides it: the fields in host order, without magic, version \
         and tag, which [`write`](Self::write) and [`seal`](crate::seal) fill in."
    )?;
    writeln!(out, "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct Header {{")?;
    let owned = |f: &&Field| !f.overlay && !matches!(f.name.as_str(), "magic" | "version" | "tag");
    for f in fields.iter().filter(owned) {
        writeln!(out, "/// {}\npub {}: {},", f.doc, ident(&f.name), rust_type(f))?;
    }
    writeln!(out, "}}\n\nimpl Header {{")?;
    writeln!(out, "/// Writes every field but the tag, which is left zero.")?;
    writeln!(out, "pub fn write(&self, out: &mut [u8; HEADER_LEN]) {{")?;
    writeln!(out, "*out = [0; HEADER_LEN];")?;
    writeln!(out, "out.set_magic(MAGIC);\nout.set_version(VERSION);")?;
    for f in fields.iter().filter(owned) {
        writeln!(out, "out.set_{}(self.{});", ident(&f.name), ident(&f.name))?;
    }
    writeln!(out, "}}\n\n/// Reads every field.\n#[must_use]")?;
    writeln!(out, "pub fn read(bytes: &[u8; HEADER_LEN]) -> Self {{\nSelf {{")?;
    for f in fields.iter().filter(owned) {
        writeln!(out, "{}: bytes.{}(),", ident(&f.name), ident(&f.name))?;
    }
    writeln!(out, "}}\n}}\n}}")?;
    Ok(())
}

/// Two traits: what anybody may read and write in place, and what means something else in each
/// message, which goes by the message (`crates/wire/src/messages.rs`).
fn accessors(out: &mut String, layout: &Layout) -> Result<()> {
    let (said, common): (Vec<_>, Vec<_>) =
        layout.fields.iter().partition(|field| layout.is_said(field));
    writeln!(out, "\n/// The header fields in place, for readers and rewriters of raw bytes.")?;
    access(out, "pub trait Fields", &common)?;
    writeln!(out, "\n/// Those that only messages read and write.")?;
    access(out, "pub(crate) trait Said", &said)
}

fn access(out: &mut String, head: &str, fields: &[&Field]) -> Result<()> {
    writeln!(out, "{head} {{")?;
    for f in fields {
        let (name, kind) = (ident(&f.name), rust_type(f));
        writeln!(out, "/// {}\n#[must_use]\nfn {name}(&self) -> {kind};", f.doc)?;
        writeln!(
            out,
            "/// Overwrites `{}`.\nfn set_{}(&mut self, value: {kind});",
            f.name,
            ident(&f.name)
        )?;
    }
    let name = head.rsplit(' ').next().unwrap_or_default();
    writeln!(out, "}}\n\nimpl {name} for [u8; HEADER_LEN] {{")?;
    for f in fields {
        let (name, kind) = (ident(&f.name), rust_type(f));
        let (at, size) = (f.at, f.size);
        let read = format!("crate::bytes::get::<{at}, {size}, HEADER_LEN>(self)");
        let (value, bits) = if f.bytes {
            (read, "value".to_owned())
        } else {
            (number(f.type_name, f.size, &read), bytes(f.type_name, "value"))
        };
        writeln!(out, "#[inline]\nfn {name}(&self) -> {kind} {{ {value} }}")?;
        writeln!(out, "#[inline]\nfn set_{}(&mut self, value: {kind}) {{", ident(&f.name))?;
        writeln!(out, "crate::bytes::put::<{at}, {size}, HEADER_LEN>(self, {bits});\n}}")?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

fn structure(out: &mut String, body: &Body) -> Result<()> {
    let name = format!("{}Body", camel(&body.name));
    let len: usize = body.fields.iter().map(|f| f.size).sum();
    writeln!(out, "\n/// {}", body.doc)?;
    writeln!(out, "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct {name} {{")?;
    for f in &body.fields {
        let doc = format!("{} bytes, big-endian on the wire.", f.size);
        writeln!(out, "/// {doc}\npub {}: {},", ident(&f.name), body_type(f))?;
    }
    writeln!(out, "}}\n\nimpl {name} {{\n/// Bytes on the wire.\npub const LEN: usize = {len};")?;
    writeln!(out, "\n/// Takes the fields off the front; `None` if there are too few bytes.")?;
    writeln!(out, "#[must_use]\npub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {{")?;
    writeln!(out, "let (fixed, rest) = bytes.split_first_chunk::<{len}>()?;")?;
    writeln!(out, "Some((Self {{")?;
    let mut at = 0;
    for f in &body.fields {
        let (field, size) = (ident(&f.name), f.size);
        let read = format!("crate::bytes::get::<{at}, {size}, {len}>(fixed)");
        writeln!(out, "{field}: {},", number(f.type_name, size, &read))?;
        at += size;
    }
    writeln!(out, "}}, rest))\n}}\n\n/// The fields as they stand on the wire.\n#[must_use]")?;
    writeln!(out, "pub fn to_bytes(&self) -> [u8; {len}] {{\nlet mut out = [0; {len}];")?;
    let mut at = 0;
    for f in &body.fields {
        let (field, size) = (ident(&f.name), f.size);
        let bytes = bytes(f.type_name, &format!("self.{field}"));
        writeln!(out, "crate::bytes::put::<{at}, {size}, {len}>(&mut out, {bytes});")?;
        at += size;
    }
    writeln!(out, "out\n}}\n}}")?;
    Ok(())
}

fn metrics(out: &mut String, layout: &Layout) -> Result<()> {
    writeln!(out, "\n/// Names of everything that a role counts.\npub mod metric {{")?;
    writeln!(out, "use crate::metric::{{Kind, Metric}};")?;
    for m in &layout.metrics {
        // Those of any process have the names that everybody gives them.
        let short = m.name.strip_prefix("keyway_").unwrap_or(&m.name);
        let kind = match m.kind {
            MetricKind::Counter => "Counter",
            MetricKind::Gauge => "Gauge",
            MetricKind::Histogram => "Histogram",
        };
        writeln!(out, "/// {}\npub const {}: Metric = Metric {{", m.doc, short.to_uppercase())?;
        writeln!(
            out,
            "name: {:?}, kind: Kind::{kind}, unit: {:?}, labels: &{:?}, help: {:?} }};",
            m.name,
            m.unit.map(Unit::name),
            m.labels,
            m.doc
        )?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

pub(super) fn rustfmt(text: &str) -> Result<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=100,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("rustfmt: install it with `rustup component add rustfmt`")?;
    let mut stdin = child.stdin.take().context("stdin was piped")?;
    std::io::Write::write_all(&mut stdin, text.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "rustfmt refused the generated text");
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn rust_type(field: &Field) -> String {
    if field.bytes {
        format!("[u8; {}]", field.size)
    } else {
        Counter::type_of(field.type_name, field.size)
    }
}

fn body_type(field: &BodyField) -> String {
    Counter::type_of(field.type_name, field.size)
}

/// The number that these bytes of a packet are.
pub(super) fn number(counter: Option<Counter>, size: usize, bytes: &str) -> String {
    let number = format!("{}::from_be_bytes({bytes})", unsigned(size));
    counter.map_or(number.clone(), |counter| format!("{counter:?}::new({number})"))
}

/// The bytes of a packet that this number is.
pub(super) fn bytes(counter: Option<Counter>, number: &str) -> String {
    let bits = if counter.is_some() { ".get()" } else { "" };
    format!("{number}{bits}.to_be_bytes()")
}

pub(super) fn unsigned(size: usize) -> String {
    format!("u{}", size * 8)
}

pub(super) fn ident(name: &str) -> String {
    if name == "match" { "match_value".to_owned() } else { name.to_owned() }
}

pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.char_indices() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

pub(super) fn camel(name: &str) -> String {
    let upper = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|c| c.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default()
    };
    name.split('_').map(upper).collect()
}
