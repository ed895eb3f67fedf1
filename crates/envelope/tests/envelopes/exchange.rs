//! Envelopes from end to end: what passes, and what does not.

use envelope::{
    Allowed, ClientEnvelopes, ClientOpened, ENVELOPE_LEN, Key, MemberEnvelopes, MemberRole, Pass,
    PassNumber, Passes, Period, Refused, Rights, RightsTable, Ring, RingPorts, Secret,
};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::time::Duration;
use wire::{Endpoint, EnvelopeRefusal, Fields as _, HEADER_LEN, Header, Op};

const NOW: Duration = Duration::from_secs(5);
const CURRENT: Period = Period(0x1_00fe);

fn at(text: &str) -> Endpoint {
    text.parse::<SocketAddr>().unwrap().into()
}

/// A client, a switch, a node and a cache that have their keys.
struct World {
    client: ClientEnvelopes,
    passes: Passes,
    switch: MemberEnvelopes,
    node: MemberEnvelopes,
    cache: MemberEnvelopes,
}

const SWITCH: &str = "10.0.0.1:7700";
const NODE: &str = "10.0.0.2:7701";
const CACHE: &str = "10.0.0.3:7700";
const CLIENT: &str = "10.0.9.9:4444";

fn secret() -> Secret {
    Secret::new([7; 32])
}

fn pass(class: u16, current: Period) -> Pass {
    let number = PassNumber::new(class, 5).unwrap();
    let periods = secret().key_set(current, true).periods;
    let periods = periods.iter().map(|it| it.of_client(number).unwrap()).collect();
    Pass { number, ticket: Key([0; 16]), current, periods, renew_in_ms: 1 }
}

fn member(role: MemberRole, current: Period) -> MemberEnvelopes {
    let mut it = MemberEnvelopes::new(role);
    it.set_keys(&secret().key_set(current, role != MemberRole::Switch));
    let ports = |at: &str, ports| RingPorts { first: at.parse().unwrap(), ports };
    let members = [ports(SWITCH, 1), ports("10.0.0.2:7700", 4), ports(CACHE, 1)];
    it.set_ring(Ring::new(&members, None));
    let read = Allowed { read: true, ..Allowed::default() };
    it.set_rights(RightsTable(vec![Rights { elsewhere: read, ..Rights::default() }]));
    it
}

impl World {
    fn of_class(class: u16) -> Self {
        let passes = Passes::new(pass(class, CURRENT));
        Self {
            client: ClientEnvelopes::new(passes.clone()),
            passes,
            switch: member(MemberRole::Switch, CURRENT),
            node: member(MemberRole::Node, CURRENT),
            cache: member(MemberRole::Cache, CURRENT),
        }
    }

    fn new() -> Self {
        Self::of_class(0)
    }

    fn turn_members(&mut self, current: Period) {
        self.switch.set_keys(&secret().key_set(current, false));
        self.node.set_keys(&secret().key_set(current, true));
        self.cache.set_keys(&secret().key_set(current, true));
    }

    /// What the client sends to this member.
    fn ask(&mut self, to: &str, packet: &[u8]) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        self.client.seal(NOW, at(to), packet, |it| sent.push([&it[..], packet].concat()));
        sent
    }

    /// The request with a cookie, which the client has got by asking.
    fn ask_with_cookie(&mut self, to: &str, packet: &[u8]) -> Vec<u8> {
        let mut first = self.ask(to, packet).remove(0);
        let member = if to == SWITCH { &mut self.switch } else { &mut self.node };
        let refused = member.open(at(CLIENT), &mut first).unwrap_err();
        let mut cookie = refused.cookie.expect("it was asked without a cookie");
        assert_eq!(self.client.open(at(to), &mut cookie), Ok(ClientOpened::Cookie));
        let mut again = Vec::new();
        self.client.resend(|_, it, packet| again.push([&it[..], packet].concat()));
        assert_eq!(again.len(), 1);
        again.remove(0)
    }

    fn pass_through_switch(&mut self, from: &str, mut datagram: Vec<u8>, to: &str) -> Vec<u8> {
        let packet = self.switch.open(at(from), &mut datagram).unwrap().to_vec();
        seal(&mut self.switch, to, &packet)
    }
}

fn seal(by: &mut MemberEnvelopes, to: &str, packet: &[u8]) -> Vec<u8> {
    [&by.seal(at(to), packet).unwrap()[..], packet].concat()
}

