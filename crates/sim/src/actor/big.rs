//! Big values: numbers cut into parts of a few digits, so that there are many parts in little
//! traffic. A write takes two requests, the parts and then the manifest, and is one operation; so
//! is a read, which takes the manifest, then the parts, and begins again if they are gone.

use super::batch::Planned;
use super::gather::Gathering;
use super::{Actor, Ask, Asked, Keyspaces, What};
use crate::check::{Key, OpKind};
use crate::world::PART_TIMES;
use client::{Expect, Outcome, Refusal, Reply, Request, Value};
use machine::Instant;
use wire::ManifestBody;
use wire::big::checksum;

/// A big value on its way in.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    key: Key,
    kind: OpKind,
    manifest: ManifestBody,
    expiry: client::Expiry,
}

/// A big value on its way out.
#[derive(Clone, Debug)]
pub(super) struct Fetching {
    key: Key,
    manifest: ManifestBody,
    found: Value,
    /// How often its parts were gone.
    tries: u32,
}

/// What a request of a big value was for.
#[derive(Clone, Debug)]
pub(super) enum BigStep {
    /// Parts, before the manifest.
    Send(Sending),
    /// Parts whose manifest does not wait for them.
    Hurry,
    /// A manifest; in vain if parts may be missing.
    Seal { key: Key, kind: OpKind, hasty: bool },
    /// Parts of a batch, before the manifests.
    Gather(Gathering),
    /// A batch of manifests; in vain if parts may be missing.
    SealAll { planned: Vec<Planned>, hasty: bool },
    /// Parts of what a read has found.
    Fetch(Fetching),
    /// A read once more.
    Again { key: Key, tries: u32 },
}

/// What came of an operation, as if it had been one request; `None` if it goes on, or was none.
pub(super) type Ended = Option<(What, Outcome<Reply>)>;

impl Actor {
    /// Writes a big value, if that is what is there by chance under the condition that it is what
    /// was last read.
    pub(super) fn put_big(&mut self, ask: &Ask<'_>, key: Key) {
        let (value, text) = self.value_and_text();
        let (expiry, expiry_ms) = self.draw_expiry(ask, &key);
        let seen = self.seen.get(&key.key).copied().filter(|_| self.rng.chance(1, 3));
        let kind = match seen {
            None => OpKind::Put { value, expiry_ms },
            Some((expected, version)) => OpKind::Cas {
                expect: Some(expected),
                at: Some(version),
                value: Some(value),
                expiry_ms,
                written: None,
            },
        };
        let part_len = 1 + self.rng.below(3);
        self.uploads += 1;
        let manifest = ManifestBody {
            len: text.len() as u64,
            part_len: u16::try_from(part_len).expect("small"),
            checksum: checksum(0, text.as_bytes()),
            client: self.config.client_id,
            number: self.uploads,
        };
        let sending = Sending { key, kind, manifest, expiry };
        let (hasty, forgetful) = (self.rng.chance(1, 6), self.rng.chance(1, 8));
        // Some never send all of it, and some never say what it is.
        let sent = if hasty && self.rng.chance(1, 2) { 1 } else { text.len() };
        let step = if hasty || forgetful { BigStep::Hurry } else { BigStep::Send(sending.clone()) };
        let request = Request::PutParts {
            key: &sending.key.key,
            upload: manifest.upload(),
            first: 0,
            part_len: usize::from(manifest.part_len),
            bytes: text.as_bytes().get(..sent).unwrap_or_default(),
        };
        self.submit_at(ask, sending.key.ordered, request, What::Big(step));
        if hasty {
            self.seal(ask, ask.now, self.is_sure(), sending, true);
        }
    }

    fn seal(&mut self, ask: &Ask<'_>, at: Instant, sure: bool, it: Sending, hasty: bool) {
        let Sending { key, kind, manifest, expiry } = it;
        let expect = match kind {
            OpKind::Cas { at: Some(version), .. } => Some(Expect::Version(version)),
            _ => None,
        };
        let bytes = key.key.clone();
        let request = Request::Seal { key: &bytes, manifest, expect, expiry };
        let ticket = self.start_request(ask, key.ordered, request);
        let what = What::Big(BigStep::Seal { key, kind, hasty });
        self.waiting.insert(ticket, Asked { at, sure, what });
    }

    /// A read has found that the value is big: its parts are read next.
    pub(super) fn fetch(
        &mut self,
        ask: &Ask<'_>,
        (at, sure): (Instant, bool),
        (key, tries): (Key, u32),
        found: Value,
    ) -> Result<(), String> {
        let Some(manifest) = ManifestBody::parse(&key.key, &found.value) else {
            return Err(format!("no manifest: {found:?}"));
        };
        let bytes = key.key.clone();
        let (upload, count) = (manifest.upload(), manifest.parts());
        let request = Request::GetParts { key: &bytes, upload, first: 0, count };
        let ticket = self.start_request(ask, key.ordered, request);
        let what = What::Big(BigStep::Fetch(Fetching { key, manifest, found, tries }));
        self.waiting.insert(ticket, Asked { at, sure, what });
        Ok(())
    }

