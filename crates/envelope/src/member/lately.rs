//! Keys of clients that were derived lately. Most packets are of few clients, and deriving a key
//! takes as long as a tag of a short packet.

use crate::keys::Key;
use crate::pass::PassNumber;

/// Keys that are kept. A client's is found in one place, which others may take.
const SLOTS: usize = 1024;

/// Which keys of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Edge,
    End,
}

/// Derives keys of clients, and keeps them.
#[derive(Debug)]
pub(super) struct Lately(Box<[Option<Slot>]>);

#[derive(Clone, Copy, Debug)]
struct Slot {
    pass: PassNumber,
    period: u8,
    kind: Kind,
    key: Key,
}

impl Lately {
    pub(super) fn new() -> Self {
        Self(vec![None; SLOTS].into())
    }

    /// Those of before follow from other keys.
    pub(super) fn forget(&mut self) {
        self.0.fill(None);
    }

    /// The key of a client's pass, which follows from this one of a period.
    #[inline]
    pub(super) fn of(&mut self, from: Key, kind: Kind, period: u8, pass: PassNumber) -> Key {
        let derive = || from.derive(pass.0);
        // Numbers are given one after the other.
        let place = (pass.0 << 1 | u64::from(kind == Kind::End)) % SLOTS as u64;
        let Some(slot) = usize::try_from(place).ok().and_then(|at| self.0.get_mut(at)) else {
            return derive();
        };
        match slot {
            Some(held) if held.pass == pass && held.period == period && held.kind == kind => {
                held.key
            }
            _ => slot.insert(Slot { pass, period, kind, key: derive() }).key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_would_be_derived() {
        let mut lately = Lately::new();
        let roots = [Key([1; 16]), Key([2; 16])];
        // Twice as many clients as there are places, each twice, in two periods.
        for pass in (0..2 * SLOTS as u64).chain(0..8).map(PassNumber) {
            for (kind, from) in [Kind::Edge, Kind::End].into_iter().zip(roots) {
                for period in [7, 7, 8] {
                    let from = if period == 7 { from } else { from.derive(0) };
                    assert_eq!(lately.of(from, kind, period, pass), from.derive(pass.0));
                }
            }
        }
        let other = Key([3; 16]);
        lately.forget();
        assert_eq!(lately.of(other, Kind::End, 7, PassNumber(0)), other.derive(0));
    }
}
