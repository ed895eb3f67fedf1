//! Goal: what once broke a promise does not come back.
//! Method: the kinds of worlds in which it did, with all that mattered pinned. A single seed would
//! mean something else after every change of a machine; what a family of worlds stresses stays.

use sim::{Hostility, Options, Outcome, Profile, run_many};
use std::ops::ControlFlow;
use std::time::Duration;

/// Worlds of each family.
const SEEDS: u64 = 25;

fn hold(profile: Profile, pin: impl Fn(&mut Options)) {
    let worlds: Vec<Options> = (1..=SEEDS)
        .map(|seed| {
            let mut options = Options::draw(profile, seed);
            pin(&mut options);
            options
        })
        .collect();
    let broken = run_many(&worlds, |options, outcome| {
        if outcome.violations.is_empty() {
            return ControlFlow::Continue(());
        }
        let Outcome { violations, journal, .. } = &outcome;
        ControlFlow::Break(format!("{options}{}\n{}", journal.join("\n"), violations.join("\n")))
    });
    assert_eq!(broken.break_value(), None);
}

const MS: Duration = Duration::from_millis(1);

/// A restarted node took an assignment that had been on its way for a second, found itself without
/// a replica record, forgot what it held, and served on, empty, under the next.
#[test]
fn old_orders_reach_nodes_that_have_just_come_back() {
    hold(Profile::Crashes, |options| {
        (options.nodes, options.replicas, options.partitions) = (2, 2, 1);
        (options.links.stray_permille, options.links.stray_max) = (100, 2_000 * MS);
        options.faults.crash_every = 200 * MS;
        options.faults.length_max = 300 * MS;
    });
}

/// A tail that lost its lease, or its replica record, in the middle of giving a copy never came to
/// rest.
#[test]
fn copies_end_with_the_lease_or_the_seat_of_who_gives_them() {
    hold(Profile::Amnesia, |options| {
        (options.nodes, options.replicas, options.partitions) = (4, 3, 3);
        options.copy_bytes_per_s = 5_000;
        options.faults.cut_every = 400 * MS;
    });
}

/// A chain was closed without the one member that still had its disk, which was cut off from the
/// controller, and went on with one that had not answered for long, for it had lost its own.
#[test]
fn nobody_is_left_behind_for_a_member_that_does_not_answer() {
    hold(Profile::Amnesia, |options| {
        (options.nodes, options.replicas, options.partitions) = (4, 2, 1);
        (options.faults.cut_every, options.faults.length_max) = (400 * MS, 1_500 * MS);
        options.faults.controller_every = 1_000 * MS;
    });
}

/// Additions to one counter that were computed from each other, and whose copies overtook each
/// other all the time, got through one at a time.
#[test]
fn counters_recover_from_heavy_reordering() {
    hold(Profile::Network, |options| {
        (options.nodes, options.replicas, options.partitions) = (5, 4, 1);
        (options.links.delay_max, options.links.duplicate_permille) = (50 * MS, 300);
        (options.load.clients, options.load.in_flight) = (4, 8);
        (options.load.think, options.load.registers) = (20 * MS, 1);
    });
}

/// The same behind a member that came back: each had a timer of its own, backed off to a second.
#[test]
fn writes_that_wait_for_a_tail_come_through_together() {
    hold(Profile::Crashes, |options| {
        (options.nodes, options.replicas, options.partitions) = (3, 3, 1);
        (options.load.clients, options.load.in_flight) = (4, 8);
        (options.load.think, options.load.registers) = (10 * MS, 1);
        (options.faults.crash_every, options.faults.length_max) = (200 * MS, 400 * MS);
    });
}

/// A head heard of the last part of an upload after the word that dropped it, and counted that part
/// and those that were about to go: it made a value of parts that nobody had.
#[test]
fn parts_that_are_about_to_go_are_not_counted() {
    hold(Profile::Big, |options| {
        (options.nodes, options.replicas, options.partitions) = (3, 3, 1);
        (options.faults.clog_every, options.faults.length_max) = (300 * MS, 3_000 * MS);
        (options.load.big_percent, options.load.registers) = (60, 1);
        (options.load.clients, options.load.in_flight) = (6, 8);
        options.load.patience = 5_000 * MS;
        (options.links.duplicate_permille, options.links.loss_permille) = (200, 0);
        options.links.stray_permille = 0;
    });
}

/// Nodes, switch and controller began anew together, and no key was hot then: nobody told the
/// switch of any order, below which homes of keys that had been under delegations take no writes.
#[test]
fn homes_that_remember_delegations_are_not_left_without_an_order() {
    hold(Profile::Hot, |options| {
        (options.nodes, options.replicas, options.partitions) = (2, 1, 3);
        (options.switches, options.controllers) = (1, 1);
        (options.load.think, options.load.plain_percent) = (40 * MS, 60);
        (options.load.focus_percent, options.load.registers) = (0, 1);
        (options.faults.hot_every, options.faults.crash_every) = (50 * MS, 300 * MS);
        (options.faults.switch_every, options.faults.controller_every) = (500 * MS, 500 * MS);
        options.faults.power_cut_every = 1_000 * MS;
    });
}

/// A controller began with an older store, in a term by its own clock. The one that was then
/// started with the newest store had a slower clock, was refused by all members, and gave no orders
/// for as long as that clock was behind.
#[test]
fn controllers_with_slow_clocks_take_up_stores_that_were_put_back() {
    hold(Profile::Restores, |options| {
        (options.controllers, options.clock_skew_max) = (2, 2_000 * MS);
        (options.faults.old_map_every, options.faults.length_max) = (800 * MS, 300 * MS);
        (options.faults.amnesia_percent, options.faults.aged_percent) = (0, 0);
        (options.faults.torn_percent, options.faults.spent_percent) = (0, 0);
    });
}

/// A switch put the end tag that a client had made in one period into an envelope of the next, of
/// which it had been told sooner; and what waited for a cookie while the pass was renewed was not
/// sent again. No node took what was asked once in a period.
#[test]
fn requests_get_through_while_members_hear_of_a_new_period_one_after_the_other() {
    hold(Profile::Hostile, |options| {
        options.load.clients = 4;
        let (period, attack_every) = (1_000 * MS, 20 * MS);
        options.hostility = Some(Hostility { period, attack_every, readers: 1 });
    });
}

/// Somebody asked in his own name what a client had asked, and sent it the cookie that he was sent.
/// Whatever it asked with that was refused until the period was over.
#[test]
fn a_client_with_the_cookie_of_another_asks_for_its_own() {
    hold(Profile::Hostile, |options| {
        (options.links.loss_permille, options.load.clients) = (50, 4);
        let (period, attack_every) = (60_000 * MS, 2 * MS);
        options.hostility = Some(Hostility { period, attack_every, readers: 0 });
    });
}
