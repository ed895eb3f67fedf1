//! Figure 9: what each node serves if there is no cache.

use super::system::System;
use super::{SwitchKvSettings, balance, losses_note, reads, throughput_panel};
use crate::paper::Skew;
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::points::measure_all;
use crate::paper::rack::Losses;
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(500);

const COLUMNS: [Column; 6] = [
    Column { head: "keys", key: "keys" },
    Column { head: "throughput/s", key: "throughput" },
    Column { head: "busiest/s", key: "busiest" },
    Column { head: "median/s", key: "median" },
    Column { head: "idlest/s", key: "idlest" },
    Column { head: "busiest x mean", key: "busiest_times_mean" },
];

/// Makes the figure.
pub(super) fn figure(settings: &SwitchKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let skews: Vec<Skew> = settings.skews().into_iter().map(|(_, skew)| skew).collect();
    let mut panel =
        throughput_panel("nodes, the busiest last", "node, by what it serves", Vec::new());
    let mut rows = Vec::new();
    measure_all(
        &skews,
        |skew| {
            let spec = settings.rack(System::NoCache);
            let times = (balance::settling(&spec), window);
            balance::measure(spec, &reads(*skew), Losses::SWITCHKV, times).trial
        },
        |skew, trial| {
            let mut nodes = trial.nodes.clone();
            nodes.sort_by(f64::total_cmp);
            for (place, served) in nodes.iter().enumerate() {
                panel.add(&skew.to_string(), place as f64, *served);
            }
            let (idlest, busiest) = (nodes.first().copied(), nodes.last().copied());
            let median = nodes.get(nodes.len() / 2).copied();
            let mean = nodes.iter().sum::<f64>() / nodes.len() as f64;
            tell(&format!("{skew}: {:.0}/s", trial.throughput()));
            rows.push(vec![
                Cell::text(skew),
                Cell::number(trial.throughput(), 0),
                Cell::number(busiest, 0),
                Cell::number(median, 0),
                Cell::number(idlest, 0),
                Cell::number(busiest.map(|busiest| busiest / mean), 2),
            ]);
        },
    );
    let mut notes = settings.notes(window);
    notes.push(losses_note(Losses::SWITCHKV));
    Figure {
        title: "Figure 9: what nodes serve without a cache".to_owned(),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels: vec![panel],
    }
}