fn packet(op: Op, payload: &[u8]) -> Vec<u8> {
    let client = PassNumber::new(0, 5).unwrap().client(2);
    packet_of(client, op, payload)
}

fn packet_of(client: u64, op: Op, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let op = op as u8;
    wire::emit(&mut bytes, &Header { client, seq: 77, op, ..Header::default() }, &[payload]);
    bytes
}

fn why(refused: Result<&mut [u8], Refused>) -> EnvelopeRefusal {
    refused.unwrap_err().why
}

#[test]
fn a_request_and_its_answer_arrive_as_they_were_written() {
    let mut world = World::new();
    let request = packet(Op::Get, b"key");
    let asked = world.ask_with_cookie(SWITCH, &request);
    let mut passed = world.pass_through_switch(CLIENT, asked, NODE);
    assert_eq!(world.node.open(at(SWITCH), &mut passed).unwrap(), request);
    let answer = packet(Op::GetReply, b"value");
    let answered = seal(&mut world.node, SWITCH, &answer);
    let mut passed = world.pass_through_switch(NODE, answered, CLIENT);
    assert!(matches!(
        world.client.open(at(SWITCH), &mut passed),
        Ok(ClientOpened::Packet(packet)) if packet == answer
    ));
    // It is free from now on, and at the other members too.
    assert_eq!(world.ask(SWITCH, &request).len(), 1);
    let mut next = world.ask(SWITCH, &request).remove(0);
    assert!(world.switch.open(at(CLIENT), &mut next).is_ok());
}

#[test]
fn a_switch_changes_the_way_and_not_the_request() {
    let mut world = World::new();
    let mut datagram = world.ask_with_cookie(SWITCH, &packet(Op::Put, b"key and value"));
    let mut inside = world.switch.open(at(CLIENT), &mut datagram).unwrap().to_vec();
    let header: &mut [u8; HEADER_LEN] = inside.first_chunk_mut().unwrap();
    header.set_partition(9);
    header.set_reply_port(4444);
    let mut passed = seal(&mut world.switch, NODE, &inside);
    assert!(world.node.open(at(SWITCH), &mut passed).is_ok());
    // Another key, under whatever tag a switch can make.
    *inside.last_mut().unwrap() ^= 1;
    let mut forged = seal(&mut world.switch, NODE, &inside);
    assert_eq!(why(world.node.open(at(SWITCH), &mut forged)), EnvelopeRefusal::End);
    // And nothing of an earlier turn, nor of its own.
    world.switch.end_turn();
    assert_eq!(world.switch.seal(at(NODE), &packet(Op::Put, b"key and value")), None);
}

#[test]
fn what_switches_read_and_write_alone_has_no_end_tag() {
    let mut world = World::new();
    let rules = packet_of(0, Op::CacheRules, b"\x01\0\x01\0\0\0\0\0\0\0\x09");
    let mut told = seal(&mut world.cache, SWITCH, &rules);
    assert_eq!(world.switch.open(at(CACHE), &mut told.clone()).unwrap(), rules);
    *told.last_mut().unwrap() ^= 1;
    assert_eq!(why(world.switch.open(at(CACHE), &mut told)), EnvelopeRefusal::Edge);
    let ruled = packet_of(0, Op::CacheRuled, b"");
    let mut answered = seal(&mut world.switch, CACHE, &ruled);
    assert_eq!(world.cache.open(at(SWITCH), &mut answered).unwrap(), ruled);
}

