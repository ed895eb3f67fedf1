//! Which keys of a shard are asked for most: the load tracker of SwitchKV section 3.2.1, and the
//! log of section 3.2.2 ([`Recent`]), by which it is known at once. What the controller is told is
//! [`Heat`]; what caches are told is made of the same parts, in `lending`.
//!
//! Time is cut into segments. In each, a space-saving counter finds the keys with the most
//! requests; at its end they are blended into the list of hot keys, in which what is past counts
//! half as much with each segment ([`Track`]). Nobody has to be hot for long to be noticed, and
//! what was hot is soon forgotten.
//!
//! That is done twice: in short segments, which say at once what is much, and of what is little
//! only that it may be; and in long ones, made of the short, which say how much the little is.

mod frequencies;
mod named;
mod ranks;
mod recent;
mod track;

use cluster::{HotKey, KeyspaceId};
use frequencies::Found;
pub use frequencies::{Frequencies, Use};
use machine::{Instant, LoadMetric};
pub use recent::{Recent, Seen};
use std::collections::BTreeMap;
use std::time::Duration;
pub use track::HOT_MAX;
pub(crate) use track::Track;

/// The hot keys of a shard.
#[derive(Debug)]
pub(crate) struct Heat {
    /// In segments of a tenth of a second.
    quick: Track,
    /// In segments of a second.
    steady: Track,
    /// Requests of keys that are delegated which nobody could serve, in this segment and in the
    /// last.
    missed: [Missed; 2],
    /// How often there was something that should be reported at once.
    alerts: u64,
    /// Requests for a key in one segment from which on they may be a burst.
    burst_min: u32,
}

/// By keyspace and key.
type Missed = BTreeMap<(KeyspaceId, Box<[u8]>), Misses>;

/// Requests of one key that nobody could serve.
#[derive(Clone, Copy, Debug, Default)]
struct Misses {
    /// Those that only its home can serve. However few they are, it has to come home.
    home_only: u64,
    /// Reads that another node should have served.
    missed: u64,
}

impl Heat {
    /// That of a shard that can serve so many requests per second; 0: it does not say.
    pub(crate) fn new(now: Instant, rate: u32) -> Self {
        let [quick, steady] = [QUICK, STEADY].map(|metric| Track::new(now, metric, HOT_MAX));
        let burst_min = match rate / BURST_PART {
            _ if rate == 0 => BURST_MIN,
            much => much.clamp(BURST_LEAST, BURST_MIN),
        };
        Self { quick, steady, missed: Default::default(), alerts: 0, burst_min }
    }

    /// How often there was something that should be reported at once: a [burst](Self::is_burst), or
    /// a key that is delegated and wanted at home.
    pub(crate) fn alerts(&self) -> u64 {
        self.alerts
    }

