//! What goes on while time passes: leases end, neighbours come and go, the program is replaced.

use crate::stand::{GATEWAY, OWN, Outcome, SERVICE, XDP_DROP, XDP_PASS, XDP_REDIRECT, ready};
use crate::untouched::{get, tables};
use cluster::{
    ClusterId, HotOrder, Incarnation, Lease, Match, NodeId, Partition, PartitionId,
    SwitchControl as _, SwitchTables,
};
use machine::Instant;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as WallInstant, SystemTime, UNIX_EPOCH};
use testkit::flag::RaiseOnDrop;
use testkit::frame::HEADERS;
use testkit::wires::{Room, ip};
use wire::{DropReason, Fields as _, HEADER_LEN, Revision};
use xdp::{Mode, Plane, Program, Sink};

const INCARNATION: Incarnation = Incarnation(1);
const NODE: NodeId = NodeId(1);

fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Instant::from_unix_ms(u64::try_from(since.as_millis()).unwrap())
}

/// A switch in the kernel that goes by the real clock.
fn plane(program: Program) -> Plane<fn() -> Instant> {
    Plane::with_program(program, SERVICE, INCARNATION, now as fn() -> Instant).unwrap()
}

fn lease(ms: u64) -> Lease {
    Lease {
        cluster: cluster::ClusterId(0),
        incarnation: INCARNATION,
        revision: Revision::NONE,
        from: now(),
        duration_ms: ms,
    }
}

#[test]
fn a_lease_ends() {
    let Some((stand, program)) = ready("the end of a lease") else { return };
    let mut plane = plane(program);
    plane.pretend_port(stand.ifindex).unwrap();
    plane.install(&tables(SocketAddr::from(([10, 2, 0, 1], 9000)))).unwrap();
    plane.set_way(NODE, stand.ifindex, [GATEWAY, OWN]).unwrap();
    let frame = get();
    let action = |plane: &Plane<_>| {
        plane.program().run("keyway_one", &frame, stand.ifindex, 1).unwrap().action
    };
    assert_eq!(action(&plane), XDP_DROP, "there is no lease yet");
    for _ in 0..3 {
        let (from, mut forwarded) = (WallInstant::now(), 0_u64);
        plane.renew(now(), &lease(300));
        let mut last = Duration::ZERO;
        loop {
            let asked = from.elapsed();
            if action(&plane) != XDP_REDIRECT {
                break;
            }
            (last, forwarded) = (asked, forwarded + 1);
        }
        let held = from.elapsed();
        assert!(forwarded > 0 && held > Duration::from_millis(200), "{forwarded} in {held:?}");
        // When it was asked, for this process may have to wait then. One millisecond for what the
        // clock of the leases is cut to.
        assert!(last <= Duration::from_millis(301), "{last:?}");
        let rest = WallInstant::now() + Duration::from_millis(100);
        while WallInstant::now() < rest {
            assert_eq!(action(&plane), XDP_DROP, "it does not come back");
        }
    }
    let counters = plane.read_counters().unwrap();
    let dropped: Vec<DropReason> =
        counters.dropped().filter(|(_, n)| *n > 0).map(|(reason, _)| reason).collect();
    assert_eq!(dropped, [DropReason::NoLease]);
    plane.renew(now(), &Lease { incarnation: Incarnation(2), ..lease(60_000) });
    assert_eq!(action(&plane), XDP_DROP, "that one was for another");
}

#[test]
fn the_kernel_takes_no_orders_of_another_cluster_than_the_first() {
    let Some((stand, program)) = ready("orders of another cluster") else { return };
    let mut plane = plane(program);
    plane.pretend_port(stand.ifindex).unwrap();
    let ours = tables(SocketAddr::from(([10, 2, 0, 1], 9000)));
    plane.install(&ours).unwrap();
    plane.set_way(NODE, stand.ifindex, [GATEWAY, OWN]).unwrap();
    let action = |plane: &Plane<_>| {
        plane.program().run("keyway_one", &get(), stand.ifindex, 1).unwrap().action
    };
    let rival = ClusterId(9);
    plane.renew(now(), &Lease { cluster: rival, ..lease(60_000) });
    assert_eq!(action(&plane), XDP_DROP, "it gives no lease");
    plane.renew(now(), &lease(60_000));
    let theirs =
        SwitchTables { cluster: rival, revision: Revision::new(9), partitions: vec![], ..ours };
    plane.install(&theirs).unwrap();
    let hot = HotOrder {
        revision: Revision::new(9),
        cluster: rival,
        switch: INCARNATION,
        ..HotOrder::default()
    };
    plane.install_hot(&hot).unwrap();
    assert_eq!(action(&plane), XDP_REDIRECT);
    let counters = plane.counters();
    assert_eq!((counters.cluster, counters.revision), (Some(ClusterId(0)), Revision::new(1)));
    assert_eq!(counters.hot_revision, Revision::NONE);
}

