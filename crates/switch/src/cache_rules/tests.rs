//! Rules that come, go and are forgotten, and who is told of it.

use super::*;

const SPACE: KeyspaceId = KeyspaceId(3);

/// The first shard of a cache.
fn cache(id: u16) -> CacheShard {
    CacheShard { cache: CacheId(id), shard: 0 }
}

fn changes(of: &[(u8, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (adds, keyhash) in of {
        let (adds, keyspace, keyhash) = (*adds == 1, SPACE.0, *keyhash);
        let rule = CacheRule { adds, keyspace, keyhash, match_bits: Some(!keyhash) };
        CacheRules::push(&mut payload, &rule);
    }
    payload
}

fn change(
    rules: &RuleTable,
    now: Instant,
    by: u16,
    at: (u64, u64),
    of: &[(u8, u64)],
) -> Option<u64> {
    change_by(rules, now, cache(by), at, of)
}

fn change_by(
    rules: &RuleTable,
    now: Instant,
    by: CacheShard,
    at: (u64, u64),
    of: &[(u8, u64)],
) -> Option<u64> {
    let payload = changes(of);
    let header = wire::Header { op: wire::Op::CacheRules as u8, ..wire::Header::default() };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[&payload]);
    let packet = wire::Packet::parse(&bytes).expect("it is sound");
    let Ok(wire::Body::Cache(wire::CacheMessage::Rules(parsed))) = packet.body() else {
        panic!("these are rules");
    };
    rules.change(now, by, at, &parsed)
}

#[test]
fn changes_are_taken_in_their_order_and_a_gap_is_said() {
    let (rules, now) = (RuleTable::default(), Instant::from_unix_ms(1_000));
    assert_eq!(rules.find(now, SPACE, 7), None);
    assert_eq!(change(&rules, now, 2, (1, 0), &[(1, 7), (1, 8)]), Some(2));
    assert_eq!(change(&rules, now, 2, (1, 3), &[(0, 7)]), Some(2), "the third is missing");
    assert_eq!(rules.find(now, SPACE, 7), Some(cache(2)));
    assert_eq!(rules.find(now, KeyspaceId(4), 7), None);
    assert_eq!(change(&rules, now, 2, (1, 1), &[(1, 8), (1, 9), (0, 7)]), Some(4));
    assert_eq!((rules.find(now, SPACE, 7), rules.count()), (None, 2));
}

#[test]
fn another_stream_replaces_all_of_the_cache_and_an_older_one_nothing() {
    let (rules, now) = (RuleTable::default(), Instant::from_unix_ms(1_000));
    change(&rules, now, 0, (5, 0), &[(1, 7)]);
    change(&rules, now, 1, (1, 0), &[(1, 8)]);
    assert_eq!(change(&rules, now, 0, (4, 0), &[(1, 9)]), None, "it is over");
    assert_eq!(change(&rules, now, 0, (6, 0), &[(1, 9)]), Some(1));
    let found = [7, 8, 9].map(|hash| rules.find(now, SPACE, hash));
    assert_eq!(found, [None, Some(cache(1)), Some(cache(0))]);
}

#[test]
fn shards_of_a_cache_have_streams_and_rules_of_their_own() {
    let (rules, now) = (RuleTable::default(), Instant::from_unix_ms(1_000));
    let last = CacheShard { cache: CacheId(15), shard: cluster::CACHE_SHARDS_MAX - 1 };
    assert_eq!(shard_of(bits_of(last)), Some(last));
    assert_eq!(shard_of(bits_of(cache(0))), Some(cache(0)));
    let second = CacheShard { shard: 1, ..cache(2) };
    let takes = |by, at, of: &[(u8, u64)]| change_by(&rules, now, by, at, of);
    assert_eq!(takes(cache(2), (5, 0), &[(1, 7)]), Some(1));
    assert_eq!(takes(second, (4, 0), &[(1, 8)]), Some(1), "another stream");
    let found = || [7, 8].map(|hash| rules.find(now, SPACE, hash));
    assert_eq!(found(), [Some(cache(2)), Some(second)]);
    assert_eq!(takes(second, (6, 0), &[]), Some(0), "it begins anew, and nobody else");
    assert_eq!(found(), [Some(cache(2)), None]);
}

#[test]
fn a_cache_that_is_not_heard_has_no_rules_until_it_is_heard_again() {
    let (rules, now) = (RuleTable::default(), Instant::from_unix_ms(1_000));
    change(&rules, now, 0, (5, 0), &[(1, 7)]);
    let late = now + RULES_LAST;
    assert_eq!(rules.find(late, SPACE, 7), None);
    assert_eq!(change(&rules, late, 0, (5, 1), &[]), Some(1));
    assert_eq!(rules.find(late, SPACE, 7), Some(cache(0)));
    let later = late + RULES_LAST;
    assert_eq!(change(&rules, later, 0, (2, 0), &[]), Some(0), "its clock was set back");
    assert_eq!(rules.find(later, SPACE, 7), None);
}

/// Notes what it is told.
#[derive(Clone, Debug, Default)]
struct Notes(std::sync::Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: String) {
        self.0.lock().expect("nobody panics").push(note);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }
}

