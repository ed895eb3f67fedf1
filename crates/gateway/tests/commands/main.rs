//! What commands do, carried out on a whole cluster in this process: beside a real Redis server,
//! and many at once.

#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod history;
#[cfg(test)]
mod keyspace;
#[cfg(test)]
mod long;
#[cfg(test)]
mod meanings;
#[cfg(test)]
mod redis;
#[cfg(test)]
mod setup;
#[cfg(test)]
#[path = "../../../cli/tests/chaos/skip.rs"]
mod skip;
#[cfg(test)]
mod table;
#[cfg(test)]
mod transactions;
