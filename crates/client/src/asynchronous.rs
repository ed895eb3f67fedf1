//! The async face, on tokio: every call is a future of its outcome, and any number may be pending
//! over one socket. A task of its own moves datagrams between the socket and the machine.

mod client;
mod inbox;
mod io;
mod long;
mod shared;
mod space;

pub use client::Client;
pub use inbox::{Inbox, Opening};
pub use long::{Download, Line, Upload};
pub use space::Space;

use crate::big::{self, Batching, Reading, Sending, Writing};
use crate::face::{self, Question};
use crate::owned::{OwnedExpect, OwnedRequest};
use crate::page;
use crate::present::chosen;
use crate::{
    BatchReply, CasReply, DelReply, Expect, IncrReply, KeyCount, LookupError, New, Outcome, Page,
    PageStart, PutOptions, Refusal, Reply, ScanOptions, Step, Value,
};
use cluster::Keyspace;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use wire::Version;

impl Client {
    /// Looks a keyspace up by name. Asks the cluster the first time only.
    ///
    /// # Errors
    ///
    /// If there is none of that name, or nobody answers.
    pub async fn keyspace(&self, name: &str) -> Result<Space, LookupError> {
        let keyspace = match self.known.get(name) {
            Some(keyspace) => keyspace,
            None => {
                let outcome = self.ask(Question::Describe(name.to_owned())).await;
                self.known.learn(name, outcome)?
            }
        };
        Ok(Space { client: self.clone(), keyspace, within: None })
    }
}

impl Space {
    /// What the keyspace is at present: if the cluster was made anew, it may be another one than it
    /// was.
    #[must_use]
    pub fn keyspace(&self) -> Arc<Keyspace> {
        self.keyspace.get()
    }

    /// Reads a key, whatever the length of its value, up to `result_bytes_max`.
    pub async fn get(&self, key: &[u8]) -> Outcome<Option<Value>> {
        self.get_range(key, 0..u64::MAX).await
    }

    /// Reads the bytes of a value that lie in a range, and of a long value no more than that.
    pub async fn get_range(&self, key: &[u8], range: Range<u64>) -> Outcome<Option<Value>> {
        match self.peek(key).await {
            Outcome::Done(Some(found)) if found.big => {
                // The future of a short one has no room for what a long one takes.
                Box::pin(self.read_long(key, found, range)).await
            }
            Outcome::Done(Some(found)) => {
                let value = big::cut(found.value, &range);
                Outcome::Done(Some(Value { value, ..found }))
            }
            other => other,
        }
    }

    async fn read_long(
        &self,
        key: &[u8],
        found: Value,
        range: Range<u64>,
    ) -> Outcome<Option<Value>> {
        let bytes_max = self.client.options.result_bytes_max;
        let mut reading = Reading::new(key, range, bytes_max, found);
        let read = Line::new(self).drive(|event| reading.step(event)).await;
        read.map_or_else(Into::into, Outcome::Done)
    }

    /// Reads a key in one request. Of a value that does not fit a datagram only version and expiry
    /// are known then, and that it is [`big`](Value::big).
    pub async fn peek(&self, key: &[u8]) -> Outcome<Option<Value>> {
        self.ask(|| OwnedRequest::Get { key: key.to_vec() }).await.map(face::get)
    }

    /// Begins to read a value of any length piece by piece; `None` if there is none. What is read
    /// is one value, not pieces of several: if it is replaced meanwhile and what was there is gone,
    /// [`Refusal::Replaced`] says so.
    pub async fn download(&self, key: &[u8]) -> Outcome<Option<Download>> {
        self.download_range(key, 0..u64::MAX).await
    }

    /// The same for those of its bytes that lie in a range.
    pub async fn download_range(&self, key: &[u8], range: Range<u64>) -> Outcome<Option<Download>> {
        big::Download::begin(Line::new(self), key, self.peek(key).await, range)
    }

