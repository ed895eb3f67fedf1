//! How a write ended.

use wire::{ChainResult, Code, CopySessionBody, Op, Version};

/// How a write ended, and what the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The client's operation.
    pub(crate) origin: Op,
    pub(crate) code: Code,
    /// The version that the reply says.
    pub(crate) version: Version,
    /// The sum of an INCR; the step at which a batch failed.
    pub(crate) result: ChainResult,
}

impl Outcome {
    /// The note of this outcome, with the mark known at the time.
    pub(crate) fn to_note(self, floor: u64) -> [u8; NOTE_LEN] {
        let mut note = [0; NOTE_LEN];
        let (codes, numbers) = note.split_at_mut(2);
        codes.copy_from_slice(&[self.origin as u8, self.code as u8]);
        let words = [self.version.get(), self.result.get(), floor];
        for (to, word) in numbers.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        note
    }

    /// Outcome and mark of a note; `None` if it is none.
    pub(crate) fn from_note(note: &[u8]) -> Option<(Self, u64)> {
        let note: &[u8; NOTE_LEN] = note.try_into().ok()?;
        let ([origin, code], numbers) = note.split_first_chunk::<2>()?;
        let (words, _) = numbers.as_chunks::<8>();
        let [version, result, floor] = words else { return None };
        let outcome = Self {
            origin: Op::from_wire(*origin)?,
            code: Code::from_wire(*code)?,
            version: Version::new(u64::from_be_bytes(*version)),
            result: ChainResult::new(u64::from_be_bytes(*result)),
        };
        Some((outcome, u64::from_be_bytes(*floor)))
    }

    /// As a learner is sent it.
    pub(crate) fn to_copy(self, client: u64, seq: u64, floor: u64) -> CopySessionBody {
        CopySessionBody {
            kind: 0,
            origin: self.origin as u8,
            code: self.code as u8,
            client,
            seq,
            floor,
            version: self.version,
            result: self.result,
        }
    }

    /// What a learner was sent; `None` if it is no outcome.
    pub(crate) fn from_copy(body: &CopySessionBody) -> Option<Self> {
        Some(Self {
            origin: Op::from_wire(body.origin).filter(|op| op.is_write())?,
            code: Code::from_wire(body.code).filter(|code| code.is_decided())?,
            version: body.version,
            result: body.result,
        })
    }
}

const NOTE_LEN: usize = 2 + 3 * 8;

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Outcome = Outcome {
        origin: Op::Put,
        code: Code::Ok,
        version: Version::new(9),
        result: ChainResult::NONE,
    };

    #[test]
    fn notes_round_trip_and_others_are_refused() {
        let note = DONE.to_note(4);
        assert_eq!(Outcome::from_note(&note), Some((DONE, 4)));
        assert_eq!(Outcome::from_note(&note[1..]), None);
    }
}
