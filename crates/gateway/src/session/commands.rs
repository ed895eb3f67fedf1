//! COMMAND: what there is, from the table.

use super::words::{SYNTAX, arg, error};
use crate::Reply;
use crate::command::{self, Access, Command, Found, Keys, Run, Spec};
use crate::glob::Pattern;
use bytes::Bytes;

pub(super) fn run(command: Command, args: &[Bytes]) -> Reply {
    let named = args.get(2..).unwrap_or_default();
    match command {
        Command::All => Reply::Array(command::all().map(describe).collect()),
        Command::Count => Reply::Integer(i64::try_from(command::all().count()).unwrap_or(i64::MAX)),
        Command::Docs if named.is_empty() => Reply::Map(command::all().map(document).collect()),
        Command::Docs => {
            Reply::Map(named.iter().filter_map(|it| look_up(it)).map(document).collect())
        }
        Command::GetKeys => keys(named),
        Command::Info if named.is_empty() => Reply::Array(command::all().map(describe).collect()),
        Command::Info => {
            let one = |name: &Bytes| look_up(name).map_or(Reply::NullArray, describe);
            Reply::Array(named.iter().map(one).collect())
        }
        Command::List => list(args),
    }
}

/// A command, or with a bar a subcommand.
fn look_up(name: &[u8]) -> Option<&'static Spec> {
    let Some(bar) = name.iter().position(|byte| *byte == b'|') else { return command::find(name) };
    let container = command::find(name.get(..bar)?)?;
    let named = |it: &Found| it.spec.name.as_bytes().eq_ignore_ascii_case(name);
    command::subcommands(container).find(named).map(|found| found.spec)
}

/// The ten fields of COMMAND INFO.
fn describe(spec: &'static Spec) -> Reply {
    let number = |number: isize| Reply::Integer(i64::try_from(number).unwrap_or_default());
    let (first, last, step) = match spec.keys {
        Keys::None | Keys::Counted(_) => (0, 0, 0),
        Keys::Range { first, last, step } => (first.cast_signed(), last, step.cast_signed()),
    };
    let categories = spec.every_category().map(|it| Reply::Status(format!("@{it}").into()));
    let subcommands = command::subcommands(spec).map(|found| describe(found.spec));
    Reply::Array(vec![
        Reply::bulk(spec.name),
        Reply::Integer(spec.arity.into()),
        Reply::Set(flags(spec).into_iter().map(|flag| Reply::Status(flag.into())).collect()),
        number(first),
        number(last),
        number(step),
        Reply::Set(categories.collect()),
        // Hints.
        Reply::Array(Vec::new()),
        Reply::Array(key_specification(spec)),
        Reply::Array(subcommands.collect()),
    ])
}

fn flags(spec: &Spec) -> Vec<&'static str> {
    let mut flags = Vec::new();
    flags.extend(match spec.access {
        Access::None => None,
        Access::Read => Some("readonly"),
        Access::Write => Some("write"),
    });
    for (category, flag) in [("admin", "admin"), ("fast", "fast"), ("blocking", "blocking")] {
        flags.extend(spec.is_in(category).then_some(flag));
    }
    if matches!(spec.run, Run::Session(_)) {
        flags.extend(["noscript", "loading", "stale"]);
    }
    if matches!(spec.keys, Keys::Counted(_)) {
        flags.extend(["noscript", "movablekeys"]);
    }
    if spec.is_for_all() {
        flags.push("no_auth");
    }
    flags
}

/// Where the keys are, in the form that Redis has had since 7.
fn key_specification(spec: &Spec) -> Vec<Reply> {
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    let number = |number: isize| Reply::Integer(i64::try_from(number).unwrap_or_default());
    let (begin, kind, found) = match spec.keys {
        Keys::None => return Vec::new(),
        Keys::Range { first, last, step } => {
            // Relative to the first key, unless it is counted from the end.
            let last = if last < 0 { last } else { last - first.cast_signed() };
            let range = vec![
                pair("lastkey", number(last)),
                pair("keystep", number(step.cast_signed())),
                pair("limit", Reply::Integer(0)),
            ];
            (first, "range", range)
        }
        Keys::Counted(at) => {
            let places = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
            (at, "keynum", places.map(|(name, place)| pair(name, number(place))).to_vec())
        }
    };
    let flags: &[&'static str] = match spec.access {
        Access::None | Access::Read => &["RO", "access"],
        Access::Write => &["RW", "access", "update"],
    };
    let flags = flags.iter().map(|flag| Reply::Status((*flag).into())).collect();
    let begin = Reply::Map(vec![
        pair("type", Reply::bulk("index")),
        pair("spec", Reply::Map(vec![pair("index", number(begin.cast_signed()))])),
    ]);
    let found = Reply::Map(found);
    let find = Reply::Map(vec![pair("type", Reply::bulk(kind)), pair("spec", found)]);
    vec![Reply::Map(vec![
        pair("flags", Reply::Set(flags)),
        pair("begin_search", begin),
        pair("find_keys", find),
    ])]
}

/// What redis-cli shows while somebody types.
fn document(spec: &'static Spec) -> (Reply, Reply) {
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    let mut fields = vec![
        pair("summary", Reply::bulk(spec.summary)),
        pair("since", Reply::bulk(spec.since)),
        pair("group", Reply::bulk(spec.group)),
    ];
    let subcommands: Vec<_> =
        command::subcommands(spec).map(|found| document(found.spec)).collect();
    if !subcommands.is_empty() {
        fields.push(pair("subcommands", Reply::Map(subcommands)));
    }
    (Reply::bulk(spec.name), Reply::Map(fields))
}

fn keys(args: &[Bytes]) -> Reply {
    let found = match command::resolve(args) {
        Ok(found) => found,
        Err(_) if args.first().is_some_and(|name| command::find(name).is_some()) => {
            return Reply::error("ERR Invalid number of arguments specified for command");
        }
        Err(_) => return Reply::error("ERR Invalid command specified"),
    };
    let keys: Vec<Reply> =
        found.spec.key_positions(args).map(|at| Reply::Bulk(arg(args, at))).collect();
    if keys.is_empty() {
        return Reply::error("ERR The command has no key arguments");
    }
    Reply::Array(keys)
}

fn list(args: &[Bytes]) -> Reply {
    let names = |wanted: &dyn Fn(&Spec) -> bool| {
        let all = command::all().filter(|spec| wanted(spec));
        Reply::Array(all.map(|spec| Reply::bulk(spec.name)).collect())
    };
    match args.get(2..).unwrap_or_default() {
        [] => names(&|_| true),
        [filter, by, what] if filter.eq_ignore_ascii_case(b"filterby") => {
            match by.to_ascii_lowercase().as_slice() {
                // There are no modules.
                b"module" => names(&|_| false),
                b"aclcat" => names(&|spec| {
                    spec.every_category().any(|it| it.as_bytes().eq_ignore_ascii_case(what))
                }),
                b"pattern" => match Pattern::any_case(what) {
                    Ok(pattern) => names(&|spec| pattern.matches(spec.name.as_bytes())),
                    Err(why) => error(format!("ERR {why}")),
                },
                _ => SYNTAX,
            }
        }
        _ => SYNTAX,
    }
}
