//! The text of a script, and what its first line says of it.

use crate::Reply;
use bytes::Bytes;
use sha1::{Digest as _, Sha1};

/// A script that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its name: forty hexadecimal digits, the SHA-1 of its text.
    pub(crate) sha: String,
    /// What the interpreter is given.
    pub(super) text: Bytes,
    /// Whether it says that it changes nothing.
    pub(crate) only_reads: bool,
}

/// Flags that a script may have. Those about memory and replicas mean nothing here, and keys of
/// several slots are refused where they cannot take effect together.
const FLAGS: [&str; 5] =
    ["allow-cross-slot-keys", "allow-oom", "allow-stale", "no-cluster", "no-writes"];

/// The name of a script with that text.
pub(super) fn sha_of(text: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha1::digest(text))
}

impl Source {
    /// Reads a script, whose first line may be `#!lua flags=...`.
    ///
    /// # Errors
    ///
    /// The reply, if that line asks for what there is not.
    pub(crate) fn new(text: &[u8]) -> Result<Self, Reply> {
        let sha = sha_of(text);
        let Some(rest) = text.strip_prefix(b"#!") else {
            return Ok(Self { sha, text: Bytes::copy_from_slice(text), only_reads: false });
        };
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, body) = end.and_then(|end| rest.split_at_checked(end)).ok_or(NO_END)?;
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_ascii_whitespace();
        let engine = words.next().unwrap_or_default();
        if !engine.eq_ignore_ascii_case("lua") {
            return Err(error(format!("ERR Unexpected engine in script shebang: #!{engine}")));
        }
        let mut only_reads = false;
        for word in words {
            let Some(flags) = word.strip_prefix("flags=") else {
                return Err(error(format!("ERR Unknown lua shebang option: {word}")));
            };
            for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
                if !FLAGS.contains(&flag) {
                    return Err(error(format!("ERR Unexpected flag in script shebang: {flag}")));
                }
                only_reads |= flag == "no-writes";
            }
        }
        // With the end of the first line, so that the others keep their numbers.
        Ok(Self { sha, text: Bytes::copy_from_slice(body), only_reads })
    }
}

const NO_END: Reply = Reply::error("ERR Invalid script shebang");

fn error(text: String) -> Reply {
    Reply::Error(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_may_say_something() {
        let plain = Source::new(b"return 1").unwrap();
        assert_eq!(plain.sha, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!((plain.text.as_ref(), plain.only_reads), (&b"return 1"[..], false));
        let reads = Source::new(b"#!lua flags=no-writes,allow-stale\nreturn 1").unwrap();
        assert_eq!((reads.text.as_ref(), reads.only_reads), (&b"\nreturn 1"[..], true));
        for (text, expected) in [
            ("#!lua", "ERR Invalid script shebang"),
            ("#!js\n", "ERR Unexpected engine in script shebang: #!js"),
            ("#!lua name=x\n", "ERR Unknown lua shebang option: name=x"),
            ("#!lua flags=fast\n", "ERR Unexpected flag in script shebang: fast"),
        ] {
            assert_eq!(Source::new(text.as_bytes()), Err(Reply::error(expected)));
        }
    }
}
