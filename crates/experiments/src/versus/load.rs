//! Clients of others' servers under load: the keys and values of the native client's load threads,
//! sent by the usual client of each, in a closed loop.

use super::connection::{Connection, Question, Target, Trouble};
use anyhow::{Context, Result, anyhow, bail};
use bench::{Pace, Plan};
use console::exit::Failure;
use futures_util::future::try_join_all;
use machine::Instant;
use runtime::clock::Clock;
use std::cell::RefCell;
use std::time::Duration;
use tokio::runtime::Runtime;
use workload::{Ending, Generator, Op, OpKind, Population, Recorder, Summary, Values};

/// Threads with their connections.
pub(crate) struct RivalLoad {
    lanes: Vec<Lane>,
}

struct Lane {
    runtime: Runtime,
    connections: Vec<Connection>,
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

impl RivalLoad {
    /// Opens so many connections for each thread; each takes as many requests at once as it is
    /// given.
    pub(crate) fn open(
        target: &Target,
        threads: usize,
        connections: usize,
        deadline: Duration,
    ) -> Result<Self> {
        let lane = |_| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().context("no asynchronous runtime")?;
            let open = (0..connections).map(|_| Connection::open(target, deadline));
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
        let (op, question, began) = {
            let desk = &mut *desk.borrow_mut();
            let began = desk.clock.now();
            let Some(op) = (desk.source)(began) else { return Ok(()) };
            desk.stamp += 1;
            let question = question(desk.plan, &op, desk.stamp)?;
            (op, question, began)
        };
        let answer = connection.ask(question).await;
        let desk = &mut *desk.borrow_mut();
        let ending = match answer {
            Ok(found) => {
                desk.wrong_values += u64::from(is_wrong(&op, &found));
                Ending::Done
            }
            // As for Keyway's own clients: it counts against the servers, and the load goes on.
            Err(Trouble::Late) => Ending::Unknown,
            Err(Trouble::Failed(error)) => return Err(error.context("a server failed")),
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

/// What is asked for an operation.
fn question(plan: &Plan, op: &Op, stamp: u64) -> Result<Question> {
    let name = |key: &u64| plan.names.name(*key).to_vec();
    Ok(match op {
        Op::Get { key } => Question::Get { key: name(key) },
        Op::Put { key } => {
            let mut value = Vec::new();
            plan.values.write(*key, stamp, &mut value);
            Question::Set { key: name(key), value }
        }
        Op::Mget { keys } => Question::Mget { keys: keys.iter().map(name).collect() },
        _ => bail!("only gets, puts and mgets are compared"),
    })
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
    use bench::{Coordination, PIECE};
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
            content: None,
        };
        let names = |prefix| KeyNames::new(prefix, 16, 10).unwrap();
        Plan {
            services: Vec::new(),
            passes: None,
            coordination: Coordination::Switch,
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
        let load = RivalLoad::open(&target, plan.threads, IN_FLIGHT, plan.deadline).unwrap();
        let endings = load.measure(&plan).unwrap().all.endings;
        assert_eq!((endings.unknown, endings.total()), (IN_FLIGHT as u64, IN_FLIGHT as u64));
        let refused = load.load(&plan).unwrap_err().to_string();
        assert!(refused.starts_with("10 keys could not be written in time"), "{refused}");
    }
}
