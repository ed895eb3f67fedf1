//! What is written is read, and nothing else is.

use super::{Event, Reader, Totals, Writer};

fn written() -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), "default", "hash").unwrap();
    writer.key(b"a\x00\xff\n", b"", None).unwrap();
    writer.key(b"b", b"\\x00\t(3 bytes)", Some(1_900_000_000_000)).unwrap();
    writer.long(b"c", 6, Some(u64::MAX)).unwrap();
    writer.piece(b"abc".to_vec()).unwrap();
    writer.void().unwrap();
    writer.long(b"c", 5, Some(7)).unwrap();
    writer.piece(b"abc".to_vec()).unwrap();
    writer.piece(b"de".to_vec()).unwrap();
    writer.whole().unwrap();
    assert_eq!(writer.totals(), Totals { keys: 3, bytes: 4 + 15 + 6 });
    writer.end().unwrap()
}

/// All events, or what is wrong.
fn read(text: &[u8]) -> Result<Vec<Event>, String> {
    let mut reader = Reader::begin(text).map_err(|damage| damage.to_string())?;
    let mut events = Vec::new();
    while let Some(event) = reader.next().map_err(|damage| damage.to_string())? {
        events.push(event);
    }
    assert_eq!(reader.bytes_read(), text.len() as u64);
    Ok(events)
}

#[test]
fn what_goes_in_comes_out() {
    let key = |key: &[u8], value: &[u8], expires_at_ms| Event::Key {
        key: key.to_vec(),
        value: value.to_vec(),
        expires_at_ms,
    };
    let long = |len, expires_at_ms| Event::Long { key: b"c".to_vec(), len, expires_at_ms };
    let piece = |bytes: &[u8]| Event::Piece(bytes.to_vec());
    let expected = vec![
        key(b"a\x00\xff\n", b"", None),
        key(b"b", b"\\x00\t(3 bytes)", Some(1_900_000_000_000)),
        long(6, Some(u64::MAX)),
        piece(b"abc"),
        Event::Void,
        long(5, Some(7)),
        piece(b"abc"),
        piece(b"de"),
        Event::Whole,
    ];
    assert_eq!(read(&written()), Ok(expected));
}

#[test]
fn an_export_that_is_cut_off_anywhere_is_not_whole() {
    let text = written();
    for len in 0..text.len() {
        let why = read(&text[..len]).expect_err("it is cut off");
        assert!(why.starts_with("line "), "{len}: {why}");
    }
    assert!(read(&text[..text.len() - 1]).unwrap_err().contains("cut off"));
}

#[test]
fn no_byte_can_change_and_no_line_be_lost_doubled_or_moved() {
    let text = written();
    for at in 0..text.len() {
        for bit in [0, 3, 7] {
            let mut changed = text.clone();
            changed[at] ^= 1 << bit;
            assert!(read(&changed).is_err(), "byte {at}, bit {bit}");
        }
    }
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() {
        let (mut lost, mut doubled, mut moved) = (lines.clone(), lines.clone(), lines.clone());
        lost.remove(at);
        doubled.insert(at, lines[at]);
        assert!(read(&lost.concat()).is_err(), "without line {at}");
        assert!(read(&doubled.concat()).is_err(), "line {at} twice");
        moved.swap(at, (at + 1) % lines.len());
        assert!(read(&moved.concat()).is_err(), "line {at} moved");
    }
    assert!(read(&[&text[..], b"\n"].concat()).unwrap_err().contains("follows"));
}

#[test]
fn what_is_no_export_is_told_from_a_damaged_one() {
    for text in [&b"a\t1\n"[..], b"{}\n", b"{\"outcome\":\"done\"}\n", &[0; 3_000_000]] {
        assert!(read(text).unwrap_err().contains("no export"), "{:?}", &text[..2]);
    }
    assert!(read(b"").unwrap_err().contains("cut off"));
    let newer = b"{\"type\":\"export\",\"format\":2,\"keyspace\":\"x\",\"kind\":\"hash\"}\n";
    assert!(read(newer).unwrap_err().contains("format 2"));
}