    /// A client asked for this key, and was served. If it gets hotter here, or its reads have moved
    /// here, that is no news: the switch knows that it is hot and counts it, or nobody could do
    /// anything about it.
    pub(crate) fn see_hot(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8], of: Use) {
        self.quick.segment.see(keyspace, keyhash, key, of);
    }

    /// A client asked for this key, and was served.
    pub(crate) fn see(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8], of: Use) {
        let seen = self.quick.segment.see(keyspace, keyhash, key, of);
        let news = seen == self.burst_min || seen > self.burst_min && seen.is_power_of_two();
        if news {
            // If nobody asks for it until the segment ends, which it cannot have lasted for yet.
            let least = u64::from(seen) * SEGMENTS_PER_SECOND;
            self.alerts += u64::from(self.is_burst(keyspace, key, least));
        }
    }

    /// Whether a key is asked for at twice the rate that was expected, or more, by what was seen of
    /// it up to the last segment's end. Who was not in that list was not more than its last.
    fn is_burst(&self, keyspace: KeyspaceId, key: &[u8], rate: u64) -> bool {
        let hot = &self.quick.hot;
        let known = hot.iter().find(|it| it.keyspace == keyspace && it.key == key);
        let expected = known.or(hot.get(HOT_MAX - 1)).map_or(0, HotKey::rate);
        rate >= 2 * expected
    }

    /// A client asked for what only the home of this key can do, which is delegated.
    pub(crate) fn see_home_only(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        self.see_miss(keyspace, key, |misses| misses.home_only += 1);
    }

    /// A client read this key, which is delegated, and nobody was found who holds it.
    pub(crate) fn see_missed(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        self.see_miss(keyspace, key, |misses| misses.missed += 1);
    }

    fn see_miss(&mut self, keyspace: KeyspaceId, key: &[u8], count: impl FnOnce(&mut Misses)) {
        let [present, _] = &mut self.missed;
        let place = (keyspace, key.into());
        let known = present.contains_key(&place);
        if present.len() < HOT_MAX || known {
            count(present.entry(place).or_default());
            self.alerts += u64::from(!known);
        }
    }

    /// The hottest keys up to the last segment's end, the hottest first; and those that the present
    /// one, however young, shows to be much hotter: a burst need not wait for its end.
    pub(crate) fn hot(&self, now: Instant) -> Vec<HotKey> {
        let mut list = self.quick.hot.clone();
        for little in list.iter_mut().filter(|it| it.rate() < QUICK_MIN) {
            (little.reads, little.writes, little.steps) = (0, 0, 0);
        }
        for it in &self.steady.hot {
            raise(&mut list, HotKey { home_only: 0, ..it.clone() });
        }
        self.add_bursts(now, &mut list);
        list.retain(|it| it.rate() > 0 || it.home_only > 0);
        list.sort_by(HotKey::hottest_first);
        let mut places = 0..HOT_MAX;
        list.retain(|it| places.next().is_some() || it.steps > 0);
        for ((keyspace, key), misses) in self.missed.iter().flatten() {
            let [home_only, missed] =
                [misses.home_only, misses.missed].map(|it| it * SEGMENTS_PER_SECOND);
            let known = list.iter_mut().find(|it| it.keyspace == *keyspace && *it.key == **key);
            match known {
                Some(known) => {
                    (known.home_only, known.missed) =
                        (known.home_only + home_only, known.missed + missed)
                }
                None => {
                    let (keyspace, key) = (*keyspace, key.to_vec());
                    list.push(HotKey { keyspace, key, home_only, missed, ..HotKey::default() });
                }
            }
        }
        list
    }

    fn add_bursts(&self, now: Instant, list: &mut Vec<HotKey>) {
        let lasts = self.quick.lasts(now).max(BURST_TIME_MIN);
        let enough = |found: &Found<'_>| found.reads.saturating_add(found.writes) >= self.burst_min;
        for found in self.quick.segment.top(HOT_MAX).take_while(enough) {
            let burst = found.rated(lasts);
            if self.is_burst(burst.keyspace, &burst.key, burst.rate()) {
                raise(list, burst);
            }
        }
    }

    /// Ends the present short segment, and the long one with the last of its short ones.
    pub(crate) fn end_segment(&mut self, now: Instant) {
        self.steady.segment.add(&self.quick.segment);
        self.quick.end_segment(now);
        if now >= self.steady.ends() {
            self.steady.end_segment(now);
        }
        let [present, last] = &mut self.missed;
        *last = std::mem::take(present);
    }
}

/// Puts a key into a list with this rate, unless it is there with more.
fn raise(list: &mut Vec<HotKey>, key: HotKey) {
    match list.iter_mut().find(|it| it.keyspace == key.keyspace && it.key == key.key) {
        None => list.push(key),
        Some(known) if known.rate() >= key.rate() => {}
        Some(known) => {
            (known.reads, known.writes, known.steps) = (key.reads, key.writes, key.steps);
            known.home_only = known.home_only.max(key.home_only);
        }
    }
}

/// Short segments last a tenth of a second.
const SEGMENTS_PER_SECOND: u64 = 10;

/// Short segments say nothing of a key with fewer requests per second: those are fewer than three
/// in one of them.
const QUICK_MIN: u64 = 25;

/// Whoever has a shard ends its short segments.
const QUICK: LoadMetric =
    LoadMetric { segment: Duration::from_millis(1_000 / SEGMENTS_PER_SECOND), ..STEADY };

/// Long segments last for so long at least. What is past counts half as much with each, so a rate
/// is of about three: ten requests a second are known to a fifth.
const STEADY: LoadMetric = LoadMetric { segment: Duration::from_secs(1), newest_permille: 500 };

/// Requests for a key from which on a segment that has not ended says something of its rate: the
/// standard deviation of such a count is a quarter of it.
const BURST_MIN: u32 = 16;

/// Of a shard that says how much it can serve per second, that over this says so: an eighth of what
/// it can serve in a segment. So slow a node is full of such a key before the next poll.
const BURST_PART: u32 = 80;

/// But no fewer than so many do, of which the standard deviation is a third: by chance hardly any
/// of the keys that are asked for ten times a second is asked for so often in one segment.
const BURST_LEAST: u32 = 8;

/// Of a segment that is younger, rates are taken as if it were so old: what comes at once, such as
/// the datagrams of one batch, says nothing of a rate.
const BURST_TIME_MIN: Duration = Duration::from_millis(20);

