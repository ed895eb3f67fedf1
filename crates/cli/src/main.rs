//! The `keyway` binary: every role of a cluster, its clients, and what measures and explains it.
//!
//! Commands read arguments, call the other crates and print; there is nothing here that another
//! program could want.

mod admin;
mod answer;
mod bench;
mod bytes;
mod chart;
mod cli;
mod command;
mod connect;
mod doctor;
mod exit;
mod figure;
mod file;
mod lab;
mod netmc;
mod out;
mod parse;
mod top;
mod versus;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let json = cli.shared.json;
    match cli.run() {
        Ok(verdict) => verdict.into(),
        Err(failure) => {
            if json {
                answer::Answer::new(failure.outcome()).with("error", failure.message()).print();
            }
            eprintln!("keyway: {}", failure.message());
            failure.code()
        }
    }
}
