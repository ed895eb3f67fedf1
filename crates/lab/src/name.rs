//! Which lab a command is about.

use crate::rack;
use console::exit::Failure;

/// Which lab.
#[derive(Debug, clap::Args)]
pub struct Name {
    /// Name of the lab: small letters and digits.
    #[arg(long, value_name = "NAME", default_value = rack::NAME, value_parser = rack::name)]
    pub name: String,
}

/// There is no such lab.
pub fn no_lab(lab: &str) -> Failure {
    let option = rack::name_option(lab);
    Failure::usage(format!("there is no lab {lab}; to build it:  keyway lab up{option}"))
}
