//! Talking to admin addresses, over HTTP: mostly the controller's.

mod asker;
mod controllers;

pub use controllers::Others;

use crate::exit::Failure;
use crate::shared::Shared;
use anyhow::anyhow;
use asker::Asker;
use cluster::{CacheId, KeyspaceId, Map, Match, Member, NodeId, NodeRecord, SwitchRecord};
use controller::{KeyspaceSpec, MemberState, MemberStatus, PartitionStatus, Status};
use controllers::Found;
use envelope::Pass;
use runtime::admin::{AskPass, AuditEntry, NewNode};
use runtime::clock::Clock;
use runtime::driver::{InKernel, NamedKey};
use runtime::identity::{Expected, Identity, Role, Security};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use switch::HotExplanation;
use ureq::http::{Response, StatusCode};

/// The controllers of a cluster: the one that is active, and one that stands by.
#[derive(Debug)]
pub struct Admin {
    asker: Asker,
    /// Where they are; not empty.
    addresses: Vec<SocketAddr>,
    timeout: Duration,
    /// What was found out of them, if there are several.
    found: Mutex<Option<Found>>,
}

impl Admin {
    /// The controllers at these addresses, which ask for no certificate; nothing is sent yet.
    pub fn new(addresses: &[SocketAddr], timeout: Duration) -> Self {
        Self::with(addresses, timeout, &Security::Loopback)
    }

    /// The controllers that the command line names, with the certificate that it names.
    pub fn of(shared: &Shared, timeout: Duration) -> Result<Self, Failure> {
        Ok(Self::with(&shared.admins, timeout, &shared.security()?))
    }

    /// The controllers at these addresses; nothing is sent yet.
    pub fn with(addresses: &[SocketAddr], timeout: Duration, security: &Security) -> Self {
        let asker = Asker::new(security, Expected::Role(Role::Controller), timeout);
        Self { asker, addresses: addresses.to_vec(), timeout, found: Mutex::default() }
    }

    /// The map as the controller has it.
    pub fn map(&self) -> Result<Map, Failure> {
        self.get("/v1/map")
    }

    /// Who has changed what lately, the oldest first.
    pub fn audit(&self) -> Result<Vec<AuditEntry>, Failure> {
        self.get("/v1/audit")
    }

    /// How the cluster stands.
    pub fn status(&self) -> Result<Status, Failure> {
        self.get("/v1/status")
    }

    /// Which of these controllers stand by: they answer, and say that another one leads; and which
    /// do not answer.
    pub fn others(&self) -> Others {
        controllers::others(&self.asker, &self.addresses, self.timeout.min(OTHERS_WAIT_MAX))
    }

    /// The metrics of the controller's process.
    pub fn metrics(&self) -> Result<String, Failure> {
        let mut answer = self.ask_for("/metrics")?;
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
        let path = format!("/v1/nodes/{id}");
        let Asker { agent, .. } = &self.asker;
        self.ask(|at| agent.delete(self.asker.url(at, &path)).call()).map(|_| ())
    }

