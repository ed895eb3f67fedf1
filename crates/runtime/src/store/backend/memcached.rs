//! memcached as a backend: a cache, which may drop any value at any time and keeps nothing else.
//!
//! Names that memcached does not take (empty, above 250 bytes, with blanks or control characters)
//! are replaced by a hash; the value is then preceded by the name itself, so that two names with
//! one hash are never taken for each other.

use super::names::OWN;
use super::{Backend, BackendEngine, BackendUrl, Changes, Found, Kept, Listed, Trouble, Wanted};
use crate::store::StoreError;
use async_memcached::{AsciiProtocol, Client, Error, ErrorKind, MetaProtocol, Status};
use cluster::StoreId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use xxhash_rust::xxh3::xxh3_128;

/// The values of a shard in memcached.
pub struct MemcachedBackend {
    runtime: Runtime,
    client: Client,
    /// Whether it has the meta commands, which leave values out.
    has_meta: bool,
    /// Whether it did not take some value of the last changes.
    drops: bool,
    address: String,
}

/// How long to wait for anything. A memcached that says nothing for so long is not waited for any
/// more: what it was sent it might carry out whenever it goes on.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// The longest name that memcached takes.
const NAME_MAX: usize = 250;

impl MemcachedBackend {
    /// Takes a memcached as the backend of a shard whose memory begins with this identity.
    ///
    /// # Errors
    ///
    /// If it cannot be reached.
    pub fn open(url: &BackendUrl, fresh_id: StoreId) -> Result<BackendEngine<Self>, StoreError> {
        let fail = |why: String| StoreError::Backend { url: url.clone(), why };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| fail(why.to_string()))?;
        let address = format!("tcp://{}", url.memcached_address());
        let connected = within(&runtime, connect(&address)).map_err(|trouble| match trouble {
            Trouble::Gone(why)
            | Trouble::Busy(why)
            | Trouble::Refuses(why)
            | Trouble::Lost(why) => fail(why),
        });
        let (client, has_meta) = connected?;
        let backend = Self { runtime, client, has_meta, drops: false, address };
        Ok(BackendEngine::new(backend, Kept::nothing(fresh_id)))
    }
}

/// Connects, and says whether there are meta commands.
async fn connect(address: &str) -> Result<(Client, bool), Error> {
    let mut client = Client::new(address).await?;
    let version = client.version().await?;
    Ok((client, has_meta(&version)))
}

/// Whether a memcached of this version has meta commands: those from 1.6 on have.
fn has_meta(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    (major, minor) >= (Some(1), Some(6))
}

/// Waits for an outcome, but not for ever.
fn within<T>(
    runtime: &Runtime,
    outcome: impl Future<Output = Result<T, Error>>,
) -> Result<T, Trouble> {
    match runtime.block_on(async { tokio::time::timeout(ANSWER_WAIT_MAX, outcome).await }) {
        Ok(outcome) => outcome.map_err(trouble),
        Err(_) => Err(Trouble::Lost("memcached: it does not answer".to_owned())),
    }
}

/// What an error means. One that memcached itself says leaves the connection as it is.
fn trouble(error: Error) -> Trouble {
    let why = format!("memcached: {error}");
    match error {
        Error::Protocol(Status::Error(ErrorKind::Server(_))) => Trouble::Busy(why),
        Error::Connect(_)
        | Error::ConnectionClosed
        | Error::Io(_)
        | Error::Protocol(_)
        | Error::ParseError(_) => Trouble::Gone(why),
    }
}

/// The name under which memcached keeps a value, and whether the value says its real name.
fn item(name: &[u8]) -> (Cow<'_, [u8]>, bool) {
    if (1..=NAME_MAX).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic) {
        return (name.into(), false);
    }
    (format!("{OWN}{:032x}", xxh3_128(name)).into_bytes().into(), true)
}

/// What is kept under a name.
fn content<'a>(name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    let (_, says_name) = item(name);
    if !says_name {
        return value.into();
    }
    let len = u32::try_from(name.len()).expect("keys are at most KEY_MAX long");
    [&len.to_be_bytes()[..], name, value].concat().into()
}

/// The value in what was found under a name, if it is that name's.
fn value_in(name: &[u8], content: Vec<u8>) -> Option<Vec<u8>> {
    let (_, says_name) = item(name);
    if !says_name {
        return Some(content);
    }
    let (len, rest) = content.split_first_chunk::<4>()?;
    let (said, value) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
    (said == name).then(|| value.to_vec())
}

