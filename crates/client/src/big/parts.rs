//! How a big value is cut into parts on its way in, and put together on its way out. Neither holds
//! more than what is under way, whatever the length of the value.

use crate::owned::{OwnedExpect, OwnedNew, OwnedRequest};
use crate::{Expiry, NotDone, Outcome, Refusal, Reply, Value};
use std::ops::Range;
use wire::big::{checksum, part_len_max};
use wire::{ENTRY_MAX, ManifestBody, UploadBody, VALUE_MAX};

/// Parts of one request: some 80 KB.
const BATCH: u32 = 64;

/// Requests for parts under way at once. Together with what is being filled or taken from, a value
/// on its way takes 400 KB of memory, however long it is.
pub(super) const DEPTH: usize = 4;

/// A value on its way to the cluster: cuts it into parts.
#[derive(Debug)]
pub(crate) struct Cutter {
    key: Vec<u8>,
    id: UploadBody,
    part_len: usize,
    filling: Vec<u8>,
    len: u64,
    len_max: u64,
    checksum: u32,
    /// Index of the first part that is not part of any request.
    next: u32,
    /// Whether a value has parts though it fits a datagram.
    pub(super) always: bool,
}

impl Cutter {
    /// Begins one; `id` must never have been another's. A value over `len_max` is refused.
    ///
    /// # Errors
    ///
    /// If the key is too long for one that has big values.
    pub(crate) fn new(key: &[u8], id: UploadBody, len_max: u64) -> Result<Self, Refusal> {
        let part_len = part_len_max(key).ok_or(Refusal::KeyTooLongForBig)?;
        Ok(Self {
            key: key.to_vec(),
            id,
            part_len,
            filling: Vec::new(),
            len: 0,
            len_max: len_max.min(VALUE_MAX as u64),
            checksum: 0,
            next: 0,
            always: false,
        })
    }

