//! memcached as a backend: a cache, which may drop any value at any time and keeps nothing else.
//!
//! Names that memcached does not take (empty, above 250 bytes, with blanks or control characters)
//! are replaced by a hash; the value is then preceded by the name itself, so that two names with
//! one hash are never taken for each other.
//!
//! A memcached that throws nothing away (`-M`) has no room for some value sooner or later, and has
//! thrown away the one before it when it says so. Such values stay here, where reads see them, and
//! the node says that it is full until memcached has taken them.

mod held;

use super::names::OWN;
use super::{
    Backend, BackendEngine, BackendUrl, Changes, Fitness, FoundValue, Kept, ListedValue, Trouble,
    WantedValue,
};
use crate::store::StoreError;
use async_memcached::{AsciiProtocol, Client, Error, ErrorKind, MetaProtocol, Status};
use cluster::StoreId;
use held::HeldValues;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use wire::Room;
use xxhash_rust::xxh3::xxh3_128;

/// The values of a shard in memcached.
pub struct MemcachedBackend {
    runtime: Runtime,
    client: Client,
    /// Whether it has the meta commands, which leave values out.
    has_meta: bool,
    /// What it has no room for.
    held: HeldValues,
    address: String,
}

/// How long to wait for anything. A memcached that says nothing for so long is not waited for any
/// more: what it was sent it might carry out whenever it goes on.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// The longest answer to a question for settings: memcached 1.6 says 3 KiB.
const SETTINGS_MAX: u64 = 64 << 10;

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
        let failed = |trouble: Trouble| fail(trouble.words());
        if within(&runtime, evicts(url)).map_err(failed)? {
            tracing::warn!(%url, "{EVICTS}: {KEEP}");
        }
        let (mut client, has_meta) = within(&runtime, connect(&address)).map_err(failed)?;
        let largest = within(&runtime, takes_largest(&mut client)).map_err(failed)?;
        if let Some(said) = largest {
            return Err(fail(format!(
                "it does not take values as long as they may be ({said}): start it without -I, or \
                 with -I 4k and more"
            )));
        }
        let backend = Self { runtime, client, has_meta, held: HeldValues::default(), address };
        Ok(BackendEngine::new(backend, Kept::nothing(fresh_id)))
    }

    /// Looks whether a node could start before a memcached, and whether that keeps what it takes.
    pub(super) fn inspect(url: &BackendUrl) -> Result<Fitness, StoreError> {
        let fail = |why: String| StoreError::Backend { url: url.clone(), why };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|why| fail(why.to_string()))?;
        let evicts = within(&runtime, evicts(url)).map_err(|trouble| fail(trouble.words()))?;
        Ok(if evicts {
            Fitness { found: EVICTS.to_owned(), remedy: Some(KEEP.to_owned()) }
        } else {
            Fitness { found: "memcached, which throws no values away".to_owned(), remedy: None }
        })
    }
}

/// What is said of a memcached that drops values.
const EVICTS: &str = "this memcached throws values away when its memory is full (evictions are \
                      on): what clients were told is written then reads as absent";

/// What is to be done about it.
const KEEP: &str = "start it with -M, and it says that it is full instead";

/// Whether a memcached throws values away to make room.
async fn evicts(url: &BackendUrl) -> Result<bool, Error> {
    let address = url.memcached_address();
    let mut stream = TcpStream::connect(address).await.map_err(Error::Connect)?;
    stream.write_all(b"stats settings\r\n").await?;
    let mut lines = BufReader::new(stream.take(SETTINGS_MAX)).lines();
    while let Some(line) = lines.next_line().await? {
        if line == "STAT evictions on" {
            return Ok(true);
        }
        if !line.starts_with("STAT ") {
            break;
        }
    }
    Ok(false)
}

/// Connects, and says whether there are meta commands.
async fn connect(address: &str) -> Result<(Client, bool), Error> {
    let mut client = Client::new(address).await?;
    let version = client.version().await?;
    Ok((client, has_meta(&version)))
}

