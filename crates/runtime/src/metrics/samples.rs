//! Metrics with their values, and how they are written in the exposition format.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use wire::metric::{Kind, Metric};

/// Every metric with its present values, one for each set of label values.
#[derive(Debug, Default)]
pub struct Samples(Vec<(&'static Metric, Vec<Sample>)>);

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// In the order of the metric's label names.
    labels: Vec<String>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Real(f64),
    Distribution(Distribution),
}

/// What a histogram has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Bounds in ascending order, the last of which is infinite, and how many values lie between
    /// each and the one before it.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all values.
    pub sum: f64,
}

/// Somebody in this process who counts things and is not one of the roles: adds what it has counted
/// when it is asked.
pub type Source = Arc<dyn Fn(&mut Samples) + Send + Sync>;

/// Who counts things besides the roles. Clones are the same list.
#[derive(Clone, Default)]
pub struct Sources(Arc<Mutex<Vec<Source>>>);

impl Sources {
    /// From now on this one is asked, too.
    pub fn add(&self, source: Source) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// Asks all of them.
    pub(super) fn fill(&self, samples: &mut Samples) {
        // Not under the lock: they may take their time.
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().for_each(|source| source(samples));
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "Sources({count})")
    }
}

impl Samples {
    /// Adds values of a metric to those that others have added.
    pub fn add(&mut self, metric: &'static Metric, rows: impl IntoIterator<Item = Sample>) {
        match self.0.iter_mut().find(|(known, _)| known.name == metric.name) {
            Some((_, known)) => known.extend(rows),
            None => self.0.push((metric, rows.into_iter().collect())),
        }
    }

    /// All of them as text.
    pub(super) fn expose(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string does not fail");
        text
    }
}

impl Sample {
    /// The value of a metric without labels.
    #[must_use]
    pub fn plain(value: u64) -> Self {
        Self { labels: Vec::new(), value: Value::Number(value) }
    }

    /// A value with its label values, in the order of the metric's label names.
    #[must_use]
    pub fn labelled<const N: usize>(labels: [impl Into<String>; N], value: u64) -> Self {
        let labels = labels.into_iter().map(Into::into).collect();
        Self { labels, value: Value::Number(value) }
    }

    /// A value in a base unit, which need not be whole.
    #[must_use]
    pub fn real<const N: usize>(labels: [impl Into<String>; N], value: f64) -> Self {
        let labels = labels.into_iter().map(Into::into).collect();
        Self { labels, value: Value::Real(value) }
    }

    /// What a histogram has counted, with its label values.
    #[must_use]
    pub fn distribution<const N: usize>(
        labels: [impl Into<String>; N],
        distribution: Distribution,
    ) -> Self {
        let labels = labels.into_iter().map(Into::into).collect();
        Self { labels, value: Value::Distribution(distribution) }
    }

    fn encode(&self, kind: Kind, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match (kind, &self.value) {
            (Kind::Counter, Value::Number(value)) => {
                encoder.encode_counter::<NoLabelSet, _, u64>(value, None)
            }
            (Kind::Counter, Value::Real(value)) => {
                encoder.encode_counter::<NoLabelSet, f64, u64>(value, None)
            }
            (Kind::Gauge, Value::Number(value)) => encoder.encode_gauge(value),
            (Kind::Gauge, Value::Real(value)) => encoder.encode_gauge(value),
            (Kind::Histogram, Value::Distribution(Distribution { buckets, sum })) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
            (Kind::Counter | Kind::Gauge | Kind::Histogram, _) => {
                unreachable!("histograms have distributions, and others have numbers")
            }
        }
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (metric, samples) in &self.0 {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let unit = metric.unit.map(|unit| Unit::Other(unit.to_owned()));
            let name = metric.unit.and_then(|unit| metric.name.strip_suffix(unit));
            let name = name.and_then(|name| name.strip_suffix('_')).unwrap_or(metric.name);
            let mut family = encoder.encode_descriptor(name, metric.help, unit.as_ref(), kind)?;
            for sample in samples {
                let labels = metric.labels.iter().copied().zip(sample.labels.iter().cloned());
                let labels: Vec<(&str, String)> = labels.collect();
                sample.encode(metric.kind, family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Metric = Metric {
        name: "keyway_times",
        kind: Kind::Histogram,
        unit: None,
        labels: &["of"],
        help: "How long it took.",
    };

    #[test]
    fn a_histogram_is_told_with_every_bound_and_what_lies_below() {
        let mut samples = Samples::default();
        let buckets = vec![(0.5, 2), (1.0, 0), (f64::INFINITY, 3)];
        let distribution = Distribution { buckets, sum: 7.5 };
        samples.add(&TIMES, [Sample::distribution(["it"], distribution)]);
        let text = samples.expose();
        for line in [
            "# TYPE keyway_times histogram",
            "keyway_times_sum{of=\"it\"} 7.5",
            "keyway_times_count{of=\"it\"} 5",
            "keyway_times_bucket{le=\"0.5\",of=\"it\"} 2",
            "keyway_times_bucket{le=\"1.0\",of=\"it\"} 2",
            "keyway_times_bucket{le=\"+Inf\",of=\"it\"} 5",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
    }
}
