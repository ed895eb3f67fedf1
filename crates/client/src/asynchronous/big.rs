//! Values that need not fit a datagram, as futures.

use super::Space;
use crate::big::{self, ATTEMPTS, DEPTH};
use crate::face::{self, OwnedExpect, OwnedRequest};
use crate::present::is_outdated;
use crate::{
    CasReply, Expect, Expiry, New, NotDone, Outcome, PutOptions, Refusal, Reply, UnknownReason,
    Value,
};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use tokio::sync::oneshot;

impl Space {
    /// Reads a key, whatever the length of its value, up to `result_bytes_max`.
    pub async fn get(&self, key: &[u8]) -> Outcome<Option<Value>> {
        self.get_range(key, 0..u64::MAX).await
    }

    /// Reads the bytes of a value that lie in a range, and of a long value no more than that.
    pub async fn get_range(&self, key: &[u8], range: Range<u64>) -> Outcome<Option<Value>> {
        for attempt in 0..ATTEMPTS {
            match self.read(key, range.clone()).await {
                Err(NotDone::Refused(Refusal::Replaced)) => {
                    tokio::time::sleep(PAUSE * (1 << attempt)).await
                }
                Err(not_done) => return not_done.into(),
                Ok(value) => return Outcome::Done(value),
            }
        }
        Outcome::Refused(Refusal::Replaced)
    }

    /// Reads a key in one request. Of a value that does not fit a datagram only version and expiry
    /// are known then, and that it is [`big`](Value::big).
    pub async fn peek(&self, key: &[u8]) -> Outcome<Option<Value>> {
        self.ask(|| OwnedRequest::Get { key: key.to_vec() }).await.map(face::get)
    }

    async fn read(&self, key: &[u8], range: Range<u64>) -> Result<Option<Value>, NotDone> {
        let Some(found) = self.peek(key).await.into_result()? else { return Ok(None) };
        if !found.big {
            let whole = range.start == 0 && range.end >= found.value.len() as u64;
            let cut = |value| if whole { value } else { big::cut(value, &range) };
            return Ok(Some(Value { value: cut(found.value), ..found }));
        }
        // The future of a short one has no room for what a long one takes.
        Box::pin(self.read_long(key, found, range)).await
    }

    async fn read_long(
        &self,
        key: &[u8],
        found: Value,
        range: Range<u64>,
    ) -> Result<Option<Value>, NotDone> {
        let mut download = self.begin_download(key, found, range)?;
        let bytes_max = self.client.options.result_bytes_max;
        if download.left > bytes_max as u64 {
            return Err(NotDone::Refused(Refusal::ResultTooLarge { bytes_max }));
        }
        let mut value = Vec::new();
        while let Some(piece) = download.piece().await.into_result()? {
            value.extend_from_slice(&piece);
        }
        let Download { version, expiry_ms, now_ms, .. } = download;
        Ok(Some(Value { value, version, expiry_ms, now_ms, big: false }))
    }

    /// Begins to read a value of any length piece by piece; `None` if there is none. What is read
    /// is one value, not pieces of several: if it is replaced meanwhile and what was there is gone,
    /// [`Refusal::Replaced`] says so.
    pub async fn download(&self, key: &[u8]) -> Outcome<Option<Download>> {
        self.download_range(key, 0..u64::MAX).await
    }

    /// The same for those of its bytes that lie in a range.
    pub async fn download_range(&self, key: &[u8], range: Range<u64>) -> Outcome<Option<Download>> {
        let found = match self.peek(key).await {
            Outcome::Done(Some(found)) => found,
            Outcome::Done(None) => return Outcome::Done(None),
            Outcome::Refused(why) => return Outcome::Refused(why),
            Outcome::Unknown(why) => return Outcome::Unknown(why),
        };
        match self.begin_download(key, found, range) {
            Ok(download) => Outcome::Done(Some(download)),
            Err(not_done) => not_done.into(),
        }
    }

