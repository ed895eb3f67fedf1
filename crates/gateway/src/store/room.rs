//! Memory that commands need for a while: for values that are read to be changed, and for replies
//! that are put together. All stores of a gateway share it.

use super::errors::Answer;
use super::limits;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What there is, in KiB. Clones share it.
#[derive(Clone, Debug)]
pub struct Room {
    changed: Arc<Semaphore>,
    gathered: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            changed: Arc::new(Semaphore::new(limits::CHANGED_KIB_MAX as usize)),
            gathered: Arc::new(Semaphore::new(limits::GATHERED_KIB_MAX as usize)),
        }
    }
}

impl Room {
    /// Waits until values of so many bytes may be read and made. Nobody who has some may ask for
    /// more, so that nobody waits for ever.
    pub(super) async fn to_change(&self, len: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(len / 1024).unwrap_or(u32::MAX).min(limits::CHANGED_KIB_MAX);
        let changed = Arc::clone(&self.changed);
        if kib == 0 { None } else { changed.acquire_many_owned(kib).await.ok() }
    }

    /// A reply that is to be put together.
    pub(super) fn gather(&self) -> Gathering {
        Gathering { room: Arc::clone(&self.gathered), taken: None, bytes: 0 }
    }
}

/// A reply that grows. What it has taken is given back with it.
#[derive(Debug)]
pub(super) struct Gathering {
    room: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
    /// Bytes that nothing was taken for yet.
    bytes: usize,
}

/// Bytes that are not worth being counted by themselves.
const SMALL: usize = 64 << 10;

impl Gathering {
    /// Takes room for so many bytes more, or says that there is none: nobody waits who holds some.
    pub(super) fn grow(&mut self, bytes: usize) -> Answer<()> {
        let uncounted = self.bytes.saturating_add(bytes);
        if uncounted < SMALL {
            self.bytes = uncounted;
            return Ok(());
        }
        let kib = u32::try_from(uncounted / 1024).map_err(|_| limits::NO_ROOM)?;
        let more = Arc::clone(&self.room).try_acquire_many_owned(kib);
        let more = more.map_err(|_| limits::NO_ROOM)?;
        self.bytes = uncounted % 1024;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_grow_as_long_as_there_is_room_and_give_it_back() {
        let room = Room::default();
        let all = limits::GATHERED_KIB_MAX as usize * 1024;
        let (mut one, mut other) = (room.gather(), room.gather());
        for _ in 0..100 {
            one.grow(all / 200).unwrap();
        }
        other.grow(all / 4).unwrap();
        assert_eq!(other.grow(all / 2), Err(limits::NO_ROOM));
        drop(one);
        other.grow(all / 2).unwrap();
        room.gather().grow(SMALL - 1).expect("short ones always have room");
    }
}
