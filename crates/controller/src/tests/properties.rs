//! What holds whatever happens in whatever order.

use super::world::{World, hash, node};
use cluster::{Member, Order, StoreId};
use machine::Instant;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    /// Create a keyspace of this size.
    Create(u32, u8),
    /// The driver saves, and hears that it worked.
    Save,
    /// The driver saves, and the controller dies before it hears of it.
    SaveAndDie,
    /// The controller dies and comes back.
    Die,
    /// One order is delivered; the answer may be lost.
    Deliver { answered: bool },
    /// A node goes or comes.
    Toggle(u16),
    /// A member's process is started anew.
    RestartMember(u16),
    /// A node's memory is replaced by an empty one.
    Wipe(u16, u64),
    /// An answer comes that belongs to no order.
    Stray(u16),
    /// Time passes.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1..40u32, 1..4u8).prop_map(|(parts, replicas)| Step::Create(parts, replicas)),
        6 => Just(Step::Save),
        1 => Just(Step::SaveAndDie),
        1 => Just(Step::Die),
        20 => proptest::bool::weighted(0.8).prop_map(|answered| Step::Deliver { answered }),
        2 => (0..5u16).prop_map(Step::Toggle),
        1 => (0..6u16).prop_map(Step::RestartMember),
        1 => (0..5u16, 1_000..2_000u64).prop_map(|(id, store)| Step::Wipe(id, store)),
        1 => (0..7u16).prop_map(Step::Stray),
        5 => (0..400u64).prop_map(Step::Pass),
    ]
}

fn member(index: u16) -> Member {
    if index == 5 { Member::Switch(0) } else { node(index) }
}

fn play(world: &mut World, step: &Step, names: &mut u32) {
    let now = world.now;
    match *step {
        Step::Create(partitions, replicas) => {
            *names += 1;
            let spec = hash(&format!("k{names}"), partitions, replicas);
            // Refused while nodes are unknown; what is accepted is checked below.
            let before = world.map();
            if world.controller.create_keyspace(now, spec).is_err() {
                assert_eq!(world.map(), before);
            }
        }
        Step::Save => world.save(),
        Step::SaveAndDie => {
            if let Some(saved) = world.controller.poll_save() {
                world.saved = Some(saved);
            }
            world.restart(world.config.clone());
        }
        Step::Die => world.restart(world.config.clone()),
        Step::Deliver { answered } => {
            let Some((member, order)) = world.controller.poll_order() else { return };
            check_order(world, member, &order);
            if answered {
                world.deliver(member, order);
            } else {
                world.controller.handle_silence(now, member);
            }
        }
        Step::Toggle(id) => world.member(node(id)).alive ^= true,
        Step::RestartMember(index) => world.restart_member(member(index)),
        Step::Wipe(id, store) => {
            world.restart_member(node(id));
            // No two nodes draw the same.
            world.member(node(id)).store = StoreId(store * 10 + u64::from(id));
        }
        Step::Stray(index) => {
            let from = if index == 6 { node(60) } else { member(index) };
            let report = world.report_of(member(index.min(5)));
            world.controller.handle_report(now, from, report);
        }
        Step::Pass(ms) => {
            world.now = now + Duration::from_millis(ms);
            world.controller.handle_timeout(world.now);
        }
    }
}

/// What leaves is what the store holds, or less than that; and a node is given partitions only
/// if the store knows the memory that it has.
fn check_order(world: &World, to: Member, order: &Order) {
    let Some(saved) = world.saved.as_ref() else {
        return assert_eq!(*order, Order::Report, "nothing else leaves unsaved");
    };
    let (revision, partitions) = match order {
        Order::Report => return,
        Order::Tables(tables) => (tables.revision, &tables.partitions),
        Order::Assign(assignment) => {
            assert_eq!(saved.stores.get(&assignment.node), Some(&assignment.store));
            (assignment.revision, &assignment.partitions)
        }
    };
    assert_eq!(revision, saved.map.revision);
    assert!(partitions.iter().all(|p| saved.map.partitions.contains(p)));
    if let Member::Node(id) = to {
        assert!(partitions.iter().all(|p| p.chain.contains(&id)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_map_stays_sound_durable_and_monotone(
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new(5, 1);
        let mut names = 0;
        let mut seen = 0;
        for step in &steps {
            play(&mut world, step, &mut names);
            prop_assert_eq!(world.controller.map().check(), Ok(()));
            // What the store holds is never taken back, and what is not durable may be lost.
            let durable = world.saved.as_ref().map_or(0, |s| s.map.revision);
            prop_assert!(durable >= seen, "revision {} after {}", durable, seen);
            prop_assert!(world.controller.durable_revision() <= durable);
            prop_assert!(world.controller.map().revision >= durable);
            seen = durable;
            let installed = world.members.values().map(|m| m.installed).max();
            prop_assert!(installed <= Some(durable), "a member knows more than the store");
        }
        // After all, the store gives the same map back, and everybody with a memory gets it.
        for it in world.members.values_mut() {
            it.alive = true;
        }
        world.save();
        world.live();
        world.live();
        let map = world.map();
        world.restart(world.config.clone());
        prop_assert_eq!(world.map(), map);
        world.live();
        let status = world.status();
        let stands = |state| matches!(
            state, crate::MemberState::Ready | crate::MemberState::Forgotten
        );
        prop_assert!(status.members.iter().all(|m| stands(m.state)), "{:?}", status.members);
    }

    #[test]
    fn the_same_calls_give_the_same_orders(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let run = || {
            let (mut world, mut names) = (World::new(5, 1), 0);
            steps.iter().for_each(|step| play(&mut world, step, &mut names));
            (world.delivered.clone(), world.controller.status(Instant(0)))
        };
        prop_assert_eq!(run(), run());
    }
}
