//! The files of `spec/vectors`: reading, writing, and what they say in bytes.

pub(crate) mod codec;
pub(crate) mod file;
