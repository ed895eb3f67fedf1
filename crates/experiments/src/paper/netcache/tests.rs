//! What the cache answers, and what it must not.

use super::entry::VALUE_MAX;
use super::heat::HOT_READS;
use super::*;
use cluster::{
    Incarnation, Keyspace, KeyspaceId, KeyspaceKind, Lease, Match, NodeId, NodeSpec, Partition,
    PartitionId, SwitchControl as _, SwitchTables,
};
use std::collections::BTreeSet;
use wire::{KeyReply, Revision, Version, flag};

const INCARNATION: Incarnation = Incarnation(1);
const KEY: &[u8] = b"key";
const SWITCH: Endpoint = Endpoint { addr: [10; 16], port: 1 };
const HOME: Endpoint = Endpoint { addr: [10; 16], port: 2 };
const CLIENT: Endpoint = Endpoint { addr: [10; 16], port: 3 };

/// A switch with a cache, and the home of all keys, which knows one of them.
struct Rig {
    now: Instant,
    pipeline: Pipeline,
    cache: NetCache,
    keyspace: Keyspace,
    home: Home,
    seq: u64,
}

/// The newest state of a key, and what has become of its writes.
#[derive(Default)]
struct Home {
    version: u64,
    expiry_ms: u64,
    value: Vec<u8>,
    written: BTreeMap<u64, u64>,
}

type Sent = (Endpoint, Vec<u8>);

impl Rig {
    fn new() -> Self {
        let now = Instant::from_unix_ms(1_000);
        let mut pipeline = Pipeline::new(INCARNATION);
        let node = NodeSpec { id: NodeId(1), endpoint: HOME, shards: 1 };
        let whole = Partition {
            id: PartitionId(1),
            keyspace: KeyspaceId(1),
            last: Match(u128::MAX),
            chain: [NodeId(1)].into_iter().collect(),
            open: true,
            ..Partition::default()
        };
        let tables = SwitchTables {
            caches: Vec::new(),
            fenced: Vec::new(),
            cluster: cluster::ClusterId(0),
            revision: Revision::new(1),
            active: true,
            nodes: vec![node],
            partitions: vec![whole],
        };
        pipeline.install(&tables).expect("sound tables");
        pipeline.renew(
            now,
            &Lease {
                cluster: cluster::ClusterId(0),
                incarnation: INCARNATION,
                revision: Revision::new(1),
                from: now,
                duration_ms: 60_000,
            },
        );
        let keyspace = Keyspace {
            id: KeyspaceId(1),
            name: "cached".to_owned(),
            kind: KeyspaceKind::Hash,
            seed: 7,
            replicas: 1,
            hot: cluster::HotPolicy::Off,
            content: None,
        };
        let cache = NetCache::new(SWITCH, Rng::new(1));
        Self { now, pipeline, cache, keyspace, home: Home::default(), seq: 0 }
    }

    /// One whose key has this value, is hot and fetched.
    fn cached(value: &[u8]) -> Self {
        let mut rig = Self::new();
        rig.write(value);
        rig.heat();
        rig
    }

    /// Reads the key until it is hot, and lets the cache fetch it.
    fn heat(&mut self) {
        for _ in 0..HOT_READS {
            self.read();
        }
        let fetches = self.fetches();
        assert_eq!(fetches.len(), 1);
        fetches.iter().for_each(|fetch| self.fetched(fetch));
    }

    /// What the cache fetches at its next look.
    fn fetches(&mut self) -> Vec<Vec<u8>> {
        self.now = self.now + LOOK_EVERY;
        let sent = self.pass(CLIENT, b"no packet");
        sent.into_iter().inspect(|(to, _)| assert_eq!(*to, HOME)).map(|(_, it)| it).collect()
    }

    fn fetched(&mut self, fetch: &[u8]) {
        let answer = self.home.answer(fetch);
        assert_eq!(self.pass(HOME, &answer), [], "the answer goes no further");
    }

    /// A datagram comes to the switch.
    fn pass(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        let (mut bytes, mut out) = (datagram.to_vec(), Outbox::default());
        let Self { now, pipeline, cache, .. } = self;
        let _ = cache.process(*now, from, &mut bytes, pipeline, &mut out);
        std::iter::from_fn(|| out.pop().map(|it| (it.to, it.payload.to_vec()))).collect()
    }

