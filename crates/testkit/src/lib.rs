//! What tests of several crates share; no program of the product uses it.
//!
//! A switch is held against [`oracle`], a naive model of one, with tables and datagrams that
//! [`draw`] makes and orders of hot keys that [`orders`] makes, and against the files of
//! `spec/vectors`, which [`vector`] reads. [`fuzzed`] is what the fuzz targets do. The tests of
//! this crate hold the pipeline against all of them; those of `xdp` do the same with the kernel.
//!
//! [`program`] runs the binary `keyway`, [`server`] stores of others, [`wires`] lays wires between
//! network namespaces, [`frame`] makes what goes over them. [`flag`] ends threads of a test that
//! fails, [`skip`] says what was not tested.
#![expect(missing_docs, reason = "fields and variants are what tests read here, by their names")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "whatever fails here is a test that fails, and says where"
)]

pub mod draw;
pub mod flag;
pub mod frame;
pub mod fuzzed;
pub mod oracle;
pub mod orders;
pub mod program;
pub mod server;
pub mod skip;
pub mod vector;
pub mod wires;
