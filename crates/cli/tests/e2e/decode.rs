//! `keyway wire decode`: captures of every kind, whole, cut and damaged, into words.

use crate::captures::{
    ETHERNET, FROM, TO, frames, hex, pcap, pcap_frame, pcap_head, pcapng, plain, put,
};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use testkit::program::{Ran, keyway};
use wire::EnvelopeBody;

fn start(command: &mut Command) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary runs")
}

/// Runs it on this, with these further arguments.
fn decode(input: &[u8], arguments: &[&str]) -> Ran {
    let mut child = start(keyway().args(["wire", "decode"]).args(arguments));
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::scope(|scope| {
        // It may have read enough.
        scope.spawn(move || stdin.write_all(input).ok());
        Ran::from(child.wait_with_output().expect("our own child"))
    })
}

/// The packets in this, and the last line.
fn packets(input: &[u8]) -> (Vec<Value>, Value) {
    let mut lines = decode(input, &["--json"]).expect(0).json_lines();
    let last = lines.pop().expect("a last line");
    (lines, last)
}

#[test]
fn every_kind_of_frame_is_looked_into_in_both_kinds_of_file() {
    let datagram = put(b"greeting", b"hello");
    let all = frames(&datagram);
    let (told, last) = packets(&pcapng(&all));
    assert_eq!(last, json!({ "outcome": "done", "packets": all.len(), "others": {} }));
    for (packet, number) in told.iter().zip(1..) {
        assert_eq!(packet["number"], number, "{packet}");
        assert_eq!(packet["header"], told[0]["header"], "{packet}");
        let expected = json!([{ "put": { "expiry_ms": 9 } }, { "key": "greeting" },
            { "value": "hello" }]);
        assert_eq!(packet["payload"], expected, "{packet}");
        assert!(packet.get("drop").is_none() && packet.get("cut").is_none(), "{packet}");
    }
    let first = &told[0];
    assert_eq!((&first["from"], &first["to"]), (&json!("10.0.0.1:40000"), &json!("10.0.0.2:7701")));
    assert_eq!(first["at"], "2023-11-14T22:13:20.000000Z");
    assert_eq!(told[1]["at"], "2023-11-14T22:13:20.000250Z");
    assert_eq!(first["header"]["op"], "put");
    assert_eq!(first["header"]["client"], "0000000000001234");
    for ((link, frame), new) in all.iter().zip(&told) {
        let (old, _) = packets(&pcap(*link, std::slice::from_ref(frame)));
        assert_eq!((&old[0]["header"], &old[0]["payload"]), (&new["header"], &new["payload"]));
    }
}

