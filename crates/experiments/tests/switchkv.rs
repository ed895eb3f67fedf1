//! What a cache node does for a rack, held to what the popularity of keys says.

use experiments::paper::{Arm, Caches, Load, Rack, RackSpec, Skew, highest};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn spec(arm: Arm) -> RackSpec {
    let caches = Caches { items: 200, ..Caches::SWITCHKV };
    RackSpec { arm, caches, once: true, ..RackSpec::new(16, 50_000, 1) }
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

/// The table of `docs/evaluation/switchkv.md`.
#[test]
fn throughput_against_skew() {
    let caches = Caches { items: 1_000, ..Caches::SWITCHKV };
    for theta in [0.9, 0.99, 1.1, 1.2] {
        for arm in [Arm::Hashing, Arm::Copies, Arm::CacheNodes] {
            let load = Load::only_reads(Skew::Zipf(theta));
            let mut rack =
                Rack::new(RackSpec { keys: 100_000, stored: 100_000, caches, ..spec(arm) });
            let best = highest(&mut rack, &load, 200 * MS);
            let (bounds, trial) = (best.bounds, best.trial.expect("some rate is served in time"));
            let served = trial.throughput();
            println!("zipf {theta}, {}: {served:.0}/s, {bounds:?}", arm.name());
            println!("  hits {:.3}, cache busy {:.2}", trial.by_caches, trial.cache_busy);
            if arm == Arm::CacheNodes {
                assert!(served > 0.85 * bounds.lent, "zipf {theta}: {served} of {bounds:?}");
            }
        }
    }
}
