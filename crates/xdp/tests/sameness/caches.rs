//! Keys that caches hold: the program in the kernel with the sockets behind it, and the switch in
//! user space, do the same with each datagram.

use crate::fresh::Fresh;
use crate::hot::{INCARNATION, addr};
use crate::sealed::ready as ready_sealed;
use crate::stand::{OWN, Outcome, Stand, Switch, ready};
use crate::untouched::CLIENT;
use cluster::{
    CacheId, CacheSpec, Capabilities, ClusterId, Epoch, KeyspaceId, Lease, Match, NodeId, NodeSpec,
    Partition, PartitionId, SwitchControl as _, SwitchTables,
};
use machine::{Instant, Outbox, Rng};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use switch::{Loads, Pipeline, RULES_LAST};
use testkit::draw::{HASH, RANGE, any_draw, any_tables, datagram};
use testkit::oracle::counts::Counts;
use testkit::oracle::model::Sent;
use testkit::vector::file::File;
use testkit::vector::shown;
use wire::{CacheRule, CacheRules, Endpoint, Header, Op, Revision, flag, hop_flag};
use xdp::Program;

const NOW: Instant = Instant::from_unix_ms(1_000);
const KEYHASH: u64 = 0x0123_4567_89ab_cdef;
/// Nodes 1 and 2 are the chain of the one partition.
const TAIL: u16 = 2;
const CACHE: u16 = 4;
const OTHER: u16 = 15;

/// Both kinds of switch.
struct Both<'s> {
    switch: Switch<'s>,
    /// What gets all that the program leaves to the kernel.
    behind: Pipeline,
    user: Pipeline,
    now: Instant,
}

impl<'s> Both<'s> {
    fn new(stand: &'s Stand, program: impl Into<Arc<Program>>) -> Self {
        Self::of(stand.switch(program, true))
    }

    fn of(switch: Switch<'s>) -> Self {
        let directory = switch.plane.kernel_directory().unwrap();
        let mut both = Self {
            switch,
            behind: Pipeline::behind(INCARNATION, Arc::new(directory)),
            user: Pipeline::new(INCARNATION),
            now: NOW,
        };
        let lease = Lease {
            cluster: ClusterId(0),
            incarnation: INCARNATION,
            revision: Revision::NONE,
            from: NOW,
            duration_ms: 3_600_000,
        };
        both.behind.renew(NOW, &lease);
        both.user.renew(NOW, &lease);
        both
    }

    fn install(&mut self, tables: &SwitchTables) {
        self.switch.install(tables);
        self.behind.install(tables).unwrap();
        self.user.install(tables).unwrap();
    }

    /// What the kernel, or the socket behind it, sends for a datagram, which is what the switch in
    /// user space sends.
    fn process(&mut self, from: Endpoint, bytes: &[u8]) -> Vec<Sent> {
        // What the program does not open, the sockets do.
        let opened = self.switch.takes(from, bytes);
        let outcome = if opened { self.switch.process(from, bytes) } else { Outcome::Left };
        let sent = match outcome {
            Outcome::Dealt(sent) => sent,
            Outcome::Left => in_user_space(&mut self.behind, self.now, from, bytes),
        };
        let wanted = in_user_space(&mut self.user, self.now, from, bytes);
        assert_eq!(sent, wanted, "{from} {bytes:02x?}");
        sent
    }

    /// Whom a datagram goes to, if it is sent on.
    fn goes_to(&mut self, from: Endpoint, header: &Header) -> Option<Endpoint> {
        let sent = self.process(from, &bytes(header, &[]));
        assert!(sent.len() <= 1, "{sent:?}");
        sent.first().map(|(to, _)| *to)
    }

    /// Whom a read of the key with this hash goes to.
    fn asks(&mut self, keyhash: u64) -> Endpoint {
        self.goes_to(client(), &Header { keyhash, ..get() }).expect("reads are sent on")
    }

