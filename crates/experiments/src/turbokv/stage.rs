//! The rack in which the three ways are compared, and one look at one of them.

use super::RealTerms;
use crate::cost::{self, Bill, Cost, Payers};
use crate::median::Rounds;
use crate::paper::turbokv::{TurboKvSettings, VALUE_BYTES};
use crate::paper::{Finder, Load, Skew};
use crate::served::wait_served;
use crate::site::{Site, SiteLoad, Stored, Window};
use anyhow::anyhow;
use bench::{Coordination, Pace};
use cluster::Keyspace;
use console::exit::Failure;
use console::note;
use lab::cluster::Cluster;
use lab::rack::Rack;
use std::sync::Arc;
use std::time::Duration;
use workload::{Distribution, Latency};

/// The rack, with a keyspace that is filled.
#[derive(Debug)]
pub(super) struct Stand<'a> {
    site: &'a Site,
    keyspace: Arc<Keyspace>,
    payers: Payers,
    /// Those that are compared, and how clients are told.
    pub(super) ways: Vec<(Finder, Coordination)>,
    pub(super) terms: &'a RealTerms,
}

/// What one trial showed.
#[derive(Clone, Debug)]
pub(super) struct Glance {
    /// Requests per second that were answered.
    pub(super) done: f64,
    pub(super) latency: Latency,
    /// Processor time of a request, in microseconds.
    pub(super) cost_us: Cost,
    /// Share of the clients' datagrams that were sent again.
    pub(super) again: f64,
    /// Processors that did something else meanwhile.
    pub(super) others: f64,
}

/// What trials of one way showed.
#[derive(Clone, Debug)]
pub(super) struct RealWay {
    pub(super) by: Finder,
    pub(super) rounds: Rounds<Glance>,
}

/// What is asked for, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) load: &'a Load,
    pub(super) pace: Pace,
    pub(super) time: Duration,
}

