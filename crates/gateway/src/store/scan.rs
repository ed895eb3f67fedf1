//! All keys: SCAN, KEYS, RANDOMKEY, DBSIZE, FLUSHDB and FLUSHALL.
//!
//! Keys come in the order of their match values, a page at a time, each page from all partitions
//! that it touches; how many they are, the nodes count. So none of this is one step, and what all
//! of it promises is what SCAN promises in Redis: a key that is there from beginning to end is met.

use super::Store;
use super::errors::{Answer, NOT_AN_INTEGER, SYNTAX, not_read};
use super::integers::integer;
use crate::Reply;
use crate::command::Keyed;
use crate::cursors::Meaning;
use crate::glob::{Pattern, Sieve};
use bytes::Bytes;
use client::{KeyCount, Page, PageStart};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Keys of a page, if the command does not say: as in Redis for SCAN.
const SCAN_COUNT: usize = 10;

/// Keys of a page: COUNT is a wish, and more would keep other requests of the client waiting.
const PAGE_MAX: usize = 4096;

/// Keys that KEYS lists. They are held at once.
const LIST_MAX: usize = 1_000_000;
/// Bytes of all these keys: a million of usual length.
const LIST_BYTES_MAX: usize = 64 << 20;

impl Store {
    /// SCAN. The cursor is a number for the place where the next page begins.
    pub(super) async fn scan(&self, cursor: &[u8], options: &[Bytes]) -> Answer {
        let cursor = parse_cursor(cursor)?;
        let Wanted { pattern, count, strings } = Wanted::parse(options)?;
        let page = match self.cursors.meaning(cursor) {
            Meaning::Start(from) => self.page(&from, count).await?,
            Meaning::All(bits) => {
                self.space.page_of(bits, true).await.into_result().map_err(not_read)?
            }
        };
        let next = page.next.as_ref().map_or(0, |next| self.number_of(next)).to_string();
        let (mut sieve, mut keys) = (Sieve::new(&pattern), Vec::new());
        for key in keys_of(page).filter(|_| strings) {
            if sieve.keeps(&key).await {
                keys.push(Reply::Bulk(key.into()));
            }
        }
        Ok(Reply::Array(vec![Reply::Bulk(next.into()), Reply::Array(keys)]))
    }

    /// KEYS.
    pub(super) async fn list(&self, pattern: &[u8]) -> Answer {
        let pattern = read_pattern(pattern)?;
        let (mut sieve, mut found, mut bytes) = (Sieve::new(&pattern), Vec::new(), 0);
        let mut gathering = self.room.gather();
        let mut next = Some(PageStart::FIRST);
        while let Some(from) = next.take() {
            let mut page = self.page(&from, PAGE_MAX).await?;
            next = page.next.take();
            for key in keys_of(page) {
                if sieve.keeps(&key).await {
                    bytes += key.len();
                    gathering.grow(key.len() + size_of::<Reply>())?;
                    found.push(Reply::Bulk(key.into()));
                }
            }
            if found.len() > LIST_MAX || bytes > LIST_BYTES_MAX {
                let text = format!(
                    "ERR KEYS lists at most {LIST_MAX} keys of {LIST_BYTES_MAX} bytes here; use \
                     SCAN"
                );
                return Err(Reply::Error(text.into()));
            }
        }
        Ok(Reply::Array(found))
    }

    /// RANDOMKEY: the first key from a random place on.
    pub(super) async fn any(&self) -> Answer {
        let start = RandomState::new().build_hasher().finish();
        for from in [start & !1, 0].map(PageStart::Half) {
            if let Some(key) = keys_of(self.page(&from, 1).await?).next() {
                return Ok(Reply::Bulk(key.into()));
            }
        }
        Ok(Reply::Null)
    }

    /// DBSIZE.
    pub(super) async fn size(&self) -> Answer {
        let keys = self.key_count().await?.keys;
        Ok(Reply::Integer(i64::try_from(keys).unwrap_or(i64::MAX)))
    }

    /// How many keys there are.
    pub(crate) async fn key_count(&self) -> Answer<KeyCount> {
        self.space.count().await.into_result().map_err(not_read)
    }