    fn request(&mut self, op: Op, flags: u8, parts: &[&[u8]]) -> Vec<u8> {
        self.seq += 1;
        let header = Header {
            op: op as u8,
            flags,
            keyspace: 1,
            match_value: self.keyspace.match_value(KEY).0,
            keyhash: self.keyspace.keyhash(KEY),
            key_len: u16::try_from(KEY.len()).unwrap(),
            client: 5,
            seq: self.seq,
            ..Header::default()
        };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, parts);
        datagram
    }

    fn get(&mut self) -> Vec<u8> {
        self.request(Op::Get, 0, &[KEY])
    }

    fn put(&mut self, value: &[u8]) -> Vec<u8> {
        self.request(Op::Put, 0, &[&[0; 8], KEY, value])
    }

    /// A request on its way to the home.
    fn forward(&mut self, request: &[u8]) -> Vec<u8> {
        let sent = self.pass(CLIENT, request);
        let [(HOME, forwarded)] = sent.as_slice() else { panic!("not forwarded: {sent:?}") };
        forwarded.clone()
    }

    /// An answer on its way to the client.
    fn reply(&mut self, answer: &[u8]) {
        assert_eq!(self.pass(HOME, answer), [(CLIENT, answer.to_vec())], "it passes unchanged");
    }

    fn write(&mut self, value: &[u8]) {
        let request = self.put(value);
        self.exchange(&request);
    }

    /// A request goes to the home, is answered, and the answer comes back.
    fn exchange(&mut self, request: &[u8]) {
        let forwarded = self.forward(request);
        let answer = self.home.answer(&forwarded);
        self.reply(&answer);
    }

    /// Reads the key; returns what it is, and whether the switch answered.
    fn read(&mut self) -> (Vec<u8>, bool) {
        let request = self.get();
        let sent = self.pass(CLIENT, &request);
        let [(to, bytes)] = sent.as_slice() else { panic!("{sent:?}") };
        if *to == CLIENT {
            return (value_of(bytes, self.seq), true);
        }
        let answer = self.home.answer(bytes);
        self.reply(&answer);
        (value_of(&answer, self.seq), false)
    }

    /// Whether the switch answers reads itself, and with what.
    fn shown(&mut self) -> Option<Vec<u8>> {
        let request = self.get();
        let sent = self.pass(CLIENT, &request);
        let answered = sent.first().filter(|(to, _)| *to == CLIENT);
        answered.map(|(_, bytes)| value_of(bytes, self.seq))
    }
}

impl Home {
    /// What it answers, as a node does.
    fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let packet = Packet::parse(request).unwrap();
        let header = packet.header();
        let body = packet.body().unwrap();
        if let Body::Put { value, expiry_ms, .. } = body
            && !self.written.contains_key(&header.seq())
        {
            self.version += 1;
            (self.value, self.expiry_ms) = (value.to_vec(), expiry_ms);
            self.written.insert(header.seq(), self.version);
        }
        let written = self.written.get(&header.seq()).filter(|_| packet.op() == Op::Put);
        let mut reply = Header {
            op: packet.op().reply() as u8,
            node: 1,
            reply_addr: header.reply_addr(),
            reply_port: header.reply_port(),
            match_value: header.match_value(),
            keyhash: header.keyhash(),
            keyspace: header.keyspace(),
            client: header.client(),
            seq: header.seq(),
            ..Header::default()
        };
        let version = Version::new(written.copied().unwrap_or(self.version));
        KeyReply { version }.put(&mut reply);
        let mut answer = Vec::new();
        let fixed = GetReplyBody { expiry_ms: self.expiry_ms, now_ms: 0 }.to_bytes();
        let found: [&[u8]; 2] = [&fixed, &self.value];
        wire::emit(&mut answer, &reply, if packet.op() == Op::Get { &found } else { &[] });
        answer
    }
}

/// The value in the answer to this read.
fn value_of(answer: &[u8], seq: u64) -> Vec<u8> {
    let packet = Packet::parse(answer).unwrap();
    assert_eq!((packet.header().client(), packet.header().seq()), (5, seq));
    let Ok(Body::GetReply(entry)) = packet.body() else { panic!("{packet:?}") };
    entry.value.to_vec()
}

#[test]
fn a_hot_key_is_fetched_and_then_answered_by_the_switch_as_its_home_would() {
    let mut rig = Rig::cached(b"one");
    assert_eq!(rig.read(), (b"one".to_vec(), true));
    let (request, from) = (rig.get(), CLIENT);
    let [(_, answer)] = rig.pass(from, &request).try_into().unwrap();
    let header = *Packet::parse(&answer).unwrap().header();
    assert_eq!((KeyReply::read(&header).version, header.keyspace()), (Version::new(1), 1));
    assert_eq!(rig.fetches(), [] as [Vec<u8>; 0], "once is enough");
}

