//! Values that do not fit a datagram: what can be said of them without reading them, and how they
//! stream, to the client and from it.

use super::errors::{Answer, SYNTAX, not_read, not_written};
use super::incoming::Incoming;
use super::limits;
use super::looked::{Looked, WHOLE_MAX};
use super::terms::{Condition, set_terms};
use super::{Store, access};
use crate::Reply;
use crate::reply::Long;
use bytes::Bytes;
use client::asynchronous::{Download, Upload};
use client::{CasReply, Expect, Expiry, NotDone, Outcome, PutOptions, Refusal, Value};
use std::ops::Range;
use tokio::sync::mpsc;
use wire::Version;

/// How often a reply begins again because the value was replaced before its first byte left.
const TRIES_MAX: u32 = 8;

impl Store {
    /// Begins to take a value for a key.
    ///
    /// # Errors
    ///
    /// If the key can have none of that length.
    pub(crate) fn take_in(&self, key: &[u8], len: usize) -> Answer<Incoming> {
        limits::entry(key, len)?;
        let upload = self.space.upload(key);
        let mut upload = upload.map_err(|why| not_written(NotDone::Refused(why)))?;
        let (pieces, mut coming) = mpsc::channel::<Bytes>(2);
        let upload = tokio::spawn(async move {
            let mut failed = None;
            while let Some(piece) = coming.recv().await {
                // What cannot be kept is read and forgotten, to get to the end of the command.
                if failed.is_none() {
                    failed = upload.push(&piece).await.err();
                }
            }
            failed.map_or(Ok(upload), Err)
        });
        Ok(Incoming { pieces, upload })
    }

    /// SET of a value that has come in already.
    pub(crate) async fn set_incoming(&self, incoming: Incoming, args: &[Bytes]) -> Reply {
        let Incoming { pieces, upload } = incoming;
        drop(pieces);
        let mut upload = match upload.await.expect("nothing in it panics") {
            Ok(upload) => upload,
            Err(why) => return not_written(NotDone::Refused(why)),
        };
        let [_, key, _, options @ ..] = args else { return SYNTAX };
        let done = self.finish_set(&mut upload, key, options).await;
        done.unwrap_or_else(|error| error)
    }

    /// What is known of a key's value, which is not read.
    pub(super) async fn look(&self, key: &[u8]) -> Answer<Option<Looked>> {
        if self.view.is_some() {
            return Ok(self.get(key).await?.map(Looked::Noted));
        }
        limits::key(key)?;
        let found = self.space.download(key).await.into_result().map_err(not_read)?;
        Ok(found.map(Looked::Stored))
    }

    /// The same as a value, which has its bytes only if it is short.
    pub(super) async fn look_at(&self, key: &[u8]) -> Answer<Option<Value>> {
        match self.look(key).await? {
            Some(found) => found.at_once().await.map(Some),
            None => Ok(None),
        }
    }

    /// A reply with those bytes of the key's value that `wanted` says, given its length; and the
    /// version of that value.
    pub(super) async fn bytes(
        &self,
        key: &[u8],
        wanted: impl Fn(u64) -> Range<u64>,
    ) -> Answer<Option<(Reply, Version)>> {
        let mut tries = 0;
        loop {
            access::pause(tries).await;
            let Some(found) = self.look(key).await? else { return Ok(None) };
            let (wanted, version) = (wanted(found.len()), found.version());
            let replied = match found {
                Looked::Stored(download) => reply_with(download.only(wanted)).await,
                Looked::Noted(found) => Ok(cut(found.value, &wanted)),
            };
            match replied {
                Ok(reply) => return Ok(Some((reply, version))),
                Err(NotDone::Refused(Refusal::Replaced)) if tries < TRIES_MAX => tries += 1,
                Err(why) => return Err(not_read(why)),
            }
        }
    }
}

/// Some bytes of a value.
fn cut(value: Vec<u8>, wanted: &Range<u64>) -> Reply {
    let at = |end: u64| usize::try_from(end).unwrap_or(usize::MAX);
    let bytes = Bytes::from(value);
    let end = at(wanted.end).min(bytes.len());
    Reply::Bulk(bytes.slice(at(wanted.start).min(end)..end))
}

/// The bytes of a value as a reply: whole if they are few.
async fn reply_with(mut download: Download) -> Result<Reply, NotDone> {
    let len = download.left;
    let mut whole = Vec::new();
    while let Some(piece) = download.piece().await.into_result()? {
        if len > WHOLE_MAX {
            return Ok(Reply::Long(stream(download, len, piece.into())));
        }
        // The only piece of a short value is not copied.
        if whole.is_empty() {
            whole = piece;
        } else {
            whole.extend_from_slice(&piece);
        }
    }
    Ok(Reply::Bulk(whole.into()))
}

/// Reads on as fast as pieces are taken.
fn stream(mut download: Download, len: u64, first: Bytes) -> Long {
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut piece = first;
        // Who takes pieces counts them, and sees it if they end too early.
        while sender.send(piece).await.is_ok() {
            match download.piece().await {
                Outcome::Done(Some(next)) => piece = next.into(),
                Outcome::Done(None) | Outcome::Refused(_) | Outcome::Unknown(_) => return,
            }
        }
    });
    Long::new(len, pieces)
}

impl Store {
    async fn finish_set(&self, upload: &mut Upload, key: &[u8], options: &[Bytes]) -> Answer {
        let (condition, get, expiry) = set_terms(options)?;
        if !get && condition == Condition::None {
            let written = upload.finish(PutOptions { expiry }).await.into_result();
            return written.map(|_| Reply::OK).map_err(not_written);
        }
        for tries in 0..access::TRIES_MAX {
            access::pause(tries).await;
            let reads = get || matches!(condition, Condition::Equal(_));
            let found = if reads { self.get(key).await? } else { self.look_at(key).await? };
            let (holds, reply) = condition.judge(get, found.as_ref());
            if !holds || self.seal(upload, found.as_ref(), expiry).await? {
                return Ok(reply);
            }
        }
        Err(access::CONTENDED)
    }

    /// Makes it the value if what is there is what was found; whether it was.
    async fn seal(
        &self,
        upload: &mut Upload,
        found: Option<&Value>,
        expiry: Expiry,
    ) -> Answer<bool> {
        let expect = Expect::Version(found.map_or(Version::NONE, |found| found.version));
        let sealed = upload.finish_if(expect, PutOptions { expiry }).await;
        match sealed.into_result().map_err(not_written)? {
            CasReply::Written { .. } => Ok(true),
            CasReply::Mismatch { .. } => Ok(false),
        }
    }
}
