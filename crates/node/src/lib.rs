//! The storage node as a machine: chains, versions, sessions, expiry; and the engines below it.
//!
//! A [`Node`] serves the partitions of one shard. It owns its engine alone, so that cores share
//! nothing. Whatever it answers waits until [`Node::flush`] has made durable what it rests on.

pub mod engine;
