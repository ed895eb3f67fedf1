//! Scripts of time: spans become times at the head, once, and times are those of the cluster.

use super::*;
use cluster::{ClockAhead, ClockOrder};
use wire::expiry::span;
use wire::{CasBody, Change, Condition, GetReplyBody, Step, Version, flag};

const HOUR: ClockAhead = ClockAhead(3_600_000_000_000);

impl Chain {
    /// When the key's value goes, and what time it is, as a GET says.
    fn times(&mut self, key: &[u8]) -> (u64, u64) {
        let seq = self.next();
        let header = self.stamped(Op::Get, key, seq);
        self.send(&header, &[key]);
        let reply = self.replies.pop().unwrap();
        let (GetReplyBody { expiry_ms, now_ms }, _) = GetReplyBody::split(&reply.payload).unwrap();
        (expiry_ms, now_ms)
    }

    fn put_for(&mut self, key: &[u8], ms: u64) -> u64 {
        let seq = self.next();
        self.put_again(seq, key, b"5", span(ms));
        seq
    }

    /// All nodes are told that the cluster's clock is so far ahead of theirs.
    fn set_clocks(&mut self, ahead: ClockAhead) {
        for (id, node) in (0..).zip(&mut self.nodes) {
            node.set_clock(&ClockOrder { incarnation: Incarnation(id), ahead });
        }
    }
}

#[test]
fn a_span_counts_from_when_the_head_takes_the_write() {
    let mut chain = Chain::new(3);
    let begin = chain.now.unix_ms();
    chain.put_for(b"e", 50);
    chain.now = chain.now + 20 * MS; // On its way down the chain.
    chain.settle();
    assert_eq!(chain.times(b"e"), (begin + 50, begin + 20));
    chain.now = chain.now + 29 * MS;
    assert_eq!(chain.get(b"e").as_deref(), Some(&b"5"[..]));
    chain.now = chain.now + MS;
    assert_eq!(chain.get_code(b"e"), Code::Expiring);
}

#[test]
fn a_retransmission_does_not_extend_a_span() {
    let mut chain = Chain::new(3);
    let begin = chain.now.unix_ms();
    let seq = chain.put_for(b"e", 50);
    chain.now = chain.now + 20 * MS;
    chain.lag = 1;
    chain.put_again(seq, b"e", b"5", span(50)); // While it is pending.
    chain.settle();
    chain.now = chain.now + 20 * MS;
    chain.put_again(seq, b"e", b"5", span(50)); // When it is committed.
    chain.settle();
    assert_eq!(chain.times(b"e"), (begin + 50, begin + 40));
    assert_eq!(chain.nodes[0].counters().duplicates, 2);
}

#[test]
fn spans_are_fixed_in_swaps_and_batches_and_kept_by_increments() {
    let mut chain = Chain::new(2);
    let begin = chain.now.unix_ms();
    let change = Change::Put { value: b"1", expiry_ms: span(30) };
    chain.batch(&[Step { key: b"b", condition: Condition::Any, change }]);
    chain.settle();
    let (_, version, _) = chain.batch_reply();
    assert_eq!(chain.times(b"b").0, begin + 30);
    let seq = chain.next();
    let header = Header { flags: flag::CAS_KEEP_VALUE, ..chain.stamped(Op::Cas, b"b", seq) };
    let fixed =
        CasBody { expiry_ms: span(70), expect_version: Version::new(version), expect_len: 0 };
    chain.now = chain.now + 10 * MS;
    chain.send(&header, &[&fixed.to_bytes(), b"b"]);
    chain.settle();
    assert_eq!(chain.times(b"b").0, begin + 80);
    chain.incr(b"b", 1);
    chain.settle();
    assert_eq!(chain.times(b"b").0, begin + 80);
    let seq = chain.next();
    let header = Header { flags: flag::KEEP_EXPIRY, ..chain.stamped(Op::Put, b"b", seq) };
    chain.send(&header, &[&PutBody { expiry_ms: span(5) }.to_bytes(), b"b", b"2"]);
    chain.settle();
    assert_eq!(chain.times(b"b").0, begin + 80, "what is there counts");
}

#[test]
fn the_longest_span_is_as_good_as_never_and_is_no_flag() {
    let mut chain = Chain::new(1);
    chain.put_for(b"e", u64::MAX);
    assert_eq!(chain.times(b"e").0, wire::expiry::TIME_MAX);
    chain.pass(Duration::from_secs(3_600));
    assert_eq!(chain.get(b"e").as_deref(), Some(&b"5"[..]));
}

#[test]
fn values_go_by_the_cluster_s_clock_and_not_by_the_node_s() {
    for ahead in [HOUR, ClockAhead(-HOUR.0)] {
        let mut chain = Chain::new(2);
        chain.now = chain.now + Duration::from_secs(7_200);
        chain.set_clocks(ahead);
        let cluster_ms = chain.now.unix_ms().saturating_add_signed(ahead.0 / 1_000_000);
        let seq = chain.next();
        chain.put_again(seq, b"at", b"5", cluster_ms + 50);
        chain.put_for(b"in", 50);
        chain.settle();
        chain.replies.clear();
        assert_eq!(chain.times(b"at"), (cluster_ms + 50, cluster_ms));
        assert_eq!(chain.times(b"in"), (cluster_ms + 50, cluster_ms));
        chain.now = chain.now + 50 * MS;
        assert_eq!(chain.get_code(b"at"), Code::Expiring);
        assert_eq!(chain.get_code(b"in"), Code::Expiring);
        chain.pass(Duration::from_millis(100));
        chain.settle();
        assert_eq!(chain.nodes[0].counters().expired, 2);
    }
}

#[test]
fn a_node_says_what_it_was_told_in_this_incarnation() {
    let mut chain = Chain::new(1);
    let now = chain.now;
    assert_eq!(chain.nodes[0].report(now).clock, None);
    // An order that comes late, for the incarnation before.
    chain.nodes[0].set_clock(&ClockOrder { incarnation: Incarnation(7), ahead: HOUR });
    assert_eq!(chain.nodes[0].report(now).clock, None);
    chain.set_clocks(HOUR);
    assert_eq!(chain.nodes[0].report(now).clock, Some(HOUR));
}
