//! What time it is, whoever sets a clock.

use super::world::{POLL, World, node};
use machine::Instant;
use std::time::Duration;

const HOUR_MS: i64 = 3_600_000;

/// What time it is by a node, in milliseconds, as far as it was told.
fn time_of(world: &World, id: u16) -> Option<u64> {
    let it = &world.members[&node(id)];
    Some(it.clock_told?.instant(it.clock(world.now)).unix_ms())
}

/// How far nodes are apart in what they take the time to be, and what it is by the first.
fn times(world: &World, nodes: u16) -> (u64, u64) {
    let times: Vec<u64> = (0..nodes).map(|id| time_of(world, id).unwrap()).collect();
    (times.iter().max().unwrap() - times.iter().min().unwrap(), times[0])
}

/// What a clock shows that nobody has set.
fn right(world: &World) -> u64 {
    let mut it = world.members[&node(0)].clone();
    it.clock_set_ms = 0;
    it.clock(world.now).unix_ms()
}

/// A world whose nodes' clocks were set by so many hours before it began.
fn world_with(set: &[i64]) -> World {
    let mut world = World::new(u16::try_from(set.len()).unwrap(), 1);
    for (id, hours) in (0..).zip(set) {
        world.member(node(id)).clock_set_ms = hours * HOUR_MS;
    }
    world.live_for(Duration::from_secs(2));
    world
}

#[test]
fn a_node_that_begins_an_hour_off_goes_by_the_others_clocks() {
    // The controller's clock is a day behind, too.
    for set in [[1, 0, 0, 0], [0, -1, 0, 0], [0, 5, 0, 0], [-9, 0, 0, 0]] {
        let world = world_with(&set);
        let (apart, time) = times(&world, 4);
        assert!(apart <= 1 && time.abs_diff(right(&world)) <= 1, "{set:?}: {apart} {time}");
    }
}

#[test]
fn a_node_that_starts_anew_an_hour_off_goes_on_where_the_cluster_is() {
    let mut world = world_with(&[0, 0, 0]);
    for hours in [1, -1] {
        for id in 0..3 {
            world.kill(node(id));
            world.live_for(Duration::from_secs(1));
            world.member(node(id)).clock_set_ms += hours * HOUR_MS;
            world.revive(node(id));
            world.live_for(Duration::from_secs(1));
            let (apart, time) = times(&world, 3);
            assert!(apart <= 1 && time.abs_diff(right(&world)) <= 2, "{hours} {id}: {time}");
            let detail = world.detail_of(node(0));
            let is_off = world.members[&node(0)].clock_set_ms != 0;
            assert_eq!(detail.contains("set it"), is_off, "{detail}");
        }
    }
}

#[test]
fn a_controller_that_starts_anew_an_hour_off_asks_the_nodes_what_time_it_is() {
    let mut world = world_with(&[0, 2, 0]);
    for hours in [1, -1] {
        // All clocks go an hour on or back, as far as the controller can tell.
        for id in 0..3 {
            let it = world.member(node(id));
            it.clock_set_ms -= hours * HOUR_MS;
            let told = it.clock_told.as_mut().unwrap();
            told.0 += hours * HOUR_MS * 1_000_000;
        }
        let config = world.config.clone();
        world.restart(config);
        world.live_for(Duration::from_secs(2));
        let (apart, time) = times(&world, 3);
        assert!(apart <= 1 && time.abs_diff(right(&world)) <= 2, "{hours}: {apart} {time}");
    }
}

#[test]
fn no_node_gets_a_lease_before_the_time_is_known() {
    let mut world = World::new(3, 1);
    world.kill(node(2));
    world.settle();
    // Nobody was told by an earlier controller, and one has not been heard.
    let silent = world.live_until(|world| world.members[&node(0)].serves(world.now));
    assert!(silent <= POLL * 4, "{silent:?}");
    for (member, order) in &world.delivered {
        let is_node = matches!(member, cluster::Member::Node(_));
        assert!(!is_node || order.lease.is_none() || order.clock.is_some(), "{order:?}");
    }
    assert!(time_of(&world, 0).unwrap().abs_diff(right(&world)) <= 1);
}

