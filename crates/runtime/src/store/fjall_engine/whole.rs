//! What of a database can be seen to be whole before fjall is let in.
//!
//! fjall takes a journal to end where it cannot be read, cuts it off there, removes what it then
//! knows no use for, and does not look at the checksums of its manifests. After a crash that is
//! right; a journal in which whole batches come after one that is not was not left by a crash. So
//! what is damaged is left as it is, and said to be so.
//!
//! The layout is that of fjall 3 (`journal/entry.rs`), of lsm-tree 3 (`version/persist.rs`) and of
//! sfa 1 (`toc`, `trailer`).

use super::SyncPolicy;
use crate::store::StoreError;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The keyspaces of a database by their numbers: fjall's own, and then ours in the order in which
/// they were created.
const KEYSPACES: std::ops::RangeInclusive<u8> = 0..=4;

/// What fjall's `version` begins with; another number is another format, which fjall says.
const MAGIC: &[u8] = b"FJL";

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";

/// What a table ends with: this, version and kind of checksum, checksum of the list of its
/// sections, where that begins, and how long it is.
const TABLE_MAGIC: &[u8] = b"SFA!";
const TABLE_TRAILER_LEN: usize = 4 + 2 + 16 + 8 + 8;

/// What that list begins with, before the number of its entries.
const SECTIONS_MAGIC: &[u8] = b"TOC!";
const SECTIONS_HEAD_LEN: usize = 4 + 4;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// What the journals hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journaled {
    /// All batches up to the one of this number.
    UpTo(u64),
    /// Nothing, and nothing was ever taken out of them.
    Nothing,
    /// Nothing, as it may be when everything is in tables.
    Unknown,
}

impl Journaled {
    /// Whether tables that hold what batches up to this one have written can stand beside them: a
    /// batch goes to the journal first, and stays there until all that it wrote is in tables.
    pub(super) fn explains(self, in_tables: u64) -> bool {
        match self {
            Self::UpTo(last) => in_tables <= last,
            Self::Nothing => false,
            Self::Unknown => true,
        }
    }
}

/// Looks at the database in a shard's directory; says what its journals hold.
///
/// # Errors
///
/// If it is damaged, or cannot be read.
pub(super) fn check(dir: &Path, policy: SyncPolicy) -> Result<Journaled, StoreError> {
    let fjall = dir.join("store/fjall");
    let damaged = |file: &Path, why: &str| {
        let name = file.strip_prefix(dir).unwrap_or(file).display();
        Err(StoreError::damaged(dir, format!("{name}: {why}")))
    };
    let marker = fjall.join("version");
    if !read(&marker)?.is_some_and(|bytes| bytes.starts_with(MAGIC)) {
        return damaged(&marker, "it is missing, or not what it was");
    }
    for keyspace in KEYSPACES {
        let place = fjall.join(format!("keyspaces/{keyspace}"));
        let current = place.join("current");
        let Some((version, sum)) = read(&current)?.as_deref().and_then(current_of) else {
            return damaged(&current, "it is missing, or not what it was");
        };
        let manifest = place.join(format!("v{version}"));
        if read(&manifest)?.is_none_or(|bytes| xxh3_128(&bytes) != sum) {
            return damaged(&manifest, "it is missing, or its checksum is wrong");
        }
        for table in tables(&place)? {
            if claims_too_much(&table).map_err(|why| StoreError::io(&table, why))? {
                return damaged(&table, "it has fewer sections than it says");
            }
        }
    }
    let journals = journals(&fjall)?;
    let Some((active, sealed)) = journals.split_last() else {
        return damaged(&fjall, "it has no journal");
    };
    for (before, after) in journals.iter().zip(sealed.iter().skip(1).chain([active])) {
        if before.0 + 1 < after.0 {
            return damaged(&before.1, "the journal after it is missing");
        }
    }
    let mut last = None;
    for (_, path) in sealed {
        let bytes = read(path)?.unwrap_or_default();
        let (whole, number) = whole(&bytes);
        if whole == 0 || used(&bytes) > whole {
            return damaged(path, "not all of it can be read");
        }
        last = last.max(number);
    }
    let bytes = read(&active.1)?.unwrap_or_default();
    if let Some((from, to)) = after_damage(&bytes)
        && (policy == SyncPolicy::Always || !has_lost_sector(&bytes, from, to))
    {
        let why = format!("bytes {from} to {to} cannot be read, and what follows can");
        return damaged(&active.1, &why);
    }
    let empty = if active.0 == 0 { Journaled::Nothing } else { Journaled::Unknown };
    Ok(last.max(whole(&bytes).1).map_or(empty, Journaled::UpTo))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(StoreError::io(path, why)),
    }
}

/// Journals by their numbers.
fn journals(fjall: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let io = |why| StoreError::io(fjall, why);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(fjall).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".jnl")?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}

/// The tables of a keyspace.
fn tables(keyspace: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let place = keyspace.join("tables");
    let io = |why| StoreError::io(&place, why);
    let entries = match std::fs::read_dir(&place) {
        Ok(entries) => entries,
        // fjall says it if that is wrong.
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(why) => return Err(io(why)),
    };
    entries.map(|entry| Ok(entry.map_err(io)?.path())).collect()
}

