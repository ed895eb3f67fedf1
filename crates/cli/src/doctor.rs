//! Whether this machine can switch packets in its kernel, whether data directories and backends are
//! sound, and what to do if not.
//!
//! [`read`] looks at the machine and its interfaces. [`machine`], [`port`], [`content`] and
//! [`security`] judge what was read: they are functions of their arguments alone. [`data`] looks at
//! directories, [`backend`] and [`etcd`] at what others made.

pub(crate) mod backend;
pub(crate) mod content;
pub(crate) mod data;
pub(crate) mod etcd;
pub(crate) mod finding;
pub(crate) mod link;
pub(crate) mod machine;
pub(crate) mod port;
pub(crate) mod read;
pub(crate) mod security;
