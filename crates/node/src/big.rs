//! Big values: whether a manifest may be taken, and what becomes of parts that none names.
//!
//! Parts are written first, each as any other key; the manifest is one write of the key that makes
//! all of them its value. The head takes it only when all parts are committed with it, and so with
//! everybody. Parts go when the manifest that names them is replaced, or when the head says that
//! they never will be named (ABANDON). Every member has its own list of uploads without a manifest,
//! so that whoever becomes the head knows them.

use crate::engine::{Engine, Interval, KeyRef, Record};
use crate::replica::{Context, PENDING_MAX, Replica, Write};
use cluster::{Keyspace, Match, Plant};
use machine::Instant;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::time::Duration;
use wire::big::{EXPIRY_BIG, is_big};
use wire::{
    Body, ChainWriteBody, Code, Effect, Header, ManifestBody, New, Op, PartKey, UploadBody, flag,
};

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

/// What a partition's member knows of parts without a manifest. Uploads are named by the key that
/// their part 0 has.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    open: BTreeMap<Box<[u8]>, Open>,
    drops: BTreeMap<Box<[u8]>, Drop>,
    /// How far records of an earlier life have been looked through for parts; `None`: all have.
    patrol: Option<(Match, Vec<u8>)>,
}

/// An upload that was not seen to be sealed.
#[derive(Clone, Copy, Debug)]
struct Open {
    check_at: Instant,
    /// All parts below this one are committed here.
    counted: u32,
}

/// An upload whose parts go.
#[derive(Clone, Copy, Debug)]
struct Drop {
    due: Instant,
    /// Parts below this one are gone.
    next: u32,
    /// How many there were, if that is known.
    parts: Option<u32>,
}

fn name(key: &[u8], upload: UploadBody) -> Box<[u8]> {
    PartKey { key, upload, index: 0 }.to_bytes().into()
}

/// The manifest that a record is.
fn manifest_in(key: &[u8], record: &Record<'_>) -> Option<ManifestBody> {
    let may_be = !record.tombstone && is_big(record.expiry_ms);
    may_be.then(|| ManifestBody::parse(key, record.value)).flatten()
}

impl Write<'_> {
    /// The manifest that it puts under its key.
    fn manifest(&self) -> Option<ManifestBody> {
        let puts = self.effect() == Some(Effect::Put) && is_big(self.fixed.expiry_ms);
        puts.then(|| ManifestBody::parse(self.key, self.value)).flatten()
    }

    /// Whether this write is about that upload: makes it a value, or drops it.
    fn names(&self, upload: UploadBody) -> bool {
        self.manifest().is_some_and(|manifest| manifest.upload() == upload)
            || self.effect() == Some(Effect::Abandon) && self.value == upload.to_bytes()
    }
}

impl Replica {
    /// Whether a write is not one of a big value, or one that the head may take. If not, why: a
    /// decided code is an outcome, to be recorded as any other.
    pub(crate) fn may_take_big<E: Engine>(
        &mut self,
        ctx: &Context<'_, E>,
        op: Op,
        request: &Header,
        key: &[u8],
        body: &Body<'_>,
    ) -> Result<(), Code> {
        let (expiry, value) = match *body {
            Body::Put { expiry_ms, value, .. } => (expiry_ms, Some(value)),
            Body::Cas { expiry_ms, new: New::Value(value), .. } => (expiry_ms, Some(value)),
            Body::Cas { expiry_ms, .. } => (expiry_ms, None),
            _ => (0, None),
        };
        let part = PartKey::parse(key);
        if part.is_none() && !is_big(expiry) {
            return Ok(());
        }
        if !E::BIG {
            return Err(Code::TooLarge);
        }
        let Some(value) = value else { return Err(Code::BadRequest) };
        if let Some(part) = part {
            let plain = op == Op::Put && request.flags & flag::KEEP_EXPIRY == 0;
            let sound = plain && expiry == EXPIRY_BIG && !value.is_empty();
            return if sound {
                self.may_take_part(ctx, request, key, part)
            } else {
                Err(Code::BadRequest)
            };
        }
        let Some(manifest) = ManifestBody::parse(key, value) else { return Err(Code::BadRequest) };
        if ctx.plant == Some(Plant::SealUnchecked) {
            return Ok(());
        }
        self.may_seal(ctx, request, key, &manifest)
    }