/// Alerts of a node follow each other no sooner than this: so long may be spent on the last one.
pub const ALERT_REST: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: KeyspaceId = KeyspaceId(1);

    fn second(heat: &mut Heat, now: &mut Instant, reads: u32, of: &[u8]) {
        for _ in 0..reads {
            heat.see(SPACE, 7, of, Use::Read);
        }
        *now = *now + Duration::from_secs(1);
        heat.end_segment(*now);
    }

    #[test]
    fn a_steady_load_is_told_as_it_is_and_what_has_ended_is_forgotten() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        for _ in 0..10 {
            second(&mut heat, &mut now, 1_000, b"hot");
        }
        let [only] = &heat.hot(now)[..] else { panic!("{:?}", heat.hot(now)) };
        assert!((990..=1_000).contains(&only.reads) && only.writes == 0, "{only:?}");
        second(&mut heat, &mut now, 10, b"another");
        assert_eq!(heat.hot(now).first().map(|it| it.key.as_slice()), Some(&b"another"[..]));
        assert_eq!(heat.hot(now).len(), 1, "only keys of the last segment's list are kept");
    }

    #[test]
    fn what_is_asked_a_few_times_a_second_is_told_as_it_is_and_not_by_chance() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        let mut others = 0_u64..;
        let mut told = Vec::new();
        for segment in 0..80 {
            heat.see(SPACE, 7, b"tenth", Use::Read);
            for other in others.by_ref().take(12) {
                // By chance the same one three times.
                for _ in 0..if other % 12 == 0 { 3 } else { 1 } {
                    heat.see(SPACE, other, &other.to_be_bytes(), Use::Read);
                }
            }
            now = now + Duration::from_millis(100);
            heat.end_segment(now);
            told = heat.hot(now);
            let first = told.first().map(|it| (it.key.as_slice(), it.reads));
            match segment {
                0..9 => assert_eq!(first, None, "{segment}"),
                9..29 => assert!(first.is_some_and(|(key, _)| key == b"tenth"), "{segment}"),
                _ => assert!(matches!(first, Some((b"tenth", 8..=10))), "{segment}: {first:?}"),
            }
        }
        let chance = told.get(1).expect("others are told, too");
        assert!(chance.reads <= 2, "{chance:?}");
        (0..3).for_each(|_| second(&mut heat, &mut now, 0, b"nothing"));
        assert_eq!(heat.hot(now), []);
    }

    #[test]
    fn a_burst_is_told_before_its_segment_ends() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        second(&mut heat, &mut now, 1_000, b"steady");
        let see = |heat: &mut Heat, times: u32, key: &[u8]| {
            for time in 0..times {
                let of = if time % 8 == 0 { Use::Write } else { Use::Read };
                heat.see(SPACE, u64::from(key[0]), key, of);
            }
        };
        let before = heat.alerts();
        let alerts = |heat: &Heat| heat.alerts() - before;
        let later = now + Duration::from_millis(50);
        see(&mut heat, 15, b"burst");
        assert_eq!((heat.hot(later).len(), alerts(&heat)), (1, 0), "that may be chance");
        see(&mut heat, 17, b"burst");
        assert_eq!(alerts(&heat), 2, "at 16 and at 32");
        let told = |heat: &Heat, at: Instant| -> Vec<_> {
            heat.hot(at).into_iter().map(|it| (it.key, it.reads, it.writes)).collect()
        };
        let steady = (b"steady".to_vec(), 500, 0);
        let burst = |reads, writes| (b"burst".to_vec(), reads, writes);
        assert_eq!(told(&heat, later), [burst(540, 100), steady.clone()]);
        assert_eq!(told(&heat, now), [burst(1_350, 250), steady.clone()], "they may be one batch");
        see(&mut heat, 49, b"steady");
        assert_eq!(told(&heat, later), [burst(540, 100), steady], "it may be chance");
        see(&mut heat, 78, b"steady");
        assert_eq!(alerts(&heat), 2, "500 a second were known");
        see(&mut heat, 1, b"steady");
        assert_eq!(alerts(&heat), 3, "more than twice as many by now");
        let steady = (b"steady".to_vec(), 2_200, 360);
        assert_eq!(told(&heat, later), [steady, burst(540, 100)]);
    }

    #[test]
    fn of_a_shard_that_can_serve_little_fewer_requests_are_a_burst() {
        let now = Instant::from_unix_ms(1_000);
        for (rate, first) in [(0, 16), (100, 8), (640, 8), (1_000, 12), (1_280, 16), (u32::MAX, 16)]
        {
            let mut heat = Heat::new(now, rate);
            let mut alerts = Vec::new();
            for requests in 1..=32 {
                let before = heat.alerts();
                heat.see(SPACE, 7, b"key", Use::Read);
                let is_told = !heat.hot(now + Duration::from_millis(50)).is_empty();
                assert_eq!(is_told, requests >= first, "{requests} of {rate}");
                alerts.extend((heat.alerts() > before).then_some(requests));
            }
            let more = [16, 32].into_iter().filter(|it| *it > first);
            assert_eq!(alerts, [first].into_iter().chain(more).collect::<Vec<_>>(), "{rate}");
        }
    }

    #[test]
    fn a_burst_of_a_key_that_is_known_to_be_hot_is_told_and_no_alert() {
        let now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        (0..500).for_each(|_| heat.see_hot(SPACE, 7, b"key", Use::Read));
        let told = heat.hot(now + Duration::from_millis(100));
        assert_eq!((told[0].reads, heat.alerts()), (5_000, 0));
        (0..12).for_each(|_| heat.see(SPACE, 7, b"key", Use::Read));
        assert_eq!(heat.alerts(), 1, "at 512: the switch does not know it any more");
    }

    #[test]
    fn a_key_below_a_full_list_is_no_burst_as_long_as_it_is_not_twice_the_last_of_it() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        let see = |heat: &mut Heat, key: u8, times: u32| {
            (0..times).for_each(|_| heat.see(SPACE, key.into(), &[key], Use::Read));
        };
        for _ in 0..20 {
            (0..=u8::try_from(HOT_MAX).unwrap()).for_each(|key| see(&mut heat, key, 100));
            now = now + Duration::from_millis(100);
            heat.end_segment(now);
        }
        let before = heat.alerts();
        (0..=u8::try_from(HOT_MAX).unwrap()).for_each(|key| see(&mut heat, key, 199));
        assert_eq!(heat.alerts(), before);
        see(&mut heat, 99, 256);
        assert_eq!(heat.alerts(), before + 1, "with the 256th");
    }

    #[test]
    fn reads_and_writes_are_told_apart_and_keyspaces_too() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        for _ in 0..400 {
            heat.see(SPACE, 7, b"key", Use::HomeOnlyWrite);
            heat.see(KeyspaceId(2), 7, b"key", Use::Read);
            heat.see(KeyspaceId(2), 7, b"key", Use::Write);
        }
        now = now + Duration::from_secs(1);
        heat.end_segment(now);
        let told: Vec<_> = heat
            .hot(now)
            .iter()
            .map(|it| (it.keyspace, it.reads, it.writes, it.home_only))
            .collect();
        assert_eq!(told, [(KeyspaceId(2), 200, 200, 0), (SPACE, 0, 200, 200)]);
    }

    #[test]
    fn writes_that_nobody_else_counts_are_told_of_beyond_the_hottest_keys() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        for _ in 0..10 {
            for key in 0..40_u8 {
                (0..8).for_each(|_| heat.see(SPACE, key.into(), &[key], Use::HomeOnlyWrite));
            }
            for key in 90..130_u8 {
                (0..4).for_each(|_| heat.see(SPACE, key.into(), &[key], Use::Step));
            }
            heat.see(SPACE, 90, &[90], Use::Read);
            now = now + Duration::from_millis(100);
            heat.end_segment(now);
        }
        let (told, beyond) = (heat.hot(now), |it: &&HotKey| it.steps > 0);
        let steps: Vec<&HotKey> = told.iter().filter(beyond).collect();
        assert_eq!((told.len() - steps.len(), steps.len()), (HOT_MAX, HOT_MAX));
        let first = steps[0];
        assert_eq!(
            (&first.key[..], first.reads, first.writes, first.steps),
            (&[90][..], 9, 39, 39)
        );
        let joint = HotKey::join(told.iter().chain(&told), HOT_MAX);
        assert_eq!(joint.iter().filter(beyond).map(|it| it.steps).max(), Some(78));
        assert_eq!(heat.hot(now).len(), joint.len());
    }

    #[test]
    fn a_key_that_is_wanted_at_home_is_told_of_however_cold_it_is_and_for_two_segments() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut heat = Heat::new(now, 0);
        for key in 0..64_u8 {
            (0..40).for_each(|_| heat.see(SPACE, key.into(), &[key], Use::Read));
        }
        let before = heat.alerts();
        heat.see_home_only(SPACE, b"delegated");
        (0..3).for_each(|_| heat.see_missed(SPACE, b"delegated"));
        assert_eq!(heat.alerts(), before + 1, "once in a segment");
        let told = |heat: &Heat, now| {
            heat.hot(now).last().map(|it| (it.key.clone(), it.home_only, it.missed))
        };
        assert_eq!(told(&heat, now), Some((b"delegated".to_vec(), 10, 30)));
        for wanted in [true, false] {
            now = now + Duration::from_millis(100);
            heat.end_segment(now);
            let [home_only, missed] = [|it: &HotKey| it.home_only, |it: &HotKey| it.missed];
            let any = |of: fn(&HotKey) -> u64| heat.hot(now).iter().any(|it| of(it) > 0);
            assert_eq!([any(home_only), any(missed)], [wanted; 2]);
        }
    }
}
