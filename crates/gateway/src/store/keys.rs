//! Keys as such: TYPE, OBJECT, MEMORY, and the options of COPY.

use super::Store;
use super::errors::{Answer, NOT_AN_INTEGER, SYNTAX, shown};
use super::integers::integer;
use super::ranges::length;
use crate::Reply;
use crate::hot::HotKey;
use bytes::Bytes;

/// What Redis says of a number that is too large for a database's.
const NO_INT: Reply =
    Reply::error("ERR value is out of range, value must between -2147483648 and 2147483647");

/// Bytes of the name of a subcommand that an error repeats, as many as in Redis.
const SHOWN_MAX: usize = 128;

impl Store {
    /// TYPE.
    pub(super) async fn type_of(&self, key: &[u8]) -> Answer {
        Ok(type_name(self.look(key).await?.is_some()))
    }

    /// OBJECT and its subcommands.
    pub(super) async fn object(&self, subcommand: &[u8], arguments: &[Bytes]) -> Answer {
        let name = subcommand.to_ascii_lowercase();
        if !matches!(name.as_slice(), b"encoding" | b"freq" | b"idletime" | b"refcount" | b"help") {
            return Err(unknown("OBJECT", subcommand));
        }
        match (name.as_slice(), arguments) {
            (b"help", []) => Ok(help(OBJECT_HELP)),
            (b"encoding", [key]) => self.if_present(key, Ok(Reply::bulk("raw"))).await,
            (b"refcount", [key]) => self.if_present(key, Ok(Reply::Integer(1))).await,
            (b"idletime", [key]) => {
                let untold = Reply::error("ERR idle times are not tracked here");
                self.if_present(key, Err(untold)).await
            }
            (b"freq", [key]) => {
                let found = self.if_present(key, Ok(Reply::Integer(0))).await?;
                if found == Reply::Null { Ok(found) } else { self.frequency(key).await }
            }
            _ => Err(arity_of("object", &name)),
        }
    }

    /// How often a key that is there is asked for.
    async fn frequency(&self, key: &[u8]) -> Answer {
        let Some(hot) = &self.hot else {
            let text = "ERR access frequencies are known to controllers, and this gateway was told \
                        of none";
            return Err(Reply::error(text));
        };
        let list = hot.list().await?;
        let requests = list.iter().find(|it| it.key == key).map_or(0, HotKey::requests);
        Ok(Reply::Integer(i64::try_from(requests).unwrap_or(i64::MAX)))
    }

    /// MEMORY and its subcommands.
    pub(super) async fn memory(&self, subcommand: &[u8], arguments: &[Bytes]) -> Answer {
        let name = subcommand.to_ascii_lowercase();
        match (name.as_slice(), arguments) {
            (b"help", []) => Ok(help(MEMORY_HELP)),
            (b"usage", [key, options @ ..]) => {
                samples(options)?;
                let found = self.look(key).await?;
                let len = |len| usize::try_from(len).unwrap_or(usize::MAX);
                Ok(found.map_or(Reply::Null, |found| length(key.len() + len(found.len()))))
            }
            (b"help" | b"usage", _) => Err(arity_of("memory", &name)),
            _ => Err(unknown("MEMORY", subcommand)),
        }
    }

    /// That reply if the key exists, and else nothing.
    async fn if_present(&self, key: &[u8], reply: Answer) -> Answer {
        if self.look(key).await?.is_some() { reply } else { Ok(Reply::Null) }
    }
    /// Whether COPY is to overwrite.
    pub(super) fn copy_replaces(&self, from: &[u8], to: &[u8], options: &[Bytes]) -> Answer<bool> {
        let mut replace = false;
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            match option.to_ascii_lowercase().as_slice() {
                b"replace" => replace = true,
                b"db" => {
                    let database = integer(rest.next().ok_or(SYNTAX)?).ok_or(NOT_AN_INTEGER)?;
                    i32::try_from(database).map_err(|_| NO_INT)?;
                    self.check_database(database)?;
                }
                _ => return Err(SYNTAX),
            }
        }
        if from == to {
            return Err(Reply::error("ERR source and destination objects are the same"));
        }
        Ok(replace)
    }

    /// Whether COPY may copy there: keys of two databases do not take effect together.
    fn check_database(&self, number: i64) -> Answer<()> {
        if number == i64::from(self.database) {
            return Ok(());
        }
        let is_there = self.databases.iter().any(|(other, _)| i64::from(*other) == number);
        let far = "ERR COPY does not reach into another database here";
        Err(Reply::error(if is_there { far } else { "ERR DB index is out of range" }))
    }
}

/// What TYPE replies of a key that is there, or is not.
pub(super) fn type_name(exists: bool) -> Reply {
    Reply::Status(if exists { "string" } else { "none" }.into())
}

/// The options of MEMORY USAGE, which mean nothing for strings.
fn samples(options: &[Bytes]) -> Answer<()> {
    match options {
        [] => Ok(()),
        [name, count] if name.eq_ignore_ascii_case(b"samples") => match integer(count) {
            Some(0..) => Ok(()),
            Some(_) => Err(SYNTAX),
            None => Err(NOT_AN_INTEGER),
        },
        _ => Err(SYNTAX),
    }
}

fn unknown(command: &str, subcommand: &[u8]) -> Reply {
    let subcommand = shown(subcommand, SHOWN_MAX);
    Reply::Error(format!("ERR unknown subcommand '{subcommand}'. Try {command} HELP.").into())
}

fn arity_of(command: &str, subcommand: &[u8]) -> Reply {
    let subcommand = shown(subcommand, SHOWN_MAX);
    let text = format!("ERR wrong number of arguments for '{command}|{subcommand}' command");
    Reply::Error(text.into())
}

fn help(lines: &'static [&'static str]) -> Reply {
    Reply::Array(lines.iter().map(|line| Reply::Status((*line).into())).collect())
}

const OBJECT_HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return how the value is kept, which is always raw: the bytes as they came.",
    "FREQ <key>",
    "    Return the requests per second for <key> lately; 0 if it is not among the hottest keys.",
    "REFCOUNT <key>",
    "    Return the number of references to the value, which is always 1.",
    "HELP",
    "    Prints this help.",
];

const MEMORY_HELP: &[&str] = &[
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "USAGE <key> [SAMPLES <count>]",
    "    Return the bytes of <key> and its value, without what each replica needs to keep them.",
    "HELP",
    "    Prints this help.",
];
