//! How much room the file system below a data directory has, and what to do when there is little.
//!
//! A store that met a full disk cannot go on: what its journal holds then is unknown. So nothing
//! may be written when there might be no room for it. New data is refused from a floor on, well
//! before that; below it deletes are taken, out of a reserve that was put aside while there was
//! room; and when there is not even room for what the store still has to do by itself, nothing is
//! written at all, and what is there is read, until there is room again.

use crate::memory::parse_bytes;
use crate::private;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::{FsFlags, statvfs};
use serde::de::{self, Deserialize, Deserializer};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wire::Room;

/// From how many free bytes on new data is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinFreeDisk {
    /// A twentieth of the file system, or [`FLOOR_MAX`] if that is less.
    #[default]
    Auto,
    /// So many bytes.
    Bytes(u64),
}

/// The floor of large file systems: more than all stores of a machine write in some seconds.
pub const FLOOR_MAX: u64 = 1 << 30;

/// What a batch and the file system's own records take at most, some times over.
const SLACK: u64 = 2 << 20;

/// What is put aside beyond what stores have to write by themselves: for some ten thousand deletes.
const RESERVE_MIN: u64 = 8 << 20;

/// The most: beyond that a disk is not full, but too small for what lies on it.
const RESERVE_MAX: u64 = 256 << 20;

/// It grows by steps, for each takes some time.
const RESERVE_STEP: u64 = 8 << 20;

/// The file that takes up room until it is needed.
const RESERVE_NAME: &str = "reserve";

impl FromStr for MinFreeDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let bytes = parse_bytes(text).map(Self::Bytes);
        bytes.ok_or_else(|| format!("{text:?} is no size; try 512m, 2g or auto"))
    }
}

impl fmt::Display for MinFreeDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for MinFreeDisk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// For clients.
    pub room: Room,
    /// Nothing can be written at all.
    pub frozen: bool,
    /// Bytes that are free.
    pub free: u64,
    /// From how many on new data is refused.
    pub floor: u64,
}

/// The disk that one or several stores of this process lie on.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    floor: u64,
    /// What all stores here have to write by themselves: what is in memory only, and what they
    /// write anew to tidy up.
    needs: AtomicU64,
    /// Bytes in the reserve; `None` if this file system keeps none.
    reserve: Mutex<Option<u64>>,
    /// What was last found.
    free: AtomicU64,
    room: AtomicU64,
}

/// What one store has said that it needs; taken back with it.
#[derive(Debug)]
pub struct Need {
    disk: Disk,
    bytes: u64,
}

