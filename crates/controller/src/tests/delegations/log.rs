//! What the log says of delegations.

use super::*;
use crate::HotNews;

#[test]
fn the_log_says_what_became_of_the_writes_of_a_delegation() {
    let mut asked = Asked::delegated();
    let begun = last(&asked.world);
    assert_eq!((begun.did, begun.nodes.as_str()), (HotAction::DelegationBegun, "0-4"));
    asked.live_for(4 * SECOND);
    let effect = last(&asked.world).effect;
    assert!((4_000..=5_200).contains(&effect.counted_ms) && effect.writes_home == 0, "{effect:?}");
    let near = |rate: u64, wanted: u64| rate.abs_diff(wanted) <= wanted / 10;
    assert!(near(effect.writes_spread, effect.counted_ms), "{effect:?}");
    let [reads, writes] = effect.rates().unwrap();
    assert!(near(reads, 100) && near(writes, 1_000), "{effect:?}");
    asked.rates = [100, 1_000, 1];
    asked.live_until(|world| delegation(world).is_none());
    asked.rates = [100, 800, 0];
    asked.live_for(SECOND / 2);
    let effect = last(&asked.world).effect;
    assert!(effect.writes_home > 0 && effect.writes_spread == 0, "{effect:?}");
    let news = std::iter::from_fn(|| asked.world.controller.poll_hot_news());
    let came = news.filter_map(|news| match news {
        HotNews::CameOf(it) => Some((it.did, it.effect.counted_ms)),
        HotNews::Decided(_) => None,
    });
    let came: Vec<_> = came.collect();
    let of_delegation: Vec<_> =
        came.iter().filter(|(did, _)| *did == HotAction::DelegationBegun).collect();
    let [(_, counted)] = of_delegation[..] else { panic!("once: {came:?}") };
    assert!((2_000..3_000).contains(counted), "soon: {came:?}");
}
