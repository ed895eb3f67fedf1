//! The cluster map: what keyspaces there are, which partition holds which keys, which chain of
//! nodes serves it, and the orders by which the controller hands this out.
//!
//! Everything here is data with invariants; nothing sends or stores it.

mod ids;
mod keyspace;
mod map;
mod order;
mod range_table;
mod text;

pub use ids::{Epoch, KeyspaceId, Match, NodeId, PartitionId, StoreId};
pub use keyspace::{Keyspace, KeyspaceKind};
pub use map::{Map, MapError, NodeSpec, Partition};
pub use order::{
    Assignment, InstallError, Member, NodeReport, Order, PartitionCount, Report, SwitchControl,
    SwitchCounters, SwitchTables,
};
pub use range_table::RangeTable;
