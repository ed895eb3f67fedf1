//! The map as it lies in etcd: a head, and chunks that are small enough for one request each.

use super::super::checksum;
use super::api::{Api, Bytes, KeyValue, Number, PATIENCE, Read};
use crate::store::StoreError;
use serde::{Deserialize, Serialize};

/// Layout of what is in etcd; raised when it changes.
const FORMAT: u32 = 1;

/// Bytes of a chunk. etcd takes requests of 1.5 MiB, unless it is told otherwise.
pub(super) const CHUNK_BYTES_MAX: usize = 512 << 10;

/// Chunks of a map: 64 MiB, more than a map of as many partitions as there may be takes.
pub(super) const CHUNKS_MAX: usize = 128;

/// The map's key as it was seen last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The revision in which it was changed last; 0: it is not there.
    pub(super) changed: Number,
}

/// What is at the map's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    format: u32,
    /// What its chunks are called; no other map is called so.
    pub(super) name: String,
    /// The revision in which its writer became the leader.
    pub(super) leader: i64,
    chunks: usize,
    bytes: usize,
    checksum: String,
}

impl Head {
    pub(super) fn new(leader: Number, number: u64, bytes: &[u8]) -> Self {
        Self {
            format: FORMAT,
            name: format!("{}-{number}", leader.0),
            leader: leader.0,
            chunks: bytes.chunks(CHUNK_BYTES_MAX).len(),
            bytes: bytes.len(),
            checksum: checksum(bytes),
        }
    }

    pub(super) fn parse(found: &KeyValue) -> Option<Self> {
        serde_json::from_slice(&found.value.0).ok()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has no maps")
    }

    pub(super) fn chunk(&self, number: usize) -> String {
        format!("map/{}/{number}", self.name)
    }
}

/// The map's key, and what it says, by a member of etcd that knows of that revision. From then on
/// nobody but the leader changes it, who reads it here.
pub(super) fn load(api: &Api, leader: Number) -> Result<(Known, Option<Vec<u8>>), StoreError> {
    let fail = |why: String| StoreError::Etcd { at: api.url().to_string(), why };
    let damaged = |what: &str| fail(format!("the map is damaged: {what}"));
    let unreached = |error: super::api::CallError| fail(error.text().to_owned());
    let range = api.range("map", Read::Known, PATIENCE).map_err(unreached)?;
    let revision = range.header.revision;
    if revision.0 < leader.0 {
        return Err(fail("a member of etcd is behind the others".into()));
    }
    let Some(found) = range.one() else { return Ok((Known::default(), None)) };
    let head = Head::parse(&found).ok_or_else(|| damaged("its head cannot be read"))?;
    if head.format != FORMAT {
        let found = head.format;
        return Err(fail(format!(
            "the map has format {found}, and this version of keyway knows format {FORMAT} only: \
             use the version that wrote it"
        )));
    }
    if head.chunks > CHUNKS_MAX {
        return Err(damaged("it has more chunks than a map may have"));
    }
    let mut bytes = Vec::new();
    for number in 0..head.chunks {
        // As they were when the head was read: another leader may replace them meanwhile.
        let chunk = api.range(&head.chunk(number), Read::At(revision), PATIENCE);
        let chunk = chunk.map_err(unreached)?.one();
        let Some(KeyValue { value: Bytes(chunk), .. }) = chunk else {
            return Err(damaged("a chunk is missing"));
        };
        bytes.extend(chunk);
    }
    if bytes.len() != head.bytes || checksum(&bytes) != head.checksum {
        return Err(damaged("its checksum is wrong"));
    }
    Ok((Known { changed: found.mod_revision }, Some(bytes)))
}
