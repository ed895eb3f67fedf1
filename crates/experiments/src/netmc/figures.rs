//! What the figures 8 to 16 of NetMC vary, and what they show.

use crate::netmc::design::{Experiment, Point, Shows};
use crate::netmc::stage::Sizes;
use workload::Distribution;

/// Storage servers of the paper's rack.
pub(crate) const NODES: u16 = 5;

const SKEW: [f64; 3] = [0.9, 0.95, 0.99];
const SKEW_DEFAULT: f64 = 0.99;
const NODE_COUNTS: [u16; 4] = [2, 3, 4, NODES];
const WRITE_PERCENTS: [u8; 6] = [0, 20, 40, 60, 80, 100];
const KEY_BYTES: [usize; 5] = [4, 8, 16, 32, 64];
const VALUE_BYTES: [usize; 5] = [64, 128, 256, 512, 1024];
const MGET_KEYS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

/// The paper's default workload.
pub(crate) fn default_point() -> Point {
    Point {
        name: "default".to_owned(),
        group: 0,
        nodes: NODES,
        sizes: Sizes { key: 4, value: 256 },
        keys: 8.6,
        writes: 5,
        distribution: zipf(SKEW_DEFAULT),
    }
}

fn zipf(theta: f64) -> Distribution {
    Distribution::Zipf { theta }
}

/// The experiment of a figure, if it is one of these.
pub(crate) fn experiment(figure: u32) -> Option<Experiment> {
    let varied = |title, across, points| Experiment {
        title,
        across,
        groups: vec!["zipf 0.99"],
        shows: Shows::Tails,
        redis: false,
        points,
    };
    Some(match figure {
        8 => skew("Figure 8: throughput against skew", false),
        9 => latency("Figure 9: latency against throughput", false),
        10 => scale(),
        11 => skew("Figure 11: throughput against skew, Redis behind the nodes", true),
        12 => latency("Figure 12: latency against throughput, Redis behind the nodes", true),
        13 => {
            let points = WRITE_PERCENTS.into_iter().map(|writes| {
                let name = format!("{writes} % writes");
                Point { name, writes, ..default_point() }
            });
            varied("Figure 13: impact of the share of writes", "writes", points.collect())
        }
        14 => {
            let points = KEY_BYTES.into_iter().map(|key| {
                let sizes = Sizes { key, ..default_point().sizes };
                Point { name: format!("keys of {key} B"), sizes, ..default_point() }
            });
            varied("Figure 14: impact of the size of keys", "size of keys", points.collect())
        }
        15 => {
            let points = VALUE_BYTES.into_iter().map(|value| {
                let sizes = Sizes { value, ..default_point().sizes };
                Point { name: format!("values of {value} B"), sizes, ..default_point() }
            });
            varied("Figure 15: impact of the size of values", "size of values", points.collect())
        }
        16 => {
            let points = MGET_KEYS.into_iter().map(|keys| {
                let name = format!("{keys} keys");
                Point { name, keys, ..default_point() }
            });
            let across = "keys of a multiget, on average";
            varied("Figure 16: impact of the size of multigets", across, points.collect())
        }
        _ => return None,
    })
}

fn skew(title: &'static str, redis: bool) -> Experiment {
    let uniform = Point {
        name: "uniform".to_owned(),
        distribution: Distribution::Uniform,
        ..default_point()
    };
    let skewed = SKEW.into_iter().map(|theta| Point {
        name: format!("zipf {theta}"),
        distribution: zipf(theta),
        ..default_point()
    });
    Experiment {
        title,
        across: "keys",
        groups: vec!["all"],
        shows: Shows::Throughput,
        redis,
        points: std::iter::once(uniform).chain(skewed).collect(),
    }
}

fn latency(title: &'static str, redis: bool) -> Experiment {
    Experiment {
        title,
        across: "thousand requests/s",
        groups: vec!["zipf 0.99"],
        shows: Shows::Latencies,
        redis,
        points: vec![Point { name: "zipf 0.99".to_owned(), ..default_point() }],
    }
}

fn scale() -> Experiment {
    let points = NODE_COUNTS.into_iter().flat_map(|nodes| {
        let skewed = Point { name: format!("{nodes} nodes, zipf"), nodes, ..default_point() };
        let uniform = Point {
            name: format!("{nodes} nodes, uniform"),
            group: 1,
            distribution: Distribution::Uniform,
            ..skewed.clone()
        };
        [skewed, uniform]
    });
    Experiment {
        title: "Figure 10: throughput and tail against the number of nodes",
        across: "nodes",
        groups: vec!["zipf 0.99", "uniform"],
        shows: Shows::Tails,
        redis: false,
        points: points.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Generator, KeyNames, Population};

    #[test]
    fn every_figure_has_points_that_can_be_measured() {
        for figure in 8..=16 {
            let experiment = experiment(figure).unwrap();
            assert!(experiment.title.contains(&format!("Figure {figure}:")));
            assert!(!experiment.points.is_empty());
            for point in &experiment.points {
                assert!(point.group < experiment.groups.len(), "{point:?}");
                let Sizes { key, value } = point.sizes;
                assert!(key + value <= wire::ENTRY_MAX && key <= wire::KEY_MAX, "{point:?}");
                assert!(KeyNames::binary(key, 100_000).is_ok(), "{point:?}");
                let spec = workload::Spec {
                    mix: point.mix(),
                    distribution: point.distribution,
                    keys: 1_000,
                    inserts_expected: 0,
                    shift: None,
                };
                let (start, rng) = (machine::Instant(0), machine::Rng::new(1));
                let made = Generator::new(&spec, Population::new(1_000), start, &rng, 0);
                assert!(made.is_ok(), "{point:?}");
            }
        }
        assert!(experiment(7).is_none() && experiment(17).is_none());
    }

    #[test]
    fn the_papers_ranges_are_covered() {
        let points = |figure| experiment(figure).unwrap().points;
        assert_eq!(points(8).len(), 4);
        assert_eq!(points(10).len(), 8);
        let ends = |figure, of: fn(&Point) -> f64| {
            let points = points(figure);
            (of(&points[0]), of(&points[points.len() - 1]))
        };
        assert_eq!(ends(13, |it| f64::from(it.writes)), (0.0, 100.0));
        assert_eq!(ends(14, |it| it.sizes.key as f64), (4.0, 64.0));
        assert_eq!(ends(15, |it| it.sizes.value as f64), (64.0, 1024.0));
        assert_eq!(ends(16, |it| it.keys), (2.0, 32.0));
        assert!(experiment(11).unwrap().redis && experiment(12).unwrap().redis);
    }
}
