//! What is asked of etcd, over the JSON form of its gRPC API that every member serves beside it
//! (`--enable-grpc-gateway`, on by default since 3.4).
//!
//! Every call is one HTTP request with a deadline, by a thread that may wait: that is all that is
//! needed here, and a client of its gRPC form would want a compiler of protocol buffers from
//! whoever builds Keyway.

use super::access::EtcdAccess;
use super::url::EtcdUrl;
use crate::identity::{OutsideUser, outside_agent};
use data_encoding::BASE64;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a call may take. A healthy etcd answers within some 10 ms, one whose disk is slow
/// within some 100 ms; what takes longer is asked of another member.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of an answer that are read: a chunk of a map, in base64, and what goes with it.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// The members of one etcd.
#[derive(Debug)]
pub(super) struct Api {
    url: EtcdUrl,
    /// Which of them is asked.
    at: AtomicUsize,
    agent: ureq::Agent,
    user: Option<OutsideUser>,
    /// What etcd gave for the user's password.
    token: Mutex<Option<String>>,
}

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// etcd said no, and did nothing.
    Refused(String),
    /// It may have been done or not.
    Unclear(String),
}

impl CallError {
    pub(super) fn text(&self) -> &str {
        let (Self::Refused(text) | Self::Unclear(text)) = self;
        text
    }
}

impl From<ureq::Error> for CallError {
    fn from(error: ureq::Error) -> Self {
        Self::Unclear(error.to_string())
    }
}

/// What comes back over HTTP.
type Answer = ureq::http::Response<ureq::Body>;

/// A number of 64 bits, which JSON of gRPC writes as text and leaves out when it is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            other => other.as_i64(),
        };
        number.map(Self).ok_or_else(|| serde::de::Error::custom("not a number of 64 bits"))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// Bytes, which are base64 in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        BASE64.decode(text.as_bytes()).map(Self).map_err(serde::de::Error::custom)
    }
}

/// What every answer begins with.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Header {
    /// The revision of all keys.
    #[serde(default)]
    pub(super) revision: Number,
}

/// A key that is there.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct KeyValue {
    #[serde(default)]
    pub(super) mod_revision: Number,
    #[serde(default)]
    pub(super) value: Bytes,
    #[serde(default)]
    pub(super) lease: Number,
}

/// What is at a key, and the revision of all keys at that moment.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Range {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

impl Range {
    pub(super) fn one(self) -> Option<KeyValue> {
        self.kvs.into_iter().next()
    }
}

/// What a key is read by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Read {
    /// What most members agree on.
    Agreed,
    /// What the member that is asked knows, which may be a little behind the others.
    Known,
    /// The same, at an earlier revision of all keys.
    At(Number),
}

/// What became of a transaction.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Done {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Clone, Debug, Deserialize)]
struct Response {
    #[serde(default)]
    response_range: Option<Range>,
}

impl Done {
    /// What was read at the key that was asked for as this one.
    pub(super) fn read(&self, index: usize) -> Option<KeyValue> {
        self.responses.get(index)?.response_range.clone()?.one()
    }
}

/// A lease as it is.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Lease {
    #[serde(rename = "ID", default)]
    pub(super) id: Number,
    /// Whole seconds that are left; less than 0: it is over.
    #[serde(rename = "TTL", default)]
    pub(super) left: Number,
    /// Seconds that it lasts.
    #[serde(rename = "grantedTTL", default)]
    pub(super) granted: Number,
}

/// The answers of a stream.
#[derive(Deserialize)]
struct Streamed<T> {
    result: Option<T>,
}

/// What proves who asks.
#[derive(Deserialize)]
struct Token {
    token: String,
}

/// What etcd says of a token that it takes no more: it forgets them after some minutes, and all of
/// them when its users change (`ErrGRPCInvalidAuthToken`, `ErrGRPCAuthOldRevision`).
const TOKEN_ENDED: [&str; 2] = ["invalid auth token", "revision of auth store is old"];

