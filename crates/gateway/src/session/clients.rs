//! CLIENT: what connections know and do of each other.

use super::handshake::{set_info, told_name};
use super::words::{NOT_AN_INTEGER, Peer, Replies, Response, SYNTAX, arg, error, integer, quoted};
use crate::Reply;
use crate::clients::Entry;
use crate::command::{Client, numbered};
use crate::shared::Shared;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Peer {
    pub(super) fn run_client(
        &mut self,
        shared: &Arc<Shared>,
        command: Client,
        args: &[Bytes],
    ) -> Response {
        match command {
            Client::GetName => {
                let name = self.entry.told().name.clone();
                if name.is_empty() { Reply::Null } else { Reply::Bulk(name) }
            }
            Client::Id => Reply::Integer(i64::try_from(self.entry.id).unwrap_or(i64::MAX)),
            Client::Info => Reply::Verbatim((line(shared, &self.entry) + "\n").into()),
            Client::Kill => return self.kill(shared, args),
            Client::List => list(shared, args),
            Client::NoEvict => on_or_off(args, &mut self.entry.told().no_evict),
            Client::NoTouch => on_or_off(args, &mut self.entry.told().no_touch),
            Client::Pause => pause(shared, args),
            Client::Reply => self.set_replies(args),
            Client::SetInfo => set_info(&mut self.entry.told(), args),
            Client::SetName => {
                match told_name(&arg(args, 2), "Client names") {
                    Ok(name) => self.entry.told().name = name,
                    Err(reply) => return reply.into(),
                }
                Reply::OK
            }
            Client::Unblock => unblock(args),
            Client::Unpause => {
                shared.pause.end();
                wake_all(shared);
                Reply::OK
            }
        }
        .into()
    }

    fn set_replies(&mut self, args: &[Bytes]) -> Reply {
        let word = arg(args, 2);
        self.replies = if word.eq_ignore_ascii_case(b"on") {
            Replies::On
        } else if word.eq_ignore_ascii_case(b"off") {
            Replies::Off
        } else if word.eq_ignore_ascii_case(b"skip") {
            // Off stays off.
            if self.replies == Replies::Off { Replies::Off } else { Replies::SkipThis }
        } else {
            return SYNTAX;
        };
        Reply::OK
    }

    /// Ends connections; the own one only after the reply.
    fn kill(&self, shared: &Shared, args: &[Bytes]) -> Response {
        let (whom, old) = match args {
            [_, _, address] => {
                let address = quoted(address);
                (Ok(Filter { address: Some(address), me: true, ..Filter::default() }), true)
            }
            _ => (Filter::read(shared, args.get(2..).unwrap_or_default()), false),
        };
        let whom = match whom {
            Ok(whom) => whom,
            Err(reply) => return reply.into(),
        };
        let mut killed = 0;
        let mut own = false;
        for entry in shared.clients.list().iter().filter(|entry| whom.takes(entry)) {
            if entry.id != self.entry.id {
                entry.kill();
            } else if whom.me {
                own = true;
            } else {
                continue;
            }
            killed += 1;
        }
        let reply = match (old, killed) {
            (true, 0) => Reply::error("ERR No such client"),
            (true, _) => Reply::OK,
            (false, _) => Reply::Integer(killed),
        };
        if own { Response::Last(reply) } else { reply.into() }
    }
}

/// Which connections.
#[derive(Default)]
struct Filter {
    id: Option<u64>,
    address: Option<String>,
    local: Option<String>,
    user: Option<String>,
    /// Of a type of which there are no connections here.
    none: bool,
    /// Whether the own connection is one.
    me: bool,
}

impl Filter {
    fn read(shared: &Shared, args: &[Bytes]) -> Result<Self, Reply> {
        let mut filter = Self::default();
        let (pairs, rest) = args.as_chunks::<2>();
        if pairs.is_empty() || !rest.is_empty() {
            return Err(SYNTAX);
        }
        for [word, value] in pairs {
            let text = quoted(value);
            match word.to_ascii_lowercase().as_slice() {
                b"id" => match text.parse() {
                    Ok(id @ 1..) => filter.id = Some(id),
                    _ => return Err(Reply::error("ERR client-id should be greater than 0")),
                },
                b"addr" => filter.address = Some(text),
                b"laddr" => filter.local = Some(text),
                b"user" if shared.acl.get(&text).is_none() => {
                    return Err(error(format!("ERR No such user '{text}'")));
                }
                b"user" => filter.user = Some(text),
                b"type" => filter.none = !is_normal(value)?,
                b"skipme" if text.eq_ignore_ascii_case("no") => filter.me = true,
                b"skipme" if text.eq_ignore_ascii_case("yes") => filter.me = false,
                _ => return Err(SYNTAX),
            }
        }
        Ok(filter)
    }

