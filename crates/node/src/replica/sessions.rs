//! Sessions: which requests of which clients are known, and which clients are remembered.

pub(crate) mod clients;
pub(crate) mod ended;
pub(crate) mod outcome;
pub(crate) mod table;