    /// A part is written once.
    fn may_take_part<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        request: &Header,
        key: &[u8],
        part: PartKey<'_>,
    ) -> Result<(), Code> {
        let there = ctx.engine.version_written(&self.key_ref(request, key)).is_some();
        if there || self.newest_pending(key).is_some() {
            return Err(Code::BadRequest);
        }
        let known = || self.uploads.open.contains_key(&name(part.key, part.upload));
        if self.uploads.open.len() >= OPEN_MAX && !known() {
            return Err(Code::Overloaded);
        }
        Ok(())
    }

    /// Whether all parts are committed with the head, and so with everybody; and whether nobody has
    /// made a value of them before, or dropped them. A bounded number of parts are looked at.
    fn may_seal<E: Engine>(
        &mut self,
        ctx: &Context<'_, E>,
        request: &Header,
        key: &[u8],
        manifest: &ManifestBody,
    ) -> Result<(), Code> {
        let (upload, parts) = (manifest.upload(), manifest.parts());
        let name = name(key, upload);
        if self.names_upload(ctx, request, key, upload) || self.uploads.drops.contains_key(&name) {
            return Err(Code::PartsMissing);
        }
        let check_at = ctx.now + ctx.part_times.idle;
        let mut open =
            self.uploads.open.get(&name).copied().unwrap_or(Open { check_at, counted: 0 });
        open.check_at = check_at;
        let before = open.counted;
        let keyspace = ctx.directory.keyspace(self.partition.keyspace);
        let keyspace = keyspace.ok_or(Code::NotOwner)?;
        let mut missing = None;
        while open.counted < parts && open.counted - before < COUNT_MAX && missing.is_none() {
            let part = PartKey { key, upload, index: open.counted }.to_bytes();
            let at = Header { keyhash: keyspace.keyhash(&part), ..*request };
            if ctx.engine.version_written(&self.key_ref(&at, &part)).is_some() {
                open.counted += 1;
            } else {
                let on_its_way = self.newest_pending(&part).is_some();
                missing = Some(if on_its_way { Code::Settling } else { Code::PartsMissing });
            }
        }
        if missing != Some(Code::PartsMissing) {
            self.uploads.open.insert(name, open);
        }
        let complete = open.counted >= parts;
        missing.or((!complete).then_some(Code::Settling)).map_or(Ok(()), Err)
    }

    /// Whether the key's record or any of its pending writes names this upload.
    fn names_upload<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        at: &Header,
        key: &[u8],
        upload: UploadBody,
    ) -> bool {
        self.pending_of_key(key).any(|write| write.names(upload))
            || self.holds_upload(ctx, at, key, upload)
    }

    /// Whether the key's committed value is this upload.
    fn holds_upload<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        at: &Header,
        key: &[u8],
        upload: UploadBody,
    ) -> bool {
        ctx.engine.read(&self.key_ref(at, key), |record| {
            let manifest = record.and_then(|record| manifest_in(key, &record));
            manifest.is_some_and(|manifest| manifest.upload() == upload)
        })
    }

    /// A write is about to become the state of its key.
    pub(crate) fn replace_parts<E: Engine>(
        &mut self,
        ctx: &Context<'_, E>,
        at: &KeyRef<'_>,
        write: &Write<'_>,
    ) {
        if !E::BIG || PartKey::parse(write.key).is_some() {
            return;
        }
        let next = write.manifest();
        if let Some(next) = next
            && ctx.plant != Some(Plant::AbandonSealed)
        {
            self.uploads.open.remove(&name(write.key, next.upload()));
        }
        let before =
            ctx.engine.read(at, |record| record.and_then(|record| manifest_in(write.key, &record)));
        if let Some(before) = before
            && next.map(|next| next.upload()) != Some(before.upload())
            && ctx.plant != Some(Plant::KeepParts)
        {
            let due = ctx.now + ctx.part_times.grace;
            let drop = Drop { due, next: 0, parts: Some(before.parts()) };
            self.uploads.drops.insert(name(write.key, before.upload()), drop);
        }
    }

    /// A record was written. If it is a part's, its upload goes on.
    pub(crate) fn see_part<E: Engine>(&mut self, ctx: &Context<'_, E>, at: &KeyRef<'_>) {
        let Some(part) = PartKey::parse(at.key) else { return };
        let check_at = ctx.now + ctx.part_times.idle;
        let open = self.uploads.open.entry(name(part.key, part.upload));
        let open = open.or_insert(Open { check_at, counted: 0 });
        open.check_at = check_at;
        let counted = open.counted;
        if !self.is_head() {
            return;
        }
        // Most parts come in order, but not all: the next ones may be here already.
        let mut counted = counted;
        for _ in 0..COUNT_EACH {
            let next = PartKey { index: counted, ..part }.to_bytes();
            let Some(keyspace) = ctx.directory.keyspace(at.keyspace) else { return };
            let next = KeyRef { keyhash: keyspace.keyhash(&next), key: &next, ..*at };
            if ctx.engine.version_written(&next).is_none() {
                break;
            }
            counted += 1;
        }
        if let Some(open) = self.uploads.open.get_mut(&name(part.key, part.upload)) {
            open.counted = counted;
        }
    }

    /// The head has given an upload up.
    pub(crate) fn commit_abandon<E: Engine>(&mut self, ctx: &Context<'_, E>, write: &Write<'_>) {
        let Some((upload, _)) = UploadBody::split(write.value) else { return };
        let name = name(write.key, upload);
        self.uploads.open.remove(&name);
        if ctx.plant != Some(Plant::KeepParts) {
            let drop = Drop { due: ctx.now, next: 0, parts: None };
            self.uploads.drops.entry(name).or_insert(drop);
        }
    }

    /// Another member has parts that it knows no use of.
    pub(crate) fn handle_stray<E: Engine>(&mut self, ctx: &Context<'_, E>, part: PartKey<'_>) {
        let open = Open { check_at: ctx.now, counted: 0 };
        self.uploads.open.entry(name(part.key, part.upload)).or_insert(open);
    }

    /// What an earlier life has left here is looked through for parts.
    pub(crate) fn begin_patrol(&mut self) {
        self.uploads.patrol = Some((self.partition.first, Vec::new()));
    }

    /// Time has passed: finds parts, gives uploads up, and drops parts; a bounded number each time.
    pub(crate) fn look_after_parts<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if !E::BIG || self.uploads.is_empty() {
            return;
        }
        let Some(keyspace) = ctx.directory.keyspace(self.partition.keyspace) else { return };
        self.patrol(ctx, keyspace);
        self.check_open(ctx, keyspace);
        self.drop_parts(ctx, keyspace);
    }

    fn patrol<E: Engine>(&mut self, ctx: &Context<'_, E>, keyspace: &Keyspace) {
        for _ in 0..PATROL_PARTS {
            let Some((first, after)) = self.uploads.patrol.take() else { return };
            let start = if after.is_empty() { Bound::Unbounded } else { Bound::Excluded(&*after) };
            let interval = Interval {
                keyspace,
                partition: self.id(),
                first,
                last: self.partition.last,
                start,
                end: Bound::Unbounded,
                reverse: false,
            };
            let (mut seen, mut found) = (0, None);
            ctx.engine.scan(&interval, |key, _| {
                seen += 1;
                let is_part = PartKey::parse(key).is_some();
                if is_part || seen == PATROL_RECORDS {
                    found = Some((key.to_vec(), is_part));
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            let Some((key, is_part)) = found else { return };
            let at = keyspace.match_value(&key);
            let Some(part) = PartKey::parse(&key).filter(|_| is_part) else {
                self.uploads.patrol = Some((at, key));
                return;
            };
            let open = Open { check_at: ctx.now + ctx.part_times.idle, counted: 0 };
            self.uploads.open.entry(name(part.key, part.upload)).or_insert(open);
            self.uploads.patrol = Some((at, PartKey { index: u32::MAX, ..part }.to_bytes()));
        }
    }

    fn check_open<E: Engine>(&mut self, ctx: &mut Context<'_, E>, keyspace: &Keyspace) {
        let due = self.uploads.open.iter().filter(|(_, open)| open.check_at <= ctx.now);
        let due: Vec<Box<[u8]>> = due.map(|(name, _)| name.clone()).take(CHECK_MAX).collect();
        for name in due {
            let part = PartKey::parse(&name).expect("uploads are named by keys of parts");
            let at = place(keyspace, part.key);
            let sealed = ctx.plant != Some(Plant::AbandonSealed);
            if sealed && self.holds_upload(ctx, &at, part.key, part.upload) {
                self.uploads.open.remove(&name);
                continue;
            }
            let check_at = ctx.now + ctx.part_times.idle.min(CHECK_AGAIN);
            if let Some(open) = self.uploads.open.get_mut(&name) {
                open.check_at = check_at;
            }
            if !self.is_head() {
                self.tell_stray(ctx, &place(keyspace, &name), &name);
            } else if self.partition.open
                && self.pending.len() < PENDING_MAX
                && !self.pending_of_key(part.key).any(|write| write.names(part.upload))
            {
                self.abandon(ctx, &at, part);
            }
        }
    }

    fn abandon<E: Engine>(&mut self, ctx: &mut Context<'_, E>, at: &Header, part: PartKey<'_>) {
        let committed = ctx.engine.version_written(&self.key_ref(at, part.key)).unwrap_or(0);
        let base = self.newest_version_pending(part.key).unwrap_or(0).max(committed);
        let header = self.own_header(at, part.key);
        let fixed = ChainWriteBody {
            base,
            stable: self.stable,
            origin: Op::Del as u8,
            effect: Effect::Abandon as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        self.order(ctx, &header, fixed, part.key, &part.upload.to_bytes());
    }

    fn drop_parts<E: Engine>(&mut self, ctx: &mut Context<'_, E>, keyspace: &Keyspace) {
        let mut left = DROP_MAX;
        while left > 0 {
            let due = self.uploads.drops.iter().find(|(_, drop)| drop.due <= ctx.now);
            let Some((name, drop)) = due.map(|(name, drop)| (name.clone(), *drop)) else { return };
            let part = PartKey::parse(&name).expect("uploads are named by keys of parts");
            let over = match drop.parts {
                Some(parts) => {
                    let to = parts.min(drop.next.saturating_add(left));
                    for index in drop.next..to {
                        self.remove_part(ctx, keyspace, &PartKey { index, ..part }.to_bytes());
                    }
                    left -= to - drop.next;
                    if let Some(drop) = self.uploads.drops.get_mut(&name) {
                        drop.next = to;
                    }
                    to == parts
                }
                None => {
                    let found = self.find_parts(ctx, keyspace, &name, left);
                    found.iter().for_each(|key| self.remove_part(ctx, keyspace, key));
                    let count = u32::try_from(found.len()).unwrap_or(left);
                    let over = count < left;
                    left -= count.min(left);
                    over
                }
            };
            if over {
                self.uploads.drops.remove(&name);
            }
        }
    }

    fn remove_part<E: Engine>(&self, ctx: &mut Context<'_, E>, keyspace: &Keyspace, key: &[u8]) {
        let at = place(keyspace, key);
        ctx.engine.remove(&self.key_ref(&at, key));
        ctx.counters.parts_dropped += 1;
    }

    /// Some parts of an upload.
    fn find_parts<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        keyspace: &Keyspace,
        name: &[u8],
        at_most: u32,
    ) -> Vec<Vec<u8>> {
        let part = PartKey::parse(name).expect("uploads are named by keys of parts");
        let last = PartKey { index: u32::MAX, ..part }.to_bytes();
        let at = keyspace.match_value(name);
        let interval = Interval {
            keyspace,
            partition: self.id(),
            first: at,
            last: at,
            start: Bound::Included(name),
            end: Bound::Included(&last),
            reverse: false,
        };
        let mut found = Vec::new();
        ctx.engine.scan(&interval, |key, _| {
            found.push(key.to_vec());
            let full = found.len() >= at_most as usize;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Uploads that are not values, or not any more, and whose parts are still here.
    pub(crate) fn strays_of_uploads(&self) -> usize {
        self.uploads.open.len() + self.uploads.drops.len()
    }
}

impl Uploads {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.drops.is_empty() && self.patrol.is_none()
    }
}

/// Where a key lies, as headers say it.
fn place(keyspace: &Keyspace, key: &[u8]) -> Header {
    let match_value = keyspace.match_value(key).0;
    Header { match_value, keyhash: keyspace.keyhash(key), ..Header::default() }
}

/// Uploads of a partition that may be under way. At about 150 bytes each this is 150 KB; whoever
/// comes beyond is told *overloaded* until some are sealed or given up.
const OPEN_MAX: usize = 1_024;

/// Parts that one manifest is compared with at a time: about a millisecond. Those that came in
/// order have been counted before.
const COUNT_MAX: u32 = 4_096;

/// Parts counted for each that is committed.
const COUNT_EACH: u32 = 4;

/// Parts dropped per sweep: 40,000 a second, 50 MB, and some milliseconds of a sweep with the
/// durable engine.
const DROP_MAX: u32 = 4_096;

/// Uploads looked at per sweep.
const CHECK_MAX: usize = 64;

/// When an upload was given up and is still there, or nobody listened.
const CHECK_AGAIN: Duration = Duration::from_secs(5);

/// Records looked at per sweep after a restart, and uploads found.
const PATROL_RECORDS: usize = 512;
const PATROL_PARTS: usize = 64;