#[test]
fn a_keyspace_grows_and_shrinks() {
    let Some((stand, program)) = ready("a keyspace of many partitions") else { return };
    let mut switch = stand.switch(program, true);
    let mut one = tables(SocketAddr::from(([10, 2, 0, 1], 9000)));
    let partition = one.partitions.pop().unwrap();
    // Those of 9000 do not fit the table that small keyspaces have.
    for (revision, count) in (1..).zip([3_u32, 9000, 5, 9001]) {
        let width = u128::MAX / u128::from(count);
        let first = |place: u32| u128::from(place) * width;
        let last = |place: u32| if place + 1 == count { u128::MAX } else { first(place + 1) - 1 };
        one.revision = Revision::new(revision);
        one.partitions = (0..count)
            .map(|place| Partition {
                id: PartitionId(place + 1),
                first: Match(first(place)),
                last: Match(last(place)),
                ..partition.clone()
            })
            .collect();
        switch.install(&one);
        for place in (0..count).step_by(1 + count as usize / 100).chain([count - 1]) {
            for at in [first(place), last(place)] {
                let mut frame = get();
                let header = frame[HEADERS..].first_chunk_mut::<HEADER_LEN>().unwrap();
                header.set_match_value(at);
                let Outcome::Dealt(sent) = switch.hand(&frame) else { panic!("not dealt with") };
                let header = sent[0].1.first_chunk::<HEADER_LEN>().unwrap();
                assert_eq!(header.partition(), place + 1, "{at:x} among {count}");
            }
        }
    }
}

#[test]
fn ways_are_found_when_the_kernel_knows_them() {
    let Some((stand, program)) = ready("finding ways") else { return };
    let mut plane = plane(program);
    assert_eq!(plane.attach("near").unwrap(), Mode::Native);
    plane.renew(now(), &lease(3_600_000));
    let frame = get();
    let mut revision = 0;
    let mut sent_to = |plane: &mut Plane<_>, addr: [u8; 4]| {
        revision += 1;
        let mut tables = tables(SocketAddr::from((addr, 9000)));
        tables.revision = Revision::new(revision);
        plane.install(&tables).unwrap();
        plane.find_ways().unwrap();
        let one = plane.program().run("keyway_one", &frame, stand.ifindex, 1).unwrap();
        let many = plane.program().run("keyway_many", &frame, 0, 1).unwrap();
        assert_eq!((many.action, &many.frame), (0, &frame), "one key is not for tc");
        match one.action {
            XDP_REDIRECT => Some(one.frame[..6].to_vec()),
            XDP_PASS => {
                assert_eq!(one.frame, frame);
                None
            }
            other => panic!("XDP says {other}"),
        }
    };
    // A neighbour, by a route through one, without a neighbour, without a route, not by our port.
    assert_eq!(sent_to(&mut plane, [10, 255, 0, 2]).unwrap(), GATEWAY);
    assert_eq!(sent_to(&mut plane, [10, 2, 0, 1]).unwrap(), GATEWAY);
    assert_eq!(sent_to(&mut plane, [10, 255, 0, 7]), None);
    ip("route add unreachable 10.77.0.0/16");
    assert_eq!(sent_to(&mut plane, [10, 77, 0, 1]), None);
    let room = Room::open().unwrap();
    room.wire("aside", "afar", 2);
    ip("address add 10.88.0.1/24 dev aside");
    ip("neighbour add 10.88.0.2 lladdr 02:00:00:00:02:02 dev aside nud permanent");
    assert_eq!(sent_to(&mut plane, [10, 88, 0, 2]), None);
    // They come, move and go.
    ip("neighbour add 10.255.0.7 lladdr 02:00:00:00:07:07 dev near nud permanent");
    assert_eq!(sent_to(&mut plane, [10, 255, 0, 7]).unwrap(), [2, 0, 0, 0, 7, 7]);
    ip("neighbour change 10.255.0.7 lladdr 02:00:00:00:07:08 dev near nud permanent");
    assert_eq!(sent_to(&mut plane, [10, 255, 0, 7]).unwrap(), [2, 0, 0, 0, 7, 8]);
    ip("neighbour delete 10.255.0.7 dev near");
    assert_eq!(sent_to(&mut plane, [10, 255, 0, 7]), None);
    // What is not known is not counted: the socket does that.
    assert_eq!(plane.read_counters().unwrap().datagrams(), 4);
}

