//! One cached key: when its value may be shown, and when not.

use super::heat::Candidate;
use wire::{Body, Code, Fields as _, HEADER_LEN, KeyReply, Op, Version, flag};

/// The longest value that is cached: NetCache has 16 bytes in each of 8 stages.
pub(super) const VALUE_MAX: usize = 128;

/// What the switch knows of a key since that has been cached.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) match_value: u128,
    pub(super) key: Vec<u8>,
    /// Reads since the last look at how hot it is.
    pub(super) reads: u32,
    /// Fetches with this number or a later one were sent after the entry came.
    since: u64,
    /// No version above this has been let through since then.
    floor: Version,
    /// Whether the floor is not below any version that was let through before, either.
    proven: bool,
    /// The value, if it may be shown.
    valid: Option<Valid>,
    /// The last write that passed on its way there, if it writes what can be cached.
    write: Option<Write>,
}

/// A value that may be shown: nobody has seen a newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Valid {
    pub(super) version: Version,
    pub(super) value: Vec<u8>,
}

/// A write that is not answered yet: NetCache's servers send the new value after the answer, here
/// it is remembered until the answer says its version, which is the same moment.
#[derive(Debug)]
struct Write {
    request: (u64, u64),
    value: Vec<u8>,
}

impl Entry {
    /// Of a key that is fetched from now on, with this number or a later one.
    pub(super) fn new(candidate: Candidate, since: u64) -> Self {
        let Candidate { match_value, key, reads } = candidate;
        Self {
            match_value,
            key,
            reads: reads.into(),
            since,
            floor: Version::NONE,
            proven: false,
            valid: None,
            write: None,
        }
    }

    /// What a read may be answered.
    pub(super) fn valid(&self) -> Option<&Valid> {
        self.valid.as_ref()
    }

    /// Whether no fetch has been answered yet.
    pub(super) fn is_awaited(&self) -> bool {
        !self.proven
    }

    /// A write is on its way to the key's home: from here on its value may change.
    pub(super) fn invalidate(&mut self, header: &[u8; HEADER_LEN], body: Option<&Body<'_>>) {
        self.valid = None;
        let keeps_expiry = header.flags() & flag::KEEP_EXPIRY != 0;
        self.write = match body {
            Some(Body::Put { expiry_ms: 0, value, .. })
                if value.len() <= VALUE_MAX && !keeps_expiry =>
            {
                Some(Write { request: (header.client(), header.seq()), value: value.to_vec() })
            }
            _ => None,
        };
    }

    /// A reply to a client is let through.
    pub(super) fn learn(&mut self, op: Op, header: &[u8; HEADER_LEN], body: Option<&Body<'_>>) {
        let code = Code::from_wire(header.code());
        if !code.is_some_and(Code::is_decided) {
            return;
        }
        let KeyReply { version } = KeyReply::read(header);
        self.raise(version);
        match body {
            Some(body @ Body::GetReply(_)) => {
                if let Some(value) = cacheable(code, body) {
                    self.show(version, value.to_vec());
                }
            }
            Some(Body::PutReply) if op == Op::PutReply && code == Some(Code::Ok) => {
                let request = (header.client(), header.seq());
                if let Some(write) = self.write.take_if(|write| write.request == request) {
                    self.show(version, write.value);
                }
            }
            _ => {}
        }
    }

    /// A fetch of this number is answered. What the tail says now is not older than anything that
    /// was shown before the fetch was sent.
    pub(super) fn fetched(&mut self, header: &[u8; HEADER_LEN], body: &Body<'_>) {
        let code = Code::from_wire(header.code());
        if header.seq() < self.since || !code.is_some_and(Code::is_decided) {
            return;
        }
        let KeyReply { version } = KeyReply::read(header);
        self.raise(version);
        self.proven = true;
        if let Some(value) = cacheable(code, body) {
            self.show(version, value.to_vec());
        }
    }

    /// A version is shown: older ones are not, from here on.
    fn raise(&mut self, version: Version) {
        self.floor = self.floor.max(version);
        let floor = self.floor;
        self.valid.take_if(|valid| valid.version < floor);
    }

    fn show(&mut self, version: Version, value: Vec<u8>) {
        if self.proven && version >= self.floor {
            self.valid = Some(Valid { version, value });
        }
    }
}

/// The value of a GET's reply, if it can be cached: one that expires cannot.
fn cacheable<'a>(code: Option<Code>, body: &Body<'a>) -> Option<&'a [u8]> {
    let Body::GetReply(entry) = body else { return None };
    let fits = entry.expiry_ms == 0 && entry.value.len() <= VALUE_MAX;
    (code == Some(Code::Ok) && fits).then_some(entry.value)
}

#[cfg(test)]
impl Entry {
    /// Breaks the rule on purpose: whatever passes next is taken for the newest.
    pub(super) fn forget_floor(&mut self) {
        self.floor = Version::NONE;
    }
}
