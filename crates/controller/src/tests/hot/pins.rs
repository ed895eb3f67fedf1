//! Keys that an operator keeps hot.

use super::*;
use wire::Generation;

#[test]
fn pinned_keys_stay_in_and_outlive_the_controller() {
    let mut world = world();
    let now = world.now;
    world.controller.pin(now, "a", b"p").unwrap();
    world.controller.pin(now, "a", b"p").unwrap();
    world.live_for(Duration::from_secs(4));
    assert!(entry(has(&world, SWITCH), "p").is_some());
    let status = listed(&world, "p");
    assert!(status.pinned && status.generation.is_some());
    world.restart(world.config.clone());
    world.live();
    assert!(entry(has(&world, SWITCH), "p").is_some() && agreed(&world));

    let now = world.now;
    world.controller.unpin(now, "a", b"p").unwrap();
    assert!(world.controller.unpin(now, "a", b"p").is_err());
    world.live_for(Duration::from_secs(3));
    assert!(has(&world, SWITCH).keys.is_empty());
    let did = [HotAction::Added, HotAction::Unpinned, HotAction::Removed];
    assert_eq!(log(&world), did.map(|did| (did, "p".to_owned())));

    let long = vec![0; wire::KEY_MAX + 1];
    assert!(world.controller.pin(world.now, "a", &long).is_err());
    assert!(world.controller.pin(world.now, "nowhere", b"p").is_err());
    for pin in 0..PINS_MAX {
        world.controller.pin(world.now, "a", pin.to_string().as_bytes()).unwrap();
    }
    assert!(world.controller.pin(world.now, "a", b"more").is_err());
    world.live();
    assert_eq!(has(&world, SWITCH).keys.len(), PINS_MAX);
}

#[test]
fn a_key_that_only_an_operator_kept_hot_goes_with_the_wish() {
    let mut world = world();
    let asked_for = |world: &mut World, reads: u64| {
        world.member(node(2)).told = vec![asked("k", reads, 0)];
        world.live();
    };
    // Warm enough to stay if it had come by itself, and not to come.
    asked_for(&mut world, 15);
    world.controller.pin(world.now, "a", b"k").unwrap();
    world.live();
    assert!(entry(has(&world, SWITCH), "k").is_some());
    world.controller.unpin(world.now, "a", b"k").unwrap();
    let took = world.live_until(|world| has(world, SWITCH).keys.is_empty());
    assert!(took < POLL, "it does not have to be cold for a while: {took:?}");
    world.live_until(agreed);
    let why = world.status().hot_decisions.last().unwrap().why.clone();
    assert!(why.contains("nobody wants it any more"), "{why}");

    // One that is hot stays, and goes as any other when it has become cold.
    world.controller.pin(world.now, "a", b"k").unwrap();
    asked_for(&mut world, 1_000);
    world.controller.unpin(world.now, "a", b"k").unwrap();
    world.live_for(Duration::from_secs(3));
    assert!(entry(has(&world, SWITCH), "k").is_some());
    asked_for(&mut world, 15);
    world.live_for(Duration::from_secs(3));
    assert!(entry(has(&world, SWITCH), "k").is_some());
    asked_for(&mut world, 10);
    let took = world.live_until(|world| has(world, SWITCH).keys.is_empty());
    assert!(took > Duration::from_millis(1_500), "{took:?}");
}

/// Keys of keyspace a that have one keyhash, as the two words of their bytes are hashed.
const TWINS: [&[u8]; 2] = [
    b"\xc0\x39\x42\xea\x7b\x73\x83\x67\x12\x73\xef\x68\x4c\xc5\x30\xc4",
    b"\xab\x5c\x3b\x9d\x1a\x0a\xa2\x46\x33\x52\x96\x09\x3b\xbc\x55\xaf",
];

#[test]
fn a_pinned_key_takes_the_place_of_another_with_its_keyhash_and_of_no_pinned_one() {
    let mut world = world();
    let [one, other] = TWINS;
    let keyspace = world.map().keyspaces[0].clone();
    assert_eq!(keyspace.keyhash(one), keyspace.keyhash(other));
    let hot = HotKey { key: one.to_vec(), ..asked("", 1_000, 0) };
    world.member(node(2)).told = vec![hot];
    world.live();
    let present = |world: &World| -> Vec<Vec<u8>> {
        has(world, SWITCH).keys.iter().map(|it| it.key.clone()).collect()
    };
    assert_eq!(present(&world), [one]);
    world.controller.pin(world.now, "a", other).unwrap();
    world.live();
    assert_eq!(present(&world), [other]);
    assert!(agreed(&world));
    let order = has(&world, SWITCH);
    assert_eq!(
        order.keys[0].generation,
        Generation::begun_by(order.revision),
        "nothing is taken over from the other"
    );
    let decisions = world.status().hot_decisions;
    let removed = decisions.iter().find(|it| it.did == HotAction::Removed).unwrap();
    assert!(removed.name.key == one && removed.why.contains("same keyhash"), "{removed:?}");
    let refused = world.controller.pin(world.now, "a", one).unwrap_err();
    assert!(refused.to_string().contains("has the same keyhash"), "{refused}");
    world.controller.unpin(world.now, "a", other).unwrap();
    world.controller.pin(world.now, "a", one).unwrap();
    world.live();
    assert_eq!(present(&world), [one]);
}

#[test]
fn a_store_from_before_there_were_pins_is_read() {
    let world = world();
    let mut saved = serde_json::to_value(world.saved.clone().unwrap()).unwrap();
    assert!(saved.as_object_mut().unwrap().remove("pins").is_some());
    let saved: Saved = serde_json::from_value(saved).unwrap();
    assert!(saved.pins.is_empty());
    Controller::new(world.config.clone(), Some(saved.clone()), world.now).unwrap();
    let mut damaged = saved;
    damaged.pins.insert(KeyName { keyspace: KeyspaceId(9), key: b"k".to_vec() });
    Controller::new(world.config, Some(damaged), world.now).unwrap_err();
}
