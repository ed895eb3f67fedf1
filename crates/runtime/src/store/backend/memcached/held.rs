//! Values that a memcached has no room for. They are as safe here as there: a node without its
//! memory does not know what lies in memcached either.

use std::collections::BTreeMap;
use std::ops::Bound;
use wire::Room;

/// What memcached has not taken, by name.
#[derive(Debug, Default)]
pub(super) struct HeldValues {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
    /// After which name to go on.
    after: Vec<u8>,
}

/// From so many bytes on nothing is written but deletes: room for what is under way when memcached
/// has no more, and for values that grow less than one says beforehand.
const HELD_MAX: usize = 4 << 20;

/// What a value takes besides itself and its name.
const EACH_BYTES: usize = 100;

/// Values that memcached is asked to take at once.
const SOME: usize = 256;

impl HeldValues {
    pub(super) fn room(&self) -> Room {
        match self.bytes {
            0 => Room::Plenty,
            1..HELD_MAX => Room::Full,
            HELD_MAX.. => Room::Shut,
        }
    }

    pub(super) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// Keeps a value, because memcached said `why` it cannot.
    pub(super) fn keep(&mut self, name: &[u8], value: &[u8], why: &str) {
        if self.values.is_empty() {
            tracing::warn!(why, "memcached takes no more values: the node is full");
        }
        self.bytes += bytes(name, value);
        self.values.insert(name.to_vec(), value.to_vec());
    }

    /// These have a newer value, or none, or memcached has taken them.
    pub(super) fn forget<'a>(&mut self, names: impl Iterator<Item = &'a Vec<u8>>) {
        let were_some = !self.values.is_empty();
        for name in names {
            if let Some(value) = self.values.remove(name) {
                self.bytes -= bytes(name, &value);
            }
        }
        if were_some && self.values.is_empty() {
            tracing::info!("memcached has room again");
        }
    }

    /// Some of them, others each time.
    pub(super) fn some(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let after = Bound::Excluded(std::mem::take(&mut self.after));
        let rest = self.values.range::<Vec<u8>, _>((after, Bound::Unbounded)).take(SOME);
        let some: Vec<(Vec<u8>, Vec<u8>)> = rest.map(|it| (it.0.clone(), it.1.clone())).collect();
        if let Some((last, _)) = some.last().filter(|_| some.len() == SOME) {
            self.after.clone_from(last);
        }
        some
    }
}

fn bytes(name: &[u8], value: &[u8]) -> usize {
    EACH_BYTES + name.len() + value.len()
}