    /// Writes a key, whatever the length of its value, up to `value_bytes_max`; gives the version
    /// of the new value.
    pub async fn put(&self, key: &[u8], value: &[u8], options: PutOptions) -> Outcome<Version> {
        if !big::is_short(key, value) {
            return Box::pin(self.write_long(key, value, None, options)).await.map(face::put);
        }
        let request = || {
            let (key, value) = (key.to_vec(), value.to_vec());
            OwnedRequest::Put { key, value, expiry: options.expiry }
        };
        self.ask(request).await.map(face::put)
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
            let expect = Some(expect.into());
            return Box::pin(self.write_long(key, value, expect, options)).await.map(face::cas);
        }
        let request = || {
            let (key, new, expiry) = (key.to_vec(), new.into(), options.expiry);
            OwnedRequest::Cas { key, expect: expect.into(), new, expiry }
        };
        self.ask(request).await.map(face::cas)
    }

    async fn write_long(
        &self,
        key: &[u8],
        value: &[u8],
        expect: Option<OwnedExpect>,
        options: PutOptions,
    ) -> Outcome<Reply> {
        let bytes_max = self.client.options.value_bytes_max;
        let (expiry, draw) = (options.expiry, face::upload_id);
        match Writing::new((key, value), expect, expiry, bytes_max, draw) {
            Ok(mut writing) => Line::new(self).drive(|event| writing.step(event)).await,
            Err(why) => Outcome::Refused(why),
        }
    }

    /// Begins to write a value of any length piece by piece. Nobody sees anything of it before
    /// [`Upload::finish`].
    ///
    /// # Errors
    ///
    /// If the key is too long for one that has long values.
    pub fn upload(&self, key: &[u8]) -> Result<Upload, Refusal> {
        let bytes_max = self.client.options.value_bytes_max;
        let sending = Sending::new(key, face::upload_id(), bytes_max)?;
        Ok(Upload { sending, line: Line::new(self) })
    }

    /// Deletes a key.
    pub async fn del(&self, key: &[u8]) -> Outcome<DelReply> {
        self.ask(|| OwnedRequest::Del { key: key.to_vec() }).await.map(face::del)
    }

    /// Adds to a decimal number; a missing value counts as 0.
    pub async fn incr(&self, key: &[u8], delta: i64) -> Outcome<IncrReply> {
        self.ask(|| OwnedRequest::Incr { key: key.to_vec(), delta }).await.map(face::incr)
    }

    /// Writes, deletes or only checks several keys of one partition at once, if each holds what its
    /// step expects. What has no room in a [`Request::Batch`](crate::Request::Batch) goes before
    /// it, as long values do, so that only keys and their number count, 22 bytes for each, and of
    /// a long value 30.
    pub async fn batch(&self, steps: &[Step<'_>]) -> Outcome<BatchReply> {
        let bytes_max = self.client.options.value_bytes_max;
        match Batching::new(steps, bytes_max, face::upload_id) {
            Ok(None) => {}
            Ok(Some(mut batching)) => {
                let mut line = Line::new(self);
                let made = line.drive(|event| batching.step(event));
                return Box::pin(made).await.map(face::batch);
            }
            Err(why) => return Outcome::Refused(why),
        }
        let request = || OwnedRequest::Batch { steps: steps.iter().map(Into::into).collect() };
        self.ask(request).await.map(face::batch)
    }

    /// The same keys for one who has only so much time: its requests for many keys ([`mget`],
    /// [`mset`], [`mdel`]) end after that with what there is. Otherwise they go on as long as there
    /// is progress.
    ///
    /// [`mget`]: Self::mget
    /// [`mset`]: Self::mset
    /// [`mdel`]: Self::mdel
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        Self { within: Some(time), ..self.clone() }
    }

    /// Reads many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); one outcome for
    /// each, in their order. It is no snapshot: each key is read on its own.
    pub async fn mget<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<Option<Value>>> {
        let (keys, within) = (face::owned(keys), self.within);
        let request = |which: Option<&[usize]>| {
            let keys = chosen(&keys, which);
            (keys.len(), OwnedRequest::Mget { keys, within })
        };
        self.ask_many(request, face::mget).await
    }

    /// Writes many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); gives for each
    /// the outcome of its own write and the version of the new value, in their order. It is not
    /// atomic: others may see some of the writes before the rest, and some may be done and others
    /// not. Of a key that is there more than once, the last value is written, and no other.
    pub async fn mset<K, V>(&self, entries: &[(K, V)], options: PutOptions) -> Vec<Outcome<Version>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let entries = face::owned_entries(entries);
        let (expiry, within) = (options.expiry, self.within);
        let request = |which: Option<&[usize]>| {
            let entries = chosen(&entries, which);
            (entries.len(), OwnedRequest::Mset { entries, expiry, within })
        };
        self.ask_many(request, face::mset).await
    }

    /// Deletes many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); gives the
    /// outcome for each, in their order. Like [`mset`](Self::mset) it is not atomic. A key that is
    /// there more than once is deleted once.
    pub async fn mdel<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<DelReply>> {
        let (keys, within) = (face::owned(keys), self.within);
        let request = |which: Option<&[usize]>| {
            let keys = chosen(&keys, which);
            (keys.len(), OwnedRequest::Mdel { keys, within })
        };
        self.ask_many(request, face::mdel).await
    }

    /// Reads about `count` keys (at least 1) of any keyspace, in the order of (match value, key).
    /// Pages that follow each other to the end have every key among them that has a value all the
    /// time, and no key twice unless it was written meanwhile. With `keys_only` values come back
    /// empty.
    pub async fn page(&self, from: &PageStart, count: usize, keys_only: bool) -> Outcome<Page> {
        let request = || page::request(&self.keyspace.get(), from, count, keys_only);
        self.ask(request)
            .await
            .map(|reply| page::cut(&self.keyspace.get(), face::range(reply), count))
    }

    /// Reads all keys with these upper 32 bits of their match value as one page, however many they
    /// are.
    pub async fn page_of(&self, bits: u32, keys_only: bool) -> Outcome<Page> {
        let request = || page::request_all(bits, keys_only);
        self.ask(request).await.map(|reply| page::of_all(bits, face::range(reply)))
    }

    /// Counts the keys of any keyspace that have a value, each as it was at some time
    /// meanwhile. The nodes know: what that takes does not depend on how many there are.
    pub async fn count(&self) -> Outcome<KeyCount> {
        self.ask(|| OwnedRequest::Count).await.map(face::count)
    }

    /// Reads the keys of an interval, in order; for range keyspaces.
    pub async fn scan(&self, options: ScanOptions) -> Outcome<Vec<(Vec<u8>, Value)>> {
        self.ask(|| OwnedRequest::Range(options.clone())).await.map(face::range)
    }
}
