//! The list of uploads of which a member has parts: those that are not sealed, and those whose
//! parts go, each with a time at which something becomes of it.

use crate::replica::big::parts::name;
use crate::replica::shares::{Shares, are_one_party};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use wire::{ManifestBody, PartKey, UploadBody};

/// Entries by the name of an upload, each with a time.
#[derive(Debug)]
pub(crate) struct Timed<T> {
    entries: BTreeMap<Box<[u8]>, (Instant, T)>,
    times: BTreeSet<(Instant, Box<[u8]>)>,
}

impl<T> Default for Timed<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), times: BTreeSet::new() }
    }
}

impl<T> Timed<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        self.entries.get(name).map(|(_, entry)| entry)
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.entries.contains_key(name)
    }

    pub(crate) fn insert(&mut self, name: Box<[u8]>, at: Instant, entry: T) {
        if let Some((before, _)) = self.entries.insert(name.clone(), (at, entry)) {
            self.times.remove(&(before, name.clone()));
        }
        self.times.insert((at, name));
    }

    /// Moves the time of an entry that is there.
    pub(crate) fn move_to(&mut self, name: &[u8], at: Instant) {
        if let Some((before, _)) = self.entries.get_mut(name) {
            let before = std::mem::replace(before, at);
            self.times.remove(&(before, name.into()));
            self.times.insert((at, name.into()));
        }
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<T> {
        let (at, entry) = self.entries.remove(name)?;
        self.times.remove(&(at, name.into()));
        Some(entry)
    }

    /// The entry with the earliest time.
    pub(crate) fn first(&self) -> Option<(Instant, &[u8])> {
        self.times.first().map(|(at, name)| (*at, &**name))
    }

    /// Those whose time has come, the earliest first.
    pub(crate) fn due(&self, now: Instant) -> impl Iterator<Item = &[u8]> {
        self.times.iter().take_while(move |(at, _)| *at <= now).map(|(_, name)| &**name)
    }

    /// The names of all.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.keys().map(|name| &**name)
    }

    /// Those of one key.
    pub(crate) fn of_key(&self, key: &[u8]) -> impl Iterator<Item = (&[u8], Instant, &T)> {
        let first = name(key, UploadBody { client: 0, number: 0 });
        let last = name(key, UploadBody { client: u64::MAX, number: u64::MAX });
        let range = (Bound::Included(first), Bound::Included(last));
        self.entries.range(range).map(|(name, (at, entry))| (&**name, *at, entry))
    }
}

/// What a partition's member knows of parts without a manifest. Uploads are named by the key that
/// their part 0 has.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    /// Not seen to be sealed; looked at when no part has come for so long. How many of the first
    /// parts are known to be committed here.
    pub(crate) open: Timed<u32>,
    /// Bytes of the parts of those that came since this member knows of them.
    sizes: BTreeMap<Box<[u8]>, u64>,
    /// How many of those bytes are whose.
    shares: Shares,
    /// Replaced, and left for a while for those who read them: how many parts there are.
    waiting: Timed<u32>,
    waiting_parts: u64,
    going: BTreeMap<Box<[u8]>, Going>,
    /// The last one that was dealt with.
    went: Box<[u8]>,
}

/// An upload whose parts go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Going {
    /// Parts below this one are gone.
    pub(crate) next: u32,
    /// How many there were, if this incarnation knows it; else those go that are found.
    pub(crate) parts: Option<u32>,
    /// Whether it was a value, which is on record until no part is left.
    pub(crate) replaced: bool,
}

