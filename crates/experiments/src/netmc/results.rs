//! What is found, as a table and a plot.

use crate::cost::not_quiet;
use crate::figure::Section;
use crate::netmc::arm::Splitter;
use crate::netmc::design::{Experiment, Point, Shows, Terms};
use crate::netmc::equal::Equal;
use crate::netmc::look::{Look, Looks};
use crate::netmc::stores::Stores;
use crate::paper::{Cell, Column, Figure, Panel, Table};
use std::collections::BTreeMap;

/// Rows and panels of an experiment.
#[derive(Debug)]
pub(crate) struct Results {
    rows: Vec<Vec<Cell>>,
    panels: Vec<Panel>,
    /// Panels of a group of points.
    panels_each: usize,
    /// At full load.
    gains: BTreeMap<Splitter, Vec<Gain>>,
    equal: Equal,
    /// If there are any.
    stores: Option<Stores>,
    others: Vec<f64>,
    /// How much longer what passes the switch's kernel takes there and back, on the rack that is
    /// being measured.
    pub(crate) detour_us: f64,
}

/// What the switch gains over another arm.
#[derive(Clone, Copy, Debug)]
struct Gain {
    /// How many times as much it serves,
    served: f64,
    /// and as much it would serve if each host had a processor of its own.
    apart: f64,
    /// How many times as much processor time the other takes, all in all and without detours.
    cost: f64,
    straight: f64,
}

const COLUMNS: [Column; 25] = [
    Column { head: "load", key: "point" },
    Column { head: "at", key: "at" },
    Column { head: "arm", key: "arm" },
    Column { head: "asked/s", key: "asked" },
    Column { head: "requests/s", key: "requests" },
    Column { head: "+- %", key: "spread_percent" },
    Column { head: "switch x", key: "switch_over" },
    Column { head: "p50 us", key: "p50_us" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "x switch", key: "p99_over_switch" },
    Column { head: "cpu us", key: "cpu_us" },
    Column { head: "x switch", key: "cpu_over_switch" },
    Column { head: "straight", key: "cpu_over_switch_straight" },
    Column { head: "apart/s", key: "apart" },
    Column { head: "switch x", key: "apart_switch_over" },
    Column { head: "clients", key: "cpu_us_clients" },
    Column { head: "coord", key: "cpu_us_coordinator" },
    Column { head: "nodes", key: "cpu_us_nodes" },
    Column { head: "stores", key: "cpu_us_stores" },
    Column { head: "switch", key: "cpu_us_switch" },
    Column { head: "sent", key: "datagrams_of_client" },
    Column { head: "parts", key: "requests_at_nodes" },
    Column { head: "again %", key: "sent_again_percent" },
    Column { head: "late us", key: "late_p99_us" },
    Column { head: "others", key: "other_work" },
];

impl Results {
    pub(crate) fn new(experiment: &Experiment) -> Self {
        let (first, second) = match experiment.shows {
            Shows::Throughput => ("requests/s", "processor time of a request (us)"),
            Shows::Tails => ("requests/s", "p99 at 70 % of the clients' throughput (us)"),
            Shows::Latencies => ("median (us)", "p99 (us)"),
        };
        let of_group = |(group, title): (usize, &&str)| {
            let names = experiment.points.iter().filter(|point| point.group == group);
            let places: Vec<String> = match experiment.shows {
                Shows::Throughput | Shows::Tails => names.map(|it| it.name.clone()).collect(),
                Shows::Latencies => Vec::new(),
            };
            let times = experiment.shows == Shows::Latencies;
            let panel = |y, logarithmic| Panel {
                title: (*title).to_owned(),
                x: experiment.across,
                places: places.clone(),
                y,
                logarithmic,
                curves: Vec::new(),
            };
            [panel(first, times), panel(second, experiment.shows != Shows::Throughput)]
        };
        let panels: Vec<Panel> = experiment.groups.iter().enumerate().flat_map(of_group).collect();
        Self {
            rows: Vec::new(),
            panels_each: panels.len() / experiment.groups.len(),
            panels,
            gains: BTreeMap::new(),
            equal: Equal::default(),
            stores: experiment.redis.then(Stores::default),
            others: Vec::new(),
            detour_us: 0.0,
        }
    }

    /// What was reached with as many requests in flight as are allowed.
    pub(crate) fn add_full(&mut self, point: &Point, looks: &BTreeMap<Splitter, Looks>) {
        self.stores.iter_mut().for_each(|it| it.add(point, "full", looks));
        let switch = looks.get(&Splitter::Switch);
        for (arm, looks) in looks {
            if let Some(switch) = switch.filter(|_| *arm != Splitter::Switch) {
                let gain = Gain {
                    served: switch.over(looks, |it| it.done),
                    apart: switch.over(looks, Look::apart),
                    cost: looks.over(switch, |it| it.cost_us.sum()),
                    straight: self.straight(*arm, looks, switch),
                };
                self.gains.entry(*arm).or_default().push(gain);
            }
            self.row(point, "full", *arm, looks, switch);
            let shown = [looks.median(|it| it.done), looks.median(|it| it.cost_us.sum())];
            for (panel, y) in shown.into_iter().enumerate() {
                self.plot(point, panel, *arm, None, y);
            }
        }
    }

