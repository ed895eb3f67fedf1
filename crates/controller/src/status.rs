//! How the cluster stands, as data for people, dashboards and tests.

mod copies;
mod form;
mod hot;
mod make;
mod members;
mod verify;
mod view;
mod watches;

pub use form::{
    AwaitedStatus, CacheStatus, CopyStatus, DelegationStatus, GenerationStatus, HotStatus,
    KeyspaceStatus, MemberState, MemberStatus, NodeLoad, PartitionStatus, PartitionVerified,
    Protection, STATUS_SCHEMA, Status, StoreStatus, SwitchStatus, VerifyStatus,
};
pub(crate) use view::View;
pub(crate) use watches::Watches;
