//! The dissector for Wireshark and `keyway wire decode` say the same of the same capture, field by
//! field. `tshark` runs the dissector.

use crate::captures::{ETHERNET, pcap, plain};
use lab::hammer::wait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::program::{Up, keyway};
use testkit::skip;
use wire::{EnvelopeBody, Header, Op, flag};

const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/keyway.lua");

/// Whether there is a tshark; if not, that is said.
fn has_tshark(test: &str) -> bool {
    let ran = Command::new("tshark").arg("--version").stdout(Stdio::null()).status();
    let there = ran.is_ok_and(|status| status.success());
    if !there {
        skip::report(test, "it needs tshark: apt-get install tshark");
    }
    there
}

/// What is said of one packet: the values of each field, in their order.
type Fields = BTreeMap<String, Vec<String>>;

/// What `keyway wire decode` prints of a capture, which may still be written.
fn decoded(capture: &Path) -> String {
    let input = File::open(capture).expect("the capture");
    let ran = keyway().args(["wire", "decode", "--json"]).stdin(input).output().unwrap();
    String::from_utf8(ran.stdout).expect("text")
}

/// What `keyway wire decode` says of each packet of a capture.
fn ours(capture: &Path) -> Vec<Fields> {
    let text = decoded(capture);
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.filter(|line: &Value| line["outcome"] == "packet").map(|line| of_json(&line)).collect()
}

fn of_json(packet: &Value) -> Fields {
    let mut fields = Fields::new();
    let mut all = |prefix: &str, object: &Value| {
        for (name, value) in object.as_object().expect("an object") {
            match value {
                // A body, with what belongs to it.
                Value::Object(body) => {
                    for (field, value) in body {
                        put(&mut fields, &format!("{name}."), field, value);
                    }
                }
                value => put(&mut fields, prefix, name, value),
            }
        }
    };
    if let Some(envelope) = packet.get("envelope") {
        all("envelope.", envelope);
    }
    all("", &packet["header"]);
    packet["payload"].as_array().expect("a list").iter().for_each(|part| all("", part));
    if packet.get("missing").is_some() {
        fields.insert("missing".to_owned(), vec![String::new()]);
    }
    if let Some(left) = packet["left_hex"].as_str() {
        fields.insert("left".to_owned(), vec![left.to_owned()]);
    }
    fields
}

/// What a body ends with stands in it, and has a name of its own in Wireshark.
const OF_BODIES: [&str; 3] = ["key", "value", "delegations"];

fn put(fields: &mut Fields, prefix: &str, name: &str, value: &Value) {
    let plain = name.trim_end_matches("_hex");
    let prefix = if OF_BODIES.contains(&plain) { "" } else { prefix };
    let is_bytes =
        plain != name || value.is_string() && BYTES.contains(&plain) && prefix.is_empty();
    let hex = |text: &str| crate::captures::hex(text.as_bytes());
    let said: Vec<String> = match value {
        Value::String(text) if is_bytes && plain == name => vec![hex(text)],
        // Wireshark has no names for bits without a meaning.
        Value::Array(all) => all.iter().map(text_of).filter(|it| !it.starts_with("bit ")).collect(),
        value => vec![text_of(value)],
    };
    let name = if is_bytes { plain } else { name };
    fields.entry(format!("{prefix}{name}")).or_default().extend(said);
}

/// Parts of payloads that are bytes.
const BYTES: [&str; 11] = [
    "key",
    "value",
    "expected",
    "start",
    "end",
    "name",
    "prefix",
    "last",
    "words",
    "nodes",
    "delegations",
];

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// What tshark says of each packet of a capture, in the same form.
fn theirs(capture: &Path) -> Vec<Fields> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &format!("lua_script:{DISSECTOR}"), "-T", "pdml", "-r"]).arg(capture);
    let mut child = tshark.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut packets: Vec<Fields> = Vec::new();
    for line in stdout.lines() {
        let line = line.unwrap();
        let line = line.trim_start();
        if line.starts_with("<proto name=\"keyway\"") {
            packets.push(Fields::new());
        } else if let Some(name) = attribute(line, "name").and_then(|it| it.strip_prefix("keyway."))
            && let Some(packet) = packets.last_mut()
        {
            read(packet, name, line);
        }
    }
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && !said.contains("Lua"), "{said}");
    // A body is a field as well, above its own.
    let is_body = |packet: &Fields, name: &str| {
        packet.keys().any(|it| it.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    };
    packets
        .into_iter()
        .map(|it| it.clone().into_iter().filter(|(name, _)| !is_body(&it, name)).collect())
        .collect()
}

