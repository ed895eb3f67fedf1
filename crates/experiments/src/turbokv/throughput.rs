//! Figure 13 with real packets: throughput and processor time of reads, writes and scans.

use super::stage::{Ask, Glance, RealWay, Stand, not_quiet, way_of};
use crate::paper::turbokv::{Part, TurboKvSettings, over};
use crate::paper::{Cell, Column, Figure, Finder, Table};
use bench::Pace;
use console::exit::Failure;
use console::note;
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(600);

/// What was found under one load.
struct Found {
    part: Part,
    at: String,
    ways: Vec<RealWay>,
}

/// Makes the figure.
pub(super) fn figure(settings: &TurboKvSettings, stand: &Stand<'_>) -> Result<Figure, Failure> {
    let time = settings.window.unwrap_or(WINDOW);
    let (mut all, mut panels) = (Vec::new(), Vec::new());
    for part in Part::ALL {
        let loads = part.loads(settings);
        let places: Vec<String> = loads.iter().map(|(at, _)| at.clone()).collect();
        let mut panel = part.panel(places, NODE_CAP);
        for (place, (at, load)) in loads.iter().enumerate() {
            let what = format!("{}, {at}", part.name());
            note!("{what}");
            let pace = Pace::Closed(stand.terms.in_flight);
            let ways = stand.rounds(&what, Ask { load, pace, time })?;
            for way in &ways {
                panel.add(way.by.name(), place as f64, way.rounds.median(node_cap));
            }
            all.push(Found { part, at: at.clone(), ways });
        }
        panels.push(panel);
    }
    let mut notes = stand.notes(settings, time);
    notes.push(format!(
        "closed loop, {} requests in flight; node cap: what nodes would serve if each had a \
         processor of its own, which it shares with its coordinator: one over the processor time \
         that a request costs the busiest of them",
        stand.terms.in_flight
    ));
    notes.extend(Part::ALL.into_iter().filter_map(|part| summed_up(part, &all)));
    notes.extend(not_quiet(&all.iter().flat_map(|it| &it.ways).collect::<Vec<_>>()));
    let rows = all.iter().flat_map(|found| found.ways.iter().map(|way| row(found, way)));
    Ok(Figure {
        title: "Figure 13 with real packets: reads, writes and scans".to_owned(),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows: rows.collect() },
        panels,
    })
}

const NODE_CAP: &str = "requests per second, a processor for each node";

/// What nodes would serve if each had a processor of its own.
fn node_cap(glance: &Glance) -> f64 {
    1e6 / glance.cost_us.busiest_node()
}

const COLUMNS: [Column; 16] = [
    Column { head: "requests", key: "requests" },
    Column { head: "at", key: "at" },
    Column { head: "coordination", key: "coordination" },
    Column { head: "requests/s", key: "throughput" },
    Column { head: "over server %", key: "over_server_percent" },
    Column { head: "cpu us", key: "cpu_us" },
    Column { head: "server x", key: "cpu_server_over" },
    Column { head: "straight", key: "cpu_server_over_straight" },
    Column { head: "client", key: "cpu_us_client" },
    Column { head: "nodes", key: "cpu_us_nodes" },
    Column { head: "coord", key: "cpu_us_coordinators" },
    Column { head: "switch", key: "cpu_us_switch" },
    Column { head: "node cap/s", key: "node_cap" },
    Column { head: "over server %", key: "node_cap_over_server_percent" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "again %", key: "sent_again_percent" },
];

/// How compared ways stand to one that is not server-driven.
struct Compared {
    /// By how many percent its throughput is over the server-driven one.
    served: f64,
    /// The same of what nodes could serve.
    cap: f64,
    /// How many times as much processor time a server-driven request takes.
    cost: f64,
    /// The same without the detour.
    straight: Option<f64>,
}

impl Found {
    fn compared(&self, way: &RealWay) -> Option<Compared> {
        let server = way_of(&self.ways, Finder::Nodes).filter(|_| way.by != Finder::Nodes)?;
        Some(Compared {
            served: over(way.rounds.over(&server.rounds, |it| it.done), 1.0),
            cap: over(way.rounds.over(&server.rounds, node_cap), 1.0),
            cost: server.rounds.over(&way.rounds, cost),
            straight: self.straight(server),
        })
    }

    /// How many times as much processor time a server-driven request takes as an in-switch one, if
    /// what passes the switch's programs by took no longer than what passes them.
    fn straight(&self, server: &RealWay) -> Option<f64> {
        let switch = way_of(&self.ways, Finder::Switch)?;
        let client = way_of(&self.ways, Finder::Clients)?;
        let detour = (client.rounds.median(cost) - switch.rounds.median(cost)).max(0.0);
        Some((server.rounds.median(cost) - WAYS_PAST * detour) / switch.rounds.median(cost))
    }
}

/// Ways there and back that a server-driven request has past the switch's programs: to the
/// coordinator, and to the node.
const WAYS_PAST: f64 = 2.0;

fn cost(glance: &Glance) -> f64 {
    glance.cost_us.sum()
}

fn row(found: &Found, way: &RealWay) -> Vec<Cell> {
    let compared = found.compared(way);
    let number = |of: &dyn Fn(&Glance) -> f64, digits| Cell::number(way.rounds.median(of), digits);
    let straight = compared.as_ref().and_then(|it| it.straight);
    vec![
        Cell::text(found.part.name()),
        Cell::text(&found.at),
        Cell::text(way.by.name()),
        number(&|it| it.done, 0),
        Cell::number(compared.as_ref().map(|it| it.served), 0),
        number(&cost, 1),
        Cell::number(compared.as_ref().map(|it| it.cost), 2),
        Cell::number(straight.filter(|_| way.by == Finder::Switch), 2),
        number(&|it| it.cost_us.clients, 1),
        number(&|it| it.cost_us.of_nodes(), 1),
        number(&|it| it.cost_us.of_guests(), 1),
        number(&|it| it.cost_us.switch, 1),
        number(&node_cap, 0),
        Cell::number(compared.as_ref().map(|it| it.cap), 0),
        number(&|it| it.latency.p99_us as f64, 0),
        number(&|it| it.again * 100.0, 2),
    ]
}

/// How in-switch compares with server-driven in one part, beside what the paper says.
fn summed_up(part: Part, all: &[Found]) -> Option<String> {
    let of_part = all.iter().filter(|found| found.part == part);
    let compared: Option<Vec<Compared>> =
        of_part.map(|found| found.compared(way_of(&found.ways, Finder::Switch)?)).collect();
    let compared = compared.filter(|it| !it.is_empty())?;
    let ends = |of: &dyn Fn(&Compared) -> f64| {
        let least = compared.iter().map(of).fold(f64::MAX, f64::min);
        let most = compared.iter().map(of).fold(f64::MIN, f64::max);
        (least, most)
    };
    let (least, most) = ends(&|it| it.cap);
    let (cost_least, cost_most) = ends(&|it| it.straight.unwrap_or(it.cost));
    let paper = part
        .papers_gain()
        .map_or_else(String::new, |percent| format!("; the paper: at least {percent:+} %"));
    Some(format!(
        "{}: nodes would serve {least:+.0} to {most:+.0} % more in-switch than server-driven, \
         whose requests take {cost_least:.2} to {cost_most:.2} times the processor time \
         (straight){paper}",
        part.name()
    ))
}
