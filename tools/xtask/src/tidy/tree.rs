//! The files that the rules look at.

use super::lexer;
use anyhow::{Context, Result};
use std::path::Path;

/// Folders that hold nothing of ours: build output, history, found inputs.
const SKIPPED: [&str; 4] = ["target", ".git", "corpus", "artifacts"];

/// What is read: programs, their descriptions, and texts for people.
const READ: [&str; 8] = ["rs", "toml", "md", "sh", "json", "lua", "c", "h"];

/// What `cargo xtask codegen` writes and the rules look at.
const GENERATED: [&str; 7] = [
    "bpf/include/layout.h",
    "crates/wire/src/layout.rs",
    "crates/wire/src/messages.rs",
    "crates/wire/src/dissect/tables.rs",
    "crates/xdp/src/layout.rs",
    "docs/reference/wire.md",
    "tools/wireshark/keyway.lua",
];

/// All text files of the repository, in the order of their paths.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// One text file.
pub(super) struct File {
    /// From the root of the repository, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Rust only: the text with comments and the insides of literals blanked out.
    pub(super) code: String,
    /// Rust only: the text with everything but comments blanked out.
    pub(super) comments: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = match path.ends_with(".rs") {
            true => lexer::separate(text),
            false => (String::new(), String::new()),
        };
        Self { path: path.to_owned(), text: text.to_owned(), code, comments }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(super) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Not written by hand; what it looks like is its generator's affair.
    pub(super) fn is_generated(&self) -> bool {
        GENERATED.contains(&self.path.as_str())
    }
}

impl Tree {
    /// Reads the checkout.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A tree for tests of the rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| File::new(path, text)).collect() }
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(super) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether this is one of the files, or a folder with some.
    pub(super) fn holds(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), files)?;
            }
            continue;
        }
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let bare = ["Makefile", "LICENSE", "run"].contains(&name.as_str());
        if bare || READ.contains(&extension) {
            let text = std::fs::read_to_string(entry.path()).with_context(|| path.clone())?;
            files.push(File::new(&path, &text));
        }
    }
    Ok(())
}
