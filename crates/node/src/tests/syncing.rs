//! A shard goes on while its engine syncs, and says nothing that a crash could take back.

use super::*;
use crate::engine::EngineError;

/// A chain whose nodes sync apart; all that they have done so far is durable.
fn chain(count: u16) -> Chain {
    let mut chain = Chain::new(count);
    chain.sync_apart();
    chain
}

impl Chain {
    /// From now on its nodes go on while they sync.
    pub(super) fn sync_apart(&mut self) {
        for node in &mut self.nodes {
            node.engine_mut().sync_apart();
        }
    }

    /// The sync of a node ends.
    pub(super) fn end_sync(&mut self, index: usize) {
        let now = self.now;
        self.nodes[index].end_sync(now, Ok(())).unwrap();
        self.drain(index);
    }

    fn look(&mut self, key: &[u8]) {
        let seq = self.next();
        let header = self.stamped(Op::Get, key, seq);
        self.send(&header, &[key]);
    }

    fn look_at(&mut self, keys: &[&[u8]]) {
        let seq = self.next();
        let keyspace = self.map.keyspaces[0].clone();
        let key_of = |key| wire::MgetKey {
            match_value: keyspace.match_value(key).0,
            keyhash: keyspace.keyhash(key),
            key,
        };
        let count = u8::try_from(keys.len()).unwrap();
        let bitmap = (1 << count) - 1;
        let header = self.stamped(Op::Mget, keys[0], seq);
        let header = Header { count, bitmap, key_len: 0, ..header };
        let mut datagram = Vec::new();
        wire::emit_mget(&mut datagram, &header, keys.iter().copied().map(key_of));
        self.deliver(0, port(SWITCH), &datagram);
    }
}

#[test]
fn an_answer_waits_for_the_sync_that_has_what_it_rests_on() {
    let mut chain = chain(1);
    chain.put(b"a", b"1");
    assert!(chain.replies.is_empty() && chain.nodes[0].is_syncing());
    // This goes with the next one.
    chain.put(b"b", b"1");
    chain.end_sync(0);
    assert_eq!(chain.only_reply().version, 1);
    assert!(chain.nodes[0].is_syncing(), "the next has begun");
    chain.end_sync(0);
    assert_eq!(chain.only_reply().version, 2);
    assert!(!chain.nodes[0].is_syncing(), "there is nothing more to do");
}

#[test]
fn reads_of_what_is_durable_are_answered_at_once() {
    let mut chain = chain(1);
    chain.put(b"old", b"1");
    chain.end_sync(0);
    chain.replies.clear();
    chain.put(b"new", b"1");
    chain.look(b"old");
    assert_eq!(chain.only_reply().version, 1);
    chain.look(b"none");
    assert_eq!(chain.only_reply().code, Code::NotFound);
    chain.look(b"new");
    assert!(chain.replies.is_empty(), "a crash could take it back");
    chain.end_sync(0);
    let ops: Vec<Op> = chain.replies.iter().map(|reply| reply.op).collect();
    assert_eq!(ops, [Op::PutReply, Op::GetReply]);
    assert!(!chain.nodes[0].is_syncing(), "a read changes nothing");
}

#[test]
fn an_answer_about_several_keys_waits_for_each_of_them() {
    let mut chain = chain(1);
    chain.put(b"old", b"1");
    chain.end_sync(0);
    chain.replies.clear();
    chain.put(b"new", b"1");
    chain.look_at(&[b"old", b"none"]);
    assert_eq!(chain.only_reply().op, Op::MgetReply);
    chain.look_at(&[b"old", b"new"]);
    assert!(chain.replies.is_empty());
    chain.end_sync(0);
    assert_eq!(chain.replies.len(), 2);
}

#[test]
fn a_predecessor_hears_nothing_that_is_not_durable() {
    let mut chain = chain(2);
    chain.put(b"a", b"1");
    assert!(chain.wires.is_empty(), "nor does the successor");
    chain.end_sync(0);
    chain.settle();
    assert!(chain.replies.is_empty() && chain.nodes[1].is_syncing());
    chain.look(b"a");
    assert!(chain.replies.is_empty());
    chain.end_sync(1);
    chain.settle();
    assert_eq!(chain.replies.len(), 2, "of the write and of the read");
    assert_eq!(chain.nodes[0].pending(), 0);
}

#[test]
fn what_is_settled_is_said_when_it_is_durable() {
    let mut chain = chain(2);
    chain.put(b"a", b"1");
    for index in 0..2 {
        chain.end_sync(index);
        chain.settle();
    }
    chain.end_sync(0);
    let settled =
        |chain: &Chain| chain.nodes.iter().all(|n| !n.report(chain.now).settled.is_empty());
    chain.map.revision = Revision::new(2);
    chain.map.partitions[0].epoch = Epoch(5);
    chain.map.partitions[0].open = false;
    chain.install();
    let installed = |chain: &Chain| chain.nodes[0].report(chain.now).revision;
    assert_eq!(installed(&chain), Revision::new(1), "the next is not on record yet");
    let turn = chain.nodes[0].turn();
    assert!(chain.nodes[0].durable_turn() < turn);
    chain.settle();
    assert!(!settled(&chain));
    for _ in 0..6 {
        chain.pass(5 * MS);
        for index in 0..2 {
            chain.end_sync(index);
        }
        chain.settle();
    }
    assert!(settled(&chain) && installed(&chain) == Revision::new(2));
    assert!(chain.nodes[0].durable_turn() >= turn);
}

#[test]
fn while_it_is_not_durable_what_a_node_serves_it_serves_nothing() {
    let mut chain = chain(1);
    chain.map.revision = Revision::new(2);
    chain.map.partitions[0].epoch = Epoch(5);
    chain.install();
    chain.look(b"none");
    assert!(chain.replies.is_empty());
    chain.end_sync(0);
    chain.end_sync(0);
    assert_eq!(chain.only_reply().code, Code::NotFound);
}

#[test]
fn a_sync_that_fails_lets_nothing_go() {
    let mut chain = chain(1);
    chain.put(b"a", b"1");
    let failed = Err(EngineError("the disk is gone".into()));
    assert_eq!(chain.nodes[0].end_sync(chain.now, failed.clone()), failed);
    assert!(chain.nodes[0].poll_transmit().is_none());
}