    /// A cache says that it has keys, or has them no more: from this change on in a stream.
    fn says(&mut self, cache: u16, at: (u64, u64), changes: &[(u8, u64)]) -> Option<u64> {
        let sent = self.process(cache_at(cache), &rules(cache, at, changes));
        let answer = sent.first().map(|(_, bytes)| Header::read(bytes.first_chunk().unwrap()));
        answer.map(|answer| {
            assert_eq!((answer.op, answer.client), (Op::CacheRuled as u8, at.0));
            answer.seq
        })
    }

    /// Both have counted the same, and so many reads that went to caches.
    fn have_counted(&self) -> u64 {
        let mut counters = self.switch.plane.read_counters().unwrap();
        counters.merge(self.behind.counters_ref());
        let wanted = self.user.counters_ref();
        let of = |counters| Counts::of(counters, &Loads::default());
        assert_eq!(of(&counters), of(wanted));
        assert_eq!(counters.cached(), wanted.cached());
        wanted.cached()
    }
}

fn in_user_space(pipeline: &mut Pipeline, now: Instant, from: Endpoint, bytes: &[u8]) -> Vec<Sent> {
    let mut out = Outbox::default();
    // A drop is counted, and the counts are compared.
    let _ = pipeline.process(now, from, &mut bytes.to_vec(), &mut out);
    std::iter::from_fn(|| out.pop().map(|sent| (sent.to, sent.payload.to_vec()))).collect()
}

fn bytes(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, header, &[payload]);
    bytes
}

fn client() -> Endpoint {
    SocketAddr::from((CLIENT.0, CLIENT.1)).into()
}

fn cache_at(cache: u16) -> Endpoint {
    SocketAddr::from(([10, 3, 0, 1], 7_800 + cache * 2)).into()
}

/// The second shard of a cache.
fn second_at(cache: u16) -> Endpoint {
    cache_at(cache).with_port_offset(1).unwrap()
}

fn get() -> Header {
    Header { op: Op::Get as u8, keyspace: 1, keyhash: KEYHASH, ..Header::default() }
}

/// What a cache answers.
fn answer(cache: u16) -> Header {
    let client = Endpoint::from(SocketAddr::from(([10, 200, 0, 1], 9)));
    let (reply_addr, reply_port) = (client.addr, client.port);
    Header { op: Op::GetReply as u8, node: cache, reply_addr, reply_port, ..get() }
}

