//! The records of the kernel's maps as Rust.

use super::rust::{camel, rustfmt, unsigned};
use crate::layout::{Counter, Layout, Record, RecordField};
use anyhow::Result;
use std::fmt::Write;

/// The text of `crates/xdp/src/layout.rs`, as rustfmt leaves it.
pub(crate) fn generate(layout: &Layout) -> Result<String> {
    let mut out = wrapped(
        "//! ",
        "The records that the loader shares with the program in the kernel. Generated from \
         `spec/layout.toml` by `cargo xtask codegen`; do not edit. The generated C header has \
         the compiler check that it agrees.",
    );
    out.push_str("\nuse wire::{DelegationId, DirectoryClock, Generation, Version};\n");
    for record in &layout.records {
        structure(&mut out, record)?;
    }
    rustfmt(&out)
}

fn structure(out: &mut String, record: &Record) -> Result<()> {
    let (name, len) = (camel(&record.name), record.len());
    let shown = || record.fields.iter().filter(|f| f.name != "pad");
    write!(out, "\n{}", wrapped("/// ", &record.doc))?;
    // The library has a default only for short arrays.
    let default = if record.fields.iter().all(|f| f.count <= 32) { "Default, " } else { "" };
    writeln!(out, "#[derive(Clone, Copy, Debug, {default}PartialEq, Eq)]")?;
    writeln!(out, "pub struct {name} {{")?;
    for f in shown() {
        let order = if f.wire { "big-endian in the map" } else { "as the machine has it" };
        let plural = if f.count > 1 { format!("{} times ", f.count) } else { String::new() };
        writeln!(out, "/// {plural}{} bytes, {order}.\npub {}: {},", f.size, f.name, kind(f))?;
    }
    writeln!(out, "}}\n\nimpl {name} {{\n/// Bytes in the map.\npub const LEN: usize = {len};")?;
    encode(out, record)?;
    decode(out, record)?;
    writeln!(out, "}}")?;
    Ok(())
}

fn encode(out: &mut String, record: &Record) -> Result<()> {
    let len = record.len();
    writeln!(out, "\n/// The bytes of the map's value.\n#[must_use]")?;
    writeln!(out, "pub fn to_bytes(&self) -> [u8; {len}] {{")?;
    writeln!(out, "let mut out = [0; {len}];\nlet mut at = 0;")?;
    for f in &record.fields {
        let (name, bytes) = (&f.name, f.len());
        let order = if f.wire { "be" } else { "ne" };
        match (name.as_str(), f.size, f.count) {
            ("pad", ..) => {}
            (_, 1, 2..) => writeln!(out, "crate::bytes::put(&mut out, at, &self.{name});")?,
            (_, _, 2..) => writeln!(
                out,
                "for (i, one) in self.{name}.iter().enumerate() {{\n\
                 crate::bytes::put(&mut out, at + {} * i, &one.to_{order}_bytes());\n}}",
                f.size
            )?,
            _ => {
                let bits = if f.type_name.is_some() { ".get()" } else { "" };
                let bytes = format!("self.{name}{bits}.to_{order}_bytes()");
                writeln!(out, "crate::bytes::put(&mut out, at, &{bytes});")?
            }
        }
        writeln!(out, "at += {bytes};")?;
    }
    writeln!(out, "debug_assert_eq!(at, Self::LEN);\nout\n}}")?;
    Ok(())
}

fn decode(out: &mut String, record: &Record) -> Result<()> {
    writeln!(out, "\n/// What the bytes of the map's value say; `None` if they are too few.")?;
    writeln!(out, "#[must_use]\npub fn from_bytes(bytes: &[u8]) -> Option<Self> {{")?;
    writeln!(out, "Some(Self {{")?;
    let mut at = 0;
    for f in &record.fields {
        let (name, order) = (&f.name, if f.wire { "be" } else { "ne" });
        let number = unsigned(f.size);
        match (name.as_str(), f.size, f.count) {
            ("pad", ..) => {}
            (_, 1, 2..) => writeln!(out, "{name}: crate::bytes::get(bytes, {at})?,")?,
            (_, size, 2..) => {
                let at = if at == 0 { String::new() } else { format!("{at} + ") };
                writeln!(
                    out,
                    "{name}: {{\nlet mut all = [0; {}];\n\
                     for (i, one) in all.iter_mut().enumerate() {{\n\
                     let bytes = crate::bytes::get(bytes, {at}{size} * i)?;\n\
                     *one = {number}::from_{order}_bytes(bytes);\n\
                     }}\nall\n}},",
                    f.count
                )?;
            }
            _ => {
                let bytes = format!("crate::bytes::get(bytes, {at})?");
                let number = format!("{number}::from_{order}_bytes({bytes})");
                let number = f
                    .type_name
                    .map_or(number.clone(), |counter| format!("{counter:?}::new({number})"));
                writeln!(out, "{name}: {number},")?
            }
        }
        at += f.len();
    }
    writeln!(out, "}})\n}}")?;
    Ok(())
}

/// Columns of a line of the repository.
const WIDTH: usize = 100;

/// A comment of as many lines as it takes, each with this mark before it.
fn wrapped(mark: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && mark.len() + line.len() + 1 + word.len() > WIDTH {
            out += &format!("{mark}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + &format!("{mark}{line}\n")
}

fn kind(f: &RecordField) -> String {
    let number = Counter::type_of(f.type_name, f.size);
    if f.count > 1 { format!("[{number}; {}]", f.count) } else { number }
}
