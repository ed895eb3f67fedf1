//! Parts that are no value's: found, given up, and dropped.

use crate::engine::{Engine, Interval, Record};
use crate::replica::Replica;
use crate::replica::big::parts::name;
use crate::replica::member::place;
use crate::replica::notes::replaced_name;
use crate::replica::write::Write;
use crate::shard::context::Context;
use cluster::{Keyspace, Mutant};
use std::ops::{Bound, ControlFlow};
use std::time::Duration;
use wire::{Effect, Header, PartKey, UploadBody, Version};

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
        let Some(keyspace) = ctx.directory.keyspace(self.member.partition.keyspace) else { return };
        let name = name(write.key, upload);
        let at = place(keyspace, &name);
        let at = self.member.key_ref(&at, &name);
        if ctx.mutant.is(Mutant::AbandonUnrecorded) {
            ctx.engine.remove(&at);
        } else if !self.is_superseded(ctx, &at, write.version()) {
            let (version, expiry_ms) = (write.version(), write.fixed.expiry_ms);
            ctx.engine.write(&at, &Record { version, expiry_ms, tombstone: true, value: &[] });
        }
        self.uploads.close(&name);
        if !ctx.mutant.is(Mutant::KeepParts) {
            self.uploads.given_up(name);
        }
    }

    /// Whether parts are left here of an upload whose tombstone this is: then it stays.
    pub(crate) fn tells_of_parts<E: Engine>(&self, ctx: &Context<'_, E>, key: &[u8]) -> bool {
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        PartKey::parse(key).zip(keyspace).is_some_and(|(part, keyspace)| {
            let first = PartKey { index: 0, ..part };
            !self.find_parts(ctx, keyspace, &first.to_bytes(), 1).is_empty()
        })
    }

    /// Another member has parts that it knows no use of.
    pub(crate) fn handle_stray<E: Engine>(&mut self, ctx: &Context<'_, E>, part: PartKey<'_>) {
        let name = name(part.key, part.upload);
        if !self.uploads.open.contains(&name) {
            self.uploads.open.insert(name, ctx.now, 0);
        }
    }

    /// What an earlier incarnation has left here has this part, perhaps as one of a value.
    pub(crate) fn found_part<E: Engine>(&mut self, ctx: &Context<'_, E>, part: PartKey<'_>) {
        let Some(keyspace) = ctx.directory.keyspace(self.member.partition.keyspace) else { return };
        let name = name(part.key, part.upload);
        let known = self.uploads.is_dropped(&name) || self.uploads.open.contains(&name);
        if known || self.holds_upload(ctx, &place(keyspace, part.key), part.key, part.upload) {
            return;
        }
        let at = place(keyspace, &name);
        let first = ctx.engine.written(&self.member.key_ref(&at, &name));
        if first.is_some_and(|first| first.tombstone) {
            self.uploads.given_up(name);
        } else {
            self.uploads.open.insert(name, ctx.now + ctx.part_times.idle, 0);
        }
    }

    /// Time has passed: gives uploads up, and drops parts, as many as `left` says.
    pub(crate) fn look_after_parts<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        left: &mut usize,
    ) {
        if !E::BIG || self.uploads.len() == 0 {
            return;
        }
        let Some(keyspace) = ctx.directory.keyspace(self.member.partition.keyspace) else { return };
        self.check_open(ctx, keyspace, left);
        self.drop_parts(ctx, keyspace, left);
    }

    /// Whether a record is a part that goes, which no learner needs.
    pub(crate) fn is_part_that_goes(&self, key: &[u8]) -> bool {
        let part = PartKey::parse(key).filter(|_| self.uploads.len() > 0);
        part.is_some_and(|part| self.uploads.is_dropped(&name(part.key, part.upload)))
    }

    fn check_open<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        keyspace: &Keyspace,
        left: &mut usize,
    ) {
        let due = self.uploads.open.due(ctx.now).take(CHECK_MAX.min(*left));
        let due: Vec<Box<[u8]>> = due.map(Box::from).collect();
        *left -= due.len();
        for name in due {
            let part = PartKey::parse(&name).expect("uploads are named by keys of parts");
            let at = place(keyspace, part.key);
            let sealed = !ctx.mutant.is(Mutant::AbandonSealed);
            if sealed && self.holds_upload(ctx, &at, part.key, part.upload) {
                self.uploads.close(&name);
                continue;
            }
            self.uploads.open.move_to(&name, ctx.now + ctx.part_times.idle.min(CHECK_AGAIN));
            if !self.member.is_head() {
                self.tell_stray(ctx, &place(keyspace, &name), &name);
            } else if self.member.partition.open
                && self.pending.has_room_for(1)
                && !self.pending.on_key(part.key).any(|write| write.names(part.upload))
            {
                self.abandon(ctx, &at, part);
            }
        }
    }

    fn abandon<E: Engine>(&mut self, ctx: &mut Context<'_, E>, at: &Header, part: PartKey<'_>) {
        let committed =
            ctx.engine.version_written(&self.member.key_ref(at, part.key)).unwrap_or(Version::NONE);
        let base = self.pending.newest_version(part.key).unwrap_or(Version::NONE).max(committed);
        let upload = part.upload.to_bytes();
        self.order_unasked(ctx, at, part.key, base, Effect::Abandon, &upload);
    }

    fn drop_parts<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        keyspace: &Keyspace,
        left: &mut usize,
    ) {
        while *left > 0 {
            let Some((name, going)) = self.uploads.next_going(ctx.now) else { return };
            let part = PartKey::parse(&name).expect("uploads are named by keys of parts");
            let (most, at) = (u32::try_from(*left).unwrap_or(u32::MAX), place(keyspace, part.key));
            let (next, over) = match going.parts {
                Some(parts) => {
                    let to = parts.min(going.next.saturating_add(most));
                    for index in going.next..to {
                        self.remove_part(ctx, keyspace, &PartKey { index, ..part }.to_bytes());
                    }
                    *left -= (to - going.next) as usize;
                    (to, to == parts)
                }
                // Of a value that is there a store cannot rightly say that it was replaced.
                None if going.replaced && self.holds_upload(ctx, &at, part.key, part.upload) => {
                    *left -= 1;
                    (0, true)
                }
                None => {
                    let found = self.find_parts(ctx, keyspace, &name, most);
                    found.iter().for_each(|key| self.remove_part(ctx, keyspace, key));
                    let over = found.len() < *left;
                    // The first one of an upload that was given up says so.
                    if over && going.replaced && self.has_part(ctx, keyspace, part) {
                        self.remove_part(ctx, keyspace, &name);
                    }
                    // One that has none left is work, too.
                    *left -= found.len().max(1);
                    (0, over)
                }
            };
            if over && going.replaced {
                ctx.engine.note(self.member.id(), &replaced_name(&name), None);
            }
            self.uploads.have_gone(&name, next, over);
        }
    }

    fn remove_part<E: Engine>(&self, ctx: &mut Context<'_, E>, keyspace: &Keyspace, key: &[u8]) {
        let at = place(keyspace, key);
        ctx.engine.remove(&self.member.key_ref(&at, key));
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
            partition: self.member.id(),
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

/// Uploads looked at at once.
const CHECK_MAX: usize = 64;

/// When an upload was given up and is still there, or nobody listened.
const CHECK_AGAIN: Duration = Duration::from_secs(5);
