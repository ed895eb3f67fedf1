//! How a Redis becomes the backend of a shard, and is found again.

use super::full::{Stock, carry_out, evicts};
use super::{
    ANSWER_WAIT_MAX, CONNECT_WAIT_MAX, FORMAT, FORMAT_FIELD, FORMAT_MIN, Hashes, NODE, OWNER, RUN,
    RedisBackend, SCANNED_AT_ONCE, SHARDS, STORE, SYNCS, connect, cut_others,
};
use crate::clock::Clock;
use crate::entropy;
use crate::store::backend::changes::value_name;
use crate::store::backend::{BackendEngine, BackendUrl, Fitness, Kept, Trouble};
use crate::store::{ShardIdentity, StoreError, SyncPolicy};
use cluster::{ClockAhead, StoreId};
use redis::{Client, Connection, RedisError, RedisResult, cmd};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What `about` says, by its fields.
type About = BTreeMap<String, String>;

impl RedisBackend {
    /// Takes a Redis as the backend of a shard, with all that it has kept of it, or begins there
    /// with `fresh_id` as the identity of the memory. With [`SyncPolicy::Always`] a Redis that was
    /// restarted, and may have lost something by that, is such a beginning too.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, is another shard's or of another format, or throws values away
    /// when its memory is full.
    pub fn open(
        url: &BackendUrl,
        shard: ShardIdentity,
        fresh_id: StoreId,
        policy: SyncPolicy,
    ) -> Result<BackendEngine<Self>, StoreError> {
        let io = |why: RedisError| failed(url, &why);
        let client = Client::open(url.secret()).map_err(io)?;
        let mut connection = connect(&client, shard).map_err(io)?;
        refuse_cluster(&mut connection, url)?;
        refuse_eviction(&mut connection, url)?;
        let hashes = Hashes::of(shard.shard);
        for hashes in [&Hashes::of(0), &hashes] {
            check(&read_about(&mut connection, hashes).map_err(io)?, shard, url)?;
        }
        let owner = entropy::draw().map_err(|why| StoreError::io(&path(url), why))?.to_string();
        let owned = BTreeMap::from([(OWNER.to_owned(), owner.clone())]);
        write_down(&mut connection, &hashes, &owned).map_err(|trouble| refused(url, trouble))?;
        cut_others(&mut connection, shard).map_err(io)?;
        // Nobody else writes from here on.
        let mut about = read_about(&mut connection, &hashes).map_err(io)?;
        let run = run_id(&mut connection).map_err(io)?;
        let known = about.get(RUN).is_none_or(|known| *known == run);
        if !survives_restarts(&mut connection, url, policy) && !known {
            tracing::warn!(%url, "Redis was restarted and may have lost writes: it is emptied");
            forget(&mut connection, &hashes, &about).map_err(io)?;
            about = About::new();
        }
        if !about.contains_key(STORE) {
            about.insert(STORE.into(), fresh_id.0.to_string());
            about.insert(SYNCS.into(), 0.to_string());
        }
        about.insert(FORMAT_FIELD.into(), FORMAT.to_string());
        about.insert(NODE.into(), shard.node.to_string());
        about.insert(SHARDS.into(), shard.shards.to_string());
        about.insert(OWNER.into(), owner.clone());
        about.insert(RUN.into(), run);
        write_down(&mut connection, &hashes, &about).map_err(|trouble| refused(url, trouble))?;
        let kept = load(&mut connection, &hashes, &about, url)?;
        let syncs = number(&about, SYNCS, url)?;
        let (clock, ahead) = (Clock::new(), ClockAhead::default());
        let stock = Stock::default();
        let backend = Self { client, connection, shard, owner, syncs, clock, ahead, stock };
        Ok(BackendEngine::new(backend, kept))
    }

