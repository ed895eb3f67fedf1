//! What the page's tables are like: rows that benchmarks print, as Markdown.

pub(super) mod bundles;
pub(super) mod coordination;
pub(super) mod durable;
pub(super) mod engine;
pub(super) mod hot;
pub(super) mod kernel;
pub(super) mod rack;
pub(super) mod simulator;
pub(super) mod stores;
pub(super) mod switch;

use super::markdown::{digits, time};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A median and the interval that holds it.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn text(self) -> String {
        let Self { median, low, high } = self;
        format!("{} [{} {}]", digits(median), digits(low), digits(high))
    }

    /// In thousands.
    fn kilo(self) -> String {
        let Self { median, low, high } = self;
        Self { median: median / 1e3, low: low / 1e3, high: high / 1e3 }.text()
    }
}

/// The tail first.
fn tail(p99_us: f64, p999_us: f64) -> String {
    format!("{} / {}", time(p99_us), time(p999_us))
}

/// How a load was meant: so many requests in flight, or so many a second.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Load {
    in_flight: Option<u64>,
    rate: Option<f64>,
}

impl Load {
    fn is_equal(self) -> bool {
        self.rate.is_some()
    }

    fn text(self) -> String {
        match (self.in_flight, self.rate) {
            (Some(count), _) => count.to_string(),
            (None, rate) => kilo(rate.unwrap_or_default()),
        }
    }
}

/// A rate in thousands.
fn kilo(per_second: f64) -> String {
    digits(per_second / 1e3)
}

/// Microseconds of processor time, one after the other.
fn each(us: &[f64]) -> String {
    us.iter().map(|it| format!("{it:.2}")).collect::<Vec<_>>().join(", ")
}

/// A figure that may be missing.
fn maybe(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), digits)
}

/// Rows of one kind: those whose fields have these values.
fn rows_with<T: DeserializeOwned>(rows: &[Value], fields: &[(&str, &str)]) -> Result<Vec<T>> {
    let has = |row: &&Value| {
        fields.iter().all(|(name, value)| row.get(*name).and_then(Value::as_str) == Some(*value))
    };
    let typed = |row: &Value| {
        T::deserialize(row).with_context(|| {
            format!(
                "a row is not as it was when this table was written; look at tools/xtask: {row}"
            )
        })
    };
    let rows: Vec<T> = rows.iter().filter(has).map(typed).collect::<Result<_>>()?;
    ensure!(!rows.is_empty(), "there is no row for it: with {fields:?}");
    Ok(rows)
}
