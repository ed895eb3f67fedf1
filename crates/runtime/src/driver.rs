//! The roles as threads, each with a handle by which the control plane reaches it.

mod alert;
mod cache;
mod content;
mod controller;
mod delivery;
mod fast_path;
mod latency;
mod leaving;
mod node;
mod obedience;
mod orders;
mod switch;
mod turn_watch;

pub use alert::Listen;
pub use cache::{CacheDriver, CacheHandle, CacheLimits, CacheSnapshot};
pub use content::{ContentAgent, ContentError, ContentSnapshot};
pub use controller::{
    Change, ClassRights, ControllerDriver, ControllerError, ControllerHandle, ControllerPlan,
    KeyPlan, NamedKey, PassError, PassWish, Position, RequestError, Stand,
};
pub use delivery::{Delivery, Line, Undelivered, in_process, over_http};
pub use fast_path::{FastPath, FastPathError, InKernel};
pub use latency::Latency;
pub use leaving::{Departure, LEAVE_MAX};
pub(crate) use node::joint_store;
pub use node::{NodeDriver, NodeHandle, NodeLimits, NodeSnapshot, ShardEngine, ShardSnapshot};
pub use orders::{MemberHandle, OrderError};
pub use switch::{SwitchDriver, SwitchHandle, SwitchSnapshot};
