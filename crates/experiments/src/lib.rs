//! The experiments of the papers behind Keyway, and comparisons with what people would use instead.
//!
//! [`paper`] has the machines in virtual time. `netmc`, `turbokv` and the commands
//! `keyway lab balance` and `shift` use a rack of namespaces: `site` is one under load, `trial` a
//! load at a rate, `search` looks for the highest rate that is answered in time, and `cost` tells
//! who spends processor time. [`versus`] puts Redis and etcd beside. [`command`] has their
//! arguments; `figure` shows what came of it.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod command;
mod cost;
mod figure;
mod median;
mod netmc;
pub mod paper;
mod search;
mod served;
mod site;
mod trial;
mod turbokv;
pub mod versus;