    /// Looks whether a node could start before a Redis, and takes nothing.
    pub(in crate::store::backend) fn inspect(url: &BackendUrl) -> Result<Fitness, StoreError> {
        let io = |why: RedisError| failed(url, &why);
        let client = Client::open(url.secret()).map_err(io)?;
        let mut connection = client.get_connection_with_timeout(CONNECT_WAIT_MAX).map_err(io)?;
        connection.set_read_timeout(Some(ANSWER_WAIT_MAX)).map_err(io)?;
        refuse_cluster(&mut connection, url)?;
        refuse_eviction(&mut connection, url)?;
        let found = "Redis, which throws no values away".to_owned();
        Ok(Fitness { found, remedy: None })
    }
}

fn failed(url: &BackendUrl, why: &RedisError) -> StoreError {
    StoreError::Backend { url: url.clone(), why: why.to_string() }
}

fn refused(url: &BackendUrl, trouble: Trouble) -> StoreError {
    StoreError::Backend { url: url.clone(), why: trouble.words() }
}

fn path(url: &BackendUrl) -> PathBuf {
    url.to_string().into()
}

fn read_about(connection: &mut Connection, hashes: &Hashes) -> RedisResult<About> {
    cmd("HGETALL").arg(&hashes.about).query(connection)
}

/// A node can be started before a full Redis.
fn write_down(connection: &mut Connection, to: &Hashes, about: &About) -> Result<(), Trouble> {
    let fields = about.iter().flat_map(|(field, content)| [field.as_bytes(), content.as_bytes()]);
    carry_out(connection, ("HSET", Some(&to.about), fields.collect()))
}

/// Whose it is, if it is anybody's.
fn check(about: &About, shard: ShardIdentity, url: &BackendUrl) -> Result<(), StoreError> {
    let Some(found) = about.get(FORMAT_FIELD) else { return Ok(()) };
    if !found.parse().is_ok_and(|found: u32| (FORMAT_MIN..=FORMAT).contains(&found)) {
        let (path, found) = (path(url), found.clone());
        return Err(StoreError::Format { path, found, known: FORMAT });
    }
    let field = |name| about.get(name).map_or("", String::as_str);
    let (node, shards) = (field(NODE), field(SHARDS));
    if node == shard.node.to_string() && shards == shard.shards.to_string() {
        return Ok(());
    }
    Err(StoreError::Foreign {
        path: path(url),
        created_for: format!("node {node} with {shards} shards"),
        opened_for: format!("node {} with {} shards", shard.node, shard.shards),
    })
}

/// Keys of one sync lie in several slots, which no member of a Redis Cluster takes together.
fn refuse_cluster(connection: &mut Connection, url: &BackendUrl) -> Result<(), StoreError> {
    let info: String = cmd("INFO").arg("server").query(connection).map_err(|e| failed(url, &e))?;
    if !info.lines().any(|line| line.trim_end() == "redis_mode:cluster") {
        return Ok(());
    }
    let why = "it is a member of a Redis Cluster; each node wants a Redis of its own (without \
               cluster-enabled), for Keyway distributes the keys";
    Err(StoreError::Backend { url: url.clone(), why: why.to_owned() })
}

/// A Redis that may throw away anything would throw away what makes values records.
fn refuse_eviction(connection: &mut Connection, url: &BackendUrl) -> Result<(), StoreError> {
    let limit = setting(connection, "maxmemory");
    let policy = setting(connection, "maxmemory-policy");
    match (limit, policy) {
        (Some(limit), Some(policy)) if limit != "0" && evicts(&policy) => {
            Err(StoreError::Evicting { url: url.clone(), policy })
        }
        (Some(_), Some(_)) => Ok(()),
        _ => {
            tracing::warn!(
                %url,
                "this Redis does not tell its settings: see to it that its maxmemory-policy is \
                 noeviction"
            );
            Ok(())
        }
    }
}

