//! An etcd of several members, each a process.

use std::net::SocketAddr;
use std::path::Path;

/// Where a member answers.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Clients.
    pub clients: SocketAddr,
    /// The other members.
    pub peers: SocketAddr,
}

/// What one of these members is told; its data lies below this directory.
///
/// # Panics
///
/// If there are not so many.
pub fn arguments(all: &[Member], index: usize, dir: &Path) -> Vec<String> {
    let member = all.get(index).expect("one of the members");
    let url = |at: SocketAddr| format!("http://{at}");
    let (clients, peers) = (url(member.clients), url(member.peers));
    let named = all.iter().enumerate().map(|(index, it)| format!("{index}={}", url(it.peers)));
    let cluster = named.collect::<Vec<_>>().join(",");
    let data = dir.join(format!("etcd-{index}")).display().to_string();
    let arguments = [
        ["--name", &index.to_string()],
        ["--data-dir", &data],
        ["--listen-client-urls", &clients],
        ["--advertise-client-urls", &clients],
        ["--listen-peer-urls", &peers],
        ["--initial-advertise-peer-urls", &peers],
        ["--initial-cluster", &cluster],
    ];
    arguments.iter().flatten().map(|it| (*it).to_owned()).collect()
}
