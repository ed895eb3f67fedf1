//! What a message says in its header, as a type of its own: fields that lie over others go by the
//! message's names, and are read and written here and nowhere else.

use super::rust::{ident, rust_type, rustfmt};
use crate::layout::{Field, Layout, Message};
use anyhow::{Context, Result};
use std::fmt::Write;

/// The text of `crates/wire/src/messages.rs`, as rustfmt leaves it.
pub(crate) fn generate(layout: &Layout) -> Result<String> {
    let mut out = String::from(
        "//! What each message says in its header, beside what is always there. Generated from \
         `spec/layout.toml` by `cargo xtask codegen`; do not edit.\n\n\
         use crate::layout::{Fields, HEADER_LEN, Header, Said, hop_flag};\n\
         use crate::number::{DelegationId, DirectoryClock, Generation, Version};\n",
    );
    for message in &layout.messages {
        structure(&mut out, layout, message)?;
    }
    rustfmt(&out)
}

fn structure(out: &mut String, layout: &Layout, message: &Message) -> Result<()> {
    let Message { name, doc, hop, says } = message;
    writeln!(out, "\n/// {doc}\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]")?;
    writeln!(out, "pub struct {name} {{")?;
    let mut fields = Vec::new();
    for it in says {
        let field = layout.fields.iter().find(|field| field.name == it.field);
        let field = field.with_context(|| format!("{name}: no field {}", it.field))?;
        let kind = rust_type(field);
        writeln!(out, "/// {}\npub {}: {kind},", it.doc, it.name)?;
        fields.push((it.name.as_str(), field));
    }
    let flags = hop.iter().map(|flag| format!("hop_flag::{flag}")).collect::<Vec<_>>();
    writeln!(out, "}}\n\nimpl {name} {{")?;
    writeln!(out, "/// What a packet says.\n#[inline]\n#[must_use]")?;
    writeln!(out, "pub fn read(header: &[u8; HEADER_LEN]) -> Self {{\nSelf {{")?;
    for (name, field) in &fields {
        writeln!(out, "{name}: header.{}(),", ident(&field.name))?;
    }
    writeln!(out, "}}\n}}\n\n/// Writes it into a packet.\n#[inline]")?;
    writeln!(out, "pub fn write(self, header: &mut [u8; HEADER_LEN]) {{")?;
    if !flags.is_empty() {
        writeln!(out, "header.set_hop_flags(header.hop_flags() | {});", flags.join(" | "))?;
    }
    for (name, field) in &fields {
        writeln!(out, "header.set_{}(self.{name});", ident(&field.name))?;
    }
    writeln!(out, "}}\n\n/// What a header says.\n#[inline]\n#[must_use]")?;
    writeln!(out, "pub fn of(header: &Header) -> Self {{\nSelf {{")?;
    for (name, field) in &fields {
        writeln!(out, "{name}: {},", from_header(layout, field)?)?;
    }
    writeln!(out, "}}\n}}\n\n/// Puts it into a header.\n#[inline]")?;
    writeln!(out, "pub fn put(self, header: &mut Header) {{")?;
    if !flags.is_empty() {
        writeln!(out, "header.hop_flags |= {};", flags.join(" | "))?;
    }
    for (name, field) in &fields {
        into_header(out, layout, field, &format!("self.{name}"))?;
    }
    writeln!(out, "}}\n}}")?;
    Ok(())
}

/// The fields of a header that lie where this one does, with the first byte of each that it takes,
/// and how many.
fn under<'a>(layout: &'a Layout, field: &Field) -> Vec<(&'a Field, usize, usize)> {
    let (first, end) = (field.at, field.at + field.size);
    let mut under = Vec::new();
    for it in layout.fields.iter().filter(|it| !it.overlay) {
        let (from, to) = (it.at.max(first), (it.at + it.size).min(end));
        if from < to {
            under.push((it, from - it.at, to - from));
        }
    }
    under
}

fn from_header(layout: &Layout, field: &Field) -> Result<String> {
    if !field.overlay {
        return Ok(format!("header.{}", ident(&field.name)));
    }
    let size = field.size;
    let mut code = format!("{{\nlet mut bytes = [0; {size}];\n");
    let mut at = 0;
    for (it, from, len) in under(layout, field) {
        let name = ident(&it.name);
        let own = super::rust::bytes(it.type_name, &format!("header.{name}"));
        let bytes = if it.bytes {
            format!("crate::bytes::get::<{from}, {len}, {}>(&header.{name})", it.size)
        } else if len == it.size {
            own
        } else {
            format!("crate::bytes::get::<{from}, {len}, {}>(&{own})", it.size)
        };
        writeln!(code, "crate::bytes::put::<{at}, {len}, {size}>(&mut bytes, {bytes});")?;
        at += len;
    }
    let value = match field.bytes {
        true => "bytes".to_owned(),
        false => super::rust::number(field.type_name, size, "bytes"),
    };
    Ok(format!("{code}{value}\n}}"))
}

fn into_header(out: &mut String, layout: &Layout, field: &Field, value: &str) -> Result<()> {
    if !field.overlay {
        writeln!(out, "header.{} = {value};", ident(&field.name))?;
        return Ok(());
    }
    let size = field.size;
    let bytes = match field.bytes {
        true => value.to_owned(),
        false => super::rust::bytes(field.type_name, value),
    };
    writeln!(out, "let bytes = {bytes};")?;
    let mut at = 0;
    for (it, from, len) in under(layout, field) {
        let name = ident(&it.name);
        let part = format!("crate::bytes::get::<{at}, {len}, {size}>(&bytes)");
        if it.bytes {
            let to = format!("crate::bytes::put::<{from}, {len}, {}>", it.size);
            writeln!(out, "{to}(&mut header.{name}, {part});")?;
        } else if len == it.size {
            let number = super::rust::number(it.type_name, len, &part);
            writeln!(out, "header.{name} = {number};")?;
        } else {
            let own = super::rust::bytes(it.type_name, &format!("header.{name}"));
            let number = super::rust::number(it.type_name, it.size, "whole");
            writeln!(out, "let mut whole = {own};")?;
            writeln!(out, "crate::bytes::put::<{from}, {len}, {}>(&mut whole, {part});", it.size)?;
            writeln!(out, "header.{name} = {number};")?;
        }
        at += len;
    }
    Ok(())
}
