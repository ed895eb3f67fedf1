//! The map that clients and coordinators go by, kept new.

use cluster::Map;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;
use wire::Revision;

/// A map, and who is asked for a newer one when it turns out to be old.
#[derive(Debug)]
pub struct Directory {
    latest: Mutex<Arc<Map>>,
    want: Option<SyncSender<()>>,
}

/// Between two questions for a map at least.
const REST: Duration = Duration::from_millis(20);

impl Directory {
    /// One that nobody keeps new.
    #[must_use]
    pub fn of(map: Arc<Map>) -> Arc<Self> {
        Arc::new(Self { latest: Mutex::new(map), want: None })
    }

    /// One for which `fetch` is asked on a thread of its own, which ends with it. A map that is not
    /// to be had may be so the next time; the last holds till then.
    #[must_use]
    pub fn kept_new(map: Map, fetch: impl Fn() -> Option<Map> + Send + 'static) -> Arc<Self> {
        let (want, wanted) = sync_channel(1);
        let latest = Mutex::new(Arc::new(map));
        let directory = Arc::new(Self { latest, want: Some(want) });
        let kept: Weak<Self> = Arc::downgrade(&directory);
        thread::spawn(move || {
            for () in wanted {
                let map = fetch();
                let Some(directory) = kept.upgrade() else { return };
                if let Some(map) = map {
                    directory.keep(map);
                }
                drop(directory);
                thread::park_timeout(REST);
            }
        });
        directory
    }

    fn keep(&self, map: Map) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.revision < map.revision {
            *latest = Arc::new(map);
        }
    }

    /// The newest that there is.
    #[must_use]
    pub fn latest(&self) -> Arc<Map> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One that is newer than this, if there is one; else it is asked for.
    #[must_use]
    pub fn after(&self, revision: Revision) -> Option<Arc<Map>> {
        let latest = self.latest();
        if latest.revision > revision {
            return Some(latest);
        }
        if let Some(want) = &self.want {
            // A full channel says that one is being fetched.
            want.try_send(()).ok();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(revision: u64) -> Map {
        Map { revision: Revision::new(revision), ..Map::default() }
    }

    #[test]
    fn a_newer_map_is_fetched_when_it_is_asked_for() {
        let directory = Directory::kept_new(map(1), || Some(map(2)));
        assert_eq!(directory.latest().revision, Revision::new(1));
        let fetched = (0..1_000).find_map(|_| {
            thread::park_timeout(Duration::from_millis(5));
            directory.after(Revision::new(1))
        });
        assert_eq!(fetched.map(|map| map.revision), Some(Revision::new(2)));
        assert!(directory.after(Revision::new(2)).is_none());
    }

    #[test]
    fn an_older_map_takes_no_newer_ones_place() {
        let directory = Directory::of(Arc::new(map(3)));
        directory.keep(map(2));
        assert_eq!(directory.latest().revision, Revision::new(3));
        assert!(directory.after(Revision::new(3)).is_none(), "and nobody is asked");
    }
}
