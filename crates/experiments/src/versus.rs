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
        match self.versus {
            Some(Rival::Etcd) => durable::compare(durable::Arm::Etcd, json, size.1, load, plan),
            Some(Rival::RedisDurable) => {
                durable::compare(durable::Arm::Redis, json, size.1, load, plan)
            }
            Some(Rival::Memory) => durable::compare(durable::Arm::Memory, json, size.1, load, plan),
            Some(Rival::RedisCluster) | None => self.compare_shares(json, size, load, plan),
        }
    }
}