/// Says what memcached said of a value that it did not take, if there was one.
async fn apply(client: &mut Client, changes: &Changes) -> Result<Option<String>, Error> {
    let gone = changes.values.iter().filter(|(_, value)| value.is_none());
    let gone: Vec<Cow<'_, [u8]>> = gone.map(|(name, _)| item(name).0).collect();
    if !gone.is_empty() {
        client.delete_multi_no_reply(&gone).await?;
    }
    let set = changes.values.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let set: Vec<_> = set.map(|(name, value)| (item(name).0, content(name, value))).collect();
    let set: Vec<(&[u8], &[u8])> = set.iter().map(|(name, value)| (&**name, &**value)).collect();
    // An answer to anything says that all deletes before it were carried out.
    if set.is_empty() {
        return client.version().await.map(|_| None);
    }
    let outcomes = client.set_multi(&set, None, None).await?;
    let refused = outcomes.into_iter().filter_map(|(name, outcome)| Some((name, outcome.err()?)));
    let mut words = None;
    for (name, why) in refused.collect::<Vec<_>>() {
        // There was no room. What was under its name must go, or it would be taken for the value:
        // so it is as if it had been taken and dropped.
        words.get_or_insert_with(|| why.to_string());
        match client.delete(name).await {
            Ok(()) | Err(Error::Protocol(Status::NotFound)) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(words)
}

impl Backend for MemcachedBackend {
    const KEEPS: bool = false;

    /// One multi-get.
    fn fetch(&mut self, wanted: &[Wanted]) -> Result<Vec<Found>, Trouble> {
        let items: Vec<Cow<'_, [u8]>> = wanted.iter().map(|it| item(&it.name).0).collect();
        let values = within(&self.runtime, async {
            match self.client.get_multi(&items).await {
                Err(Error::Protocol(Status::NotFound)) => Ok(Vec::new()),
                outcome => outcome,
            }
        })?;
        let values = values.into_iter().filter_map(|value| Some((value.key, value.data?)));
        let values: BTreeMap<Vec<u8>, Vec<u8>> = values.collect();
        let found = wanted.iter().zip(&items).map(|(it, item)| {
            let content = values.get(item.as_ref()).cloned();
            let value = content.and_then(|content| value_in(&it.name, content));
            Found { value, expiry_ms: 0 }
        });
        Ok(found.collect())
    }

    /// One round trip of meta gets that leave values out, where those are known and every value has
    /// its real name; else all values, to look at what they say.
    fn exist(&mut self, names: &[Vec<u8>]) -> Result<Vec<bool>, Trouble> {
        if !self.has_meta || names.iter().any(|name| item(name).1) {
            let wanted: Vec<Wanted> = names.iter().cloned().map(Wanted::value).collect();
            let found = self.fetch(&wanted)?;
            return Ok(found.into_iter().map(|found| found.value.is_some()).collect());
        }
        let there = within(&self.runtime, self.client.meta_get_multi(names, None))?;
        let there: BTreeSet<Vec<u8>> = there.into_iter().filter_map(|it| it.key).collect();
        Ok(names.iter().map(|name| there.contains(name)).collect())
    }

    /// Its names cannot be listed reliably.
    fn list(&mut self, _cursor: u64) -> Result<(u64, Vec<Listed>), Trouble> {
        Ok((0, Vec::new()))
    }

    /// Deletes and sets in one round trip, or in more if there was no room for something.
    fn apply(&mut self, changes: &Changes) -> Result<(), Trouble> {
        if changes.values.is_empty() {
            return Ok(());
        }
        let words = within(&self.runtime, apply(&mut self.client, changes))?;
        if let Some(why) = words.as_ref().filter(|_| !self.drops) {
            tracing::warn!(
                why,
                "memcached takes no values, which is as if it dropped them at once: give it memory"
            );
        }
        self.drops = words.is_some();
        Ok(())
    }

    fn reconnect(&mut self) -> Result<(), Trouble> {
        (self.client, self.has_meta) = within(&self.runtime, connect(&self.address))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_commands_are_used_where_they_are_known() {
        for version in ["1.6.0", "1.6.38", "1.10.2", "2.0"] {
            assert!(has_meta(version), "{version}");
        }
        for version in ["1.5.22", "1.4", "0.9.9", "", "unknown"] {
            assert!(!has_meta(version), "{version}");
        }
    }
}
