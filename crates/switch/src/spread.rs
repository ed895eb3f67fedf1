//! Which reader of a hot key answers a read (sections 6.4 and 7.2 of Pegasus).

use crate::hot::Row;
use crate::pipeline::Pass;
use crate::tables::Exit;
use cluster::{NodeId, NodeSpec, PartitionId, Selection};

/// Readers that are looked at for one read. Right after a write few of them hold the newest
/// version, and then the tail has to help out; in between all do, and the first two will.
const SAMPLES_MAX: usize = 4;

/// Where a read of a hot key goes, if not to its tail, and the floor that it is stamped with.
pub(crate) struct Spread {
    pub(crate) exit: Exit,
    pub(crate) floor: u64,
}

impl Pass<'_> {
    /// A reader of this key that holds what the proven floor asks for. `None` if the entry is not
    /// proven, or none was found.
    pub(crate) fn spread(&mut self, row: &Row, partition: PartitionId) -> Option<Spread> {
        let (floor, proven) = row.entry.floor();
        let node = proven.then(|| self.choose(row, floor)).flatten()?;
        Some(Spread { exit: Exit::compile(node, partition), floor })
    }

    /// Looks at a few readers at random; of the first two that hold this version the one that has
    /// less to do.
    fn choose(&mut self, row: &Row, version: u64) -> Option<&NodeSpec> {
        let readers = row.readers();
        let mut draw = self.rng.next_u64();
        // Now and then blindly none, too.
        if self.blind && draw >> 61 == 0 {
            return None;
        }
        let mut seen = 0_u64;
        let mut found: Option<&NodeSpec> = None;
        for _ in 0..readers.min(SAMPLES_MAX) {
            let mut reader = ((draw as usize & 0xffff) * readers) >> 16;
            draw >>= 16;
            while seen >> reader & 1 != 0 {
                reader = (reader + 1) % readers;
            }
            seen |= 1 << reader;
            if !self.blind && !row.holds(reader, version) {
                continue;
            }
            let node = self.hot.reader(row, reader).and_then(|node| self.tables.node(node));
            let Some(node) = node else { continue };
            match found {
                None if self.hot.selection() == Selection::Random => return Some(node),
                None => found = Some(node),
                Some(first) => {
                    let less = self.load(node.id) < self.load(first.id);
                    return Some(if less { node } else { first });
                }
            }
        }
        found
    }

    /// How much this node has to do, by the order's measure.
    fn load(&mut self, node: NodeId) -> u64 {
        match self.hot.selection() {
            Selection::Random => 0,
            Selection::Reported => self.loads.of(node).unwrap_or(0).into(),
            Selection::Predicted => self.loads.predicted(self.now, node),
        }
    }
}
