//! A Redis that is full, or that would throw away what it was given.
//!
//! Redis refuses commands when its memory is full, deletes among them here, for that a key is
//! deleted has to be written down. So its memory is looked at, as a disk is: new data is refused
//! before Redis does it, and what must be taken nevertheless (deletes, what is on its way down a
//! chain) goes over the limit, as any command does that begins just below it.

use super::{Step, Trouble, trouble};
use redis::{Connection, ErrorKind, InfoDict, RedisError, ServerErrorKind, cmd};
use wire::Room;

/// What is known of the memory of a Redis.
#[derive(Debug)]
pub(super) struct Stock {
    room: Room,
    /// Its policy, if it would throw away anything.
    evicts: Option<String>,
}

impl Default for Stock {
    fn default() -> Self {
        Self { room: Room::Plenty, evicts: None }
    }
}

/// One part in so many of the memory is for what has to be taken when there is no more room.
const RESERVE_SHARE: u64 = 32;

/// And from where one part in so many of the rest is left room is tight.
const TIGHT_SHARE: u64 = 16;

impl Stock {
    /// What there was room for when it was last looked at.
    pub(super) fn room(&self) -> Room {
        self.room
    }

    /// Redis has said that it is full.
    pub(super) fn is_full(&mut self) {
        self.room = Room::Full;
    }

    /// Asks Redis. One that does not tell counts as one that has room until it says otherwise.
    pub(super) fn look(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        let told = cmd("INFO").arg("memory").query::<InfoDict>(connection).map_err(trouble);
        let info = match told {
            Err(Trouble::Refuses(_)) => {
                *self = Self::default();
                return Ok(());
            }
            told => told?,
        };
        let number = |name: &str| info.get::<u64>(name).unwrap_or(0);
        let max = number("maxmemory");
        let used = number("used_memory").saturating_sub(number("mem_not_counted_for_evict"));
        let full = max - max / RESERVE_SHARE;
        self.room = match used {
            _ if max == 0 => Room::Plenty,
            _ if used >= full => Room::Full,
            _ if used >= full - full / TIGHT_SHARE => Room::Tight,
            _ => Room::Plenty,
        };
        let policy = info.get::<String>("maxmemory_policy").unwrap_or_default();
        self.evicts = (max != 0 && evicts(&policy)).then_some(policy);
        Ok(())
    }

    /// Nothing is given to a Redis that would throw anything away, until it does not any more.
    pub(super) fn check(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        if self.evicts.is_some() {
            self.look(connection)?;
        }
        let Some(policy) = &self.evicts else { return Ok(()) };
        Err(Trouble::Refuses(format!(
            "redis: it throws values away when its memory is full (maxmemory-policy {policy}): \
             set it to noeviction"
        )))
    }
}

/// Whether a policy throws away what does not expire.
pub(super) fn evicts(policy: &str) -> bool {
    policy.starts_with("allkeys")
}

/// Why a sync was not carried out.
pub(super) enum Failed {
    /// For want of memory alone, and nothing was done.
    Full(String),
    /// For another reason.
    Otherwise(Trouble),
}

/// All of it, or nothing if Redis refuses any of it.
pub(super) fn transact(connection: &mut Connection, steps: &[Step<'_>]) -> Result<(), Failed> {
    let mut pipe = redis::pipe();
    pipe.atomic();
    for (name, hash, arguments) in steps {
        pipe.cmd(name).arg(hash).arg(arguments);
    }
    pipe.exec(connection).map_err(|error| {
        let refused = error.kind() == ErrorKind::Server(ServerErrorKind::ExecAbort);
        let full = refused && is_want_of_memory(&error);
        // Of a transaction that was refused nothing was carried out. Of one that was not, some
        // commands have failed, which none of ours does.
        match trouble(error) {
            Trouble::Refuses(why) if full => Failed::Full(why),
            Trouble::Refuses(why) if !refused => Failed::Otherwise(Trouble::Lost(why)),
            trouble => Failed::Otherwise(trouble),
        }
    })
}

fn is_want_of_memory(error: &RedisError) -> bool {
    let said = error.clone().into_server_errors();
    said.is_some_and(|said| said.iter().all(|(_, one)| one.code() == "OOM"))
}

/// Carries out commands that come with their numbers of words. Redis looks at its memory before the
/// first command that changes something, and not in the middle; so that is one that takes none.
const OVERRUN: &str = "
    redis.call('HDEL', KEYS[1], '')
    local at = 1
    while at <= #ARGV do
        local last = at + tonumber(ARGV[at])
        redis.call(unpack(ARGV, at + 1, last))
        at = last + 1
    end";

/// Carries out what was refused for want of memory, and says `why` it was if that is forbidden.
pub(super) fn overrun(
    connection: &mut Connection,
    about: &str,
    steps: &[Step<'_>],
    why: String,
) -> Result<(), Trouble> {
    let mut script = cmd("EVAL");
    script.arg(OVERRUN).arg(1).arg(about);
    for (name, hash, arguments) in steps {
        script.arg(1 + usize::from(hash.is_some()) + arguments.len());
        script.arg(name).arg(hash).arg(arguments);
    }
    script.exec(connection).map_err(|error| match trouble(error) {
        // Of the first commands, before anything was changed: it is so with every sync.
        Trouble::Refuses(said) if FORBIDDEN.iter().any(|code| said.contains(code)) => {
            Trouble::Refuses(format!("{why} ({said})"))
        }
        Trouble::Refuses(said) => Trouble::Lost(said),
        trouble => trouble,
    })
}

/// Does one step, also if Redis is full.
pub(super) fn carry_out(connection: &mut Connection, step: Step<'_>) -> Result<(), Trouble> {
    let about = step.1.unwrap_or_default();
    match transact(connection, std::slice::from_ref(&step)) {
        Ok(()) => Ok(()),
        Err(Failed::Full(why)) => overrun(connection, about, &[step], why),
        Err(Failed::Otherwise(trouble)) => Err(trouble),
    }
}

/// What Redis says to scripts that may not be, and to their first change.
const FORBIDDEN: [&str; 7] =
    ["OOM", "NOPERM", "MISCONF", "READONLY", "NOREPLICAS", "unknown command", "NOSCRIPT"];
