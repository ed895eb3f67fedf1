//! The way into a cluster for commands that read and write keys.

use crate::admin::{self, Admin};
use crate::exit::Failure;
use crate::pass;
use crate::shared::Shared;
use client::blocking::{Client, Space};
use client::{LookupError, NotDone, Options};
use controller::{MemberStatus, Status};
use runtime::clock::Clock;
use std::net::SocketAddr;
use std::time::Duration;

/// The keyspace that the command line names. One that is about to be there, in a cluster that
/// starts, is waited for.
pub fn space(shared: &Shared) -> Result<Space, Failure> {
    let passes = pass::passes(shared)?;
    let options = Options { deadline: shared.timeout, passes, ..Options::default() };
    let client = Client::connect(shared.services.as_slice(), options)
        .map_err(|error| Failure::Other(anyhow::Error::new(error).context("cannot connect")))?;
    let mut clock = Clock::new();
    let give_up = clock.now() + shared.timeout;
    loop {
        match client.keyspace(&shared.keyspace) {
            Ok(space) => return Ok(space),
            Err(LookupError::NoSuchKeyspace(name))
                if clock.now() < give_up
                    && status(shared).is_some_and(|it| awaited(&it, &name).is_some()) =>
            {
                admin::pause();
            }
            Err(error) => return Err(no_keyspace(error, shared)),
        }
    }
}

/// What a controller says, if one answers soon.
fn status(shared: &Shared) -> Option<Status> {
    Admin::of(shared, shared.timeout.min(STATUS_WAIT_MAX)).ok()?.status().ok()
}

/// Why a keyspace was not found. A controller that can be asked says whether the cluster is only
/// about to start.
pub fn no_keyspace(error: LookupError, shared: &Shared) -> Failure {
    match error {
        LookupError::NotDone(NotDone::Unknown(_)) => {
            match status(shared).and_then(|it| silent(&it)) {
                Some(why) => Failure::Unknown(not_yet(&format!("it does not answer yet ({why})"))),
                None => no_answer(&shared.services),
            }
        }
        LookupError::NotDone(refused) => refused.into(),
        LookupError::NoSuchKeyspace(name) => {
            match status(shared).and_then(|it| awaited(&it, &name)) {
                Some(why) => Failure::Refused(not_yet(&format!("keyspace {name:?} {why}"))),
                None => no_such_keyspace(&name),
            }
        }
    }
}

/// How long a controller is waited for that can say more about an error.
const STATUS_WAIT_MAX: Duration = Duration::from_secs(2);

/// Why a cluster does not answer, if its controller knows.
fn silent(status: &Status) -> Option<String> {
    if status.covered && status.ready {
        return None;
    }
    let late = status.late().next().map(MemberStatus::in_words);
    Some(late.unwrap_or_else(|| "its keyspaces are not there yet".to_owned()))
}

/// Why a keyspace is not there that is to be, or is, but not everybody knows yet.
fn awaited(status: &Status, name: &str) -> Option<String> {
    if let Some(awaited) = status.awaited.iter().find(|it| it.name == name) {
        return Some(format!("is not there yet ({})", awaited.why));
    }
    let is_known = status.keyspaces.iter().any(|it| it.name == name);
    is_known.then(|| "was created, and the switch does not know of it yet".to_owned())
}

fn not_yet(what: &str) -> String {
    format!(
        "the cluster is starting: {what}; nothing was written\n  \
         to see how it stands:  keyway status\n  \
         to wait for it:        until keyway status >/dev/null; do sleep 1; done"
    )
}

/// Nobody answers at any service address.
pub fn no_answer(services: &[SocketAddr]) -> Failure {
    let services = list(services);
    Failure::Unknown(format!(
        "no answer from {services}; nothing was written\n  \
         to start a cluster on this machine:  keyway up\n  \
         if one runs elsewhere, name it:      --service HOST:PORT  (or KEYWAY_SERVICE)\n  \
         if it runs, see how it stands:       keyway status"
    ))
}

/// Addresses, for people.
pub fn list(addresses: &[SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// There is no keyspace of that name.
pub fn no_such_keyspace(name: &str) -> Failure {
    Failure::Refused(format!(
        "there is no keyspace {name:?}\n  \
         to see which there are:  keyway keyspace list\n  \
         to create it:            keyway keyspace create {name}"
    ))
}