impl Disk {
    /// Watches over this directory, which is made if need be. If there is hardly any room, the
    /// reserve of an earlier incarnation is released, so that stores can be opened.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made or looked at.
    pub fn open(dir: &Path, floor: MinFreeDisk) -> io::Result<Self> {
        private::directory(dir)?;
        private::tighten(&dir.join(RESERVE_NAME))?;
        let found = statvfs(dir)?;
        let size = found.fragment_size() * found.blocks();
        let floor = match floor {
            MinFreeDisk::Auto => (size / 20).min(FLOOR_MAX),
            MinFreeDisk::Bytes(bytes) => bytes,
        };
        let reserve = fs::metadata(dir.join(RESERVE_NAME)).map_or(0, |file| file.len());
        let disk = Self(Arc::new(Shared {
            dir: dir.to_path_buf(),
            floor,
            needs: AtomicU64::new(0),
            reserve: Mutex::new(Some(reserve)),
            free: AtomicU64::new(0),
            room: AtomicU64::new(0),
        }));
        disk.look();
        Ok(disk)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// From how many free bytes on new data is refused.
    #[must_use]
    pub fn floor(&self) -> u64 {
        self.0.floor
    }

    /// A store's part in what has to be written.
    #[must_use]
    pub fn need(&self) -> Need {
        Need { disk: self.clone(), bytes: 0 }
    }

    /// Bytes that are free; `None` if that cannot be told.
    #[must_use]
    pub fn free(&self) -> Option<u64> {
        free(&self.0.dir).map(|(free, _)| free)
    }

    /// Looks how much room there is, takes from the reserve if there is none, and puts some aside
    /// if there is much. To be called before anything is written: it costs a microsecond.
    pub fn look(&self) -> DiskRoom {
        let Some((mut bytes, writable)) = free(&self.0.dir) else {
            let floor = self.0.floor;
            return DiskRoom { room: Room::Shut, frozen: true, free: 0, floor };
        };
        let needs = self.0.needs.load(Ordering::Relaxed) + SLACK;
        if writable && (bytes < needs || bytes >= self.0.floor) {
            bytes = self.adjust_reserve(bytes, needs);
        }
        let frozen = !writable || bytes < needs;
        let room = match bytes {
            _ if frozen || bytes < self.0.floor => Room::Shut,
            _ if bytes < self.0.floor.saturating_mul(2) => Room::Tight,
            _ => Room::Plenty,
        };
        self.tell(room, frozen, bytes);
        let floor = self.0.floor;
        DiskRoom { room, frozen, free: bytes, floor }
    }

    /// Releases or fills the reserve. Gives back what is free then.
    fn adjust_reserve(&self, bytes: u64, needs: u64) -> u64 {
        let mut reserve = self.0.reserve.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.0.dir.join(RESERVE_NAME);
        let Some(held) = *reserve else { return bytes };
        let wanted = needs.saturating_add(RESERVE_MIN).min(RESERVE_MAX);
        let wanted = wanted.next_multiple_of(RESERVE_STEP);
        let lacking = wanted.saturating_sub(held);
        if bytes < needs && held > 0 {
            if let Err(why) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %why, "cannot release the reserve");
            }
            *reserve = Some(0);
        } else if lacking > 0 && bytes >= self.0.floor.saturating_add(lacking) {
            match fill(&path, wanted) {
                Ok(()) => *reserve = Some(wanted),
                Err(why) => {
                    tracing::warn!(
                        path = %path.display(), %why,
                        "cannot put a reserve aside: on a full disk deletes may find no room"
                    );
                    // Nobody needs what there is of it.
                    drop(fs::remove_file(&path));
                    *reserve = None;
                }
            }
        } else {
            return bytes;
        }
        free(&self.0.dir).map_or(bytes, |(free, _)| free)
    }

    /// Logs when what there is room for changes.
    fn tell(&self, room: Room, frozen: bool, bytes: u64) {
        self.0.free.store(bytes, Ordering::Relaxed);
        let now = room as u64 + u64::from(frozen);
        let before = self.0.room.swap(now, Ordering::Relaxed);
        if before == now {
            return;
        }
        let (dir, floor) = (self.0.dir.display(), self.0.floor);
        match now {
            0 => tracing::info!(%dir, free = bytes, "there is room on the disk again"),
            1 => tracing::warn!(%dir, free = bytes, floor, "there is little room on the disk"),
            _ if frozen => tracing::error!(
                %dir, free = bytes,
                "the disk is full: nothing is written until there is room, only read"
            ),
            _ => tracing::error!(
                %dir, free = bytes, floor,
                "the disk is full: only deletes are taken until there is room"
            ),
        }
    }
}

impl Need {
    /// What the whole disk has room for.
    pub fn look(&self) -> DiskRoom {
        self.disk.look()
    }

    /// Bytes that are free, if that can be told.
    #[must_use]
    pub fn free(&self) -> Option<u64> {
        self.disk.free()
    }

    /// The store now has so much to write.
    pub fn set(&mut self, bytes: u64) {
        let needs = &self.disk.0.needs;
        needs.fetch_add(bytes, Ordering::Relaxed);
        needs.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Need {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes that are free below a directory, and whether anything can be written there at all.
fn free(dir: &Path) -> Option<(u64, bool)> {
    let found = statvfs(dir).ok()?;
    let bytes = found.fragment_size() * found.blocks_available();
    Some((bytes, !found.flags().contains(FsFlags::ST_RDONLY)))
}

/// Makes a file take up so many bytes.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::options().create(true).append(true).open(path)?;
    let length = i64::try_from(bytes).map_err(io::Error::other)?;
    fallocate(&file, FallocateFlags::empty(), 0, length)?;
    Ok(())
}
