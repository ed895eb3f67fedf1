//! Writes of a key on a trip: the program and the sockets behind it give stamps from one table, of
//! which nothing is lost and nothing given twice.

use crate::choice::many_hold;
use crate::draw;
use crate::hot::{HOME, KEYHASH, LIFE, addr, asks, bytes, hot_switch, order, rack, says};
use crate::oracle::model::Sent;
use crate::stand::{Outcome, Switch, ready};
use crate::untouched::CLIENT;
use cluster::{
    HotOrder, KeyspaceId, Lease, NodeId, Selection, SwitchControl as _, SwitchTables, Trip,
};
use machine::{Instant, Outbox, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use switch::{Keeper as _, Pipeline, Roamed};
use wire::{Code, DropReason, Endpoint, Fields as _, HEADER_LEN, Header, Op, hop_flag};

/// A PUT of a key on a trip, new or a copy of another, or what a node says of one. `moment` is the
/// switch's; requests are those from `from` on.
pub(crate) fn roaming(
    tables: &SwitchTables,
    order: &HotOrder,
    rng: &mut Rng,
    moment: u64,
    from: u64,
) -> Option<Sent> {
    let away: Vec<_> = order.keys.iter().filter_map(|key| Some((key, key.trip?))).collect();
    let mut draw = |below: usize| usize::try_from(rng.below(below as u64)).unwrap();
    let (key, trip) = away.get(draw(away.len().max(1)))?;
    let mut partitions = tables.partitions.iter().filter(|it| it.keyspace == key.keyspace);
    let node = tables.nodes.get(draw(tables.nodes.len().max(1)))?;
    let mut header = Header {
        op: Op::Put as u8,
        keyspace: key.keyspace.0,
        keyhash: key.keyhash,
        match_value: partitions.next_back()?.first.0 >> 64 << 64 | key.match_value.0,
        client: draw(draw::CLIENTS as usize) as u64,
        seq: from + draw(draw::REQUESTS as usize) as u64,
        // Mostly others are still under way.
        lag: u16::try_from(if draw(32) == 0 { draw(8) } else { 8 + draw(8) }).unwrap(),
        ..Header::default()
    };
    // Not those of other packets, which may say that all requests there are have ended.
    header.client = draw::client_of(&header) + ((from / 64 + 1) << 32);
    let kind = draw(8);
    if kind > 1 {
        let mut bytes = Vec::new();
        wire::emit(&mut bytes, &header, &[&[0; 8], b"v"]);
        let first_sent = [moment, moment, moment.saturating_sub(1), 0][draw(4)];
        bytes.first_chunk_mut::<HEADER_LEN>().unwrap().set_moment(first_sent);
        let client = SocketAddr::from(([10, 1, 0, 1], 7));
        return Some((client.into(), bytes));
    }
    let client = Endpoint::from(SocketAddr::from(([10, 200, 0, 1], 9)));
    header.op = Op::PutReply as u8;
    (header.node, header.reply_addr, header.reply_port) = (node.id.0, client.addr, client.port);
    header.object_version = draw(12) as u64;
    if kind == 0 {
        header.code = Code::Away as u8;
        header.chain[8..].copy_from_slice(&trip.number.to_be_bytes());
    } else {
        header.hop_flags = hop_flag::ROAM;
    }
    Some((node.endpoint, bytes(&header)))
}

const NOW: Instant = Instant::from_unix_ms(1_000);

/// The order with this trip, or none, of the key.
fn on_trip(revision: u64, number: Option<u64>) -> HotOrder {
    let mut order = order(revision, 1);
    order.keys[0].trip = number.map(|number| Trip { number, replicas: 2, copies: 0 });
    order
}

fn moment(revision: u64, trips: u64) -> u64 {
    revision << wire::MOMENT_TRIPS_BITS | trips
}

/// A PUT of the key, whose client says that all requests so many below it have ended.
fn put(client: u64, seq: u64, first_sent: u64, lag: u16) -> Vec<u8> {
    let op = Op::Put as u8;
    let header =
        Header { op, keyspace: 1, keyhash: KEYHASH, client, seq, lag, ..Header::default() };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[&[0; 8], b"k", b"v"]);
    bytes.first_chunk_mut::<HEADER_LEN>().unwrap().set_moment(first_sent);
    bytes
}