    /// What became of requests that came at a rate.
    pub(crate) fn add_open(
        &mut self,
        point: &Point,
        at: &str,
        shows: Shows,
        looks: &BTreeMap<Splitter, Looks>,
    ) {
        self.equal.add(point, at, looks);
        self.stores.iter_mut().for_each(|it| it.add(point, at, looks));
        let switch = looks.get(&Splitter::Switch);
        for (arm, looks) in looks {
            self.row(point, at, *arm, looks, switch);
            let p99_us = looks.median(|it| it.p99_us);
            if shows == Shows::Latencies {
                let thousands = looks.median(|it| it.done) / 1e3;
                self.plot(point, 0, *arm, Some(thousands), looks.median(|it| it.p50_us));
                self.plot(point, 1, *arm, Some(thousands), p99_us);
            } else {
                self.plot(point, 1, *arm, None, p99_us);
            }
        }
    }

    /// How many times as much processor time an arm takes as the switch, if what it sends past the
    /// switch's programs took no longer than what passes them.
    fn straight(&self, arm: Splitter, looks: &Looks, switch: &Looks) -> f64 {
        let past = |parts: f64| match arm {
            Splitter::Switch | Splitter::Assisted => 0.0,
            Splitter::Client => parts,
            // Each request goes to the coordinator, and on from there.
            Splitter::Coordinator => parts + 1.0,
        };
        let straight = looks.median(|it| it.cost_us.sum() - self.detour_us * past(it.parts));
        straight / switch.median(|it| it.cost_us.sum())
    }

    fn row(
        &mut self,
        point: &Point,
        at: &str,
        arm: Splitter,
        looks: &Looks,
        switch: Option<&Looks>,
    ) {
        let number = |of: &dyn Fn(&Look) -> f64, digits| Cell::number(looks.median(of), digits);
        let asked = looks.0.first().and_then(|look| look.asked);
        let closed = switch.filter(|_| asked.is_none());
        let straight = closed.map(|switch| self.straight(arm, looks, switch));
        self.others.push(looks.median(|it| it.others));
        self.rows.push(vec![
            Cell::text(&point.name),
            Cell::text(at),
            Cell::text(arm.name()),
            Cell::number(asked, 0),
            number(&|it| it.done, 0),
            Cell::number(looks.spread() * 100.0, 1),
            Cell::number(closed.map(|switch| switch.over(looks, |it| it.done)), 2),
            number(&|it| it.p50_us, 0),
            number(&|it| it.p99_us, 0),
            Cell::number(switch.map(|switch| looks.over(switch, |it| it.p99_us)), 2),
            number(&|it| it.cost_us.sum(), 1),
            Cell::number(switch.map(|switch| looks.over(switch, |it| it.cost_us.sum())), 2),
            Cell::number(straight, 2),
            number(&Look::apart, 0),
            Cell::number(closed.map(|switch| switch.over(looks, Look::apart)), 2),
            number(&|it| it.cost_us.clients, 1),
            number(&|it| it.cost_us.coordinator, 1),
            number(&|it| it.cost_us.of_nodes(), 1),
            number(&|it| it.cost_us.of_guests(), 1),
            number(&|it| it.cost_us.switch, 1),
            number(&|it| it.sent, 2),
            number(&|it| it.parts, 2),
            number(&|it| it.again * 100.0, 2),
            number(&|it| it.late_p99_us, 0),
            number(&|it| it.others, 1),
        ]);
    }

    fn plot(&mut self, point: &Point, panel: usize, arm: Splitter, x: Option<f64>, y: f64) {
        let Some(panel) = self.panels.get_mut(point.group * self.panels_each + panel) else {
            return;
        };
        let place = panel.places.iter().position(|it| *it == point.name).map(|it| it as f64);
        if let Some(x) = x.or(place) {
            panel.add(arm.name(), x, y);
        }
    }

    /// What is shown beside the table.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let stores = self.stores.as_ref().map(Stores::section);
        self.equal.section().into_iter().chain(stores).collect()
    }

    /// Everything together.
    pub(crate) fn figure(self, experiment: &Experiment, terms: &Terms) -> Figure {
        let mut notes = terms.notes();
        notes.push(
            "switch x: how many times as much the switch serves; cpu us: processor time of a \
             request, all together and by who spends it"
                .to_owned(),
        );
        notes.push(format!(
            "straight: without the detour: what goes past the switch's programs, through its \
             kernel, takes up to {:.1} us longer there and back",
            self.detour_us
        ));
        notes.push(
            "apart: what the rack would serve by these times if each host had a processor of its \
             own"
            .to_owned(),
        );
        notes.push(
            "sent, parts: datagrams that clients sent for a request, and requests that nodes \
             served for it"
                .to_owned(),
        );
        notes.push(
            "others: processors that did other work meanwhile; late us: how late the clients were \
             to ask (p99)"
                .to_owned(),
        );
        notes.extend(self.means());
        notes.extend(self.equal.notes());
        notes.extend(not_quiet(self.others.clone()));
        let table = Table { columns: COLUMNS.to_vec(), rows: self.rows };
        Figure { title: experiment.title.to_owned(), notes, table, panels: self.panels }
    }

    /// What the points show on average.
    fn means(&self) -> Vec<String> {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (count, sum) = values.fold((0.0, 0.0), |(count, sum), it| (count + 1.0, sum + it));
            sum / f64::max(count, 1.0)
        };
        let gain = |(arm, gains): (&Splitter, &Vec<Gain>)| {
            let of = |part: fn(&Gain) -> f64| mean(&mut gains.iter().map(part));
            let (served, apart) = (of(|it| it.served), of(|it| it.apart));
            let (cost, straight) = (of(|it| it.cost), of(|it| it.straight));
            format!(
                "mean of all points: the switch serves {served:.2} times what {} does ({apart:.2} \
                 apart), whose requests take {cost:.2} times the processor time ({straight:.2} \
                 straight)",
                arm.name()
            )
        };
        self.gains.iter().map(gain).collect()
    }
}
