//! What Open vSwitch 3.1 has said and understood, byte for byte, and channels that go wrong.

use crate::channel::{Answer, Channel, ChannelError, Part, Stage};
use crate::fields::{Does, Mac, Match};
use crate::flow::{Exit, Exits, defaults};
use crate::message::{Counted, Flow, Request, Said, read};
use content::{Change, Entry};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;
use wire::AddressPrefix;

const HELLO: &str = "040000100000000c0001000800000010";
const FEATURES: &str = "040600200000000200001ecc05a0aa4900000000fe0000000000004f00000000";
/// A default of ours, a flow of somebody else, a prefix.
const FLOWS: &str = "0413011800000005000100000000000000400000000000\
    00361efb000009000000000000000000000000000000000000000000000000000000000000000000000001000a80\
    000a02080600000000000000400000000000003a3bd6400000000000000000000000006b77000000000000000000\
    00000000000000000000000000000100040000000000010008010000000088010000000001041cdb400429000000\
    000000000000006b77800000010002000000000000000000000000000000000001002e80000a0286dd80003720fd\
    770001000010028000000000000000ffffffffffffffff8000000000000000000000040028000000000019001080\
    000606024b57000102000000000010000000020000000000000000";
const BARRIER: &str = "0415000800000003";
const ERROR: &str = "0401001c0000000700010006040e0010000000070000000000000000";
/// `ovs-ofctl ofp-print` reads it as: ADD table:1 priority=1065, ipv6,
/// ipv6_dst=fd77:1:0:1002:8000::/65, cookie 0x6b77800000010002,
/// actions=set_field:02:4b:57:00:01:02->eth_dst,output:2.
const FLOW_MOD: &str = "\
    040e0088000000096b7780000001000200000000000000000100000000000429ffffffffffffffffffffffff\
    000000000001002e80000a0286dd80003720fd770001000010028000000000000000ffffffffffffffff8000\
    000000000000000000040028000000000019001080000606024b570001020000000000100000000200000000\
    00000000";

const NOW: Instant = Instant::from_unix_ms(1_000);

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn prefix() -> AddressPrefix {
    AddressPrefix { addr: "fd77:1:0:1002:8000::".parse().expect("an address"), len: 65 }
}

fn node() -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, 2)
}

fn exit() -> Exit {
    Exit { mac: "02:4b:57:00:01:02".parse().expect("an address"), port: Some(2) }
}

fn exits() -> Exits {
    [(node(), exit())].into_iter().collect()
}

fn flow() -> Flow {
    exits().flow(prefix(), node()).expect("it is known where it is")
}

#[test]
fn what_a_switch_says_is_read() {
    let hello = Said::Hello { highest: 4, versions: Some(16) };
    assert_eq!(read(&bytes(HELLO)), Some((12, hello)));
    let features = Said::Features { datapath: 0x1ecc_05a0_aa49, tables: 254 };
    assert_eq!(read(&bytes(FEATURES)), Some((2, features)));
    assert_eq!(read(&bytes(BARRIER)), Some((3, Said::Barrier)));
    let failed = &bytes("040e0010000000070000000000000000")[..];
    let error = Said::Error { kind: 1, code: 6, text: failed };
    assert_eq!(read(&bytes(ERROR)), Some((7, error)));
    let ours = Counted { flow: flow(), packets: 0 };
    let default = Counted { flow: defaults()[1], packets: 0 };
    let flows = Said::Flows(vec![None, Some(default), Some(ours)], false);
    assert_eq!(read(&bytes(FLOWS)), Some((5, flows)));
    let whole = bytes(FLOWS);
    for len in 8..whole.len() {
        // No panic, whatever is missing.
        read(&whole[..len]);
    }
}

#[test]
fn what_a_switch_is_asked_is_what_it_understands() {
    let mut out = Vec::new();
    Request::Add(flow()).push(&mut out, 9);
    assert_eq!(out, bytes(FLOW_MOD));
    out.clear();
    Request::Barrier.push(&mut out, 3);
    assert_eq!(out, bytes("0414000800000003"));
}

#[test]
fn hardware_addresses_are_read_as_they_are_written() {
    let mac = Mac([2, 0x4b, 0x57, 0, 1, 0xfe]);
    assert_eq!(mac.to_string().parse(), Ok(mac));
    for text in
        ["", "02:4b:57:00:01", "02:4b:57:00:01:02:03", "02-4b-57-00-01-02", "g2:4b:57:0:1:2"]
    {
        assert!(text.parse::<Mac>().is_err(), "{text}");
    }
}

