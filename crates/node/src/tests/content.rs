//! Requests that come to the content addresses of their keys, stamped by nobody.

use super::*;
use cluster::{CacheId, CacheSpec, ContentRouting};
use wire::{CONTENT_HOP_FLAGS, ContentClass, hop_flag};

const CLIENT_AT: u16 = 33;

fn content() -> ContentRouting {
    ContentRouting { prefix: "fd00:6b77:1::/48".parse().expect("a service prefix"), port: 7800 }
}

/// An answer, and where it comes from and goes to.
#[derive(Clone, Copy, Debug)]
struct Answer {
    from: Option<Endpoint>,
    to: Endpoint,
    header: Header,
}

impl Answer {
    fn code(&self) -> Code {
        Code::from_wire(self.header.code).unwrap()
    }
}

impl Chain {
    fn by_address(count: u16) -> Self {
        let mut chain = Self::of(count, KeyspaceKind::Hash);
        chain.map.keyspaces[0].content = Some(content());
        chain.map.caches = vec![CacheSpec { id: CacheId(7), endpoint: port(CACHE), shards: 1 }];
        chain.map.revision = Revision::new(2);
        chain.map.check().unwrap();
        chain.install();
        chain
    }

    /// A request as a client makes it.
    fn unstamped(&mut self, op: Op, key: &[u8]) -> Header {
        let seq = self.next();
        let stamped = self.stamped(op, key, seq);
        let nothing = Header { partition: 0, epoch: 0, chain_len: 0, ..stamped };
        let (chain, reply_addr, reply_port) = ([0; 16], [0; 16], 0);
        Header { hop_flags: CONTENT_HOP_FLAGS, chain, reply_addr, reply_port, ..nothing }
    }

    /// Brings it to a node; gives what the node answers, if it goes to no other node.
    fn bring(
        &mut self,
        to: usize,
        from: Endpoint,
        header: &Header,
        parts: &[&[u8]],
    ) -> Option<Answer> {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, header, parts);
        let now = self.now;
        self.nodes[to].handle_packet(now, from, 0, &datagram);
        self.answer_of(to)
    }

    /// What a node has to say to somebody who is no node.
    fn answer_of(&mut self, index: usize) -> Option<Answer> {
        let (mut found, own) = (None, self.map.nodes[index].endpoint);
        let node = &mut self.nodes[index];
        node.flush().unwrap();
        while let Some(datagram) = node.poll_transmit() {
            let (from, to, payload) = (datagram.from, datagram.to, datagram.payload);
            if self.map.nodes.iter().any(|it| it.endpoint == to) {
                self.wires.push_back((own, to, payload.to_vec()));
            } else {
                let header = Header::read(Packet::parse(payload).unwrap().header());
                found = Some(Answer { from, to, header });
            }
        }
        found
    }

    fn bring_get(&mut self, to: usize, key: &[u8]) -> Option<Answer> {
        let header = self.unstamped(Op::Get, key);
        self.bring(to, port(CLIENT_AT), &header, &[key])
    }

    /// Brings a write to the head, and what it sends down the chain to the others.
    fn put_by_address(&mut self, key: &[u8]) -> Option<Answer> {
        let header = self.unstamped(Op::Put, key);
        let mut last = self.bring(0, port(CLIENT_AT), &header, &[&[0; 8], key, b"v"]);
        while let Some((from, to, bytes)) = self.wires.pop_front() {
            let index = self.map.nodes.iter().position(|it| it.endpoint == to).unwrap();
            let now = self.now;
            self.nodes[index].handle_packet(now, from, 0, &bytes);
            last = self.answer_of(index).or(last);
        }
        last
    }

    fn address(&self, class: ContentClass, key: &[u8]) -> Option<Endpoint> {
        let keyspace = &self.map.keyspaces[0];
        keyspace.content_address(class, keyspace.match_value(key))
    }
}

#[test]
fn the_head_takes_writes_and_the_tail_answers_from_the_address_of_the_key() {
    let mut chain = Chain::by_address(3);
    let written = chain.put_by_address(b"k").unwrap();
    assert_eq!((written.code(), written.to), (Code::Ok, port(CLIENT_AT)));
    assert_eq!(written.from, chain.address(ContentClass::Write, b"k"));
    assert_eq!((written.header.partition, written.header.epoch), (1, 4), "as it was stamped");
    let read = chain.bring_get(2, b"k").unwrap();
    assert_eq!((read.code(), read.to), (Code::Ok, port(CLIENT_AT)));
    assert_eq!(read.from, chain.address(ContentClass::Read, b"k"));
    let header = chain.unstamped(Op::Get, b"k");
    let at_home = Header { flags: flag::AT_HOME, ..header };
    let read = chain.bring(2, port(CLIENT_AT), &at_home, &[b"k"]).unwrap();
    assert_eq!(read.from, chain.address(ContentClass::ReadAtHome, b"k"));
    assert_eq!(chain.nodes[2].counters().by_address, 2);
    let counted = |node: usize| {
        let counts = chain.nodes[node].report(chain.now).counts;
        counts.iter().map(|it| (it.partition, it.reads, it.writes)).collect::<Vec<_>>()
    };
    let partition = PartitionId(1);
    assert_eq!(counted(0), [(partition, 0, 1)]);
    assert_eq!((counted(1), counted(2)), (vec![], vec![(partition, 2, 0)]));
}

