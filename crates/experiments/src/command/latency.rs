//! `keyway lab latency`: what a cache in front of the nodes does to the latency of a read.

use super::ground::HotMode;
use crate::cost::Bill;
use crate::figure;
use crate::median::median;
use crate::paper::{Cell, Column, Figure, Panel, Table};
use crate::site::{Site, SiteLoad, Stored, VALUE_BYTES, Window, reads_and_writes};
use bench::{Coordination, Measured};
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use console::shared::Shared;
use lab::cluster::Cluster;
use lab::name::Name;
use lab::plane::Plane;
use lab::rack::{NODES_MAX, Rack};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use workload::Distribution;

/// Measure how long a read takes that a cache answers, one that it does not, one without a cache,
/// and one that the client sends to the node itself.
///
/// Builds a rack with a cache, has the cache take the hottest keys of a keyspace, and reads one key
/// at a time: of a keyspace that is not cached, straight from its node and as clients do, of all
/// keys of the one that is cached, and of its hottest. Takes turns, so that what the machine does
/// otherwise befalls all alike. Prints the median of the rounds' medians, and plots lab-latency.svg
/// (figure 13 of SwitchKV, with real packets).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab latency
  keyway lab latency --nodes 16 --plane xdp --out plots
  keyway lab latency --plane routes --in-flight 32
  keyway lab latency --rounds 9 --seconds 3s --json")]
pub struct Args {
    #[command(flatten)]
    lab: Name,
    /// Where packets are switched.
    #[arg(long, value_enum, default_value_t = Plane::User)]
    plane: Plane,
    /// Storage nodes, of one shard each.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=i64::from(NODES_MAX)))]
    nodes: u16,
    /// Keys of each keyspace, with values of 100 bytes. Of few a cache soon holds many.
    #[arg(long, value_name = "N", default_value = "500k", value_parser = parse_keys)]
    keys: u64,
    /// Reads that wait at any time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    in_flight: u16,
    /// How often each kind of read is looked at.
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// How long each time.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::some_time)]
    seconds: Duration,
    /// Where the plot goes.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// How long each kind of read goes on before it is looked at. Nodes report once a second what is
/// hot.
const LEARN: Duration = Duration::from_secs(3);

/// How long reads of the hottest keys go on at a time until the cache answers most of them.
const WARM: Duration = Duration::from_millis(500);

/// How often at most. A cache that has not taken them by then does not take them.
const WARM_MOST: usize = 40;

/// Of ten reads of the hottest keys, how many the cache is to answer before they are looked at.
const WARM_TENTHS: u64 = 9;

/// How many of the keys are hot.
const HOT: u64 = 100;

fn parse_keys(text: &str) -> Result<u64, String> {
    let keys = parse::count(text)?;
    if keys > HOT { Ok(keys) } else { Err(format!("more than the {HOT} that are hot")) }
}

/// What is read, in the order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The same as the next, but sent to the node by the client, which has the map.
    Straight,
    /// Of a keyspace that is not cached.
    Without,
    /// Of one that is, any key: hardly one is in the cache.
    Miss,
    /// One that the cache holds.
    Hit,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Straight, Self::Without, Self::Miss, Self::Hit];

    fn name(self) -> &'static str {
        match self {
            Self::Straight => "straight to the node",
            Self::Without => "without a cache",
            Self::Miss => "miss",
            Self::Hit => "hit",
        }
    }

    fn distribution(self, keys: u64) -> Distribution {
        match self {
            Self::Straight | Self::Without | Self::Miss => Distribution::Uniform,
            Self::Hit => Distribution::Hotspot { keys: HOT as f64 / keys as f64, ops: 1.0 },
        }
    }
}

const COLUMNS: [Column; 9] = [
    Column { head: "read", key: "read" },
    Column { head: "p50 us", key: "p50_us" },
    Column { head: "mean us", key: "mean_us" },
    Column { head: "of without", key: "p50_of_without" },
    Column { head: "reads /s", key: "reads_per_s" },
    Column { head: "of straight", key: "rate_of_straight" },
    Column { head: "cpu us", key: "cpu_us" },
    Column { head: "of straight", key: "cpu_of_straight" },
    Column { head: "by the cache %", key: "hits_percent" },
];

/// What was seen of one kind of read.
#[derive(Debug, Default)]
struct Seen {
    p50_us: Vec<f64>,
    mean_us: Vec<f64>,
    per_s: Vec<f64>,
    /// Processor time of a read, all together, in microseconds.
    cpu_us: Vec<f64>,
    /// Reads, and those of them that the cache answered.
    reads: u64,
    hits: u64,
}

/// Who asks, and for what.
struct Reader {
    kind: Kind,
    load: SiteLoad,
    in_flight: usize,
}

/// Reads: what was seen of that, how many were read, and how many of them the cache answered.
fn look(site: &Site, reader: &Reader, window: Window) -> Result<(Measured, u64, u64), Failure> {
    let before = site.cache_hits()?;
    let measured = site.closed(&reader.load, reader.in_flight, window)?;
    let hits = site.cache_hits()? - before;
    let reads = measured.summary.all.endings.done;
    Ok((measured, reads, hits))
}

