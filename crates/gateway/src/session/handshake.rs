//! HELLO, AUTH and RESET: who the client is, and what it speaks.

use super::words::{Peer, Replies, arg, error, quoted};
use crate::Reply;
use crate::acl::{DEFAULT_USER, User};
use crate::clients::ClientInfo;
use crate::reply::REDIS_VERSION;
use crate::resp::Version;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;

/// What Redis says whatever was wrong.
const WRONG_PASSWORD: Reply =
    Reply::error("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD: Reply = Reply::error(
    "ERR AUTH <password> called without any password configured for the default user. Are you \
     sure your configuration is correct?",
);
const NO_AUTH: Reply = Reply::error(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time",
);

/// What HELLO asks for.
#[derive(Default)]
struct Wishes {
    credentials: Option<(Bytes, Bytes)>,
    name: Option<Bytes>,
}

impl Peer {
    pub(super) fn authenticate(&mut self, shared: &Shared, args: &[Bytes]) -> Reply {
        let (name, password) = match args {
            // Most likely a mistake: nobody asked for one.
            [_, _] if shared.acl.is_open() => {
                shared.guesses.note_right(shared.now(), self.entry.peer.ip());
                return NO_PASSWORD;
            }
            [_, password] => (Bytes::from_static(DEFAULT_USER.as_bytes()), password),
            [_, name, password] => (name.clone(), password),
            _ => return super::words::SYNTAX,
        };
        if self.shows(shared, &name, password) { Reply::OK } else { WRONG_PASSWORD }
    }

    /// Whether the password is right; then the client is that user from now on.
    fn shows(&mut self, shared: &Shared, name: &[u8], password: &Bytes) -> bool {
        let (now, from) = (shared.now(), self.entry.peer.ip());
        match shared.acl.authenticate(name, password) {
            Some(user) => {
                shared.guesses.note_right(now, from);
                self.become_user(Some(user));
                true
            }
            None => {
                shared.guesses.note_wrong(now, from, name);
                false
            }
        }
    }

    fn become_user(&mut self, user: Option<Arc<User>>) {
        let name = user.as_ref().map_or(DEFAULT_USER, |user| &user.name);
        name.clone_into(&mut self.entry.told().user);
        self.entry.note_user(user.is_some());
        self.user = user;
    }

    pub(super) fn hello(&mut self, shared: &Shared, args: &[Bytes]) -> Reply {
        let protocol = match args.get(1) {
            None => self.protocol,
            Some(version) => match version.as_ref() {
                b"2" => Version::Two,
                b"3" => Version::Three,
                other if super::words::integer(args, 1).is_some() || other.is_empty() => {
                    return Reply::error("NOPROTO unsupported protocol version");
                }
                _ => {
                    let text = "ERR Protocol version is not an integer or out of range";
                    return Reply::error(text);
                }
            },
        };
        let wishes = match read_wishes(args.get(2..).unwrap_or_default()) {
            Ok(wishes) => wishes,
            Err(reply) => return reply,
        };
        if let Some((name, password)) = wishes.credentials
            && !self.shows(shared, &name, &password)
        {
            return WRONG_PASSWORD;
        }
        if self.user.is_none() {
            return NO_AUTH;
        }
        if let Some(name) = wishes.name {
            match told_name(&name, "Client names") {
                Ok(name) => self.entry.told().name = name,
                Err(reply) => return reply,
            }
        }
        self.protocol = protocol;
        self.entry.told().protocol = protocol;
        self.greeting(shared)
    }

    fn greeting(&self, shared: &Shared) -> Reply {
        let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
        let id = i64::try_from(self.entry.id).unwrap_or(i64::MAX);
        Reply::Map(vec![
            pair("server", Reply::bulk("redis")),
            pair("version", Reply::bulk(REDIS_VERSION)),
            pair("proto", Reply::Integer(self.protocol.number().into())),
            pair("id", Reply::Integer(id)),
            pair("mode", Reply::bulk(shared.mode())),
            pair("role", Reply::bulk("master")),
            pair("modules", Reply::Array(Vec::new())),
        ])
    }

    /// As if the connection had just been opened. What the client has told of its library stays.
    pub(super) fn reset(&mut self, shared: &Shared) -> Reply {
        self.protocol = Version::Two;
        self.replies = Replies::On;
        self.database = 0;
        self.become_user(shared.acl.passwordless());
        let mut told = self.entry.told();
        let ClientInfo { user, lib_name, lib_version, .. } = std::mem::take(&mut *told);
        *told = ClientInfo { user, lib_name, lib_version, ..ClientInfo::default() };
        Reply::Status("RESET".into())
    }
}

fn read_wishes(mut args: &[Bytes]) -> Result<Wishes, Reply> {
    let mut wishes = Wishes::default();
    while let Some(option) = args.first() {
        args = match args {
            [word, name, password, rest @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                wishes.credentials = Some((name.clone(), password.clone()));
                rest
            }
            [word, name, rest @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                wishes.name = Some(name.clone());
                rest
            }
            _ => {
                return Err(error(format!(
                    "ERR Syntax error in HELLO option '{}'",
                    quoted(option)
                )));
            }
        };
    }
    Ok(wishes)
}

/// Bytes of what a client calls itself, or its library. It is kept for each connection, and told in
/// every line of CLIENT LIST.
const NAME_MAX: usize = 256;

/// A name that can be told in CLIENT LIST: not long, no spaces, nothing that is not seen. It is a
/// copy, which does not hold on to all that was read with it.
pub(super) fn told_name(name: &[u8], what: &str) -> Result<Bytes, Reply> {
    if name.len() > NAME_MAX {
        return Err(error(format!("ERR {what} have at most {NAME_MAX} bytes here.")));
    }
    if !name.iter().all(u8::is_ascii_graphic) {
        let text = "cannot contain spaces, newlines or special characters.";
        return Err(error(format!("ERR {what} {text}")));
    }
    Ok(Bytes::copy_from_slice(name))
}

/// CLIENT SETINFO.
pub(super) fn set_info(told: &mut ClientInfo, args: &[Bytes]) -> Reply {
    let (what, value) = (arg(args, 2), arg(args, 3));
    let (name, place) = if what.eq_ignore_ascii_case(b"lib-name") {
        ("lib-name", &mut told.lib_name)
    } else if what.eq_ignore_ascii_case(b"lib-ver") {
        ("lib-ver", &mut told.lib_version)
    } else {
        return error(format!("ERR Unrecognized option '{}'", quoted(&what)));
    };
    match told_name(&value, name) {
        Ok(value) => *place = value,
        Err(reply) => return reply,
    }
    Reply::OK
}