impl Uploads {
    /// Uploads that are not values, or not any more.
    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.waiting.len() + self.going.len()
    }

    /// A part of so many bytes has come.
    pub(crate) fn grow(&mut self, name: &[u8], bytes: usize) {
        let bytes = bytes as u64;
        self.shares.add(client_of(name), bytes);
        match self.sizes.get_mut(name) {
            Some(size) => *size += bytes,
            None => drop(self.sizes.insert(name.into(), bytes)),
        }
    }

    /// An upload is a value now, or will never be.
    pub(crate) fn close(&mut self, name: &[u8]) {
        self.open.remove(name);
        if let Some(bytes) = self.sizes.remove(name) {
            self.shares.take(client_of(name), bytes);
        }
    }

    /// Bytes of parts of uploads that are not sealed.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// Whether this client may send more parts when there is room for so many bytes.
    pub(crate) fn may_send(&self, client: u64, free: u64) -> bool {
        self.shares.may_grow(client, free)
    }

    /// Whether this client may begin one more, if there is room for any.
    fn may_open(&self, client: u64) -> bool {
        let free = OPEN_MAX.saturating_sub(self.open.len());
        if self.open.len() < free {
            return true;
        }
        let mut shares = Shares::default();
        self.open.names().for_each(|name| shares.add(client_of(name), 1));
        shares.may_grow(client, free as u64)
    }

    /// Whether parts of it go, or will.
    pub(crate) fn is_dropped(&self, name: &[u8]) -> bool {
        self.going.contains_key(name) || self.waiting.contains(name)
    }

    /// A value was replaced; tells whether that is news. Its parts are left to readers until then,
    /// unless that would be too many: then those of the values that were replaced before it go at
    /// once.
    pub(crate) fn replaced(&mut self, key: &[u8], manifest: &ManifestBody, until: Instant) -> bool {
        let (name, parts) = (name(key, manifest.upload()), manifest.parts());
        if self.is_dropped(&name) {
            return false;
        }
        self.waiting.insert(name, until, parts);
        self.waiting_parts += u64::from(parts);
        let of_key = self.waiting.of_key(key);
        let mut of_key: Vec<(Instant, Box<[u8]>, u32)> =
            of_key.map(|(name, at, parts)| (at, name.into(), *parts)).collect();
        of_key.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept = 0;
        for (before, (_, name, parts)) in of_key.iter().enumerate() {
            kept += u64::from(*parts);
            let too_many = before >= WAITING_OF_KEY_MAX || kept > WAITING_PARTS_OF_KEY_MAX;
            if before > 0 && too_many {
                self.wait_no_longer(name);
            }
        }
        while self.waiting_parts > WAITING_PARTS_MAX && self.waiting.len() > 1 {
            let Some(name) = self.waiting.first().map(|(_, name)| Box::from(name)) else { break };
            self.wait_no_longer(&name);
        }
        true
    }

    /// Those that were values and whose parts are not all gone.
    pub(crate) fn all_replaced(&self) -> impl Iterator<Item = &[u8]> {
        let going = self.going.iter().filter(|(_, going)| going.replaced).map(|(name, _)| &**name);
        self.waiting.names().chain(going)
    }

    /// A value was replaced in an earlier incarnation, and not all of its parts are gone.
    pub(crate) fn go_on_dropping(&mut self, name: &[u8]) {
        self.going.insert(name.into(), Going { next: 0, parts: None, replaced: true });
    }

    fn wait_no_longer(&mut self, name: &[u8]) {
        if let Some(parts) = self.waiting.remove(name) {
            self.waiting_parts -= u64::from(parts);
            self.going.insert(name.into(), Going { next: 0, parts: Some(parts), replaced: true });
        }
    }

    /// An upload was given up.
    pub(crate) fn given_up(&mut self, name: Box<[u8]>) {
        if !self.is_dropped(&name) {
            self.going.insert(name, Going { next: 0, parts: None, replaced: false });
        }
    }

    /// An upload whose parts are to go now, each in its turn.
    pub(crate) fn next_going(&mut self, now: Instant) -> Option<(Box<[u8]>, Going)> {
        if let Some((at, name)) = self.waiting.first()
            && at <= now
        {
            let name = Box::from(name);
            self.wait_no_longer(&name);
        }
        let after = (Bound::Excluded(&*self.went), Bound::Unbounded);
        let next = self.going.range::<[u8], _>(after).next();
        let (name, going) = next.or_else(|| self.going.first_key_value())?;
        self.went = name.clone();
        Some((name.clone(), *going))
    }

    /// So much of it has gone.
    pub(crate) fn have_gone(&mut self, name: &[u8], next: u32, over: bool) {
        if over {
            self.going.remove(name);
        } else if let Some(going) = self.going.get_mut(name) {
            going.next = next;
        }
    }

    /// Whether there is room for one more upload of this key that is not sealed, and this client
    /// may have it. If not, those in its way to which no part was added since `idle_since` (which
    /// is said as when they are due, as is `now`) are looked at now: they are given up before their
    /// time.
    pub(crate) fn make_room(
        &mut self,
        (key, client): (&[u8], u64),
        idle_since: Instant,
        now: Instant,
    ) -> bool {
        let of_key = self.open.of_key(key).take(OPEN_OF_KEY_MAX);
        let of_key: Vec<(Instant, Box<[u8]>)> =
            of_key.map(|(name, at, _)| (at, name.into())).collect();
        let (full, may_open) = (self.open.len() >= OPEN_MAX, self.may_open(client));
        if may_open && of_key.len() < OPEN_OF_KEY_MAX {
            return true;
        }
        let idle: Vec<Box<[u8]>> = if !may_open {
            let in_its_way = |name: &&[u8]| full || are_one_party(client_of(name), client);
            let idle = self.open.due(idle_since).filter(in_its_way);
            idle.take(GIVEN_UP_AT_ONCE).map(Box::from).collect()
        } else {
            of_key.into_iter().filter(|(at, _)| *at <= idle_since).map(|(_, name)| name).collect()
        };
        for name in idle {
            self.open.move_to(&name, now);
        }
        false
    }
}

