//! What survives a restart: the durable engine of a shard, and the small store of a controller.

mod error;
pub mod fjall_engine;
pub mod map_store;

pub use error::StoreError;
pub use fjall_engine::{FjallEngine, ShardIdentity, SyncPolicy};
pub use map_store::RedbMapStore;
