//! The layout as C: what the in-kernel switch knows of packets and of its maps.

use super::rust::snake;
use crate::layout::{Field, Layout, Record, RecordField};
use anyhow::Result;
use std::fmt::Write;

/// The text of `bpf/include/layout.h`.
pub(crate) fn generate(layout: &Layout) -> Result<String> {
    let mut out = String::from(
        "/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */\n\
         /*\n * The layout of every packet and of the maps. Generated from spec/layout.toml by\n \
         * `cargo xtask codegen`; do not edit.\n */\n\
         #ifndef KEYWAY_LAYOUT_H\n#define KEYWAY_LAYOUT_H\n\n#include <linux/types.h>\n\n",
    );
    let p = &layout.protocol;
    writeln!(out, "#define KW_MAGIC\t\t{:#06x}", p.magic)?;
    writeln!(out, "#define KW_VERSION\t\t{}", p.version)?;
    writeln!(out, "#define KW_HEADER_LEN\t\t{}", p.header_len)?;
    for limit in &layout.limits {
        writeln!(out, "#define KW_{}\t{}", limit.name, limit.value)?;
    }
    for body in &layout.bodies {
        let len: usize = body.fields.iter().map(|f| f.size).sum();
        writeln!(out, "#define KW_{}_LEN\t{len}", body.name.to_uppercase())?;
    }
    for family in &layout.families {
        writeln!(out, "\n/* {} */\nenum kw_{} {{", family.doc, family.name)?;
        for v in &family.values {
            let name = snake(&v.name).to_uppercase();
            writeln!(out, "\tKW_{}_{name} = {:#04x},", family.name.to_uppercase(), v.value)?;
        }
        writeln!(out, "}};")?;
        if family.name != "op" {
            continue;
        }
        let cases: Vec<String> =
            family.values.iter().map(|v| format!("case {:#04x}:", v.value)).collect();
        writeln!(out, "/* Every operation, for a switch statement. */")?;
        writeln!(out, "#define KW_OP_CASES \\\n\t{}", cases.join(" \\\n\t"))?;
    }
    for flags in &layout.flags {
        writeln!(out, "\n/* {} */", flags.doc)?;
        for f in &flags.values {
            let family = flags.name.to_uppercase();
            writeln!(out, "#define KW_{family}_{}\t(1 << {})", f.name, f.bit)?;
        }
    }
    header(&mut out, layout)?;
    for record in &layout.records {
        structure(&mut out, record)?;
    }
    writeln!(out, "\n#endif /* KEYWAY_LAYOUT_H */")?;
    Ok(out)
}

fn header(out: &mut String, layout: &Layout) -> Result<()> {
    writeln!(out, "\n/* The header of every packet. */\nstruct kw_header {{")?;
    for f in layout.fields.iter().filter(|f| !f.overlay) {
        writeln!(out, "\t{};", declaration(f))?;
    }
    writeln!(out, "}} __attribute__((packed, aligned(4))); /* No byte-wise loads. */")?;
    let len = layout.protocol.header_len;
    writeln!(out, "\n_Static_assert(sizeof(struct kw_header) == {len}, \"no padding\");")?;
    for f in layout.fields.iter().filter(|f| !f.overlay) {
        let half = if f.size == 16 && !f.bytes { "_hi" } else { "" };
        placed(out, "header", &format!("{}{half}", f.name), f.at)?;
    }
    for f in layout.fields.iter().filter(|f| f.overlay) {
        writeln!(out, "#define KW_{}_AT\t{}", f.name.to_uppercase(), f.at)?;
    }
    Ok(())
}

/// A header field: wide ones and opaque ones as bytes, 16-byte numbers as two halves.
fn declaration(f: &Field) -> String {
    let Field { name, size, bytes, .. } = f;
    match (size, bytes) {
        (1, false) => format!("__u8 {name}"),
        (16, false) => format!("__be64 {name}_hi, {name}_lo"),
        (_, false) => format!("__be{} {name}", 8 * size),
        (_, true) => format!("__u8 {name}[{size}]"),
    }
}

fn structure(out: &mut String, record: &Record) -> Result<()> {
    let Record { name, fields, doc } = record;
    writeln!(out, "\n/* {doc} */\nstruct kw_{name} {{")?;
    for RecordField { name, size, count, wire, .. } in fields {
        let kind = match (*wire, *size) {
            (true, 2..) => format!("__be{}", 8 * size),
            _ => format!("__u{}", 8 * size),
        };
        let array = if *count > 1 { format!("[{count}]") } else { String::new() };
        writeln!(out, "\t{kind} {name}{array};")?;
    }
    let len = record.len();
    writeln!(out, "}};\n_Static_assert(sizeof(struct kw_{name}) == {len}, \"no padding\");")?;
    let mut at = 0;
    for field in fields {
        placed(out, name, &field.name, at)?;
        at += field.len();
    }
    Ok(())
}

/// Has the compiler check where it put a field: the loader writes it there.
fn placed(out: &mut String, structure: &str, field: &str, at: usize) -> Result<()> {
    let found = format!("__builtin_offsetof(struct kw_{structure}, {field})");
    writeln!(out, "_Static_assert({found} == {at}, \"as in Rust\");")?;
    Ok(())
}
