//! Which of a hot key's nodes answers a read, or keeps a write of a delegation (sections 4.3, 6.4
//! and 7.2 of Pegasus).

use crate::HotRead;
use crate::hot::Row;
use crate::pass::Pass;
use crate::tables::Exit;
use cluster::{Mutant, NodeId, NodeSpec, PartitionId, Selection};
use std::ops::Range;
use wire::Version;

/// Readers that are looked at for one read. Right after a write few of them hold the newest
/// version, and then the tail has to help out; in between all do, and the first two will.
const SAMPLES_MAX: usize = 4;

/// Readers that fit of which the least busy is taken: two for a read, of which there are many, and
/// more for a write, which is where reads go next. So many of the fastest, or those that can serve
/// as much together: two of half the speed would be all that is looked at for a quarter of the
/// reads, where half of the nodes are slow. No more than twice as many, however slow they are.
const OF_READS: u64 = 2;
pub(crate) const OF_WRITES: u64 = 4;

/// Places that are drawn with one number.
const DRAWS: usize = 4;

/// Readers that have a bit each: as many as are in any bank.
const BITS: usize = wire::HOT_BANK_MAX;

/// Who answers a read of a hot key, if not its tail, and the floor that it is stamped with.
pub(crate) struct Selected {
    pub(crate) node: NodeId,
    pub(crate) floor: Version,
}

impl Pass<'_> {
    /// The reader that the directory has chosen.
    pub(crate) fn copy_of(&self, read: &HotRead, partition: PartitionId) -> Option<Exit> {
        let node = read.reader.and_then(|node| self.tables.node(node))?;
        Some(Exit::compile(node, partition))
    }

    /// A reader of this key that holds what the proven floor asks for. `None` if the entry is not
    /// proven, none was found, or the client asks for the home of a key that is not under a
    /// delegation.
    pub(crate) fn select(&mut self, row: &Row, at_home: bool) -> Option<Selected> {
        if at_home && row.delegation.is_none() {
            return None;
        }
        let (floor, proven) = row.entry.floor();
        let trusted = self.mutant.is(Mutant::TrustHolders) && row.delegation.is_some();
        let proven = proven || self.mutant.is(Mutant::TrustUnproven);
        let node = proven.then(|| self.choose(row, floor)).flatten()?.id;
        let floor = if trusted { Version::NONE } else { floor };
        Some(Selected { node, floor })
    }

    /// Looks at a few readers at random; of the first two that hold this version the one that has
    /// less to do.
    fn choose(&mut self, row: &Row, version: Version) -> Option<&NodeSpec> {
        // Now and then blindly none, too.
        if self.blind && self.rng.below(8) == 0 {
            return None;
        }
        let blind = self.blind;
        let fits = |reader| blind || row.holds(reader, version);
        // On a delegation a write is held by few at first, and nobody at home can help out.
        let (bank, samples) = match row.delegation {
            Some(_) => (row.bank_of_floor(), wire::HOT_BANK_MAX),
            None => (0..row.readers(), SAMPLES_MAX),
        };
        self.least_busy(row, (bank, 0), (samples, OF_READS), fits).map(|(_, node)| node)
    }

    /// Looks at so many of these readers at random, but not at those that are `taken`, a bit for
    /// each; of the first so many (see [`OF_READS`]) that fit and are in the tables the one that
    /// has the least to do.
    /// Where there are more readers than bits, several share one: few of those may be looked at.
    pub(crate) fn least_busy(
        &mut self,
        row: &Row,
        (readers, taken): (Range<usize>, u64),
        (samples, among): (usize, u64),
        fits: impl Fn(usize) -> bool,
    ) -> Option<(usize, &NodeSpec)> {
        let (mut draw, mut seen) = (0, taken);
        let (mut fit, enough) = (0, self.fastest() * among);
        let mut found: Option<(u64, usize, &NodeSpec)> = None;
        let left = readers.len().saturating_sub(taken.count_ones() as usize);
        for sample in 0..left.min(samples) {
            draw = if sample % DRAWS == 0 { self.rng.next_u64() } else { draw >> 16 };
            let mut place = ((draw as usize & 0xffff) * readers.len()) >> 16;
            while seen >> (place % BITS) & 1 != 0 {
                place = (place + 1) % readers.len();
            }
            seen |= 1 << (place % BITS);
            let reader = readers.start + place;
            if !fits(reader) {
                continue;
            }
            let node = self.hot.reader(row, reader).and_then(|node| self.tables.node(node));
            let Some(node) = node else { continue };
            if self.hot.selection() == Selection::Random {
                return Some((reader, node));
            }
            let load = self.load(node.id);
            if found.is_none_or(|(least, ..)| load < least) {
                found = Some((load, reader, node));
            }
            fit += self.counts(node.id);
            if fit >= enough {
                break;
            }
        }
        found.map(|(_, reader, node)| (reader, node))
    }

    /// What this node counts for among those that are looked at: half of the fastest at least.
    fn counts(&self, node: NodeId) -> u64 {
        if !self.hot.predicts() {
            return 1;
        }
        self.loads.serves(node).max(self.loads.fastest().div_ceil(2))
    }

    fn fastest(&self) -> u64 {
        if self.hot.predicts() { self.loads.fastest() } else { 1 }
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
