//! The layout as a dissector for Wireshark: tables, and a program that goes through packets by
//! them. The program is written by hand, in `lua/dissector.lua`.

use crate::layout::{Body, Field, Layout, Part, Shown, When};
use anyhow::{Context, Result};
use std::fmt::Write;

const PROGRAM: &str = include_str!("lua/dissector.lua");

/// The fields that the program itself asks for by name: it must be changed with them.
const ASKED_FOR: [&str; 7] =
    ["op", "code", "hop_flags", "flags", "payload_len", "reply_addr", "reply_port"];

/// The text of `tools/wireshark/keyway.lua`.
pub(crate) fn generate(layout: &Layout) -> Result<String> {
    let mut out = String::from(
        "-- Shows packets of Keyway in Wireshark and tshark. Generated from spec/layout.toml by\n\
         -- `cargo xtask codegen`; do not edit. docs/operating/packets.md says how to use it.\n\n",
    );
    for name in ASKED_FOR {
        layout.field(name).context("tools/xtask/src/codegen/lua/dissector.lua asks for it")?;
    }
    let p = &layout.protocol;
    writeln!(out, "local MAGIC, HEADER_LEN = {:#06x}, {}", p.magic, p.header_len)?;
    for name in ["PORT", "ENVELOPE_MAGIC"] {
        let limit = layout.limits.iter().find(|limit| limit.name == name).context(name)?;
        writeln!(out, "local {name} = {}", limit.value)?;
    }
    out.push_str("\nlocal FAMILIES = {\n");
    for family in layout.families.iter().filter(|family| layout.is_shown(&family.name)) {
        writeln!(out, "  {} = {{", family.name)?;
        for value in &family.values {
            let name = super::rust::snake(&value.name);
            writeln!(out, "    [{:#04x}] = \"{name}\",", value.value)?;
        }
        writeln!(out, "  }},")?;
    }
    writeln!(out, "}}\n\nlocal BITS = {{")?;
    for flags in &layout.flags {
        writeln!(out, "  {} = {{", flags.name)?;
        for flag in &flags.values {
            let ops = set(&layout.numbers("op", &flag.ops)?);
            writeln!(out, "    {{ name = \"{}\", bit = {}, ops = {ops} }},", flag.name, flag.bit)?;
        }
        writeln!(out, "  }},")?;
    }
    writeln!(out, "}}\n\nlocal HEADER = {{")?;
    for field in layout.fields_in_order() {
        header(&mut out, layout, field)?;
    }
    writeln!(out, "}}\n\nlocal FORMS = {{")?;
    layout.bodies.iter().try_for_each(|body| form(&mut out, layout, body))?;
    writeln!(out, "}}\n\nlocal PAYLOADS = {{")?;
    for row in &layout.payloads {
        writeln!(out, "  {{")?;
        writeln!(out, "    when = {},", conditions(layout, &row.when)?)?;
        writeln!(out, "    parts = {{{}}},\n  }},", parts(layout, &row.parts)?)?;
    }
    writeln!(out, "}}\n\n{PROGRAM}")?;
    Ok(out.trim_end().to_owned() + "\n")
}

fn header(out: &mut String, layout: &Layout, field: &Field) -> Result<()> {
    let Field { name, at, size, doc, .. } = field;
    let shown = shown(field.shown, field.family.as_deref(), field.bits.as_deref());
    write!(out, "  {{ name = \"{name}\", at = {at}, size = {size}{shown}")?;
    if let Some(count) = &field.count {
        write!(out, ", count = \"{count}\"")?;
    }
    if let Some(rest) = &field.rest {
        let when = conditions(layout, &rest.when)?;
        write!(out, ",\n    rest = {{ name = \"{}\", when = {when} }}", rest.name)?;
    }
    if field.overlay {
        write!(out, ",\n    when = {}", conditions(layout, &field.when)?)?;
    }
    writeln!(out, ",\n    doc = {} }},", quoted(doc))?;
    Ok(())
}