/// What etcd says when it does not do something.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    message: String,
}

/// Codes of gRPC with which nothing was done: invalid argument, not found, already there, not
/// permitted, exhausted, not fulfilled, out of range, not implemented, not known who asks.
const NOTHING_DONE: [u32; 9] = [3, 5, 6, 7, 8, 9, 11, 12, 16];

impl Api {
    pub(super) fn new(url: EtcdUrl, access: EtcdAccess) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A proxy that the environment names is for the world outside.
            .proxy(None)
            .build();
        let EtcdAccess { tls, user } = access;
        let agent = outside_agent(tls, config);
        Self { url, at: AtomicUsize::new(0), agent, user, token: Mutex::default() }
    }

    pub(super) fn url(&self) -> &EtcdUrl {
        &self.url
    }

    /// The key of this name, as JSON has it.
    pub(super) fn key(&self, name: &str) -> String {
        BASE64.encode(format!("{}/{name}", self.url.prefix()).as_bytes())
    }

    /// What is at a key.
    pub(super) fn range(&self, name: &str, read: Read, wait: Duration) -> Result<Range, CallError> {
        let key = self.key(name);
        let body = match read {
            Read::Agreed => json!({ "key": key }),
            Read::Known => json!({ "key": key, "serializable": true }),
            Read::At(revision) => {
                json!({ "key": key, "serializable": true, "revision": revision })
            }
        };
        self.call("kv/range", &body, wait)
    }

    /// What is at these keys, as the first member of etcd knows that answers. It does not ask the
    /// others, so it answers also while those elect a leader.
    pub(super) fn look(&self, names: &[&str], wait: Duration) -> Result<Done, CallError> {
        let read = |name: &&str| {
            let range = json!({ "key": self.key(name), "serializable": true });
            json!({ "request_range": range })
        };
        let body = json!({ "success": names.iter().map(read).collect::<Vec<_>>() });
        let mut looks = 1..self.url.count();
        loop {
            match self.call("kv/txn", &body, wait) {
                Err(CallError::Unclear(_)) if looks.next().is_some() => {}
                answer => return answer,
            }
        }
    }

    /// Does this if all of `compare` is so; else reads what `failure` names.
    pub(super) fn txn(
        &self,
        compare: &[Value],
        success: &[Value],
        failure: &[&str],
        wait: Duration,
    ) -> Result<Done, CallError> {
        let read = |name: &&str| json!({ "request_range": { "key": self.key(name) } });
        let failure: Vec<Value> = failure.iter().map(read).collect();
        let body = json!({ "compare": compare, "success": success, "failure": failure });
        self.call("kv/txn", &body, wait)
    }

    /// A condition: the key was changed last in this revision, or is not there (0).
    pub(super) fn unchanged(&self, name: &str, revision: Number) -> Value {
        let key = self.key(name);
        json!({ "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision })
    }

    /// An operation: put this there, for as long as a lease lasts if there is one.
    pub(super) fn put(&self, name: &str, value: &[u8], lease: Number) -> Value {
        let (key, value) = (self.key(name), BASE64.encode(value));
        json!({ "request_put": { "key": key, "value": value, "lease": lease } })
    }

    /// An operation: delete the keys from this one on and below that one.
    pub(super) fn delete(&self, from: &str, below: &str) -> Value {
        let (key, range_end) = (self.key(from), self.key(below));
        json!({ "request_delete_range": { "key": key, "range_end": range_end } })
    }

    /// Deletes a key. Unlike what has conditions that is done also where there is no room.
    pub(super) fn remove(&self, name: &str, wait: Duration) -> Result<(), CallError> {
        let body = json!({ "key": self.key(name) });
        self.call("kv/deleterange", &body, wait).map(|_: Value| ())
    }

    pub(super) fn grant(&self, seconds: i64, wait: Duration) -> Result<Lease, CallError> {
        self.call("lease/grant", &json!({ "TTL": Number(seconds) }), wait)
    }

    pub(super) fn revoke(&self, lease: Number, wait: Duration) -> Result<(), CallError> {
        self.call("lease/revoke", &json!({ "ID": lease }), wait).map(|_: Value| ())
    }

    pub(super) fn look_at(&self, lease: Number, wait: Duration) -> Result<Lease, CallError> {
        self.call("lease/timetolive", &json!({ "ID": lease }), wait)
    }

    /// Renews a lease; nothing is left of one that is over.
    pub(super) fn keep_alive(&self, lease: Number, wait: Duration) -> Result<Lease, CallError> {
        let answer: Streamed<Lease> =
            self.call("lease/keepalive", &json!({ "ID": lease }), wait)?;
        answer.result.ok_or_else(|| CallError::Unclear("no answer to a keepalive".into()))
    }

    /// Reads a page of this member.
    pub(super) fn read_page<T: DeserializeOwned>(
        &self,
        endpoint: &str,
        path: &str,
        wait: Duration,
    ) -> Result<T, CallError> {
        let request = self.agent.get(format!("http://{endpoint}/{path}"));
        parse(request.config().timeout_global(Some(wait)).build().call()?)
    }

    /// Asks the member that answered last; if it does not, the next one is asked the next time.
    fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        wait: Duration,
    ) -> Result<T, CallError> {
        let at = self.at.load(Ordering::Relaxed);
        let endpoint = self.url.endpoint(at);
        let asked = self.ask_as_user(endpoint, path, body, wait);
        asked.map_err(|error| match error {
            CallError::Unclear(why) => {
                self.at.store(at.wrapping_add(1), Ordering::Relaxed);
                CallError::Unclear(format!("{endpoint}: {why}"))
            }
            CallError::Refused(why) => CallError::Refused(format!("{endpoint}: {why}")),
        })
    }

    /// Asks this member, as the user that etcd takes us for, if there is one.
    pub(super) fn ask_as_user<T: DeserializeOwned>(
        &self,
        endpoint: &str,
        path: &str,
        body: &Value,
        wait: Duration,
    ) -> Result<T, CallError> {
        let Some(user) = &self.user else { return self.ask(endpoint, path, None, body, wait) };
        let held = self.token().clone();
        if let Some(token) = held {
            match self.ask(endpoint, path, Some(&token), body, wait) {
                Err(CallError::Refused(why)) if TOKEN_ENDED.iter().any(|it| why.contains(it)) => {}
                answer => return answer,
            }
        }
        let login = json!({ "name": user.name, "password": *user.password() });
        let given = self.ask(endpoint, "auth/authenticate", None, &login, wait);
        let Token { token } = given?;
        *self.token() = Some(token.clone());
        self.ask(endpoint, path, Some(&token), body, wait)
    }

    fn token(&self) -> MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        endpoint: &str,
        path: &str,
        token: Option<&str>,
        body: &Value,
        wait: Duration,
    ) -> Result<T, CallError> {
        // Whether it is under TLS, the agent knows.
        let mut request = self.agent.post(format!("http://{endpoint}/v3/{path}"));
        if let Some(token) = token {
            request = request.header("Authorization", token);
        }
        let request = request.config().timeout_global(Some(wait)).build();
        parse(request.send_json(body)?)
    }
}

/// What an answer says.
fn parse<T: DeserializeOwned>(mut answer: Answer) -> Result<T, CallError> {
    let status = answer.status();
    let read = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
    if status.is_success() {
        let parsed = serde_json::from_slice(&read);
        return parsed.map_err(|error| CallError::Unclear(format!("not understood: {error}")));
    }
    let Ok(Refusal { code, message }) = serde_json::from_slice(&read) else {
        return Err(CallError::Unclear(status.to_string()));
    };
    if NOTHING_DONE.contains(&code) {
        Err(CallError::Refused(message))
    } else {
        Err(CallError::Unclear(message))
    }
}
