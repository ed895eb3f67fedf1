//! What commands have in common, whoever's they are: arguments ([`parse`], [`shared`], [`bytes`],
//! [`certs`]),
//! output for people and programs ([`out`], [`answer`], [`chart`], [`progress`], [`save`]), how a
//! process ends ([`exit`]) and what it logs ([`logs`]), and the way to a cluster ([`connect`],
//! [`admin`]).
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(missing_docs, reason = "fields and variants say by their names what they are")]

pub mod admin;
pub mod answer;
pub mod bytes;
pub mod certs;
pub mod chart;
pub mod connect;
pub mod exit;
pub mod file;
pub mod logs;
pub mod out;
pub mod parse;
pub mod pass;
pub mod progress;
pub mod save;
pub mod shared;
