//! A gateway in a process of its own, before a cluster that stays when the gateway goes.

use std::net::SocketAddr;
use testkit::program::{Daemon, Up, free_addresses, keyway};

/// A cluster and its gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    cluster: Up,
    /// `None` only while it is restarted.
    daemon: Option<Daemon>,
    /// What it is started with besides.
    arguments: &'static [&'static str],
    /// Where Redis clients connect; the same after a restart.
    pub(crate) at: SocketAddr,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// One that is started with these arguments besides.
    pub(crate) fn start_with(arguments: &'static [&'static str]) -> Self {
        let small = ["--nodes", "2", "--replicas", "2", "--partitions", "8", "--redis", "off"];
        let cluster = Up::start(&small);
        // What `--database` is given.
        let second = ["keyspace", "create", "second", "--partitions", "8", "--replicas", "2"];
        cluster.run(&second).expect(0);
        let [at] = free_addresses(1)[..] else { panic!("one address was asked for") };
        let daemon = Some(Self::daemon(&cluster, at, arguments));
        Self { cluster, daemon, arguments, at }
    }

    fn daemon(cluster: &Up, at: SocketAddr, arguments: &[&str]) -> Daemon {
        let mut command = keyway();
        command
            .args(["gateway", "--json", "--listen", &at.to_string()])
            .args(["--service", &cluster.service.to_string()])
            .args(["--admin", &cluster.admin.to_string()])
            .args(arguments);
        Daemon::start(&mut command).0
    }

    /// Kills it as `kill -9` does, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.daemon.take().expect("it runs").kill();
        self.daemon = Some(Self::daemon(&self.cluster, self.at, self.arguments));
    }
}
