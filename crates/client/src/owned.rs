//! Requests on their way from a caller to the machine, with their bytes.

use crate::options::ScanOptions;
use crate::{Change, Condition, Expect, Expiry, New, Request, Step};
use cluster::Match;
use std::time::Duration;
use wire::big::EXPIRY_BIG;
use wire::{ManifestBody, UploadBody, Version};

/// What a batch leaves of a key, with its bytes.
#[derive(Debug)]
pub(crate) enum OwnedChange {
    None,
    Put { value: Vec<u8>, expiry_ms: u64 },
    Delete,
}

/// A step of a batch, with its bytes.
#[derive(Debug)]
pub(crate) struct OwnedStep {
    key: Vec<u8>,
    condition: Condition,
    change: OwnedChange,
}

impl From<&Step<'_>> for OwnedStep {
    fn from(step: &Step<'_>) -> Self {
        let change = match step.change {
            Change::None => OwnedChange::None,
            Change::Put { value, expiry_ms } => {
                OwnedChange::Put { value: value.to_vec(), expiry_ms }
            }
            Change::Delete => OwnedChange::Delete,
        };
        Self { key: step.key.to_vec(), condition: step.condition, change }
    }
}

impl OwnedStep {
    /// A step that makes the value of its key what this manifest stands for.
    pub(crate) fn sealing(step: &Step<'_>, manifest: &ManifestBody) -> Self {
        let expiry_ms = match step.change {
            Change::Put { expiry_ms, .. } => expiry_ms,
            Change::None | Change::Delete => 0,
        };
        let (value, expiry_ms) = (manifest.to_bytes().to_vec(), expiry_ms | EXPIRY_BIG);
        let change = OwnedChange::Put { value, expiry_ms };
        Self { key: step.key.to_vec(), condition: step.condition, change }
    }

    /// The step, lent.
    pub(crate) fn lent(&self) -> Step<'_> {
        let change = match &self.change {
            OwnedChange::None => Change::None,
            OwnedChange::Put { value, expiry_ms } => Change::Put { value, expiry_ms: *expiry_ms },
            OwnedChange::Delete => Change::Delete,
        };
        Step { key: &self.key, condition: self.condition, change }
    }
}

/// What a CAS must find, with its bytes.
#[derive(Clone, Debug)]
pub(crate) enum OwnedExpect {
    Version(Version),
    Value(Vec<u8>),
}

impl OwnedExpect {
    fn lent(&self) -> Expect<'_> {
        match self {
            Self::Version(version) => Expect::Version(*version),
            Self::Value(value) => Expect::Value(value),
        }
    }
}

impl From<Expect<'_>> for OwnedExpect {
    fn from(expect: Expect<'_>) -> Self {
        match expect {
            Expect::Version(version) => Self::Version(version),
            Expect::Value(value) => Self::Value(value.to_vec()),
        }
    }
}

/// What a CAS leaves, with its bytes.
#[derive(Debug)]
pub(crate) enum OwnedNew {
    Value(Vec<u8>),
    Same,
    Nothing,
}

impl From<New<'_>> for OwnedNew {
    fn from(new: New<'_>) -> Self {
        match new {
            New::Value(value) => Self::Value(value.to_vec()),
            New::Same => Self::Same,
            New::Nothing => Self::Nothing,
        }
    }
}

/// A request on its way from a caller to the machine.
#[derive(Debug)]
pub(crate) enum OwnedRequest {
    Get {
        key: Vec<u8>,
    },
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
        expiry: Expiry,
    },
    Del {
        key: Vec<u8>,
    },
    Cas {
        key: Vec<u8>,
        expect: OwnedExpect,
        new: OwnedNew,
        expiry: Expiry,
    },
    Incr {
        key: Vec<u8>,
        delta: i64,
    },
    Batch {
        steps: Vec<OwnedStep>,
    },
    Mget {
        keys: Vec<Vec<u8>>,
        within: Option<Duration>,
    },
    Mset {
        entries: Vec<(Vec<u8>, Vec<u8>)>,
        expiry: Expiry,
        within: Option<Duration>,
    },
    Mdel {
        keys: Vec<Vec<u8>>,
        within: Option<Duration>,
    },
    PutParts {
        key: Vec<u8>,
        upload: UploadBody,
        first: u32,
        part_len: usize,
        bytes: Vec<u8>,
    },
    GetParts {
        key: Vec<u8>,
        upload: UploadBody,
        first: u32,
        count: u32,
    },
    Seal {
        key: Vec<u8>,
        manifest: ManifestBody,
        expect: Option<OwnedExpect>,
        expiry: Expiry,
    },
    Range(ScanOptions),
    Scan {
        first: Match,
        last: Match,
        after: Option<Vec<u8>>,
        limit: Option<usize>,
        keys_only: bool,
    },
    Count,
}

impl OwnedRequest {
    /// The request, lent.
    pub(crate) fn lend<T>(&self, take: impl FnOnce(Request<'_>) -> T) -> T {
        let request = match self {
            Self::Get { key } => Request::Get { key },
            Self::Put { key, value, expiry } => Request::Put { key, value, expiry: *expiry },
            Self::Del { key } => Request::Del { key },
            Self::Cas { key, expect, new, expiry } => {
                let expect = expect.lent();
                let new = match new {
                    OwnedNew::Value(value) => New::Value(value),
                    OwnedNew::Same => New::Same,
                    OwnedNew::Nothing => New::Nothing,
                };
                Request::Cas { key, expect, new, expiry: *expiry }
            }
            Self::PutParts { key, upload, first, part_len, bytes } => Request::PutParts {
                key,
                upload: *upload,
                first: *first,
                part_len: *part_len,
                bytes,
            },
            Self::GetParts { key, upload, first, count } => {
                Request::GetParts { key, upload: *upload, first: *first, count: *count }
            }
            Self::Seal { key, manifest, expect, expiry } => {
                let expect = expect.as_ref().map(OwnedExpect::lent);
                Request::Seal { key, manifest: *manifest, expect, expiry: *expiry }
            }
            Self::Incr { key, delta } => Request::Incr { key, delta: *delta },
            Self::Batch { steps } => {
                let steps: Vec<Step<'_>> = steps.iter().map(OwnedStep::lent).collect();
                return take(Request::Batch { steps: &steps });
            }
            Self::Mget { keys, within } => {
                let (keys, within) = (&*slices(keys), *within);
                return take(Request::Mget { keys, within });
            }
            Self::Mdel { keys, within } => {
                let (keys, within) = (&*slices(keys), *within);
                return take(Request::Mdel { keys, within });
            }
            Self::Mset { entries, expiry, within } => {
                let entries: Vec<(&[u8], &[u8])> =
                    entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
                let (entries, expiry, within) = (&*entries, *expiry, *within);
                let request = Request::Mset { entries, expiry, within };
                return take(request);
            }
            Self::Range(options) => Request::Range {
                start: options.start.as_ref().map(Vec::as_slice),
                end: options.end.as_ref().map(Vec::as_slice),
                reverse: options.reverse,
                limit: options.limit,
                keys_only: options.keys_only,
            },
            Self::Scan { first, last, after, limit, keys_only } => Request::Scan {
                first: *first,
                last: *last,
                after: after.as_deref(),
                limit: *limit,
                keys_only: *keys_only,
            },
            Self::Count => Request::Count,
        };
        take(request)
    }
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}
