//! What `/metrics` tells of a gateway, under the names of `spec/layout.toml`: the figures of INFO
//! and LATENCY HISTOGRAM.

use crate::clients::Entry;
use crate::memory;
use crate::shared::Shared;
use crate::stats::{CommandFigures, HeldBack, Overdue, within};
use hdrhistogram::Histogram;
use runtime::metrics::{Distribution, Sample, Samples, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use wire::EnvelopeRefusal;
use wire::layout::metric;

/// Tells this gateway's figures as long as there is one.
pub(crate) fn source(shared: &Arc<Shared>) -> Source {
    let shared = Arc::downgrade(shared);
    Arc::new(move |samples| {
        if let Some(shared) = shared.upgrade() {
            fill(&shared, samples);
        }
    })
}

fn fill(shared: &Shared, samples: &mut Samples) {
    let Shared { clients, settings, stats, .. } = shared;
    let entries = clients.list();
    samples.add(&metric::GATEWAY_CONNECTIONS, [Sample::plain(entries.len() as u64)]);
    let most = settings.maxclients() as u64;
    samples.add(&metric::GATEWAY_CONNECTIONS_MAX, [Sample::plain(most)]);
    let sum = |figure: fn(&Entry) -> &AtomicUsize| {
        entries.iter().map(|entry| figure(entry).load(Ordering::Relaxed) as u64).sum()
    };
    samples.add(&metric::GATEWAY_RUNNING, [Sample::plain(sum(|entry| &entry.running))]);
    let buffered = [("in", sum(|entry| &entry.input)), ("out", sum(|entry| &entry.output))];
    let buffered = buffered.map(|(direction, bytes)| Sample::labelled([direction], bytes));
    samples.add(&metric::GATEWAY_BUFFERED_BYTES, buffered);
    let count = |counter: &AtomicU64| [Sample::plain(counter.load(Ordering::Relaxed))];
    samples.add(&metric::GATEWAY_ACCEPTED, count(&stats.connections));
    samples.add(&metric::GATEWAY_REJECTED, count(&stats.rejected));
    samples.add(&metric::GATEWAY_RECEIVED_BYTES, count(&stats.bytes_in));
    samples.add(&metric::GATEWAY_SENT_BYTES, count(&stats.bytes_out));
    samples.add(&metric::GATEWAY_PROTOCOL_ERRORS, count(&stats.protocol_errors));
    let held = HeldBack::ALL.map(|why| Sample::labelled([why.name()], stats.held_back(why)));
    samples.add(&metric::GATEWAY_HELD_BACK, held);
    let overdue = Overdue::ALL.map(|why| Sample::labelled([why.name()], stats.overdue(why)));
    let evicted = Sample::labelled(["memory"], stats.evicted.load(Ordering::Relaxed));
    samples.add(&metric::GATEWAY_ENDED, overdue.into_iter().chain([evicted]));
    samples.add(&metric::GATEWAY_HELD_BYTES, [Sample::plain(shared.budget.held() as u64)]);
    samples.add(&metric::GATEWAY_HELD_BYTES_MAX, [Sample::plain(settings.held_max() as u64)]);
    let (wrong, refused) = shared.guesses.counts();
    let guesses = [("wrong", wrong), ("refused", refused)];
    let guesses = guesses.map(|(outcome, count)| Sample::labelled([outcome], count));
    samples.add(&metric::GATEWAY_WRONG_PASSWORDS, guesses);
    let errors = stats.errors().into_iter().map(|(code, count)| Sample::labelled([code], count));
    samples.add(&metric::GATEWAY_ERRORS, errors);
    samples.add(&metric::GATEWAY_RESIDENT_BYTES, [Sample::plain(memory::resident())]);
    if !shared.passes.is_empty() {
        let count = |why| shared.passes.iter().map(|it| it.refused().of(why)).sum::<u64>();
        let row = |why: EnvelopeRefusal| Sample::labelled(["gateway", why.name()], count(why));
        samples.add(&metric::ENVELOPES_REFUSED, EnvelopeRefusal::ALL.map(row));
    }
    add_commands(&stats.commands(), samples);
}

fn add_commands(commands: &[CommandFigures], samples: &mut Samples) {
    let outcomes = commands.iter().flat_map(|it| {
        let CommandFigures { name, calls, failed, rejected, .. } = it;
        [("ok", calls.saturating_sub(*failed)), ("error", *failed), ("refused", *rejected)]
            .map(|(outcome, count)| Sample::labelled([*name, outcome], count))
    });
    samples.add(&metric::GATEWAY_COMMANDS, outcomes);
    let latencies = commands.iter().filter_map(|it| {
        let latency = it.latency.as_ref()?;
        Some(Sample::distribution([it.name], distribution(latency, it.micros)))
    });
    samples.add(&metric::GATEWAY_LATENCY_SECONDS, latencies);
}

/// Powers of two that bound the classes of a histogram, in microseconds: from 16 µs, below which no
/// command that asks the cluster comes, to 17 s, by when all have been given up.
const BOUNDS: std::ops::RangeInclusive<u32> = 4..=24;

fn distribution(latency: &Histogram<u64>, micros: u64) -> Distribution {
    let mut below = 0;
    let mut buckets = Vec::new();
    for bound in BOUNDS.map(|power| 1_u64 << power) {
        let up_to = within(latency, bound);
        buckets.push((seconds(bound), up_to.saturating_sub(below)));
        below = up_to;
    }
    buckets.push((f64::INFINITY, latency.len().saturating_sub(below)));
    Distribution { buckets, sum: seconds(micros) }
}

#[expect(clippy::cast_precision_loss, reason = "a metric of 53 bits is exact enough")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_in_the_class_of_its_time_and_all_are_there() {
        let mut latency = Histogram::new_with_max(60_000_000, 2).unwrap();
        for micros in [3, 15, 16, 31, 1_000, 50_000_000] {
            latency.record(micros).unwrap();
        }
        let Distribution { buckets, sum } = distribution(&latency, 50_001_065);
        let counted = |bound: f64| buckets.iter().find(|(it, _)| *it == bound).unwrap().1;
        assert_eq!([counted(16e-6), counted(32e-6), counted(1024e-6)], [2, 2, 1]);
        assert_eq!(counted(f64::INFINITY), 1, "beyond the last bound");
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 6);
        assert!((sum - 50.001_065).abs() < 1e-9);
    }
}
