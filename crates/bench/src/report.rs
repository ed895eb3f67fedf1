//! A run as tables of text.

use super::processor::ProcessorTime;
use super::run::Measured;
use console::chart::{grouped, micros, table};
use console::note;
use console::out;
use std::io::IsTerminal;
use workload::{IntervalSummary, KindSummary, Summary};

/// Latencies by kind of operation, and how operations ended.
pub fn table_of(measured: &Measured) -> String {
    let summary = &measured.summary;
    let mut text = table(&latency_rows(summary));
    text.push('\n');
    text.push_str(&table(&ending_rows(summary)));
    let Measured { wrong_values, never_started, datagrams, retransmits, overloaded, .. } = measured;
    let (sent, again) = (grouped(*datagrams), grouped(*retransmits));
    text.push_str(&format!(
        "\ndatagrams sent: {sent}, of which again: {again}; answers \"overloaded\": {}\n",
        grouped(*overloaded)
    ));
    text.push_str(&processor_line(&measured.processor));
    if measured.late_p99_us >= LATE_US {
        text.push_str(&format!(
            "this program lacked time: one request in a hundred began {} late or more\n",
            micros(measured.late_p99_us)
        ));
    }
    if *never_started > 0 {
        text.push_str(&format!(
            "{} requests were due but never started: the cluster, or this client, does not reach \
             the rate\n",
            grouped(*never_started)
        ));
    }
    if *wrong_values > 0 {
        text.push_str(&format!(
            "WRONG: {} values read were never written to their keys, or came out of order\n",
            grouped(*wrong_values)
        ));
    }
    text
}

/// What an operation took, of those who took any.
fn processor_line(time: &ProcessorTime) -> String {
    let ProcessorTime { clients_us, switch_us, nodes_us, coordinators_us } = *time;
    let named = [
        ("clients", clients_us),
        ("switch", switch_us),
        ("nodes", nodes_us),
        ("coordinators", coordinators_us),
    ];
    let spent = named.into_iter().filter(|(_, us)| *us > 0.0);
    let parts: Vec<String> = spent.map(|(who, us)| format!("{who} {us:.2}")).collect();
    format!("processor time per operation, us: {}\n", parts.join(", "))
}

/// How late requests may begin without a word: it is in their latencies.
const LATE_US: u64 = 1_000;

/// A row for each kind of operation and, if there are several, one for all.
pub fn latency_rows(summary: &Summary) -> Vec<Vec<String>> {
    let head = ["operation", "count", "per second", "mean", "p50", "p90", "p99", "p99.9", "max"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for kind in kinds(summary) {
        let latency = &kind.latency;
        rows.push(vec![
            name(kind),
            grouped(kind.ops),
            grouped(kind.ops_per_second.round() as u64),
            micros(latency.mean_us.round() as u64),
            micros(latency.p50_us),
            micros(latency.p90_us),
            micros(latency.p99_us),
            micros(latency.p999_us),
            micros(latency.max_us),
        ]);
    }
    rows
}

fn ending_rows(summary: &Summary) -> Vec<Vec<String>> {
    let head = ["outcome", "done", "not found", "conflict", "refused", "unknown"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for kind in kinds(summary) {
        let endings = &kind.endings;
        let counts =
            [endings.done, endings.not_found, endings.conflict, endings.refused, endings.unknown];
        let mut row = vec![name(kind)];
        row.extend(counts.map(grouped));
        rows.push(row);
    }
    rows
}

fn kinds(summary: &Summary) -> impl Iterator<Item = &KindSummary> {
    let all = (summary.kinds.len() != 1).then_some(&summary.all);
    summary.kinds.iter().chain(all)
}

fn name(kind: &KindSummary) -> String {
    kind.kind.map_or_else(|| "all".to_owned(), |kind| kind.to_string())
}

/// A line on standard error that is replaced by the next on a terminal.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    overwrite: bool,
}

impl Progress {
    pub fn new(what: &'static str) -> Self {
        Self { what, overwrite: std::io::stderr().is_terminal() }
    }

    /// Shows the last second.
    pub fn tell(&self, last: &IntervalSummary) {
        let unknown = match last.endings.unknown + last.endings.refused {
            0 => String::new(),
            failed => format!("  refused or unknown {}", grouped(failed)),
        };
        let line = format!(
            "{} {:>4.0} s  {:>9} ops/s  p50 {}  p99 {}{unknown}",
            self.what,
            last.second,
            grouped(last.ops_per_second.round() as u64),
            micros(last.latency.p50_us),
            micros(last.latency.p99_us),
        );
        if self.overwrite {
            out::tell(format_args!("\r\x1b[2K{line}"));
        } else {
            note!("{line}");
        }
    }

    /// Leaves the line for good.
    pub fn end(&self) {
        if self.overwrite {
            out::tell(format_args!("\r\x1b[2K"));
        }
    }
}
