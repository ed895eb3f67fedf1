//! Redis clients under load: the keys and values of the native client's load threads, sent with the
//! `redis` crate, in a closed loop.

use anyhow::{Context, Result, anyhow, bail};
use bench::{Pace, Plan};
use console::exit::Failure;
use futures_util::future::try_join_all;
use machine::Instant;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult,
};
use runtime::clock::Clock;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Runtime;
use workload::{Ending, Generator, Op, OpKind, Population, Recorder, Summary, Values};

/// What clients connect to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A Redis Cluster with these servers: the client finds the server of each key.
    Cluster(Vec<SocketAddr>),
    /// One address.
    One(SocketAddr),
}

/// Connections of each thread; each takes as many commands at once as it is given.
const CONNECTIONS: usize = 16;

/// Threads with their connections.
pub(crate) struct RedisLoad {
    lanes: Vec<Lane>,
}

struct Lane {
    runtime: Runtime,
    connections: Vec<Connection>,
}

#[derive(Clone)]
enum Connection {
    Cluster(ClusterConnection),
    One(MultiplexedConnection),
}

impl Connection {
    async fn open(target: &Target, deadline: Duration) -> Result<Self> {
        match target {
            Target::Cluster(servers) => {
                let servers: Vec<String> =
                    servers.iter().map(|at| format!("redis://{at}")).collect();
                let client = ClusterClient::builder(servers);
                let client = client.response_timeout(deadline).connection_timeout(deadline);
                let client = client.build().context("no cluster client")?;
                let connection = client.get_async_connection().await;
                Ok(Self::Cluster(connection.context("Redis Cluster does not answer")?))
            }
            Target::One(at) => {
                // nutcracker hangs up on what it does not know.
                let plain = RedisConnectionInfo::default().set_skip_set_lib_name();
                let info =
                    format!("redis://{at}").into_connection_info()?.set_redis_settings(plain);
                let config = AsyncConnectionConfig::new()
                    .set_response_timeout(Some(deadline))
                    .set_connection_timeout(Some(deadline));
                let client = redis::Client::open(info)?;
                let connection = client.get_multiplexed_async_connection_with_config(&config).await;
                Ok(Self::One(connection.with_context(|| format!("{at} does not answer"))?))
            }
        }
    }

    /// Does an operation; of one that reads, the values.
    async fn values(&mut self, op: &Op, command: &Cmd) -> RedisResult<Vec<Option<Vec<u8>>>> {
        match op {
            Op::Mget { .. } => self.ask(command).await,
            Op::Get { .. } => Ok(vec![self.ask(command).await?]),
            _ => self.ask::<()>(command).await.map(|()| Vec::new()),
        }
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Self::Cluster(connection) => command.query_async(connection).await,
            Self::One(connection) => command.query_async(connection).await,
        }
    }
}

/// What the tasks of a thread share.
struct Desk<'a, S> {
    plan: &'a Plan,
    clock: Clock,
    source: S,
    /// Tells each write's value from all others.
    stamp: u64,
    recorder: Recorder,
    wrong_values: u64,
}

impl RedisLoad {
    /// Opens all connections.
    pub(crate) fn open(target: &Target, threads: usize, deadline: Duration) -> Result<Self> {
        let lane = |_| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().context("no asynchronous runtime")?;
            let open = (0..CONNECTIONS).map(|_| Connection::open(target, deadline));
            let connections = runtime.block_on(try_join_all(open))?;
            Ok(Lane { runtime, connections })
        };
        Ok(Self { lanes: (0..threads).map(lane).collect::<Result<_>>()? })
    }

    /// Writes every key.
    pub(crate) fn load(&self, plan: &Plan) -> Result<()> {
        let threads = self.lanes.len();
        let written = self.drive(plan, LOAD_IN_FLIGHT * threads, |index, _| {
            let mut keys = (index as u64..plan.spec.keys).step_by(threads);
            Ok(move |_| keys.next().map(|key| Op::Put { key }))
        })?;
        match written.all.endings.unknown {
            0 => Ok(()),
            lost => bail!("{lost} keys could not be written in time; try a longer --timeout"),
        }
    }

    /// Runs a plan, whose loop must be closed.
    pub(crate) fn measure(&self, plan: &Plan) -> Result<Summary> {
        let Pace::Closed(in_flight) = plan.pace else { bail!("only closed loops are compared") };
        let population = Population::new(plan.spec.keys);
        self.drive(plan, in_flight, |index, start| {
            let end = start + plan.duration;
            let generator =
                Generator::new(&plan.spec, population.clone(), start, &plan.rng(), index);
            let mut generator = generator.map_err(|error| anyhow!(error.to_string()))?;
            Ok(move |now| (now < end).then(|| generator.next_op(now)))
        })
    }

    /// Keeps so many requests in flight until the sources give no more.
    fn drive<S: FnMut(Instant) -> Option<Op>>(
        &self,
        plan: &Plan,
        in_flight: usize,
        source: impl Fn(usize, Instant) -> Result<S> + Sync,
    ) -> Result<Summary> {
        let mut clock = Clock::new();
        let start = clock.now();
        let work = |index: usize, lane: &Lane| {
            let desk = RefCell::new(Desk {
                plan,
                clock: Clock::new(),
                source: source(index, start)?,
                stamp: 0,
                recorder: Recorder::new(),
                wrong_values: 0,
            });
            let share = (in_flight + index) / self.lanes.len();
            let turns = lane.connections.iter().cycle().take(share.max(1));
            let tasks = turns.map(|connection| task(connection.clone(), &desk));
            lane.runtime.block_on(try_join_all(tasks))?;
            let Desk { recorder, wrong_values, .. } = desk.into_inner();
            match wrong_values {
                0 => Ok(recorder),
                wrong => Err(anyhow!("{wrong} values were never written to their keys")),
            }
        };
        let mut all = Recorder::new();
        std::thread::scope(|scope| {
            let spawn = |(index, lane)| scope.spawn(move || work(index, lane));
            let threads: Vec<_> = self.lanes.iter().enumerate().map(spawn).collect();
            threads.into_iter().try_for_each(|thread| {
                let recorder = thread.join().map_err(|_| anyhow!("a load thread panicked"))??;
                all.merge(&recorder);
                anyhow::Ok(())
            })
        })?;
        let took = clock.now().since(start);
        let took = if plan.duration.is_zero() { took } else { took.min(plan.duration) };
        Ok(all.summary(took))
    }
}