/// The head's word that this request of client 7 is away on a trip with versions above this one.
fn away(seq: u64, trip: u64, leave: u64) -> Vec<u8> {
    let code = Code::Away as u8;
    let header = says(Op::PutReply, HOME, leave, trip);
    bytes(&Header { code, client: 7, seq, hop_flags: 0, ..header })
}

/// Hop flags, version, and what stands for the moment or the trip.
fn stamps(datagram: &[u8]) -> (u8, u64, u64) {
    let header = datagram.first_chunk::<HEADER_LEN>().unwrap();
    (header.hop_flags(), header.object_version(), header.moment())
}

/// What is known of the key at the sockets and in the kernel.
struct Both<'s> {
    switch: Switch<'s>,
    behind: Pipeline,
}

impl<'s> Both<'s> {
    fn new(switch: Switch<'s>) -> Self {
        let mut behind = Pipeline::behind(LIFE, Arc::new(switch.plane.keeper().unwrap()));
        behind.renew(
            NOW,
            &Lease {
                cluster: cluster::ClusterId(0),
                life: LIFE,
                revision: 0,
                from: NOW,
                duration_ms: 1,
            },
        );
        behind.install(&rack(1)).unwrap();
        Self { switch, behind }
    }

    fn kernel(&self, datagram: &[u8]) -> Option<(Endpoint, Vec<u8>)> {
        let from = SocketAddr::from((CLIENT.0, CLIENT.1)).into();
        let Outcome::Dealt(mut sent) = self.switch.process(from, datagram) else { panic!("left") };
        sent.pop()
    }

    fn socket(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<Vec<u8>, DropReason> {
        let mut out = Outbox::default();
        self.behind.process(NOW, from.into(), &mut datagram.to_vec(), &mut out)?;
        Ok(out.pop().unwrap().payload.to_vec())
    }

    /// The floor of the key, and of its trip the number and the version that is given next.
    fn explained(&self) -> (u64, Option<(u64, Option<u64>)>) {
        let plane = &self.switch.plane;
        assert_eq!(plane.explain_hot(KeyspaceId(1), KEYHASH + 1).unwrap(), None, "another key");
        let hot = plane.explain_hot(KeyspaceId(1), KEYHASH).unwrap().unwrap();
        let readers = [2, 3].map(|node| (NodeId(node), false));
        assert_eq!((hot.stay, hot.readers, hot.proven), (1, readers.to_vec(), false));
        assert!(hot.trip.is_none_or(|trip| trip.replicas == 2));
        (hot.floor, hot.trip.map(|trip| (trip.number, trip.next)))
    }

    /// What a PUT leaves with, which has to be the same at both.
    fn puts(&mut self, datagram: &[u8]) -> Option<(u8, u64, u64)> {
        let kernel = self.kernel(datagram).map(|(_, sent)| sent);
        let socket = self.socket(SocketAddr::from((CLIENT.0, CLIENT.1)), datagram).ok();
        assert_eq!(kernel, socket, "the second has the stamp of the first");
        kernel.map(|sent| stamps(&sent))
    }
}

const ROAM: u8 = hop_flag::ROAM;

#[test]
fn program_and_sockets_give_stamps_from_one_table() {
    let Some((stand, program)) = ready("stamps in the kernel and at the sockets") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&on_trip(2, Some(2))).unwrap();
    assert!(both.switch.plane.counters().roams);
    assert_eq!(both.puts(&put(7, 1, moment(2, 0), 0)), Some((0, 0, moment(2, 0))), "at home");
    assert_eq!(both.explained(), (0, Some((2, None))), "it has not begun");
    // The word comes to the socket: in fragments, say.
    let told = both.socket(addr(HOME), &away(1, 2, 40)).unwrap();
    assert_eq!(told.first_chunk::<HEADER_LEN>().unwrap().told(), moment(2, 1));
    assert_eq!(both.puts(&put(7, 1, moment(2, 0), 0)), Some((ROAM, 41, 2)));
    assert_eq!(both.puts(&put(7, 2, moment(2, 0), 0)), Some((0, 0, moment(2, 1))), "too old");
    assert_eq!(both.puts(&put(7, 3, moment(2, 1), 2)), Some((ROAM, 42, 2)));
    assert_eq!(both.explained(), (0, Some((2, Some(43)))), "and asking takes no version");
    // The other way round: given at the socket, found in the kernel.
    let fourth = put(7, 4, moment(2, 1), 3);
    let from = SocketAddr::from((CLIENT.0, CLIENT.1));
    assert_eq!(stamps(&both.socket(from, &fourth).unwrap()), (ROAM, 43, 2));
    assert_eq!(both.puts(&fourth), Some((ROAM, 43, 2)));
    assert_eq!(both.switch.plane.read_counters().unwrap().roamed(), [2, 5]);
    assert_eq!(both.behind.counters_ref().roamed(), [0, 0], "counted in the kernel");

