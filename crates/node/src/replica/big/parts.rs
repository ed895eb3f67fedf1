//! Parts and manifests of big values, as records and writes are them; and how long parts stay.

use crate::engine::Record;
use crate::replica::write::Write;
use std::time::Duration;
use wire::big::is_big;
use wire::{Effect, ManifestBody, PartKey, UploadBody};

/// How long parts stay that are not, or not any more, those of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartTimes {
    /// An upload to which no part was added for so long, and that was not made a value, is dropped.
    pub idle: Duration,
    /// For so long after a value was replaced, those who began to read it can go on.
    pub grace: Duration,
}

impl Default for PartTimes {
    fn default() -> Self {
        Self { idle: Duration::from_secs(120), grace: Duration::from_secs(10) }
    }
}

impl PartTimes {
    /// An upload that has been idle for so long is given up if there is no room for another: as
    /// long as clients try to get a part in.
    pub(crate) fn idle_at_need(self) -> Duration {
        self.idle / 24
    }
}

/// The name of an upload: the key of its first part.
pub(crate) fn name(key: &[u8], upload: UploadBody) -> Box<[u8]> {
    PartKey { key, upload, index: 0 }.to_bytes().into()
}

/// The manifest that a record is.
pub(crate) fn manifest_in(key: &[u8], record: &Record<'_>) -> Option<ManifestBody> {
    let may_be = !record.tombstone && is_big(record.expiry_ms);
    may_be.then(|| ManifestBody::parse(key, record.value)).flatten()
}

/// Whether a value consists of that part among others.
pub(crate) fn has(manifest: &ManifestBody, part: &PartKey<'_>) -> bool {
    manifest.upload() == part.upload && part.index < manifest.parts()
}

impl Write<'_> {
    /// The manifest that it puts under its key.
    pub(crate) fn manifest(&self) -> Option<ManifestBody> {
        let puts = self.effect() == Some(Effect::Put) && is_big(self.fixed.expiry_ms);
        puts.then(|| ManifestBody::parse(self.key, self.value)).flatten()
    }

    /// Whether this write is about that upload: makes it a value, or drops it.
    pub(crate) fn names(&self, upload: UploadBody) -> bool {
        self.manifest().is_some_and(|manifest| manifest.upload() == upload) || self.abandons(upload)
    }

    /// Whether it gives that upload up.
    pub(crate) fn abandons(&self, upload: UploadBody) -> bool {
        self.effect() == Some(Effect::Abandon) && self.value == upload.to_bytes()
    }
}
