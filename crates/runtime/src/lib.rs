//! What makes machines run: sockets, threads, clocks, configuration, metrics and the control
//! transport. The only place in Keyway with I/O and clocks.
//!
//! Each switch thread and each node shard is one machine in one thread with one socket: that is
//! `event_loop`, and [`driver`] has the three roles. The controller runs in a thread of its own and
//! reaches the others through their handles (in one process, [`up`]) or over HTTP ([`admin`]).

pub mod admin;
pub mod clock;
pub mod config;
pub mod disk;
pub mod driver;
pub mod entropy;
mod event_loop;
mod fatal;
pub mod files;
pub mod identity;
pub mod keyring;
pub mod logging;
mod mailbox;
pub mod memory;
pub mod metrics;
pub mod migrate;
pub use ::net;
mod private;
pub mod rebuild;
pub mod roles;
pub mod secret;
pub mod server;
pub mod signals;
pub mod store;
pub mod up;

pub use mailbox::MailError;
