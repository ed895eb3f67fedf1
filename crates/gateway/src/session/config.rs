//! CONFIG: parameters, and statistics set to zero.

use super::words::{SYNTAX, error, quoted};
use crate::Reply;
use crate::command::Config;
use crate::glob::Pattern;
use crate::settings::SetError;
use crate::shared::Shared;
use bytes::Bytes;
use std::collections::BTreeSet;

pub(super) fn run(shared: &Shared, command: Config, args: &[Bytes]) -> Reply {
    let words = args.get(2..).unwrap_or_default();
    match command {
        Config::Get => get(shared, words),
        Config::ResetStat => {
            shared.stats.reset();
            Reply::OK
        }
        Config::Set => set(shared, words),
    }
}

fn get(shared: &Shared, patterns: &[Bytes]) -> Reply {
    let patterns: Result<Vec<_>, _> = patterns.iter().map(|it| Pattern::any_case(it)).collect();
    let patterns = match patterns {
        Ok(patterns) => patterns,
        Err(why) => return error(format!("ERR {why}")),
    };
    let found = shared.settings.get(&patterns).into_iter();
    let pair = |(name, value): (&str, String)| (Reply::bulk(name), Reply::bulk(value));
    Reply::Map(found.map(pair).collect())
}

/// All of the changes or none.
fn set(shared: &Shared, words: &[Bytes]) -> Reply {
    let (pairs, rest) = words.as_chunks::<2>();
    if !rest.is_empty() {
        return SYNTAX;
    }
    let (mut seen, mut wrong) = (BTreeSet::new(), None);
    for [name, value] in pairs {
        let name = quoted(name).to_ascii_lowercase();
        let failed = |why: &str| {
            let text = "ERR CONFIG SET failed (possibly related to argument";
            error(format!("{text} '{name}') - {why}"))
        };
        match shared.settings.check(&name, value) {
            Ok(()) => {}
            Err(SetError::Unknown) => {
                let text = "ERR Unknown option or number of arguments for CONFIG SET";
                return error(format!("{text} - '{name}'"));
            }
            Err(SetError::Immutable) => return failed("can't set immutable config"),
            // What is wrong with names is said before what is wrong with values.
            Err(SetError::Value(why)) => wrong = wrong.or(Some(failed(&why))),
        }
        if !seen.insert(name.clone()) {
            return failed("duplicate parameter");
        }
    }
    if let Some(reply) = wrong {
        return reply;
    }
    for [name, value] in pairs {
        shared.settings.set(&quoted(name).to_ascii_lowercase(), value);
    }
    Reply::OK
}