fn attribute<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn read(packet: &mut Fields, name: &str, line: &str) {
    let shown = attribute(line, "show").unwrap_or_default();
    let (value, title) = (attribute(line, "value"), attribute(line, "showname"));
    // A bit is below the field that it is of, which is there already, as a number.
    if let Some((field, bit)) = name.split_once('.')
        && let Some(bits) = packet.get_mut(field)
        && title.is_some_and(|title| title.contains(".... = ") || title.contains(" = "))
    {
        bits.extend(["1", "True"].contains(&shown).then(|| bit.to_uppercase()));
        return;
    }
    let values = packet.entry(name.to_owned()).or_default();
    let value = value.unwrap_or_default();
    let named =
        title.and_then(|title| title.rsplit_once(" (0x")).and_then(|it| it.0.split_once(": "));
    if name.ends_with("flags") {
        // Its bits follow.
    } else if let Some((_, word)) = named {
        let number = || u8::from_str_radix(value, 16).expect("a byte").to_string();
        values.push(if word == "Unknown" { number() } else { word.to_owned() });
    } else if shown.parse::<i128>().is_ok() && !shown.starts_with("0x") {
        values.push(shown.to_owned());
    } else if let (32, Ok(address)) = (value.len(), shown.parse::<std::net::Ipv6Addr>()) {
        values.push(address.to_canonical().to_string());
    } else {
        values.push(value.to_owned());
    }
}

/// The same, whoever says it: without what is empty, bits in the order of their names.
fn plainly(said: &Fields) -> Fields {
    let one = |(name, values): (&String, &Vec<String>)| {
        let mut values = values.clone();
        if name.ends_with("flags") {
            values.sort();
        }
        if name == "left" {
            values = vec![values.concat()];
        }
        (name.clone(), values)
    };
    said.iter().filter(|(_, values)| !values.is_empty()).map(one).collect()
}

/// Compares what both say.
#[track_caller]
fn agree(capture: &Path) -> Vec<Fields> {
    let (ours, theirs) = (ours(capture), theirs(capture));
    assert_eq!(ours.len(), theirs.len(), "packets");
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(plainly(ours), plainly(theirs), "packet {number}");
    }
    ours
}

/// Ends a capture when it is dropped.
struct Capturing(Child);

impl Drop for Capturing {
    fn drop(&mut self) {
        let id = self.0.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().expect("there is a kill");
        self.0.wait().expect("our own child");
    }
}