#[test]
fn nobody_speaks_in_the_name_of_a_member() {
    let mut world = World::new();
    let reply = packet(Op::GetReply, b"value");
    // A client has keys, but not those of members; and its packets come from no member's address.
    let request = world.ask_with_cookie(SWITCH, &packet(Op::Get, b"key"));
    assert_eq!(why(world.switch.open(at(NODE), &mut request.clone())), EnvelopeRefusal::Sender);
    let as_member = [&request[..2], &[3], &request[3..]].concat();
    assert_eq!(why(world.switch.open(at(NODE), &mut as_member.clone())), EnvelopeRefusal::Edge);
    assert_eq!(why(world.switch.open(at(CLIENT), &mut as_member.clone())), EnvelopeRefusal::Sender);
    for kind in [0, 2, 4, 5] {
        let mut other = [&request[..2], &[kind], &request[3..]].concat();
        let why = why(world.switch.open(at(CLIENT), &mut other));
        assert_eq!(why, EnvelopeRefusal::Malformed, "{kind}");
    }
    // What a client may not send.
    for op in [Op::GetReply, Op::ChainWrite, Op::CacheRules, Op::HotPublish, Op::DelegationWrite] {
        let mut sent = world.ask(SWITCH, &packet(op, b"")).remove(0);
        assert_eq!(why(world.switch.open(at(CLIENT), &mut sent)), EnvelopeRefusal::Malformed);
    }
    // What a node is sent straight says so.
    let mut past = world.ask(NODE, &packet(Op::Get, b"key")).remove(0);
    assert_eq!(why(world.node.open(at(CLIENT), &mut past)), EnvelopeRefusal::Malformed);
    // What a member says to a member is nothing to a client, and the other way round.
    let mut to_switch = seal(&mut world.node, SWITCH, &reply);
    assert_eq!(
        world.client.open(at(SWITCH), &mut to_switch.clone()),
        Err(EnvelopeRefusal::Malformed)
    );
    assert!(world.switch.open(at(NODE), &mut to_switch).is_ok());
    let mut to_client = seal(&mut world.node, CLIENT, &reply);
    assert_eq!(why(world.switch.open(at(NODE), &mut to_client)), EnvelopeRefusal::Malformed);
    let bare = &mut packet(Op::Get, b"key");
    assert_eq!(why(world.switch.open(at(CLIENT), bare)), EnvelopeRefusal::Bare);
    assert_eq!(why(world.switch.open(at(NODE), bare)), EnvelopeRefusal::Bare);
    assert_eq!(world.client.open(at(NODE), bare), Err(EnvelopeRefusal::Bare));
}

#[test]
fn a_client_speaks_for_itself_alone() {
    let mut world = World::new();
    let mut sent = world.ask_with_cookie(SWITCH, &packet(Op::Get, b"key"));
    let other = PassNumber::new(0, 6).unwrap().client(2);
    let header: &mut [u8; HEADER_LEN] =
        sent.get_mut(ENVELOPE_LEN..).unwrap().first_chunk_mut().unwrap();
    header.set_client(other);
    assert_eq!(why(world.switch.open(at(CLIENT), &mut sent)), EnvelopeRefusal::Edge);
    let answer = packet_of(other, Op::GetReply, b"");
    let mut answered = seal(&mut world.node, CLIENT, &answer);
    assert_eq!(world.client.open(at(NODE), &mut answered), Err(EnvelopeRefusal::Malformed));
}

#[test]
fn rights_are_checked_at_the_switch_and_at_the_node() {
    let mut world = World::of_class(1);
    let client = PassNumber::new(1, 5).unwrap().client(0);
    let get = packet_of(client, Op::Get, b"key");
    let asked = world.ask_with_cookie(SWITCH, &get);
    world.pass_through_switch(CLIENT, asked, NODE);
    let put = packet_of(client, Op::Put, b"key and value");
    let mut sent = world.ask(SWITCH, &put).remove(0);
    assert_eq!(why(world.switch.open(at(CLIENT), &mut sent.clone())), EnvelopeRefusal::Right);
    // A switch that lets everything through.
    world
        .switch
        .set_rights(RightsTable(vec![Rights { elsewhere: Allowed::ALL, ..Rights::default() }]));
    let mut passed = world.pass_through_switch(CLIENT, std::mem::take(&mut sent), NODE);
    assert_eq!(why(world.node.open(at(SWITCH), &mut passed)), EnvelopeRefusal::Right);
    assert_eq!(world.node.counts().of(EnvelopeRefusal::Right), 1);
}

#[test]
fn nobody_is_answered_who_has_not_shown_that_he_receives() {
    let mut world = World::new();
    let request = world.ask_with_cookie(SWITCH, &packet(Op::Range, b"key"));
    // In the name of another address: the cookie is not for that.
    let elsewhere = at("10.0.9.8:4444");
    assert_eq!(why(world.switch.open(elsewhere, &mut request.clone())), EnvelopeRefusal::Edge);
    let mut world = World::new();
    let mut first = world.ask(SWITCH, &packet(Op::Range, b"key")).remove(0);
    let refused = world.switch.open(elsewhere, &mut first).unwrap_err();
    assert_eq!(refused.why, EnvelopeRefusal::NoCookie);
    assert!(refused.cookie.unwrap().len() < first.len());
    // A recorded cookie replaces none.
    let mut recorded = refused.cookie.unwrap();
    assert_eq!(world.client.open(at(SWITCH), &mut recorded.clone()), Ok(ClientOpened::Cookie));
    world.client.resend(|_, _, _| {});
    assert_eq!(world.client.open(at(SWITCH), &mut recorded), Err(EnvelopeRefusal::Sender));
}

