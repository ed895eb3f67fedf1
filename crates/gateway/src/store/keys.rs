//! Keys as such: TYPE, OBJECT, MEMORY, and what of RENAME and COPY can be done exactly.
//!
//! Renaming and copying read one key and write another. There is no request that does both at one
//! moment, and done one after the other they would show others a state that never was: both names,
//! or neither, or a copy older than what was already read elsewhere. So they are refused, except
//! where one read of one key is the whole answer.

use super::Store;
use super::errors::{Answer, NOT_AN_INTEGER, SYNTAX, shown};
use super::numbers::integer;
use super::ranges::length;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;

/// What Redis says of a number that is too large for a database's.
const NO_INT: Reply =
    Reply::error("ERR value is out of range, value must between -2147483648 and 2147483647");

/// Bytes of the name of a subcommand that an error repeats, as many as in Redis.
const SHOWN_MAX: usize = 128;

const NO_SUCH_KEY: Reply = Reply::error("ERR no such key");

impl Store {
    /// TYPE.
    pub(super) async fn type_of(&self, key: &[u8]) -> Answer {
        let name = if self.get(key).await?.is_some() { "string" } else { "none" };
        Ok(Reply::Status(name.into()))
    }

    /// RENAME and RENAMENX: exact if there is nothing to rename, or from a key to itself.
    pub(super) async fn rename(&self, command: Keyed, from: &[u8], to: &[u8]) -> Answer {
        if self.get(from).await?.is_none() {
            return Err(NO_SUCH_KEY);
        }
        match (from == to, command) {
            (true, Keyed::RenameNx) => Ok(Reply::Integer(0)),
            (true, _) => Ok(Reply::OK),
            (false, _) => Err(Reply::error(
                "ERR renaming would not be atomic here; GET the value, SET it under the new name, \
                 then DEL the old one",
            )),
        }
    }

    /// COPY: exact if there is nothing to copy, or nothing may be overwritten and there is
    /// something.
    pub(super) async fn copy(&self, from: &[u8], to: &[u8], options: &[Bytes]) -> Answer {
        let replace = copy_replaces(options)?;
        if from == to {
            return Err(Reply::error("ERR source and destination objects are the same"));
        }
        if self.get(from).await?.is_none() || !replace && self.get(to).await?.is_some() {
            return Ok(Reply::Integer(0));
        }
        Err(Reply::error(
            "ERR a copy would not be atomic here; GET the value, then SET it under the other name \
             (with NX, not to overwrite)",
        ))
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
                let untold =
                    Reply::error("ERR access frequencies of single keys are not kept here");
                self.if_present(key, Err(untold)).await
            }
            _ => Err(arity_of("object", &name)),
        }
    }

    /// MEMORY and its subcommands.
    pub(super) async fn memory(&self, subcommand: &[u8], arguments: &[Bytes]) -> Answer {
        let name = subcommand.to_ascii_lowercase();
        match (name.as_slice(), arguments) {
            (b"help", []) => Ok(help(MEMORY_HELP)),
            (b"usage", [key, options @ ..]) => {
                samples(options)?;
                let found = self.get(key).await?;
                Ok(found.map_or(Reply::Null, |found| length(key.len() + found.value.len())))
            }
            (b"help" | b"usage", _) => Err(arity_of("memory", &name)),
            _ => Err(unknown("MEMORY", subcommand)),
        }
    }

    /// That reply if the key exists, and else nothing.
    async fn if_present(&self, key: &[u8], reply: Answer) -> Answer {
        if self.get(key).await?.is_some() { reply } else { Ok(Reply::Null) }
    }
}

/// Whether the options of COPY say to overwrite.
fn copy_replaces(options: &[Bytes]) -> Answer<bool> {
    let mut replace = false;
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match option.to_ascii_lowercase().as_slice() {
            b"replace" => replace = true,
            b"db" => {
                let database = integer(rest.next().ok_or(SYNTAX)?).ok_or(NOT_AN_INTEGER)?;
                i32::try_from(database).map_err(|_| NO_INT)?;
                if database != 0 {
                    return Err(Reply::error("ERR DB index is out of range"));
                }
            }
            _ => return Err(SYNTAX),
        }
    }
    Ok(replace)
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
