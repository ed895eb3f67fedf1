//! One module per command: its arguments, and what it does.

pub(crate) mod bench;
pub(crate) mod cas;
pub(crate) mod cluster;
pub(crate) mod cluster_size;
pub(crate) mod controller;
pub(crate) mod del;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod hot;
pub(crate) mod incr;
pub(crate) mod keyspace;
pub(crate) mod lab;
pub(crate) mod logs;
pub(crate) mod mget;
pub(crate) mod node;
pub(crate) mod paper;
pub(crate) mod put;
pub(crate) mod role;
pub(crate) mod scan;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod switch;
pub(crate) mod ttl;
pub(crate) mod up;
