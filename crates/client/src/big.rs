//! Values that need not fit a datagram. These machines know what is to be asked for, in which
//! order, and what an answer means; a face carries out what they want [next](Next), and is told
//! the same whether it blocks or not.

mod batching;
mod download;
mod parts;
mod receiving;
mod sending;
mod step;
#[cfg(test)]
mod tests;

pub(crate) use batching::Batching;
pub(crate) use download::Download;
pub(crate) use parts::is_short;
pub(crate) use receiving::{Reading, cut};
pub(crate) use sending::{Sending, Writing};
pub(crate) use step::{Event, Next};
