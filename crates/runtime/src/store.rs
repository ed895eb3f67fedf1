//! What survives a restart: the durable engine of a shard, the engines over stores that are there
//! already, and the small store of a controller.

pub mod backend;
mod error;
pub mod fjall_engine;
pub mod map_store;

pub use backend::{Backend, BackendEngine, BackendUrl, MemcachedBackend, RedisBackend};
pub use error::StoreError;
pub(crate) use fjall_engine::OPEN_FILES_MAX;
pub use fjall_engine::{
    FORMAT as SHARD_STORE_FORMAT, FjallEngine, ShardIdentity, SyncJob, SyncPolicy,
};
pub use map_store::{
    Candidacy, Candidate, EmbeddedStore, EtcdAccess, EtcdFacts, EtcdMember, EtcdStore, EtcdUrl,
    FILE_FORMAT as MAP_FILE_FORMAT, FileMapStore, Leadership, MapStore, MemoryStore, SaveError,
    Wake, look_at_members,
};