impl RuleWatch for Notes {
    fn changed(&self, cache: CacheId, rule: &CacheRule) {
        let CacheRule { adds, keyhash, match_bits, .. } = rule;
        assert_eq!(*match_bits, Some(!keyhash));
        self.add(format!("{cache}: {keyhash} {}", u8::from(*adds)));
    }

    fn forgotten(&self, cache: CacheId) {
        self.add(format!("{cache}: nothing"));
    }

    fn heard(&self, cache: CacheId, until: Instant) {
        self.add(format!("{cache}: until {}", until.0));
    }
}

#[test]
fn who_watches_is_told_of_what_really_changes() {
    let (notes, now) = (Notes::default(), Instant::from_unix_ms(1_000));
    let rules = RuleTable::watched_by(Box::new(notes.clone()));
    let heard = format!("2: until {}", (now + RULES_LAST).0);
    change(&rules, now, 2, (5, 0), &[(1, 7), (1, 7), (0, 8), (1, 9), (0, 7)]);
    let told = ["2: nothing", &heard, "2: 7 1", "2: 9 1", "2: 7 0"];
    assert_eq!(notes.take(), told, "what was so already is no change");
    change(&rules, now, 2, (4, 0), &[(1, 1)]);
    assert_eq!(notes.take(), [""; 0], "that stream is over");
    change(&rules, now, 2, (5, 4), &[(0, 7), (0, 9)]);
    assert_eq!(notes.take(), [heard.as_str(), "2: 9 0"], "the other one was told again");
}

#[test]
fn a_rule_goes_on_when_another_with_its_bit_of_the_filter_leaves() {
    let (rules, now) = (RuleTable::default(), Instant::from_unix_ms(1_000));
    let bits_of = |hash| filter_bits(Probe::of(SPACE, hash).fingerprint);
    let shares = |hash: &u64| bits_of(*hash)[0] == bits_of(7)[1] && *hash != 7;
    let same = (8..).find(shares).expect("there are many more");
    change(&rules, now, 0, (5, 0), &[(1, 7), (1, same)]);
    change(&rules, now, 0, (5, 2), &[(0, 7)]);
    assert_eq!([7, same].map(|hash| rules.find(now, SPACE, hash)), [None, Some(cache(0))]);
    change(&rules, now, 0, (5, 3), &[(0, same)]);
    let filter = rules.memory.get().expect("there were rules").filter();
    assert!(filter.iter().all(|word| word.load(Ordering::Relaxed) == 0));
}

#[test]
fn there_is_room_for_as_many_rules_as_caches_may_have() {
    let (rules, now) = (RuleTable::default(), Instant::from_unix_ms(1_000));
    let room = cluster::Capabilities::PROGRAM.sizes.rules.expect("it is known");
    let mut rng = machine::Rng::new(7);
    let hashes: Vec<u64> = (0..room).map(|_| rng.next_u64()).collect();
    for (place, hash) in (0u64..).zip(&hashes) {
        assert_eq!(change(&rules, now, 1, (1, place), &[(1, *hash)]), Some(place + 1));
    }
    let found = hashes.iter().filter(|it| rules.find(now, SPACE, **it).is_some()).count();
    assert_eq!((found as u64, rules.count()), (room, room));
    let strange = (0..1_000_000).filter(|_| rules.find(now, SPACE, rng.next_u64()).is_some());
    assert!(strange.count() <= 1, "hardly any other key looks like one of them");
    let filter = rules.memory.get().expect("there are rules").filter();
    let passes = |bit: usize| Bit::of(filter, bit).is_set();
    let mut strange = (0..100_000).map(|_| Probe::of(SPACE, rng.next_u64()).fingerprint);
    let passed = strange.by_ref().filter(|it| filter_bits(*it).into_iter().all(passes)).count();
    assert!((400..800).contains(&passed), "{passed} of 100,000 pass the filter");
}