/// Writes of one thread in flight while loading.
const LOAD_IN_FLIGHT: usize = 64;

/// One request after the other.
async fn task<S: FnMut(Instant) -> Option<Op>>(
    mut connection: Connection,
    desk: &RefCell<Desk<'_, S>>,
) -> Result<()> {
    loop {
        let (op, command, began) = {
            let desk = &mut *desk.borrow_mut();
            let began = desk.clock.now();
            let Some(op) = (desk.source)(began) else { return Ok(()) };
            desk.stamp += 1;
            (op.clone(), command(desk.plan, &op, desk.stamp)?, began)
        };
        let answer = connection.values(&op, &command).await;
        let desk = &mut *desk.borrow_mut();
        let ending = match answer {
            Ok(found) => {
                desk.wrong_values += u64::from(is_wrong(&op, &found));
                Ending::Done
            }
            // As for Keyway's own clients: it counts against the servers, and the load goes on.
            Err(error) if error.is_timeout() => Ending::Unknown,
            Err(error) => return Err(error).context("a server failed"),
        };
        let took = desk.clock.now().since(began);
        desk.recorder.record(op.kind(), ending, took);
    }
}

/// Whether a value is missing or was never written to its key.
fn is_wrong(op: &Op, found: &[Option<Vec<u8>>]) -> bool {
    let keys: &[u64] = match op {
        Op::Mget { keys } => keys,
        Op::Get { key } => std::slice::from_ref(key),
        _ => &[],
    };
    keys.iter().zip(found).any(|(key, value)| {
        value.as_ref().is_none_or(|value| Values::stamp_of(*key, value).is_none())
    })
}

/// The command for an operation.
fn command(plan: &Plan, op: &Op, stamp: u64) -> Result<Cmd> {
    let mut command = Cmd::new();
    match op {
        Op::Get { key } => command.arg("GET").arg(plan.names.name(*key)),
        Op::Put { key } => {
            let mut value = Vec::new();
            plan.values.write(*key, stamp, &mut value);
            command.arg("SET").arg(plan.names.name(*key)).arg(value)
        }
        Op::Mget { keys } => {
            command.arg("MGET");
            keys.iter().fold(&mut command, |command, key| command.arg(plan.names.name(*key)))
        }
        _ => bail!("only gets, puts and mgets are compared"),
    };
    Ok(command)
}

/// Whether all operations of a plan can be sent.
pub(crate) fn can_send(plan: &Plan) -> Result<(), Failure> {
    let mix = &plan.spec.mix;
    let known = [OpKind::Get, OpKind::Put, OpKind::Mget].map(|kind| mix.share(kind));
    match known.iter().sum::<f64>() {
        sum if sum > 0.999 => Ok(()),
        _ => Err(Failure::usage("--versus: only gets, puts and mgets are compared")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::{Multigets, PIECE};
    use client::RetransmitBounds;
    use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
    use std::net::TcpListener;
    use std::sync::Arc;
    use workload::{Distribution, KeyNames, Spec};

    const IN_FLIGHT: usize = 4;

    fn plan() -> Plan {
        let keyspace = Keyspace {
            id: KeyspaceId(0),
            name: "default".to_owned(),
            kind: KeyspaceKind::Hash,
            seed: 0,
            replicas: 1,
            hot: HotPolicy::Off,
        };
        let names = |prefix| KeyNames::new(prefix, 16, 10).unwrap();
        Plan {
            services: Vec::new(),
            multigets: Multigets::Switch,
            keyspace: Arc::new(keyspace),
            spec: Spec {
                mix: "get=1".parse().unwrap(),
                distribution: Distribution::Uniform,
                keys: 10,
                inserts_expected: 0,
                shift: None,
            },
            names: names("key"),
            counters: names("incr"),
            values: Values::new("100".parse().unwrap()),
            threads: 1,
            hosts: Vec::new(),
            pace: Pace::Closed(IN_FLIGHT),
            duration: Duration::from_millis(20),
            piece: PIECE,
            deadline: Duration::from_millis(50),
            retransmit: RetransmitBounds::default(),
            seed: 1,
        }
    }

    #[test]
    fn what_a_server_does_not_answer_in_time_is_counted_and_the_load_goes_on() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::One(silent.local_addr().unwrap());
        let plan = plan();
        let load = RedisLoad::open(&target, plan.threads, plan.deadline).unwrap();
        let endings = load.measure(&plan).unwrap().all.endings;
        assert_eq!((endings.unknown, endings.total()), (IN_FLIGHT as u64, IN_FLIGHT as u64));
        let refused = load.load(&plan).unwrap_err().to_string();
        assert!(refused.starts_with("10 keys could not be written in time"), "{refused}");
    }
}
