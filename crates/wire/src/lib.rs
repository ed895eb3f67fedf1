//! The packets that clients, switches and storage nodes exchange: the only place that knows byte
//! offsets, and even here they come from [`layout`], which is generated.
//!
//! A packet is one UDP datagram: a header of [`HEADER_LEN`] bytes and a payload. [`Packet::parse`]
//! makes the checks that every target makes (a P4 parser, an eBPF program, this crate);
//! [`Packet::body`] then reads what only nodes and clients look at. [`emit`] is the way to make a
//! packet. Nothing here allocates but the buffers that a caller hands in, and nothing panics on
//! any input.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod batch;
mod between;
pub mod big;
mod body;
mod bytes;
mod cache;
mod chain;
mod content;
mod copy;
pub mod dissect;
mod durable;
mod endpoint;
pub mod expiry;
pub mod layout;
mod messages;
pub mod metric;
mod number;
mod packet;
mod result;
mod since;
mod tag;
#[cfg(test)]
mod tests;

pub use batch::{ChainStep, ChainSteps, Change, Condition, Step, Steps, push_step};
pub use between::{Found, may_be_delegated};
pub use big::PartKey;
pub use body::{Body, Entry, Expect, MgetEntries, MgetKey, MgetKeys, New, RangeEntries};
pub use cache::{
    CACHE_RULES_FIT, CACHE_RULES_MAX, CacheMessage, CacheReports, CacheRule, CacheRules,
};
pub use content::{
    AddressPrefix, CONTENT_HOP_FLAGS, ContentAddress, KeyspaceAddresses, NoServicePrefix,
    ServicePrefix, match_bits,
};
pub use copy::{CopyEntries, CopyEntry};
pub use durable::{DURABLE_MAX, DurableVersions};
pub use endpoint::Endpoint;
pub use layout::*;
pub use messages::{
    CacheCopy, ChainAnswer, ChainExpire, ChainOffer, ChainStable, ChainWrite, ClientReply,
    ClientWrite, DelegatedReply, DelegationCommit, DelegationDurable, DelegationFound, GrantedPut,
    GroupedMget, HomeWrite, HotAnswer, HotCopied, HotCopy, HotGet, HotMget, KeyReply, NoSession,
    NodeReply, RangeInterval, RunPart,
};
pub use number::{DelegationId, DirectoryClock, Generation, LoanNumber, Revision, Version};
pub use packet::{
    NOBODY, Packet, chain_bytes, chain_of, delegated_chain, emit, emit_mget, mget_len,
    push_mget_entry, push_range_entry, readers_of,
};
pub use result::ChainResult;
pub use since::since_of;
pub use tag::{seal, tag_is_right};