    // The trip ends, and the stamps are known.
    both.switch.plane.install_hot(&on_trip(3, None)).unwrap();
    assert_eq!(both.puts(&fourth), Some((0, 43, moment(3, 0))));
    assert_eq!(both.explained(), (0, None));
    assert_eq!(both.puts(&put(7, 5, moment(2, 1), 4)), Some((0, 0, moment(3, 0))));
    // The next trip: what was not applied on the first is given another stamp, once.
    both.switch.plane.install_hot(&on_trip(4, Some(4))).unwrap();
    for _ in 0..2 {
        both.socket(addr(HOME), &away(4, 4, 1 << 33)).unwrap();
        assert_eq!(both.puts(&fourth), Some((ROAM, (1 << 33) + 1, 4)));
    }
    // What has ended has no stamp, and is given none.
    assert_eq!(both.puts(&put(7, 9, moment(4, 1), 0)), Some((ROAM, (1 << 33) + 2, 4)));
    assert_eq!(both.puts(&fourth), None);
    assert_eq!(both.switch.counts().dropped["stale_request"], 1);
    both.socket(addr(HOME), &away(5, 4, 1 << 33)).unwrap();
    assert_eq!(both.puts(&put(7, 10, moment(4, 1), 1)), Some((ROAM, (1 << 33) + 3, 4)));
    // A program that takes over finds all of it.
    let next = both.switch.plane.loader().spare().unwrap();
    both.switch.plane.replace(next).unwrap();
    assert_eq!(both.puts(&put(7, 10, moment(4, 1), 1)), Some((ROAM, (1 << 33) + 3, 4)));
    assert_eq!(both.puts(&fourth), None);
}

