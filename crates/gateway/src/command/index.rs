//! From a name to the command: every command and subcommand has a number, under which it is counted
//! and allowed.

use super::spec::Spec;
use super::{keyed, session};
use crate::Reply;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A command or subcommand that was looked up.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// What it is.
    pub spec: &'static Spec,
    /// Its place in [`numbered`].
    pub number: usize,
}

/// Every command, and after those every subcommand.
#[must_use]
pub fn numbered() -> &'static [&'static Spec] {
    &INDEX.specs
}

/// All commands, in the order of the table; subcommands are not among them.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    keyed::table::all().chain(session::table::TABLE)
}

/// The command of that name, in letters of any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    look_up(name).map(|found| found.spec)
}

/// The number of a command, or of a subcommand by its full name such as `config|get`.
#[must_use]
pub fn number_of(name: &str) -> Option<usize> {
    INDEX.specs.iter().position(|spec| spec.name == name)
}

/// The subcommands of a command.
pub fn subcommands(spec: &Spec) -> impl Iterator<Item = Found> + use<> {
    let name = spec.name;
    let (first, specs) = (INDEX.subcommands_from, INDEX.specs.get(INDEX.subcommands_from..));
    let all = specs.unwrap_or_default().iter().zip(first..);
    let all = all.map(|(spec, number)| Found { spec, number });
    all.filter(move |it| it.spec.name.split_once('|').is_some_and(|(own, _)| own == name))
}

/// The command that these arguments are for, if there is one and it takes so many.
///
/// # Errors
///
/// The reply that Redis gives otherwise.
pub fn resolve(args: &[Bytes]) -> Result<Found, Reply> {
    let name = args.first().map(Bytes::as_ref).unwrap_or_default();
    let Some(mut found) = look_up(name) else { return Err(unknown(args)) };
    if let Some(second) = args.get(1).filter(|_| has_subcommands(found)) {
        let named = |it: &Found| {
            let (_, own) = it.spec.name.split_once('|').unwrap_or_default();
            own.as_bytes().eq_ignore_ascii_case(second)
        };
        found = match subcommands(found.spec).find(named) {
            Some(found) => found,
            None => return Err(unknown_subcommand(found.spec, second)),
        };
    }
    if found.spec.takes(args.len()) {
        return Ok(found);
    }
    let name = found.spec.name;
    Err(Reply::Error(format!("ERR wrong number of arguments for '{name}' command").into()))
}

fn has_subcommands(found: Found) -> bool {
    INDEX.has_subcommands.get(found.number).is_some_and(|has| *has)
}

struct Index {
    specs: Vec<&'static Spec>,
    subcommands_from: usize,
    /// Of each command by number.
    has_subcommands: Vec<bool>,
    /// Numbers of commands, by the beginning and the whole of their names.
    by_name: Vec<(u128, &'static str, usize)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut specs: Vec<&'static Spec> = all().collect();
    let names = specs.iter().map(|spec| spec.name).zip(0..);
    let mut by_name: Vec<_> =
        names.map(|(name, number)| (beginning(name.as_bytes()), name, number)).collect();
    by_name.sort_unstable();
    let subcommands_from = specs.len();
    specs.extend(session::table::subcommands());
    let (commands, subcommands) = specs.split_at(subcommands_from);
    let owners: BTreeSet<&str> =
        subcommands.iter().filter_map(|it| Some(it.name.split_once('|')?.0)).collect();
    let has_subcommands = commands.iter().map(|it| owners.contains(it.name)).collect();
    Index { specs, subcommands_from, has_subcommands, by_name }
});

/// Longest name of a command.
const NAME_MAX: usize = 32;

fn look_up(name: &[u8]) -> Option<Found> {
    let mut small = [0; NAME_MAX];
    let small = small.get_mut(..name.len())?;
    small.copy_from_slice(name);
    small.make_ascii_lowercase();
    let (by_name, first) = (&INDEX.by_name, beginning(small));
    let order = |(other, own, _): &(u128, &str, usize)| {
        // Most names differ in these, which are compared at once.
        other.cmp(&first).then_with(|| own.as_bytes().cmp(small))
    };
    let at = by_name.binary_search_by(order).ok()?;
    let (_, _, number) = *by_name.get(at)?;
    Some(Found { spec: INDEX.specs.get(number)?, number })
}

/// The first bytes of a name, as a number.
fn beginning(name: &[u8]) -> u128 {
    let mut first = [0; size_of::<u128>()];
    first.iter_mut().zip(name).for_each(|(to, byte)| *to = *byte);
    u128::from_be_bytes(first)
}

