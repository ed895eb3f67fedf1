//! Metrics of the processes of a lab.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Samples of a metric of the process with this admin address, by labels.
pub(crate) fn samples(admin: SocketAddr, metric: &str) -> BTreeMap<String, u64> {
    let mut response = ureq::get(format!("http://{admin}/metrics")).call().unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix(metric)?.rsplit_once(' '));
    lines.map(|(labels, value)| (labels.to_owned(), value.parse().unwrap())).collect()
}

/// The sum of all of them.
pub(crate) fn sum(admin: SocketAddr, metric: &str) -> u64 {
    samples(admin, metric).values().sum()
}