#[test]
fn whoever_is_not_the_head_or_the_tail_now_says_so() {
    let mut chain = Chain::by_address(3);
    chain.put_by_address(b"k");
    for node in [0, 1] {
        assert_eq!(chain.bring_get(node, b"k").unwrap().code(), Code::NotOwner);
    }
    for node in [1, 2] {
        let header = chain.unstamped(Op::Del, b"k");
        let answer = chain.bring(node, port(CLIENT_AT), &header, &[b"k"]).unwrap();
        assert_eq!(answer.code(), Code::NotOwner);
        assert_eq!(answer.from, chain.address(ContentClass::Write, b"k"));
    }
    // It comes again to whoever is, and is counted there.
    assert!(chain.nodes[1..].iter().all(|node| node.report(chain.now).counts.is_empty()));
    // What the packet says of partition, epoch and chain is not believed.
    let forged = Header { partition: 1, epoch: 4, ..chain.unstamped(Op::Get, b"k") };
    let mut forged = forged;
    forged.set_chain([1]);
    let answer = chain.bring(1, port(CLIENT_AT), &forged, &[b"k"]).unwrap();
    assert_eq!(answer.code(), Code::NotOwner);
    chain.map.partitions[0].open = false;
    chain.map.partitions[0].epoch = Epoch(5);
    chain.map.revision = Revision::new(3);
    chain.install();
    assert_eq!(chain.bring_get(2, b"k").unwrap().code(), Code::Closed);
}

#[test]
fn a_request_that_waited_for_a_change_of_the_chain_is_of_the_new_epoch() {
    let mut chain = Chain::by_address(2);
    let header = chain.unstamped(Op::Put, b"k");
    chain.map.partitions[0].epoch = Epoch(6);
    chain.map.partitions[0].chain.reverse();
    chain.map.revision = Revision::new(3);
    chain.install();
    let parts: [&[u8]; 3] = [&[0; 8], b"k", b"v"];
    let old_head = chain.bring(0, port(CLIENT_AT), &header, &parts).unwrap();
    assert_eq!(old_head.code(), Code::NotOwner);
    assert!(chain.bring(1, port(CLIENT_AT), &header, &parts).is_none(), "it goes down the chain");
    assert_eq!(chain.nodes[1].pending(), 1);
}

#[test]
fn nothing_is_served_without_the_lease_for_it_which_is_always_wanted() {
    let mut chain = Chain::by_address(1);
    let now = chain.now;
    assert!(chain.nodes[0].report(now).asked_directly, "before anybody has asked");
    let mut node = Node::new(config(9, RATE), Noted::new(0), now);
    node.install(now, &chain.map.assignment(NodeId(0), StoreId(0), port(SWITCH)));
    let (cluster, incarnation) = (ClusterId(1), Incarnation(9));
    let revision = chain.map.revision;
    let lease = Lease { cluster, incarnation, revision, from: now, duration_ms: 500 };
    node.renew(&lease);
    let header = chain.unstamped(Op::Get, b"k");
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[b"k"]);
    node.handle_packet(now, port(CLIENT_AT), 0, &datagram);
    assert_eq!(node.counters().dropped(DropReason::NoLease), 1);
    node.renew_direct(&lease);
    node.handle_packet(now, port(CLIENT_AT), 0, &datagram);
    node.flush().unwrap();
    assert!(node.poll_transmit().is_some());
}

#[test]
fn a_miss_is_answered_to_the_client_from_the_address_that_it_asked() {
    let mut chain = Chain::by_address(1);
    chain.put_by_address(b"k");
    let hop_flags = CONTENT_HOP_FLAGS | hop_flag::MISSED;
    let asked = chain.unstamped(Op::Get, b"k");
    let client = port(44);
    let (reply_addr, reply_port) = (client.addr, client.port);
    let missed = Header { hop_flags, reply_addr, reply_port, ..asked };
    let answer = chain.bring(0, port(CACHE), &missed, &[b"k"]).unwrap();
    assert_eq!((answer.code(), answer.to), (Code::Ok, client));
    assert_eq!(answer.from, chain.address(ContentClass::Read, b"k"));
    let forged = chain.bring(0, port(CLIENT_AT), &missed, &[b"k"]).unwrap();
    assert_eq!(forged.to, port(CLIENT_AT), "only a cache says who has asked");
}

#[test]
fn describe_says_where_content_addresses_are() {
    let mut chain = Chain::by_address(1);
    let header = Header { hop_flags: 0, ..chain.unstamped(Op::Describe, b"k") };
    let header = Header { reply_addr: [9; 16], reply_port: 9, ..header };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[b"k"]);
    chain.deliver(0, port(SWITCH), &datagram);
    let payload = chain.only_reply().payload;
    let (fixed, rest) = wire::DescribeReplyBody::split(&payload).unwrap();
    let (said, rest) = wire::ContentRoutingBody::split(rest).unwrap();
    assert_eq!((fixed.kind, rest), (2, &[][..]));
    let content = content();
    assert_eq!((said.prefix, said.port), (content.prefix.bits(), content.port));
}
