//! The real binary, end to end: clusters in one process and in several, over loopback.

#[cfg(test)]
mod altered;
#[cfg(test)]
mod attacked;
#[cfg(test)]
mod backends;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod big;
#[cfg(test)]
mod caches;
#[cfg(test)]
mod captures;
#[cfg(test)]
mod config;
#[cfg(test)]
mod crash;
mod crowds;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod disks;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod export;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod full;
#[cfg(test)]
mod help;
#[cfg(test)]
mod hot;
#[cfg(test)]
mod input;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod leaders;
#[cfg(test)]
mod linear;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod output;
#[cfg(test)]
mod paper;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod redis;

mod rivals;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod rolling;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod secured;
#[cfg(test)]
mod silent;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod versus;
#[cfg(test)]
mod wireshark;