/// The client whose upload has this name.
fn client_of(name: &[u8]) -> u64 {
    PartKey::parse(name).map_or(0, |part| part.upload.client)
}

/// Uploads of a partition that may be under way. At about 150 bytes each this is 150 KB; whoever
/// comes beyond is told *overloaded* until some are sealed or given up.
const OPEN_MAX: usize = 1_024;

/// The same of one key, so that it does not take the room of all others: more than so many who
/// write one key at the same time can only wait for each other.
const OPEN_OF_KEY_MAX: usize = 256;

/// Uploads that are looked at before their time because there is no room for another.
const GIVEN_UP_AT_ONCE: usize = 64;

/// Values of one key that were replaced and are left to readers. Whoever reads one of 5 KB takes
/// two round trips, in which so many writers do not replace it so often; a value of which a part
/// is gone is read from the beginning, so that one more is waited for, and nothing is lost.
const WAITING_OF_KEY_MAX: usize = 64;

/// Their parts, but for those of the last: 5 MB.
const WAITING_PARTS_OF_KEY_MAX: u64 = 4_096;

/// Parts of all values of a partition that were replaced and are left to readers: 80 MB.
const WAITING_PARTS_MAX: u64 = 65_536;

/// The key of the last part that there can be of any upload of this part's key.
pub(crate) fn last_of_key(part: PartKey<'_>) -> Vec<u8> {
    let upload = UploadBody { client: u64::MAX, number: u64::MAX };
    PartKey { upload, index: u32::MAX, ..part }.to_bytes()
}

