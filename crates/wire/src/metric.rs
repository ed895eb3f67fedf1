//! What a metric is; the list of them is generated into [`crate::layout::metric`].

/// One name on `/metrics`.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Full name, without the suffix that the exposition format gives to counters.
    pub name: &'static str,
    /// How its values are to be understood.
    pub kind: Kind,
    /// The base unit that its values have and its name ends in, if it does not just count.
    pub unit: Option<&'static str>,
    /// Label names, in order.
    pub labels: &'static [&'static str],
    /// One sentence for people.
    pub help: &'static str,
}

/// How the values of a metric are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Starts at 0 with the process and only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts how often values up to each of some bounds occurred.
    Histogram,
}