#[test]
fn envelopes_are_read_with_the_packets_in_them_and_so_are_cookies() {
    let (magic, inner) = (wire::ENVELOPE_MAGIC, put(b"greeting", b"hello"));
    let body = EnvelopeBody { magic, kind: 3, period: 7, echo: 0, edge: 1, end: 2 };
    let sealed = [&body.to_bytes()[..], &inner].concat();
    let cookie = EnvelopeBody { kind: 4, echo: 9, ..body }.to_bytes();
    let both = [plain(&inner), plain(&sealed), plain(&cookie)];
    let (told, last) = packets(&pcap(ETHERNET, &both));
    assert_eq!(last["packets"], 3);
    let expected = json!({ "magic": "4b45", "kind": "member", "period": 7, "echo": 0,
        "edge": "0000000000000001", "end": "0000000000000002" });
    assert_eq!(told[1]["envelope"], expected);
    for what in ["header", "payload", "drop"] {
        assert_eq!(told[1].get(what), told[0].get(what), "{what}");
    }
    assert_eq!((&told[2]["envelope"]["echo"], told[2].get("drop")), (&json!(9), None));
    let text = decode(&pcap(ETHERNET, &both), &[]).expect(0).stdout;
    for words in ["envelope:", "kind member", "  cookie  24 bytes"] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn people_read_the_same_in_lines() {
    let datagram = put(b"greeting", b"a\tb");
    let ran = decode(&pcap(ETHERNET, &[plain(&datagram)]), &[]).expect(0);
    for words in [
        "10.0.0.1:40000 > 10.0.0.2:7701",
        "  put  ",
        "seq 7",
        "expiry_ms 9",
        r#""a\tb""#,
        "directory_clock",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {ran:#?}");
    }
    assert!(ran.stdout.lines().all(|line| line.len() <= 100), "{ran:#?}");
    assert_eq!(ran.stderr, "");
}

#[test]
fn digits_stand_for_datagrams_packets_and_frames() {
    let datagram = put(b"k", b"v");
    let frame = plain(&datagram);
    let spaced: Vec<String> = datagram.iter().map(|byte| format!("{byte:02X}")).collect();
    let input = format!(
        "# copied\n{}\n\n  {}\n0x{}\n{}\n",
        hex(&datagram),
        spaced.join(":"),
        hex(&frame[14..]),
        hex(&frame)
    );
    let (told, last) = packets(input.as_bytes());
    assert_eq!(last["packets"], 4);
    let numbers: Vec<&Value> = told.iter().map(|it| &it["number"]).collect();
    assert_eq!(numbers, [2, 4, 5, 6], "lines");
    assert!(told.iter().all(|it| it["header"] == told[0]["header"]));
    assert!(told[0].get("from").is_none() && told[3]["from"] == "10.0.0.1:40000");
    for wrong in ["4b5", "greeting", "4b57 zz"] {
        let ran = decode(format!("{}\n{wrong}\n", hex(&datagram)).as_bytes(), &[]).expect(2);
        assert!(ran.stderr.contains("line 2") && ran.stderr.contains("xxd -p -c 0"), "{ran:#?}");
        assert!(ran.stdout.contains("put"), "what came before is printed: {ran:#?}");
    }
}

#[test]
fn what_a_receiver_would_drop_is_told_with_the_reason() {
    let good = put(b"k", b"v");
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        bad
    };
    let cases = [
        (with(120, 1), "bad_tag"),
        (with(2, 9), "bad_version"),
        (with(92, 0x3f), "bad_op"),
        (good[..good.len() - 1].to_vec(), "bad_length"),
        (good[..50].to_vec(), "truncated"),
    ];
    for (datagram, reason) in cases {
        let (told, _) = packets(hex(&datagram).as_bytes());
        assert_eq!(told[0]["drop"], reason);
        assert_eq!(told[0]["bytes"], datagram.len());
        let ran = decode(hex(&datagram).as_bytes(), &[]).expect(0);
        assert!(ran.stdout.contains(&format!("is dropped: {reason}")), "{ran:#?}");
    }
    // What the capture cut is not the sender's fault.
    let frame = plain(&good);
    for len in 44..frame.len() {
        let cut = [pcap_head(ETHERNET), pcap_frame(0, &frame, len)].concat();
        let (told, _) = packets(&cut);
        assert_eq!((told[0].get("cut"), told[0].get("drop")), (Some(&json!(true)), None));
        assert!(told[0].get("missing").is_some(), "{len}: {}", told[0]);
    }
}

#[test]
fn datagrams_that_the_kernel_had_not_cut_yet_are_told_apart() {
    let both = [put(b"a", b"1"), put(b"b", b"2")].concat();
    let (told, last) = packets(&pcap(ETHERNET, &[plain(&both)]));
    assert_eq!(last["packets"], 2);
    let keys: Vec<&Value> = told.iter().map(|it| &it["payload"][1]["key"]).collect();
    assert_eq!(keys, ["a", "b"]);
    assert!(told.iter().all(|it| it["number"] == 1 && it.get("drop").is_none()));
}

#[test]
fn what_is_not_ours_is_counted_by_what_it_is() {
    let datagram = put(b"k", b"v");
    let mut fragment = plain(&datagram);
    fragment[20] = 0x20;
    let mut lldp = vec![0xff; 60];
    lldp[12..14].copy_from_slice(&[0x88, 0xcc]);
    let mut icmp = plain(&datagram);
    icmp[23] = 1;
    let frames =
        [plain(b"someone else's"), fragment, lldp, icmp, plain(&datagram), vec![1, 2, 3], vec![]];
    let ran = decode(&pcap(ETHERNET, &frames), &["--json"]).expect(0);
    let last = ran.json_lines().pop().expect("a line");
    assert_eq!(last["packets"], 1);
    let others = last["others"].as_object().expect("an object");
    let counts: Vec<u64> = others.values().map(|it| it.as_u64().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (5, 6), "{others:?}");
    assert!(ran.stderr.contains("passed over 1 IP fragments"), "{ran:#?}");
    // A link that nobody knows.
    let ran = decode(&pcap(147, &frames), &[]).expect(1);
    assert!(ran.stderr.contains("link type") && ran.stderr.contains("no packet"), "{ran:#?}");
    decode(b"", &[]).expect(1);
    decode(&pcap_head(ETHERNET), &[]).expect(1);
}

#[test]
fn a_file_that_ends_or_is_damaged_is_shown_up_to_there_and_complained_about() {
    let frame = plain(&put(b"k", b"v"));
    let whole = pcap(ETHERNET, &[frame.clone(), frame.clone()]);
    let ran = decode(&whole[..whole.len() - 5], &["--json"]).expect(5);
    assert_eq!(ran.json_lines()[0]["outcome"], "packet", "{ran:#?}");
    assert!(ran.stderr.contains("frame 1"), "{ran:#?}");
    let new = pcapng(&[(ETHERNET, frame.clone()), (ETHERNET, frame)]);
    for input in [&new[..new.len() - 5], &whole[..20], &new[..20]] {
        let ran = decode(input, &[]).expect(5);
        assert!(ran.stderr.contains("capture"), "{ran:#?}");
    }
    let mut damaged = new.clone();
    let at = new.len() - 4;
    damaged[at..].fill(0xff);
    decode(&damaged, &[]).expect(5);
    // A length that is not to be believed.
    let mut huge = whole.clone();
    huge[32..36].fill(0x7f);
    decode(&huge, &[]).expect(5);
    let ran = decode(&[0x1f, 0x8b, 8, 0], &[]).expect(2);
    assert!(ran.stderr.contains("zcat"), "{ran:#?}");
}

#[test]
fn packets_are_shown_while_the_capture_goes_on() {
    let mut child = start(keyway().args(["wire", "decode", "--json"]));
    let mut stdin = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let frame = plain(&put(b"k", b"v"));
    for bytes in pcap_head(ETHERNET).chunks(3) {
        stdin.write_all(bytes).unwrap();
    }
    for number in 1..4 {
        stdin.write_all(&pcap_frame(number, &frame, usize::MAX)).unwrap();
        let line = lines.next().expect("a line").unwrap();
        let packet: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(packet["number"], number);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let frames = vec![plain(&put(b"k", b"v")); 5_000];
    let input = pcap(ETHERNET, &frames);
    let mut child = start(keyway().args(["wire", "decode"]));
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    assert!(writer.join().unwrap().is_err(), "it does not read on");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_big_capture_takes_no_more_memory_than_a_small_one() {
    // 400 MB of others' frames pass through; the address space is less than that.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 250000 && exec \"$0\" wire decode --json"]);
    let mut child = start(command.arg(env!("CARGO_BIN_EXE_keyway")));
    let mut stdin = child.stdin.take().expect("piped");
    let reader = std::thread::spawn(move || Ran::from(child.wait_with_output().unwrap()));
    stdin.write_all(&pcap_head(ETHERNET)).unwrap();
    let frame = plain(&vec![b'x'; 60_000]);
    let mut seen = pcap_frame(1, &frame, usize::MAX);
    seen.extend(pcap_frame(2, &plain(&put(b"k", b"v")), usize::MAX));
    for _ in 0..7_000 {
        stdin.write_all(&seen).expect("it reads on");
    }
    drop(stdin);
    let ran = reader.join().unwrap().expect(0);
    let last = ran.json_lines().pop().expect("a line");
    assert_eq!((&last["packets"], last["others"].as_object().unwrap().len()), (&json!(7_000), 1));
}

#[test]
fn where_a_reply_goes_says_which_field_it_has() {
    let header = wire::Header {
        op: wire::Op::GetReply as u8,
        hop_flags: wire::hop_flag::HOT,
        ..wire::Header::default()
    };
    let reply_to = |addr: [u8; 4], port| {
        let mut mapped = [0; 16];
        mapped[10..12].fill(0xff);
        mapped[12..].copy_from_slice(&addr);
        let header = wire::Header { reply_addr: mapped, reply_port: port, ..header };
        let mut out = Vec::new();
        wire::emit(&mut out, &header, &[&[0; 16], b"v"]);
        out
    };
    let (last, first) = (reply_to(TO.0, TO.1), reply_to(FROM.0, FROM.1));
    let (told, _) = packets(&pcap(ETHERNET, &[plain(&last), plain(&first)]));
    let has = |n: usize, name| told[n]["header"].get(name).is_some();
    assert!(has(0, "reply_directory_clock") && !has(0, "generation"), "{}", told[0]);
    assert!(has(1, "generation") && !has(1, "reply_directory_clock"), "{}", told[1]);
    let (bare, _) = packets(hex(&last).as_bytes());
    let unclear: Vec<&String> = bare[0]["unclear"].as_object().unwrap().keys().collect();
    assert_eq!(unclear, ["generation", "reply_directory_clock"]);
    let ran = decode(hex(&last).as_bytes(), &[]).expect(0);
    assert!(ran.stdout.contains("generation 0  or reply_directory_clock 0"), "{ran:#?}");
}
