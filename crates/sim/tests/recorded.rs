//! Packets that builds have sent are understood: some of each operation, recorded, in a
//! file for each version of packets. `RECORD_FIXTURES=1 cargo test -p keyway-sim --test recorded`
//! adds what the present version says and no packet on record does.
//!
//! A packet is an empty line, a line with its name, its bytes, and what it says, field by field:
//! names and bytes, the parts of a body after a line with a colon.

use data_encoding::HEXLOWER;
use sim::{Options, Profile, overhear};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use wire::dissect::{Item, dissect};
use wire::layout::VERSION;
use wire::{
    Body, ChainMendBody, ChainVerifiedBody, ChainVerifyBody, Code, DescribeReplyBody, Fields as _,
    Header, Op, Packet, Version,
};

/// Worlds of each profile that are listened to.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;

/// A packet, and whether it is on its last way, to its reply address.
type Heard = (Vec<u8>, bool);

fn path() -> PathBuf {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(format!("packets-{VERSION}.txt"))
}

/// What a packet says, in lines.
fn said((bytes, delivered): &Heard) -> Vec<String> {
    let mut lines = Vec::new();
    dissect(bytes, Some(*delivered), &mut |item| {
        lines.push(match item {
            Item::Field { field, bytes, sure } => {
                assert!(sure, "where it goes is known");
                format!("{} {}", field.name, HEXLOWER.encode(bytes)).trim_end().to_owned()
            }
            Item::Bytes { name, bytes } => {
                format!("{name} {}", HEXLOWER.encode(bytes)).trim_end().to_owned()
            }
            Item::Begin(name) => format!("{name}:"),
            Item::End => return,
            Item::Missing(name) => panic!("{name} is missing: {}", HEXLOWER.encode(bytes)),
            Item::Left(left) => {
                panic!("{} is left: {}", HEXLOWER.encode(left), HEXLOWER.encode(bytes))
            }
        });
    });
    lines
}

/// What a packet shows: an outcome of its operation, and fields and bodies of that.
fn shows(heard: &Heard) -> BTreeSet<String> {
    let of = name(heard);
    let op = of.split([' ', ',']).next().unwrap_or_default();
    let first = |line: String| line.split(' ').next().map(|first| format!("{op}: {first}"));
    said(heard).into_iter().filter_map(first).chain([of.clone()]).collect()
}

/// What nodes and clients make of it.
fn understood(bytes: &[u8]) -> Option<(Packet<'_>, Body<'_>)> {
    let packet = Packet::parse(bytes).ok()?;
    Some((packet, packet.body().ok()?))
}

fn name((bytes, delivered): &Heard) -> String {
    let (packet, _) = understood(bytes).expect("it is recorded");
    let code = Code::from_wire(packet.header().code()).map_or("", Code::name);
    let code = if packet.op().is_reply() { format!(" {code}") } else { String::new() };
    let to = if *delivered { "delivered" } else { "sent" };
    format!("{}{code}, {to}", packet.op().name())
}

fn block(heard: &Heard) -> String {
    let mut text = format!("\n{}\n", name(heard));
    for line in HEXLOWER.encode(&heard.0).as_bytes().chunks(96) {
        text.push_str(std::str::from_utf8(line).expect("digits"));
        text.push('\n');
    }
    said(heard).into_iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}

/// What is on record: the packets, and what they said.
fn recorded() -> Vec<(Heard, Vec<String>)> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let block = |block: &str| {
        let mut lines = block.lines().filter(|line| !line.is_empty());
        let name = lines.next().expect("a name").to_owned();
        let (said, bytes): (Vec<&str>, Vec<&str>) = lines.partition(|it| it.starts_with("  "));
        let said = said.into_iter().map(|line| line.trim_start().to_owned()).collect();
        let bytes = HEXLOWER.decode(bytes.concat().as_bytes()).expect("hex digits");
        ((bytes, name.ends_with(", delivered")), said)
    };
    text.split("\n\n").filter(|it| !it.trim().is_empty()).map(block).collect()
}

