//! Scripts and properties of the parser. Errors are in the words of Redis 7.

use super::*;
use proptest::prelude::*;

fn parse(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
    parse_in_parts(&[bytes], &Limits::DEFAULT)
}

/// All commands of bytes that come in these parts.
fn parse_in_parts(parts: &[&[u8]], limits: &Limits) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
    let (mut parser, mut buffer, mut commands) = (Parser::default(), BytesMut::new(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        while let Some(args) = parser.parse(&mut buffer, limits)? {
            commands.push(args.iter().map(|arg| arg.to_vec()).collect());
        }
    }
    Ok(commands)
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn arrays_and_lines_are_commands_and_may_follow_each_other() {
    let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n*1\r\n$4\r\nQUIT\r\necho 'a b'\n";
    let expected =
        [words(&["GET", "a"]), words(&["PING"]), words(&["QUIT"]), words(&["echo", "a b"])];
    assert_eq!(parse(bytes).unwrap(), expected);
}

#[test]
fn empty_commands_are_skipped() {
    assert_eq!(parse(b"\r\n*0\r\n*-1\r\n\n  \nPING\r\n").unwrap(), [words(&["PING"])]);
}

#[test]
fn arguments_hold_any_bytes() {
    let bytes = b"*2\r\n$0\r\n\r\n$5\r\n\r\n\0*\xff\r\n";
    assert_eq!(parse(bytes).unwrap(), [vec![Vec::new(), b"\r\n\0*\xff".to_vec()]]);
}

#[test]
fn what_is_no_command_is_refused_in_the_words_of_redis() {
    let error = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
    let invalid_count = "Protocol error: invalid multibulk length";
    for count in ["x", "", "01", "+1", " 1", "1048577", "99999999999999999999"] {
        assert_eq!(error(format!("*{count}\r\n").as_bytes()), invalid_count, "{count}");
    }
    assert_eq!(error(b"*1\r\nGET\r\n"), "Protocol error: expected '$', got 'G'");
    let invalid_length = "Protocol error: invalid bulk length";
    for length in ["-1", "x", "", "536870913", "99999999999999999999"] {
        assert_eq!(error(format!("*1\r\n${length}\r\n").as_bytes()), invalid_length, "{length}");
    }
    assert_eq!(error(b"get 'a\r\n"), "Protocol error: unbalanced quotes in request");
    let long = "1".repeat(LINE_MAX + 2);
    assert_eq!(error(long.as_bytes()), "Protocol error: too big inline request");
    let count = format!("*{long}");
    assert_eq!(error(count.as_bytes()), "Protocol error: too big mbulk count string");
    let length = format!("*1\r\n${long}");
    assert_eq!(error(length.as_bytes()), "Protocol error: too big bulk count string");
}

#[test]
fn a_stranger_may_send_little() {
    let parse = |bytes: &[u8]| parse_in_parts(&[bytes], &Limits::STRANGER);
    assert_eq!(parse(b"*10\r\n"), Ok(Vec::new()));
    assert_eq!(parse(b"*11\r\n"), Err(ProtocolError::StrangerArgumentCount));
    assert_eq!(parse(b"*1\r\n$16384\r\n"), Ok(Vec::new()));
    assert_eq!(parse(b"*1\r\n$16385\r\n"), Err(ProtocolError::StrangerBulkLength));
    let words = ["unauthenticated multibulk length", "unauthenticated bulk length"];
    for (error, word) in
        [ProtocolError::StrangerArgumentCount, ProtocolError::StrangerBulkLength].iter().zip(words)
    {
        assert_eq!(error.to_string(), format!("Protocol error: {word}"));
    }
}

#[test]
fn a_command_over_the_limit_is_refused_before_it_has_come_in() {
    let limits = Limits { command_max: 100, ..Limits::DEFAULT };
    let announced = parse_in_parts(&[b"*1\r\n$101\r\n"], &limits);
    assert_eq!(announced, Err(ProtocolError::CommandLength));
    let sent = "$1\r\na\r\n".repeat(15);
    let sent = format!("*16\r\n{sent}");
    assert_eq!(parse_in_parts(&[sent.as_bytes()], &limits), Err(ProtocolError::CommandLength));
    // What comes after a whole command does not count.
    let pipeline = "PING\r\n".repeat(50);
    assert_eq!(parse_in_parts(&[pipeline.as_bytes()], &limits).unwrap().len(), 50);
}

#[test]
fn a_byte_at_a_time_is_not_searched_twice() {
    // A quadratic search would look at 2^31 bytes here, and not be done in a second.
    let line = vec![b'a'; LINE_MAX - 1];
    let parts: Vec<&[u8]> = line.chunks(1).chain([b"\n".as_slice()]).collect();
    assert_eq!(parse_in_parts(&parts, &Limits::DEFAULT).unwrap(), [[line.clone()]]);
}

fn encoded(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for args in commands {
        bytes.extend(format!("*{}\r\n", args.len()).bytes());
        for arg in args {
            bytes.extend(format!("${}\r\n", arg.len()).bytes());
            bytes.extend(arg);
            bytes.extend(b"\r\n");
        }
    }
    bytes
}

/// The parts that these cuts make.
fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

proptest! {
    #[test]
    fn what_is_sent_is_what_is_read_however_it_is_cut(
        commands in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..6), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = encoded(&commands);
        let parts = cut(&bytes, &cuts);
        prop_assert_eq!(parse_in_parts(&parts, &Limits::DEFAULT), Ok(commands));
    }

    #[test]
    fn any_bytes_mean_the_same_however_they_are_cut(
        bytes in prop::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'2'),
                Just(b'"'), Just(b' '), any::<u8>()], 0..80),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let whole = parse_in_parts(&[&bytes], &Limits::DEFAULT);
        prop_assert_eq!(parse_in_parts(&cut(&bytes, &cuts), &Limits::DEFAULT), whole);
    }
}
