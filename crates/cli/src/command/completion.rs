//! `keyway completion`: what a shell needs to complete command lines.

use clap_complete::{Shell, generate};
use console::exit::{Failure, Verdict};
use console::out;

/// Print a script with which a shell completes commands and options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway completion bash >~/.local/share/bash-completion/completions/keyway
  keyway completion zsh >~/.zfunc/_keyway
  keyway completion fish >~/.config/fish/completions/keyway.fish")]
pub(crate) struct Args {
    /// Which shell.
    shell: Shell,
}

impl Args {
    /// For the command line as a whole.
    pub(crate) fn run(self, mut command: clap::Command) -> Result<Verdict, Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "keyway", &mut script);
        out::raw(&script)?;
        Ok(Verdict::Yes)
    }
}