/// What machines say in no world before it has healed.
fn unheard() -> [Heard; 5] {
    let ids = Header { client: 0x0102_0304_0506_0708, seq: 9, ..Header::default() };
    let datagram = |op: Op, key_len: u16, parts: &[&[u8]]| {
        let mut bytes = Vec::new();
        wire::emit(&mut bytes, &Header { op: op as u8, key_len, ..ids }, parts);
        (bytes, op.is_reply())
    };
    let answer = DescribeReplyBody { seed: 0x1112_1314_1516_1718, id: 7, kind: 1 };
    let (version, digest, expiry_ms) = (Version::new(0x2122), 0x3132_3334_3536_3738, 0x4142_4344);
    let verify =
        ChainVerifyBody { kind: 1, count: 3, place: 1, state: 1, version, expiry_ms, digest };
    let [collected, newest, stable, owner] = [0x51, 0x61, 0x71, 0x81].map(Version::new);
    let verified = ChainVerifiedBody {
        kind: 1,
        state: 1,
        end: 0,
        count: 3,
        absurd: 2,
        version,
        expiry_ms,
        digest,
        collected,
        newest,
        stable,
        owner,
    };
    let mend = ChainMendBody {
        state: 1,
        version,
        expiry_ms,
        wrong_state: 1,
        wrong_version: Version::new(0x91),
        wrong_expiry_ms: 0xa1,
        wrong_digest: digest,
    };
    [
        datagram(Op::Describe, 5, &[b"users"]),
        datagram(Op::DescribeReply, 0, &[&answer.to_bytes(), b"user:"]),
        datagram(Op::ChainVerify, 3, &[&verify.to_bytes(), b"key"]),
        datagram(Op::ChainVerified, 3, &[&verified.to_bytes(), b"key"]),
        datagram(Op::ChainMend, 3, &[&mend.to_bytes(), b"key", b"value"]),
    ]
}

/// The shortest packet of those that show the same, as heard in many worlds.
fn listen() -> Vec<Heard> {
    let mut heard: BTreeMap<BTreeSet<String>, Heard> = BTreeMap::new();
    let mut hear = |bytes: &[u8], delivered: bool| {
        if understood(bytes).is_none() {
            return;
        }
        let new = (bytes.to_vec(), delivered);
        let known = heard.entry(shows(&new)).or_insert_with(|| new.clone());
        if new.0.len() < known.0.len() {
            *known = new;
        }
    };
    for (bytes, delivered) in unheard() {
        assert!(understood(&bytes).is_some(), "{}", HEXLOWER.encode(&bytes));
        hear(&bytes, delivered);
    }
    for profile in Profile::ALL {
        for seed in SEEDS {
            overhear(&Options::draw(profile, seed), &mut hear);
        }
    }
    heard.into_values().collect()
}

/// Adds packets to those on record until everything is shown that was heard.
fn record() {
    let mut shown: BTreeSet<String> = recorded().iter().flat_map(|(it, _)| shows(it)).collect();
    let mut heard = listen();
    heard.sort_by_key(|it| (std::cmp::Reverse(shows(it).len()), it.clone()));
    let news = heard.iter().filter(|it| {
        let shows = shows(it);
        let is_new = !shows.is_subset(&shown);
        shown.extend(shows);
        is_new
    });
    let mut news: Vec<String> = news.map(block).collect();
    news.sort();
    let before = std::fs::read_to_string(path()).unwrap_or_default();
    std::fs::create_dir_all(path().parent().expect("a folder")).expect("a folder of ours");
    std::fs::write(path(), before + &news.concat()).expect("a file of ours");
}

/// Bytes of packets on record that said nothing, and the names that they have got since.
const NAMED_SINCE: [(&str, &str); 3] = [
    ("count 00", "based 00"),
    ("count 00", "anew 00"),
    ("seq 0000000000000000", "writes 0000000000000000"),
];

#[test]
fn packets_on_record_are_understood_to_the_last_field() {
    if std::env::var_os("RECORD_FIXTURES").is_some() {
        record();
    }
    let recorded = recorded();
    let mut ops = BTreeSet::new();
    for (heard, before) in &recorded {
        let bytes = &heard.0;
        let Some((packet, _)) = understood(bytes) else {
            panic!("it is not understood any more: {}", HEXLOWER.encode(bytes));
        };
        ops.insert(packet.op());
        let now = said(heard);
        // There may be more, and a byte that said nothing may have got a name.
        let mut rest = now.iter();
        let is_kept = |line: &str, it: &str| it == line || NAMED_SINCE.contains(&(line, it));
        let lost = before.iter().find(|line| !rest.any(|it| is_kept(line, it)));
        assert_eq!(lost, None, "of {}: {now:#?}", name(heard));
        // All that the header says is what a header that is read and written again says.
        let mut again = Vec::new();
        let header = Header::read(packet.header());
        wire::emit(&mut again, &header, &[packet.payload()]);
        assert_eq!(HEXLOWER.encode(&again), HEXLOWER.encode(bytes), "{}", name(heard));
    }
    let missing: Vec<&str> =
        Op::ALL.into_iter().filter(|op| !ops.contains(op)).map(Op::name).collect();
    assert!(
        missing.is_empty(),
        "on record are none of {missing:?}: RECORD_FIXTURES=1 records them"
    );
}
