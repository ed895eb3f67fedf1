//! The `keyway` binary: every role of a cluster, its clients, and what measures and explains it.
//!
//! Commands read arguments, call the other crates and print; there is nothing here that another
//! program could want.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod capture;
mod cli;
mod command;
mod doctor;
mod export;
mod packet;
mod partitions;
mod process;
mod top;

use clap::Parser;
use console::exit::Failure;
use console::note;
use console::{answer, out};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let json = cli.shared.json;
    out::set_color(cli.shared.color);
    match cli.run() {
        Ok(verdict) => verdict.into(),
        Err(failure) => end(json, &failure),
    }
}

/// Says why a command did not run to its end.
fn end(json: bool, failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::Unread) {
        let message = failure.message();
        // If it cannot be printed, the message below still says what went wrong first.
        if json && !failure.is_of_output() {
            answer::Answer::new(failure.outcome()).with("error", &message).print().ok();
        }
        note!("keyway: {message}");
    }
    failure.code()
}

/// Help, the version, or what is wrong with the command line.
fn explain(error: &clap::Error) -> ExitCode {
    let text = runtime::secret::scrub(&error.render().to_string());
    if error.use_stderr() {
        out::tell(format_args!("{text}"));
        return Failure::usage(String::new()).code();
    }
    match out::print(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => end(false, &failure),
    }
}