fn form(out: &mut String, layout: &Layout, body: &Body) -> Result<()> {
    // In brackets: a name may be a word of the language, as `return` is.
    writeln!(out, "  [\"{}\"] = {{", body.name)?;
    let mut at = 0;
    for field in &body.fields {
        let shown = shown(field.shown, field.family.as_deref(), None);
        writeln!(
            out,
            "    {{ name = \"{}\", at = {at}, size = {}{shown} }},",
            field.name, field.size
        )?;
        at += field.size;
    }
    writeln!(out, "    len = {at},")?;
    if !body.kinds.is_empty() {
        writeln!(out, "    kinds = {},", set(&body.kinds))?;
    }
    if !body.tail.is_empty() {
        writeln!(out, "    tail = {},", conditions(layout, &body.tail)?)?;
    }
    writeln!(out, "    parts = {{{}}},\n  }},", parts(layout, &body.then)?)?;
    Ok(())
}

fn shown(shown: Option<Shown>, family: Option<&str>, bits: Option<&str>) -> String {
    match (shown, family, bits) {
        (_, Some(family), _) => format!(", shown = \"named\", names = FAMILIES.{family}"),
        (_, _, Some(bits)) => format!(", shown = \"bits\", bits = BITS.{bits}"),
        (None, ..) => ", shown = \"number\"".to_owned(),
        (Some(Shown::Hex), ..) => ", shown = \"hex\"".to_owned(),
        (Some(Shown::Signed), ..) => ", shown = \"signed\"".to_owned(),
        (Some(Shown::Address), ..) => ", shown = \"address\"".to_owned(),
        (Some(Shown::Ids), ..) => ", shown = \"ids\"".to_owned(),
    }
}

fn parts(layout: &Layout, parts: &[Part]) -> Result<String> {
    let mut out = String::new();
    for part in parts {
        let mut says = Vec::new();
        let mut name = |key: &str, value: &Option<String>| {
            says.extend(value.iter().map(|value| format!("{key} = \"{value}\"")));
        };
        name("form", &part.body);
        name("bytes", &part.bytes);
        name("len", &part.len);
        name("lens", &part.lens);
        name("times", &part.times);
        if !part.each.is_empty() {
            let forms: Vec<String> = part.each.iter().map(|name| format!("\"{name}\"")).collect();
            says.push(format!("each = {{ {} }}", forms.join(", ")));
        }
        if !part.when.is_empty() {
            says.push(format!("when = {}", conditions(layout, &part.when)?));
        }
        for (key, values) in [("having", &part.having), ("unless", &part.unless)] {
            for (field, values) in layout.values(values)? {
                says.push(format!("{key} = {{ {field} = {} }}", set(&values)));
            }
        }
        write!(out, "\n      {{ {} }},", says.join(", "))?;
    }
    Ok(if out.is_empty() { out } else { out + "\n    " })
}

fn conditions(layout: &Layout, when: &[When]) -> Result<String> {
    let mut out = "{".to_owned();
    for when in when {
        let mut says = Vec::new();
        if !when.ops.is_empty() {
            says.push(format!("ops = {}", set(&layout.numbers("op", &when.ops)?)));
        }
        if !when.codes.is_empty() {
            says.push(format!("codes = {}", set(&layout.numbers("code", &when.codes)?)));
        }
        if when.codes_from > 0 {
            says.push(format!("codes_from = {}", when.codes_from));
        }
        for (key, flags, names) in [
            ("hop", "hop_flag", &when.hop),
            ("hop_clear", "hop_flag", &when.hop_clear),
            ("flags", "flag", &when.flags),
        ] {
            if !names.is_empty() {
                says.push(format!("{key} = {:#04x}", layout.mask(flags, names)?));
            }
        }
        if !when.zero.is_empty() {
            let names: Vec<String> = when.zero.iter().map(|name| format!("\"{name}\"")).collect();
            says.push(format!("zero = {{ {} }}", names.join(", ")));
        }
        if let Some(delivered) = when.delivered {
            says.push(format!("delivered = {delivered}"));
        }
        write!(out, " {{ {} }},", says.join(", "))?;
    }
    Ok(out + " }")
}

/// A table that has these numbers as keys.
fn set(numbers: &[u8]) -> String {
    if numbers.is_empty() {
        return "nil".to_owned();
    }
    let keys: Vec<String> = numbers.iter().map(|it| format!("[{it:#04x}] = true")).collect();
    format!("{{ {} }}", keys.join(", "))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