#[test]
fn a_key_that_is_not_hot_is_read_at_home() {
    let mut rig = Rig::new();
    rig.write(b"one");
    for _ in 1..HOT_READS {
        assert!(!rig.read().1);
    }
    assert_eq!(rig.fetches(), [] as [Vec<u8>; 0]);
    assert!(!rig.read().1);
}

#[test]
fn a_write_makes_the_value_invalid_on_its_way_and_its_answer_brings_the_new_one() {
    let mut rig = Rig::cached(b"one");
    let put = rig.put(b"two");
    let forwarded = rig.forward(&put);
    assert_eq!(rig.shown(), None);
    let answer = rig.home.answer(&forwarded);
    assert_eq!(rig.shown(), None);
    rig.reply(&answer);
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
}

#[test]
fn a_read_at_home_brings_the_new_value_too_and_the_writes_answer_keeps_it() {
    let mut rig = Rig::cached(b"one");
    let put = rig.put(b"two");
    let forwarded = rig.forward(&put);
    let answer = rig.home.answer(&forwarded);
    assert_eq!(rig.read(), (b"two".to_vec(), false));
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
    rig.reply(&answer);
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
}

#[test]
fn a_late_answer_does_not_bring_back_an_old_value() {
    let mut rig = Rig::cached(b"one");
    // All of these were answered before the last write, and pass the switch after its answer.
    let first = rig.put(b"two");
    let first = rig.forward(&first);
    let read = rig.get();
    let read = rig.forward(&read);
    let old_read = rig.home.answer(&read);
    let old_write = rig.home.answer(&first);
    rig.write(b"three");
    assert_eq!(rig.shown(), Some(b"three".to_vec()));
    rig.reply(&old_read);
    rig.reply(&old_write);
    assert_eq!(rig.shown(), Some(b"three".to_vec()));
}

#[test]
fn of_two_writes_on_their_way_the_one_that_was_ordered_last_counts() {
    let mut rig = Rig::cached(b"one");
    let puts = [rig.put(b"two"), rig.put(b"three")];
    let [two, three] = puts.map(|put| rig.forward(&put));
    // The later one is ordered first.
    let [three, two] = [three, two].map(|put| rig.home.answer(&put));
    rig.reply(&three);
    assert_eq!(rig.shown(), Some(b"three".to_vec()), "nobody has heard of the other one");
    rig.reply(&two);
    assert_eq!(rig.shown(), None, "its value was not kept");
    assert_eq!(rig.read(), (b"two".to_vec(), false));
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
}

#[test]
fn a_write_that_is_sent_again_brings_its_value_once_and_no_later_one_back() {
    let mut rig = Rig::cached(b"one");
    let put = rig.put(b"two");
    let copies = [rig.forward(&put), rig.forward(&put)];
    let [first, second] = copies.map(|copy| rig.home.answer(&copy));
    rig.reply(&first);
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
    rig.write(b"three");
    rig.reply(&second);
    assert_eq!(rig.shown(), Some(b"three".to_vec()));
    // Only now a copy passes on its way there, and makes nobody take its value for new.
    rig.exchange(&put);
    assert_eq!(rig.shown(), None);
    assert_eq!(rig.read(), (b"three".to_vec(), false));
}

#[test]
fn a_write_that_is_lost_leaves_reads_to_the_home_until_one_is_answered() {
    let mut rig = Rig::cached(b"one");
    let put = rig.put(b"lost");
    rig.forward(&put);
    assert_eq!(rig.read(), (b"one".to_vec(), false));
    assert_eq!(rig.shown(), Some(b"one".to_vec()));
}

#[test]
fn what_was_answered_before_the_key_was_cached_proves_nothing() {
    let mut rig = Rig::new();
    rig.write(b"one");
    let read = rig.get();
    let read = rig.forward(&read);
    let old = rig.home.answer(&read);
    rig.write(b"two");
    for _ in 0..HOT_READS {
        rig.read();
    }
    let fetches = rig.fetches();
    rig.reply(&old);
    assert_eq!(rig.shown(), None, "the newer one passed before anybody looked");
    fetches.iter().for_each(|fetch| rig.fetched(fetch));
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
    rig.reply(&old);
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
}

