//! What a rack does, held to what queueing theory and the popularity of keys say.

use cluster::Selection;
use experiments::paper::pegasus::{FIGURES, PegasusRefusal, PegasusSettings, check, figure};
use experiments::paper::{
    Arm, Best, Cell, Figure, Load, Pace, Rack, RackSpec, Skew, Trial, highest, objective,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn rack(nodes: u16, keys: u64) -> Rack {
    Rack::new(spec(nodes, keys))
}

fn spec(nodes: u16, keys: u64) -> RackSpec {
    RackSpec::new(nodes, keys, 1)
}

fn found(best: &Best) -> &Trial {
    best.trial.as_ref().expect("some rate is served in time")
}

#[test]
fn uniform_keys_reach_most_of_the_cap_and_an_idle_rack_takes_four_hops_and_a_service() {
    let mut rack = rack(4, 20_000);
    let load = Load::only_reads(Skew::Uniform);
    // Four hops of 100 us to 110 us, and 100 us of service; five times that.
    let objective_us = objective(&mut rack, &load);
    assert!((2_500..2_800).contains(&objective_us), "{objective_us}");
    let best = highest(&mut rack, &load, 400 * MS);
    let share = found(&best).throughput() / best.bounds.cap;
    assert!((0.85..1.0).contains(&share), "{share} of the cap");
    assert!(found(&best).p99_us <= best.objective_us);
}

#[test]
fn under_skew_hashing_serves_what_its_busiest_node_does() {
    let mut rack = rack(32, 50_000);
    let best = highest(&mut rack, &Load::only_reads(Skew::Zipf(1.2)), 300 * MS);
    // Of 32 nodes the one with the hottest key takes a fifth of all requests.
    let gain_max = best.bounds.gain_max();
    assert!((5.5..8.0).contains(&gain_max), "{gain_max}");
    let share = found(&best).throughput() / best.bounds.hashing;
    assert!((0.8..1.0).contains(&share), "{share} of what its busiest node lets it");
    let busiest = found(&best).busiest;
    assert!((0.8..1.0).contains(&busiest), "{busiest}");
    assert!(found(&best).busy_mean < 0.2);
}

#[test]
fn a_node_with_too_much_to_do_loses_requests_and_the_others_do_not() {
    let mut rack = rack(8, 10_000);
    let load = Load::only_reads(Skew::Zipf(1.2));
    let bounds = rack.bounds(&load);
    let trial = rack.run(&load, 2.0 * bounds.hashing, 300 * MS, None);
    let answered = trial.done as f64 / trial.begun as f64;
    assert!((0.4..0.95).contains(&answered), "{answered}");
    assert!(trial.busiest > 0.99 && trial.busy_mean < 0.9, "{trial:?}");
    // What is lost is lost within that trial: no node stays full of what is asked for again.
    let trial = rack.run(&load, 0.8 * bounds.hashing, 300 * MS, None);
    assert_eq!(trial.done, trial.begun);
    assert!(trial.p99_us < 2_000, "{trial:?}");
}

#[test]
fn a_write_visits_every_node_of_its_chain() {
    let mut rack = Rack::new(RackSpec { replicas: 3, ..spec(4, 5_000) });
    let load = Load { reads_percent: 0, ..Load::only_reads(Skew::Uniform) };
    let cap = rack.bounds(&load).cap;
    assert!((cap - 40_000.0 / 3.0).abs() < 1.0, "{cap}");
    let trial = rack.run(&load, 0.6 * cap, 300 * MS, None);
    assert_eq!(trial.done, trial.begun);
    let expected = trial.throughput() / cap;
    let visits = trial.busy_mean / expected;
    assert!((0.95..1.05).contains(&visits), "{visits} of what a chain of three takes");
}

#[test]
fn slow_nodes_are_the_homes_of_fewer_keys_and_full_when_the_others_are() {
    let mut rack = Rack::new(RackSpec { half_slow: true, ..spec(32, 50_000) });
    let load = Load::only_reads(Skew::Uniform);
    let bounds = rack.bounds(&load);
    assert!((bounds.cap - 240_000.0).abs() < 1.0, "{bounds:?}");
    assert!((1.02..1.15).contains(&bounds.gain_max()), "{bounds:?}");
    // Near its limit a queue is long at times. It must not stay so for being asked twice.
    let trial = rack.run(&load, 0.9 * bounds.hashing, 500 * MS, None);
    assert_eq!(trial.done, trial.begun, "{trial:?}");
    assert!((0.85..0.97).contains(&trial.busiest), "{trial:?}");
    assert!((0.76..0.92).contains(&trial.busy_mean), "{trial:?}");
}

#[test]
fn a_cache_in_the_switch_serves_beyond_the_cap_and_is_of_no_use_for_writes() {
    let mut rack = Rack::new(RackSpec { arm: Arm::Cache, ..spec(4, 50_000) });
    let load = Load::only_reads(Skew::Zipf(1.2));
    let bounds = rack.bounds(&load);
    // The 10,000 most popular of 50,000 keys take 95 % of all reads.
    assert!(bounds.cached > 10.0 * bounds.cap, "{bounds:?}");
    // It has to find its keys first.
    rack.run(&load, 3.0 * bounds.cap, 1_000 * MS, None);
    let trial = rack.run(&load, 3.0 * bounds.cap, 300 * MS, None);
    assert_eq!(trial.done, trial.begun, "{trial:?}");
    assert!(trial.throughput() > 2.9 * bounds.cap && trial.by_switch > 0.75, "{trial:?}");
    let writes = Load { reads_percent: 0, ..load };
    let bounds = rack.bounds(&writes);
    assert!((bounds.cached - bounds.hashing).abs() < 1.0, "{bounds:?}");
    let trial = rack.run(&writes, 0.8 * bounds.hashing, 300 * MS, None);
    assert_eq!((trial.done, trial.by_switch), (trial.begun, 0.0), "{trial:?}");
    assert!(trial.busiest > 0.7, "{trial:?}");
}

#[test]
fn only_as_many_keys_have_copies_as_the_controller_hears_of() {
    let load = Load::only_reads(Skew::Zipf(1.2));
    let busiest = |most| {
        let copies = RackSpec { arm: Arm::Copies, hot_keys_max: Some(most), ..spec(8, 20_000) };
        let mut rack = Rack::new(copies);
        let rate = 0.9 * rack.bounds(&load).hashing;
        rack.run(&load, rate, 300 * MS, None).busiest
    };
    let [none, one, many] = [0, 1, 32].map(busiest);
    assert!((0.8..1.0).contains(&none), "{none}: as if there were none at all");
    assert!(none > 1.4 * one && one > 1.2 * many, "{none} {one} {many}");
}

#[test]
fn where_nodes_differ_in_speed_the_choice_of_the_copy_matters() {
    let load = Load::only_reads(Skew::Zipf(1.2));
    let trial = |selection| {
        let copies = RackSpec { arm: Arm::Copies, half_slow: true, ..spec(8, 20_000) };
        let mut rack = Rack::new(RackSpec { selection, ..copies });
        let rate = 0.8 * rack.bounds(&load).cap;
        // Until hot keys have copies, queues are full that take a while to be served.
        rack.run(&load, rate, 300 * MS, None);
        rack.run(&load, rate, 300 * MS, None)
    };
    let [any, predicted] = [Selection::Random, Selection::Predicted].map(trial);
    assert!(any.busiest > 0.99 && any.p99_us > 10_000, "{any:?}");
    assert!(predicted.busiest < 0.99 && predicted.p99_us < 3_000, "{predicted:?}");
}

/// What figures of a small rack are made with.
fn settings(arms: &[Arm], thetas: &[f64], seed: u64) -> PegasusSettings {
    PegasusSettings {
        pace: Pace::USUAL,
        nodes: 3,
        keys: 500,
        replicas: 1,
        seed,
        reads_percent: 100,
        arms: arms.to_vec(),
        thetas: thetas.to_vec(),
        window: Some(20 * MS),
    }
}

/// A figure of a small rack, and what was told while it was made.
fn small(number: u32, arms: &[Arm], seed: u64) -> (Figure, Vec<String>) {
    let mut told = Vec::new();
    let tell = |line: &str| told.push(line.to_owned());
    let made = figure(number, &settings(arms, &[], seed), tell);
    (made.expect("it is one of the figures"), told)
}

/// A column of its table.
fn column<'a>(figure: &'a Figure, key: &str) -> Vec<&'a Cell> {
    let table = &figure.table;
    let place = table.columns.iter().position(|column| column.key == key).expect("a column");
    table.rows.iter().filter_map(|row| row.get(place)).collect()
}

