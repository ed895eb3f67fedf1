//! Files that are there as a whole or not at all.

use crate::identity::error::IdentityError;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Its owner.
    Secret,
    /// Everybody who can enter the directory.
    Public,
}

/// Writes a file beside its place and puts it there when it is on the disk.
pub(super) fn write(path: &Path, kind: Visibility, text: &[u8]) -> Result<(), IdentityError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.new"));
    let mode = match kind {
        Visibility::Secret => 0o600,
        Visibility::Public => 0o644,
    };
    // One that is left over from a command that was killed may have another mode.
    drop(fs::remove_file(&beside));
    let written = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    written().map_err(IdentityError::file(path))
}
