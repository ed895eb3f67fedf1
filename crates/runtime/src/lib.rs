//! What makes machines run: sockets, threads, clocks, configuration, metrics and the control
//! transport. The only place in Keyway with I/O and clocks.
//!
//! Each switch thread and each node shard is one machine in one thread with one socket: see
//! `event_loop`. The controller runs in a thread of its own and reaches them through
//! their handles (in one process) or over HTTP.

pub mod clock;
pub mod net;
pub mod store;