#[test]
fn what_waits_for_a_cookie_is_sent_again_unless_it_is_old() {
    let mut world = World::new();
    let (old, new) = (packet(Op::Get, b"old"), packet(Op::Get, b"new"));
    world.client.seal(Duration::ZERO, at(SWITCH), &old, |_| {});
    let mut sent = world.ask(SWITCH, &new).remove(0);
    let mut cookie = world.switch.open(at(CLIENT), &mut sent).unwrap_err().cookie.unwrap();
    world.client.open(at(SWITCH), &mut cookie).unwrap();
    let mut again = Vec::new();
    world.client.resend(|to, _, packet| again.push((to, packet.to_vec())));
    assert_eq!(again, [(at(SWITCH), new)]);
}

#[test]
fn periods_follow_each_other_without_a_gap() {
    let mut world = World::new();
    let request = packet(Op::Get, b"key");
    world.ask_with_cookie(SWITCH, &request);
    for step in 1..=5 {
        // Members know the next period first: what they send is opened, and says that it is here.
        let current = Period(CURRENT.0 + step);
        world.turn_members(current);
        let mut asked = world.ask(SWITCH, &request).remove(0);
        world.switch.open(at(CLIENT), &mut asked).unwrap();
        let mut answer = seal(&mut world.node, CLIENT, &packet(Op::GetReply, b""));
        world.client.open(at(NODE), &mut answer).unwrap();
        let sent = world.ask(SWITCH, &request);
        // Under the period before, which has a cookie, and once more to ask for the next.
        let [first, second] = &sent[..] else { panic!("{sent:?}") };
        assert!(world.switch.open(at(CLIENT), &mut first.clone()).is_ok());
        let refused = world.switch.open(at(CLIENT), &mut second.clone()).unwrap_err();
        world.client.open(at(SWITCH), &mut refused.cookie.unwrap()).unwrap();
        world.client.resend(|_, _, _| {});
        let mut next = world.ask(SWITCH, &request);
        assert_eq!((next.len(), next[0][3]), (1, current.byte()));
        assert!(world.switch.open(at(CLIENT), &mut next[0]).is_ok());
        assert!(world.passes.renew(pass(0, current)));
        // What was recorded two periods ago is over.
        world.turn_members(Period(current.0 + 2));
        assert_eq!(why(world.switch.open(at(CLIENT), &mut next[0])), EnvelopeRefusal::Period);
        world.turn_members(current);
    }
}

#[test]
fn a_client_that_asks_seldom_has_a_cookie_before_its_last_one_is_over() {
    let mut world = World::new();
    let request = packet(Op::Get, b"key");
    world.ask_with_cookie(SWITCH, &request);
    // It hears of the next period, and what it sends to have a cookie of that is lost.
    let heard = |period, world: &mut World| {
        world.turn_members(period);
        let mut answer = seal(&mut world.node, CLIENT, &packet(Op::GetReply, b""));
        world.client.open(at(NODE), &mut answer).unwrap();
    };
    heard(Period(CURRENT.0 + 1), &mut world);
    assert_eq!(world.ask(SWITCH, &request).len(), 2);
    assert_eq!(world.ask(SWITCH, &request).len(), 1, "it has just asked");
    // Its next request, much later, asks again.
    let mut sent = Vec::new();
    let later = NOW + Duration::from_secs(20);
    world.client.seal(later, at(SWITCH), &request, |it| sent.push([&it[..], &request].concat()));
    let [first, second] = &mut sent[..] else { panic!("{sent:?}") };
    assert!(world.switch.open(at(CLIENT), first).is_ok());
    // Also when the period after that has begun, which it has not heard of.
    world.turn_members(Period(CURRENT.0 + 2));
    assert_eq!(why(world.switch.open(at(CLIENT), first)), EnvelopeRefusal::Period);
    let refused = world.switch.open(at(CLIENT), second).unwrap_err();
    world.client.open(at(SWITCH), &mut refused.cookie.unwrap()).unwrap();
    let mut again = Vec::new();
    world.client.resend(|_, it, packet| again.push([&it[..], packet].concat()));
    assert!(again.iter_mut().any(|it| world.switch.open(at(CLIENT), it).is_ok()));
}

