//! etcd: three members with their stores on this machine's disk, and a client that speaks gRPC to
//! their leader.

use super::connection::{Question, Trouble, Values};
use super::process::Process;
use super::work::{free_addresses, wait};
use anyhow::{Context, Result, bail};
use lab::etcd::{Member, arguments};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Members that run until this is dropped.
#[derive(Debug)]
pub(super) struct Etcd {
    _members: Vec<Process>,
    /// Where clients of the leader connect: the others would only pass on what they are asked.
    pub(super) leader: SocketAddr,
}

/// As many as Keyway has copies.
const MEMBERS: usize = 3;

impl Etcd {
    /// Starts a cluster whose members keep their data below `directory`.
    pub(super) fn start(directory: &Path) -> Result<Self> {
        let mut clients = free_addresses(2 * MEMBERS)?;
        let peers = clients.split_off(MEMBERS);
        let all: Vec<Member> = clients
            .iter()
            .zip(&peers)
            .map(|(clients, peers)| Member { clients: *clients, peers: *peers })
            .collect();
        let mut members = Vec::new();
        for index in 0..MEMBERS {
            let member = Process::start("etcd", &arguments(&all, index, directory), directory);
            members.push(member.context("is etcd installed? apt-get install etcd-server")?);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut leader = None;
        wait("etcd has a leader", || {
            leader = runtime.block_on(find_leader(&clients));
            Ok(leader.is_some())
        })?;
        let leader = leader.context("etcd has no leader")?;
        Ok(Self { _members: members, leader })
    }
}

/// Whoever of them says that it leads.
async fn find_leader(members: &[SocketAddr]) -> Option<SocketAddr> {
    for at in members {
        let Ok(mut client) = Client::connect(*at, CONNECT_WAIT).await else { continue };
        if client.leads().await.unwrap_or(false) {
            return Some(*at);
        }
    }
    None
}

/// How long a member may take to answer that starts.
const CONNECT_WAIT: Duration = Duration::from_secs(1);

/// A connection to a member.
#[derive(Clone)]
pub(super) struct Client {
    grpc: Grpc<Channel>,
}

impl Client {
    pub(super) async fn connect(at: SocketAddr, deadline: Duration) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{at}"))?;
        let endpoint = endpoint.timeout(deadline).connect_timeout(deadline).tcp_nodelay(true);
        let channel = endpoint.connect().await;
        let channel = channel.with_context(|| format!("etcd does not answer at {at}"))?;
        Ok(Self { grpc: Grpc::new(channel) })
    }

    pub(super) async fn ask(&mut self, question: Question) -> Result<Values, Trouble> {
        match question {
            Question::Get { key } => {
                let range = RangeRequest { key };
                let found: RangeResponse = self.call("/etcdserverpb.KV/Range", range).await?;
                Ok(vec![found.kvs.into_iter().next().map(|it| it.value)])
            }
            Question::Set { key, value } => {
                let put = PutRequest { key, value };
                let PutResponse {} = self.call("/etcdserverpb.KV/Put", put).await?;
                Ok(Vec::new())
            }
            Question::Mget { .. } => {
                Err(Trouble::Failed(anyhow::anyhow!("etcd is not asked for many keys at once")))
            }
        }
    }

    async fn leads(&mut self) -> Result<bool> {
        let path = "/etcdserverpb.Maintenance/Status";
        let status: Result<StatusResponse, Trouble> = self.call(path, StatusRequest {}).await;
        let Ok(status) = status else { bail!("no status") };
        Ok(status.header.is_some_and(|it| it.member_id != 0 && it.member_id == status.leader))
    }

    async fn call<Q, A>(&mut self, path: &'static str, question: Q) -> Result<A, Trouble>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        self.grpc.ready().await.map_err(|error| Trouble::Failed(error.into()))?;
        let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::<Q, A>::default());
        let answer = self.grpc.unary(Request::new(question), path, codec).await?;
        Ok(answer.into_inner())
    }
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        match status.code() {
            Code::DeadlineExceeded | Code::Cancelled => Self::Late,
            _ => Self::Failed(status.into()),
        }
    }
}

/// What is needed of etcd's interface, version 3; fields that are left out are skipped, or have
/// their defaults.
#[derive(Clone, PartialEq, prost::Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PutResponse {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<ResponseHeader>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResponseHeader {
    #[prost(uint64, tag = "2")]
    member_id: u64,
}