#[test]
fn other_matches_and_actions_are_not_ours() {
    let of = |matches, does| Flow { matches, does, ..flow() };
    let flows = [
        of(Match::All, Does::GoTo(1)),
        of(Match::To(AddressPrefix { len: 128, ..prefix() }), Does::Send(None, 7)),
        of(Match::To(AddressPrefix { len: 1, addr: Ipv6Addr::UNSPECIFIED }), Does::GoTo(3)),
    ];
    for flow in flows {
        let mut out = Vec::new();
        flow.matches.push(&mut out);
        flow.does.push(&mut out);
        let mut reader = crate::bytes::Reader(&out);
        assert_eq!(Match::split(&mut reader), Some(flow.matches));
        assert_eq!(Does::read(reader), Some(flow.does));
    }
    let mut out = Vec::new();
    Match::To(prefix()).push(&mut out);
    let mask = &mut out[4 + 6 + 4 + 16];
    assert_eq!(*mask, 0xff);
    *mask = 0xbf;
    let read = Match::split(&mut crate::bytes::Reader(&out));
    assert_eq!(read, None, "a mask with a hole is no prefix's");
}

/// A channel to a switch that has begun.
fn ready(exits: Exits) -> Channel {
    let mut channel = Channel::new(NOW, exits);
    assert_eq!(channel.take_out(), bytes("04000010000000010001000800000010"));
    channel.handle_bytes(NOW, &bytes(HELLO)).expect("it speaks 1.3");
    assert_eq!((channel.stage(), channel.take_out()), (Stage::Asking, bytes("0405000800000002")));
    // In pieces, as they come.
    for piece in bytes(FEATURES).chunks(5) {
        channel.handle_bytes(NOW, piece).expect("it is sound");
    }
    assert_eq!((channel.stage(), channel.features()), (Stage::Ready, (0x1ecc_05a0_aa49, 254)));
    let tables = bytes("0412001000000003000c000000000000");
    assert_eq!(channel.take_out(), tables, "it is asked how much they take");
    channel
}

/// How a switch says how many flows these tables take, and whether more follow.
fn table_features(tables: &[(u8, u32)], more: bool) -> Vec<u8> {
    let zeros = |count: usize| "00".repeat(count);
    let table = |(number, flows): &(u8, u32)| {
        // A property follows, in which nobody is interested.
        let property = "0008000400000000";
        format!("0048{number:02x}{}{flows:08x}{property}", zeros(5 + 32 + 8 + 8 + 4))
    };
    let tables: String = tables.iter().map(table).collect();
    let len = 16 + tables.len() / 2;
    bytes(&format!("0413{len:04x}00000003000c{:04x}00000000{tables}", u16::from(more)))
}

#[test]
fn a_switch_need_not_say_how_much_its_tables_take() {
    let mut channel = ready(exits());
    assert_eq!(channel.sizes(), (None, None));
    channel.handle_bytes(NOW, &table_features(&[(0, 2_000), (7, 9)], true)).expect("it is sound");
    assert_eq!(channel.sizes(), (Some(1_999), None), "one is for all else");
    channel.handle_bytes(NOW, &table_features(&[(1, 500)], false)).expect("it is sound");
    assert_eq!(channel.sizes(), (Some(1_999), Some(499)));
    let mut other = ready(exits());
    // OFPET_BAD_REQUEST, OFPBRC_BAD_MULTIPART.
    other.handle_bytes(NOW, &bytes("0401000c 00000003 00010002")).expect("it is lived with");
    other.change(&[]);
    other.handle_bytes(NOW, &bytes("0415000800000004")).expect("it is sound");
    assert_eq!(other.take_answer(), Some(Answer::Done(BTreeMap::new())));
    assert_eq!(other.sizes(), (None, None));
    let whole = table_features(&[(0, 2_000)], false);
    for len in 8..whole.len() {
        // No panic, whatever is missing.
        read(&whole[..len]);
    }
}

#[test]
fn changes_are_done_with_their_barrier_and_errors_name_theirs() {
    let mut channel = ready(exits());
    let (other, far) =
        (AddressPrefix { len: 66, ..prefix() }, AddressPrefix { len: 67, ..prefix() });
    let nobody = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, 9);
    let to = |prefix, via| Change { prefix, via: Some(via) };
    channel.change(&[to(prefix(), node()), to(other, node()), to(far, nobody)]);
    assert!(!channel.take_out().is_empty());
    // The second of them: HELLO was 1, the questions about features and tables 2 and 3.
    let full = "0401000c 00000005 00050001";
    channel.handle_bytes(NOW, &bytes(full)).expect("it is lived with");
    assert_eq!(channel.take_answer(), None);
    channel.handle_bytes(NOW, &bytes("0415000800000006")).expect("it is sound");
    let refused: BTreeMap<AddressPrefix, String> = [
        (other, "its table is full".to_owned()),
        (far, "nobody says where fd77::1:9 is".to_owned()),
    ]
    .into();
    assert_eq!(channel.take_answer(), Some(Answer::Done(refused)));
}

