//! What the replicas of a shard have in common: what it knows of the cluster, its room, its
//! records, and how it answers.

pub(crate) mod cluster_view;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod direct;
pub(crate) mod noted;
pub(crate) mod replica_records;
pub(crate) mod reply;
pub(crate) mod room;
pub(crate) mod timers;
pub(crate) mod turn;
pub(crate) mod waits;
