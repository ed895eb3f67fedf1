//! Whole clusters over real sockets: all roles in one process, and each as a server of its own.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod caches;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod envelopes;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod json;
#[cfg(test)]
mod poisoned;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod secured;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod setup;