/// Requests that are on their way at one time: fewer than a wire holds.
const WINDOW: u64 = 64;

#[test]
fn nothing_is_lost_while_the_program_is_replaced() {
    let Some((_stand, program)) = ready("replacing the program while packets flow") else { return };
    // A client and a node, each on a wire to the switch.
    let (clients, nodes) = (Room::open().unwrap(), Room::open().unwrap());
    clients.wire("clients", "client", 3);
    nodes.wire("nodes", "node", 4);
    ip("address add 10.1.0.254/24 dev clients");
    ip("address add 10.2.0.254/24 dev nodes");
    ip("neighbour add 10.2.0.1 lladdr 02:00:00:00:04:02 dev nodes nud permanent");
    clients.run(|| {
        ip("address add 10.1.0.1/24 dev client");
        ip("neighbour add 10.1.0.254 lladdr 02:00:00:00:03:01 dev client nud permanent");
        ip("route add default via 10.1.0.254");
    });
    let sink = nodes.run(|| Sink::attach("node")).unwrap();

    let mut plane = plane(program);
    for port in ["clients", "nodes"] {
        assert_eq!(plane.attach(port).unwrap(), Mode::Native);
    }
    plane.install(&tables(SocketAddr::from(([10, 2, 0, 1], 9000)))).unwrap();
    plane.renew(now(), &lease(3_600_000));
    let socket = clients.run(|| UdpSocket::bind("10.1.0.1:40000")).unwrap();
    socket.connect(SERVICE).unwrap();

    let datagram = get().split_off(HEADERS);
    let flow = |sent: &mut u64, goes_on: &dyn Fn() -> bool| {
        while goes_on() {
            socket.send(&datagram).unwrap();
            *sent += 1;
            let late = WallInstant::now() + Duration::from_secs(5);
            while *sent - sink.arrived() >= WINDOW {
                assert!(WallInstant::now() < late, "lost {}", *sent - sink.arrived());
            }
        }
    };
    let (ended, replaced) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let lasts = |time| {
        let until = WallInstant::now() + time;
        move || WallInstant::now() < until
    };
    std::thread::scope(|scope| {
        let reloads = scope.spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let next = plane.loader().spare().unwrap();
                plane.replace(next).unwrap();
                replaced.fetch_add(1, Ordering::Relaxed);
            }
            plane
        });
        let (raised, mut sent) = (RaiseOnDrop(ended), 0);
        // On a busy machine a program takes its time to load.
        let (is_short, is_bearable) =
            (lasts(Duration::from_secs(2)), lasts(Duration::from_secs(60)));
        flow(&mut sent, &|| is_short() || replaced.load(Ordering::Relaxed) < 2 && is_bearable());
        drop(raised);
        let plane = reloads.join().unwrap();
        flow(&mut sent, &lasts(Duration::from_millis(50)));
        let late = WallInstant::now() + Duration::from_secs(5);
        while sink.arrived() < sent && WallInstant::now() < late {
            std::thread::yield_now();
        }
        assert_eq!(sink.arrived(), sent, "every one arrives");
        let counters = plane.read_counters().unwrap();
        assert_eq!((counters.datagrams(), counters.emitted()), (sent, sent), "all are counted");
        println!("{replaced:?} times replaced under {sent} packets");
    });
    let replaced = replaced.load(Ordering::Relaxed);
    assert!(replaced >= 2, "it was replaced {replaced} times");
}