    /// FLUSHDB and FLUSHALL: every key is deleted for itself, of this database or of all. Once
    /// begun it goes on to the end, whether or not the client waits for it.
    pub(super) async fn flush(&self, command: Keyed, options: &[Bytes]) -> Answer {
        match options {
            [] => {}
            [how] if matches!(how.to_ascii_lowercase().as_slice(), b"sync" | b"async") => {}
            _ => return Err(SYNTAX),
        }
        let is_meant = |number: u8| command == Keyed::FlushAll || number == self.database;
        let meant = self.databases.iter().filter(|(number, _)| is_meant(*number));
        let stores: Vec<Self> =
            meant.map(|(_, space)| Self { space: space.clone(), ..self.clone() }).collect();
        let flushed = tokio::spawn(async move {
            let mut deleted = 0;
            for store in stores {
                deleted = store.flush_space(deleted).await?;
            }
            Ok(Reply::OK)
        });
        flushed.await.expect("nothing in it panics, and nobody ends it before the gateway")
    }

    /// Deletes all keys, when so many of others have been deleted; how many they are together.
    async fn flush_space(&self, mut deleted: u64) -> Answer<u64> {
        let mut cursor = Some(PageStart::FIRST);
        while let Some(from) = cursor.take() {
            let piece = self.flush_page(&from).await;
            let (next, count) = piece.map_err(|why| unfinished(deleted, &why))?;
            (cursor, deleted) = (next, deleted + count);
        }
        Ok(deleted)
    }

    /// The number by which SCAN goes on there.
    fn number_of(&self, next: &PageStart) -> u64 {
        let half = match next {
            PageStart::Half(half) => *half,
            PageStart::After(key) => {
                let at = self.space.keyspace().match_value(key);
                u64::try_from(at.0 >> 64).expect("half of a match value")
            }
        };
        self.cursors.number(next, half)
    }

    /// Deletes the keys of a page; where the next one begins, and how many keys it had.
    async fn flush_page(&self, from: &PageStart) -> Answer<(Option<PageStart>, u64)> {
        let mut page = self.page(from, PAGE_MAX).await?;
        let next = page.next.take();
        let keys: Vec<Bytes> = keys_of(page).map(Bytes::from).collect();
        self.delete(&keys).await?;
        Ok((next, keys.len() as u64))
    }

    /// About so many keys from a place on.
    async fn page(&self, from: &PageStart, count: usize) -> Answer<Page> {
        self.space.page(from, count, true).await.into_result().map_err(not_read)
    }
}

fn keys_of(page: Page) -> impl Iterator<Item = Vec<u8>> {
    page.entries.into_iter().map(|(key, _)| key)
}

/// What SCAN is to give back.
struct Wanted {
    pattern: Pattern,
    count: usize,
    /// Whether strings are wanted: there is nothing else.
    strings: bool,
}

impl Wanted {
    fn parse(options: &[Bytes]) -> Answer<Self> {
        // The last pattern counts, and only that is read.
        let (mut pattern, mut count, mut strings) = (&b"*"[..], SCAN_COUNT, true);
        let (pairs, rest) = options.as_chunks::<2>();
        for [name, value] in pairs {
            match name.to_ascii_lowercase().as_slice() {
                b"match" => pattern = value,
                b"type" => strings = value.eq_ignore_ascii_case(b"string"),
                b"count" => {
                    let wanted = integer(value).ok_or(NOT_AN_INTEGER)?;
                    count = usize::try_from(wanted).map_err(|_| SYNTAX)?.min(PAGE_MAX);
                    if count == 0 {
                        return Err(SYNTAX);
                    }
                }
                _ => return Err(SYNTAX),
            }
        }
        if !rest.is_empty() {
            return Err(SYNTAX);
        }
        Ok(Self { pattern: read_pattern(pattern)?, count, strings })
    }
}

/// What FLUSHALL says if it did not come to the end.
fn unfinished(deleted: u64, why: &Reply) -> Reply {
    let why = why.error_text().unwrap_or_default();
    let text = format!(
        "ERR {deleted} keys were deleted, and others may be left; say it again to go on: {why}"
    );
    Reply::Error(text.into())
}

fn read_pattern(pattern: &[u8]) -> Answer<Pattern> {
    Pattern::new(pattern).map_err(|why| Reply::Error(format!("ERR {why}").into()))
}

fn parse_cursor(text: &[u8]) -> Answer<u64> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(Reply::error("ERR invalid cursor"))
}