#[test]
fn wireshark_says_the_same_of_what_a_cluster_sends() {
    let test = "wireshark_says_the_same_of_what_a_cluster_sends";
    if !has_tshark(test) {
        return;
    }
    // `id` rather than a library: whether tshark may capture is a matter of its own.
    let id = Command::new("id").arg("-u").output().expect("there is an id");
    if id.stdout != b"0\n" {
        skip::report(test, "only root may capture packets");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("loopback.pcapng");
    let mut tshark = Command::new("tshark");
    tshark.args(["-i", "lo", "-f", "udp", "-c", "20000", "-q", "-w"]).arg(&capture);
    let mut child = tshark.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let ready = said.by_ref().map_while(Result::ok).any(|line| line.contains("Capturing on"));
    let capturing = Capturing(child);
    if !ready {
        skip::report(test, "tshark captures nothing here");
        return;
    }
    // Reads what else it says, so that it never waits for that.
    let reader = std::thread::spawn(move || said.map_while(Result::ok).count());

    let up = Up::start(&["--nodes", "3", "--replicas", "3", "--partitions", "4"]);
    up.run(&["hot", "pin", "hot"]).expect(0);
    for round in 0..20 {
        let value = format!("v{round}");
        up.run(&["put", "hot", &value]).expect(0);
        up.run(&["get", "hot"]).expect(0);
    }
    up.run(&["put", "k", "v", "--ttl", "1h"]).expect(0);
    up.run(&["cas", "k", "w", "--expect", "v"]).expect(0);
    up.run(&["incr", "n", "-3"]).expect(0);
    up.run(&["mset", "a", "1", "b", "2"]).expect(0);
    up.run(&["mget", "a", "b", "hot", "none"]).expect(1);
    up.run(&["scan"]).expect(0);
    up.run(&["scan", "--count"]).expect(0);
    up.run(&["del", "k"]).expect(0);
    // What was captured last is written a little later.
    let last = || Some(()).filter(|()| decoded(&capture).contains("\"op\":\"del_reply\""));
    wait(last).expect("the last reply is captured");
    drop(capturing);
    reader.join().unwrap();

    let packets = agree(&capture);
    let ops: Vec<&String> = packets.iter().flat_map(|packet| &packet["op"]).collect();
    for op in ["get", "put", "put_reply", "chain_write", "chain_ack", "cas", "incr", "mget_reply"]
        .into_iter()
        .chain(["range", "range_reply", "del", "describe_reply", "chain_commit", "get_reply"])
    {
        assert!(ops.iter().any(|it| *it == op), "no {op} among {} packets", ops.len());
    }
}

/// An envelope of any kind.
fn envelope(random: &mut impl FnMut() -> u8) -> [u8; EnvelopeBody::LEN] {
    let mut bytes = [0; EnvelopeBody::LEN];
    bytes.fill_with(&mut *random);
    let (magic, kind) = (wire::ENVELOPE_MAGIC, random() % 6);
    let body = EnvelopeBody { magic, kind, ..EnvelopeBody::split(&bytes).expect("enough").0 };
    body.to_bytes()
}

#[test]
fn wireshark_says_the_same_of_packets_of_every_kind_also_of_damaged_ones() {
    if !has_tshark("wireshark_says_the_same_of_packets_of_every_kind_also_of_damaged_ones") {
        return;
    }
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    let mut frames = Vec::new();
    for op in Op::ALL {
        for round in 0..12 {
            let few = random() % 4;
            let mut header = Header {
                op: op as u8,
                hop_flags: random() & random(),
                flags: random() & random() & !if round % 2 == 0 { flag::SINCE } else { 0 },
                key_len: few.into(),
                count: random() % 3,
                code: if round % 3 == 0 { random() % 40 } else { 0 },
                chain_len: random() % 3,
                ..Header::default()
            };
            header.chain.fill_with(&mut random);
            header.reply_addr[10..12].fill(0xff);
            if round % 4 == 0 {
                header.reply_addr[12..].copy_from_slice(&crate::captures::TO.0);
                header.reply_port = crate::captures::TO.1;
            }
            // Small numbers, so that lengths and kinds are often right.
            let payload: Vec<u8> = (0..usize::from(random()) + 40)
                .map(|_| if random() < 100 { random() % 6 } else { 0 })
                .collect();
            let mut datagram = Vec::new();
            wire::emit(&mut datagram, &header, &[&payload]);
            if round % 5 == 4 {
                datagram.truncate(usize::from(random()) + 20);
            }
            if round % 7 == 6 {
                datagram.extend_from_slice(b"more");
            }
            if round % 6 == 5 {
                datagram.splice(0..0, envelope(&mut random));
            }
            frames.push(plain(&datagram));
        }
    }
    frames.push(plain(&envelope(&mut random)));
    frames.push(plain(&envelope(&mut random)[..20]));
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("made.pcap");
    std::fs::write(&capture, pcap(ETHERNET, &frames)).unwrap();
    assert_eq!(agree(&capture).len(), frames.len());
}