#[test]
fn whoever_a_write_was_stamped_for_is_asked_once_it_is_acknowledged() {
    let Some((stand, program)) = ready("readers of writes on trips") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    let with_copies = |revision, copies| {
        let mut order = on_trip(revision, Some(2));
        order.keys[0].trip = Some(Trip { number: 2, replicas: 1, copies });
        order
    };
    both.switch.plane.install_hot(&with_copies(2, 0)).unwrap();
    both.socket(addr(HOME), &away(1, 2, 40)).unwrap();
    both.socket(addr(HOME), &bytes(&says(Op::GetReply, HOME, 40, 1))).unwrap();
    // The answer passes the program, or the sockets, and copies may change while the key is away.
    for (seq, copies, by_kernel) in [(2, 0, true), (3, 1, true), (4, 1, false), (5, 0, false)] {
        both.switch.plane.install_hot(&with_copies(seq + 1, copies)).unwrap();
        let (_, sent) = both.kernel(&put(7, seq, moment(2, 1), 0)).unwrap();
        let header: &[u8; HEADER_LEN] = sent.first_chunk().unwrap();
        assert_eq!(header.chain_len(), 1);
        let chain = header.chain();
        let ids = chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
        let nodes: BTreeSet<u16> = ids.filter(|id| *id != wire::NOBODY).collect();
        assert_eq!(nodes.len(), 1 + usize::from(copies));
        let first = u16::from_be_bytes([chain[0], chain[1]]);
        let done = says(Op::PutReply, first, header.object_version(), 0);
        let done = bytes(&Header { client: 7, seq, hop_flags: ROAM, ..done });
        if by_kernel {
            let from = Endpoint::from(addr(first));
            assert!(matches!(both.switch.process(from, &done), Outcome::Dealt(_)));
        } else {
            both.socket(addr(first), &done).unwrap();
        }
        let asked: BTreeSet<u16> = (0..50).map(|_| asks(&both.switch).0).collect();
        assert_eq!(asked, nodes);
    }
}

/// As nodes see it, which copy a write to others of that window.
#[test]
fn the_nodes_of_a_write_are_in_one_window_of_a_long_row() {
    let Some((stand, program)) = ready("a trip among 100 nodes") else { return };
    let trip = Trip { number: 2, replicas: 2, copies: 3 };
    let switch = many_hold(&stand, program, 2..=101, Selection::Random, Some(trip));
    let home = Endpoint::from(addr(HOME));
    assert!(matches!(switch.process(home, &away(1, 2, 40)), Outcome::Dealt(_)));
    let client = Endpoint::from(SocketAddr::from((CLIENT.0, CLIENT.1)));
    let mut met = BTreeSet::new();
    for seq in 2..600 {
        let put = put(7, seq, moment(2, 1), 0);
        let Outcome::Dealt(sent) = switch.process(client, &put) else { panic!("left") };
        let chain = sent[0].1.first_chunk::<HEADER_LEN>().unwrap().chain();
        let ids = chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
        let places: Vec<_> = ids.filter(|id| *id != wire::NOBODY).map(|id| id - 2).collect();
        let window = |place: &u16| cluster::window(100, (*place).into()).start;
        let windows: BTreeSet<_> = places.iter().map(window).collect();
        assert_eq!((places.len(), windows.len()), (4, 1), "{places:?}");
        met.extend(places);
    }
    assert_eq!(met.len(), 50, "all of the first window");
}

#[test]
fn a_trip_that_was_here_before_does_not_come_again() {
    let Some((stand, program)) = ready("trips that come again") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&on_trip(2, Some(2))).unwrap();
    both.switch.plane.install_hot(&on_trip(3, Some(2))).unwrap();
    assert_eq!(both.switch.plane.hot_revision(), 3, "it goes on");
    both.socket(addr(HOME), &away(1, 2, 40)).unwrap();
    both.switch.plane.install_hot(&on_trip(4, Some(2))).unwrap();
    assert_eq!(
        both.puts(&put(7, 2, moment(3, 1), 0)),
        Some((ROAM, 42, 2)),
        "and knows its versions"
    );
    both.switch.plane.install_hot(&on_trip(5, None)).unwrap();
    both.switch.plane.install_hot(&on_trip(6, Some(2))).unwrap();
    assert_eq!(both.switch.plane.hot_revision(), 5, "its versions would be given once more");
}