#[test]
fn a_switch_that_has_the_table_says_so_and_whether_it_knows_the_rest() {
    let has = |exits, part| {
        let mut channel = ready(exits);
        channel.list(part);
        channel.handle_bytes(NOW, &bytes(FLOWS)).expect("it is sound");
        channel.take_answer()
    };
    let says = |via, defaults| {
        let entries = vec![(Entry { prefix: prefix(), via }, 0)];
        Some(Answer::Has { entries, defaults })
    };
    assert_eq!(has(exits(), Part::All), says(node(), false), "one of two defaults is there");
    assert_eq!(has(exits(), Part::Prefixes), says(node(), true), "that of prefixes");
    let nobody = says(Ipv6Addr::UNSPECIFIED, false);
    assert_eq!(has(Exits::default(), Part::All), nobody, "it leads to nobody that is known");
    let elsewhere = Exit { port: Some(3), ..exit() };
    let moved = [(node(), elsewhere)].into_iter().collect();
    assert_eq!(has(moved, Part::All), nobody, "it does not lead there any more");
}

#[test]
fn members_that_end_alike_have_cookies_of_their_own() {
    let alike: Vec<Ipv6Addr> =
        (1..=3).map(|net| Ipv6Addr::new(0xfd77, 0, 0, net, 0, 0, 0, 1)).collect();
    let next = Ipv6Addr::new(0xfd77, 0, 0, 1, 0, 0, 0, 2);
    let all = || alike.iter().chain([&next]).map(|member| (*member, exit()));
    let exits: Exits = all().collect();
    let cookies: BTreeSet<u64> = all().filter_map(|(member, _)| exits.cookie(member)).collect();
    assert_eq!(cookies.len(), 4);
    assert_eq!(all().rev().collect::<Exits>(), exits, "whatever is named first");
    let flow = exits.flow(prefix(), alike[2]).expect("it is known where it is");
    assert_eq!(exits.entry(&flow), Some(Entry { prefix: prefix(), via: alike[2] }));
}

#[test]
fn all_that_leads_to_a_member_goes_with_one_request() {
    let mut channel = ready(exits());
    channel.sweep(node());
    // DELETE of table 0, all bits of the cookie; then the barrier.
    let sweep = "040e0038000000046b77800000010002ffffffffffffffff 00 03 00000000 0000 \
        ffffffffffffffffffffffff 00000000 0001000400000000 0414000800000005";
    assert_eq!(channel.take_out(), bytes(sweep));
    channel.handle_bytes(NOW, &bytes("0415000800000005")).expect("it is sound");
    assert_eq!(channel.take_answer(), Some(Answer::Done(BTreeMap::new())));
    channel.sweep(Ipv6Addr::LOCALHOST);
    assert_eq!(channel.take_out(), bytes("0414000800000006"), "nothing leads there");
}

#[test]
fn what_wants_an_echo_gets_it_and_what_is_silent_is_given_up() {
    let mut channel = ready(exits());
    channel.handle_bytes(NOW, &bytes("0402000a00000077abcd")).expect("it is sound");
    assert_eq!(channel.take_out(), bytes("0403000a00000077abcd"));
    let later = NOW + Duration::from_secs(2);
    channel.handle_timeout(later).expect("it is asked first");
    assert_eq!(channel.take_out(), bytes("0402000800000004"));
    channel.handle_bytes(later, &bytes("0403000800000004")).expect("it is sound");
    let late = later + Duration::from_secs(6);
    channel.handle_timeout(late).expect("it is asked again");
    assert_eq!(channel.handle_timeout(late + Duration::from_secs(5)), Err(ChannelError::Silent));
}

#[test]
fn another_version_and_what_is_no_openflow_end_the_channel() {
    let old = Channel::new(NOW, exits()).handle_bytes(NOW, &bytes("0100000800000001"));
    assert_eq!(old, Err(ChannelError::Version));
    let newer =
        Channel::new(NOW, exits()).handle_bytes(NOW, &bytes("0600001000000001 0001000800000040"));
    assert_eq!(newer, Err(ChannelError::Version), "it does not name ours");
    let both =
        Channel::new(NOW, exits()).handle_bytes(NOW, &bytes("0600001000000001 0001000800000050"));
    assert_eq!(both, Ok(()));
    let unsound =
        ready(exits()).handle_bytes(NOW, b"GET / HTTP/1.1\r\n\r\n and so on, for long enough");
    assert_eq!(unsound, Ok(()), "it may be a long message");
    assert_eq!(ready(exits()).handle_bytes(NOW, &[4, 0, 0, 3]), Err(ChannelError::Unsound));
    let refused = ready(exits()).handle_bytes(NOW, &bytes(ERROR));
    assert!(matches!(refused, Err(ChannelError::Refused(_))), "nobody asked for anything");
}