/// How much of what a client sent an error repeats, as in Redis.
const QUOTED_MAX: usize = 128;

fn unknown(args: &[Bytes]) -> Reply {
    let name = quoted_name(args.first().map(Bytes::as_ref).unwrap_or_default());
    let mut quoted = String::new();
    for arg in args.iter().skip(1) {
        let Some(left) = QUOTED_MAX.checked_sub(quoted.len()).filter(|left| *left > 0) else {
            break;
        };
        quoted.push_str(&format!("'{}' ", quotable(arg, left)));
    }
    let text = format!("ERR unknown command '{name}', with args beginning with: {quoted}");
    Reply::Error(text.into())
}

fn unknown_subcommand(spec: &Spec, second: &[u8]) -> Reply {
    let (name, second) = (spec.name.to_uppercase(), quotable(second, QUOTED_MAX));
    Reply::Error(format!("ERR unknown subcommand '{second}'. Try {name} HELP.").into())
}

/// What an error repeats of a command's name.
pub(crate) fn quoted_name(name: &[u8]) -> String {
    quotable(name, QUOTED_MAX)
}

/// At most so many bytes of a text, which ends at a zero byte as in C.
fn quotable(text: &[u8], len_max: usize) -> String {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text.get(..len_max).unwrap_or(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Keys;

    fn args(words: &[&str]) -> Vec<Bytes> {
        words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    fn error(words: &[&str]) -> String {
        match resolve(&args(words)) {
            Err(Reply::Error(text)) => text.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_is_found_in_any_case_and_a_subcommand_with_it() {
        let name = |words: &[&str]| resolve(&args(words)).unwrap().spec.name;
        assert_eq!(name(&["GeT", "a"]), "get");
        assert_eq!(name(&["CONFIG", "Get", "a"]), "config|get");
        assert_eq!(name(&["command"]), "command");
        assert!(find(b"config|get").is_none() && find(&[b'a'; 99]).is_none());
        for (number, spec) in numbered().iter().enumerate() {
            assert_eq!(number_of(spec.name), Some(number), "{} is there twice", spec.name);
        }
    }

    #[test]
    fn errors_are_in_the_words_of_redis() {
        let text = "ERR unknown command 'foo', with args beginning with: 'a' 'b c' ";
        assert_eq!(error(&["foo", "a", "b c"]), text);
        assert_eq!(error(&["foo"]), "ERR unknown command 'foo', with args beginning with: ");
        let long = "x".repeat(200);
        let text = error(&[&long, &long, &long]);
        assert!(text.ends_with(&format!(": '{}' ", "x".repeat(128))), "{text}");
        let wrong = |name| format!("ERR wrong number of arguments for '{name}' command");
        assert_eq!(error(&["GET"]), wrong("get"));
        assert_eq!(error(&["get", "a", "b"]), wrong("get"));
        assert_eq!(error(&["client"]), wrong("client"));
        assert_eq!(error(&["CLIENT", "SETNAME"]), wrong("client|setname"));
        let text = "ERR unknown subcommand 'Foo'. Try CLIENT HELP.";
        assert_eq!(error(&["client", "Foo"]), text);
    }

    #[test]
    fn keys_are_where_the_table_says() {
        let spec = |first, last, step| {
            let Spec { access, categories, run, .. } = *find(b"get").unwrap();
            let keys = Keys::Range { first, last, step };
            let (name, arity, text) = ("many", -2, "");
            Spec {
                name,
                arity,
                keys,
                access,
                categories,
                summary: text,
                since: text,
                group: text,
                run,
            }
        };
        let keys =
            |spec: &Spec, count| spec.key_positions(&vec![Bytes::new(); count]).collect::<Vec<_>>();
        assert_eq!(keys(&spec(1, 1, 1), 2), [1]);
        assert_eq!(keys(&spec(1, -1, 1), 4), [1, 2, 3]);
        assert_eq!(keys(&spec(1, -1, 2), 5), [1, 3]);
        assert_eq!(keys(&spec(1, 2, 1), 2), [1]);
        assert_eq!(keys(find(b"ping").unwrap(), 2), [0; 0]);
        let eval =
            |words: &[&str]| find(b"eval").unwrap().key_positions(&args(words)).collect::<Vec<_>>();
        assert_eq!(eval(&["eval", "", "2", "a", "b", "c"]), [3, 4]);
        assert_eq!(eval(&["eval", "", "0", "a"]), [0; 0]);
        for count in ["2", "-1", "x", "18446744073709551615"] {
            assert_eq!(eval(&["eval", "", count, "a"]), [0; 0]);
        }
    }
}