    fn takes(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, found: String| {
            wanted.as_ref().is_none_or(|wanted| *wanted == found)
        };
        !self.none
            && self.id.is_none_or(|id| id == entry.id)
            && is(&self.address, entry.peer.to_string())
            && is(&self.local, entry.local.to_string())
            && is(&self.user, entry.told().user.clone())
    }
}

/// Whether a type of connections is the one that there is.
fn is_normal(name: &[u8]) -> Result<bool, Reply> {
    let name = quoted(name).to_ascii_lowercase();
    match name.as_str() {
        "normal" => Ok(true),
        "master" | "replica" | "slave" | "pubsub" => Ok(false),
        _ => Err(error(format!("ERR Unknown client type '{name}'"))),
    }
}

fn list(shared: &Shared, args: &[Bytes]) -> Reply {
    let entries = shared.clients.list();
    let mut wanted: Box<dyn Fn(&Entry) -> bool> = Box::new(|_| true);
    match args.get(2..).unwrap_or_default() {
        [] => {}
        [word, name] if word.eq_ignore_ascii_case(b"type") => match is_normal(name) {
            Ok(normal) => wanted = Box::new(move |_| normal),
            Err(reply) => return reply,
        },
        [word, ids @ ..] if word.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
            let ids: Option<BTreeSet<u64>> =
                ids.iter().map(|id| std::str::from_utf8(id).ok()?.parse().ok()).collect();
            let Some(ids) = ids else { return Reply::error("ERR Invalid client ID") };
            wanted = Box::new(move |entry| ids.contains(&entry.id));
        }
        _ => return SYNTAX,
    }
    let lines = entries.iter().filter(|entry| wanted(entry));
    let text: String = lines.map(|entry| line(shared, entry) + "\n").collect();
    Reply::Verbatim(text.into())
}

/// A connection as CLIENT LIST tells it: the fields of Redis that mean something here.
fn line(shared: &Shared, entry: &Entry) -> String {
    let now = shared.now();
    let told = entry.told().clone();
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let number = usize::try_from(entry.command.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let command = numbered().get(number).map_or("NULL", |spec| spec.name);
    let mut flags = String::new();
    let queued = entry.queued.load(Ordering::Relaxed);
    flags.extend((queued >= 0).then_some('x'));
    flags.extend(told.no_evict.then_some('e'));
    flags.extend(told.no_touch.then_some('T'));
    if flags.is_empty() {
        flags.push('N');
    }
    format!(
        "id={} addr={} laddr={} name={} age={} idle={} flags={flags} db={} sub=0 psub=0 ssub=0 \
         multi={queued} watch={} qbuf={} multi-mem={} omem={} events=rw cmd={command} user={} \
         redir=-1 resp={} lib-name={} lib-ver={}",
        entry.id,
        entry.peer,
        entry.local,
        text(&told.name),
        now.saturating_sub(entry.since).as_secs(),
        entry.idle(now).as_secs(),
        told.database,
        entry.watched.load(Ordering::Relaxed),
        entry.input.load(Ordering::Relaxed),
        entry.queued_bytes.load(Ordering::Relaxed),
        entry.output.load(Ordering::Relaxed),
        told.user,
        told.protocol.number(),
        text(&told.lib_name),
        text(&told.lib_version),
    )
}

/// No command waits for what others may do, so that there is nobody to unblock.
fn unblock(args: &[Bytes]) -> Reply {
    match args.get(3..).unwrap_or_default() {
        [] => {}
        [reason] if matches!(&*reason.to_ascii_lowercase(), b"timeout" | b"error") => {}
        [_] => return Reply::error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        _ => {
            let text = "ERR unknown subcommand or wrong number of arguments for 'unblock'. Try \
                        CLIENT HELP.";
            return Reply::error(text);
        }
    }
    if integer(args, 2).is_some() { Reply::Integer(0) } else { NOT_AN_INTEGER }
}

fn on_or_off(args: &[Bytes], flag: &mut bool) -> Reply {
    let word = arg(args, 2);
    if !word.eq_ignore_ascii_case(b"on") && !word.eq_ignore_ascii_case(b"off") {
        return SYNTAX;
    }
    *flag = word.eq_ignore_ascii_case(b"on");
    Reply::OK
}

fn pause(shared: &Arc<Shared>, args: &[Bytes]) -> Reply {
    let all = match args.get(3) {
        None => true,
        Some(word) if word.eq_ignore_ascii_case(b"all") => true,
        Some(word) if word.eq_ignore_ascii_case(b"write") => false,
        Some(_) => return Reply::error("ERR CLIENT PAUSE mode must be WRITE or ALL"),
    };
    let Some(ms) = integer(args, 2).map(u64::try_from) else { return NOT_AN_INTEGER };
    let Ok(ms) = ms else { return Reply::error("ERR timeout is negative") };
    let until = shared.now().saturating_add(Duration::from_millis(ms));
    shared.pause.begin(until, all);
    Reply::OK
}

/// Lets every connection look again whether it may go on.
fn wake_all(shared: &Shared) {
    for entry in shared.clients.list() {
        entry.note_unpaused();
    }
}
