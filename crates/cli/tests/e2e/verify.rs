//! Replicas that are compared while they serve.

use testkit::program::Up;

#[test]
fn replicas_are_compared_and_the_status_says_so() {
    let up = Up::start(&["--nodes", "3", "--replicas", "3", "--partitions", "4"]);
    for n in 0..200 {
        up.run(&["put", &format!("key-{n}"), "value"]).expect(0);
    }
    let status = up.run(&["status"]).expect(0);
    assert!(status.stdout.contains("replicas were not compared"), "{status:?}");

    let ran = up.run(&["cluster", "verify", "--mend"]).expect(0);
    assert!(ran.stdout.contains("compared  200 keys of "), "{ran:?}");
    assert!(ran.stdout.contains("all replicas agree"), "{ran:?}");
    let status = up.run(&["status"]).expect(0);
    assert!(status.stdout.contains("all replicas agree"), "{status:?}");

    let one = up.run(&["cluster", "verify", "--partition", "2", "--json"]).expect(0).json();
    assert_eq!((&one["partitions"], &one["done"]), (&1.into(), &1.into()), "{one:#}");
    let none = up.run(&["cluster", "verify", "--partition", "99"]);
    assert_ne!(none.code, Some(0));
    assert!(none.stderr.contains("no partition 99"), "{none:?}");
}
