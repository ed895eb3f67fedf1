//! Every state within the everyday bounds of each model keeps the promises, and every bug breaks
//! one.

use model::{
    Bounds, ReturnScope, content, delegated, durable, fence, handover, leaders, leaving, lent,
    periods, split,
};

#[test]
fn nothing_older_is_shown_whatever_store_is_put_back() {
    ReturnScope::assert_all_hold();
}

#[test]
fn every_bug_of_comparing_what_members_hold_does_harm() {
    ReturnScope::assert_all_bugs_are_found();
}

#[test]
fn nothing_is_lost_when_members_leave_and_come_back() {
    leaving::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_leaving_does_harm() {
    leaving::Scope::assert_all_bugs_are_found();
}

#[test]
fn nobody_gives_orders_for_too_long_when_another_one_leads() {
    leaders::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_leading_does_harm() {
    leaders::Scope::assert_all_bugs_are_found();
}

#[test]
fn no_plain_write_is_applied_twice_in_a_handover() {
    handover::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_a_handover_does_harm() {
    handover::Scope::assert_all_bugs_are_found();
}

#[test]
fn no_read_is_stale_when_a_member_is_fenced() {
    fence::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_fences_does_harm() {
    fence::Scope::assert_all_bugs_are_found();
}

#[test]
fn what_was_shown_is_never_lost_though_disks_are_late() {
    durable::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_late_disks_does_harm() {
    durable::Scope::assert_all_bugs_are_found();
}

#[test]
fn what_was_shown_of_delegated_keys_comes_home() {
    delegated::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_delegated_writes_does_harm() {
    delegated::Scope::assert_all_bugs_are_found();
}

#[test]
fn partitions_are_split_and_merged_without_harm() {
    split::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_splits_and_merges_does_harm() {
    split::Scope::assert_all_bugs_are_found();
}

#[test]
fn no_read_of_a_cache_is_stale_and_no_write_waits_for_long() {
    lent::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_lending_does_harm() {
    lent::Scope::assert_all_bugs_are_found();
}

#[test]
fn no_read_by_content_is_stale_and_no_write_applied_twice() {
    content::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_content_routing_does_harm() {
    content::Scope::assert_all_bugs_are_found();
}

#[test]
fn nothing_is_refused_while_keys_change_and_nothing_old_is_taken() {
    periods::Scope::assert_all_hold();
}

#[test]
fn every_bug_of_changing_keys_does_harm() {
    periods::Scope::assert_all_bugs_are_found();
}
