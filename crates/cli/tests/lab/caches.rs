//! Keys that a cache holds, between real processes, with the switch in the kernel.

use crate::metrics::sum;
use crate::rack::{Lab, can_build, can_load_programs};
use crate::tests::MACHINE;
use client::blocking::{Client, Space};
use client::{Options, PutOptions};
use lab::hammer::wait;
use runtime::up::HASH_KEYSPACE;
use std::net::SocketAddr;
use std::sync::PoisonError;
use testkit::program::run;

const KEY: &str = "k";

/// Reads from one look at the counters to the next.
const READS: u64 = 200;

fn put(space: &Space, value: u64) {
    let put = space.put(KEY.as_bytes(), value.to_string().as_bytes(), PutOptions::default());
    put.into_result().expect("it is written");
}

fn read(space: &Space) -> u64 {
    let found = space.get(KEY.as_bytes()).into_result().expect("it is answered");
    String::from_utf8(found.expect("it is there").value).unwrap().parse().unwrap()
}

/// Reads what was written last, again and again.
fn read_many(space: &Space, value: u64) {
    (0..READS).for_each(|_| assert_eq!(read(space), value));
}

/// What the cache says of itself.
fn cache(lab: &str, what: &str) -> u64 {
    let words = ["lab", "run", "--name", lab, "--", "keyway", "cache", "list", "--json"];
    let said = run(&words).expect(0).json();
    said[what].as_u64().unwrap_or_else(|| panic!("{said:#}"))
}

/// Reads until most of what is asked goes from the program in the kernel to the cache, and is
/// answered there.
fn read_until_cached(lab: &str, switch: SocketAddr, space: &Space, value: u64) {
    let counted = || {
        let of = |metric| sum(switch, metric);
        let cached = of("keyway_switch_cached_reads_total");
        [cache(lab, "hits"), cached, of("keyway_switch_in_kernel_total")]
    };
    let answered = wait(|| {
        let before = counted();
        read_many(space, value);
        let after = counted();
        // Each read is two datagrams: that of the client and its answer.
        let wanted = [READS, READS, 2 * READS];
        before
            .iter()
            .zip(&after)
            .zip(wanted)
            .all(|((old, new), all)| new - old >= all)
            .then_some(())
    });
    assert!(answered.is_some(), "{:?}", counted());
}

#[test]
fn a_switch_in_the_kernel_sends_a_cache_the_keys_that_it_holds() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let test = "a_switch_in_the_kernel_sends_a_cache_the_keys_that_it_holds";
    if !can_build(test) || !can_load_programs(test) {
        return;
    }
    let options = ["--nodes", "3", "--replicas", "2", "--caches", "1", "--plane", "xdp"];
    let lab = Lab::up(&options);
    let address = |what: &str| lab.ready[what].as_str().unwrap().parse::<SocketAddr>().unwrap();
    let (service, controller) = (address("service"), address("admin"));
    let switch = SocketAddr::new(service.ip(), controller.port());
    let name = lab.name().to_owned();
    lab.on("c0", || {
        let client = Client::connect(service, Options::default()).unwrap();
        let space = client.keyspace(HASH_KEYSPACE).unwrap();
        put(&space, 0);
        read_until_cached(&name, switch, &space, 0);
        // Nobody sees what was before a write that was answered.
        for value in 1..=100 {
            put(&space, value);
            assert_eq!(read(&space), value);
        }
        read_until_cached(&name, switch, &space, 100);
    });
    let explain = ["keyway", "explain", KEY, "--plane", "xdp", "--json"];
    let said = lab.run(0, &explain).expect(0).json();
    assert_eq!((&said["cache"], &said["in_kernel_agrees"]), (&1.into(), &true.into()), "{said:#}");
    lab.on("c0", || {
        assert_eq!(sum(switch, "keyway_switch_cache_rules"), cache(&name, "rules"));
    });
    assert_eq!(lab.interrupt(), Some(0));
}
