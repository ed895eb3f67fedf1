//! An experiment: points, and what is measured at each, in all arms.

use crate::figure::Section;
use crate::netmc::arm::Splitter;
use crate::netmc::design::{Experiment, Point, Shows, Terms};
use crate::netmc::load::MultigetLoad;
use crate::netmc::look::Looks;
use crate::netmc::progress::Progress;
use crate::netmc::results::Results;
use crate::netmc::stage::{Filled, Setup, Sizes, Stage};
use crate::paper::Figure;
use bench::Pace;
use console::exit::Failure;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often each trial is done unless something else is wanted.
pub(crate) const ROUNDS: u32 = 3;

/// How long a load is there before it is looked at.
const WARM: Duration = Duration::from_millis(200);

/// What else a trial takes: threads, sockets and the last answers.
const BESIDE: Duration = Duration::from_millis(100);

/// What all trials of a figure take together, about: with racks and keys it is two minutes and a
/// half at most.
const TRIALS_TIME: Duration = Duration::from_secs(115);

/// The least that a trial is looked at unless something else is wanted: enough for a median.
const TIME_MIN: Duration = Duration::from_millis(250);
/// The most, likewise: enough for a p99.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(1);

/// What is compared for the detour.
const DETOUR_ARMS: [Splitter; 2] = [Splitter::Switch, Splitter::Client];

/// How long a trial is at most by which the detour is measured.
const DETOUR_TIME: Duration = Duration::from_millis(750);

/// At which share of the throughput that the clients reach by themselves tails are compared.
const TAIL_PERCENT: u32 = 70;

/// At which shares of it latencies are shown.
const LATENCY_PERCENTS: [u32; 6] = [10, 30, 50, 70, 80, 90];

impl Shows {
    /// Rates at which an open loop asks, in percent of what the switch reaches.
    fn percents(self) -> &'static [u32] {
        match self {
            Self::Throughput => &[],
            Self::Tails => &[TAIL_PERCENT],
            Self::Latencies => &LATENCY_PERCENTS,
        }
    }
}

impl Experiment {
    /// How many trials it takes, with so many arms and rounds.
    fn trials(&self, arms: usize, rounds: u32) -> u32 {
        let of_point = 1 + self.shows.percents().len();
        let detours = self.racks().count() * DETOUR_ARMS.len();
        let all = self.points.len() * of_point * arms + detours;
        u32::try_from(all).expect("a figure has some dozens of them") * rounds
    }

    /// Points that share a rack.
    fn racks(&self) -> impl Iterator<Item = &[Point]> {
        self.points.chunk_by(|one, next| one.nodes == next.nodes)
    }

    /// How long a trial is looked at if nothing else is wanted.
    pub(crate) fn time(&self) -> Duration {
        let each = TRIALS_TIME / self.trials(Splitter::ALL.len(), ROUNDS);
        each.saturating_sub(WARM + BESIDE).clamp(TIME_MIN, TIME_MAX)
    }

    /// Measures everything.
    pub(crate) fn run(&self, terms: &Terms) -> Result<(Figure, Vec<Section>), Failure> {
        let mut results = Results::new(self);
        let progress = Progress::new(self.trials(terms.arms.len(), terms.rounds));
        for points in self.racks() {
            let Some(first) = points.first() else { continue };
            let setup = terms.setup(first.nodes, self.redis);
            Stage::with(&setup, |stage| {
                let fill = |sizes: Sizes| {
                    let name = format!("keys-{}-{}", sizes.key, sizes.value);
                    stage.fill(&name, terms.keys, sizes)
                };
                let filled = fill(first.sizes)?;
                results.detour_us = terms.detour_us(stage, &progress, (first, &filled))?;
                let mut keyspaces = BTreeMap::from([(first.sizes, filled)]);
                for point in points {
                    let filled = match keyspaces.get(&point.sizes) {
                        Some(filled) => filled.clone(),
                        None => fill(point.sizes)?,
                    };
                    let at = (point, self.shows);
                    terms.measure(stage, &progress, at, &filled, &mut results)?;
                    keyspaces.insert(point.sizes, filled);
                }
                Ok(())
            })?;
        }
        let sections = results.sections();
        Ok((results.figure(self, terms), sections))
    }
}

impl Terms {
    pub(crate) fn setup(&self, nodes: u16, redis: bool) -> Setup {
        let Self { lab, plane, node_rate, .. } = self.clone();
        Setup { lab, plane, nodes, node_rate, redis }
    }

