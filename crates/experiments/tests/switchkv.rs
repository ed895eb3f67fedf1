//! What a cache node does for a rack, held to what the popularity of keys says.

use experiments::paper::switchkv::{self, SwitchKvSettings};
use experiments::paper::{
    Arm, Caches, Cell, CloseLook, Figure, Learning, Load, Losses, Pace, Rack, RackSpec, Skew,
    highest,
};
use std::time::Duration;
use workload::{Shift, ShiftKind};

const MS: Duration = Duration::from_millis(1);

fn spec(arm: Arm) -> RackSpec {
    let caches = Caches { items: 200, ..Caches::SWITCHKV };
    RackSpec { arm, caches, once: true, ..RackSpec::new(16, 50_000, 1) }
}

fn settings() -> SwitchKvSettings {
    SwitchKvSettings {
        nodes: 16,
        keys: 10_000_000_000,
        items: 1_000,
        rules_per_s: None,
        pace: Pace::USUAL,
        seed: 1,
        thetas: vec![0.99],
        window: Some(300 * MS),
    }
}

/// The cells of some columns, by their keys, row by row.
fn cells(figure: &Figure, keys: &[&str]) -> Vec<Vec<Cell>> {
    let places = keys.iter().map(|key| {
        let place = figure.table.columns.iter().position(|column| column.key == *key);
        place.unwrap_or_else(|| panic!("no column {key}"))
    });
    let places: Vec<usize> = places.collect();
    let chosen = |row: &Vec<Cell>| -> Vec<Cell> {
        places.iter().filter_map(|place| row.get(*place)).cloned().collect()
    };
    figure.table.rows.iter().map(chosen).collect()
}

fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Number(number, _) => *number,
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn a_cache_node_lets_a_rack_serve_nearly_what_its_cap_says() {
    let load = Load::only_reads(Skew::Zipf(0.99));
    let mut served = Vec::new();
    for arm in [Arm::Hashing, Arm::CacheNodes] {
        let mut rack = Rack::new(spec(arm));
        let best = highest(&mut rack, &load, 300 * MS);
        let trial = best.trial.expect("some rate is served in time");
        served.push((best.bounds, trial));
    }
    let [(_, without), (bounds, with)] = &served[..] else { unreachable!("two arms") };
    assert!(with.throughput() > 2.0 * without.throughput());
    assert!(with.throughput() > 0.9 * bounds.lent, "of {bounds:?}");
    assert!((with.by_caches - bounds.hits).abs() < 0.05, "{} {bounds:?}", with.by_caches);
}

#[test]
fn of_billions_of_keys_a_rack_serves_what_the_cap_says_while_one_percent_is_lost() {
    let figure = switchkv::figure(10, &settings(), |_| ()).expect("there is such a figure");
    let rows = cells(&figure, &["keys", "system", "of_cap", "hits", "hits_expected"]);
    let skewed: Vec<_> = rows
        .iter()
        .filter(|row| row[0] == Cell::text("zipf 0.99") && row[3] != Cell::None)
        .collect();
    assert!(!skewed.is_empty());
    for row in skewed {
        assert!((0.95..1.05).contains(&number(&row[2])), "{row:?}");
        assert!((number(&row[3]) - number(&row[4])).abs() < 0.02, "{row:?}");
    }
}

#[test]
fn a_miss_takes_as_long_as_without_a_cache_and_one_or_two_transits_less_than_elsewhere() {
    let (pace, window) = (Pace::slowed(40).expect("not too slow"), Some(100 * MS));
    let settings = SwitchKvSettings { nodes: 8, thetas: Vec::new(), pace, window, ..settings() };
    let figure = switchkv::figure(13, &settings, |_| ()).expect("there is such a figure");
    let rows = cells(&figure, &["part", "system", "share", "p50_us"]);
    let median = |system: &str| {
        let of = [Cell::text("misses alone"), Cell::text(system)];
        number(&rows.iter().find(|row| row[..2] == of).expect("such a row")[3])
    };
    let (without, with) = (median("no cache"), median("cache node"));
    assert!((with / without - 1.0).abs() < 0.01, "{with} and {without} us");
    // From the switch to a cache, and from there to a node: two cables of 400 to 440 us.
    for (system, transits) in [("look-through", 1.0), ("look-aside", 2.0)] {
        let more = median(system) - with;
        assert!((800.0 * transits..900.0 * transits).contains(&more), "{system}: {more} us");
    }
}

#[test]
fn a_cache_that_is_the_limit_finds_how_many_keys_it_should_hold() {
    let load = Load::only_reads(Skew::Zipf(0.99));
    // All 2,000 keys would be 2.4 times as much as it can serve.
    let caches = Caches { rate_times: 10, items: 2_000, ..Caches::SWITCHKV };
    let mut rack = Rack::new(RackSpec { nodes: 64, caches, ..spec(Arm::CacheNodes) });
    let (all, best) = (rack.bounds(&load).lent, rack.lent_at_best(&load));
    assert!(best > 2.0 * all, "{best} instead of {all}");
    rack.get_used_to(&load, all);
    let times = (4_000 * MS, 500 * MS);
    let trial = rack.run_losing(&load, (Losses::SWITCHKV, all), times, None);
    let (held, busy) = (trial.cache_held, trial.cache_busy);
    let served = trial.throughput();
    // A dozen keys are best here, and one of them that is not held makes its node full.
    assert!(served > 1.4 * all, "{served} of {best}, {all} with all; {held} keys, {busy} busy");
    assert!(held < 200 && busy > 0.6, "{held} keys, {busy} busy");
}

#[test]
fn what_becomes_hot_is_cached_in_time_and_sooner_if_nodes_say_so_at_once() {
    let shift = Shift { kind: ShiftKind::HotIn, keys: 50, every: 1_500 * MS };
    let still = Load::only_reads(Skew::Zipf(0.99));
    let load = Load { shift: Some(shift), ..still };
    let look = CloseLook { piece: 100 * MS, in_time_us: 0 };
    let served = |learning: Learning| -> Vec<f64> {
        let caches = Caches { items: 1_000, rules_per_s: 400, learning, ..Caches::SWITCHKV };
        let spec = RackSpec { keys: 10_000_000_000, caches, ..spec(Arm::CacheNodes) };
        let mut rack = Rack::new(spec);
        let first = rack.bounds(&still).lent;
        rack.get_used_to(&still, first);
        let losing = (Losses::SWITCHKV, first);
        let trial = rack.run_losing(&load, losing, (300 * MS, 3_000 * MS), Some(look));
        trial.pieces.iter().map(|it| it.endings.done as f64 / 0.1 / first).collect()
    };
    let [both, periodic] = [Learning::Reports, Learning::Periodic].map(served);
    let after = |pieces: &[f64]| pieces[15..30].iter().sum::<f64>() / 15.0;
    assert!(periodic[15..18].iter().any(|share| *share < 0.8), "it is a blow: {periodic:?}");
    assert!(both[25..].iter().all(|share| *share > 0.9), "within a second: {both:?}");
    assert!(after(&both) > after(&periodic) + 0.02, "{both:?} {periodic:?}");
}