#[test]
fn the_same_seed_gives_the_same_tables_and_plots_and_another_does_not() {
    for number in [9, 14] {
        let (first, again) = (small(number, &[], 1), small(number, &[], 1));
        assert_eq!(first, again);
        assert_eq!(first.0.svg(), again.0.svg());
        assert_ne!(first.0.table, small(number, &[], 2).0.table);
    }
}

#[test]
fn every_figure_is_a_table_and_a_plot() {
    for number in FIGURES {
        let (made, told) = small(number, &[Arm::Copies], 1);
        assert_eq!(told.len(), made.table.rows.len());
        assert!(made.table.rows.iter().all(|row| row.len() == made.table.columns.len()));
        let svg = made.svg();
        assert!(svg.starts_with("<svg") && svg.contains(&made.title), "{svg}");
    }
    let (all, copies) = (small(9, &[], 1).0.table, small(9, &[Arm::Copies], 1).0.table);
    let rows: Vec<_> = all.rows.iter().filter(|row| copies.rows.contains(row)).collect();
    assert_eq!(rows.len(), copies.rows.len(), "an arm alone is what it is beside others");
    assert!(rows.len() < all.rows.len());
}

#[test]
fn what_a_figure_is_not_about_is_refused() {
    for number in FIGURES {
        let thetas = check(number, &settings(&[], &[0.99], 1));
        let one_skew = [10, 11, 14].contains(&number);
        assert_eq!(thetas, if one_skew { Err(PegasusRefusal::Thetas(number)) } else { Ok(()) });
        let about_copies = [12, 13].contains(&number);
        let of_arms = if about_copies { Err(PegasusRefusal::Arms(number)) } else { Ok(()) };
        for arms in [&[Arm::Hashing][..], &[Arm::Cache], &[Arm::Copies, Arm::Anywhere]] {
            assert_eq!(check(number, &settings(arms, &[], 1)), of_arms, "{number} {arms:?}");
        }
        for arms in [&[][..], &[Arm::Copies], &[Arm::Anywhere]] {
            assert_eq!(check(number, &settings(arms, &[], 1)), Ok(()), "{number} {arms:?}");
        }
    }
    let refused = figure(12, &settings(&[Arm::Hashing], &[], 1), |_| ());
    assert_eq!(refused, Err(PegasusRefusal::Arms(12)));
    assert_eq!(figure(7, &settings(&[], &[], 1), |_| ()), Err(PegasusRefusal::Figure));
}