#[test]
fn clocks_that_drift_are_followed_and_steps_are_not() {
    let mut world = world_with(&[0, 0, 0]);
    let begin = right(&world);
    let start = world.now;
    for id in 0..3 {
        world.member(node(id)).clock_set_ms = 2_000;
    }
    world.live_for(Duration::from_secs(600));
    let passed = u64::try_from(world.now.since(start).as_millis()).unwrap();
    let gained = times(&world, 3).1 - begin - passed;
    assert!((290..=310).contains(&gained), "0.05 % of 600 s: {gained}");
    for id in 0..3 {
        world.member(node(id)).clock_set_ms = HOUR_MS;
    }
    let (before, then) = (times(&world, 3).1, world.now);
    world.live_for(Duration::from_secs(600));
    let passed = u64::try_from(world.now.since(then).as_millis()).unwrap();
    let before = before - u64::try_from(HOUR_MS - 2_000).unwrap();
    assert!(times(&world, 3).1.abs_diff(before + passed) <= 2, "an hour is no drift");
    assert_eq!(world.status().members.iter().filter(|it| it.detail.contains("set it")).count(), 3);
}

#[test]
fn what_time_it_is_overflows_nowhere() {
    for (at, said) in [(u64::MAX, 0), (0, i64::MIN), (u64::MAX, i64::MAX), (1, i64::MIN)] {
        let mut world = World::settled(2, 1);
        let mut report = world.report_of(node(0));
        report.at = Instant(at);
        if let cluster::MemberReport::Node(report) = &mut report.state {
            report.clock = Some(cluster::ClockAhead(said));
        }
        let config = world.config.clone();
        world.restart(config);
        world.controller.handle_report(world.now, node(0), report);
        world.live_for(Duration::from_secs(1));
        let _ = world.status();
    }
}

#[test]
fn a_controller_that_was_stopped_does_not_take_the_time_from_answers_that_waited() {
    let mut world = world_with(&[0, 0]);
    let config = world.config.clone();
    world.restart(config);
    world.save();
    let orders: Vec<_> = std::iter::from_fn(|| world.controller.poll_order()).collect();
    // It is stopped before it hears any answer.
    let late = world.now + Duration::from_secs(60);
    for (member, order) in orders {
        let report = world.obey(member, &order).unwrap();
        world.controller.handle_report(late, member, report);
    }
    assert!(!world.controller.knows_the_time(), "whoever answered was asked a minute ago");
    world.now = late;
    world.live_for(Duration::from_secs(2));
    let (apart, time) = times(&world, 2);
    assert!(apart <= 1 && time.abs_diff(right(&world)) <= 2, "{apart} {time}");
}

/// Nodes answer what they are asked at once, but the answers need so long.
fn answer_late(world: &mut World, by: Duration) {
    world.save();
    let orders: Vec<_> = std::iter::from_fn(|| world.controller.poll_order()).collect();
    let reports: Vec<_> = orders
        .into_iter()
        .filter_map(|(member, order)| Some((member, world.obey(member, &order)?)))
        .collect();
    world.now = world.now + by;
    for (member, report) in reports {
        world.controller.handle_report(world.now, member, report);
    }
}

#[test]
fn nobody_goes_by_answers_that_took_long_while_better_ones_may_come() {
    let untold = World::new(3, 1);
    let mut told = world_with(&[0, 2, 0]);
    told.restart(told.config.clone());
    for (mut world, silent) in [(untold, Duration::from_secs(3)), (told, Duration::ZERO)] {
        world.now = world.now + silent;
        answer_late(&mut world, Duration::from_millis(190));
        assert!(!world.controller.knows_the_time(), "by answers that are 95 ms off");
        world.live_for(Duration::from_secs(2));
        let (apart, time) = times(&world, 3);
        assert!(apart <= 1 && time.abs_diff(right(&world)) <= 1, "{apart} {time}");
    }
}

#[test]
fn where_all_answers_take_long_the_time_is_known_all_the_same() {
    let polls = POLL * 3;
    for (told, usual) in [(false, Duration::from_secs(5)), (true, polls)] {
        let mut world = World::new(3, 1);
        if told {
            // Clocks were set since, which shows what the time is gone by.
            world = world_with(&[0, 0, 0]);
            for id in 0..3 {
                let it = world.member(node(id));
                it.clock_set_ms += HOUR_MS;
                it.clock_told.as_mut().unwrap().0 -= HOUR_MS * 1_000_000;
            }
            world.restart(world.config.clone());
        }
        let began = world.now;
        let by = Duration::from_millis(60);
        while !world.controller.knows_the_time() {
            world.controller.handle_timeout(world.now);
            answer_late(&mut world, by);
        }
        let took = world.now.since(began);
        assert!((usual..usual + POLL * 2).contains(&took), "{took:?}");
        world.live_for(Duration::from_secs(1));
        let (apart, time) = times(&world, 3);
        let error = u64::try_from(by.as_millis()).unwrap();
        assert!(apart <= 1 && time.abs_diff(right(&world)) <= error, "{told}: {apart} {time}");
    }
}