    fn measure(
        &self,
        stage: &Stage,
        progress: &Progress,
        (point, shows): (&Point, Shows),
        on: &Filled,
        results: &mut Results,
    ) -> Result<(), Failure> {
        let rounds = |at: &str, pace| self.rounds(stage, progress, (point, at), on, pace);
        let full = rounds("full", Pace::Closed(self.in_flight))?;
        let reached = |looks: &Looks| looks.median(|it| it.done);
        let best = full.values().map(reached).fold(0.0, f64::max);
        let base = full.get(&Splitter::Client).map_or(best, reached);
        results.add_full(point, &full);
        for percent in shows.percents() {
            let rate = (base * f64::from(*percent) / 100.0).max(1.0);
            let at = format!("{percent} %");
            let looks = rounds(&at, Pace::Open(rate))?;
            results.add_open(point, &at, shows, &looks);
        }
        Ok(())
    }

    /// How much longer a request and its answer take that pass the switch's kernel and not its
    /// programs, in microseconds of processor time: multigets of one key, which nobody takes apart.
    fn detour_us(
        &self,
        stage: &Stage,
        progress: &Progress,
        (point, on): (&Point, &Filled),
    ) -> Result<f64, Failure> {
        let arms = DETOUR_ARMS.to_vec();
        let terms = Self { arms, time: DETOUR_TIME.min(self.time), ..self.clone() };
        let point = Point { keys: 1.0, writes: 0, name: "one key".to_owned(), ..point.clone() };
        let pace = Pace::Closed(self.in_flight);
        let looks = terms.rounds(stage, progress, (&point, "full"), on, pace)?;
        let cost = |arm| looks.get(&arm).map_or(0.0, |it| it.median(|look| look.cost_us.sum()));
        Ok((cost(Splitter::Client) - cost(Splitter::Switch)).max(0.0))
    }

    /// All arms under the same load, by turns, so many times.
    fn rounds(
        &self,
        stage: &Stage,
        progress: &Progress,
        (point, at): (&Point, &str),
        on: &Filled,
        pace: Pace,
    ) -> Result<BTreeMap<Splitter, Looks>, Failure> {
        let mut all: BTreeMap<Splitter, Looks> =
            self.arms.iter().map(|arm| (*arm, Looks::default())).collect();
        for round in 0..self.rounds {
            // Another one begins each time: what follows an overload is worse for it.
            let first = round as usize % self.arms.len();
            let (before, from) = self.arms.split_at(first);
            for arm in from.iter().chain(before) {
                let (mix, distribution) = (point.mix(), point.distribution);
                let (time, piece, seed) = (self.time, self.time, u64::from(round) + 1);
                let load = MultigetLoad { mix, distribution, pace, time, piece, seed };
                let warm =
                    MultigetLoad { time: WARM, piece: WARM, seed: seed << 32, ..load.clone() };
                stage.measure(*arm, on, &warm)?;
                let look = stage.look(*arm, on, &load)?;
                progress.tell(&format!("{}, {at}, {}: {look}", point.name, arm.name()));
                all.entry(*arm).or_default().0.push(look);
            }
        }
        Ok(all)
    }

    /// What it was measured with.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Self { plane, node_rate, keys, in_flight, time, rounds, .. } = self;
        let plane = plane.name();
        let rate = node_rate.map_or_else(
            || "as fast as the machine lets them".to_owned(),
            |rate| format!("of {rate} requests/s each"),
        );
        vec![
            format!(
                "2 clients, plane {plane}, nodes {rate}, a coordinator on a host of its own; all \
                 share this machine"
            ),
            format!(
                "{keys} keys, each on one node; {rounds} rounds of {} s, all arms by turns; \
                 medians of the rounds",
                time.as_secs_f64()
            ),
            format!(
                "full: closed loop, {in_flight} requests in flight; n %: open loop, Poisson, at \
                 that share of what the clients reach by themselves; latencies count from when \
                 requests were due"
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netmc::figures;
    use workload::{Distribution, OpKind};

    #[test]
    fn the_trials_of_each_figure_take_two_minutes_at_most() {
        for figure in 8..=16 {
            let experiment = figures::experiment(figure).unwrap();
            let time = experiment.time();
            let trials = experiment.trials(Splitter::ALL.len(), ROUNDS);
            let all = (time + WARM + BESIDE) * trials;
            assert!(all <= Duration::from_secs(120), "{figure}: {trials} of {time:?}: {all:?}");
        }
    }

    #[test]
    fn a_point_asks_for_its_share_of_writes() {
        for writes in [0, 5, 20, 60, 100] {
            let point = Point {
                name: String::new(),
                group: 0,
                nodes: 5,
                sizes: Sizes { key: 4, value: 256 },
                keys: 8.6,
                writes,
                distribution: Distribution::Uniform,
            };
            let share = point.mix().share(OpKind::Put);
            assert!((share - f64::from(writes) / 100.0).abs() < 1e-9, "{writes}: {share}");
        }
    }
}
