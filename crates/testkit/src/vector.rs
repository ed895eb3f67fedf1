//! The files of `spec/vectors`: reading, writing, and what they say in bytes.

pub mod codec;
pub mod file;
pub mod shown;