/// Whether a table says to have more sections than it has bytes for. fjall makes room for them
/// before it looks at the checksum, which ends the process. What else is wrong with a table, it
/// notices; one that was being written in a crash has no trailer, and counts for nothing.
fn claims_too_much(table: &Path) -> io::Result<bool> {
    let mut file = File::open(table)?;
    let len = file.metadata()?.len();
    let Some(trailer_at) = len.checked_sub(TABLE_TRAILER_LEN as u64) else { return Ok(false) };
    let mut trailer = [0; TABLE_TRAILER_LEN];
    file.seek(SeekFrom::Start(trailer_at))?;
    file.read_exact(&mut trailer)?;
    let sections_at = trailer.strip_prefix(TABLE_MAGIC).and_then(|rest| {
        let (_version_kind_and_sum, rest) = rest.split_first_chunk::<18>()?;
        Some(u64::from_le_bytes(*rest.first_chunk()?))
    });
    let Some(sections_at) = sections_at.filter(|at| *at < trailer_at) else { return Ok(false) };
    let mut head = Vec::with_capacity(SECTIONS_HEAD_LEN);
    file.seek(SeekFrom::Start(sections_at))?;
    file.take(SECTIONS_HEAD_LEN as u64).read_to_end(&mut head)?;
    let count = head.strip_prefix(SECTIONS_MAGIC).and_then(|rest| rest.first_chunk());
    Ok(count.is_some_and(|count| u64::from(u32::from_le_bytes(*count)) > trailer_at - sections_at))
}

/// The number of the manifest that counts, and its checksum.
fn current_of(bytes: &[u8]) -> Option<(u64, u128)> {
    let (version, bytes) = bytes.split_first_chunk()?;
    let (sum, kind) = bytes.split_first_chunk()?;
    (kind == [0]).then(|| (u64::from_le_bytes(*version), u128::from_le_bytes(*sum)))
}

/// Journals are made as long as they may become: the rest is zeros.
fn used(journal: &[u8]) -> usize {
    journal.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// How far the batches from the beginning on are whole, and the number of the last.
fn whole(journal: &[u8]) -> (usize, Option<u64>) {
    let (mut at, mut last) = (0, None);
    while let Some((end, number)) = batch_end(journal, at) {
        (at, last) = (end, Some(number));
    }
    (at, last)
}

/// From where to where a journal cannot be read, if something that can be comes after that.
fn after_damage(journal: &[u8]) -> Option<(usize, usize)> {
    let journal = journal.get(..used(journal))?;
    let (from, _) = whole(journal);
    let to = (from + 1..journal.len()).find(|at| batch_end(journal, *at).is_some())?;
    Some((from, to))
}

/// Whether a power cut can have left it so: what was not asked for yet goes to the disk in any
/// order, and a sector that did not get there reads as zeros.
fn has_lost_sector(journal: &[u8], from: usize, to: usize) -> bool {
    let sectors = (from.div_ceil(SECTOR)..to / SECTOR).map(|sector| sector * SECTOR);
    let lost = |at: usize| journal.get(at..at + SECTOR).is_some_and(|it| used(it) == 0);
    sectors.into_iter().any(lost)
}

/// Where the batch ends that begins at a place, and its number, if one does and is whole.
fn batch_end(journal: &[u8], at: usize) -> Option<(usize, u64)> {
    let (START, rest) = tag(journal.get(at..)?)? else { return None };
    let (items, rest) = rest.split_first_chunk()?;
    let (number, inside) = rest.split_first_chunk()?;
    let mut rest = inside;
    for _ in 0..u32::from_le_bytes(*items) {
        rest = match tag(rest)? {
            (ITEM, fields) => after_item(fields)?,
            (CLEAR, fields) => fields.split_first_chunk::<8>()?.1,
            _ => return None,
        };
    }
    let items = inside.get(..inside.len() - rest.len())?;
    let (END, rest) = tag(rest)? else { return None };
    let (sum, rest) = rest.split_first_chunk()?;
    let rest = rest.strip_prefix(TRAILER)?;
    let end = (journal.len() - rest.len(), u64::from_le_bytes(*number));
    (u64::from_le_bytes(*sum) == xxh3_64(items)).then_some(end)
}

/// What comes after an item: kind, compression, keyspace, lengths of key, value and value as it
/// was written, and the two.
fn after_item(fields: &[u8]) -> Option<&[u8]> {
    let (_kind_and_compression, fields) = fields.split_first_chunk::<2>()?;
    let (_keyspace, fields) = fields.split_first_chunk::<8>()?;
    let (key_len, fields) = fields.split_first_chunk()?;
    let (_value_len, fields) = fields.split_first_chunk::<4>()?;
    let (written_len, fields) = fields.split_first_chunk()?;
    let len = u64::from(u16::from_le_bytes(*key_len)) + u64::from(u32::from_le_bytes(*written_len));
    fields.get(usize::try_from(len).ok()?..)
}

fn tag(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    Some((*tag, rest))
}