    /// Asks for something that takes no more than a path to say.
    pub fn command(&self, path: &str) -> Result<(), Failure> {
        let Asker { agent, .. } = &self.asker;
        self.ask(|at| agent.post(self.asker.url(at, path)).send_empty()).map(|_| ())
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

    /// A pass for this process, or the one that it has with newer keys; none if packets of the
    /// cluster are in no envelopes.
    pub fn pass(&self, asked: &AskPass) -> Result<Option<Pass>, Failure> {
        let Asker { agent, .. } = &self.asker;
        let path = "/v1/pass";
        let mut answer = self.ask(|at| agent.post(self.asker.url(at, path)).send_json(asked))?;
        let body = answer.body_mut().read_json();
        body.map_err(|error| Failure::Other(anyhow!("{path}: {error}")))
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
        let mut answer = self.ask_for(path)?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
        body.map_err(|error| Failure::Other(anyhow!("{path}: {error}")))
    }

    fn post<T: Serialize>(&self, path: &str, body: &T) -> Result<(), Failure> {
        let Asker { agent, .. } = &self.asker;
        self.ask(|at| agent.post(self.asker.url(at, path)).send_json(body)).map(|_| ())
    }

    fn ask_for(&self, path: &str) -> Result<Response<ureq::Body>, Failure> {
        self.ask(|at| self.asker.agent.get(self.asker.url(at, path)).call())
    }

    /// Asks one after the other until one says yes or no, and whoever is said to lead before the
    /// rest. One that stands by, has ended or cannot be reached says neither.
    fn ask(&self, request: impl Fn(SocketAddr) -> Asked) -> Result<Response<ureq::Body>, Failure> {
        let mut complaints = Vec::new();
        let (mut to_ask, mut asked) = (VecDeque::from(self.addresses.clone()), BTreeSet::new());
        if self.addresses.len() > 1 {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            let find = || controllers::find(&self.asker, &self.addresses, self.timeout);
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
             if one runs elsewhere, name it:      --admin HOST:PORT  (or KEYWAY_ADMIN){}",
            complaints.join("\n"),
            self.asker.hint()
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

/// The metrics of the roles with these admin addresses, in their order. They must ask for no
/// certificate.
pub fn metrics(
    roles: impl Iterator<Item = SocketAddr>,
    timeout: Duration,
) -> Result<Vec<String>, Failure> {
    let asker = Asker::new(&Security::Loopback, Expected::Server, timeout);
    let ask = |at| -> Result<String, ureq::Error> {
        asker.agent.get(asker.url(at, "/metrics")).call()?.body_mut().read_to_string()
    };
    roles.map(|at| ask(at).map_err(|why| Failure::Other(anyhow!("{at}: {why}")))).collect()
}

/// What nodes with these admin addresses have on record, or why one does not say so, in their
/// order. All are asked at once.
pub fn records(
    nodes: &[(NodeId, SocketAddr)],
    timeout: Duration,
    security: &Security,
) -> Vec<(NodeId, Result<NodeRecord, String>)> {
    let ask = |id: NodeId, at: SocketAddr| -> Result<NodeRecord, String> {
        let expected = Expected::One(Identity::of(Member::Node(id)));
        let record: NodeRecord = record_at(at, &Asker::new(security, expected, timeout))?;
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
pub fn switch_record(
    at: SocketAddr,
    timeout: Duration,
    security: &Security,
) -> Result<SwitchRecord, String> {
    record_at(at, &Asker::new(security, Expected::Role(Role::Switch), timeout))
}

fn record_at<T: DeserializeOwned>(at: SocketAddr, asker: &Asker) -> Result<T, String> {
    let answer = asker.agent.get(asker.url(at, "/v1/record")).call();
    let mut answer = answer.map_err(|error| format!("nobody answers at {at} ({error})"))?;
    if !answer.status().is_success() {
        return Err(format!("{at} does not say what it has on record: {}", why(answer)));
    }
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
    body.map_err(|error| format!("{at}: {error}"))
}

/// A switch that says what it knows.
#[derive(Clone, Debug)]
pub struct SwitchAdmin {
    asker: Asker,
    at: SocketAddr,
}

impl SwitchAdmin {
    /// The one with this admin address; nothing is sent yet. One in the process of a controller
    /// shows the controller's certificate.
    pub fn new(at: SocketAddr, shared: &Shared) -> Result<Self, Failure> {
        let asker = Asker::new(&shared.security()?, Expected::Server, shared.timeout);
        Ok(Self { asker, at })
    }

    /// What the program in its kernel does with requests for a match value.
    pub fn in_kernel(&self, keyspace: KeyspaceId, at: Match) -> Result<InKernel, Failure> {
        self.ask(&format!("/v1/explain?keyspace={keyspace}&match={at}"))
    }

    /// What it knows of a key, if it is hot.
    pub fn hot_key(
        &self,
        keyspace: KeyspaceId,
        keyhash: u64,
    ) -> Result<Option<HotExplanation>, Failure> {
        self.ask(&format!("/v1/explain/hot?keyspace={keyspace}&keyhash={keyhash:016x}"))
    }

    /// The cache that it sends reads of a key to, if to any.
    pub fn cache_of_key(
        &self,
        keyspace: KeyspaceId,
        keyhash: u64,
    ) -> Result<Option<CacheId>, Failure> {
        self.ask(&format!("/v1/explain/cached?keyspace={keyspace}&keyhash={keyhash:016x}"))
    }

    fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let Self { asker, at } = self;
        let answer = asker.agent.get(asker.url(*at, path)).call().map_err(|error| {
            let hint = asker.hint();
            Failure::Other(anyhow!(
                "no switch answers at {at} ({error})\n  \
                 name its admin address:              --switch HOST:PORT  (or KEYWAY_SWITCH){hint}"
            ))
        });
        let mut answer = answer?;
        if !answer.status().is_success() {
            let missing = answer.status() == StatusCode::NOT_FOUND;
            let hint = if missing { ": is that a switch's admin address?" } else { "" };
            return Err(Failure::Other(anyhow!("{at}: {}{hint}", why(answer))));
        }
        let body = answer.body_mut().read_json();
        body.map_err(|error| Failure::Other(anyhow!("{at}: {error}")))
    }
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
