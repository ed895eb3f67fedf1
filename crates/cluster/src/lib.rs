//! The cluster map: what keyspaces there are, which partition holds which keys, which chain of
//! nodes serves it, and the orders by which the controller hands this out.
//!
//! Everything here is data with invariants; nothing sends or stores it.

mod cache;
mod clock;
mod content;
mod fence;
mod hot;
mod ids;
mod keyspace;
mod lease;
mod map;
mod mutant;
mod numbers;
mod order;
mod plane;
mod range_table;
mod record;
mod resources;
mod sample;
mod term;
mod text;
mod verify;
mod versions;

pub use cache::{
    CACHE_SHARDS_MAX, CACHE_TOLD_MAX, CacheReport, CacheShard, CacheSpec, CacheTables, cache_of,
    cache_shard_of,
};
pub use clock::{ClockAhead, ClockOrder};
pub use content::{ContentRouting, NoAddresses};
pub use fence::{Fence, Standby};
pub use hot::{
    Delegation, HotCount, HotEntry, HotKey, HotOrder, HotPolicy, KeyName, Selection, bank,
};
pub use ids::{
    CacheId, ClusterId, Epoch, Incarnation, KeyspaceId, Match, NodeId, PartitionId, StoreId,
};
pub use keyspace::{Keyspace, KeyspaceKind, tag_of};
pub use lease::{CLOCK_RATE_MAX_PERCENT, Lease, Tenure};
pub use map::{Away, Making, Map, MapError, NodeSpec, Origin, Partition, Returned};
pub use mutant::{MUTANTS, MaybeMutant, Mutant};
pub use numbers::is_plausible_revision;
pub use order::{
    Assignment, CopyProgress, EnvelopeOrder, Install, KeysNumber, Member, MemberReport, NodeReport,
    Order, Report, Settled, SwitchTables,
};
pub use plane::{
    Capabilities, ContentReport, InstallError, NodeCount, PartitionCount, RECORDS_PER_REQUEST,
    SwitchControl, SwitchCounters, TableSizes,
};
pub use range_table::{RangeTable, Span};
pub use record::{NodeRecord, ShardRecord, SwitchRecord};
pub use resources::{Durability, Resources, Stored, Volume};
pub use sample::PartitionSample;
pub use term::{Leader, Superior, Term, Unheeded};
pub use verify::{DIFFERENCES_MAX, Difference, Findings, Verification, VerifyOrder};
pub use versions::{CHAIN_VERSION, ORDERS_VERSION, ORDERS_VERSION_MIN, Versions};
