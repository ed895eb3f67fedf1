//! Parts that are no value's: found, given up, and dropped.

use super::{Drop, Open, name, place};
use crate::engine::{Engine, Interval, Record};
use crate::replica::{Context, PENDING_MAX, Replica, Write};
use cluster::{Keyspace, Plant};
use std::ops::{Bound, ControlFlow};
use std::time::Duration;
use wire::{Effect, Header, PartKey, UploadBody};

impl Replica {
    /// The head has given an upload up. The tombstone of its first part says so to whoever takes
    /// this member's place, or holds some of the parts still: of all that is left, nobody makes a
    /// value any more.
    pub(crate) fn commit_abandon<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
    ) {
        let Some((upload, _)) = UploadBody::split(write.value) else { return };
        let Some(keyspace) = ctx.directory.keyspace(self.partition.keyspace) else { return };
        let name = name(write.key, upload);
        let at = place(keyspace, &name);
        let at = self.key_ref(&at, &name);
        if ctx.plant == Some(Plant::AbandonUnrecorded) {
            ctx.engine.remove(&at);
        } else if !self.is_superseded(ctx, &at, write.version()) {
            let (version, expiry_ms) = (write.version(), write.fixed.expiry_ms);
            ctx.engine.write(&at, &Record { version, expiry_ms, tombstone: true, value: &[] });
        }
        self.uploads.open.remove(&name);
        if ctx.plant != Some(Plant::KeepParts) {
            let drop = Drop { due: ctx.now, next: 0, parts: None };
            self.uploads.drops.entry(name).or_insert(drop);
        }
    }

    /// Whether parts are left here of an upload whose tombstone this is: then it stays.
    pub(crate) fn tells_of_parts<E: Engine>(&self, ctx: &Context<'_, E>, key: &[u8]) -> bool {
        let keyspace = ctx.directory.keyspace(self.partition.keyspace);
        PartKey::parse(key).zip(keyspace).is_some_and(|(part, keyspace)| {
            let first = PartKey { index: 0, ..part };
            !self.find_parts(ctx, keyspace, &first.to_bytes(), 1).is_empty()
        })
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
            ctx.engine.scan(&interval, |key, record| {
                seen += 1;
                let is_part = !record.tombstone && PartKey::parse(key).is_some();
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
        let upload = part.upload.to_bytes();
        self.order_unasked(ctx, at, part.key, base, Effect::Abandon, &upload);
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

    /// Some parts of an upload that was given up: all that there may be after the first.
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
            start: Bound::Excluded(name),
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
}

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