/// What memcached says to the longest value that there can be, unless it takes it or has no room
/// for it now.
async fn takes_largest(client: &mut Client) -> Result<Option<String>, Error> {
    let (name, value) = (format!("{OWN}largest"), vec![b'.'; 4 + wire::ENTRY_MAX]);
    let untaken = set(client, vec![(name.as_bytes(), &value)]).await?;
    client.delete_no_reply(&name).await?;
    Ok(untaken.into_iter().map(|(_, said)| said).find(|said| said.contains("too large")))
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

/// Sets values, and says which memcached did not take, with what it said.
async fn set<'a>(client: &mut Client, values: Vec<Pair<'a>>) -> Result<Vec<Untaken<'a>>, Error> {
    let items = values.iter().map(|(name, value)| (item(name).0, content(name, value)));
    let items: Vec<Item<'_>> = items.collect();
    let set: Vec<(&[u8], &[u8])> = items.iter().map(|(name, value)| (&**name, &**value)).collect();
    if set.is_empty() {
        return Ok(Vec::new());
    }
    let outcomes = client.set_multi(&set, None, None).await?;
    let refused = outcomes.into_iter().filter_map(|(name, outcome)| Some((*name, outcome.err()?)));
    let refused: BTreeMap<&[u8], Error> = refused.collect();
    let said = |(item, _): &Item<'_>| refused.get(&**item).map(ToString::to_string);
    let said: Vec<Option<String>> = items.iter().map(said).collect();
    let untaken = values.into_iter().zip(said);
    Ok(untaken.filter_map(|(pair, said)| Some((pair, said?))).collect())
}

/// What memcached is given for those.
type Item<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// A name and a value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// With what memcached said.
type Untaken<'a> = (Pair<'a>, String);

/// Deletes and sets, and says which values memcached has no room for.
async fn apply<'a>(client: &mut Client, changes: &'a Changes) -> Result<Vec<Untaken<'a>>, Error> {
    let gone = changes.values.iter().filter(|(_, value)| value.is_none());
    let gone: Vec<Cow<'_, [u8]>> = gone.map(|(name, _)| item(name).0).collect();
    if !gone.is_empty() {
        client.delete_multi_no_reply(&gone).await?;
    }
    let values =
        changes.values.iter().filter_map(|(name, value)| Some((&**name, &**value.as_ref()?)));
    let values: Vec<Pair<'_>> = values.collect();
    // An answer to anything says that all deletes before it were carried out.
    if values.is_empty() {
        return client.version().await.map(|_| Vec::new());
    }
    let untaken = set(client, values).await?;
    // A value that is refused takes the one before it along, and that has left room for this one.
    let untaken = set(client, untaken.into_iter().map(|(pair, _)| pair).collect()).await?;
    for ((name, _), _) in &untaken {
        // If not, it would be taken for the value.
        match client.delete(item(name).0).await {
            Ok(()) | Err(Error::Protocol(Status::NotFound)) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(untaken)
}

impl Backend for MemcachedBackend {
    const KEEPS: bool = false;

    /// One multi-get.
    fn fetch(&mut self, wanted: &[WantedValue]) -> Result<Vec<FoundValue>, Trouble> {
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
            let value = self.held.value(&it.name).map(<[u8]>::to_vec).or(value);
            FoundValue { value, expiry_ms: 0 }
        });
        Ok(found.collect())
    }

    /// One round trip of meta gets that leave values out, where those are known and every value has
    /// its real name; else all values, to look at what they say.
    fn exist(&mut self, names: &[Vec<u8>]) -> Result<Vec<bool>, Trouble> {
        if !self.has_meta || names.iter().any(|name| item(name).1) {
            let wanted: Vec<WantedValue> = names.iter().cloned().map(WantedValue::value).collect();
            let found = self.fetch(&wanted)?;
            return Ok(found.into_iter().map(|found| found.value.is_some()).collect());
        }
        let there = within(&self.runtime, self.client.meta_get_multi(names, None))?;
        let there: BTreeSet<Vec<u8>> = there.into_iter().filter_map(|it| it.key).collect();
        let is_there = |name: &Vec<u8>| there.contains(name) || self.held.value(name).is_some();
        Ok(names.iter().map(is_there).collect())
    }

    /// Its names cannot be listed reliably.
    fn list(&mut self, _cursor: u64) -> Result<(u64, Vec<ListedValue>), Trouble> {
        Ok((0, Vec::new()))
    }

    /// Deletes and sets in one round trip, or in more if there was no room for something.
    fn apply(&mut self, changes: &Changes) -> Result<(), Trouble> {
        if changes.values.is_empty() {
            return Ok(());
        }
        let untaken = within(&self.runtime, apply(&mut self.client, changes))?;
        self.held.forget(changes.values.keys());
        for ((name, value), why) in untaken {
            self.held.keep(name, value, &why);
        }
        Ok(())
    }

    fn room(&self) -> Room {
        self.held.room()
    }

    /// Tries some of what it had no room for once more.
    fn look(&mut self) -> Result<(), Trouble> {
        let some = self.held.some();
        let values = some.iter().map(|(name, value)| (&**name, &**value)).collect();
        let untaken = within(&self.runtime, set(&mut self.client, values))?;
        let untaken: BTreeSet<&[u8]> = untaken.into_iter().map(|((name, _), _)| name).collect();
        let taken = some.iter().map(|(name, _)| name).filter(|name| !untaken.contains(&***name));
        self.held.forget(taken);
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
