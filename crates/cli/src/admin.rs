//! Talking to the controller's admin address, over HTTP.

use crate::exit::Failure;
use anyhow::anyhow;
use cluster::Map;
use controller::{KeyspaceSpec, MemberState, Status};
use runtime::clock::Clock;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

/// A controller that may be asked.
#[derive(Debug)]
pub(crate) struct Admin {
    agent: Agent,
    at: SocketAddr,
}

impl Admin {
    /// The controller at this address; nothing is sent yet.
    pub(crate) fn new(at: SocketAddr, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            // The body of a refusal says why.
            .http_status_as_error(false)
            .build();
        Self { agent: config.into(), at }
    }

    /// The map as the controller has it.
    pub(crate) fn map(&self) -> Result<Map, Failure> {
        self.get("/v1/map")
    }

    /// How the cluster stands.
    pub(crate) fn status(&self) -> Result<Status, Failure> {
        self.get("/v1/status")
    }

    /// Creates a keyspace.
    pub(crate) fn create(&self, spec: &KeyspaceSpec) -> Result<(), Failure> {
        self.post("/v1/keyspaces", spec)
    }

    /// Waits until every member follows the present map.
    pub(crate) fn wait_ready(&self, timeout: Duration) -> Result<(), Failure> {
        self.wait_for(timeout, |status| {
            if status.ready {
                return Ok(());
            }
            let late = status.members.iter().find(|m| m.state != MemberState::Ready);
            Err(late.map_or_else(
                || "the map is not durable yet".to_owned(),
                |late| format!("{}: {}", late.member, late.detail),
            ))
        })
    }

    /// Waits until the status is as wanted; until then `check` says what it is instead.
    pub(crate) fn wait_for(
        &self,
        timeout: Duration,
        check: impl Fn(&Status) -> Result<(), String>,
    ) -> Result<(), Failure> {
        let mut clock = Clock::new();
        let give_up = clock.now() + timeout;
        loop {
            let Err(why) = check(&self.status()?) else { return Ok(()) };
            if clock.now() >= give_up {
                let after = timeout.as_secs_f64();
                return Err(Failure::Other(anyhow!("not ready after {after} s: {why}")));
            }
            pause();
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let answer = self.agent.get(self.url(path)).call();
        let mut answer = self.accept(answer)?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
        body.map_err(|error| Failure::Other(anyhow!("{}{path}: {error}", self.at)))
    }

    fn post<T: Serialize>(&self, path: &str, body: &T) -> Result<(), Failure> {
        let answer = self.agent.post(self.url(path)).send_json(body);
        self.accept(answer).map(|_| ())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn accept(
        &self,
        answer: Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<Response<ureq::Body>, Failure> {
        let mut answer = answer.map_err(|error| Failure::Other(self.unreachable(&error)))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.body_mut().read_json::<Complaint>();
        let why = body.map_or_else(|_| status.to_string(), |complaint| complaint.error);
        if status == StatusCode::NOT_FOUND {
            let hint = "is that the controller's admin address?";
            return Err(Failure::Other(anyhow!("{}: {why}: {hint}", self.at)));
        }
        if status.is_client_error() {
            return Err(Failure::Refused(format!("the controller refuses: {why}")));
        }
        Err(Failure::Other(anyhow!("the controller at {}: {why}", self.at)))
    }

    fn unreachable(&self, error: &ureq::Error) -> anyhow::Error {
        anyhow!(
            "no controller answers at {} ({error})\n  \
             to start a cluster on this machine:  keyway up\n  \
             if one runs elsewhere, name it:      --admin HOST:PORT  (or KEYWAY_ADMIN)",
            self.at
        )
    }
}

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one asks again and again")]
fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}

/// What the body of a refusal says.
#[derive(Deserialize)]
struct Complaint {
    error: String,
}

/// How often a status is asked for while waiting: an order takes about as long.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Largest answer taken: a map of 65,536 partitions has about 15 MB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
