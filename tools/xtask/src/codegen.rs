//! Writes `spec/layout.toml` out for each language that reads it.

mod c;
mod dissect;
mod lua;
mod messages;
mod records;
mod reference;
mod rust;

use crate::layout::Layout;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Writes every generated file, or with `check` compares and changes nothing.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let layout = Layout::read(root)?;
    let outputs = [
        ("crates/wire/src/layout.rs", rust::generate(&layout)?),
        ("crates/wire/src/messages.rs", messages::generate(&layout)?),
        ("crates/wire/src/dissect/tables.rs", dissect::generate(&layout)?),
        ("tools/wireshark/keyway.lua", lua::generate(&layout)?),
        ("crates/xdp/src/layout.rs", records::generate(&layout)?),
        ("bpf/include/layout.h", c::generate(&layout)?),
        ("docs/reference/wire.md", reference::generate(&layout)?),
    ];
    for (path, text) in outputs {
        let full = root.join(path);
        if check {
            let found = std::fs::read_to_string(&full).unwrap_or_default();
            if found != text {
                bail!("{path} is not what spec/layout.toml says; run `cargo xtask codegen`");
            }
        } else {
            let folder = full.parent().context("generated files have a folder")?;
            std::fs::create_dir_all(folder)?;
            std::fs::write(&full, text).with_context(|| path.to_owned())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_what_the_layout_says() {
        super::run(&crate::repository_root(), true).unwrap();
    }
}
