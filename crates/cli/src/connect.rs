//! The way into a cluster for commands that read and write keys.

use crate::cli::Shared;
use crate::exit::Failure;
use client::blocking::{Client, Space};
use client::{LookupError, NotDone, Options};
use std::net::SocketAddr;

/// The keyspace that the command line names.
pub(crate) fn space(shared: &Shared) -> Result<Space, Failure> {
    let options = Options { deadline: shared.timeout, ..Options::default() };
    let client = Client::connect(shared.services.as_slice(), options)
        .map_err(|error| Failure::Other(anyhow::Error::new(error).context("cannot connect")))?;
    client.keyspace(&shared.keyspace).map_err(|error| match error {
        LookupError::NotDone(NotDone::Unknown(_)) => no_answer(&shared.services),
        LookupError::NotDone(refused) => refused.into(),
        LookupError::NoSuchKeyspace(name) => no_such_keyspace(&name),
    })
}

/// Nobody answers at any service address.
pub(crate) fn no_answer(services: &[SocketAddr]) -> Failure {
    let services = list(services);
    Failure::Unknown(format!(
        "no answer from {services}; nothing was written\n  \
         to start a cluster on this machine:  keyway up\n  \
         if one runs elsewhere, name it:      --service HOST:PORT  (or KEYWAY_SERVICE)\n  \
         if it runs, see how it stands:       keyway status"
    ))
}

/// Addresses, for people.
pub(crate) fn list(addresses: &[SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// There is no keyspace of that name.
pub(crate) fn no_such_keyspace(name: &str) -> Failure {
    Failure::Refused(format!(
        "there is no keyspace {name:?}\n  \
         to see which there are:  keyway keyspace list\n  \
         to create it:            keyway keyspace create {name}"
    ))
}