    fn begin_download(
        &self,
        key: &[u8],
        found: Value,
        range: Range<u64>,
    ) -> Result<Download, NotDone> {
        let manifest = big::manifest(key, &found).map_err(NotDone::Refused)?;
        let Value { value, version, expiry_ms, now_ms, .. } = found;
        let len = manifest.map_or(value.len() as u64, |manifest| manifest.len);
        let parts = manifest.map(|manifest| big::Download::new(key, manifest, 0..u64::MAX));
        let short = parts.is_none().then_some(value);
        let (space, left, waiting) = (self.clone(), len, VecDeque::new());
        let all = Download { space, version, expiry_ms, now_ms, len, left, short, parts, waiting };
        Ok(all.only(range))
    }

    /// Writes a key, whatever the length of its value, up to `value_bytes_max`; gives the version
    /// of the new value.
    pub async fn put(&self, key: &[u8], value: &[u8], options: PutOptions) -> Outcome<u64> {
        if big::is_short(key, value) {
            let request = || {
                let (key, value) = (key.to_vec(), value.to_vec());
                OwnedRequest::Put { key, value, expiry: options.expiry }
            };
            return self.ask(request).await.map(face::put);
        }
        let write = || async {
            match self.upload_all(key, value).await {
                Ok(mut upload) => upload.finish(options).await,
                Err(why) => Outcome::Refused(why),
            }
        };
        Box::pin(self.write_long(write)).await
    }

    /// Writes or deletes a key if what is there is what is expected; [`New::Same`] changes only the
    /// expiry of what is there. The new value may have any length, the expected one not; a version
    /// can be expected instead.
    pub async fn cas<'a>(
        &self,
        key: &[u8],
        expect: Expect<'_>,
        new: impl Into<New<'a>>,
        options: PutOptions,
    ) -> Outcome<CasReply> {
        let new = new.into();
        if let New::Value(value) = new
            && !big::is_short(key, value)
        {
            let write = || async {
                match self.upload_all(key, value).await {
                    Ok(mut upload) => upload.finish_if(expect, options).await,
                    Err(why) => Outcome::Refused(why),
                }
            };
            return Box::pin(self.write_long(write)).await;
        }
        let request = || {
            let (key, new, expiry) = (key.to_vec(), new.into(), options.expiry);
            OwnedRequest::Cas { key, expect: expect.into(), new, expiry }
        };
        self.ask(request).await.map(face::cas)
    }

    /// Writes a long value; if the keyspace is not what it was, once more.
    async fn write_long<T, F: Future<Output = Outcome<T>>>(
        &self,
        write: impl Fn() -> F,
    ) -> Outcome<T> {
        let used = self.keyspace.get();
        let outcome = write().await;
        if is_outdated(&outcome) && self.renew(&used).await { write().await } else { outcome }
    }

    /// Begins to write a value of any length piece by piece. Nobody sees anything of it before
    /// [`Upload::finish`].
    ///
    /// # Errors
    ///
    /// If the key is too long for one that has long values.
    pub fn upload(&self, key: &[u8]) -> Result<Upload, Refusal> {
        let bytes_max = self.client.options.value_bytes_max;
        let parts = big::Upload::new(key, face::upload_id(), bytes_max)?;
        Ok(Upload { space: self.clone(), parts, waiting: VecDeque::new() })
    }

    async fn upload_all(&self, key: &[u8], value: &[u8]) -> Result<Upload, Refusal> {
        let mut upload = self.upload(key)?;
        upload.push(value).await?;
        Ok(upload)
    }
}

/// A value that is being written. Dropped before it is finished, it never was.
#[derive(Debug)]
pub struct Upload {
    space: Space,
    parts: big::Upload,
    waiting: VecDeque<oneshot::Receiver<Outcome<Reply>>>,
}

