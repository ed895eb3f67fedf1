//! A gateway before a cluster in this process, driven as clients drive it: with bytes.

#[cfg(test)]
mod handshakes;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod pipeline;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod server;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod users;
