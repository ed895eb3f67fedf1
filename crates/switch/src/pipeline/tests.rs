//! A packet that was received before an order came, and is dealt with after it.

use super::*;
use cluster::{
    Delegation, HotEntry, HotOrder, Lease, Match, NodeSpec, Partition, PartitionId, Selection,
    SwitchControl, SwitchTables,
};
use std::net::SocketAddr;
use wire::{
    ClientWrite, Code, DelegatedReply, DelegationId, DirectoryClock, Generation, Header, HomeWrite,
    Revision, Version,
};

const INCARNATION: Incarnation = Incarnation(5);
const NOW: Instant = Instant::from_unix_ms(1_000);
const CLIENT: u64 = 7;
const BEGUN: u64 = (1 << 16) + 1;

fn at(host: u8) -> Endpoint {
    SocketAddr::from(([10, 0, 0, host], 9000)).into()
}

/// The only key, on delegation 1 or none.
fn order(revision: u64, delegation: Option<Delegation>) -> HotOrder {
    let places = [1, 2].map(|id| Some((NodeId(id), Incarnation(1)))).into();
    let (keyspace, key) = (KeyspaceId(0), b"key".to_vec());
    let entry = HotEntry {
        keyspace,
        key,
        keyhash: 0,
        match_value: Match(0),
        generation: Generation::new(1),
        first: 0,
        readers: 2,
        delegation,
    };
    HotOrder {
        revision: Revision::new(revision),
        switch: INCARNATION,
        selection: Selection::Random,
        places,
        keys: vec![entry],
        ..HotOrder::default()
    }
}

/// Two threads of a switch whose only key is delegated that has begun.
fn threads() -> [Pipeline; 2] {
    let directory = Arc::new(Directory::new(INCARNATION));
    let whole = Partition {
        id: PartitionId(1),
        last: Match::MAX,
        chain: [NodeId(1)].into_iter().collect(),
        open: true,
        ..Partition::default()
    };
    let spec = |id: u8| NodeSpec { id: NodeId(id.into()), endpoint: at(id), shards: 1 };
    let nodes = [1, 2].map(spec).into();
    let tables = SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(1),
        active: true,
        nodes,
        partitions: vec![whole],
    };
    let mut threads = [(); 2].map(|()| Pipeline::sharing(INCARNATION, directory.clone()));
    for pipeline in &mut threads {
        pipeline.install(&tables).expect("sound tables");
        pipeline.renew(
            NOW,
            &Lease {
                cluster: cluster::ClusterId(0),
                incarnation: INCARNATION,
                revision: Revision::NONE,
                from: NOW,
                duration_ms: 1_000_000_000,
            },
        );
    }
    let delegation = Delegation { number: DelegationId::new(1), replicas: 2, copies: 0 };
    threads[0].install_hot(&order(1, Some(delegation))).expect("a sound order");
    for pipeline in &mut threads {
        let mut bytes = delegated(9);
        pipeline.process(NOW, at(1), &mut bytes, &mut Outbox::default()).expect("a reply");
    }
    threads
}

/// The head says that this write is delegated.
fn delegated(seq: u64) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    let (op, code) = (Op::PutReply as u8, Code::Delegated as u8);
    let header =
        Header { op, code, client: CLIENT, seq, node: 1, reply_port: 1, ..Header::default() };
    header.write(&mut bytes);
    let (delegated_at, delegation) = (Version::new(40), DelegationId::new(1));
    DelegatedReply { delegated_at, delegation }.write(&mut bytes);
    bytes
}

fn put(seq: u64) -> Vec<u8> {
    let mut header = [0; HEADER_LEN];
    let (op, lag) = (Op::Put as u8, u16::MAX);
    Header { op, client: CLIENT, seq, lag, key_len: 3, ..Header::default() }.write(&mut header);
    ClientWrite { first_sent: DirectoryClock::new(BEGUN) }.write(&mut header);
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &Header::read(&header), &[&[0; 8], b"key"]);
    bytes
}

/// What a thread makes of a packet that it received before the present order came: flags, version
/// and clock.
fn late(pipeline: &mut Pipeline, op: Op, mut bytes: Vec<u8>) -> Result<(u8, u64, u64), DropReason> {
    let (mut out, from) = (Outbox::default(), if op.is_reply() { at(1) } else { at(200) });
    pipeline.forward(op, NOW, from, &mut bytes, &mut out)?;
    let sent = out.pop().expect("it was not dropped");
    let header: &[u8; HEADER_LEN] = sent.payload.first_chunk().expect("a header");
    let HomeWrite { granted, clock } = HomeWrite::read(header);
    Ok((header.hop_flags(), granted.get(), clock.get()))
}

#[test]
fn it_does_not_leave_under_a_delegation_that_may_be_over() {
    let [mut slow, mut fast] = threads();
    assert_eq!(late(&mut slow, Op::Put, put(3)), Ok((hop_flag::GRANTED, 42, 1)));
    fast.install_hot(&order(2, None)).expect("a sound order");
    for (seq, what) in [(3, "its grant was found"), (4, "its grant was given")] {
        assert_eq!(late(&mut slow, Op::Put, put(seq)), Err(DropReason::Contended), "{what}");
    }
    // Whoever knows the order sees what was given late, and so does not take it for new.
    assert_eq!(late(&mut fast, Op::Put, put(4)), Ok((0, 43, 2 << 16)));
    slow.follow_directory();
    assert_eq!(late(&mut slow, Op::Put, put(3)), Ok((0, 42, 2 << 16)));
}

#[test]
fn what_went_home_under_the_new_order_never_leaves_under_the_delegation() {
    let [mut slow, mut fast] = threads();
    fast.install_hot(&order(2, None)).expect("a sound order");
    assert_eq!(late(&mut fast, Op::Put, put(3)), Ok((0, 0, 2 << 16)));
    late(&mut slow, Op::PutReply, delegated(3).to_vec()).expect("the client hears of it");
    assert_eq!(late(&mut slow, Op::Put, put(3)), Err(DropReason::Contended));
}
