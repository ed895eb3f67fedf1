//! The layout as reference pages for people.

use crate::layout::{Layout, MetricKind, Unit};
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
         | at | size | field | meaning |\n|---|---|---|---|\n",
    );
    for f in &layout.fields {
        writeln!(out, "| {} | {} | `{}` | {} |", f.at, f.size, f.name, f.doc)?;
    }
    for family in &layout.families {
        writeln!(out, "\n## `{}`\n\n{}\n\n| value | name | meaning |", family.name, family.doc)?;
        writeln!(out, "|---|---|---|")?;
        for v in &family.values {
            writeln!(out, "| {:#04x} | `{}` | {} |", v.value, v.name, v.doc)?;
        }
    }
    for flags in &layout.flags {
        writeln!(out, "\n## `{}`\n\n{}\n\n| bit | name | meaning |", flags.name, flags.doc)?;
        writeln!(out, "|---|---|---|")?;
        for f in &flags.values {
            writeln!(out, "| {} | `{}` | {} |", f.bit, f.name, f.doc)?;
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