    /// Takes from the beginning of `bytes` as much as one request has room for, and gives that
    /// request if it is full.
    ///
    /// # Errors
    ///
    /// If the value is too long.
    pub(crate) fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<OwnedRequest>, Refusal> {
        let whole = self.part_len * BATCH as usize;
        let room = whole.saturating_sub(self.filling.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(room);
        *bytes = rest;
        self.len += taken.len() as u64;
        if self.len > self.len_max {
            return Err(Refusal::ValueTooLong { bytes_max: self.len_max });
        }
        self.checksum = checksum(self.checksum, taken);
        self.filling.extend_from_slice(taken);
        Ok(if self.filling.len() == whole { self.flush() } else { None })
    }

    /// The request with what is left; a value that fits a datagram has no parts.
    pub(crate) fn flush(&mut self) -> Option<OwnedRequest> {
        if self.filling.is_empty() || self.is_short() {
            return None;
        }
        let bytes = std::mem::take(&mut self.filling);
        let first = self.next;
        let parts = bytes.len().div_ceil(self.part_len);
        self.next += u32::try_from(parts).expect("a batch has few parts");
        let (key, upload, part_len) = (self.key.clone(), self.id, self.part_len);
        Some(OwnedRequest::PutParts { key, upload, first, part_len, bytes })
    }

    /// What came of a request with parts. One that is not known to be done is as good as refused:
    /// without the manifest nobody will ever see it.
    pub(crate) fn taken(outcome: Outcome<Reply>) -> Result<(), Refusal> {
        let outcomes = match outcome.into_result() {
            Ok(Reply::Mset(outcomes)) => outcomes,
            Ok(_) | Err(NotDone::Unknown(_)) => return Err(Refusal::PartsUnanswered),
            Err(NotDone::Refused(why)) => return Err(why),
        };
        for outcome in outcomes {
            match outcome {
                Outcome::Done(_) => {}
                Outcome::Refused(Refusal::NotInTime) | Outcome::Unknown(_) => {
                    return Err(Refusal::PartsUnanswered);
                }
                Outcome::Refused(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn is_short(&self) -> bool {
        !self.always && self.next == 0 && is_short(&self.key, &self.filling)
    }

    /// The write that makes a value of all parts, once all of them have been taken.
    pub(crate) fn end(&self, expect: Option<OwnedExpect>, expiry: Expiry) -> OwnedRequest {
        if self.is_short() {
            let (key, value) = (self.key.clone(), self.filling.clone());
            return match expect {
                None => OwnedRequest::Put { key, value, expiry },
                Some(expect) => {
                    OwnedRequest::Cas { key, expect, new: OwnedNew::Value(value), expiry }
                }
            };
        }
        let (key, manifest) = (self.key.clone(), self.manifest());
        OwnedRequest::Seal { key, manifest, expect, expiry }
    }

    /// What stands for all that was pushed.
    pub(super) fn manifest(&self) -> ManifestBody {
        let UploadBody { client, number } = self.id;
        let part_len = u16::try_from(self.part_len).expect("parts fit a datagram");
        ManifestBody { len: self.len, part_len, checksum: self.checksum, client, number }
    }
}

/// A value, or some of it, on its way out of the cluster: puts its parts together.
#[derive(Debug)]
pub(crate) struct Assembler {
    key: Vec<u8>,
    manifest: ManifestBody,
    /// Parts that are still to be asked for.
    left: Range<u32>,
    /// Part that is taken next.
    next: u32,
    /// The bytes that are wanted.
    wanted: Range<u64>,
    /// Of all bytes so far, if all are wanted.
    checksum: Option<u32>,
}

impl Assembler {
    /// Begins one of those bytes of a value that lie in `wanted`.
    pub(crate) fn new(key: &[u8], manifest: ManifestBody, wanted: Range<u64>) -> Self {
        let end = wanted.end.min(manifest.len);
        let wanted = wanted.start.min(end)..end;
        let part_len = u64::from(manifest.part_len);
        let index = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        let first = index(wanted.start / part_len);
        let after = if wanted.is_empty() { first } else { index(end.div_ceil(part_len)) };
        let checksum = (wanted == (0..manifest.len)).then_some(0);
        Self { key: key.to_vec(), manifest, left: first..after, next: first, wanted, checksum }
    }

    /// The same of other bytes, before any were asked for.
    pub(crate) fn only(self, wanted: Range<u64>) -> Self {
        Self::new(&self.key, self.manifest, wanted)
    }

    /// The next request to make; `None` after the last.
    pub(crate) fn request(&mut self) -> Option<OwnedRequest> {
        if self.left.is_empty() {
            return None;
        }
        let to = self.left.end.min(self.left.start.saturating_add(BATCH));
        let first = std::mem::replace(&mut self.left.start, to);
        let (key, upload) = (self.key.clone(), self.manifest.upload());
        Some(OwnedRequest::GetParts { key, upload, first, count: to - first })
    }

    /// The bytes that a request has brought; answers are taken in the order of the requests.
    ///
    /// # Errors
    ///
    /// [`Refusal::Replaced`] if parts are gone, [`Refusal::Damaged`] if they are not those of the
    /// value, and whatever else the request ended with.
    pub(crate) fn take(&mut self, outcome: Outcome<Reply>) -> Result<Vec<u8>, NotDone> {
        let Reply::Mget(outcomes) = outcome.into_result()? else {
            return Err(NotDone::Refused(Refusal::Damaged));
        };
        let mut bytes = Vec::with_capacity(outcomes.len() * usize::from(self.manifest.part_len));
        for outcome in outcomes {
            let Some(Value { value, .. }) = outcome.into_result()? else {
                return Err(NotDone::Refused(Refusal::Replaced));
            };
            if value.len() != self.manifest.len_of(self.next) {
                return Err(NotDone::Refused(Refusal::Damaged));
            }
            let starts = u64::from(self.next) * u64::from(self.manifest.part_len);
            let place = |at: u64| {
                usize::try_from(at.saturating_sub(starts)).unwrap_or(usize::MAX).min(value.len())
            };
            let range = place(self.wanted.start)..place(self.wanted.end);
            bytes.extend_from_slice(value.get(range).unwrap_or_default());
            self.next += 1;
        }
        if let Some(sum) = &mut self.checksum {
            *sum = checksum(*sum, &bytes);
            let ends = self.next == self.manifest.parts();
            if ends && *sum != self.manifest.checksum {
                return Err(NotDone::Refused(Refusal::Damaged));
            }
        }
        Ok(bytes)
    }
}

/// The manifest that a read found; `None` if the value is whole.
pub(crate) fn manifest(key: &[u8], value: &Value) -> Result<Option<ManifestBody>, Refusal> {
    if !value.big {
        return Ok(None);
    }
    ManifestBody::parse(key, &value.value).map(Some).ok_or(Refusal::Damaged)
}

/// Whether key and value fit a datagram.
pub(crate) fn is_short(key: &[u8], value: &[u8]) -> bool {
    key.len() + value.len() <= ENTRY_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: UploadBody = UploadBody { client: 1, number: 2 };

    /// What the cluster would hold after an upload.
    fn upload(value: &[u8], piece: usize) -> (ManifestBody, Vec<Vec<u8>>) {
        let mut upload = Cutter::new(b"k", ID, u64::MAX).unwrap();
        let mut parts = Vec::new();
        let mut keep = |request: Option<OwnedRequest>| {
            let Some(OwnedRequest::PutParts { first, part_len, bytes, .. }) = request else {
                return;
            };
            assert_eq!(first as usize, parts.len(), "parts come in order");
            parts.extend(bytes.chunks(part_len).map(<[u8]>::to_vec));
        };
        for mut piece in value.chunks(piece) {
            while !piece.is_empty() {
                keep(upload.push(&mut piece).unwrap());
            }
        }
        keep(upload.flush());
        let OwnedRequest::Seal { manifest, .. } = upload.end(None, Expiry::Never) else {
            panic!("the last request is the manifest")
        };
        (manifest, parts)
    }

    fn download(
        manifest: ManifestBody,
        parts: &[Vec<u8>],
        wanted: Range<u64>,
    ) -> (Result<Vec<u8>, NotDone>, u32) {
        let mut download = Assembler::new(b"k", manifest, wanted);
        let (mut all, mut asked) = (Vec::new(), 0);
        while let Some(request) = download.request() {
            let OwnedRequest::GetParts { first, count, .. } = request else {
                panic!("only parts are asked for")
            };
            asked += count;
            let found = (first..first + count).map(|index| {
                let value = parts.get(index as usize).cloned();
                Outcome::Done(value.map(|value| Value { value, ..Value::default() }))
            });
            match download.take(Outcome::Done(Reply::Mget(found.collect()))) {
                Ok(bytes) => all.extend(bytes),
                Err(error) => return (Err(error), asked),
            }
        }
        (Ok(all), asked)
    }

    #[test]
    fn what_goes_in_comes_out_whatever_the_pieces() {
        let value: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
        for piece in [1_000, 4_321, 300_000] {
            let (manifest, parts) = upload(&value, piece);
            assert_eq!(parts.len(), manifest.parts() as usize);
            assert_eq!(download(manifest, &parts, 0..u64::MAX).0.as_ref(), Ok(&value));
            let (some, asked) = download(manifest, &parts, 100_000..100_010);
            assert_eq!(some.unwrap(), value[100_000..100_010]);
            assert!(asked <= 2, "a range needs the parts that it lies in, and no others");
            assert_eq!(download(manifest, &parts, 400_000..400_010), (Ok(Vec::new()), 0));
        }
    }

    #[test]
    fn parts_that_are_gone_or_wrong_are_seen() {
        let value = vec![7; 10_000];
        let (manifest, mut parts) = upload(&value, 1_000);
        let refused = |parts: &[Vec<u8>]| download(manifest, parts, 0..u64::MAX).0;
        parts[3][5] ^= 1;
        assert_eq!(refused(&parts), Err(NotDone::Refused(Refusal::Damaged)));
        parts.truncate(3);
        assert_eq!(refused(&parts), Err(NotDone::Refused(Refusal::Replaced)));
    }

    #[test]
    fn a_value_over_the_limit_is_refused() {
        let mut upload = Cutter::new(b"k", ID, 10).unwrap();
        assert!(upload.push(&mut &[0; 10][..]).is_ok());
        let refused = upload.push(&mut &[0; 1][..]).err();
        assert_eq!(refused, Some(Refusal::ValueTooLong { bytes_max: 10 }));
        let long = vec![b'k'; wire::KEY_MAX];
        assert_eq!(Cutter::new(&long, ID, 10).err(), Some(Refusal::KeyTooLongForBig));
    }
}
