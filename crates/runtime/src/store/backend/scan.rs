//! Scans: the order is the index's, and what is in it is fetched in batches.

use super::{Backend, BackendEngine, COLLECTABLE};
use cluster::KeyspaceId;
use node::engine::{Engine, Interval, Record};
use std::ops::ControlFlow;

/// Records about which a scan asks the backend first; each further time as many as it has seen.
const SCANNED_FIRST: usize = 32;

/// What a scan looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Values, which are fetched.
    Values,
    /// Keys, of which the backend is asked whether they have a value.
    Keys,
}

impl<B: Backend> BackendEngine<B> {
    /// Asks for more each time, because it is not known how many are visited.
    pub(super) fn scan_for(
        &self,
        seen_of: Seen,
        interval: &Interval<'_>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let keyspace = interval.keyspace.id;
        let (mut seen, mut next) = (0, SCANNED_FIRST);
        loop {
            let (mut wanted, mut index, mut more) = (Vec::new(), 0, false);
            self.index.scan(interval, |key, record| {
                more = index == next;
                if more {
                    return ControlFlow::Break(());
                }
                if index >= seen {
                    wanted.extend(self.wanted_of(keyspace, key, &record));
                }
                index += 1;
                ControlFlow::Continue(())
            });
            match seen_of {
                Seen::Values => self.fetch(wanted),
                Seen::Keys => {
                    let names = wanted.into_iter().map(|it| it.name).collect();
                    self.sight.borrow_mut().look_for(names);
                }
            }
            let (mut index, mut broke) = (0, false);
            self.index.scan(interval, |key, record| {
                index += 1;
                if index <= seen {
                    return ControlFlow::Continue(());
                }
                if index > next {
                    return ControlFlow::Break(());
                }
                let flow = match seen_of {
                    Seen::Values => {
                        self.with_fitting(keyspace, key, record, |record| visit(key, record))
                    }
                    Seen::Keys => visit(key, self.without_value(keyspace, key, record)),
                };
                broke = flow.is_break();
                flow
            });
            if broke || !more {
                return;
            }
            (seen, next) = (next, next * 2);
        }
    }

    /// A record of the index as it is when its value is there, or not any more; that is in hand.
    fn without_value<'r>(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        record: Record<'r>,
    ) -> Record<'r> {
        let name = self.spaces.name(keyspace, key);
        let there = match self.changed(&name) {
            Some(changed) => changed.is_some(),
            None => self.sight.borrow().is_there(&name),
        };
        if there || record.tombstone {
            return record;
        }
        Record { tombstone: true, expiry_ms: COLLECTABLE, ..record }
    }
}
