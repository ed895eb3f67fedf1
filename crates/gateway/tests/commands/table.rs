//! The table beside that of a Redis server, and the reference page beside the table.

use super::redis::Server;
use gateway::Reply;
use gateway::command::{self, Access, Keys, Run, Spec};
use std::fmt::Write as _;

/// What COMMAND INFO replies at each place.
const ARITY: usize = 1;
const FIRST_KEY: usize = 3;
const LAST_KEY: usize = 4;
const KEY_STEP: usize = 5;
const CATEGORIES: usize = 6;

#[test]
fn the_table_says_of_each_command_what_redis_says() {
    let Some(server) = Server::start("the_table_says_of_each_command_what_redis_says") else {
        return;
    };
    let mut redis = server.connect();
    let mut compared = 0;
    for spec in keyed() {
        let reply = redis.say(&format!("command info {}", spec.name));
        let Reply::Array(infos) = reply else { panic!("{reply:?}") };
        // Of DELIFEQ, Redis 7 knows nothing.
        let [Reply::Array(info)] = infos.as_slice() else { continue };
        let numbers = |place: usize| crate::setup::integer(&info[place]);
        assert_eq!(i64::from(spec.arity), numbers(ARITY), "{}", spec.name);
        // Of these, only subcommands have keys, and are categories; and scripts may write or not.
        let scripts = matches!(spec.keys, Keys::Counted(_));
        if !scripts && !matches!(spec.name, "object" | "memory") {
            let keys = [numbers(FIRST_KEY), numbers(LAST_KEY), numbers(KEY_STEP)];
            assert_eq!(places(spec.keys), keys, "{}", spec.name);
            assert_eq!(categories(spec), words(&info[CATEGORIES]), "{}", spec.name);
        }
        compared += 1;
    }
    assert!(compared > 30, "{compared} commands compared");
}

fn keyed() -> impl Iterator<Item = &'static Spec> {
    command::all().filter(|spec| matches!(spec.run, Run::Keyed(_)))
}

fn places(keys: Keys) -> [i64; 3] {
    match keys {
        Keys::None | Keys::Counted(_) => [0, 0, 0],
        Keys::Range { first, last, step } => {
            [first.try_into().unwrap(), last.try_into().unwrap(), step.try_into().unwrap()]
        }
    }
}

fn categories(spec: &Spec) -> Vec<String> {
    let of_access = match spec.access {
        Access::None => None,
        Access::Read => Some("read"),
        Access::Write => Some("write"),
    };
    // As in Redis, what is not known to be fast is slow.
    let slow = (!spec.categories.contains(&"fast")).then_some("slow");
    let all = spec.categories.iter().copied().chain(of_access).chain(slow);
    let mut all: Vec<String> = all.map(|it| format!("@{it}")).collect();
    all.sort();
    all
}

fn words(reply: &Reply) -> Vec<String> {
    let Reply::Array(items) = reply else { panic!("{reply:?}") };
    let word = |item: &Reply| match item {
        Reply::Status(text) => text.clone().into_owned(),
        other => panic!("{other:?}"),
    };
    let mut all: Vec<String> = items.iter().map(word).collect();
    all.sort();
    all
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/redis-commands.md");
const BEGIN: &str = "<!-- the table of commands -->\n";
const END: &str = "<!-- its end -->\n";

/// The table as the reference page shows it.
fn page_table() -> String {
    let mut table = String::from("| command | arguments | what it does |\n|---|---|---|\n");
    for spec in keyed() {
        let count = spec.arity.unsigned_abs() - 1;
        let arguments = if spec.arity < 0 { format!("{count} or more") } else { count.to_string() };
        let name = spec.name.to_uppercase();
        writeln!(table, "| `{name}` | {arguments} | {} |", spec.summary).unwrap();
    }
    table
}

/// `UPDATE_REFERENCE=1` writes the table into the page.
#[test]
fn the_reference_page_lists_the_table() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
    let (table, after) = rest.split_once(END).expect("the place has an end");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        let page = format!("{before}{BEGIN}{}{END}{after}", page_table());
        std::fs::write(PAGE, page).unwrap();
    } else {
        assert_eq!(table, page_table(), "UPDATE_REFERENCE=1 writes it anew");
    }
}
