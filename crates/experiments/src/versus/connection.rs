//! One connection of a client to others' servers.

use super::etcd;
use anyhow::{Context, Result};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Cmd, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError,
};
use std::net::SocketAddr;
use std::time::Duration;

/// What clients connect to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A Redis Cluster with these servers: the client finds the server of each key.
    Cluster(Vec<SocketAddr>),
    /// One address that speaks RESP.
    One(SocketAddr),
    /// A Redis server that so many replicas follow: a write waits for all of them.
    Replicated(SocketAddr, usize),
    /// The leader of an etcd cluster.
    Etcd(SocketAddr),
}

/// What a client asks.
#[derive(Debug)]
pub(super) enum Question {
    Get { key: Vec<u8> },
    Set { key: Vec<u8>, value: Vec<u8> },
    Mget { keys: Vec<Vec<u8>> },
}

/// The value of each key that was asked for; of a write, none.
pub(super) type Values = Vec<Option<Vec<u8>>>;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It did not come in time.
    Late,
    Failed(anyhow::Error),
}

/// An open connection.
#[derive(Clone)]
pub(super) enum Connection {
    Cluster(ClusterConnection),
    One(MultiplexedConnection),
    Replicated(MultiplexedConnection, usize),
    Etcd(etcd::Client),
}

impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() { Self::Late } else { Self::Failed(error.into()) }
    }
}

impl Connection {
    pub(super) async fn open(target: &Target, deadline: Duration) -> Result<Self> {
        Ok(match target {
            Target::Cluster(servers) => {
                let servers: Vec<String> =
                    servers.iter().map(|at| format!("redis://{at}")).collect();
                let client = ClusterClient::builder(servers);
                let client = client.response_timeout(deadline).connection_timeout(deadline);
                let client = client.build().context("no cluster client")?;
                let connection = client.get_async_connection().await;
                Self::Cluster(connection.context("Redis Cluster does not answer")?)
            }
            Target::One(at) => Self::One(connect(*at, deadline).await?),
            Target::Replicated(at, replicas) => {
                Self::Replicated(connect(*at, deadline).await?, *replicas)
            }
            Target::Etcd(at) => Self::Etcd(etcd::Client::connect(*at, deadline).await?),
        })
    }

    /// Asks; the answer to what reads is the values.
    pub(super) async fn ask(&mut self, question: Question) -> Result<Values, Trouble> {
        match self {
            Self::Cluster(connection) => ask_redis(connection, &question).await,
            Self::One(connection) => ask_redis(connection, &question).await,
            Self::Replicated(connection, replicas) if question.is_write() => {
                replicate(connection, question.command(), *replicas).await
            }
            Self::Replicated(connection, _) => ask_redis(connection, &question).await,
            Self::Etcd(client) => client.ask(question).await,
        }
    }
}

impl Question {
    fn is_write(&self) -> bool {
        matches!(self, Self::Set { .. })
    }

    /// As Redis takes it.
    fn command(&self) -> Cmd {
        let mut command = Cmd::new();
        match self {
            Self::Get { key } => command.arg("GET").arg(key),
            Self::Set { key, value } => command.arg("SET").arg(key).arg(value),
            Self::Mget { keys } => command.arg("MGET").arg(keys),
        };
        command
    }
}

async fn ask_redis(
    connection: &mut impl ConnectionLike,
    question: &Question,
) -> Result<Values, Trouble> {
    let command = question.command();
    Ok(match question {
        Question::Get { .. } => vec![command.query_async(connection).await?],
        Question::Set { .. } => {
            command.query_async::<()>(connection).await?;
            Vec::new()
        }
        Question::Mget { .. } => command.query_async(connection).await?,
    })
}

/// A write that all replicas have taken, in one round trip. WAIT holds up whatever follows in its
/// connection, so each request in flight needs one of its own.
async fn replicate(
    connection: &mut MultiplexedConnection,
    write: Cmd,
    replicas: usize,
) -> Result<Values, Trouble> {
    let mut both = Pipeline::new();
    both.add_command(write).ignore().cmd("WAIT").arg(replicas).arg(0);
    let [have]: [usize; 1] = both.query_async(connection).await?;
    if have < replicas {
        let text = format!("{have} of {replicas} replicas have a write");
        return Err(Trouble::Failed(anyhow::anyhow!(text)));
    }
    Ok(Vec::new())
}

async fn connect(at: SocketAddr, deadline: Duration) -> Result<MultiplexedConnection> {
    // nutcracker hangs up on what it does not know.
    let plain = RedisConnectionInfo::default().set_skip_set_lib_name();
    let info = format!("redis://{at}").into_connection_info()?.set_redis_settings(plain);
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(deadline))
        .set_connection_timeout(Some(deadline));
    let client = redis::Client::open(info)?;
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    connection.with_context(|| format!("{at} does not answer"))
}
