//! What servers have done, and what all of them need to be started.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

/// What servers have done so far.
#[derive(Clone, Debug)]
pub(crate) struct WorkDone {
    /// Requests that each node has served.
    pub(crate) served: Vec<u64>,
    /// Processor time of all nodes.
    pub(crate) nodes: Duration,
    /// Processor time of what stands between nodes and clients.
    pub(crate) between: Duration,
}

impl WorkDone {
    /// What was done since an earlier look.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let served = self.served.iter().zip(&before.served);
        Self {
            served: served.map(|(now, before)| now.saturating_sub(*before)).collect(),
            nodes: self.nodes.saturating_sub(before.nodes),
            between: self.between.saturating_sub(before.between),
        }
    }

    /// Requests of the node that served most, over their mean.
    pub(crate) fn imbalance(&self) -> f64 {
        let all: u64 = self.served.iter().sum();
        let most = self.served.iter().max().copied().unwrap_or(0);
        most as f64 * self.served.len() as f64 / all.max(1) as f64
    }
}

/// How long servers may take to be ready.
const READY_WAIT_MAX: Duration = Duration::from_secs(60);

/// Between two looks.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Waits until that is so.
pub(super) fn wait(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let mut last = Ok(false);
    for _ in 0..READY_WAIT_MAX.as_millis() / LOOK_AGAIN.as_millis() {
        last = is_so();
        if matches!(last, Ok(true)) {
            return Ok(());
        }
        std::thread::park_timeout(LOOK_AGAIN);
    }
    let missing = || format!("after {READY_WAIT_MAX:?} still not so: {what}");
    last.with_context(missing).and_then(|_| Err(anyhow::anyhow!(missing())))
}

/// Addresses of this host that nobody listens at, over UDP or TCP, all different.
pub(super) fn free_addresses(count: usize) -> Result<Vec<SocketAddr>> {
    let mut held = Vec::new();
    while held.len() < count {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        // Somebody may have the same port for the other protocol.
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr()?) {
            held.push((tcp, udp));
        }
    }
    held.iter().map(|(tcp, _)| Ok(tcp.local_addr()?)).collect()
}

#[test]
fn the_busiest_node_is_set_against_the_mean_of_what_was_served_since() {
    let work = |served: &[u64]| WorkDone {
        served: served.to_vec(),
        nodes: Duration::ZERO,
        between: Duration::ZERO,
    };
    let since = work(&[110, 210, 130]).since(&work(&[100, 200, 100]));
    assert_eq!(since.served, [10, 10, 30]);
    assert!((since.imbalance() - 1.8).abs() < 1e-9);
    assert!(work(&[0, 0]).imbalance() < f64::MIN_POSITIVE);
}
