//! The way in for Redis clients: RESP2 and RESP3 on one address, and behind it a cluster that they
//! need not know of.
//!
//! A command's way: [`resp`] reads it off a connection, [`command`] says what it is, whether its
//! arguments are as many as they must be and which of them are keys, [`store`] carries it out with
//! requests of the native client, and its [`Reply`] goes back through [`resp`]. What is about the
//! connection or the server is answered in `session`, without the cluster.

pub mod acl;
mod budget;
mod clients;
pub mod command;
mod connection;
mod cursors;
mod databases;
pub mod glob;
mod guesses;
mod hot;
mod key_count;
mod lookups;
mod memory;
mod metrics;
mod multi;
mod pause;
mod reply;
pub mod resp;
mod script;
mod server;
mod session;
mod settings;
mod shared;
mod siblings;
mod slots;
mod slowlog;
mod stats;
pub mod store;
mod stream;
mod tls;
mod tracking;
mod workers;

pub use acl::Acl;
pub use databases::Database;
pub use hot::{HotKey, HotKeys};
pub use multi::Multi;
pub use reply::{Long, Reply};
pub use server::{Gateway, MAXCLIENTS, Options, StartError};
pub use slots::{Cluster, Endpoint};
pub use store::Store;
pub use tls::{TlsError, TlsFiles};
