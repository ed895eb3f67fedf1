//! Any bytes, as the commands of a connection: whole and a byte at a time they mean the same, and
//! what they are understood as is sent and understood again.

use crate::resp::{Limits, Parser};
use bytes::{Bytes, BytesMut};

/// Commands, and what ended them if they are none.
type Read = (Vec<Vec<Bytes>>, Option<String>);

/// Fails if the parser does not keep what it promises.
pub(crate) fn resp(bytes: &[u8]) {
    let small = Limits { command_max: 1 << 10, ..Limits::DEFAULT };
    for limits in [Limits::STRANGER, small] {
        let whole = read([bytes].into_iter(), &limits);
        let dripped = read(bytes.chunks(1), &limits);
        // A limit on the whole may be seen earlier in one way than in the other.
        if bytes.len() <= limits.command_max {
            assert_eq!(whole, dripped);
        }
    }
    let (commands, _) = read([bytes].into_iter(), &Limits::DEFAULT);
    let again = read([sent(&commands).as_slice()].into_iter(), &Limits::DEFAULT);
    assert_eq!(again, (commands, None));
}

fn read<'a>(parts: impl Iterator<Item = &'a [u8]>, limits: &Limits) -> Read {
    let (mut parser, mut buffer) = (Parser::default(), BytesMut::new());
    let mut commands = Vec::new();
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            match parser.parse(&mut buffer, limits) {
                Ok(Some(args)) => commands.push(args),
                Ok(None) => break,
                Err(error) => return (commands, Some(error.to_string())),
            }
        }
    }
    (commands, None)
}

fn sent(commands: &[Vec<Bytes>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for args in commands {
        bytes.extend(format!("*{}\r\n", args.len()).bytes());
        for arg in args {
            bytes.extend(format!("${}\r\n", arg.len()).bytes());
            bytes.extend_from_slice(arg);
            bytes.extend(b"\r\n");
        }
    }
    bytes
}
