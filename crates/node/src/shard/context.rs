//! What a replica works with while it handles one packet.

use crate::heat::Heat;
use crate::hot::Hot;
use crate::replica::big::PartTimes;
use crate::shard::cluster_view::ClusterView;
use crate::shard::counters::Counters;
use crate::shard::timers::Timers;
use crate::shard::turn::Turn;
use cluster::MaybeMutant;
use machine::{Instant, Outbox, UnixMs};
use wire::Room;

/// What a replica works with while it handles one packet: everything of the node but the replica.
pub(crate) struct Context<'a, E> {
    /// By the clock of this node, for all that takes some time.
    pub(crate) now: Instant,
    /// By the clock of the cluster, for all that happens at some time.
    pub(crate) time: UnixMs,
    /// Datagrams found waiting, for the load report.
    pub(crate) load: u16,
    /// Requests per second that the node can serve; 0 if that is not known.
    pub(crate) rate: u32,
    pub(crate) engine: &'a mut E,
    pub(crate) out: &'a mut Outbox,
    pub(crate) timers: &'a mut Timers,
    pub(crate) counters: &'a mut Counters,
    pub(crate) heat: &'a mut Heat,
    pub(crate) hot: &'a mut Hot,
    pub(crate) directory: &'a ClusterView,
    pub(crate) part_times: PartTimes,
    /// Clients that a partition remembers.
    pub(crate) sessions_max: usize,
    pub(crate) turn: &'a mut Turn,
    pub(crate) mutant: MaybeMutant,
    /// Whether the node has a lease: without one it sends nothing and orders nothing.
    pub(crate) leased: bool,
    /// This node's own room.
    pub(crate) room: Room,
    pub(crate) uploads_full: bool,
    /// A buffer to build payloads in, kept for its capacity: whoever takes it clears it and puts it
    /// back.
    pub(crate) scratch: &'a mut Vec<u8>,
}
