//! Commands about the connection and the server: what a client has said about itself, and what is
//! answered from what the gateway knows.

mod clients;
mod cluster;
mod commands;
mod config;
mod handshake;
mod hotkeys;
mod info;
mod latency;
mod scripts;
mod users;
mod words;

pub(crate) use words::{Peer, Replies, Response, SYNTAX, integer};

use crate::Reply;
use crate::acl::Acl;
use crate::clients::Entry;
use crate::command::{self, Found, Run, Session};
use crate::resp::Version;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use words::{NO_DATABASE, NOT_AN_INTEGER, arg};

/// Arguments of a command about the connection or the server. Each may cost a line of the reply, or
/// a look at everything that is counted.
const ARGS_MAX: usize = 1024;
/// Bytes of these arguments: passwords, patterns and names are far shorter.
const ARGS_LEN_MAX: usize = 64 << 10;
/// There are more.
pub(crate) const TOO_MANY: &str =
    "ERR commands that are not about keys have at most 1024 arguments of 65536 bytes here";
/// Longest DEBUG SLEEP: what a test needs, and not for ever.
const SLEEP_MAX: Duration = Duration::from_secs(600);

/// Whether a command has no more arguments than it may. PING and ECHO give theirs back and look at
/// nothing, and WATCH and SCRIPT have limits of their own.
pub(crate) fn is_bounded(found: Found, args: &[Bytes]) -> bool {
    match found.spec.run {
        Run::Keyed(_) | Run::Session(Session::Echo | Session::Ping) => true,
        Run::Session(Session::Script(_) | Session::Transaction(_)) => true,
        Run::Session(_) => {
            args.len() <= ARGS_MAX && args.iter().map(Bytes::len).sum::<usize>() <= ARGS_LEN_MAX
        }
    }
}

impl Peer {
    pub(crate) fn new(entry: Arc<Entry>, acl: &Acl) -> Self {
        let user = acl.passwordless();
        entry.note_user(user.is_some());
        Self { entry, protocol: Version::Two, user, replies: Replies::On, database: 0 }
    }

    /// Carries a command out whose arguments are as many as the table says.
    pub(crate) fn run(
        &mut self,
        shared: &Arc<Shared>,
        command: Session,
        args: &[Bytes],
    ) -> Response {
        match command {
            Session::Acl(command) => self.run_acl(shared, command, args).into(),
            Session::Anywhere => cluster::go_anywhere(shared).into(),
            Session::Auth => self.authenticate(shared, args).into(),
            Session::Client(command) => self.run_client(shared, command, args),
            Session::Cluster(command) => self.run_cluster(shared, command, args).into(),
            Session::Command(command) => commands::run(command, args).into(),
            Session::Config(command) => config::run(shared, command, args).into(),
            Session::Container | Session::Help => help(args).into(),
            Session::DebugSleep => sleep(args),
            Session::Echo => Reply::Bulk(arg(args, 1)).into(),
            Session::FunctionFlush => Reply::OK.into(),
            Session::Hello => self.hello(shared, args).into(),
            Session::HotKeys(command) => hotkeys::run(shared, self.database, command, args),
            Session::Info => info::run(shared, self.database, args),
            Session::Latency(command) => latency::run_latency(shared, command, args).into(),
            Session::Ping => ping(args).into(),
            Session::Quit => Response::Last(Reply::OK),
            Session::Reset => self.reset(shared).into(),
            Session::Script(command) => scripts::run(shared, command, args),
            Session::Select => self.select(shared, args).into(),
            Session::Slowlog(command) => latency::run_slowlog(shared, command, args).into(),
            Session::Time => time(shared.time_of_day()).into(),
            Session::Transaction(_) => unreachable!("the connection carries these out"),
            Session::Wait => self.wait(shared, args).into(),
        }
    }

    fn select(&mut self, shared: &Shared, args: &[Bytes]) -> Reply {
        let Some(number) = integer(args, 1) else { return NOT_AN_INTEGER };
        let Some(served) = shared.find_database(number) else { return NO_DATABASE };
        self.database = served.database.number;
        self.entry.told().database = self.database;
        Reply::OK
    }

    /// A write is on all nodes of its chain before it is answered.
    fn wait(&self, shared: &Shared, args: &[Bytes]) -> Reply {
        match (integer(args, 1), integer(args, 2)) {
            (Some(_), Some(timeout)) if timeout < 0 => Reply::error("ERR timeout is negative"),
            (Some(_), Some(_)) => Reply::Integer(shared.database(self.database).others().into()),
            (_, None) => Reply::error("ERR timeout is not an integer or out of range"),
            (None, Some(_)) => NOT_AN_INTEGER,
        }
    }
}

fn status(text: &'static str) -> Reply {
    Reply::Status(text.into())
}

fn ping(args: &[Bytes]) -> Reply {
    match args {
        [_] => status("PONG"),
        [_, text] => Reply::Bulk(text.clone()),
        _ => Reply::error("ERR wrong number of arguments for 'ping' command"),
    }
}

/// Carries a command out that a script has called, which is about this database, at that time of
/// day; `None` if scripts may not.
pub(crate) fn run_in_script(
    command: Session,
    args: &[Bytes],
    (database, now): (u8, Duration),
) -> Option<Reply> {
    match command {
        Session::Echo => Some(Reply::Bulk(arg(args, 1))),
        Session::Ping => Some(ping(args)),
        Session::Select => Some(stay(args, database)),
        Session::Time => Some(time(now)),
        _ => None,
    }
}

/// SELECT of a script, which is about one database.
fn stay(args: &[Bytes], database: u8) -> Reply {
    match integer(args, 1) {
        Some(number) if number == i64::from(database) => Reply::OK,
        Some(_) => {
            let text =
                format!("ERR a script is about one database here, this one about {database}");
            Reply::Error(text.into())
        }
        None => NOT_AN_INTEGER,
    }
}

fn time(now: Duration) -> Reply {
    let text = |number: String| Reply::bulk(number);
    Reply::Array(vec![text(now.as_secs().to_string()), text(now.subsec_micros().to_string())])
}

/// Holds this connection up and no other.
fn sleep(args: &[Bytes]) -> Response {
    let text = std::str::from_utf8(args.get(2).map(Bytes::as_ref).unwrap_or_default());
    let seconds = text.ok().and_then(|text| text.parse::<f64>().ok());
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let Some(time) = time else { return NOT_AN_INTEGER.into() };
    Response::Later(Box::pin(async move {
        tokio::time::sleep(time.min(SLEEP_MAX)).await;
        Reply::OK
    }))
}

/// The subcommands of a command, from the table.
fn help(args: &[Bytes]) -> Reply {
    let name = args.first().map(Bytes::as_ref).unwrap_or_default();
    let Some(spec) = command::find(name) else { return SYNTAX };
    let name = spec.name.to_uppercase();
    let mut lines =
        vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for found in command::subcommands(spec) {
        let (_, own) = found.spec.name.split_once('|').unwrap_or_default();
        lines.push(own.to_uppercase());
        lines.push(format!("    {}", found.spec.summary));
    }
    Reply::Array(lines.into_iter().map(|line| Reply::Status(line.into())).collect())
}