#[test]
fn a_fetch_without_an_answer_is_sent_again_and_one_of_an_earlier_generation_counts_for_nothing() {
    let mut rig = Rig::new();
    rig.write(b"one");
    for _ in 0..HOT_READS {
        rig.read();
    }
    let first = rig.fetches();
    let again = rig.fetches();
    assert_eq!((first.len(), again.len()), (1, 1));
    let old = rig.home.answer(first.first().unwrap());
    // The key goes, is written, and is cached again.
    let name = (1, rig.keyspace.keyhash(KEY));
    assert!(rig.cache.remove(name) && !rig.cache.remove(name));
    rig.write(b"two");
    for _ in 0..HOT_READS {
        rig.read();
    }
    let fetches = rig.fetches();
    assert_eq!(rig.pass(HOME, &old), []);
    assert_eq!(rig.shown(), None);
    fetches.iter().for_each(|fetch| rig.fetched(fetch));
    assert_eq!(rig.shown(), Some(b"two".to_vec()));
}

#[test]
fn long_values_those_that_expire_and_those_of_other_writes_are_not_cached() {
    let mut rig = Rig::cached(&[1; VALUE_MAX]);
    assert_eq!(rig.shown(), Some(vec![1; VALUE_MAX]));
    rig.write(&[2; VALUE_MAX + 1]);
    assert_eq!(rig.read(), (vec![2; VALUE_MAX + 1], false));
    assert_eq!(rig.shown(), None, "no read brings it, either");
    rig.write(&[3; VALUE_MAX]);
    assert_eq!(rig.shown(), Some(vec![3; VALUE_MAX]));
    let expires = rig.request(Op::Put, 0, &[&9_999_999_u64.to_be_bytes(), KEY, b"expires"]);
    rig.exchange(&expires);
    assert_eq!(rig.read(), (b"expires".to_vec(), false));
    assert_eq!(rig.shown(), None);
    rig.write(b"stays");
    let keeps = rig.request(Op::Put, flag::KEEP_EXPIRY, &[&[0; 8], KEY, b"keeps"]);
    rig.exchange(&keeps);
    assert_eq!(rig.shown(), None, "the write does not say whether it expires");
    let mut rig = Rig::new();
    rig.write(&[4; VALUE_MAX + 1]);
    rig.heat();
    assert_eq!(rig.shown(), None);
}

#[test]
fn a_delete_leaves_nothing_to_show() {
    let mut rig = Rig::cached(b"one");
    let delete = rig.request(Op::Del, 0, &[KEY]);
    let forwarded = rig.forward(&delete);
    rig.home.version += 1;
    let mut answer = rig.home.answer(&forwarded);
    assert_eq!(rig.shown(), None);
    rig.reply(&answer);
    assert_eq!(rig.shown(), None);
    // A read that finds nothing.
    let read = rig.get();
    let forwarded = rig.forward(&read);
    answer = rig.home.answer(&forwarded);
    answer.first_chunk_mut::<HEADER_LEN>().unwrap().set_code(Code::NotFound as u8);
    wire::seal(&mut answer);
    rig.reply(&answer);
    assert_eq!(rig.shown(), None);
}

#[test]
fn what_only_looks_like_an_answer_changes_nothing() {
    let mut rig = Rig::cached(b"one");
    let put = rig.put(b"two");
    let forwarded = rig.forward(&put);
    let answer = rig.home.answer(&forwarded);
    assert_eq!(rig.pass(CLIENT, &answer), [], "it does not come from a node");
    assert_eq!(rig.shown(), None);
    // A read whose tag is wrong is left to the home to drop.
    rig.reply(&answer);
    let mut read = rig.get();
    *read.last_mut().unwrap() ^= 1;
    assert!(matches!(rig.pass(CLIENT, &read).as_slice(), [(HOME, _)]));
    // Another key with the same hashes, if there were one, is not this key.
    let mut other = rig.get();
    *other.last_mut().unwrap() ^= 1;
    wire::seal(&mut other);
    assert!(matches!(rig.pass(CLIENT, &other).as_slice(), [(HOME, _)]));
}

#[test]
fn of_two_keys_with_one_keyhash_the_first_is_cached() {
    let mut rig = Rig::cached(b"one");
    for _ in 0..2 * HOT_READS {
        let mut other = rig.get();
        other.first_chunk_mut::<HEADER_LEN>().unwrap().set_match_value(1);
        wire::seal(&mut other);
        assert!(matches!(rig.pass(CLIENT, &other).as_slice(), [(HOME, _)]));
    }
    assert_eq!(rig.fetches(), [] as [Vec<u8>; 0]);
    assert_eq!(rig.cache.items.len(), 1);
    assert_eq!(rig.shown(), Some(b"one".to_vec()));
}

