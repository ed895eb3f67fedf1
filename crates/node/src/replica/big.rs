//! Big values: whether a manifest may be taken, and what becomes of parts that none names.
//!
//! Parts are written first, each as any other key; the manifest is one write of the key that makes
//! all of them its value. The head takes it only when all parts are committed with it, and so with
//! everybody. Parts go when the manifest that names them is replaced, or when the head says that
//! they never will be named (ABANDON). Every member has its own list of uploads without a manifest,
//! so that whoever becomes the head knows them.

pub(crate) mod parts;
mod strays;
pub(crate) mod uploads;

use crate::engine::{Engine, KeyRef, Record, Written};
use crate::replica::Replica;
use crate::replica::big::parts::{manifest_in, name};
use crate::replica::member::place;
use crate::replica::notes::replaced_name;
use crate::replica::totals::counts_as;
use crate::replica::write::Write;
use crate::shard::context::Context;
use cluster::{Keyspace, Mutant};
use wire::big::{EXPIRY_BIG, is_big};
use wire::{Body, Code, Header, ManifestBody, New, Op, PartKey, UploadBody, flag};

impl Replica {
    /// Whether a write is not one of a big value, or one that the head may take. If not, why: a
    /// decided code is an outcome, to be recorded as any other.
    pub(crate) fn may_take_big<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
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
        if ctx.mutant.is(Mutant::SealUnchecked) {
            return Ok(());
        }
        self.may_put_manifest(ctx, request, key, value)
    }

    /// Whether this value of a key is a manifest that the head may take, by itself or in a batch.
    pub(crate) fn may_put_manifest<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Code> {
        if !E::BIG {
            return Err(Code::TooLarge);
        }
        let manifest = ManifestBody::parse(key, value).ok_or(Code::BadRequest)?;
        self.may_seal(ctx, at, key, &manifest)
    }

    /// A part is written once, and not after the word that its upload is given up.
    fn may_take_part<E: Engine>(
        &mut self,
        ctx: &Context<'_, E>,
        request: &Header,
        key: &[u8],
        part: PartKey<'_>,
    ) -> Result<(), Code> {
        let there = ctx.engine.version_written(&self.member.key_ref(request, key)).is_some();
        if there || self.pending.newest(key).is_some() {
            return Err(Code::BadRequest);
        }
        let name = name(part.key, part.upload);
        let is_pending = || self.pending.of_key(part.key).any(|it| it.abandons(part.upload));
        if self.uploads.is_dropped(&name) || is_pending() {
            return Err(Code::PartsMissing);
        }
        if !self.has_room_for_parts(ctx, request.client) {
            return Err(Code::Full);
        }
        // What is due by then has been idle for as long as it takes at need.
        let idle_since = ctx.now + (ctx.part_times.idle - ctx.part_times.idle_at_need());
        let known = self.uploads.open.contains(&name);
        if known || self.uploads.make_room((part.key, request.client), idle_since, ctx.now) {
            Ok(())
        } else {
            Err(Code::Overloaded)
        }
    }

    /// Whether all parts are committed with the head, and so with everybody; and whether nobody has
    /// made a value of them before, or dropped them. A bounded number of parts are looked at.
    fn may_seal<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
        manifest: &ManifestBody,
    ) -> Result<(), Code> {
        let (upload, parts) = (manifest.upload(), manifest.parts());
        let name = name(key, upload);
        if self.names_upload(ctx, request, key, upload) || self.uploads.is_dropped(&name) {
            return Err(Code::PartsMissing);
        }
        let check_at = ctx.now + ctx.part_times.idle;
        let before = self.uploads.open.get(&name).copied().unwrap_or(0);
        let mut counted = before;
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        let keyspace = keyspace.ok_or(Code::NotOwner)?;
        let (mut missing, most) = (None, ctx.turn.most_for(COUNT_MAX as usize));
        let most = u32::try_from(most).unwrap_or(COUNT_MAX);
        while counted < parts && counted - before < most && missing.is_none() {
            let part = PartKey { key, upload, index: counted };
            if self.has_part(ctx, keyspace, part) {
                counted += 1;
            } else {
                let on_its_way = self.pending.newest(&part.to_bytes()).is_some();
                missing = Some(if on_its_way { Code::Settling } else { Code::PartsMissing });
            }
        }
        ctx.turn.spend((counted - before) as usize);
        if missing != Some(Code::PartsMissing) {
            self.uploads.open.insert(name, check_at, counted);
        }
        let complete = counted >= parts;
        missing.or((!complete).then_some(Code::Settling)).map_or(Ok(()), Err)
    }

    /// Whether a part is committed here. That of the first may be a tombstone: the upload was given
    /// up.
    fn has_part<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        keyspace: &Keyspace,
        part: PartKey<'_>,
    ) -> bool {
        let key = part.to_bytes();
        let at = place(keyspace, &key);
        let at = self.member.key_ref(&at, &key);
        if part.index == 0 {
            ctx.engine.read(&at, |record| record.is_some_and(|it| !it.tombstone))
        } else {
            ctx.engine.version_written(&at).is_some()
        }
    }

    /// Whether the key's record or any of its pending writes names this upload.
    fn names_upload<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        at: &Header,
        key: &[u8],
        upload: UploadBody,
    ) -> bool {
        self.pending.on_key(key).any(|write| write.names(upload))
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
        ctx.engine.read(&self.member.key_ref(at, key), |record| {
            let manifest = record.and_then(|record| manifest_in(key, &record));
            manifest.is_some_and(|manifest| manifest.upload() == upload)
        })
    }

    /// Makes a record the state of its key, whether it comes by a write, from a delegation or as a
    /// copy.
    pub(crate) fn write_state<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &KeyRef<'_>,
        record: &Record<'_>,
    ) {
        if PartKey::parse(at.key).is_none() {
            let (written, counts, before) = if E::OWNS {
                ctx.engine.read(at, |found| {
                    let counts = counts_as(at.key, found.as_ref());
                    let manifest = found.and_then(|it| manifest_in(at.key, &it));
                    (found.map(Written::from), counts, manifest)
                })
            } else {
                (ctx.engine.written(at), None, None)
            };
            if let Some(digest) = &mut self.digest {
                digest.change::<E>(at, written, record);
            }
            if E::OWNS {
                if !ctx.mutant.is(Mutant::MiscountKeys) || !record.tombstone {
                    self.totals.replace::<E>(at, (counts, written), record);
                }
                self.replace_parts(ctx, at, record, before);
            }
        }
        ctx.engine.write(at, record);
    }

    /// This record is about to become the state of its key, in place of that manifest.
    fn replace_parts<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &KeyRef<'_>,
        record: &Record<'_>,
        before: Option<ManifestBody>,
    ) {
        let next = manifest_in(at.key, record);
        if let Some(next) = next
            && !ctx.mutant.is(Mutant::AbandonSealed)
        {
            self.uploads.close(&name(at.key, next.upload()));
        }
        if let Some(before) = before
            && next.map(|next| next.upload()) != Some(before.upload())
        {
            self.leave_to_readers(ctx, at.key, &before);
        }
    }

    /// A write was committed when its key had a newer state already: if it is a manifest, it never
    /// will be the value, and no other write names its upload.
    pub(crate) fn pass_over<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let Some(manifest) = write.manifest() else { return };
        self.uploads.close(&name(write.key, manifest.upload()));
        if !self.holds_upload(ctx, &write.header, write.key, manifest.upload()) {
            self.leave_to_readers(ctx, write.key, &manifest);
        }
    }

    fn leave_to_readers<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        manifest: &ManifestBody,
    ) {
        if !ctx.mutant.is(Mutant::KeepParts)
            && self.uploads.replaced(key, manifest, ctx.now + ctx.part_times.grace)
        {
            let name = replaced_name(&name(key, manifest.upload()));
            ctx.engine.note(self.member.id(), &name, Some(&[]));
        }
    }

    /// A record was written. If it is a part's, its upload goes on.
    pub(crate) fn see_part<E: Engine>(
        &mut self,
        ctx: &Context<'_, E>,
        at: &KeyRef<'_>,
        record: &Record<'_>,
    ) {
        let Some(part) = PartKey::parse(at.key) else { return };
        let check_at = ctx.now + ctx.part_times.idle;
        let name = name(part.key, part.upload);
        self.uploads.grow(&name, record.value.len());
        let counted = self.uploads.open.get(&name).copied().unwrap_or(0);
        self.uploads.open.insert(name.clone(), check_at, counted);
        if !self.member.is_head() {
            return;
        }
        let Some(keyspace) = ctx.directory.keyspace(at.keyspace) else { return };
        // Most parts come in order, but not all: the next ones may be here already.
        let next = (counted..counted + COUNT_EACH)
            .find(|index| !self.has_part(ctx, keyspace, PartKey { index: *index, ..part }));
        let counted = next.unwrap_or(counted + COUNT_EACH);
        self.uploads.open.insert(name, check_at, counted);
    }

    /// A record was copied. A part of a value that is here already is no upload's any more; if the
    /// manifest comes later, it says so then.
    pub(crate) fn see_copied_part<E: Engine>(
        &mut self,
        ctx: &Context<'_, E>,
        at: &KeyRef<'_>,
        record: &Record<'_>,
    ) {
        let Some(part) = PartKey::parse(at.key) else { return };
        let Some(keyspace) = ctx.directory.keyspace(at.keyspace) else { return };
        let of = place(keyspace, part.key);
        if !self.holds_upload(ctx, &of, part.key, part.upload) {
            self.see_part(ctx, at, record);
        }
    }

    /// Bytes of parts of uploads that are not values yet.
    pub(crate) fn upload_bytes(&self) -> u64 {
        self.uploads.bytes()
    }

    /// Uploads that are not values, or not any more, and whose parts are still here.
    pub(crate) fn strays_of_uploads(&self) -> usize {
        self.uploads.len()
    }
}

/// Parts that one manifest is compared with at a time: about a millisecond. Those that came in
/// order have been counted before.
const COUNT_MAX: u32 = 4_096;

/// Parts counted for each that is committed.
const COUNT_EACH: u32 = 4;