impl Upload {
    /// Adds to the end of the value; waits while too much of it is on its way.
    ///
    /// # Errors
    ///
    /// If the value cannot be written; the key keeps what it has then.
    pub async fn push(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            if let Some(request) = self.parts.push(&mut bytes)? {
                self.send(request).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, request: OwnedRequest) -> Result<(), Refusal> {
        self.wait_until(DEPTH - 1).await?;
        let answer = self.space.begin(request).await;
        self.waiting.push_back(answer);
        Ok(())
    }

    /// Waits until no more than so many requests are unanswered.
    async fn wait_until(&mut self, unanswered: usize) -> Result<(), Refusal> {
        while self.waiting.len() > unanswered {
            let Some(answer) = self.waiting.pop_front() else { break };
            let outcome = answer.await.unwrap_or(Outcome::Unknown(UnknownReason::Closed));
            let taken = big::Upload::taken(outcome);
            if matches!(taken, Err(Refusal::BadMatch | Refusal::UnknownKeyspace)) {
                // The parts lie elsewhere: only those who begin anew gain from it.
                self.space.renew(&self.space.keyspace.get()).await;
            }
            taken?;
        }
        Ok(())
    }

    /// Makes what was added the value of the key, at once and whole; gives its version.
    pub async fn finish(&mut self, options: PutOptions) -> Outcome<u64> {
        self.end(None, options.expiry).await.map(face::put)
    }

    /// The same, if what is there is what is expected. If it is not, another version can be
    /// expected, without anything being sent again.
    pub async fn finish_if(
        &mut self,
        expect: Expect<'_>,
        options: PutOptions,
    ) -> Outcome<CasReply> {
        self.end(Some(expect.into()), options.expiry).await.map(face::cas)
    }

    async fn end(&mut self, expect: Option<OwnedExpect>, expiry: Expiry) -> Outcome<Reply> {
        if let Some(request) = self.parts.flush()
            && let Err(why) = self.send(request).await
        {
            return Outcome::Refused(why);
        }
        if let Err(why) = self.wait_until(0).await {
            return Outcome::Refused(why);
        }
        let used = self.space.keyspace.get();
        let answer = self.space.begin(self.parts.end(expect, expiry)).await;
        let outcome = answer.await.unwrap_or(Outcome::Unknown(UnknownReason::Closed));
        if is_outdated(&outcome) {
            // The parts lie elsewhere: only those who begin anew gain from it.
            self.space.renew(&used).await;
        }
        outcome
    }
}

/// A value that is being read.
#[derive(Debug)]
pub struct Download {
    space: Space,
    /// Version of the write that made the value.
    pub version: u64,
    /// Its absolute expiry in Unix milliseconds, by the cluster's clock; 0 for never.
    pub expiry_ms: u64,
    /// What time it was in the cluster, in Unix milliseconds, when a node answered.
    pub now_ms: u64,
    /// Bytes of the whole value.
    pub len: u64,
    /// Bytes that are still to come.
    pub left: u64,
    short: Option<Vec<u8>>,
    parts: Option<big::Download>,
    waiting: VecDeque<oneshot::Receiver<Outcome<Reply>>>,
}

impl Download {
    /// Whether the value does not fit a datagram: of a short one, everything is here already.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.parts.is_some()
    }

    /// Of what is left to be read only the bytes of the value that lie in a range. To be said
    /// before the first piece is taken.
    #[must_use]
    pub fn only(mut self, range: Range<u64>) -> Self {
        self.left = range.end.min(self.len).saturating_sub(range.start);
        self.short = self.short.map(|value| big::cut(value, &range)).filter(|it| !it.is_empty());
        self.parts = self.parts.map(|parts| parts.only(range));
        self
    }

    /// The next piece, some 80 KB; `None` after the last.
    pub async fn piece(&mut self) -> Outcome<Option<Vec<u8>>> {
        let Some(parts) = &mut self.parts else {
            self.left = 0;
            return Outcome::Done(self.short.take());
        };
        while self.waiting.len() < DEPTH
            && let Some(request) = parts.request()
        {
            let answer = self.space.begin(request).await;
            self.waiting.push_back(answer);
        }
        let Some(answer) = self.waiting.pop_front() else { return Outcome::Done(None) };
        match parts.take(answer.await.unwrap_or(Outcome::Unknown(UnknownReason::Closed))) {
            Ok(piece) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                Outcome::Done(Some(piece))
            }
            Err(not_done) => not_done.into(),
        }
    }
}

/// Before a read begins anew because the value was replaced; doubled each time.
const PAUSE: Duration = Duration::from_millis(1);