fn rules(cache: u16, (client, seq): (u64, u64), changes: &[(u8, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (adds, keyhash) in changes {
        let rule = CacheRule { adds: *adds == 1, keyspace: 1, keyhash: *keyhash, match_bits: None };
        CacheRules::push(&mut payload, &rule);
    }
    let op = Op::CacheRules as u8;
    bytes(&Header { op, node: cache, client, seq, ..Header::default() }, &payload)
}

fn spec(cache: u16) -> CacheSpec {
    CacheSpec { id: CacheId(cache), endpoint: cache_at(cache), shards: 2 }
}

/// One partition on two nodes, and these caches.
fn rack(revision: u64, caches: &[u16]) -> SwitchTables {
    let node = |id| NodeSpec { id: NodeId(id), endpoint: addr(id).into(), shards: 1 };
    let whole = Partition {
        id: PartitionId(7),
        keyspace: KeyspaceId(1),
        first: Match::MIN,
        last: Match::MAX,
        epoch: Epoch(3),
        chain: [NodeId(1), NodeId(TAIL)].into_iter().collect(),
        open: true,
        ..Partition::default()
    };
    SwitchTables {
        revision: Revision::new(revision),
        active: true,
        nodes: vec![node(1), node(TAIL)],
        caches: caches.iter().map(|cache| spec(*cache)).collect(),
        partitions: vec![whole],
        ..SwitchTables::default()
    }
}

/// Both, with a rack of two caches.
fn both(stand: &Stand, program: Program) -> Both<'_> {
    let mut both = Both::new(stand, program);
    both.install(&rack(1, &[CACHE, OTHER]));
    both
}

fn tail() -> Endpoint {
    addr(TAIL).into()
}

#[test]
fn reads_of_a_key_with_a_rule_go_to_its_cache_stamped_for_the_tail() {
    let Some((stand, program)) = ready("rules of caches in the kernel") else { return };
    let mut both = both(&stand, program);
    assert_eq!(both.asks(KEYHASH), tail());
    assert_eq!(both.says(CACHE, (1, 0), &[(1, KEYHASH), (1, 8)]), Some(2));
    let outcome = both.switch.process(client(), &bytes(&get(), &[]));
    let Outcome::Dealt(sent) = outcome else { panic!("left to the socket") };
    let [(to, datagram)] = &sent[..] else { panic!("{sent:?}") };
    let header = Header::read(datagram.first_chunk().unwrap());
    let stamped = (header.partition, header.epoch, header.chain_len, header.chain[1]);
    assert_eq!((*to, stamped), (cache_at(CACHE), (7, 3, 1, TAIL as u8)));
    assert_eq!((header.reply_addr, header.reply_port), (client().addr, client().port));
    in_user_space(&mut both.user, NOW, client(), &bytes(&get(), &[]));
    assert_eq!(both.asks(8), cache_at(CACHE));
    assert_eq!(both.asks(9), tail(), "it has no rule");
    let elsewhere = Header { keyspace: 2, ..get() };
    assert_eq!(both.goes_to(client(), &elsewhere), None, "there is no such keyspace");
    let at_home = Header { flags: flag::AT_HOME, ..get() };
    assert_eq!(both.goes_to(client(), &at_home), Some(tail()));
    let put = Header { op: Op::Put as u8, ..get() };
    assert_eq!(both.goes_to(client(), &put), Some(addr(1).into()), "to the head");
    assert_eq!(both.says(CACHE, (1, 2), &[(0, KEYHASH)]), Some(3));
    assert_eq!((both.asks(KEYHASH), both.asks(8)), (tail(), cache_at(CACHE)));
    assert_eq!(both.have_counted(), 3);
    assert_eq!(both.switch.plane.cache_rules().count(), 1);
}

#[test]
fn vectors_of_cached_keys() {
    let Some((stand, program)) = ready("vectors of cached keys in the kernel") else { return };
    let fresh = Fresh::new(program);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/cached.toml");
    let file = File::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut shown = Capabilities::default();
    for case in &file.cases {
        let mut both = Both::new(&stand, fresh.program());
        both.install(file.tables.as_ref().unwrap());
        let mut last = (Vec::new(), Vec::new());
        for (from, datagram) in case.arrivals().unwrap() {
            last = (both.process(from, &datagram), datagram);
        }
        let (sent, came) = last;
        assert_eq!(sent, case.sent().unwrap(), "{}", case.name);
        let counts = Counts::default();
        shown = shown.or(shown::capabilities(file.tables.as_ref(), &came, &sent, &counts));
    }
    assert!(shown.rules, "{shown:?}");
}

#[test]
fn reads_go_to_the_shard_that_has_told_and_to_none_that_is_gone() {
    let Some((stand, program)) = ready("shards of caches in the kernel") else { return };
    let mut both = both(&stand, program);
    assert_eq!(both.says(CACHE, (1, 0), &[(1, KEYHASH)]), Some(1));
    let sent = both.process(second_at(CACHE), &rules(CACHE, (1, 0), &[(1, 8)]));
    assert_eq!(sent.len(), 1, "it is answered: {sent:?}");
    assert_eq!((both.asks(KEYHASH), both.asks(8)), (cache_at(CACHE), second_at(CACHE)));
    let says = answer(CACHE);
    assert!(both.goes_to(second_at(CACHE), &says).is_some(), "it answers for its cache");
    let mut fewer = rack(2, &[CACHE, OTHER]);
    fewer.caches.iter_mut().for_each(|cache| cache.shards = 1);
    both.install(&fewer);
    assert_eq!((both.asks(KEYHASH), both.asks(8)), (cache_at(CACHE), tail()));
    both.have_counted();
}

#[test]
fn only_caches_change_rules_and_only_for_themselves() {
    let Some((stand, program)) = ready("strangers' rules in the kernel") else { return };
    let mut both = both(&stand, program);
    for from in [tail(), client(), cache_at(OTHER), cache_at(3)] {
        let sent = both.process(from, &rules(CACHE, (1, 0), &[(1, KEYHASH)]));
        assert_eq!(sent, [], "{from} is no cache, or another one");
    }
    assert_eq!(both.asks(KEYHASH), tail());
    assert_eq!(both.says(OTHER, (1, 0), &[(1, KEYHASH)]), Some(1));
    assert_eq!(both.asks(KEYHASH), cache_at(OTHER));
    let dropped = Counts::of(both.user.counters_ref(), &Loads::default()).dropped;
    assert_eq!((dropped["bad_op"], dropped["not_from_member"]), (3, 1));
    assert_eq!(both.have_counted(), 1);
}

#[test]
fn answers_of_caches_go_to_clients_and_nobody_speaks_for_them() {
    let Some((stand, program)) = ready("answers of caches in the kernel") else { return };
    let mut both = both(&stand, program);
    let to = Endpoint::from(SocketAddr::from(([10, 200, 0, 1], 9)));
    let says = answer(CACHE);
    assert_eq!(both.goes_to(cache_at(CACHE), &says), Some(to));
    let missed = Header { hop_flags: hop_flag::MISSED, ..get() };
    let refused = [
        (cache_at(OTHER), says),
        (client(), says),
        (addr(1).into(), says),
        (cache_at(CACHE), answer(OTHER)),
        (cache_at(CACHE), Header { op: Op::PutReply as u8, ..says }),
        (cache_at(CACHE), Header { reply_port: 0, ..says }),
        (cache_at(CACHE), missed),
        (cache_at(CACHE), Header { op: Op::Describe as u8, ..get() }),
    ];
    for (from, header) in refused {
        assert_eq!(both.goes_to(from, &header), None, "{from} {header:?}");
    }
    // A client that claims to come from a cache is believed nothing.
    assert_eq!(both.goes_to(client(), &missed), Some(tail()));
    let counts = both.switch.counts();
    assert_eq!(counts.loads.len(), 0, "nothing is noted of a cache");
    let wanted = [("bad_reply_address", 1), ("reply_not_from_node", 5), ("request_from_node", 2)];
    let wanted = wanted.map(|(reason, count)| (reason.to_owned(), count));
    assert_eq!(counts.dropped.into_iter().collect::<Vec<_>>(), wanted);
    assert_eq!(both.have_counted(), 0);
}

#[test]
fn another_stream_replaces_all_rules_and_tables_without_the_cache_hide_them() {
    let Some((stand, program)) = ready("streams of rules in the kernel") else { return };
    let mut both = both(&stand, program);
    assert_eq!(both.says(CACHE, (5, 0), &[(1, 7), (1, 8)]), Some(2));
    assert_eq!(both.says(OTHER, (1, 0), &[(1, 9)]), Some(1));
    assert_eq!(both.says(CACHE, (4, 0), &[(1, 6)]), None, "it is over");
    assert_eq!(both.says(CACHE, (5, 3), &[(0, 7)]), Some(2), "the third change is missing");
    let [first, other] = [cache_at(CACHE), cache_at(OTHER)];
    assert_eq!([6, 7, 8, 9].map(|key| both.asks(key)), [tail(), first, first, other]);
    assert_eq!(both.says(CACHE, (6, 0), &[(1, 8)]), Some(1));
    assert_eq!([7, 8, 9].map(|key| both.asks(key)), [tail(), first, other]);
    both.install(&rack(2, &[OTHER]));
    assert_eq!(both.says(CACHE, (6, 1), &[]), None, "it is no cache of the tables");
    assert_eq!([7, 8, 9].map(|key| both.asks(key)), [tail(), tail(), other]);
    both.install(&rack(3, &[CACHE, OTHER]));
    assert_eq!([7, 8, 9].map(|key| both.asks(key)), [tail(), first, other]);
    both.have_counted();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the kernel's ticks are real time")]
fn rules_of_a_cache_that_is_silent_count_for_nothing_until_it_is_heard() {
    let Some((stand, program)) = ready("silent caches in the kernel") else { return };
    let mut both = both(&stand, program);
    both.says(CACHE, (5, 0), &[(1, KEYHASH)]);
    assert_eq!(both.asks(KEYHASH), cache_at(CACHE));
    std::thread::sleep(RULES_LAST + Duration::from_millis(50));
    both.now = NOW + RULES_LAST;
    assert_eq!(both.asks(KEYHASH), tail());
    assert_eq!(both.says(CACHE, (5, 1), &[]), Some(1), "it says that it is there");
    assert_eq!(both.asks(KEYHASH), cache_at(CACHE));
    assert_eq!(both.have_counted(), 2);
}

#[test]
fn without_a_way_to_the_cache_the_socket_sends_to_it() {
    let Some((stand, program)) = ready("caches without a way in the kernel") else { return };
    let mut both = both(&stand, program);
    both.says(CACHE, (5, 0), &[(1, KEYHASH)]);
    both.switch.plane.set_way_to_cache(CacheId(CACHE), 0, [[0; 6]; 2]).unwrap();
    assert_eq!(both.switch.process(client(), &bytes(&get(), &[])), Outcome::Left);
    assert_eq!(both.asks(KEYHASH), cache_at(CACHE));
    assert_eq!(both.behind.counters_ref().cached(), 1);
    both.switch.plane.set_way_to_cache(CacheId(CACHE), stand.ifindex, [[2; 6], OWN]).unwrap();
    assert_eq!(both.asks(KEYHASH), cache_at(CACHE));
    assert_eq!(both.behind.counters_ref().cached(), 1);
    assert_eq!(both.have_counted(), 2);
}

#[test]
fn rules_outlive_another_program_and_no_other_switch() {
    let Some((stand, program)) = ready("rules and a new program in the kernel") else { return };
    let mut first = both(&stand, program);
    first.says(CACHE, (5, 0), &[(1, KEYHASH)]);
    let next = first.switch.plane.loader().spare().unwrap();
    first.switch.plane.replace(next).unwrap();
    first.says(CACHE, (5, 1), &[]);
    assert_eq!(first.asks(KEYHASH), cache_at(CACHE));
    let program = Program::load(crate::stand::SERVICE, None).unwrap();
    let mut second = both(&stand, program);
    assert_eq!(second.asks(KEYHASH), tail());
    assert_eq!(second.says(CACHE, (5, 1), &[]), Some(0), "it lacks the first change");
    second.says(CACHE, (6, 0), &[(1, KEYHASH)]);
    assert_eq!(second.asks(KEYHASH), cache_at(CACHE));
}

#[test]
fn there_is_room_for_as_many_rules_as_caches_may_have() {
    let Some((stand, program)) = ready("65,536 rules in the kernel") else { return };
    let mut both = both(&stand, program);
    let mut rng = Rng::new(7);
    let hashes: Vec<u64> = (0..65_536).map(|_| rng.next_u64()).collect();
    let mut next = 0;
    for hashes in hashes.chunks(64) {
        let changes: Vec<(u8, u64)> = hashes.iter().map(|hash| (1, *hash)).collect();
        assert_eq!(both.says(CACHE, (1, next), &changes), Some(next + hashes.len() as u64));
        next += hashes.len() as u64;
    }
    for hash in &hashes {
        assert_eq!(both.asks(*hash), cache_at(CACHE));
        // It goes on to say that it is there.
        both.says(CACHE, (1, next), &[]);
    }
    let strangers = (0..65_536).filter(|_| both.asks(rng.next_u64()) != tail()).count();
    assert!(strangers <= 1, "{strangers} other keys look like one of them");
    assert_eq!(both.says(CACHE, (2, 0), &[]), Some(0));
    assert!(hashes.iter().all(|hash| both.asks(*hash) == tail()));
    both.have_counted();
}

/// Tables, and datagrams for each of them.
const TABLES: u64 = 100;
const DATAGRAMS: usize = 1_000;

#[test]
fn datagrams_at_random_of_and_around_caches() {
    let Some((stand, program)) = ready("caches at random in the kernel") else { return };
    at_random(Both::new(&stand, program), TABLES);
}

#[test]
fn datagrams_in_envelopes_of_and_around_caches() {
    let Some((stand, program)) = ready_sealed("caches in envelopes") else { return };
    at_random(Both::of(stand.sealed_switch(program)), TABLES / 5);
}

fn at_random(mut both: Both<'_>, tables_in_all: u64) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[12; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut dice = Rng::new(12);
    let mut streams = [(CACHE, 1, 0), (OTHER, 1, 0)];
    for revision in 1..=tables_in_all {
        let mut tables = any_tables().new_tree(&mut runner).unwrap().current();
        (tables.revision, tables.active) = (Revision::new(revision), revision % 20 != 0);
        let there = [CACHE, OTHER].into_iter().filter(|_| dice.chance(3, 4));
        tables.caches = there.map(spec).collect();
        both.install(&tables);
        for _ in 0..DATAGRAMS {
            // They say that they are there, so that the time that this takes plays no part.
            for (cache, stream, next) in &mut streams {
                *next = both.says(*cache, (*stream, *next), &[]).unwrap_or(*next);
            }
            let (from, bytes) = if dice.chance(1, 3) {
                let draw = any_draw().new_tree(&mut runner).unwrap().current();
                let (from, bytes) = datagram(&tables, &draw);
                // Of replies the sockets would note who is how busy, and the kernel not.
                if bytes.get(OP_AT).is_some_and(|op| op & 0x80 != 0) {
                    continue;
                }
                (from, bytes)
            } else {
                drawn(&mut dice, &mut streams)
            };
            let bytes = both.switch.named(bytes);
            both.process(from, &bytes);
        }
    }
    let cached = both.have_counted();
    println!("{cached} reads went to caches");
    assert!(cached > tables_in_all * 50);
}

const OP_AT: usize = 92;

/// A read, rules, or an answer of a cache.
fn drawn(dice: &mut Rng, streams: &mut [(u16, u64, u64); 2]) -> (Endpoint, Vec<u8>) {
    let [first, second] = streams;
    let (cache, stream, next) = if dice.chance(1, 2) { first } else { second };
    let strange = dice.chance(1, 16);
    let keyspace = if dice.chance(1, 2) { HASH } else { RANGE };
    let keyhash = dice.below(16);
    let from = if strange { client_or_other(dice) } else { cache_at(*cache) };
    match dice.below(4) {
        0 => {
            if dice.chance(1, 100) {
                (*stream, *next) = (*stream + 1, 0);
            }
            let (client, seq) = match dice.below(8) {
                0 => (*stream - 1, *next),
                1 => (*stream, *next + 1),
                _ => (*stream, *next),
            };
            let mut payload = Vec::new();
            let adds = dice.chance(3, 4);
            let match_bits = dice.chance(1, 2).then(|| dice.next_u64());
            let rule = CacheRule { adds, keyspace, keyhash, match_bits };
            CacheRules::push(&mut payload, &rule);
            let op = Op::CacheRules as u8;
            let header = Header { op, node: *cache, client, seq, ..Header::default() };
            (from, bytes(&header, &payload))
        }
        1 => (from, bytes(&Header { keyspace, keyhash, ..answer(*cache) }, &[])),
        _ => {
            let flags = if dice.chance(1, 4) { flag::AT_HOME } else { 0 };
            let from = if strange { from } else { client() };
            let match_value = u128::from(dice.next_u64()) << 64 | u128::from(dice.next_u64());
            let header = Header { keyspace, keyhash, match_value, flags, ..get() };
            (from, bytes(&header, &[]))
        }
    }
}

fn client_or_other(dice: &mut Rng) -> Endpoint {
    if dice.chance(1, 2) { client() } else { cache_at(OTHER) }
}
