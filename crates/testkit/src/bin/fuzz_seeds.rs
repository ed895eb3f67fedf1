//! Writes what a fuzz target begins with: `fuzz-seeds REPOSITORY packet|pipeline|envelope FOLDER`.

use std::path::Path;
use std::process::ExitCode;
use testkit::fuzzed::seeds::{self, Target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [repository, target, folder] = arguments.as_slice() else {
        eprintln!("usage: fuzz-seeds REPOSITORY packet|pipeline|envelope FOLDER");
        return ExitCode::from(2);
    };
    match write(repository.as_ref(), target, folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn write(repository: &Path, target: &str, folder: &Path) -> Result<(), String> {
    let target = match target {
        "packet" => Target::Packet,
        "pipeline" => Target::Pipeline,
        "envelope" => Target::Envelope,
        _ => return Err(format!("{target:?} is none of packet, pipeline and envelope")),
    };
    for (name, bytes) in seeds::of_vectors(repository, target)? {
        std::fs::write(folder.join(&name), bytes).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}