/// The key of the first one.
pub(crate) fn first_of_key(part: PartKey<'_>) -> Vec<u8> {
    PartKey { upload: UploadBody { client: 0, number: 0 }, index: 0, ..part }.to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn manifest(number: u64, parts: u32) -> ManifestBody {
        ManifestBody { len: parts.into(), part_len: 1, checksum: 0, client: 1, number }
    }

    fn of_client(key: &[u8], client: u64) -> Box<[u8]> {
        name(key, UploadBody { client, number: 1 })
    }

    fn at(ms: u64) -> Instant {
        Instant::from_unix_ms(1_000_000 + ms)
    }

    #[test]
    fn of_a_key_that_is_replaced_again_and_again_few_parts_wait() {
        let mut uploads = Uploads::default();
        for n in 0..3_000 {
            uploads.replaced(b"k", &manifest(n, 4), at(n));
            assert!(uploads.waiting.len() <= WAITING_OF_KEY_MAX);
        }
        assert_eq!((uploads.waiting.len(), uploads.waiting_parts), (64, 256));
        assert_eq!(uploads.going.len(), 3_000 - 64, "the others go at once");
        let waits = |n| uploads.waiting.contains(&name(b"k", manifest(n, 4).upload()));
        assert!(waits(2_999) && waits(2_936) && !waits(2_935), "the oldest go");
        for n in 0..3 {
            uploads.replaced(b"large", &manifest(n, 100_000), at(5_000 + n));
        }
        let waits = |n| uploads.waiting.contains(&name(b"large", manifest(n, 1).upload()));
        assert!(waits(2) && !waits(1), "of large ones the last waits, whatever its length");
    }

    #[test]
    fn of_all_keys_together_no_more_parts_wait_than_may() {
        let mut uploads = Uploads::default();
        for n in 0..100 {
            uploads.replaced(format!("k{n}").as_bytes(), &manifest(n, 4_000), at(n));
            assert!(uploads.waiting_parts <= WAITING_PARTS_MAX);
        }
        assert_eq!(uploads.waiting.len(), 16);
        let mut gone = 0;
        while let Some((name, _)) = uploads.next_going(at(99)) {
            uploads.have_gone(&name, 0, true);
            gone += 1;
        }
        assert_eq!((gone, uploads.len(), uploads.waiting_parts), (100, 0, 0));
    }

    #[test]
    fn where_there_is_no_room_those_that_are_idle_longest_are_given_up() {
        let mut uploads = Uploads::default();
        let idle = Duration::from_secs(120);
        for n in 0..1_024 {
            let (key, client) = (format!("k{}", n / 100), 1 + n);
            assert!(uploads.make_room((key.as_bytes(), client), at(0), at(n)), "upload {n}");
            uploads.open.insert(of_client(key.as_bytes(), client), at(n) + idle, 0);
        }
        let now = at(1_024 + 5_000);
        assert!(!uploads.make_room((b"new", 9_999), at(9) + idle, now));
        assert_eq!(uploads.open.due(now).count(), 10, "those that are idle");
        let mut uploads = Uploads::default();
        for n in 0..256 {
            assert!(uploads.make_room((b"k", 1), at(0), at(n)), "upload {n}");
            uploads.open.insert(name(b"k", manifest(n, 1).upload()), at(n) + idle, 0);
        }
        assert!(!uploads.make_room((b"k", 1), at(9) + idle, now));
        assert_eq!(uploads.open.due(now).count(), 10);
        assert!(uploads.make_room((b"l", 1), at(9) + idle, now), "another key has room");
    }

    #[test]
    fn a_client_has_as_many_uploads_and_bytes_of_them_as_it_leaves_free() {
        let mut uploads = Uploads::default();
        let idle = Duration::from_secs(120);
        let key = |n: u64| format!("k{}", n / 100);
        for n in 0..512 {
            assert!(uploads.make_room((key(n).as_bytes(), 1), at(0), at(n)), "upload {n}");
            let name = name(key(n).as_bytes(), manifest(n, 1).upload());
            uploads.grow(&name, 10);
            uploads.open.insert(name, at(n) + idle, 0);
        }
        uploads.open.insert(of_client(b"other", 2), at(0) + idle, 0);
        assert!(!uploads.make_room((b"new", 1), at(4) + idle, at(6_000)), "half of them are its");
        assert!(uploads.make_room((b"new", 2), at(0), at(512)));
        assert_eq!(uploads.open.due(at(6_000)).count(), 5, "its own make room for it");
        assert!(uploads.may_send(1, 5_121) && !uploads.may_send(1, 5_120));
        assert!(uploads.may_send(2, 1) && !uploads.may_send(2, 0));
        uploads.close(&name(key(0).as_bytes(), manifest(0, 1).upload()));
        assert!(uploads.may_send(1, 5_111) && !uploads.may_send(1, 5_110));
        uploads.close(&name(key(1).as_bytes(), manifest(1, 1).upload()));
        assert_eq!(uploads.bytes(), 5_100);
        assert!(uploads.may_send(1, 5_101) && !uploads.may_send(1, 5_100));
    }

    #[test]
    fn uploads_of_a_key_are_told_from_those_of_keys_that_begin_with_it() {
        let mut timed = Timed::default();
        for key in [&b"a"[..], b"a\0", b"aa", b"b"] {
            timed.insert(name(key, manifest(3, 1).upload()), at(0), ());
        }
        assert_eq!(timed.of_key(b"a").count(), 1);
    }
}