/// Reads until the cache answers most of it.
fn warm(site: &Site, reader: &Reader) -> Result<(), Failure> {
    for seed in 0..WARM_MOST {
        let window = Window { time: WARM, piece: WARM, seed: seed as u64 };
        let (_, reads, hits) = look(site, reader, window)?;
        if hits * 10 >= reads * WARM_TENTHS {
            return Ok(());
        }
    }
    note!("  the cache has not taken what is read the most: hits are measured all the same");
    Ok(())
}

impl Args {
    /// Carries the command out.
    pub fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        figure::make_folder(&self.out)?;
        let rack = Rack { lab: self.lab.name.clone(), nodes: self.nodes, caches: 1, clients: 1 };
        let cluster = Cluster::in_memory(rack, self.plane);
        let stored = Stored { keys: self.keys, value_bytes: VALUE_BYTES };
        let seen = Site::with(cluster, stored, |site| self.measure(site))?;
        let made = self.figure(&seen);
        figure::show(&made, &self.out, "lab-latency", shared.json)?;
        Ok(Verdict::Yes)
    }

    fn measure(&self, site: &Site) -> Result<[Seen; 4], Failure> {
        let plain = site.keyspace("plain", HotMode::Hashing.policy(), 1)?;
        let cached = site.keyspace("cached", HotMode::Cached.policy(), 1)?;
        let straight = site.straight()?;
        let readers = Kind::ALL.map(|kind| {
            let keyspace = match kind {
                Kind::Straight | Kind::Without => &plain,
                Kind::Miss | Kind::Hit => &cached,
            };
            let keyspace = Arc::clone(keyspace);
            let distribution = kind.distribution(self.keys);
            let by = match kind {
                Kind::Straight => straight.clone(),
                Kind::Without | Kind::Miss | Kind::Hit => Coordination::Switch,
            };
            let mix = reads_and_writes(100);
            let load = SiteLoad { keyspace, distribution, mix, shift: None, by };
            Reader { kind, load, in_flight: self.in_flight.into() }
        });
        let (mut seen, payers) = (<[Seen; 4]>::default(), site.payers());
        let learn = Window { time: LEARN, piece: LEARN, seed: 0 };
        readers.iter().try_for_each(|reader| look(site, reader, learn).map(|_| ()))?;
        for seed in 1..=self.rounds {
            for (reader, seen) in readers.iter().zip(&mut seen) {
                if reader.kind == Kind::Hit {
                    warm(site, reader)?;
                }
                let window = Window { time: self.seconds, piece: self.seconds, seed };
                let once = || look(site, reader, window);
                let ((measured, reads, hits), bill) = Bill::of(&payers, once)?;
                let all = &measured.summary.all;
                let (latency, name) = (&all.latency, reader.kind.name());
                note!("  {name}: p50 {} us, {:.0} a second", latency.p50_us, all.ops_per_second);
                seen.p50_us.push(latency.p50_us as f64);
                seen.mean_us.push(latency.mean_us);
                seen.per_s.push(all.ops_per_second);
                seen.cpu_us.push(bill.cost.sum() * 1e6 / reads.max(1) as f64);
                seen.reads += reads;
                seen.hits += hits;
            }
        }
        Ok(seen)
    }

    fn figure(&self, seen: &[Seen; 4]) -> Figure {
        let medians = seen.each_ref().map(|seen| median(seen.p50_us.clone()));
        let [_, without, ..] = medians;
        let rates = seen.each_ref().map(|seen| median(seen.per_s.clone()));
        let cpu = seen.each_ref().map(|seen| median(seen.cpu_us.clone()));
        let ([straight, ..], [cpu_straight, ..]) = (rates, cpu);
        let mut panel = Panel {
            title: format!("{} in flight", self.in_flight),
            x: "read",
            places: Kind::ALL.map(|kind| kind.name().to_owned()).into(),
            y: "median latency (us)",
            logarithmic: false,
            curves: Vec::new(),
        };
        let mut rows = Vec::new();
        let looks = seen.iter().zip(medians).zip(rates.into_iter().zip(cpu));
        for (place, (kind, looked)) in Kind::ALL.into_iter().zip(looks).enumerate() {
            let ((seen, p50), (rate, cpu)) = looked;
            panel.add("p50", place as f64, p50);
            rows.push(vec![
                Cell::text(kind.name()),
                Cell::number(p50, 1),
                Cell::number(median(seen.mean_us.clone()), 1),
                Cell::number(p50 / without, 3),
                Cell::number(rate, 0),
                Cell::number(rate / straight, 3),
                Cell::number(cpu, 1),
                Cell::number(cpu / cpu_straight, 3),
                Cell::number(seen.hits as f64 * 100.0 / seen.reads.max(1) as f64, 1),
            ]);
        }
        let Self { nodes, rounds, keys, in_flight, .. } = self;
        let plane = self.plane.name();
        let seconds = self.seconds.as_secs_f64();
        Figure {
            title: "Latency of a read with a cache in front of the nodes".to_owned(),
            notes: vec![
                format!(
                    "{nodes} nodes, a cache, {keys} keys, in flight {in_flight}; plane {plane}"
                ),
                format!("medians of {rounds} rounds of {seconds} s for each kind of read"),
                "cpu us: processor time of a read, of all processes together".to_owned(),
            ],
            table: Table { columns: COLUMNS.to_vec(), rows },
            panels: vec![panel],
        }
    }
}
