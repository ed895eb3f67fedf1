//! The threads of a run, and what they measured together.

use super::plan::{Pace, Plan};
use super::processor::{ProcessorTime, Threads};
use super::worker::{Finished, Source, Worker};
use anyhow::anyhow;
use console::exit::Failure;
use lab::namespace;
use machine::Instant;
use runtime::clock::Clock;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use workload::{Generator, Interval, IntervalSummary, Population, Recorder, Summary};

/// What all threads measured together.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// Latencies and outcomes.
    pub summary: Summary,
    /// Values that were never written to the key they were read from, and scans out of order.
    /// Anything but 0 is a bug of the store, or somebody else's writes.
    pub wrong_values: u64,
    /// Operations of an open loop that could not be started before the end.
    pub never_started: u64,
    /// 99th percentile of how late operations of an open loop began though there was room for them,
    /// in microseconds: the time that this program did not get.
    pub late_p99_us: u64,
    /// Datagrams that the clients sent.
    pub datagrams: u64,
    /// Those sent again.
    pub retransmits: u64,
    /// Answers that said "overloaded".
    pub overloaded: u64,
    /// Processor time for each operation: that of the clients, and of what else runs in this
    /// process.
    pub processor: ProcessorTime,
}

/// Writes every key once. `tell` is called after each piece.
pub fn load(plan: &Plan, tell: impl FnMut(&IntervalSummary)) -> Result<Measured, Failure> {
    let pace = Pace::Closed(plan.threads * LOAD_IN_FLIGHT);
    let plan = Plan { pace, duration: Duration::ZERO, ..plan.clone() };
    let population = Population::new(plan.spec.keys);
    let start = Clock::new().now();
    let measured = run(&plan, start, &population, tell, |index| {
        let first = u64::try_from(index).expect("few threads");
        Ok(Source::Keys((first..plan.spec.keys).step_by(plan.threads)))
    })?;
    let (written, wanted) = (measured.summary.all.endings.done, plan.spec.keys);
    if written < wanted {
        let lost = wanted - written;
        return Err(Failure::Other(anyhow!(
            "{lost} of {wanted} keys could not be loaded within the timeout of {} s each; try a \
             longer --timeout",
            plan.deadline.as_secs_f64()
        )));
    }
    Ok(measured)
}

/// Writes of one thread in flight while loading.
const LOAD_IN_FLIGHT: usize = 64;

/// Runs the plan. `tell` is called after each piece.
pub fn measure(plan: &Plan, tell: impl FnMut(&IntervalSummary)) -> Result<Measured, Failure> {
    let population = Population::new(plan.spec.keys);
    let start = Clock::new().now();
    let end = start + plan.duration;
    run(plan, start, &population, tell, |index| {
        let generator = Generator::new(&plan.spec, population.clone(), start, &plan.rng(), index)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Source::Mix { generator: Box::new(generator), end })
    })
}

fn run(
    plan: &Plan,
    start: Instant,
    population: &Population,
    mut tell: impl FnMut(&IntervalSummary),
    source: impl Fn(usize) -> Result<Source, Failure> + Sync,
) -> Result<Measured, Failure> {
    let threads_before = Threads::now();
    let (sender, receiver) = channel();
    let work = |index: usize, ticks| {
        if let Some(host) = plan.hosts.iter().cycle().nth(index) {
            namespace::enter(host)?;
        }
        let source = source(index)?;
        Worker::new(plan, index, start, source, population.clone(), ticks)?.run()
    };
    let (finished, intervals) = thread::scope(|scope| {
        let spawn = |index| {
            let (work, ticks) = (&work, sender.clone());
            scope.spawn(move || work(index, ticks))
        };
        let threads: Vec<_> = (0..plan.threads).map(spawn).collect();
        // The last thread to end closes the channel.
        drop(sender);
        let intervals = watch(&receiver, plan, &mut tell);
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Finished, Failure>>| {
            let crashed = |_| Err(Failure::Other(anyhow!("a load thread panicked")));
            thread.join().unwrap_or_else(crashed)
        };
        let finished: Vec<_> = threads.into_iter().map(join).collect();
        (finished, intervals)
    });
    let took = Clock::new().now().since(start);
    // The wait for the last answers is no part of a run of fixed length.
    let took = if plan.duration.is_zero() { took } else { took.min(plan.duration) };
    let finished = finished.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    let mut measured = add_up(&finished, took, intervals);
    let clients = finished.iter().map(|it| it.spent).sum();
    let ops = measured.summary.all.ops;
    measured.processor = Threads::now().since(&threads_before, clients, ops);
    Ok(measured)
}

/// Puts the pieces of all threads together and tells of each as soon as all have reported it.
/// Returns when all threads have ended.
fn watch(
    receiver: &Receiver<(u32, Interval)>,
    plan: &Plan,
    tell: &mut impl FnMut(&IntervalSummary),
) -> Vec<IntervalSummary> {
    let mut open: BTreeMap<u32, (usize, Interval)> = BTreeMap::new();
    let mut complete = Vec::new();
    for (number, theirs) in receiver {
        let (reported, interval) = open.entry(number).or_default();
        interval.merge(&theirs);
        *reported += 1;
        if *reported < plan.threads {
            continue;
        }
        let summary = interval.summary(plan.piece * number, plan.piece);
        open.remove(&number);
        tell(&summary);
        complete.push(summary);
    }
    complete
}

fn add_up(finished: &[Finished], took: Duration, intervals: Vec<IntervalSummary>) -> Measured {
    let mut recorder = Recorder::new();
    let mut lateness = Recorder::new();
    for it in finished {
        recorder.merge(&it.recorder);
        lateness.merge(&it.lateness);
    }
    let sum = |of: fn(&Finished) -> u64| finished.iter().map(of).sum();
    Measured {
        summary: Summary { intervals, ..recorder.summary(took) },
        wrong_values: sum(|it| it.wrong_values),
        never_started: sum(|it| it.never_started),
        late_p99_us: lateness.summary(took).all.latency.p99_us,
        datagrams: sum(|it| it.counters.datagrams),
        retransmits: sum(|it| it.counters.retransmits),
        overloaded: sum(|it| it.counters.overloaded),
        processor: ProcessorTime::default(),
    }
}
