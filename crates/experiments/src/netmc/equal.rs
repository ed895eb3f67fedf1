//! Latencies of all arms under the same load, beside those of the clients that take multigets
//! apart themselves.
//!
//! Requests come by a Poisson process, whatever becomes of those before them, and the time of each
//! counts from when it was due: an arm that falls behind shows it.

use crate::figure::Section;
use crate::median::median;
use crate::netmc::arm::Splitter;
use crate::netmc::design::Point;
use crate::netmc::look::{Look, Looks};
use crate::paper::{Cell, Column, Table};
use std::collections::BTreeMap;

const COLUMNS: [Column; 11] = [
    Column { head: "load", key: "point" },
    Column { head: "at", key: "at" },
    Column { head: "arm", key: "arm" },
    Column { head: "asked/s", key: "asked" },
    Column { head: "answered", key: "answered" },
    Column { head: "p50 us", key: "p50_us" },
    Column { head: "x client", key: "p50_over_client" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "x client", key: "p99_over_client" },
    Column { head: "least", key: "p99_over_client_least" },
    Column { head: "most", key: "p99_over_client_most" },
];

/// What was found at equal load.
#[derive(Debug, Default)]
pub(crate) struct Equal {
    rows: Vec<Vec<Cell>>,
    /// Of each arm how many times the clients' p99 its own is, a load each.
    tails: BTreeMap<Splitter, Vec<f64>>,
}

impl Equal {
    /// All arms were asked for the same.
    pub(crate) fn add(&mut self, point: &Point, at: &str, looks: &BTreeMap<Splitter, Looks>) {
        let client = looks.get(&Splitter::Client);
        for (arm, looks) in looks {
            let other = client.filter(|_| *arm != Splitter::Client);
            let ratio = |of: fn(&Look) -> f64| other.map(|other| looks.over(other, of));
            let tails = other.map(|other| looks.ratios(other, |it| it.p99_us));
            let bound = |pick: fn(f64, f64) -> f64| {
                tails.as_ref().and_then(|tails| tails.iter().copied().reduce(pick))
            };
            let tail = ratio(|it| it.p99_us);
            self.tails.entry(*arm).or_default().extend(tail);
            let asked = looks.0.first().and_then(|look| look.asked);
            let answered = asked.map(|asked| looks.median(|it| it.done) / asked);
            self.rows.push(vec![
                Cell::text(&point.name),
                Cell::text(at),
                Cell::text(arm.name()),
                Cell::number(asked, 0),
                Cell::number(answered, 2),
                Cell::number(looks.median(|it| it.p50_us), 0),
                Cell::number(ratio(|it| it.p50_us), 2),
                Cell::number(looks.median(|it| it.p99_us), 0),
                Cell::number(tail, 2),
                Cell::number(bound(f64::min), 2),
                Cell::number(bound(f64::max), 2),
            ]);
        }
    }

    /// As a table, if there is anything to show.
    pub(crate) fn section(&self) -> Option<Section> {
        let title = "At equal load: p50 and p99 beside those of the clients that take multigets \
                     apart themselves; ratios are medians of those within a round, and the least \
                     and the most of them";
        let table = Table { columns: COLUMNS.to_vec(), rows: self.rows.clone() };
        let section = Section { title: title.to_owned(), key: "equal_load", table };
        (!self.rows.is_empty()).then_some(section)
    }

    /// What holds for each arm over all loads.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let compared = self.tails.iter().filter(|(_, tails)| !tails.is_empty());
        compared.map(|(arm, tails)| {
            let no_worse = tails.iter().filter(|ratio| **ratio <= 1.0).count();
            format!(
                "at equal load the p99 of {} is {:.2} times that of the clients (median of {} \
                 loads; no worse at {no_worse})",
                arm.name(),
                median(tails.clone()),
                tails.len()
            )
        })
    }
}