#[test]
fn skews_are_those_asked_for() {
    for (number, uniform) in [(8, true), (9, true), (12, false)] {
        let asked = settings(&[Arm::Copies], &[1.2, 0.99, 1.2], 1);
        let made = figure(number, &asked, |_| ()).expect("it compares skews");
        let skews = column(&made, if uniform { "keys" } else { "spread" });
        let mut expected = vec!["zipf 0.99", "zipf 1.2"];
        if uniform {
            expected.insert(0, "uniform");
        }
        let mut found: Vec<_> = skews.into_iter().cloned().collect();
        found.dedup();
        assert_eq!(found, expected.into_iter().map(Cell::text).collect::<Vec<_>>(), "{number}");
    }
}

#[test]
fn throughput_is_compared_with_that_of_hashing_beside_it() {
    let ratios = |arms: &[Arm]| {
        let (made, _) = small(8, arms, 1);
        let of = |key| column(&made, key).into_iter().cloned().collect::<Vec<_>>();
        (of("throughput"), of("over_hashing"))
    };
    let (served, ratios_beside) = ratios(&[Arm::Copies, Arm::Hashing]);
    let half = served.len() / 2;
    assert!(ratios_beside.iter().take(half).all(|ratio| *ratio == Cell::Number(1.0, 2)));
    for place in half..served.len() {
        let number = |cell: Option<&Cell>| match cell {
            Some(Cell::Number(number, _)) => *number,
            other => panic!("{other:?} is no number"),
        };
        let expected = number(served.get(place)) / number(served.get(place - half));
        let ratio = number(ratios_beside.get(place));
        assert!((ratio - expected).abs() < 1e-9, "{ratio} is not {expected}");
    }
    let (_, alone) = ratios(&[Arm::Copies]);
    assert!(alone.iter().all(|ratio| *ratio == Cell::None), "{alone:?}");
}

/// Where copies are no help and the first trials are at five times what hashing can serve: writes
/// are pending on chains of three for most of a second after them.
#[test]
fn a_trial_does_not_suffer_from_the_overload_before_it() {
    let pace = Pace::slowed(100).expect("not too slow");
    let slow = RackSpec { pace, arm: Arm::Copies, replicas: 3, ..spec(128, 100_000) };
    let load = Load { reads_percent: 0, ..Load::only_reads(Skew::Zipf(1.2)) };
    let best = highest(&mut Rack::new(slow), &load, 300 * MS);
    let share = found(&best).throughput() / best.bounds.hashing;
    assert!((0.8..1.0).contains(&share), "{share} of what hashing can serve");
}

/// As in a rack of network namespaces, where a node serves 300 requests a second or half of that
/// (but for the network, where there and back takes four times as long as the request here).
/// Among nodes that serve 10,000 a key of 30 reads a second is one of many; of what a slow node
/// does here it is a fifth.
#[test]
fn where_nodes_are_slow_keys_of_a_few_reads_a_second_have_copies() {
    let pace = Pace::slowed(333).expect("not too slow");
    let half_slow = RackSpec { pace, half_slow: true, ..spec(32, 50_000) };
    let mut rack = Rack::new(RackSpec { arm: Arm::Copies, ..half_slow });
    let load = Load::only_reads(Skew::Zipf(1.2));
    let rate = 0.75 * rack.bounds(&load).cap;
    for part in [0.3, 0.7, 1.0] {
        rack.run(&load, part * rate, 10_000 * MS, None);
    }
    let trial = rack.run(&load, rate, 10_000 * MS, None);
    assert_eq!(trial.done, trial.begun, "{trial:?}");
    assert!(trial.busiest < 0.97 && trial.p99_us < 45_000, "{trial:?}");
}