#[test]
fn a_client_that_was_away_has_its_pass_renewed_when_nobody_answers() {
    let mut world = World::new();
    let request = packet(Op::Get, b"key");
    world.ask_with_cookie(SWITCH, &request);
    let later = Period(CURRENT.0 + 5);
    world.turn_members(later);
    let passes = world.passes.clone();
    let keeper = std::thread::spawn(move || {
        passes.wait_unheard(Duration::from_secs(60));
        passes.renew(pass(0, later))
    });
    let mut sends = (0..).map(|n| NOW + n * Duration::from_millis(300));
    let mut send = |world: &mut World| {
        let (mut sent, now) = (Vec::new(), sends.next().unwrap());
        world.client.seal(now, at(SWITCH), &request, |it| sent.push([&it[..], &request].concat()));
        sent.iter_mut().map(|it| why(world.switch.open(at(CLIENT), it))).collect::<Vec<_>>()
    };
    for _ in 0..4 {
        assert!(send(&mut world).iter().all(|it| *it == EnvelopeRefusal::Period));
    }
    // It has sent for more than a second, so this one is the last with the old keys.
    while !keeper.is_finished() {
        send(&mut world);
    }
    assert!(keeper.join().unwrap(), "the pass was renewed");
    assert_eq!(send(&mut world), [EnvelopeRefusal::NoCookie]);
}

/// The members of a chain and the switch before it hear of a new period one after the other.
#[test]
fn what_a_switch_sends_on_stays_in_the_period_of_its_author() {
    let mut world = World::new();
    let (request, answer) = (packet(Op::Put, b"key and value"), packet(Op::PutReply, b""));
    let mut asked = world.ask_with_cookie(SWITCH, &request);
    for (switch, node) in [(1, 0), (1, 1), (0, 1)] {
        world.turn_members(Period(CURRENT.0 + node));
        world.switch.set_keys(&secret().key_set(Period(CURRENT.0 + switch), false));
        let mut passed = world.pass_through_switch(CLIENT, asked.clone(), NODE);
        assert_eq!(world.node.open(at(SWITCH), &mut passed).unwrap(), request);
        let answered = seal(&mut world.node, SWITCH, &answer);
        let mut told = world.pass_through_switch(NODE, answered, CLIENT);
        assert!(world.client.open(at(SWITCH), &mut told).is_ok(), "{switch} {node}");
        // By now the client knows of the next period, and has no cookie of it.
        asked = world.ask(SWITCH, &request).remove(0);
    }
}

#[test]
fn a_cookie_that_is_not_the_clients_is_soon_replaced() {
    let mut world = World::new();
    let request = packet(Op::Get, b"key");
    // Somebody sends the first packet in another's name, and the client what comes of that.
    let mut first = world.ask(SWITCH, &request).remove(0);
    let refused = world.switch.open(at("10.0.9.8:4444"), &mut first).unwrap_err();
    assert!(world.client.open(at(SWITCH), &mut refused.cookie.unwrap()).is_ok());
    world.client.resend(|_, _, _| {});
    let send_at = |world: &mut World, ms| {
        let (mut sent, now) = (Vec::new(), NOW + Duration::from_millis(ms));
        world.client.seal(now, at(SWITCH), &request, |it| sent.push([&it[..], &request].concat()));
        sent
    };
    let mut sent = send_at(&mut world, 10);
    assert_eq!(why(world.switch.open(at(CLIENT), &mut sent[0])), EnvelopeRefusal::Edge);
    assert_eq!((sent.len(), send_at(&mut world, 200).len()), (1, 1));
    let mut sent = send_at(&mut world, 300);
    assert_eq!((sent.len(), send_at(&mut world, 310).len()), (2, 1));
    let mut cookie = world.switch.open(at(CLIENT), &mut sent[1]).unwrap_err().cookie.unwrap();
    assert!(world.client.open(at(SWITCH), &mut cookie).is_ok());
    let mut again = Vec::new();
    world.client.resend(|_, it, packet| again.push([&it[..], packet].concat()));
    assert!(world.switch.open(at(CLIENT), &mut again[0]).is_ok());
    // Once it is answered it asks no more.
    let mut answer = seal(&mut world.node, CLIENT, &packet(Op::GetReply, b""));
    assert!(world.client.open(at(NODE), &mut answer).is_ok());
    assert_eq!([900, 1_000, 1_100].map(|ms| send_at(&mut world, ms).len()), [1, 1, 1]);
}

