//! Requests to content addresses.

use super::*;
use cluster::{ContentRouting, Match};
use wire::{ContentClass, ContentRoutingBody, DescribeReplyBody, flag};

const BY_ADDRESS: u8 = wire::CONTENT_HOP_FLAGS;

fn content() -> ContentRouting {
    ContentRouting { prefix: "fd00:6b77:1::/48".parse().expect("a service prefix"), port: 7800 }
}

fn script() -> Script {
    let mut script = Script::new();
    let hash = Keyspace { content: Some(content()), ..(*script.hash).clone() };
    script.hash = Arc::new(hash);
    script
}

impl Script {
    fn sent_where(&mut self) -> (Endpoint, Header) {
        let sent = self.client.poll_transmit().expect("something is sent");
        let found = (sent.to, header(sent.payload));
        assert!(self.client.poll_transmit().is_none(), "nothing else");
        found
    }

    fn address(&self, class: ContentClass, key: &[u8]) -> Endpoint {
        let at: Match = self.hash.match_value(key);
        content().endpoint(class, self.hash.id, at).expect("a small id")
    }

    fn refuse(&mut self, sent: &Header, code: Code) {
        let op = Op::from_wire(sent.op).expect("an operation").reply() as u8;
        let mut out = Vec::new();
        wire::emit(&mut out, &Header { op, code: code as u8, key_len: 0, ..*sent }, &[]);
        self.reply(&out);
    }
}

#[test]
fn describe_tells_of_them() {
    let mut script = Script::new();
    script.client.describe(script.now, "users").unwrap();
    let sent = script.sent_one();
    let fixed = DescribeReplyBody { seed: 9, id: 3, kind: 2 }.to_bytes();
    let ContentRouting { prefix, port } = content();
    let routing = ContentRoutingBody { prefix: prefix.bits(), port }.to_bytes();
    script.reply(&answer(&sent, Code::Ok, 0, &[&fixed[..], &routing].concat()));
    let Some(Outcome::Done(Reply::Describe(keyspace))) = script.outcome() else { panic!() };
    assert_eq!((keyspace.kind, keyspace.content), (KeyspaceKind::Hash, Some(content())));
}

#[test]
fn requests_about_one_key_go_there_and_others_do_not() {
    let mut script = script();
    for (request, class) in [(GET, ContentClass::Read), (PUT, ContentClass::Write)] {
        script.start(request).unwrap();
        let (to, header) = script.sent_where();
        assert_eq!(to, script.address(class, b"k"));
        assert_eq!((header.hop_flags, header.partition, header.chain_len), (BY_ADDRESS, 0, 0));
    }
    script.start(Request::Mget { keys: &[b"a", b"b"], within: None }).unwrap();
    assert_eq!(script.sent_where().0, SERVICE);
    let entries: [(&[u8], &[u8]); 1] = [(b"a", b"v")];
    let expiry = Expiry::Never;
    script.start(Request::Mset { entries: &entries, expiry, within: None }).unwrap();
    assert_eq!(script.sent_where().0, script.address(ContentClass::Write, b"a"));
}

#[test]
fn over_ipv4_they_are_not_used() {
    let mut script = script();
    let service: std::net::SocketAddr = "10.0.0.1:7700".parse().unwrap();
    script.client = Client::new(ClientConfig::new(Endpoint::from(service), CLIENT), Rng::new(1));
    script.start(GET).unwrap();
    assert_eq!(script.sent_where().0, service.into());
}

#[test]
fn silence_sends_a_read_home_and_then_every_other_copy_to_the_service() {
    let mut script = script();
    script.start(GET).unwrap();
    let mut asked = vec![script.sent_where()];
    while asked.len() < 5 {
        script.next_timer();
        if let Some(sent) = script.client.poll_transmit() {
            asked.push((sent.to, header(sent.payload)));
        }
    }
    let home = script.address(ContentClass::ReadAtHome, b"k");
    let to: Vec<Endpoint> = asked.iter().map(|(to, _)| *to).collect();
    let first = script.address(ContentClass::Read, b"k");
    assert_eq!(to, [first, home, SERVICE, home, SERVICE]);
    let flags: Vec<u8> = asked.iter().map(|(_, header)| header.hop_flags).collect();
    assert_eq!(flags, [BY_ADDRESS, BY_ADDRESS, 0, BY_ADDRESS, 0]);
    assert!(asked[1..].iter().all(|(_, header)| header.flags & flag::AT_HOME != 0));
}

#[test]
fn who_is_told_that_a_node_does_not_have_it_asks_the_address_again() {
    for code in [Code::NotOwner, Code::StaleEpoch, Code::Closed] {
        let mut script = script();
        script.start(PUT).unwrap();
        let (to, sent) = script.sent_where();
        script.refuse(&sent, code);
        assert!(script.client.poll_transmit().is_none(), "{code:?}: not at once");
        assert!(script.next_timer() > Duration::ZERO);
        assert_eq!(script.sent_where().0, to, "{code:?}");
    }
}

#[test]
fn what_only_the_switch_knows_goes_to_the_service_for_good() {
    let mut script = script();
    script.start(PUT).unwrap();
    let (_, sent) = script.sent_where();
    script.refuse(&sent, Code::NotHere);
    for _ in 0..3 {
        script.next_timer();
        let (to, header) = script.sent_where();
        assert_eq!((to, header.hop_flags), (SERVICE, 0));
    }
}