    /// Takes what came of a step, and takes the next one.
    pub(super) fn go_on_with_big(
        &mut self,
        ask: &Ask<'_>,
        (at, sure): (Instant, bool),
        step: BigStep,
        outcome: Outcome<Reply>,
    ) -> Result<Ended, String> {
        // Whoever is cut off for too long before the last part arrives, or the manifest, has lost
        // the parts; or whose key is: it may have to be recalled first.
        let may_be_gone = !sure || ask.now.since(at) > PART_TIMES.idle;
        match (step, outcome) {
            (BigStep::Hurry, _) => Ok(None),
            (BigStep::Send(sending), outcome) => {
                if are_sent(&outcome, (sure, may_be_gone))? {
                    self.seal(ask, at, sure, sending, false);
                }
                Ok(None)
            }
            (BigStep::Gather(gathering), outcome) => {
                if are_sent(&outcome, (sure, may_be_gone))? {
                    self.gather(ask, (at, sure), gathering);
                }
                Ok(None)
            }
            (
                BigStep::Seal { hasty, .. } | BigStep::SealAll { hasty, .. },
                Outcome::Refused(Refusal::PartsMissing),
            ) if hasty || may_be_gone => Ok(None),
            (BigStep::Seal { key, kind, .. }, outcome) => Ok(Some((What::One(key, kind), outcome))),
            (BigStep::SealAll { planned, .. }, outcome) => {
                Ok(Some((What::Batch(planned), outcome)))
            }
            (BigStep::Fetch(fetching), Outcome::Done(Reply::Mget(parts))) => {
                self.put_together(ask, (at, sure), fetching, parts)
            }
            (BigStep::Again { key, tries }, Outcome::Done(Reply::Get(Some(found))))
                if found.big =>
            {
                self.fetch(ask, (at, sure), (key, tries), found)?;
                Ok(None)
            }
            (BigStep::Fetch(Fetching { key, .. }) | BigStep::Again { key, .. }, outcome) => {
                Ok(Some((What::One(key, OpKind::Read(None)), outcome)))
            }
        }
    }

    fn put_together(
        &mut self,
        ask: &Ask<'_>,
        (at, sure): (Instant, bool),
        Fetching { key, manifest, found, tries }: Fetching,
        parts: Vec<Outcome<Option<Value>>>,
    ) -> Result<Ended, String> {
        if let Some(unknown) = parts.iter().find(|part| !part.is_done()) {
            let what = format!("a part of a big value not read in a healed world: {unknown:?}");
            return if sure { Err(what) } else { Ok(None) };
        }
        let there: Vec<Value> = parts.into_iter().filter_map(Outcome::done).flatten().collect();
        if there.len() < manifest.parts() as usize {
            if tries < TRIES_MAX {
                let bytes = key.key.clone();
                let ticket = self.start_request(ask, key.ordered, Request::Get { key: &bytes });
                let what = What::Big(BigStep::Again { key, tries: tries + 1 });
                self.waiting.insert(ticket, Asked { at, sure, what });
                return Ok(None);
            }
            let what = format!("parts of {:?} at version {} are gone", key.key, found.version);
            return if sure { Err(what) } else { Ok(None) };
        }
        let value: Vec<u8> = there.into_iter().flat_map(|part| part.value).collect();
        if checksum(0, &value) != manifest.checksum {
            return Err(format!("parts that do not belong together: {value:?}"));
        }
        let whole = Value { value, big: false, ..found };
        let what = What::One(key, OpKind::Read(None));
        Ok(Some((what, Outcome::Done(Reply::Get(Some(whole))))))
    }

    pub(super) fn start_request(
        &mut self,
        ask: &Ask<'_>,
        ordered: bool,
        request: Request<'_>,
    ) -> client::Ticket {
        let keyspaces: &Keyspaces = ask.keyspaces;
        let keyspace = keyspaces.get(usize::from(ordered)).expect("there are two");
        self.machine.start(ask.local, keyspace, request).expect("a sound request")
    }

    fn submit_at(&mut self, ask: &Ask<'_>, ordered: bool, request: Request<'_>, what: What) {
        let ticket = self.start_request(ask, ordered, request);
        self.waiting.insert(ticket, Asked { at: ask.now, sure: self.is_sure(), what });
    }
}

/// Whether all parts of a request were written. Of what is not sealed nothing must ever be seen.
fn are_sent(outcome: &Outcome<Reply>, (sure, may_be_gone): (bool, bool)) -> Result<bool, String> {
    let all = match outcome {
        Outcome::Done(Reply::Mset(all)) => all.as_slice(),
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => &[],
    };
    if !all.is_empty() && all.iter().all(Outcome::is_done) {
        return Ok(true);
    }
    let full = all.contains(&Outcome::Refused(Refusal::Full));
    let gone = may_be_gone && all.contains(&Outcome::Refused(Refusal::PartsMissing));
    if sure && !full && !gone { Err(format!("parts not written: {outcome:?}")) } else { Ok(false) }
}

/// How often a read begins again: more often than anybody replaces a value meanwhile.
const TRIES_MAX: u32 = 100;