#[test]
fn a_cookie_of_the_period_before_is_good_for_what_waits() {
    let mut world = World::new();
    let mut first = world.ask(SWITCH, &packet(Op::Get, b"key")).remove(0);
    let refused = world.switch.open(at(CLIENT), &mut first).unwrap_err();
    // Meanwhile the pass is renewed.
    assert!(world.passes.renew(pass(0, Period(CURRENT.0 + 1))));
    assert!(world.client.open(at(SWITCH), &mut refused.cookie.unwrap()).is_ok());
    let mut again = Vec::new();
    world.client.resend(|_, it, packet| again.push([&it[..], packet].concat()));
    assert!(world.switch.open(at(CLIENT), &mut again[0]).is_ok());
}

#[test]
fn what_the_clients_of_a_process_refuse_is_counted_in_one_place() {
    let mut world = World::new();
    let mut other = ClientEnvelopes::new(world.passes.clone());
    for client in [&mut world.client, &mut other] {
        let refused = client.open(at(NODE), &mut packet(Op::GetReply, b"")).unwrap_err();
        assert_eq!(refused, EnvelopeRefusal::Bare);
    }
    let counted: Vec<_> = world.passes.refused().iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(EnvelopeRefusal::Bare, 2)]);
}

#[test]
fn whoever_has_no_keys_lets_nothing_through() {
    let mut world = World::new();
    for role in [MemberRole::Switch, MemberRole::Node, MemberRole::Cache] {
        let mut it = MemberEnvelopes::new(role);
        let mut sent = world.ask(SWITCH, &packet(Op::Get, b"key")).remove(0);
        assert_eq!(why(it.open(at(CLIENT), &mut sent)), EnvelopeRefusal::Period);
        assert_eq!(it.seal(at(CLIENT), &packet(Op::GetReply, b"")), None);
        let counted: u64 = it.counts().iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 1);
    }
}

/// The four datagrams of an exchange, and who opens each.
fn exchange(world: &mut World) -> [(&'static str, Vec<u8>); 4] {
    let asked = world.ask_with_cookie(SWITCH, &packet(Op::Put, b"a key and a value"));
    let passed = world.pass_through_switch(CLIENT, asked.clone(), NODE);
    let answered = seal(&mut world.node, SWITCH, &packet(Op::PutReply, b""));
    let told = world.pass_through_switch(NODE, answered.clone(), CLIENT);
    [("switch", asked), ("node", passed), ("switch", answered), ("client", told)]
}

fn opens(world: &mut World, at_whom: &str, from: &str, mut datagram: Vec<u8>) -> bool {
    match at_whom {
        "switch" => world.switch.open(at(from), &mut datagram).is_ok(),
        "node" => world.node.open(at(from), &mut datagram).is_ok(),
        _ => world.client.open(at(from), &mut datagram).is_ok(),
    }
}

proptest! {
    /// Whatever is changed on the way is seen by whoever is to look at it: all of it by the reader,
    /// by a switch what it looks at.
    #[test]
    fn no_bit_can_be_changed_on_the_way(which in 0..4usize, bit in any::<prop::sample::Index>()) {
        let mut world = World::new();
        let (at_whom, mut datagram) = exchange(&mut world)[which].clone();
        let from = [CLIENT, SWITCH, NODE, SWITCH][which];
        prop_assert!(opens(&mut world, at_whom, from, datagram.clone()));
        let seen = if at_whom == "switch" { ENVELOPE_LEN + HEADER_LEN } else { datagram.len() };
        let bit = bit.index(8 * seen);
        datagram[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!opens(&mut world, at_whom, from, datagram));
    }

    /// Bytes that nobody made open nothing, whoever they come from, and nothing panics.
    #[test]
    fn made_up_bytes_open_nothing(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        head in prop::sample::select(vec![0, 2, 3, 4]),
        kind in 0..6u8,
        from in prop::sample::select(vec![CLIENT, NODE, SWITCH, CACHE]),
    ) {
        let mut world = World::new();
        let made = [0x4b, 0x45, kind, CURRENT.byte()];
        bytes.iter_mut().zip(made).take(head).for_each(|(byte, made)| *byte = made);
        for at_whom in ["switch", "node", "client"] {
            prop_assert!(!opens(&mut world, at_whom, from, bytes.clone()));
        }
    }
}
