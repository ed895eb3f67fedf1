//! Writes of a delegated key: the program and the sockets behind it give grants from one table, of
//! which nothing is lost and nothing given twice.

use crate::choice::many_hold;
use crate::hot::{HOME, INCARNATION, KEYHASH, addr, asks, bytes, hot_switch, order, rack, says};
use crate::stand::{Outcome, Switch, ready};
use crate::untouched::CLIENT;
use cluster::{
    Delegation, HotOrder, KeyspaceId, Lease, NodeId, Selection, SwitchControl as _, SwitchTables,
};
use machine::{Instant, Outbox, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use switch::{Pipeline, WriteRoute};
use testkit::draw;
use testkit::oracle::model::Sent;
use wire::{
    ClientReply, ClientWrite, Code, DelegationId, DirectoryClock, DropReason, Endpoint,
    Fields as _, Generation, GrantedPut, HEADER_LEN, Header, HomeWrite, KeyReply, Op, Revision,
    Version, hop_flag,
};

/// A PUT of a delegated key, new or a copy of another, or what a node says of one.
/// `directory_clock` is the switch's; requests are those from `from` on.
pub(crate) fn delegated(
    tables: &SwitchTables,
    order: &HotOrder,
    rng: &mut Rng,
    directory_clock: u64,
    from: u64,
) -> Option<Sent> {
    let delegated: Vec<_> =
        order.keys.iter().filter_map(|key| Some((key, key.delegation?))).collect();
    let mut draw = |below: usize| usize::try_from(rng.below(below as u64)).unwrap();
    let (key, delegation) = delegated.get(draw(delegated.len().max(1)))?;
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
        let first_sent =
            [directory_clock, directory_clock, directory_clock.saturating_sub(1), 0][draw(4)];
        ClientWrite { first_sent: DirectoryClock::new(first_sent) }
            .write(bytes.first_chunk_mut().unwrap());
        let client = SocketAddr::from(([10, 1, 0, 1], 7));
        return Some((client.into(), bytes));
    }
    let client = Endpoint::from(SocketAddr::from(([10, 200, 0, 1], 9)));
    header.op = Op::PutReply as u8;
    (header.node, header.reply_addr, header.reply_port) = (node.id.0, client.addr, client.port);
    KeyReply { version: Version::new(draw(12) as u64) }.put(&mut header);
    if kind == 0 {
        header.code = Code::Delegated as u8;
        header.chain[8..].copy_from_slice(&delegation.number.get().to_be_bytes());
    } else {
        header.hop_flags = hop_flag::GRANTED;
    }
    Some((node.endpoint, bytes(&header)))
}

const NOW: Instant = Instant::from_unix_ms(1_000);

/// The order with this delegation, or none, of the key.
fn order_with(revision: u64, number: Option<u64>) -> HotOrder {
    let mut order = order(revision, 1);
    order.keys[0].delegation = number.map(|number| Delegation {
        number: DelegationId::new(number),
        replicas: 2,
        copies: 0,
    });
    order
}

fn directory_clock(revision: u64, delegations: u64) -> u64 {
    revision << wire::CLOCK_DELEGATIONS_BITS | delegations
}

/// A PUT of the key, whose client says that all requests so many below it have ended.
fn put(client: u64, seq: u64, first_sent: u64, lag: u16) -> Vec<u8> {
    let op = Op::Put as u8;
    let header =
        Header { op, keyspace: 1, keyhash: KEYHASH, client, seq, lag, ..Header::default() };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[&[0; 8], b"k", b"v"]);
    ClientWrite { first_sent: DirectoryClock::new(first_sent) }
        .write(bytes.first_chunk_mut().unwrap());
    bytes
}

/// The head's word that this request of client 7 is delegated with versions
/// above this one.
fn say_delegated(seq: u64, delegation: u64, leave: u64) -> Vec<u8> {
    let code = Code::Delegated as u8;
    let header = says(Op::PutReply, HOME, leave, delegation);
    bytes(&Header { code, client: 7, seq, hop_flags: 0, ..header })
}