/// A setting, if Redis tells it: some providers forbid that.
fn setting(connection: &mut Connection, name: &str) -> Option<String> {
    let answer: Vec<String> = cmd("CONFIG").arg("GET").arg(name).query(connection).ok()?;
    answer.into_iter().nth(1)
}

/// Whether what a restart of Redis leaves is taken for all that there was: because it has on disk
/// whatever it acknowledges, or because the operator wants it so.
fn survives_restarts(connection: &mut Connection, url: &BackendUrl, policy: SyncPolicy) -> bool {
    let mut is = |name, wanted| setting(connection, name).is_some_and(|it| it == wanted);
    let survives =
        policy != SyncPolicy::Always || is("appendonly", "yes") && is("appendfsync", "always");
    if !survives {
        tracing::warn!(
            %url,
            "a restart of this Redis will count as the loss of its memory, because it does not \
             sync each write (appendonly yes, appendfsync always): with one replica its keys are \
             not served from then on; sync = \"interval\" takes what Redis still has"
        );
    }
    survives
}

/// Which incarnation of Redis this is.
fn run_id(connection: &mut Connection) -> RedisResult<String> {
    let info: String = cmd("INFO").arg("server").query(connection)?;
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    Ok(run.unwrap_or_default().trim().to_owned())
}

fn number(about: &About, field: &str, url: &BackendUrl) -> Result<u64, StoreError> {
    let number = about.get(field).and_then(|text| text.parse().ok());
    number.ok_or_else(|| StoreError::damaged(&path(url), format!("there is no {field}")))
}

/// Fields and contents of a hash.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Visits all of a hash, piece by piece.
fn scan(
    connection: &mut Connection,
    hash: &str,
    mut visit: impl FnMut(&mut Connection, &Pairs) -> RedisResult<()>,
) -> RedisResult<()> {
    let mut cursor = 0u64;
    loop {
        let mut next = cmd("HSCAN");
        next.arg(hash).arg(cursor).arg("COUNT").arg(SCANNED_AT_ONCE);
        let (then, pairs): (u64, Pairs) = next.query(connection)?;
        visit(connection, &pairs)?;
        cursor = then;
        if cursor == 0 {
            return Ok(());
        }
    }
}

fn load(
    connection: &mut Connection,
    hashes: &Hashes,
    about: &About,
    url: &BackendUrl,
) -> Result<Kept, StoreError> {
    let mut kept = Kept::nothing(StoreId(number(about, STORE, url)?));
    about.iter().for_each(|(field, content)| kept.take_about(field, content));
    let mut sound = true;
    let records = scan(connection, &hashes.records, |_, pairs| {
        let mut each = pairs.iter();
        sound &= each.all(|(place, mark)| kept.take_record(place, mark).is_some());
        Ok(())
    });
    records.map_err(|why| failed(url, &why))?;
    let notes = scan(connection, &hashes.notes, |_, pairs| {
        let mut each = pairs.iter();
        sound &= each.all(|(at, note)| kept.take_note(at, note).is_some());
        Ok(())
    });
    notes.map_err(|why| failed(url, &why))?;
    if sound {
        return Ok(kept);
    }
    Err(StoreError::damaged(&path(url), "a record or a note cannot be decoded"))
}

/// Removes what was written here by this shard, values first, so that a second try finds the rest.
fn forget(connection: &mut Connection, hashes: &Hashes, about: &About) -> RedisResult<()> {
    let mut known = Kept::nothing(StoreId(0));
    about.iter().for_each(|(field, content)| known.take_about(field, content));
    scan(connection, &hashes.records, |connection, pairs| {
        let names = pairs.iter().filter_map(|(place, _)| value_name(&known.spaces, place));
        let names: Vec<Vec<u8>> = names.collect();
        if names.is_empty() {
            return Ok(());
        }
        cmd("DEL").arg(names).exec(connection)
    })?;
    cmd("DEL").arg(&[&hashes.records, &hashes.notes, &hashes.about][..]).exec(connection)
}
