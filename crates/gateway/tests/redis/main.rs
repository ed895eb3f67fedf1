//! A gateway before a cluster in this process, driven as clients drive it: with bytes.

#[cfg(test)]
mod again;
mod crowds;
#[cfg(test)]
mod handshakes;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod pipeline;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod server;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod users;
