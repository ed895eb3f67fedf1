//! Keyway beside what people would use instead: the servers of both as processes of this machine,
//! and clients with the same keys.

mod cgroup;
mod compare;
mod connection;
mod durable;
mod etcd;
mod keyway;
mod load;
mod options;
mod process;
mod redis;
mod work;

use bench::Plan;
use console::exit::{Failure, Verdict};
use durable::Contender;
use std::net::SocketAddr;
use workload::{Distribution, Mix};

pub use options::{Rival, Versus};

/// Nodes of each side, and partitions of Keyway's keyspace.
pub type Size = (u16, u32);

impl Versus {
    /// Whether there is something to compare with.
    pub fn is_asked_for(&self) -> bool {
        self.versus.is_some()
    }

    /// Compares under this load, or under all. `plan` makes a plan for the cluster that is at these
    /// addresses.
    ///
    /// # Errors
    ///
    /// If servers do not start or do not answer.
    pub fn compare(
        &self,
        json: bool,
        size: Size,
        load: Option<(Mix, Distribution)>,
        plan: impl Fn(Vec<SocketAddr>, &str) -> Result<Plan, Failure>,
    ) -> Result<Verdict, Failure> {
        let rival = match self.versus {
            Some(Rival::Etcd) => Contender::Etcd,
            Some(Rival::RedisDurable) => Contender::Redis,
            Some(Rival::Memory) => Contender::Memory,
            Some(Rival::RedisCluster) | None => {
                return self.compare_shares(json, size, load, plan);
            }
        };
        let (_, partitions) = size;
        durable::compare(rival, json, partitions, load, plan)
    }
}