#[test]
fn silent_clients_are_forgotten_and_others_are_not() {
    let Some((stand, program)) = ready("clients that were silent") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&on_trip(2, Some(2))).unwrap();
    both.socket(addr(HOME), &away(1, 2, 40)).unwrap();
    for client in [7, 8] {
        let mark = put(client, 100, moment(2, 1), 0);
        assert_eq!(both.puts(&mark).map(|it| it.0), Some(ROAM));
    }
    let late = |client| put(client, 99, moment(2, 1), 0);
    for pass in 0..=u64::from(wire::SESSION_IDLE_SECS as u32) + 2 {
        both.switch.plane.sweep(NOW + Duration::from_secs(pass)).unwrap();
        both.switch.plane.sweep(NOW + Duration::from_millis(pass * 1_000 + 500)).unwrap();
        if pass % 300 == 0 {
            assert_eq!(both.puts(&late(8)), None, "below the mark");
        }
    }
    assert_eq!(both.puts(&late(8)), None, "it was heard");
    assert_eq!(both.puts(&late(7)).map(|it| it.0), Some(ROAM), "nothing is known of it");
}

/// Clients that the kernel remembers.
const CLIENTS_MAX: u64 = 1 << 16;

#[test]
fn who_finds_no_room_in_the_kernel_is_sent_home_with_that_word_and_nobody_is_forgotten() {
    let Some((stand, program)) = ready("more clients than there is room for") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&on_trip(2, Some(2))).unwrap();
    both.socket(addr(HOME), &away(1, 2, 40)).unwrap();
    let made_up = |n, moment| put(1_000 + n, 1, moment, 0);
    for n in 1..CLIENTS_MAX {
        let sent = both.kernel(&made_up(n, moment(2, 1))).unwrap().1;
        assert_eq!(stamps(&sent), (ROAM, 41 + n, 2));
    }
    let crowded = Some((hop_flag::CROWDED, 0, moment(2, 1)));
    let one_more = made_up(CLIENTS_MAX, moment(2, 1));
    assert_eq!(both.puts(&one_more), crowded);
    assert_eq!(both.puts(&made_up(CLIENTS_MAX, moment(2, 0))), crowded, "too old besides");
    assert_eq!(both.switch.plane.read_counters().unwrap().crowded(), 4);
    assert_eq!(both.puts(&made_up(1, moment(2, 1))), Some((ROAM, 42, 2)), "it is known");
    let next = put(1_001, 2, moment(2, 1), 0);
    assert_eq!(both.puts(&next), Some((ROAM, 41 + CLIENTS_MAX, 2)), "who is known has room");
}

/// Copies of each request come by both processors, and the low-water mark follows.
#[test]
fn each_request_has_one_stamp_among_processors() {
    let Some((stand, program)) = ready("stamps on all processors") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&on_trip(2, Some(2))).unwrap();
    both.socket(addr(HOME), &away(1, 2, 40)).unwrap();
    let keepers = [0, 1].map(|_| both.switch.plane.keeper().unwrap());
    let requests = 20_000;
    let given = std::thread::scope(|scope| {
        let threads = keepers.iter().map(|keeper| {
            scope.spawn(move || {
                let mut given = BTreeMap::new();
                for seq in 2..requests {
                    let datagram = put(7, seq, moment(2, 1), 64);
                    let header = datagram.first_chunk::<HEADER_LEN>().unwrap();
                    let roamed = loop {
                        let mut header = *header;
                        match keeper.roam(&mut header) {
                            Err(DropReason::Contended) => {}
                            Ok(Roamed::Away) => {
                                break Ok((header.object_version(), header.chain()));
                            }
                            other => break Err(other),
                        }
                    };
                    match roamed {
                        Ok(stamp) => drop(given.insert(seq, stamp)),
                        Err(other) => assert_eq!(other, Err(DropReason::StaleRequest)),
                    }
                }
                given
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
    });
    let mut versions = BTreeSet::new();
    let mut twice = 0;
    for seq in 2..requests {
        let stamps: BTreeSet<_> = given.iter().filter_map(|it| it.get(&seq)).collect();
        assert!(stamps.len() <= 1, "request {seq}: {stamps:?}");
        twice += usize::from(given.iter().all(|it| it.contains_key(&seq)));
        for (version, _) in stamps {
            assert!(versions.insert(*version), "version {version} is given twice");
        }
    }
    println!("{twice} of {requests} requests were stamped on both processors");
    both.switch.plane.sweep(NOW).unwrap();
}