/// Hop flags, version, and what stands for the moment or the delegation.
fn grants(datagram: &[u8]) -> (u8, u64, u64) {
    let header = datagram.first_chunk::<HEADER_LEN>().unwrap();
    let HomeWrite { granted, clock } = HomeWrite::read(header);
    (header.hop_flags(), granted.get(), clock.get())
}

/// What is known of the key at the sockets and in the kernel.
struct Both<'s> {
    switch: Switch<'s>,
    behind: Pipeline,
}

impl<'s> Both<'s> {
    fn new(switch: Switch<'s>) -> Self {
        let mut behind =
            Pipeline::behind(INCARNATION, Arc::new(switch.plane.kernel_directory().unwrap()));
        behind.renew(
            NOW,
            &Lease {
                cluster: cluster::ClusterId(0),
                incarnation: INCARNATION,
                revision: Revision::NONE,
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

    /// The floor of the key, and of its delegation the number and the version that is given next.
    fn explained(&self) -> (u64, Option<(u64, Option<u64>)>) {
        let plane = &self.switch.plane;
        assert_eq!(plane.explain_hot(KeyspaceId(1), KEYHASH + 1).unwrap(), None, "another key");
        let hot = plane.explain_hot(KeyspaceId(1), KEYHASH).unwrap().unwrap();
        let readers = [2, 3].map(|node| (NodeId(node), false));
        assert_eq!(
            (hot.generation, hot.readers, hot.proven),
            (Generation::new(1), readers.to_vec(), false)
        );
        assert!(hot.delegation.is_none_or(|delegation| delegation.replicas == 2));
        (hot.floor.get(), hot.delegation.map(|it| (it.number.get(), it.next.map(Version::get))))
    }

    /// What a PUT leaves with, which has to be the same at both.
    fn puts(&mut self, datagram: &[u8]) -> Option<(u8, u64, u64)> {
        let kernel = self.kernel(datagram).map(|(_, sent)| sent);
        let socket = self.socket(SocketAddr::from((CLIENT.0, CLIENT.1)), datagram).ok();
        assert_eq!(kernel, socket, "the second has the grant of the first");
        kernel.map(|sent| grants(&sent))
    }
}

const GRANTED: u8 = hop_flag::GRANTED;

#[test]
fn program_and_sockets_give_grants_from_one_table() {
    let Some((stand, program)) = ready("grants in the kernel and at the sockets") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&order_with(2, Some(2))).unwrap();
    assert!(both.switch.plane.counters().capabilities.delegates);
    assert_eq!(
        both.puts(&put(7, 1, directory_clock(2, 0), 0)),
        Some((0, 0, directory_clock(2, 0))),
        "at home"
    );
    assert_eq!(both.explained(), (0, Some((2, None))), "it has not begun");
    // The word comes to the socket: in fragments, say.
    let told = both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    assert_eq!(
        ClientReply::read(told.first_chunk().unwrap()).clock,
        DirectoryClock::new(directory_clock(2, 1))
    );
    assert_eq!(both.puts(&put(7, 1, directory_clock(2, 0), 0)), Some((GRANTED, 41, 2)));
    assert_eq!(
        both.puts(&put(7, 2, directory_clock(2, 0), 0)),
        Some((0, 0, directory_clock(2, 1))),
        "too old"
    );
    assert_eq!(both.puts(&put(7, 3, directory_clock(2, 1), 2)), Some((GRANTED, 42, 2)));
    assert_eq!(both.explained(), (0, Some((2, Some(43)))), "and asking takes no version");
    // The other way round: given at the socket, found in the kernel.
    let fourth = put(7, 4, directory_clock(2, 1), 3);
    let from = SocketAddr::from((CLIENT.0, CLIENT.1));
    assert_eq!(grants(&both.socket(from, &fourth).unwrap()), (GRANTED, 43, 2));
    assert_eq!(both.puts(&fourth), Some((GRANTED, 43, 2)));
    assert_eq!(both.switch.plane.read_counters().unwrap().delegated(), [2, 5]);
    assert_eq!(both.behind.counters_ref().delegated(), [0, 0], "counted in the kernel");

    // The delegation ends, and the grants are known.
    both.switch.plane.install_hot(&order_with(3, None)).unwrap();
    assert_eq!(both.puts(&fourth), Some((0, 43, directory_clock(3, 0))));
    assert_eq!(both.explained(), (0, None));
    assert_eq!(
        both.puts(&put(7, 5, directory_clock(2, 1), 4)),
        Some((0, 0, directory_clock(3, 0)))
    );
    // The next delegation: what was not applied on the first is given another grant, once.
    both.switch.plane.install_hot(&order_with(4, Some(4))).unwrap();
    for _ in 0..2 {
        both.socket(addr(HOME), &say_delegated(4, 4, 1 << 33)).unwrap();
        assert_eq!(both.puts(&fourth), Some((GRANTED, (1 << 33) + 1, 4)));
    }
    // What has ended has no grant, and is given none.
    assert_eq!(both.puts(&put(7, 9, directory_clock(4, 1), 0)), Some((GRANTED, (1 << 33) + 2, 4)));
    assert_eq!(both.puts(&fourth), None);
    assert_eq!(both.switch.counts().dropped["stale_request"], 1);
    both.socket(addr(HOME), &say_delegated(5, 4, 1 << 33)).unwrap();
    assert_eq!(both.puts(&put(7, 10, directory_clock(4, 1), 1)), Some((GRANTED, (1 << 33) + 3, 4)));
    // A program that takes over finds all of it.
    let next = both.switch.plane.loader().spare().unwrap();
    both.switch.plane.replace(next).unwrap();
    assert_eq!(both.puts(&put(7, 10, directory_clock(4, 1), 1)), Some((GRANTED, (1 << 33) + 3, 4)));
    assert_eq!(both.puts(&fourth), None);
}

#[test]
fn whoever_a_write_was_stamped_for_is_asked_once_it_is_acknowledged() {
    let Some((stand, program)) = ready("readers of delegated writes") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    let with_copies = |revision, copies| {
        let mut order = order_with(revision, Some(2));
        order.keys[0].delegation =
            Some(Delegation { number: DelegationId::new(2), replicas: 1, copies });
        order
    };
    both.switch.plane.install_hot(&with_copies(2, 0)).unwrap();
    both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    both.socket(addr(HOME), &bytes(&says(Op::GetReply, HOME, 40, 1))).unwrap();
    // The answer passes the program, or the sockets, and copies may change while the key is
    // delegated.
    for (seq, copies, by_kernel) in [(2, 0, true), (3, 1, true), (4, 1, false), (5, 0, false)] {
        both.switch.plane.install_hot(&with_copies(seq + 1, copies)).unwrap();
        let (_, sent) = both.kernel(&put(7, seq, directory_clock(2, 1), 0)).unwrap();
        let header: &[u8; HEADER_LEN] = sent.first_chunk().unwrap();
        assert_eq!(header.chain_len(), 1);
        let chain = header.chain();
        let ids = chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
        let nodes: BTreeSet<u16> = ids.filter(|id| *id != wire::NOBODY).collect();
        assert_eq!(nodes.len(), 1 + usize::from(copies));
        let first = u16::from_be_bytes([chain[0], chain[1]]);
        let done = says(Op::PutReply, first, GrantedPut::read(header).version.get(), 0);
        let done = bytes(&Header { client: 7, seq, hop_flags: GRANTED, ..done });
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

/// As nodes see it, which copy a write to others of that bank.
#[test]
fn the_nodes_of_a_write_are_in_one_bank_of_many_candidates() {
    let Some((stand, program)) = ready("a delegation among 100 nodes") else { return };
    let delegation = Delegation { number: DelegationId::new(2), replicas: 2, copies: 3 };
    let switch = many_hold(&stand, program, 2..=101, Selection::Random, Some(delegation));
    let home = Endpoint::from(addr(HOME));
    assert!(matches!(switch.process(home, &say_delegated(1, 2, 40)), Outcome::Dealt(_)));
    let client = Endpoint::from(SocketAddr::from((CLIENT.0, CLIENT.1)));
    let mut met = BTreeSet::new();
    for seq in 2..600 {
        let put = put(7, seq, directory_clock(2, 1), 0);
        let Outcome::Dealt(sent) = switch.process(client, &put) else { panic!("left") };
        let chain = sent[0].1.first_chunk::<HEADER_LEN>().unwrap().chain();
        let ids = chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
        let places: Vec<_> = ids.filter(|id| *id != wire::NOBODY).map(|id| id - 2).collect();
        let bank = |place: &u16| cluster::bank(100, (*place).into()).start;
        let banks: BTreeSet<_> = places.iter().map(bank).collect();
        assert_eq!((places.len(), banks.len()), (4, 1), "{places:?}");
        met.extend(places);
    }
    assert_eq!(met.len(), 50, "all of the first bank");
}

#[test]
fn a_delegation_that_was_here_before_does_not_come_again() {
    let Some((stand, program)) = ready("delegations that come again") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&order_with(2, Some(2))).unwrap();
    both.switch.plane.install_hot(&order_with(3, Some(2))).unwrap();
    assert_eq!(both.switch.plane.hot_revision(), Revision::new(3), "it goes on");
    both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    both.switch.plane.install_hot(&order_with(4, Some(2))).unwrap();
    assert_eq!(
        both.puts(&put(7, 2, directory_clock(3, 1), 0)),
        Some((GRANTED, 42, 2)),
        "and knows its versions"
    );
    both.switch.plane.install_hot(&order_with(5, None)).unwrap();
    both.switch.plane.install_hot(&order_with(6, Some(2))).unwrap();
    assert_eq!(
        both.switch.plane.hot_revision(),
        Revision::new(5),
        "its versions would be given once more"
    );
}

#[test]
fn silent_clients_are_forgotten_and_others_are_not() {
    let Some((stand, program)) = ready("clients that were silent") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&order_with(2, Some(2))).unwrap();
    both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    for client in [7, 8] {
        let holder = put(client, 100, directory_clock(2, 1), 0);
        assert_eq!(both.puts(&holder).map(|it| it.0), Some(GRANTED));
    }
    let late = |client| put(client, 99, directory_clock(2, 1), 0);
    for pass in 0..=u64::from(wire::SESSION_IDLE_SECS as u32) + 2 {
        both.switch.plane.sweep(NOW + Duration::from_secs(pass)).unwrap();
        both.switch.plane.sweep(NOW + Duration::from_millis(pass * 1_000 + 500)).unwrap();
        if pass % 300 == 0 {
            assert_eq!(both.puts(&late(8)), None, "below the holder");
        }
    }
    assert_eq!(both.puts(&late(8)), None, "it was heard");
    assert_eq!(both.puts(&late(7)).map(|it| it.0), Some(GRANTED), "nothing is known of it");
}

/// Clients that the kernel remembers.
const CLIENTS_MAX: u64 = 1 << 16;

#[test]
fn who_finds_no_room_in_the_kernel_is_sent_home_with_that_word_and_nobody_is_forgotten() {
    let Some((stand, program)) = ready("more clients than there is room for") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&order_with(2, Some(2))).unwrap();
    both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    let made_up = |n, directory_clock| put(1_000 + n, 1, directory_clock, 0);
    for n in 1..CLIENTS_MAX {
        let sent = both.kernel(&made_up(n, directory_clock(2, 1))).unwrap().1;
        assert_eq!(grants(&sent), (GRANTED, 41 + n, 2));
    }
    let crowded = Some((hop_flag::CROWDED, 0, directory_clock(2, 1)));
    let one_more = made_up(CLIENTS_MAX, directory_clock(2, 1));
    assert_eq!(both.puts(&one_more), crowded);
    assert_eq!(both.puts(&made_up(CLIENTS_MAX, directory_clock(2, 0))), crowded, "too old besides");
    assert_eq!(both.switch.plane.read_counters().unwrap().crowded(), 4);
    assert_eq!(
        both.puts(&made_up(1, directory_clock(2, 1))),
        Some((GRANTED, 42, 2)),
        "it is known"
    );
    let next = put(1_001, 2, directory_clock(2, 1), 0);
    assert_eq!(both.puts(&next), Some((GRANTED, 41 + CLIENTS_MAX, 2)), "who is known has room");
}

#[test]
fn who_has_said_goodbye_takes_no_room_in_the_kernel_and_is_given_nothing_any_more() {
    let Some((stand, program)) = ready("goodbyes in the kernel") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&order_with(2, Some(2))).unwrap();
    both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    let first = |client| put(client, 1, directory_clock(2, 1), 0);
    for n in 1..CLIENTS_MAX {
        both.kernel(&first(1_000 + n)).unwrap();
    }
    let op = Op::Goodbye as u8;
    for client in [1_001, 1_002, 3] {
        let header = Header { op, keyspace: 1, client, seq: 2, ..Header::default() };
        let mut goodbye = Vec::new();
        wire::emit(&mut goodbye, &header, &[]);
        assert!(both.kernel(&goodbye).is_some(), "its home hears it");
    }
    assert_eq!(both.puts(&first(1_001)), None, "at once");
    let passes = u64::from(wire::SESSION_IDLE_SECS as u32) + 3;
    for pass in 0..3 {
        both.switch.plane.sweep(NOW + Duration::from_secs(pass)).unwrap();
    }
    for client in [1, 2] {
        assert_eq!(
            both.puts(&first(client)).map(|it| it.0),
            Some(GRANTED),
            "there is room: {client}"
        );
    }
    assert_eq!(both.puts(&first(4)).map(|it| it.0), Some(hop_flag::CROWDED));
    for client in [1_001, 1_002] {
        assert_eq!(both.puts(&first(client)), None, "it is known to have ended");
        assert_eq!(both.puts(&put(client, 2, directory_clock(2, 1), 0)), None);
    }
    assert_eq!(both.puts(&first(1_003)).map(|it| it.0), Some(GRANTED), "others are as they were");
    for pass in 3..3 + passes {
        both.switch.plane.sweep(NOW + Duration::from_secs(pass)).unwrap();
    }
    assert_eq!(both.puts(&first(1_001)).map(|it| it.0), Some(GRANTED), "nothing is known of it");
}

