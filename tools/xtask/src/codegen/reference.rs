//! The layout as reference pages for people.

use crate::layout::{Layout, MetricKind, Unit, When};
use anyhow::Result;
use std::fmt::Write;

/// The text of `docs/reference/wire.md`.
pub(crate) fn generate(layout: &Layout) -> Result<String> {
    let mut out = String::from(
        "# Wire and metrics reference\n\nGenerated from `spec/layout.toml` by `cargo xtask \
         codegen`; do not edit. What the fields mean to the protocol is told in \
         `spec/protocol.md`.\n\n\
         ## Header\n\nIntegers are big-endian; offsets count from the first byte of the UDP \
         payload.\n\n\
         | at | size | field | is there | meaning |\n|---|---|---|---|---|\n",
    );
    for f in &layout.fields {
        let when: Vec<String> = f.when.iter().map(condition).collect();
        let when = if when.is_empty() { "always".to_owned() } else { when.join("; or ") };
        writeln!(out, "| {} | {} | `{}` | {when} | {} |", f.at, f.size, f.name, f.doc)?;
    }
    for family in &layout.families {
        writeln!(out, "\n## `{}`\n\n{}\n\n| value | name | meaning |", family.name, family.doc)?;
        writeln!(out, "|---|---|---|")?;
        for v in &family.values {
            writeln!(out, "| {:#04x} | `{}` | {} |", v.value, v.name, v.doc)?;
        }
    }
    for flags in &layout.flags {
        writeln!(out, "\n## `{}`\n\n{}\n", flags.name, flags.doc)?;
        writeln!(out, "| bit | name | of | meaning |\n|---|---|---|---|")?;
        for f in &flags.values {
            let of = if f.ops.is_empty() { "any".to_owned() } else { code(&f.ops) };
            writeln!(out, "| {} | `{}` | {of} | {} |", f.bit, f.name, f.doc)?;
        }
    }
    out.push_str("\n## Bodies\n\n| body | fields (bytes) | meaning |\n|---|---|---|\n");
    for body in &layout.bodies {
        let fields: Vec<String> =
            body.fields.iter().map(|f| format!("{} ({})", f.name, f.size)).collect();
        writeln!(out, "| `{}` | {} | {} |", body.name, fields.join(", "), body.doc)?;
    }
    out.push_str("\n## Limits\n\n| name | value | meaning |\n|---|---|---|\n");
    for limit in &layout.limits {
        writeln!(out, "| `{}` | {} | {} |", limit.name, limit.value, limit.doc)?;
    }
    out.push_str(
        "\n## Metrics\n\n| name | kind | unit | labels | meaning |\n|---|---|---|---|---|\n",
    );
    for m in &layout.metrics {
        let (name, suffix) = match m.kind {
            MetricKind::Counter => ("counter", "_total"),
            MetricKind::Gauge => ("gauge", ""),
            MetricKind::Histogram => ("histogram", ""),
        };
        let (unit, labels) = (m.unit.map_or("", Unit::name), m.labels.join(", "));
        writeln!(out, "| `{}{suffix}` | {name} | {unit} | {labels} | {} |", m.name, m.doc)?;
    }
    Ok(out)
}

/// A condition in words.
fn condition(when: &When) -> String {
    let mut says = Vec::new();
    let mut list = |before: &str, names: &[String]| {
        if !names.is_empty() {
            says.push(format!("{before}{}", code(names)));
        }
    };
    list("", &when.ops);
    list("code ", &when.codes);
    list("with ", &when.hop);
    list("without ", &when.hop_clear);
    list("with ", &when.flags);
    list("0 in ", &when.zero);
    match when.delivered {
        Some(true) => says.push("on the way to the reply address".to_owned()),
        Some(false) => says.push("on the way to the switch".to_owned()),
        None => {}
    }
    says.join(", ")
}

fn code(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}