#[test]
fn without_a_lease_nothing_is_answered() {
    let mut rig = Rig::cached(b"one");
    rig.now = rig.now + Duration::from_secs(61);
    assert_eq!(rig.shown(), None);
}

/// Names of keys that exist by their numbers alone.
fn candidate(number: u64, reads: u16) -> (Name, Candidate) {
    let key = number.to_be_bytes().to_vec();
    ((1, number), Candidate { match_value: number.into(), key, reads })
}

#[test]
fn a_full_cache_lets_the_less_read_go_and_no_other() {
    let mut rig = Rig::new();
    let cache = &mut rig.cache;
    for number in 0..ITEMS_MAX as u64 {
        let (name, it) = candidate(number, 10 + u16::from(number % 2 == 0));
        assert!(cache.make_room(&it));
        cache.insert(name, it);
    }
    assert!(!cache.make_room(&candidate(1 << 40, 10).1), "all are read as much");
    for number in 0..1_000 {
        let (name, it) = candidate((1 << 40) + number, 11);
        assert!(cache.make_room(&it));
        cache.insert(name, it);
    }
    assert_eq!(cache.items.len(), ITEMS_MAX);
    let names: BTreeSet<Name> = cache.items.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), ITEMS_MAX);
    let kept = (0..ITEMS_MAX as u64).filter(|number| number % 2 == 0);
    assert!(kept.into_iter().all(|number| names.contains(&(1, number))), "odd ones went");
    for (place, (name, _)) in cache.items.iter().enumerate() {
        assert_eq!(cache.places.get(name), Some(&place));
    }
}

/// Plays reads and writes of one key over a network that delays, loses and repeats, and returns how
/// many reads the switch answered, and how many were older than what somebody had been shown
/// before they were asked.
fn play(seed: u64, forgetful: bool) -> (u64, u64) {
    let (mut rig, mut rng) = (Rig::cached(b"0"), Rng::new(seed));
    let (mut to_home, mut to_switch) = (Vec::new(), Vec::new());
    let mut puts: Vec<Vec<u8>> = Vec::new();
    let (mut shown, mut by_switch, mut stale) = (rig.home.version, 0, 0);
    // What was shown when each read was asked, by its number.
    let mut floors: BTreeMap<u64, u64> = BTreeMap::new();
    for _ in 0..2_000 {
        let sent = match rng.below(8) {
            0 => {
                let put = rig.put(&rig.seq.to_be_bytes());
                puts.push(put.clone());
                rig.pass(CLIENT, &put)
            }
            1 if !puts.is_empty() => {
                let put = puts[rng.below(puts.len() as u64) as usize].clone();
                rig.pass(CLIENT, &put)
            }
            2 | 3 => {
                let get = rig.get();
                floors.insert(rig.seq, shown);
                rig.pass(CLIENT, &get)
            }
            4 | 5 if !to_home.is_empty() => {
                let at = rng.below(to_home.len() as u64) as usize;
                let request: Vec<u8> = to_home.swap_remove(at);
                to_switch.push(rig.home.answer(&request));
                continue;
            }
            6 | 7 if !to_switch.is_empty() => {
                let at = rng.below(to_switch.len() as u64) as usize;
                let answer: Vec<u8> = to_switch.swap_remove(at);
                rig.pass(HOME, &answer)
            }
            _ => continue,
        };
        rig.now = rig.now + Duration::from_micros(rng.below(3_000));
        for (to, bytes) in sent {
            if to == HOME {
                // One in ten is lost.
                to_home.extend((!rng.chance(1, 10)).then_some(bytes));
                continue;
            }
            let header = *Packet::parse(&bytes).unwrap().header();
            let KeyReply { version } = KeyReply::read(&header);
            by_switch += u64::from(header.node() == 0);
            if header.op() == Op::GetReply as u8 {
                stale += u64::from(version < Version::new(floors[&header.seq()]));
            }
            shown = shown.max(version.get());
        }
        if forgetful && let Some((_, entry)) = rig.cache.items.first_mut() {
            entry.forget_floor();
        }
    }
    (by_switch, stale)
}

#[test]
fn no_read_is_older_than_what_anybody_was_shown_before_it_was_asked() {
    let (mut by_switch, mut found) = (0, 0);
    for seed in 0..40 {
        let (answered, stale) = play(seed, false);
        assert_eq!(stale, 0, "seed {seed}");
        by_switch += answered;
        found += play(seed, true).1;
    }
    assert!(by_switch > 1_000, "{by_switch}");
    assert!(found > 0, "a cache that shows whatever passes last is caught");
}