/// Copies of each request come by both processors, and the low-water mark follows.
#[test]
fn each_request_has_one_grant_among_processors() {
    let Some((stand, program)) = ready("grants on all processors") else { return };
    let mut both = Both::new(hot_switch(&stand, program));
    both.switch.plane.install_hot(&order_with(2, Some(2))).unwrap();
    both.socket(addr(HOME), &say_delegated(1, 2, 40)).unwrap();
    let keepers = [0, 1].map(|_| both.switch.plane.kernel_directory().unwrap());
    let requests = 20_000;
    let given = std::thread::scope(|scope| {
        let threads = keepers.iter().map(|kernel_directory| {
            scope.spawn(move || {
                let mut given = BTreeMap::new();
                for seq in 2..requests {
                    let datagram = put(7, seq, directory_clock(2, 1), 64);
                    let header = datagram.first_chunk::<HEADER_LEN>().unwrap();
                    let delegated = loop {
                        let mut header = *header;
                        match kernel_directory.delegate(&mut header) {
                            Err(DropReason::Contended) => {}
                            Ok(WriteRoute::Delegated) => {
                                break Ok((GrantedPut::read(&header).version, header.chain()));
                            }
                            other => break Err(other),
                        }
                    };
                    match delegated {
                        Ok(grant) => drop(given.insert(seq, grant)),
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
        let grants: BTreeSet<_> = given.iter().filter_map(|it| it.get(&seq)).collect();
        assert!(grants.len() <= 1, "request {seq}: {grants:?}");
        twice += usize::from(given.iter().all(|it| it.contains_key(&seq)));
        for (version, _) in grants {
            assert!(versions.insert(*version), "version {version} is given twice");
        }
    }
    println!("{twice} of {requests} requests were stamped on both processors");
    both.switch.plane.sweep(NOW).unwrap();
}