impl<'a> Stand<'a> {
    /// Builds the rack and fills it, does this, and takes it down.
    pub(super) fn with<T>(
        settings: &TurboKvSettings,
        terms: &RealTerms,
        job: impl FnOnce(&Stand<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let rack = Rack { lab: terms.lab.clone(), nodes: settings.nodes, caches: 0, clients: 1 };
        let stored = Stored { keys: settings.keys, value_bytes: VALUE_BYTES };
        Site::with(Cluster::in_memory(rack, terms.plane), stored, |site| {
            site.start_coordinators()?;
            let keyspace = site.ordered("turbokv", settings.partitions, settings.replicas)?;
            let straight = site.straight()?;
            let ways = settings.finders().map(|by| match by {
                Finder::Switch => (by, Coordination::Switch),
                Finder::Clients => (by, straight.clone()),
                Finder::Nodes => (by, site.coordinators()),
            });
            let (ways, payers) = (ways.collect(), site.payers());
            let stand = Stand { site, keyspace, payers, ways, terms };
            stand.wait_served()?;
            job(&stand)
        })
    }

    /// Waits until requests are answered in every way: coordinators learn of a keyspace later.
    fn wait_served(&self) -> Result<(), Failure> {
        let load = Load::only_reads(Skew::Uniform);
        let ask = Ask { load: &load, pace: Pace::Closed(1), time: WARM };
        for (by, coordination) in &self.ways {
            wait_served(by.name(), || self.is_served(coordination, ask))?;
        }
        Ok(())
    }

    fn is_served(&self, by: &Coordination, ask: Ask<'_>) -> Result<bool, Failure> {
        let Ask { time, .. } = ask;
        let load = self.site_load(by, ask.load);
        let window = Window { time, piece: time, seed: 0 };
        let endings = self.site.closed(&load, 1, window)?.summary.all.endings;
        Ok(endings.done > 0 && endings.done == endings.total())
    }

    /// Looks at all ways by turns, another one first each time.
    pub(super) fn rounds(&self, what: &str, ask: Ask<'_>) -> Result<Vec<RealWay>, Failure> {
        let mut found: Vec<RealWay> = self
            .ways
            .iter()
            .map(|(by, _)| RealWay { by: *by, rounds: Rounds::default() })
            .collect();
        for round in 0..self.terms.rounds {
            for turn in 0..self.ways.len() {
                let place = (turn + round as usize) % self.ways.len();
                let (Some((by, coordination)), Some(way)) =
                    (self.ways.get(place), found.get_mut(place))
                else {
                    continue;
                };
                let glance = self.look(coordination, ask, round + 1)?;
                note!("  {what}, {}: {}", by.name(), glance.told());
                way.rounds.0.push(glance);
            }
        }
        Ok(found)
    }

    /// Lets the rack get used to it, then looks at it.
    fn look(&self, by: &Coordination, ask: Ask<'_>, seed: u64) -> Result<Glance, Failure> {
        let Ask { load, pace, time } = ask;
        let load = self.site_load(by, load);
        let run = |window| match pace {
            Pace::Open(rate) => self.site.run(&load, rate, window),
            Pace::Closed(in_flight) => self.site.closed(&load, in_flight, window),
        };
        run(Window { time: WARM, piece: WARM, seed: seed << 32 })?;
        let once = || run(Window { time, piece: time, seed });
        let (measured, bill) = Bill::of(&self.payers, once)?;
        if measured.wrong_values > 0 {
            return Err(Failure::Other(anyhow!("{} values were wrong", measured.wrong_values)));
        }
        let all = &measured.summary.all;
        let requests = all.endings.total().max(1) as f64;
        Ok(Glance {
            done: all.endings.done as f64 / bill.took.max(time.as_secs_f64()),
            latency: all.latency,
            cost_us: bill.cost.times(1e6 / requests),
            again: measured.retransmits as f64 / measured.datagrams.max(1) as f64,
            others: bill.others,
        })
    }

    /// The paper's load, as YCSB spreads it: popular keys lie anywhere among the others.
    fn site_load(&self, by: &Coordination, load: &Load) -> SiteLoad {
        SiteLoad {
            keyspace: Arc::clone(&self.keyspace),
            distribution: match load.skew {
                Skew::Uniform => Distribution::Uniform,
                Skew::Zipf(theta) => Distribution::Scrambled { theta },
            },
            mix: load.mix(),
            shift: None,
            by: by.clone(),
        }
    }

    /// The first lines of all notes.
    pub(super) fn notes(&self, settings: &TurboKvSettings, time: Duration) -> Vec<String> {
        let TurboKvSettings { nodes, partitions, replicas, keys, scan_keys, .. } = settings;
        let RealTerms { plane, rounds, .. } = self.terms;
        vec![
            format!(
                "{nodes} nodes, each with a coordinator beside it, and one client; all share this \
                 machine; plane {}",
                plane.name()
            ),
            format!(
                "{partitions} sub-ranges, chains of {replicas}; {keys} keys of 16 bytes, values of \
                 {}; popular keys lie anywhere (YCSB's scrambled zipf); scans of 1 to {scan_keys} \
                 keys",
                VALUE_BYTES
            ),
            format!(
                "{rounds} rounds of {} s, all ways by turns; medians of the rounds, and ratios are \
                 medians of those within a round",
                time.as_secs_f64()
            ),
            "cpu us: processor time of a request, all together and by who spends it; the kernel \
             delivers a packet on its sender's time, so the sum is exact and its parts are not"
                .to_owned(),
            "straight: server-driven without a handicap that the lab gives it: what passes the \
             switch's programs by goes through its kernel, which takes longer; as much as the \
             client-driven way takes more than the in-switch one is taken off for each of its two \
             ways"
                .to_owned(),
        ]
    }
}

impl Glance {
    fn told(&self) -> String {
        let Self { done, latency, cost_us, again, others } = self;
        format!(
            "{done:.0}/s, p50 {} us, p99 {} us, {:.1} us of processor each, again {:.2} %, other \
             work {others:.1}",
            latency.p50_us,
            latency.p99_us,
            cost_us.sum(),
            again * 100.0
        )
    }
}

/// The one of this finder, if it was looked at.
pub(super) fn way_of(ways: &[RealWay], by: Finder) -> Option<&RealWay> {
    ways.iter().find(|way| way.by == by)
}

/// How long a load is there before it is looked at.
const WARM: Duration = Duration::from_millis(200);

/// Says so if the machine did other work.
pub(super) fn not_quiet(ways: &[&RealWay]) -> Option<String> {
    cost::not_quiet(ways.iter().map(|way| way.rounds.median(|it| it.others)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(by: Finder, done: &[f64]) -> RealWay {
        let latency =
            Latency { mean_us: 1.0, p50_us: 1, p90_us: 1, p99_us: 1, p999_us: 1, max_us: 1 };
        let glance = |done: &f64| Glance {
            done: *done,
            latency,
            cost_us: Cost::default(),
            again: 0.0,
            others: 0.3,
        };
        RealWay { by, rounds: Rounds(done.iter().map(glance).collect()) }
    }

    #[test]
    fn a_way_is_found_by_its_finder_and_other_work_is_told() {
        let both = [way(Finder::Switch, &[200.0, 100.0]), way(Finder::Nodes, &[100.0])];
        assert_eq!(way_of(&both, Finder::Nodes).map(|it| it.rounds.0.len()), Some(1));
        assert!(way_of(&both, Finder::Clients).is_none());
        assert!(not_quiet(&both.iter().collect::<Vec<_>>()).is_some());
    }
}
