//! Talking to admin addresses, over HTTP: mostly the controller's.

mod controllers;

pub use controllers::Others;

use crate::exit::Failure;
use anyhow::anyhow;
use cluster::{CacheId, KeyspaceId, Map, Match, Member, NodeId, NodeRecord, SwitchRecord};
use controller::{KeyspaceSpec, MemberState, MemberStatus, PartitionStatus, Status};
use controllers::{Found, url};
use runtime::admin::NewNode;
use runtime::clock::Clock;
use runtime::driver::{InKernel, NamedKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use switch::HotExplanation;
use ureq::Agent;
use ureq::http::{Response, StatusCode};

/// The controllers of a cluster: the one that is active, and one that stands by.
#[derive(Debug)]
pub struct Admin {
    agent: Agent,
    /// Where they are; not empty.
    addresses: Vec<SocketAddr>,
    timeout: Duration,
    /// What was found out of them, if there are several.
    found: Mutex<Option<Found>>,
}

impl Admin {
    /// The controllers at these addresses; nothing is sent yet.
    pub fn new(addresses: &[SocketAddr], timeout: Duration) -> Self {
        let addresses = addresses.to_vec();
        Self { agent: agent(timeout), addresses, timeout, found: Mutex::default() }
    }

    /// The map as the controller has it.
    pub fn map(&self) -> Result<Map, Failure> {
        self.get("/v1/map")
    }

    /// How the cluster stands.
    pub fn status(&self) -> Result<Status, Failure> {
        self.get("/v1/status")
    }

    /// Which of these controllers stand by: they answer, and say that another one leads; and which
    /// do not answer.
    pub fn others(&self) -> Others {
        controllers::others(&self.agent, &self.addresses, self.timeout.min(OTHERS_WAIT_MAX))
    }

    /// The metrics of the controller's process.
    pub fn metrics(&self) -> Result<String, Failure> {
        let mut answer = self.ask(|at| self.agent.get(url(at, "/metrics")).call())?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        body.map_err(|error| Failure::Other(anyhow!("/metrics: {error}")))
    }

    /// Creates a keyspace.
    pub fn create(&self, spec: &KeyspaceSpec) -> Result<(), Failure> {
        self.post("/v1/keyspaces", spec)
    }

    /// Has a keyspace altered.
    pub fn alter(&self, wish: &runtime::admin::Alter) -> Result<(), Failure> {
        self.post("/v1/keyspaces/alter", wish)
    }

    /// Makes a node known.
    pub fn add_node(&self, node: &NewNode) -> Result<(), Failure> {
        self.post("/v1/nodes", node)
    }

    /// Pins a key, or unpins it.
    pub fn wish_hot(&self, verb: &str, key: &NamedKey) -> Result<(), Failure> {
        self.post(&format!("/v1/hot/{verb}"), key)
    }

    /// Forgets a node.
    pub fn remove_node(&self, id: u16) -> Result<(), Failure> {
        self.ask(|at| self.agent.delete(url(at, &format!("/v1/nodes/{id}"))).call()).map(|_| ())
    }

    /// Asks for something that takes no more than a path to say.
    pub fn command(&self, path: &str) -> Result<(), Failure> {
        self.ask(|at| self.agent.post(url(at, path)).send_empty()).map(|_| ())
    }

    /// Asks for replicas to be compared.
    pub fn verify(&self, wish: &runtime::admin::Verify) -> Result<(), Failure> {
        self.post("/v1/verify", wish)
    }

    /// Has a replica moved.
    pub fn move_replica(&self, wish: &runtime::admin::Move) -> Result<(), Failure> {
        self.post("/v1/placement/move", wish)
    }

    /// Has a partition split.
    pub fn split(&self, wish: &runtime::admin::Split) -> Result<(), Failure> {
        self.post("/v1/placement/split", wish)
    }

    /// Has two partitions merged.
    pub fn merge(&self, wish: &runtime::admin::Merge) -> Result<(), Failure> {
        self.post("/v1/placement/merge", wish)
    }

    /// Waits until all keys of a keyspace can be read and written, whatever is with others.
    pub fn wait_served(&self, keyspace: &str, timeout: Duration) -> Result<(), Failure> {
        self.wait_for(timeout, |status| is_served(status, keyspace))
    }

    /// Waits until the status is as wanted; until then `check` says what it is instead.
    pub fn wait_for(
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
        let mut answer = self.ask(|at| self.agent.get(url(at, path)).call())?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
        body.map_err(|error| Failure::Other(anyhow!("{path}: {error}")))
    }

    fn post<T: Serialize>(&self, path: &str, body: &T) -> Result<(), Failure> {
        self.ask(|at| self.agent.post(url(at, path)).send_json(body)).map(|_| ())
    }

    /// Asks one after the other until one says yes or no, and whoever is said to lead before the
    /// rest. One that stands by, has ended or cannot be reached says neither.
    fn ask(&self, request: impl Fn(SocketAddr) -> Asked) -> Result<Response<ureq::Body>, Failure> {
        let mut complaints = Vec::new();
        let (mut to_ask, mut asked) = (VecDeque::from(self.addresses.clone()), BTreeSet::new());
        if self.addresses.len() > 1 {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            let find = || controllers::find(&self.agent, &self.addresses, self.timeout);
            let found = found.get_or_insert_with(find);
            found.leader.into_iter().for_each(|leader| to_ask.push_front(leader));
            for silent in &found.silent {
                asked.insert(*silent);
                complaints.push(format!("no controller answers at {silent}"));
            }
        }
        while let Some(at) = to_ask.pop_front() {
            if !asked.insert(at) {
                continue;
            }
            match request(at) {
                Ok(answer) if answer.status().is_success() => return Ok(answer),
                Ok(answer) if answer.status().is_client_error() => {
                    return Err(refused(at, answer));
                }
                Ok(answer) => {
                    let Complaint { error, leader } = complaint(answer);
                    // It is asked next, whether it was named or not.
                    leader.into_iter().for_each(|leader| to_ask.push_front(leader));
                    complaints.push(format!("the controller at {at}: {error}"));
                }
                Err(error) => complaints.push(format!("no controller answers at {at} ({error})")),
            }
        }
        // Another one may lead by the next time.
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Err(Failure::Other(anyhow!(
            "{}\n  \
             to start a cluster on this machine:  keyway up\n  \
             if one runs elsewhere, name it:      --admin HOST:PORT  (or KEYWAY_ADMIN)",
            complaints.join("\n")
        )))
    }
}

/// Whether all keys of a keyspace can be read and written; if not, what is missing.
fn is_served(status: &Status, keyspace: &str) -> Result<(), String> {
    if status.durable_revision != status.revision {
        return Err("the map is not durable yet".to_owned());
    }
    let of = status.keyspaces.iter().find(|it| it.name == keyspace);
    let Some(of) = of else { return Err(format!("{keyspace:?} is gone")) };
    let late: Vec<&PartitionStatus> =
        of.partitions.iter().filter(|it| !it.open || it.unheard > 0).collect();
    let holds = late.iter().flat_map(|it| &it.chain).copied().map(Member::Node);
    let active = Member::Switch(status.active_switch);
    let needed: BTreeSet<Member> = holds.chain([active]).collect();
    let is_ready = |it: &MemberStatus| it.member == active && it.state == MemberState::Ready;
    if late.is_empty() && status.members.iter().any(is_ready) {
        return Ok(());
    }
    let missing = status.late().filter(|it| needed.contains(&it.member));
    let missing = missing.map(MemberStatus::in_words);
    let count = late.len();
    let what = format!("{count} partitions of {keyspace:?} are not served yet");
    Err([what].into_iter().chain(missing).collect::<Vec<_>>().join("; "))
}

/// The metrics of the roles with these admin addresses, in their order.
pub fn metrics(
    roles: impl Iterator<Item = SocketAddr>,
    timeout: Duration,
) -> Result<Vec<String>, Failure> {
    let agent = agent(timeout);
    let ask = |at| -> Result<String, ureq::Error> {
        agent.get(url(at, "/metrics")).call()?.body_mut().read_to_string()
    };
    roles.map(|at| ask(at).map_err(|why| Failure::Other(anyhow!("{at}: {why}")))).collect()
}

/// What nodes with these admin addresses have on record, or why one does not say so, in their
/// order. All are asked at once.
pub fn records(
    nodes: &[(NodeId, SocketAddr)],
    timeout: Duration,
) -> Vec<(NodeId, Result<NodeRecord, String>)> {
    let ask = |id: NodeId, at: SocketAddr| -> Result<NodeRecord, String> {
        let record: NodeRecord = record_at(at, timeout)?;
        let other = record.node;
        if other == id { Ok(record) } else { Err(format!("{at} is the address of node {other}")) }
    };
    std::thread::scope(|scope| {
        let asked = nodes.iter().map(|(id, at)| (*id, scope.spawn(move || ask(*id, *at))));
        let asked: Vec<_> = asked.collect();
        let answers = asked.into_iter().map(|(id, answer)| {
            (id, answer.join().unwrap_or_else(|_| Err("the question was not asked".to_owned())))
        });
        answers.collect()
    })
}

/// What the switch with this admin address follows, or why it does not say so.
pub fn switch_record(at: SocketAddr, timeout: Duration) -> Result<SwitchRecord, String> {
    record_at(at, timeout)
}

fn record_at<T: DeserializeOwned>(at: SocketAddr, timeout: Duration) -> Result<T, String> {
    let answer = agent(timeout).get(url(at, "/v1/record")).call();
    let mut answer = answer.map_err(|error| format!("nobody answers at {at} ({error})"))?;
    if !answer.status().is_success() {
        return Err(format!("{at} does not say what it has on record: {}", why(answer)));
    }
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
    body.map_err(|error| format!("{at}: {error}"))
}

/// What the program in the kernel of the switch with this admin address does with requests for a
/// match value.
pub fn in_kernel(
    switch: SocketAddr,
    timeout: Duration,
    keyspace: KeyspaceId,
    at: Match,
) -> Result<InKernel, Failure> {
    ask_switch(switch, timeout, &format!("/v1/explain?keyspace={keyspace}&match={at}"))
}

/// What the switch with this admin address knows of a key, if it is hot.
pub fn hot_key(
    switch: SocketAddr,
    timeout: Duration,
    keyspace: KeyspaceId,
    keyhash: u64,
) -> Result<Option<HotExplanation>, Failure> {
    let path = format!("/v1/explain/hot?keyspace={keyspace}&keyhash={keyhash:016x}");
    ask_switch(switch, timeout, &path)
}

/// The cache that the switch with this admin address sends reads of a key to, if to any.
pub fn cache_of_key(
    switch: SocketAddr,
    timeout: Duration,
    keyspace: KeyspaceId,
    keyhash: u64,
) -> Result<Option<CacheId>, Failure> {
    let path = format!("/v1/explain/cached?keyspace={keyspace}&keyhash={keyhash:016x}");
    ask_switch(switch, timeout, &path)
}

fn ask_switch<T: DeserializeOwned>(
    switch: SocketAddr,
    timeout: Duration,
    path: &str,
) -> Result<T, Failure> {
    let mut answer = agent(timeout).get(url(switch, path)).call().map_err(|error| {
        Failure::Other(anyhow!(
            "no switch answers at {switch} ({error})\n  \
             name its admin address:  --switch HOST:PORT  (or KEYWAY_SWITCH)"
        ))
    })?;
    if !answer.status().is_success() {
        let missing = answer.status() == StatusCode::NOT_FOUND;
        let hint = if missing { ": is that a switch's admin address?" } else { "" };
        return Err(Failure::Other(anyhow!("{switch}: {}{hint}", why(answer))));
    }
    let body = answer.body_mut().read_json();
    body.map_err(|error| Failure::Other(anyhow!("{switch}: {error}")))
}

fn agent(timeout: Duration) -> Agent {
    let config = Agent::config_builder()
        .timeout_global(Some(timeout))
        // The body of a refusal says why.
        .http_status_as_error(false)
        .build();
    config.into()
}

/// What became of a request.
type Asked = Result<Response<ureq::Body>, ureq::Error>;

fn refused(at: SocketAddr, answer: Response<ureq::Body>) -> Failure {
    let status = answer.status();
    let why = why(answer);
    if status == StatusCode::NOT_FOUND {
        return Failure::Other(anyhow!("{at}: {why}: is that the controller's admin address?"));
    }
    Failure::Refused(format!("the controller refuses: {why}"))
}

fn why(answer: Response<ureq::Body>) -> String {
    complaint(answer).error
}

fn complaint(mut answer: Response<ureq::Body>) -> Complaint {
    let read = answer.body_mut().read_json::<Complaint>();
    read.unwrap_or_else(|_| Complaint { error: answer.status().to_string(), leader: None })
}

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one asks again and again")]
pub(crate) fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}

/// How long controllers are waited for that are only counted.
const OTHERS_WAIT_MAX: Duration = Duration::from_secs(1);

/// What the body of a refusal says.
#[derive(Deserialize)]
struct Complaint {
    error: String,
    /// Who leads, of a controller that stands by.
    #[serde(default)]
    leader: Option<SocketAddr>,
}

/// How often a status is asked for while waiting: an order takes about as long.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Largest answer taken: a map of 65,536 partitions has about 15 MB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
