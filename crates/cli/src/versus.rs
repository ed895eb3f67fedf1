//! Keyway beside what people would use instead: the servers of both as processes of this machine,
//! each limited to the same share of a processor, and clients with the same keys.

mod cgroup;
mod keyway;
mod load;
mod process;
mod redis;
mod work;

pub(crate) use self::redis::Redis;
pub(crate) use keyway::{KEYSPACE, Keyway};
pub(crate) use load::{RedisLoad, Target, can_send};
pub(crate) use process::own_cpu;
pub(crate) use work::Work;
