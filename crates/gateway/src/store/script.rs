//! EVAL and its kin: a script on a view. What its commands did takes effect with one batch, or the
//! script is run anew, as the commands of a transaction are.

use super::Store;
use super::errors::{Answer, NOT_AN_INTEGER};
use super::integers::integer;
use super::times::own_time;
use super::view::View;
use crate::Reply;
use crate::acl::{Denied, User};
use crate::command::{self, Access, Found, Keyed, Keys, Run};
use crate::script::{Commands, Ended, Given, Source};
use crate::session::run_in_script;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// A script, with what it is run on.
struct Call<'a> {
    source: Arc<Source>,
    keys: &'a [Bytes],
    args: &'a [Bytes],
    only_reads: bool,
}

impl Store {
    /// EVAL, EVALSHA, EVAL_RO, EVALSHA_RO.
    pub(super) async fn eval(&self, command: Keyed, args: &[Bytes]) -> Answer {
        // What cannot be run is refused before anything is read for it.
        let call = self.script_of(command, args)?;
        match &self.view {
            None => self.atomically(command, args).await,
            Some(view) => self.run_script(call, view).await,
        }
    }

    fn script_of<'a>(&self, command: Keyed, args: &'a [Bytes]) -> Answer<Call<'a>> {
        let [_, script, count, rest @ ..] = args else { return Err(NOT_AN_INTEGER) };
        let count = integer(count).ok_or(NOT_AN_INTEGER)?;
        let count = usize::try_from(count)
            .map_err(|_| Reply::error("ERR Number of keys can't be negative"))?;
        let too_many = Reply::error("ERR Number of keys can't be greater than number of args");
        let (keys, args) = rest.split_at_checked(count).ok_or(too_many)?;
        let by_name = matches!(command, Keyed::EvalSha | Keyed::EvalShaRo);
        let source = if by_name {
            self.scripts.find(script).ok_or(NO_SCRIPT)?
        } else {
            let source = Arc::new(Source::new(script)?);
            self.scripts.remember(&source);
            source
        };
        let only_reads = source.only_reads || matches!(command, Keyed::EvalRo | Keyed::EvalShaRo);
        Ok(Call { source, keys, args, only_reads })
    }

    async fn run_script(&self, call: Call<'_>, view: &Arc<View>) -> Answer {
        let caller = Caller {
            store: self.clone(),
            view: Arc::clone(view),
            handle: Handle::current(),
            only_reads: call.only_reads,
            began: own_time(),
        };
        let given = Given {
            source: call.source,
            keys: call.keys.to_vec(),
            args: call.args.to_vec(),
            commands: caller.commands(),
        };
        match self.scripts.run(given).await {
            Ended::Done(reply) => Ok(reply),
            Ended::Over(reply) => {
                view.cells().failed.get_or_insert_with(|| reply.clone());
                Err(reply)
            }
        }
    }
}

/// Carries out the commands of a script that runs on another thread.
struct Caller {
    /// With the view of the script, or of the transaction that it is in.
    store: Store,
    view: Arc<View>,
    /// Where the store's client is.
    handle: Handle,
    only_reads: bool,
    /// The time of day for the whole script.
    began: Duration,
}

impl Caller {
    /// The database and the time that the script is in.
    fn place(&self) -> (u8, Duration) {
        (self.store.database(), self.began)
    }

    fn commands(self) -> Commands {
        Box::new(move |args| self.carry_out(args))
    }

    /// Carries one out; the error is why the script cannot go on.
    fn carry_out(&self, args: &[Bytes]) -> Result<Reply, Reply> {
        let found = match self.admit(args) {
            Ok(found) => found,
            Err(reply) => return Ok(reply),
        };
        let reply = match found.spec.run {
            Run::Session(command) => run_in_script(command, args, self.place()).unwrap_or(NOT_HERE),
            Run::Keyed(command) => self.handle.block_on(self.store.run(command, args)),
        };
        let cells = self.view.cells();
        match cells.failed.clone().or_else(|| cells.excess()) {
            None => Ok(reply),
            Some(why) => Err(why),
        }
    }

    /// Whether a command may be carried out in the script.
    fn admit(&self, args: &[Bytes]) -> Result<Found, Reply> {
        let name = args.first().map(Bytes::as_ref).unwrap_or_default();
        let named = command::find(name).ok_or_else(|| unknown(name))?;
        let found = command::resolve(args).map_err(|reply| match reply {
            Reply::Error(text) if text.starts_with("ERR unknown subcommand") => unknown(name),
            _ => Reply::error("ERR Wrong number of args calling Redis command from script"),
        })?;
        if matches!(named.keys, Keys::Counted(_)) {
            return Err(NOT_HERE);
        }
        if let Run::Session(command) = found.spec.run
            && run_in_script(command, args, self.place()).is_none()
        {
            return Err(NOT_HERE);
        }
        if self.only_reads && found.spec.access == Access::Write {
            let text = "ERR Write commands are not allowed from read-only scripts.";
            return Err(Reply::error(text));
        }
        if let Some(user) = &self.store.user {
            allowed(user, found, args)?;
        }
        if matches!((found.spec.run, found.spec.keys), (Run::Keyed(_), Keys::None)) {
            let name = found.spec.name;
            let text = format!("ERR '{name}' is about all keys, and no part of a script here");
            return Err(Reply::Error(text.into()));
        }
        Ok(found)
    }
}

/// What Redis says of a command that it does not have. It names none; but here a library may want
/// one that Redis has, and whoever reads the error is to see which.
fn unknown(name: &[u8]) -> Reply {
    let name = command::quoted_name(name);
    Reply::Error(format!("ERR Unknown Redis command called from script: '{name}'").into())
}

fn allowed(user: &User, found: Found, args: &[Bytes]) -> Result<(), Reply> {
    let why = match user.check(found, args) {
        Ok(()) => return Ok(()),
        Err(Denied::Command) => {
            let (user, command) = (&user.name, found.spec.name);
            format!("User {user} has no permissions to run the '{command}' command")
        }
        Err(Denied::Key | Denied::Many) => "No permissions to access a key".to_owned(),
    };
    Err(Reply::Error(format!("NOPERM ACL failure in script: {why}").into()))
}

const NO_SCRIPT: Reply = Reply::error("NOSCRIPT No matching script. Please use EVAL.");
const NOT_HERE: Reply = Reply::error("ERR This Redis command is not allowed from script");
